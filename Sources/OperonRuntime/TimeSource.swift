package import OperonModel

/// Where a service reads the time, and waits for it: the machine's clocks, or in a test one that
/// somebody else moves.
package struct TimeSource: Sendable {
    /// Monotonic: for leases, timeouts and durations.
    package let now: @Sendable () -> Timestamp
    /// The calendar.
    package let wall: @Sendable () -> WallTime
    /// Returns when that moment has come; throws if its task is cancelled before.
    package let sleep: @Sendable (_ until: Timestamp) async throws -> Void

    package init(
        now: @escaping @Sendable () -> Timestamp,
        wall: @escaping @Sendable () -> WallTime,
        sleep: @escaping @Sendable (_ until: Timestamp) async throws -> Void
    ) {
        self.now = now
        self.wall = wall
        self.sleep = sleep
    }

    /// The machine's.
    package static let system = TimeSource(
        now: { SystemClock.now() },
        wall: { SystemClock.wall() },
        sleep: { until in
            let pause = until - SystemClock.now()
            if pause > .zero { try await Task.sleep(for: pause) }
        }
    )
}
