package import OperonModel

/// The clocks that a service reads and waits for: the machine's or, in a test, clocks that the test
/// moves.
package struct TimeSource: Sendable {
    /// The monotonic time: for leases, timeouts and durations.
    package let now: @Sendable () -> Timestamp
    /// The calendar time.
    package let wall: @Sendable () -> WallTime
    /// Returns at that moment; throws if its task is cancelled before.
    package let sleep: @Sendable (_ until: Timestamp) async throws -> Void
    /// Returns at that date, even if the calendar is set meanwhile; throws if its task is cancelled
    /// before.
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

    /// Returns after this time; throws if its task is cancelled before.
    func sleep(for duration: Duration) async throws { try await sleep(now() + duration) }

    /// The machine's clocks.
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

    /// How often the calendar is read while a task waits for a date. If the clock is set forward
    /// beyond a date, the date is noticed this late. Reading a clock costs almost nothing.
    private static let calendarInterval = Duration.seconds(1)
}
