import COperonProcess
import Glibc

/// Unix domain sockets.
enum LocalSocket {
    /// A new listening socket that only this user can access; with another mode, others as well.
    static func listening(at path: String, mode: mode_t = 0o600) throws(SystemError) -> Descriptor {
        let listener = try make(nonblocking: true)
        let number = listener.number
        try unsafe address(path) { address, length in
            unsafe bind(number, address, length)
        }
        guard unsafe chmod(path, mode) == 0 else { throw .current("protecting \(path)") }
        guard listen(number, 64) == 0 else { throw .current("listening at \(path)") }
        return listener
    }

    /// Connects; waits for as long as that takes.
    static func connected(to path: String) throws(SystemError) -> Descriptor {
        let socket = try make(nonblocking: false)
        let number = socket.number
        try unsafe address(path) { address, length in
            unsafe connect(number, address, length)
        }
        return socket
    }

    /// Accepts a connection; `nil`: none waits.
    static func accept(_ listener: Int32) -> Descriptor? {
        let number = Glibc.accept(listener, nil, nil)
        guard number >= 0 else { return nil }
        _ = fcntl(number, F_SETFD, FD_CLOEXEC)
        _ = fcntl(number, F_SETFL, O_NONBLOCK)
        return Descriptor(owning: number)
    }

    /// The user of the process at the other end; `nil`: unknown.
    static func peer(of socket: Int32) -> uid_t? {
        uid_t(exactly: operon_process_peer(socket))
    }

    private static func make(nonblocking: Bool) throws(SystemError) -> Descriptor {
        var kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        if nonblocking { kind |= Int32(SOCK_NONBLOCK.rawValue) }
        let number = socket(AF_UNIX, kind, 0)
        guard number >= 0 else { throw .current("making a socket") }
        return Descriptor(owning: number)
    }

    private static func address(
        _ path: String,
        _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32
    ) throws(SystemError) {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        guard bytes.count < MemoryLayout.size(ofValue: address.sun_path) else {
            throw SystemError(doing: "using the socket \(path)", code: ENAMETOOLONG)
        }
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: bytes) }
        let status = unsafe withUnsafePointer(to: &address) { address in
            unsafe address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                unsafe body(address, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard status == 0 else { throw .current("using the socket \(path)") }
    }
}
