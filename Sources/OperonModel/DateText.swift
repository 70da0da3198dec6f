/// Dates with a time and a zone in ISO 8601, such as `2026-05-01T08:30:00+02:00`.
package enum DateText {
    package static let hint =
        "a date with a time and a zone such as 2026-05-01T08:30:00Z or …+02:00"

    /// `nil` if the text is not such a date, or if the date does not fit 64 bits of nanoseconds
    /// since 1970 (the years 1677 to 2262).
    package static func moment(_ text: String) -> WallTime? {
        var reader = DigitReader(text)
        guard let year = reader.number(digits: 4), reader.take("-"),
            let month = reader.number(digits: 2), reader.take("-"),
            let day = reader.number(digits: 2), reader.take("T", or: " "),
            let hour = reader.number(digits: 2), reader.take(":"),
            let minute = reader.number(digits: 2),
            (1677...2262).contains(year), (1...12).contains(month),
            (1...daysInMonth(month, year)).contains(day), hour < 24, minute < 60
        else { return nil }
        var second: Int64 = 0
        var nanosecond: Int64 = 0
        if reader.take(":") {
            guard let value = reader.number(digits: 2), value < 60 else { return nil }
            second = value
            if reader.take(".") {
                guard let value = reader.fraction() else { return nil }
                nanosecond = value
            }
        }
        guard let offset = reader.zone(), reader.isAtEnd else { return nil }
        let days = daysSince1970(year, month, day)
        let seconds = days * 86_400 + hour * 3_600 + minute * 60 + second - offset
        // The first representable second is computed from its end: its start is out of range, its
        // end is not.
        let (upper, overflow) = (seconds + 1).multipliedReportingOverflow(by: 1_000_000_000)
        let (lower, carried) =
            overflow
            ? seconds.multipliedReportingOverflow(by: 1_000_000_000)
            : (upper, false)
        let rest = overflow ? nanosecond : nanosecond - 1_000_000_000
        let (sum, exceeded) = lower.addingReportingOverflow(rest)
        return carried || exceeded ? nil : WallTime(nanosecondsSince1970: sum)
    }

    /// The date in UTC, to the second, or to the nanosecond if it has a fraction.
    package static func text(_ moment: WallTime) -> String {
        let (seconds, nanosecond) = moment.nanosecondsSince1970.flooredDivision(by: 1_000_000_000)
        let (days, second) = seconds.flooredDivision(by: 86_400)
        let (year, month, day) = calendarDay(days)
        // Bytes, because every event has a time, and a text for each number takes long. The years
        // are 1677 to 2262, so every number has its width.
        var text: [UInt8] = []
        text.reserveCapacity(32)
        func append(_ value: Int64, _ width: Int, _ end: Unicode.Scalar) {
            for place in 1...width {
                var digit = value
                for _ in place..<width { digit /= 10 }
                text.append(UInt8(ascii: "0") + UInt8(digit % 10))
            }
            text.append(UInt8(ascii: end))
        }
        append(year, 4, "-")
        append(month, 2, "-")
        append(day, 2, "T")
        append(second / 3_600, 2, ":")
        append(second % 3_600 / 60, 2, ":")
        append(second % 60, 2, nanosecond == 0 ? "Z" : ".")
        if nanosecond != 0 { append(nanosecond, 9, "Z") }
        return String(decoding: text, as: UTF8.self)
    }

    package static func daysInMonth(_ month: Int64, _ year: Int64) -> Int64 {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    // Howard Hinnant, "chrono-compatible low-level date algorithms" (public domain): years start in
    // March, so that the leap day is the last day; 400 years have 146,097 days.
    package static func daysSince1970(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
        let shifted = month <= 2 ? year - 1 : year
        let (era, yearOfEra) = shifted.flooredDivision(by: 400)
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * 146_097 + dayOfEra - 719_468
    }

    package static func calendarDay(_ days: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let (era, dayOfEra) = (days + 719_468).flooredDivision(by: 146_097)
        let yearOfEra =
            (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shifted = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * shifted + 2) / 5 + 1
        let month = shifted < 10 ? shifted + 3 : shifted - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, day)
    }
}

extension Int64 {
    /// The quotient, rounded down, and the remainder, which is not negative.
    fileprivate func flooredDivision(by divisor: Int64) -> (quotient: Int64, remainder: Int64) {
        let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
    }
}

/// Reads digits and punctuation from the front of a text.
private struct DigitReader {
    private var rest: Substring.UTF8View

    init(_ text: String) { rest = Substring(text).utf8 }

    var isAtEnd: Bool { rest.isEmpty }

    mutating func take(_ first: Character, or second: Character? = nil) -> Bool {
        guard let byte = rest.first else { return false }
        guard byte == first.asciiValue || byte == second?.asciiValue else { return false }
        rest = rest.dropFirst()
        return true
    }

    mutating func number(digits: Int) -> Int64? {
        var value: Int64 = 0
        for _ in 0..<digits {
            guard let byte = rest.first, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
            else { return nil }
            value = value * 10 + Int64(byte - UInt8(ascii: "0"))
            rest = rest.dropFirst()
        }
        return value
    }

    /// One to nine digits after the decimal point, as nanoseconds.
    mutating func fraction() -> Int64? {
        var value: Int64 = 0
        var scale: Int64 = 100_000_000
        var count = 0
        while let digit = number(digits: 1) {
            value += digit * scale
            scale /= 10
            count += 1
        }
        return (1...9).contains(count) ? value : nil
    }

    /// The zone, in seconds east of UTC.
    mutating func zone() -> Int64? {
        if take("Z", or: "z") { return 0 }
        let sign: Int64
        if take("+") {
            sign = 1
        } else if take("-") {
            sign = -1
        } else {
            return nil
        }
        guard let hours = number(digits: 2), hours < 24 else { return nil }
        _ = take(":")
        guard let minutes = number(digits: 2), minutes < 60 else { return nil }
        return sign * (hours * 3_600 + minutes * 60)
    }
}
