import Glibc
package import OperonPorts

/// The service manager (systemd) that started this process, and the notifications it gets:
/// datagrams with lines of `NAME=value`
/// (https://www.freedesktop.org/software/systemd/man/latest/sd_notify.html).
package struct ServiceManager: Sendable {
    package enum News: Hashable, Sendable {
        /// The service works; units that waited for its start can start.
        case ready
        /// The service ends by itself within this time. systemd waits for it, if necessary longer
        /// than its `TimeoutStopSec`.
        case stopping(within: Duration)
        /// A status line for people, shown by `systemctl status`.
        case status(String)
        /// The service still works: see `ServiceWatchdog`.
        case alive
    }

    /// The path in socket address form: an abstract one begins with a zero byte.
    private let path: [UInt8]

    /// - Parameter socket: The value of the variable `NOTIFY_SOCKET`: a path, or `@` and an
    ///   abstract name.
    ///
    /// Returns `nil` if no manager wants notifications, or if the address is of another kind.
    package init?(socket: String?) {
        guard let socket, let first = socket.utf8.first, socket.utf8.count > 1 else { return nil }
        switch first {
        case UInt8(ascii: "/"): path = Array(socket.utf8)
        case UInt8(ascii: "@"): path = [0] + socket.utf8.dropFirst()
        default: return nil
        }
    }

    /// Sends all notifications in one datagram. Waits for at most a second if nobody reads.
    ///
    /// - Throws: `PortError.unreachable` if that fails. The service continues: the manager notices
    ///   the changes by itself.
    package func tell(_ news: [News]) throws(PortError) {
        let text = news.map(\.lines).joined()
        do throws(SystemError) {
            try send(Array(text.utf8))
        } catch {
            throw PortError(.unreachable, "the service manager was not told: \(error)")
        }
    }

    private static let sendPatience = timeval(tv_sec: 1, tv_usec: 0)

    private func send(_ bytes: [UInt8]) throws(SystemError) {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        guard path.count < MemoryLayout.size(ofValue: address.sun_path) else {
            throw SystemError(doing: "addressing its socket", code: ENAMETOOLONG)
        }
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: path) }
        // The length marks the end of an abstract name; the trailing zero of a path may be left
        // out.
        let prefix = MemoryLayout<sockaddr_un>.offset(of: \.sun_path) ?? 2
        let length = socklen_t(prefix + path.count)

        let kind = Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue)
        let number = socket(AF_UNIX, kind, 0)
        guard number >= 0 else { throw .current("making a socket") }
        let socket = Descriptor(owning: number)
        var patience = Self.sendPatience
        // If this fails, the send may only wait longer.
        _ = unsafe setsockopt(
            socket.number,
            SOL_SOCKET,
            SO_SNDTIMEO,
            &patience,
            socklen_t(MemoryLayout<timeval>.size)
        )
        let sent = unsafe withUnsafePointer(to: &address) { address in
            unsafe address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                let flags = Int32(MSG_NOSIGNAL)
                return unsafe sendto(number, bytes, bytes.count, flags, address, length)
            }
        }
        guard sent == bytes.count else { throw .current("writing to its socket") }
    }
}

extension ServiceManager.News {
    fileprivate var lines: String {
        switch self {
        case .ready: return "READY=1\n"
        case .stopping(let limit):
            // systemd counts in microseconds and accepts at most 64 bits of them; a year is long
            // enough for any service to end.
            let year = Duration.seconds(365 * 24 * 3_600)
            let microseconds = min(limit, year) / .microseconds(1)
            return "STOPPING=1\nEXTEND_TIMEOUT_USEC=\(Int64(microseconds.rounded(.up)))\n"
        case .status(let line):
            let text = line.split(whereSeparator: \.isNewline).joined(separator: " ")
            return "STATUS=\(text)\n"
        case .alive: return "WATCHDOG=1\n"
        }
    }
}
