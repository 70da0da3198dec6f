import OperonSystem

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// The socket file on which a coordinator listens.
///
/// While the server runs it holds a lock next to the file (`PATH.lock`, flock(2)), so that exactly
/// one of several coordinators that start at the same time takes the path. The kernel releases the
/// lock however the process ends. So the file of a dead server is replaced, and that of a live one
/// never is.
final class SocketFile: Sendable {
    let path: String
    private let lock: Int32

    /// The most bytes of a path that fit in `sockaddr_un` with the zero after them.
    static let pathBytesMax = MemoryLayout.size(ofValue: sockaddr_un().sun_path) - 1

    /// - Throws: an error if a server listens there, if the path is not usable for a socket, or if
    ///   its directory is not safe.
    init(taking path: String) throws(HTTPServerError) {
        try Self.checkLength(path)
        try SafeFolder.check(Self.folder(of: path))
        let flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW
        let number = unsafe open(path + ".lock", flags, 0o600)
        guard number >= 0 else {
            throw HTTPServerError(
                .bind,
                "\(path).lock cannot be opened: \(SystemWords.lastError())."
            )
        }
        self.path = path
        lock = number
        guard flock(number, LOCK_EX | LOCK_NB) == 0 else { throw Self.inUse(path) }
        var status = stat()
        guard unsafe lstat(path, &status) == 0 else { return }
        guard status.st_mode & S_IFMT == S_IFSOCK else {
            throw HTTPServerError(
                .bind,
                "\(path) exists and is not a socket: give another path."
            )
        }
        // A server of another program holds no lock.
        guard !Self.isAnswered(path) else { throw Self.inUse(path) }
        guard unsafe unlink(path) == 0 else {
            throw HTTPServerError(
                .bind,
                "The old socket \(path) cannot be removed: \(SystemWords.lastError())."
            )
        }
    }

    deinit { close(lock) }

    /// Lets only this user connect. Clients that connected before this call are refused by their
    /// uid.
    func protect() throws(HTTPServerError) {
        guard unsafe chmod(path, 0o600) == 0 else {
            throw HTTPServerError(
                .bind,
                "\(path) cannot be protected: \(SystemWords.lastError())."
            )
        }
    }

    /// Call it when the server has ended: from then on nobody can connect.
    func remove() { _ = unsafe unlink(path) }

    static func checkLength(_ path: String) throws(HTTPServerError) {
        guard path.utf8.count <= pathBytesMax else {
            throw HTTPServerError(
                .invalid,
                "\(path) is longer than the \(pathBytesMax) bytes that the path of a socket may "
                    + "have: give a shorter one, such as unix:/run/operon/operon.sock."
            )
        }
    }

    /// Whether there is a socket that a client of this user may trust as a coordinator's.
    /// - Throws: an error if the socket belongs to another user, or if others could replace it.
    static func checkOwner(_ path: String) throws(HTTPServerError) -> Bool {
        var status = stat()
        guard unsafe lstat(path, &status) == 0 else { return false }
        guard SafeFolder.isTrusted(status.st_uid) else {
            throw HTTPServerError(
                .unsafe,
                "\(path) belongs to another user, so it is not your coordinator."
            )
        }
        try SafeFolder.check(folder(of: path))
        return true
    }

    private static func folder(of path: String) -> String {
        let end = path.lastIndex(of: "/") ?? path.startIndex
        return end == path.startIndex ? "/" : String(path[..<end])
    }

    private static func inUse(_ path: String) -> HTTPServerError {
        HTTPServerError(
            .addressInUse,
            "Another coordinator listens on unix:\(path) already: stop it, or give this one a "
                + "socket of its own with --listen unix:PATH."
        )
    }

    /// Whether a server accepts connections there.
    private static func isAnswered(_ path: String) -> Bool {
        #if os(Linux)
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        #else
        let kind = SOCK_STREAM
        #endif
        let number = socket(AF_UNIX, kind, 0)
        guard number >= 0 else { return true }
        defer { close(number) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: bytes) }
        let status = unsafe withUnsafePointer(to: &address) { address in
            unsafe address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                unsafe connect(number, address, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        // A full backlog (EAGAIN) has a server behind it as well.
        return status == 0 || (errno != ECONNREFUSED && errno != ENOENT)
    }
}
