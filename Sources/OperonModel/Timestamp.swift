/// A moment on one machine's monotonic clock that also counts while the machine sleeps
/// (`CLOCK_BOOTTIME`), in nanoseconds.
///
/// Moments of different machines do not compare; messages that carry one also carry the moment at
/// which they were sent, so that the receiver can use the difference.
public struct Timestamp: Hashable, Comparable, Sendable, Codable {
    /// Nanoseconds since the machine was started.
    public let nanoseconds: Int64

    /// Wraps a clock reading.
    public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    /// The time at which the machine was started.
    public static let zero = Timestamp(nanoseconds: 0)
    /// Later than any event.
    public static let distantFuture = Timestamp(nanoseconds: .max)

    /// Compares times of the same clock only.
    public static func < (left: Timestamp, right: Timestamp) -> Bool {
        left.nanoseconds < right.nanoseconds
    }

    /// Saturates at `distantFuture`.
    public static func + (moment: Timestamp, duration: Duration) -> Timestamp {
        let (sum, overflow) = moment.nanoseconds.addingReportingOverflow(duration.nanoseconds)
        guard overflow else { return Timestamp(nanoseconds: sum) }
        return duration < .zero ? Timestamp(nanoseconds: .min) : distantFuture
    }

    /// Saturates at both ends.
    public static func - (moment: Timestamp, duration: Duration) -> Timestamp {
        Timestamp(nanoseconds: moment.nanoseconds.saturatingSubtract(duration.nanoseconds))
    }

    /// The time from `right` to `left`. Saturates, because times come from messages of other
    /// machines.
    public static func - (left: Timestamp, right: Timestamp) -> Duration {
        .nanoseconds(left.nanoseconds.saturatingSubtract(right.nanoseconds))
    }
}

/// A wall-clock time, in nanoseconds since 1970: for display, and for dates that a person wrote
/// (`notBefore`, `deadline`). Leases and timeouts never use it.
public struct WallTime: Hashable, Comparable, Sendable, Codable {
    /// Negative before 1970.
    public let nanosecondsSince1970: Int64

    /// Wraps a clock reading or a date.
    public init(nanosecondsSince1970: Int64) { self.nanosecondsSince1970 = nanosecondsSince1970 }

    /// Earlier first.
    public static func < (left: WallTime, right: WallTime) -> Bool {
        left.nanosecondsSince1970 < right.nanosecondsSince1970
    }

    /// The time from `right` to `left`. Saturates.
    public static func - (left: WallTime, right: WallTime) -> Duration {
        .nanoseconds(left.nanosecondsSince1970.saturatingSubtract(right.nanosecondsSince1970))
    }
}

extension WallTime {
    /// Saturates at both ends.
    public static func + (moment: WallTime, duration: Duration) -> WallTime {
        let sum = Timestamp(nanoseconds: moment.nanosecondsSince1970) + duration
        return WallTime(nanosecondsSince1970: sum.nanoseconds)
    }
}

extension Int64 {
    fileprivate func saturatingSubtract(_ other: Int64) -> Int64 {
        let (difference, overflow) = subtractingReportingOverflow(other)
        guard overflow else { return difference }
        return other < 0 ? .max : .min
    }
}

extension Duration {
    /// Whole nanoseconds, saturating at what 64 bits hold (292 years).
    public var nanoseconds: Int64 {
        // Up to nine seconds: no division of 128 bits.
        if let attoseconds = Int64(exactly: attoseconds) { return attoseconds / 1_000_000_000 }
        let (seconds, attoseconds) = components
        let (product, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        let (sum, carried) = product.addingReportingOverflow(attoseconds / 1_000_000_000)
        guard overflow || carried else { return sum }
        return seconds < 0 ? .min + 1 : .max
    }

    /// Seconds as a floating-point number, for ratios and for display.
    public var seconds: Double {
        let (seconds, attoseconds) = components
        return Double(seconds) + Double(attoseconds) * 1e-18
    }
}
