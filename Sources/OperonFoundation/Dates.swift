public import Foundation
public import Operon

extension WallTime {
    /// Creates the time of a date, rounded to the microsecond, which is the precision of dates in
    /// our time. Dates before 1677 or after 2262, which 64 bits of nanoseconds cannot hold, become
    /// the first or the last time that they can hold.
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
    /// Creates the date of a time, as precisely as a date can represent it.
    public init(_ time: WallTime) {
        self.init(timeIntervalSince1970: Double(time.nanosecondsSince1970) / 1_000_000_000)
    }
}
