import OperonModel
import OperonSystem

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The bytes of a file, read in pieces, up to a limit. Owns the open file.
struct ByteSource: ~Copyable {
    private let descriptor: Int32
    private let bytesMax: Int
    private var bytesRead = 0
    /// The bytes of a source that is not a file.
    private var given: [UInt8]?

    /// Large enough that the cost of a read is small compared to the processing.
    private static let pieceBytes = 1 << 20

    init(_ bytes: [UInt8]) {
        descriptor = -1
        bytesMax = .max
        given = bytes
    }

    /// Opens a file. A file that is known to be too large is refused before it is read.
    init(path: String, bytesMax: Int) throws(Stop) {
        descriptor = try Self.opened(path, bytesMax)
        self.bytesMax = bytesMax
    }

    /// Reads an open file, such as standard input, which stays open.
    init(duplicating number: Int32, bytesMax: Int) throws(Stop) {
        let copy = fcntl(number, F_DUPFD_CLOEXEC, 0)
        guard copy >= 0 else { throw Self.unreadable(SystemWords.text(of: errno)) }
        descriptor = copy
        self.bytesMax = bytesMax
    }

    /// Whether there is a file of this name that can be read from the beginning more than once.
    static func isFile(_ path: String) -> Bool {
        var status = stat()
        guard !path.utf8.contains(0), unsafe stat(path, &status) == 0 else { return false }
        return status.st_mode & S_IFMT == S_IFREG
    }

    private static func opened(_ path: String, _ bytesMax: Int) throws(Stop) -> Int32 {
        guard !path.utf8.contains(0) else { throw unreadable("its path has a NUL character") }
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw unreadable(SystemWords.text(of: errno)) }
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0 else {
            let why = SystemWords.text(of: errno)
            close(descriptor)
            throw unreadable(why)
        }
        guard status.st_mode & S_IFMT != S_IFDIR else {
            close(descriptor)
            throw unreadable("it is a directory")
        }
        guard Int(status.st_size) <= bytesMax else {
            close(descriptor)
            throw tooLarge(Int(status.st_size), bytesMax)
        }
        return descriptor
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    /// Appends the next bytes; returns `false` at the end.
    mutating func read(appendingTo buffer: inout [UInt8]) throws(Stop) -> Bool {
        guard descriptor >= 0 else {
            defer { given = nil }
            if buffer.isEmpty { buffer = given ?? [] } else { buffer += given ?? [] }
            return given?.isEmpty == false
        }
        var failure: Int32 = 0
        let piece = unsafe [UInt8](unsafeUninitializedCapacity: Self.pieceBytes) { space, count in
            var result: Int
            repeat {
                result = unsafe systemRead(descriptor, space.baseAddress, Self.pieceBytes)
            } while result < 0 && errno == EINTR
            count = max(0, result)
            failure = result < 0 ? errno : 0
        }
        guard failure == 0 else { throw Self.unreadable(SystemWords.text(of: failure)) }
        bytesRead += piece.count
        // A pipe has no size in advance, and a file may grow while it is read.
        guard bytesRead <= bytesMax else { throw Self.tooLarge(bytesRead, bytesMax) }
        buffer += piece
        return !piece.isEmpty
    }

    consuming func readAll() throws(Stop) -> [UInt8] {
        var bytes: [UInt8] = []
        while try read(appendingTo: &bytes) {}
        return bytes
    }

    private static func tooLarge(_ bytes: Int, _ bytesMax: Int) -> Stop {
        .problem(
            GraphFileError.Problem(
                limit: .graphFileBytes,
                value: bytes,
                maximum: bytesMax,
                at: .none,
                "",
                "the file is too large"
            )
        )
    }

    private static func unreadable(_ why: String) -> Stop {
        .problem(
            GraphFileError.Problem(.unreadable, at: .none, "", "the file cannot be read: \(why)")
        )
    }
}

/// Calls the system's `read`, which the method of the same name hides.
private func systemRead(
    _ descriptor: Int32,
    _ buffer: UnsafeMutableRawPointer?,
    _ count: Int
) -> Int {
    unsafe read(descriptor, buffer, count)
}

/// Operations on paths as texts. They access the file system only for the current directory.
enum Path {
    /// The directory of a file, absolute; `nil` if the current directory cannot be determined.
    static func directory(of path: String) -> String? {
        let parts = path.split(separator: "/", omittingEmptySubsequences: true).dropLast()
        let directory = parts.filter { $0 != "." }.joined(separator: "/")
        if path.hasPrefix("/") { return "/" + directory }
        return current().map { directory.isEmpty ? $0 : joined($0, directory) }
    }

    /// A path relative to a directory, unless it is absolute. `..` stays, because only the file
    /// system knows what it refers to.
    static func joined(_ base: String?, _ path: String) -> String {
        guard !path.hasPrefix("/"), let base else { return path }
        var rest = Substring(path)
        while rest.hasPrefix("./") { rest = rest.dropFirst(2) }
        if rest.isEmpty || rest == "." { return base }
        return base.hasSuffix("/") ? base + rest : base + "/" + rest
    }

    /// The file name without its directory and suffix.
    static func baseName(of path: String) -> String {
        let name = path.split(separator: "/").last.map(String.init) ?? path
        guard let dot = name.lastIndex(of: "."), dot > name.startIndex else { return name }
        return String(name[..<dot])
    }

    static func suffix(of path: String) -> String {
        let name = path.split(separator: "/").last ?? ""
        guard let dot = name.lastIndex(of: "."), dot > name.startIndex else { return "" }
        return String(name[name.index(after: dot)...])
    }

    private static func current() -> String? {
        guard let path = unsafe getcwd(nil, 0) else { return nil }
        defer { unsafe free(path) }
        return unsafe String(cString: path)
    }
}
