#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Files that nobody else may read.
enum SecretFile {
    enum Problem: Error {
        case readableByOthers
        case tooLarge
        /// What the system said.
        case system(String)
    }

    /// The bytes of a file that only its owner may read. What is looked at is what is read, even if
    /// the name is given to another file meanwhile.
    static func read(_ path: String, bytesMax: Int) throws(Problem) -> [UInt8] {
        let number = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard number >= 0 else { throw .system(lastError()) }
        defer { close(number) }
        var status = stat()
        guard unsafe fstat(number, &status) == 0 else { throw .system(lastError()) }
        guard status.st_mode & 0o077 == 0 else { throw .readableByOthers }
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = unsafe piece.withUnsafeMutableBytes { buffer in
                unsafe readBytes(number, buffer.baseAddress, buffer.count)
            }
            guard count >= 0 else { throw .system(lastError()) }
            if count == 0 { return bytes }
            bytes += piece[..<count]
            guard bytes.count <= bytesMax else { throw .tooLarge }
        }
    }

    /// Whether others can read a private key. The group may read one that root lends to it.
    static func isReadableByOthers(_ path: String) -> Bool {
        var status = stat()
        guard unsafe stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            return false
        }
        let lent: mode_t = status.st_uid == 0 && geteuid() != 0 ? 0o040 : 0
        return status.st_mode & 0o077 & ~lent != 0
    }

    /// Why a file cannot be opened; `nil`: it can.
    static func problem(of path: String) -> String? {
        let number = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard number >= 0 else { return lastError() }
        close(number)
        return nil
    }

    private static func lastError() -> String { unsafe String(cString: strerror(errno)) }
}

/// The system's `read`, whose name a method here has too.
@unsafe private func readBytes(
    _ number: Int32,
    _ start: UnsafeMutableRawPointer?,
    _ count: Int
) -> Int {
    unsafe read(number, start, count)
}
