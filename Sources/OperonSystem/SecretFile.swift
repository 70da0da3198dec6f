package import OperonModel

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Files that only this user may read.
package enum SecretFile {
    package enum Problem: Error {
        case readableByOthers(FileRights)
        case notOwn
        case tooLarge
        /// It cannot be read: the system's words for the error.
        case system(String)
        /// It cannot be written: the system's words for the error.
        case unwritable(String)

        /// The problem with a file whose secret is called `what`, as a sentence without a capital
        /// and a full stop.
        package func text(_ what: String, in path: String) -> String {
            switch self {
            case .readableByOthers(let rights):
                "other users can read the \(what) in \(path) (mode \(rights.text)): "
                    + "chmod 600 \(path)"
            case .notOwn:
                "the \(what) in \(path) cannot be read: this is not a regular file of this user"
            case .tooLarge: "the \(what) in \(path) cannot be read: the file is too large"
            case .system(let why): "the \(what) in \(path) cannot be read: \(why)"
            case .unwritable(let why): "the \(what) in \(path) cannot be written: \(why)"
            }
        }

        /// The same as a sentence that stands alone.
        package func sentence(_ what: String, in path: String) -> String {
            let text = text(what, in: path)
            let sentence = text.prefix(1).uppercased() + text.dropFirst()
            // A full stop would spoil the command at the end.
            if case .readableByOthers = self { return sentence }
            return sentence + "."
        }
    }

    /// Longer files hold no single secret, be it a line or a key in PEM.
    package static let usualBytesMax = 64 << 10

    /// The bytes of a file that no other user can read. The opened file itself is checked, even if
    /// its name is given to another file meanwhile.
    package static func read(
        _ path: String,
        bytesMax: Int = usualBytesMax
    ) throws(Problem) -> [UInt8] {
        try read(path, bytesMax: bytesMax, isOwn: false)
    }

    /// The bytes of a file that the program itself has made, at a place that nobody named: what
    /// another user has put there is refused, even if nobody else can read it.
    package static func readOwn(
        _ path: String,
        bytesMax: Int = usualBytesMax
    ) throws(Problem) -> [UInt8] {
        try read(path, bytesMax: bytesMax, isOwn: true)
    }

    private static func read(
        _ path: String,
        bytesMax: Int,
        isOwn: Bool
    ) throws(Problem) -> [UInt8] {
        // Without a wait for the other side of a pipe.
        let number = unsafe open(
            path,
            O_RDONLY | O_CLOEXEC | (isOwn ? O_NOFOLLOW | O_NONBLOCK : 0)
        )
        guard number >= 0 else {
            throw isOwn && errno == ELOOP ? .notOwn : .system(SystemWords.lastError())
        }
        defer { close(number) }
        var status = stat()
        guard unsafe fstat(number, &status) == 0 else { throw .system(SystemWords.lastError()) }
        if isOwn {
            guard status.st_mode & S_IFMT == S_IFREG, status.st_uid == geteuid() else {
                throw .notOwn
            }
        }
        let rights = FileRights(status)
        guard !rights.tellsSecrets else { throw .readableByOthers(rights) }
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = unsafe piece.withUnsafeMutableBytes { buffer in
                unsafe readBytes(number, buffer.baseAddress, buffer.count)
            }
            guard count >= 0 else { throw .system(SystemWords.lastError()) }
            if count == 0 { return bytes }
            bytes += piece[..<count]
            guard bytes.count <= bytesMax else { throw .tooLarge }
        }
    }

    /// Why a file cannot be opened; `nil` if it can be.
    package static func problem(of path: String) -> String? {
        let number = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard number >= 0 else { return SystemWords.lastError() }
        close(number)
        return nil
    }
}

/// The system's `read`; a method here has the same name.
@unsafe private func readBytes(
    _ number: Int32,
    _ start: UnsafeMutableRawPointer?,
    _ count: Int
) -> Int {
    unsafe read(number, start, count)
}
