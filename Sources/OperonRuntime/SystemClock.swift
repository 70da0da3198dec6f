import Glibc
package import OperonModel

/// The machine's clocks. The only place that reads them; everything below takes time as an
/// argument.
package enum SystemClock {
    /// Monotonic, and counts while the machine sleeps: for leases, timeouts and durations.
    package static func now() -> Timestamp {
        Timestamp(nanoseconds: read(CLOCK_BOOTTIME))
    }

    /// The calendar: for display, and for what a person wrote as a date.
    package static func wall() -> WallTime {
        WallTime(nanosecondsSince1970: read(CLOCK_REALTIME))
    }

    private static func read(_ clock: clockid_t) -> Int64 {
        var time = timespec()
        let status = unsafe clock_gettime(clock, &time)
        precondition(status == 0, "Linux has had both clocks since 2.6.39.")
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}
