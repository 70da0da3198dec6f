import Foundation

/// A socket that listens and takes no connection.
package final class LoopbackListener: Sendable {
    private let descriptor: Int32

    /// - Parameter backlog: How many connections the kernel keeps for it.
    package init(at port: Int, backlog: Int32 = 8) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0, LoopbackPort.bind(descriptor, to: port),
            listen(descriptor, backlog) == 0
        else { throw CommandFailure("port \(port) cannot be listened on: error \(errno)") }
    }

    deinit { close(descriptor) }
}

/// Ports for servers of tests that need to know theirs before they listen, or listen on it again.
///
/// Of those that the kernel gives to nobody by itself: one of its own choice that is free now may
/// be somebody's end of a connection a moment later.
package enum LoopbackPort {
    private static let lock = NSLock()
    // Touched under the lock alone.
    nonisolated(unsafe) private static var taken: Set<Int> = []

    /// Above what services of the system usually have.
    private static let first = 10_000
    private static let triesMax = 1_000

    /// A port that nobody listens on, and that no other caller of this process was given.
    package static func take() throws -> Int {
        let end = firstEphemeral()
        // Not from a seed: runs of the tests side by side are not to want the same.
        var generator = SystemRandomNumberGenerator()
        for _ in 0..<triesMax {
            let port = Int.random(in: first..<end, using: &generator)
            let isNew = lock.withLock { taken.insert(port).inserted }
            if isNew, isFree(port) { return port }
        }
        throw CommandFailure("no port from \(first) to \(end - 1) is free")
    }

    /// The first of those that the kernel chooses from (ip(7)).
    private static func firstEphemeral() -> Int {
        let usual = 32_768
        let path = "/proc/sys/net/ipv4/ip_local_port_range"
        guard let text = try? String(contentsOfFile: path, encoding: .utf8),
            let number = text.split(whereSeparator: \.isWhitespace).first.flatMap({ Int($0) })
        else { return usual }
        return number > first ? number : usual
    }

    private static func isFree(_ port: Int) -> Bool {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard listener >= 0 else { return false }
        defer { close(listener) }
        return bind(listener, to: port)
    }

    fileprivate static func bind(_ listener: Int32, to port: Int) -> Bool {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = in_addr_t(INADDR_LOOPBACK).bigEndian
        let size = socklen_t(MemoryLayout<sockaddr_in>.size)
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.bind(listener, $0, size)
            }
        } == 0
    }
}
