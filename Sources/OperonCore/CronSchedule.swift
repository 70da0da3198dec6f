package import OperonModel

/// The times that a cron expression names in a time zone.
///
/// A time that clocks on the wall skip is the time at which they are set; a time that they show
/// twice is the first of both.
package struct CronSchedule: Hashable, Sendable {
    private let expression: CronExpression
    private let zone: TimeZoneRules

    package init(_ expression: CronExpression, in zone: TimeZoneRules) {
        self.expression = expression
        self.zone = zone
    }

    /// After this many days without a match there is none: the 29th of February falls on each day
    /// of the week within 40 years.
    private static let daysMax: Int64 = 41 * 366

    /// The first time after this one, in seconds since 1970; `nil`: there is none.
    package func next(after seconds: Int64) -> Int64? {
        var local = zone.local(at: seconds)
        while let match = nextLocal(after: local) {
            let instant = zone.instant(ofLocal: match)
            // benign: not after `seconds` in the second pass of an hour that comes twice.
            if instant > seconds { return instant }
            local = match
        }
        return nil
    }

    /// The next match after this time on the wall.
    private func nextLocal(after local: Int64) -> Int64? {
        let start = Self.floored(local, by: 60) + 1
        var day = Self.floored(start, by: 1_440)
        var minute = start - day * 1_440
        let last = day + Self.daysMax
        while day <= last {
            let date = DateText.calendarDay(day)
            if expression.months & 1 << UInt64(date.month) == 0 {
                day += DateText.daysInMonth(date.month, date.year) - date.day + 1
                minute = 0
                continue
            }
            if matches(date, day), let found = self.minute(from: minute) {
                return (day * 1_440 + found) * 60
            }
            day += 1
            minute = 0
        }
        return nil
    }

    private func minute(from first: Int64) -> Int64? {
        var hour = first / 60
        var minute = first % 60
        while hour < 24 {
            if expression.hours & 1 << UInt64(hour) != 0 {
                let rest = expression.minutes >> UInt64(minute)
                if rest != 0 { return hour * 60 + minute + Int64(rest.trailingZeroBitCount) }
            }
            hour += 1
            minute = 0
        }
        return nil
    }

    private func matches(
        _ date: (year: Int64, month: Int64, day: Int64),
        _ day: Int64
    ) -> Bool {
        let weekday = Self.weekday(of: day)
        let isLast =
            expression.hasLastDay && date.day == DateText.daysInMonth(date.month, date.year)
        let matchesDay = isLast || expression.days & 1 << UInt64(date.day) != 0
        let nth = (date.day - 1) / 7 + 1
        let matchesWeekday =
            expression.weekdays & 1 << UInt64(weekday) != 0
            || expression.occurrences[Int(weekday)] & 1 << UInt8(nth) != 0
        if expression.limitsDays, expression.limitsWeekdays { return matchesDay || matchesWeekday }
        return matchesDay && matchesWeekday
    }

    /// The day of the week, from 0, Sunday. 1970 began on a Thursday.
    static func weekday(of day: Int64) -> Int64 { ((day + 4) % 7 + 7) % 7 }

    private static func floored(_ value: Int64, by divisor: Int64) -> Int64 {
        let quotient = value / divisor
        return value % divisor < 0 ? quotient - 1 : quotient
    }
}
