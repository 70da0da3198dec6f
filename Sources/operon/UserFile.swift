import Glibc
import OperonArguments
import OperonSystem

/// An open file that a command reads or writes for its user. Closed with its last reference.
final class UserFile: Sendable {
    /// An error of the system.
    struct Problem: Error, CustomStringConvertible {
        let code: Int32

        /// The system's words for it, such as “No such file or directory”.
        var description: String { SystemWords.text(of: code) }

        var isNoSuchFile: Bool { code == ENOENT }
        var isExistingFile: Bool { code == EEXIST }

        fileprivate static var last: Problem { Problem(code: errno) }
    }

    let descriptor: Int32

    /// - Parameter descriptor: open; it belongs to this file from now on.
    private init(owning descriptor: Int32) { self.descriptor = descriptor }

    deinit { close(descriptor) }

    /// Opens a file for reading.
    init(reading path: String) throws(Problem) {
        descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw .last }
    }

    /// Opens a file for writing, and makes it if it does not exist.
    ///
    /// - Parameter keeping: how many bytes of an existing file stay; the rest is cut off.
    init(writing path: String, keeping: Int = 0) throws(Problem) {
        let flags = O_WRONLY | O_CREAT | O_CLOEXEC | (keeping == 0 ? O_TRUNC : 0)
        descriptor = unsafe open(path, flags, 0o666)
        guard descriptor >= 0 else { throw .last }
        guard keeping > 0 else { return }
        guard ftruncate(descriptor, keeping) == 0, lseek(descriptor, 0, SEEK_END) >= 0 else {
            throw .last
        }
    }

    /// Creates a file that does not exist.
    init(creating path: String, mode: mode_t) throws(Problem) {
        descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)
        guard descriptor >= 0 else { throw .last }
    }

    /// All of standard input.
    static func readStandardInput(bytesMax: Int) throws(Failure) -> [UInt8] {
        let bytes: [UInt8]?
        do throws(Problem) {
            let descriptor = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
            guard descriptor >= 0 else { throw .last }
            bytes = try UserFile(owning: descriptor).readAll(bytesMax: bytesMax)
        } catch {
            throw Failure(ExitStatus.usage, "Standard input cannot be read: \(error).")
        }
        guard let bytes else {
            throw Failure(ExitStatus.usage, "Standard input has more than \(bytesMax) bytes.")
        }
        return bytes
    }

    private static let pieceBytes = 1 << 16

    /// The next bytes; none at the end.
    func read() throws(Problem) -> [UInt8] {
        var piece = [UInt8](repeating: 0, count: Self.pieceBytes)
        while true {
            let count = unsafe piece.withUnsafeMutableBytes { bytes in
                unsafe Glibc.read(descriptor, bytes.baseAddress, bytes.count)
            }
            if count >= 0 {
                piece.removeLast(piece.count - count)
                return piece
            }
            guard errno == EINTR else { throw .last }
        }
    }

    /// All bytes up to the end; `nil` if there are more than `bytesMax`.
    func readAll(bytesMax: Int) throws(Problem) -> [UInt8]? {
        var bytes: [UInt8] = []
        while true {
            let piece = try read()
            if piece.isEmpty { return bytes }
            bytes += piece
            guard bytes.count <= bytesMax else { return nil }
        }
    }

    func write(_ bytes: some Collection<UInt8>) throws(Problem) {
        let bytes = Array(bytes)
        var written = 0
        while written < bytes.count {
            let count = unsafe bytes.withUnsafeBytes { bytes in
                unsafe Glibc.write(
                    descriptor,
                    bytes.baseAddress?.advanced(by: written),
                    bytes.count - written
                )
            }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw .last }
            // A write of some bytes never writes none to a file, a pipe or a terminal (write(2)).
            guard count > 0 else { throw Problem(code: EIO) }
            written += count
        }
    }

    /// Waits until what was written is on the disk.
    func sync() throws(Problem) {
        guard fsync(descriptor) == 0 else { throw .last }
    }

    // MARK: - Paths

    /// The size in bytes; `nil`: there is no such file, or it cannot be looked at.
    static func byteCount(of path: String) -> Int? {
        var facts = stat()
        return unsafe stat(path, &facts) == 0 ? Int(facts.st_size) : nil
    }

    /// Makes a directory, and those above it that are missing. One that is there already stays.
    static func makeDirectories(_ path: String, mode: mode_t) throws(Problem) {
        var end = path.startIndex
        while end < path.endIndex {
            // In bytes: as a character, a slash before a combining mark is another one.
            let rest = path.utf8[path.utf8.index(after: end)...]
            end = rest.firstIndex(of: UInt8(ascii: "/")) ?? path.endIndex
            let part = String(path[..<end])
            guard unsafe mkdir(part, mode) == 0 || errno == EEXIST else { throw .last }
        }
        var facts = stat()
        guard unsafe stat(path, &facts) == 0 else { throw .last }
        guard facts.st_mode & S_IFMT == S_IFDIR else { throw Problem(code: ENOTDIR) }
    }

    /// Makes a directory that does not exist, for this user alone, with a random end of its name.
    static func makeUniqueDirectory(_ start: String) throws(Problem) -> String {
        var name = Array("\(start)XXXXXX".utf8CString)
        let made = unsafe name.withUnsafeMutableBufferPointer { name in
            unsafe mkdtemp(name.baseAddress!) != nil
        }
        guard made else { throw .last }
        return String(decoding: name.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// Gives a file a second name, which no file has.
    static func link(_ path: String, as name: String) throws(Problem) {
        guard unsafe Glibc.link(path, name) == 0 else { throw .last }
    }

    /// Removes a file if it exists.
    static func remove(_ path: String) { _ = unsafe unlink(path) }

    /// Whether a whole file could be written now, which leaves no trace.
    static func checkWritable(_ path: String) throws(Problem) {
        var facts = stat()
        if unsafe stat(path, &facts) == 0 {
            guard facts.st_mode & S_IFMT != S_IFDIR else { throw Problem(code: EISDIR) }
            guard unsafe access(path, W_OK) == 0 else { throw .last }
            return
        }
        let end = path.lastIndex(of: "/")
        let folder = end.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
        guard unsafe access(folder, W_OK | X_OK) == 0 else { throw .last }
        guard !path.hasSuffix("/"), !path.isEmpty else { throw Problem(code: EISDIR) }
    }

    /// Writes a whole file. Another file of this name is replaced when the new one is complete.
    /// A terminal, a pipe and the file that a link leads to are written to in place.
    static func write(_ bytes: [UInt8], to path: String) throws(Problem) {
        var facts = stat()
        let isOther = unsafe lstat(path, &facts) == 0 && facts.st_mode & S_IFMT != S_IFREG
        guard !isOther else { return try UserFile(writing: path).write(bytes) }
        let draft = "\(path).new-\(getpid())"
        remove(draft)
        do throws(Problem) {
            try UserFile(creating: draft, mode: 0o666).write(bytes)
            guard unsafe rename(draft, path) == 0 else { throw .last }
        } catch {
            remove(draft)
            throw error
        }
    }
}
