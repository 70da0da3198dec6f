/// Reports to the service manager that this process still works, six times in the time that
/// `WatchdogSec` of its unit allows: what is wrong at one look may be over at the next
/// (https://www.freedesktop.org/software/systemd/man/latest/sd_watchdog_enabled.html). systemd
/// restarts a process whose reports stay away.
package struct ServiceWatchdog: Sendable {
    private let manager: ServiceManager
    /// The time between two reports.
    package let interval: Duration

    private static let reportsPerLimit = 6

    /// - Parameters:
    ///   - environment: What the service manager has set: `NOTIFY_SOCKET`, `WATCHDOG_USEC` and,
    ///     if only one process shall report, `WATCHDOG_PID`.
    ///   - process: The process that would report.
    ///
    /// Returns `nil` if nobody waits for reports of this process.
    package init?(environment: [String: String], process: Int32 = OwnProcess.id) {
        guard let manager = ServiceManager(socket: environment["NOTIFY_SOCKET"]),
            let limit = environment["WATCHDOG_USEC"].flatMap({ Int64($0) }), limit > 0
        else { return nil }
        if let reporter = environment["WATCHDOG_PID"], Int32(reporter) != process { return nil }
        self.manager = manager
        interval = .microseconds(limit) / Self.reportsPerLimit
    }

    /// Reports until the task is cancelled.
    ///
    /// - Parameter trouble: Says what is wrong; `nil`: nothing. While something is, nothing is
    ///   reported.
    package func run(_ trouble: () -> String?) async throws {
        while true {
            // To systemd, a report that could not be sent is one that is missing: it restarts the
            // service if they all are.
            if trouble() == nil { try? manager.tell([.alive]) }
            try await Task.sleep(for: interval)
        }
    }
}
