import COperonProcess
import Glibc
package import OperonModel

/// The machine's clocks. Only this type reads them; everything else takes the time as an argument.
package enum SystemClock {
    /// The monotonic clock, which also counts while the machine sleeps: for leases, timeouts and
    /// durations.
    package static func now() -> Timestamp {
        Timestamp(nanoseconds: read(CLOCK_BOOTTIME))
    }

    /// The calendar: for display, and for dates that people wrote.
    package static func wall() -> WallTime {
        WallTime(nanosecondsSince1970: read(CLOCK_REALTIME))
    }

    /// Whether a time service synchronises the calendar, as far as the kernel knows; `nil`:
    /// unknown.
    package static var isKept: Bool? {
        let answer = operon_process_clock_is_kept()
        return answer < 0 ? nil : answer == 1
    }

    private static func read(_ clock: clockid_t) -> Int64 {
        var time = timespec()
        let status = unsafe clock_gettime(clock, &time)
        precondition(status == 0, "Linux has had both clocks since 2.6.39.")
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}
