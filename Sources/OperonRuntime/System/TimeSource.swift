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
    /// Returns when that date has come, however the calendar is set meanwhile; throws if its task
    /// is cancelled before.
    package let sleepUntilDate: @Sendable (_ date: WallTime) async throws -> Void

    package init(
        now: @escaping @Sendable () -> Timestamp,
        wall: @escaping @Sendable () -> WallTime,
        sleep: @escaping @Sendable (_ until: Timestamp) async throws -> Void,
        sleepUntilDate: @escaping @Sendable (_ date: WallTime) async throws -> Void
    ) {
        self.now = now
        self.wall = wall
        self.sleep = sleep
        self.sleepUntilDate = sleepUntilDate
    }

    /// The machine's.
    package static let system = TimeSource(
        now: { SystemClock.now() },
        wall: { SystemClock.wall() },
        sleep: { until in
            let pause = until - SystemClock.now()
            if pause > .zero { try await Task.sleep(for: pause) }
        },
        sleepUntilDate: { date in
            while true {
                let rest = date - SystemClock.wall()
                guard rest > .zero else { return }
                try await Task.sleep(for: min(rest, calendarInterval))
            }
        }
    )

    /// How often the calendar is looked at while something waits for a date: a date is noticed
    /// that late if the clock was set forward beyond it. Reading a clock costs nothing.
    private static let calendarInterval = Duration.seconds(1)
}
