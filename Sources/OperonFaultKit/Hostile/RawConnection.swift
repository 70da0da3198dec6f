import Foundation
import Glibc

/// Where a program listens.
package enum Endpoint: Hashable, Sendable {
    /// An address of IPv4 and a port.
    case tcp(String, UInt16)
    /// A socket in the file system.
    case local(String)

    /// Reads `HOST:PORT`, `http://HOST:PORT`, or the path of a socket.
    ///
    /// - Throws: `CommandFailure` if it is none of them.
    package init(_ text: String) throws {
        let rest = text.hasPrefix("http://") ? String(text.dropFirst(7)) : text
        if let start = rest.firstIndex(of: "/"), start == rest.startIndex {
            self = .local(rest)
            return
        }
        let parts = rest.split(separator: ":")
        guard parts.count == 2, let port = UInt16(parts[1]) else {
            throw CommandFailure("“\(text)” is neither HOST:PORT nor the path of a socket")
        }
        let host = parts[0] == "localhost" ? "127.0.0.1" : String(parts[0])
        self = .tcp(host, port)
    }
}

/// One connection as bytes, for programs that say what no client of ours says. It never blocks; one
/// thread uses it.
package final class RawConnection {
    package let descriptor: Int32

    package init(to endpoint: Endpoint) throws {
        switch endpoint {
        case .tcp(let host, let port):
            descriptor = try Self.opened(AF_INET)
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = port.bigEndian
            guard inet_pton(AF_INET, host, &address.sin_addr) == 1 else {
                throw CommandFailure("“\(host)” is no address of IPv4")
            }
            try Self.connect(descriptor, &address)
        case .local(let path):
            descriptor = try Self.opened(AF_UNIX)
            var address = sockaddr_un()
            address.sun_family = sa_family_t(AF_UNIX)
            let bytes = Array(path.utf8)
            let room = MemoryLayout.size(ofValue: address.sun_path) - 1
            guard bytes.count <= room else { throw CommandFailure("\(path) is too long") }
            withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
            try Self.connect(descriptor, &address)
        }
    }

    deinit { close(descriptor) }

    private static func opened(_ family: Int32) throws -> Int32 {
        let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        let number = socket(family, type | Int32(SOCK_NONBLOCK.rawValue), 0)
        guard number >= 0 else { throw CommandFailure("no socket: error \(errno)") }
        return number
    }

    private static func connect<Address>(_ descriptor: Int32, _ address: inout Address) throws {
        let size = socklen_t(MemoryLayout<Address>.size)
        let status = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(descriptor, $0, size)
            }
        }
        guard status == 0 || errno == EINPROGRESS else {
            throw CommandFailure("not connected: error \(errno)")
        }
    }

    /// How many of these bytes the system took; `nil`: the other side takes none any more.
    package func send(_ bytes: ArraySlice<UInt8>) -> Int? {
        guard !bytes.isEmpty else { return 0 }
        let count = bytes.withUnsafeBytes {
            Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
        }
        if count < 0 { return [EAGAIN, EINTR, EINPROGRESS, ENOTCONN].contains(errno) ? 0 : nil }
        return count
    }

    /// What has come, perhaps nothing; `nil`: the other side has closed.
    package func receive() -> [UInt8]? {
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        let count = recv(descriptor, &buffer, buffer.count, 0)
        if count < 0 { return [EAGAIN, EINTR, EINPROGRESS, ENOTCONN].contains(errno) ? [] : nil }
        return count == 0 ? nil : Array(buffer.prefix(count))
    }

    /// Waits until there is something to read (or to write, if that is wanted), so long at most.
    package func wait(milliseconds: Int32, toWrite: Bool = false) {
        var polled = pollfd(
            fd: descriptor,
            events: Int16(POLLIN) | (toWrite ? Int16(POLLOUT) : 0),
            revents: 0
        )
        _ = poll(&polled, 1, milliseconds)
    }
}
