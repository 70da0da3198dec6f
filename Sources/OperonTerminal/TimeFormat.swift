package import OperonModel

/// Formats durations and dates, without a locale.
package enum TimeFormat {
    /// A clock: `0:07`, `12:03`, `1:02:03`, `3d 04:05:06`. A negative duration counts as zero.
    package static func clock(_ duration: Duration) -> String {
        let seconds = max(0, duration.components.seconds)
        let (minutes, second) = seconds.quotientAndRemainder(dividingBy: 60)
        let (hours, minute) = minutes.quotientAndRemainder(dividingBy: 60)
        let (days, hour) = hours.quotientAndRemainder(dividingBy: 24)
        if days > 0 { return "\(days)d \(padded(hour)):\(padded(minute)):\(padded(second))" }
        if hours > 0 { return "\(hours):\(padded(minute)):\(padded(second))" }
        return "\(minutes):\(padded(second))"
    }

    /// A measured duration: `850µs` is written `0.9ms`, then `12ms`, `1.2s`, and a clock from a
    /// minute on.
    package static func short(_ duration: Duration) -> String {
        let microseconds = max(0, duration.nanoseconds / 1_000)
        if microseconds < 10_000 { return tenths(microseconds, unit: 1_000) + "ms" }
        if microseconds < 1_000_000 { return "\((microseconds + 500) / 1_000)ms" }
        if microseconds < 60_000_000 { return tenths(microseconds, unit: 1_000_000) + "s" }
        return clock(duration)
    }

    /// The same in a sentence: `12 ms`, `1.2 s`, `12:03`.
    package static func words(_ duration: Duration) -> String {
        let text = short(duration)
        // A clock has no unit behind it.
        guard !text.contains(":") else { return text }
        let number = text.prefix { !$0.isLetter }
        return "\(number) \(text.dropFirst(number.count))"
    }

    /// Seconds with up to six decimals, as JSON writes a number: `12`, `0.5`, `-1.25`.
    package static func decimalSeconds(_ duration: Duration) -> String {
        let microseconds = duration.nanoseconds / 1_000
        let (whole, rest) = microseconds.magnitude.quotientAndRemainder(dividingBy: 1_000_000)
        let sign = microseconds < 0 ? "-" : ""
        guard rest > 0 else { return "\(sign)\(whole)" }
        var digits = String(rest)
        digits = String(repeating: "0", count: 6 - digits.count) + digits
        while digits.hasSuffix("0") { digits.removeLast() }
        return "\(sign)\(whole).\(digits)"
    }

    /// ISO 8601 in UTC with milliseconds: `2026-11-21T03:23:06.250Z`.
    package static func iso8601(_ moment: WallTime) -> String {
        let (days, ofDay) = floored(moment.nanosecondsSince1970, by: 86_400_000_000_000)
        let (year, month, day) = civilDate(daysSince1970: days)
        let (second, ofSecond) = ofDay.quotientAndRemainder(dividingBy: 1_000_000_000)
        let time = [second / 3_600, second / 60 % 60, second % 60].map(padded)
        let date = [padded(year, to: 4), padded(month), padded(day)].joined(separator: "-")
        let fraction = padded(ofSecond / 1_000_000, to: 3)
        return date + "T" + time.joined(separator: ":") + "." + fraction + "Z"
    }

    private static func padded(_ number: Int64) -> String { padded(number, to: 2) }

    private static func padded(_ number: Int64, to width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }

    /// `value / unit` with one decimal, rounded half up.
    private static func tenths(_ value: Int64, unit: Int64) -> String {
        let tenths = (value * 10 + unit / 2) / unit
        return "\(tenths / 10).\(tenths % 10)"
    }

    private static func floored(_ value: Int64, by unit: Int64) -> (Int64, Int64) {
        let (quotient, remainder) = value.quotientAndRemainder(dividingBy: unit)
        return remainder < 0 ? (quotient - 1, remainder + unit) : (quotient, remainder)
    }

    /// Year, month and day of the proleptic Gregorian calendar, computed in eras of 400 years that
    /// begin on March 1st: http://howardhinnant.github.io/date_algorithms.html
    private static func civilDate(daysSince1970: Int64) -> (Int64, Int64, Int64) {
        let shifted = daysSince1970 + 719_468
        let (era, ofEra) = floored(shifted, by: 146_097)
        let yearOfEra = (ofEra - ofEra / 1_460 + ofEra / 36_524 - ofEra / 146_096) / 365
        let ofYear = ofEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * ofYear + 2) / 153
        let day = ofYear - (153 * shiftedMonth + 2) / 5 + 1
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        return (year, month, day)
    }
}
