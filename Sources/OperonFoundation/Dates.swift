public import Foundation
public import Operon

extension WallTime {
    /// The moment of a date, to the microsecond: what dates of our time hold. The ends of what 64
    /// bits of nanoseconds hold, the years 1677 and 2262, for dates beyond them.
    public init(_ date: Date) {
        let microseconds = (date.timeIntervalSince1970 * 1_000_000).rounded()
        let nanoseconds =
            Int64(exactly: microseconds).map { $0.multipliedReportingOverflow(by: 1_000) }
        if let nanoseconds, !nanoseconds.overflow {
            self.init(nanosecondsSince1970: nanoseconds.partialValue)
        } else {
            self.init(nanosecondsSince1970: microseconds < 0 ? .min : .max)
        }
    }
}

extension Date {
    /// The date of a moment, as close as a date comes to it.
    public init(_ time: WallTime) {
        self.init(timeIntervalSince1970: Double(time.nanosecondsSince1970) / 1_000_000_000)
    }
}
