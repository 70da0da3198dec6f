/// A cron expression of five fields: minute, hour, day of the month, month, day of the week.
///
/// Each field is `*`, a number or a name, a range, a list, or one of them with a step. `L` as a day
/// of the month is the last one; `5#2` as a day of the week is the second Friday. If both days are
/// given, either of them matches, as in every cron.
package struct CronExpression: Hashable, Sendable, CustomStringConvertible {
    /// As written.
    package let text: String
    /// One bit for each value.
    package private(set) var minutes: UInt64 = 0
    package private(set) var hours: UInt64 = 0
    package private(set) var days: UInt64 = 0
    package private(set) var months: UInt64 = 0
    /// From 0, Sunday.
    package private(set) var weekdays: UInt64 = 0
    package private(set) var hasLastDay = false
    /// For each day of the week, a bit for each of its occurrences in a month, from bit 1.
    package private(set) var occurrences: [UInt8] = Array(repeating: 0, count: 7)
    /// Whether the field says more than `*`.
    package private(set) var limitsDays = false
    package private(set) var limitsWeekdays = false

    /// Why a text is no cron expression.
    package struct Problem: Error, Hashable, Sendable, CustomStringConvertible {
        package var description: String
    }

    private static let nicknames = [
        "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *",
        "@weekly": "0 0 * * 0", "@daily": "0 0 * * *", "@midnight": "0 0 * * *",
        "@hourly": "0 * * * *",
    ]
    private static let monthNames = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ]
    private static let dayNames = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
    private static let bytesMax = 1_000

    package var description: String { text }

    package init(_ text: String) throws(Problem) {
        self.text = text
        guard text.utf8.count <= Self.bytesMax else {
            throw Problem(description: "the expression has more than \(Self.bytesMax) bytes")
        }
        var written = text
        if text.hasPrefix("@") {
            guard let known = Self.nicknames[text.lowercased()] else {
                let names = Self.nicknames.keys.sorted().joined(separator: ", ")
                throw Problem(description: "“\(text)” is none of \(names)")
            }
            written = known
        }
        let fields = written.split { $0 == " " || $0 == "\t" }
        guard fields.count == 5 else {
            throw Problem(
                description: "it has \(fields.count) fields, and needs 5: minute, hour, day of the "
                    + "month, month, day of the week"
            )
        }
        minutes = try Self.bits(fields[0], "minute", 0...59)
        hours = try Self.bits(fields[1], "hour", 0...23)
        months = try Self.bits(fields[3], "month", 1...12, Self.monthNames, first: 1)
        try readDays(fields[2])
        try readWeekdays(fields[4])
    }

    private mutating func readDays(_ field: Substring) throws(Problem) {
        limitsDays = field != "*" && field != "?"
        guard limitsDays else { return days = try Self.bits("*", "day", 1...31) }
        for part in field.split(separator: ",", omittingEmptySubsequences: false) {
            if part == "L" || part == "l" {
                hasLastDay = true
            } else {
                days |= try Self.bits(part, "day of the month", 1...31)
            }
        }
    }

    private mutating func readWeekdays(_ field: Substring) throws(Problem) {
        limitsWeekdays = field != "*" && field != "?"
        guard limitsWeekdays else { return weekdays = 0x7F }
        for part in field.split(separator: ",", omittingEmptySubsequences: false) {
            let halves = part.split(separator: "#", omittingEmptySubsequences: false)
            if halves.count == 2 {
                let what = "day of the week"
                let day = try Self.value(halves[0], what, 0...7, Self.dayNames, first: 0) % 7
                guard let nth = UInt8(halves[1]), (1...5).contains(nth) else {
                    throw Problem(
                        description: "“\(part)”: behind # stands which one of the month, 1 to 5"
                    )
                }
                occurrences[day] |= 1 << nth
                continue
            }
            var bits = try Self.bits(part, "day of the week", 0...7, Self.dayNames, first: 0)
            // 7 is Sunday, too.
            if bits & 1 << 7 != 0 { bits = bits & 0x7F | 1 }
            weekdays |= bits
        }
    }

    private static func bits(
        _ field: Substring,
        _ what: String,
        _ range: ClosedRange<Int>,
        _ names: [String] = [],
        first: Int = 0
    ) throws(Problem) -> UInt64 {
        var bits: UInt64 = 0
        for part in field.split(separator: ",", omittingEmptySubsequences: false) {
            let halves = part.split(separator: "/", omittingEmptySubsequences: false)
            var step = 1
            if halves.count == 2 {
                guard let number = number(halves[1]), number > 0 else {
                    throw Problem(
                        description: "\(what) “\(part)”: a step is a whole number of 1 or more"
                    )
                }
                step = number
            } else if halves.count > 2 {
                throw Problem(description: "\(what) “\(part)” has more than one step")
            }
            let (low, high) = try ends(
                halves[0],
                what,
                range,
                names,
                first,
                isOpen: halves.count == 2
            )
            guard low <= high else {
                throw Problem(description: "\(what) “\(part)”: the range ends before it begins")
            }
            var value = low
            while value <= high {
                bits |= 1 << UInt64(value)
                value += min(step, 64)
            }
        }
        return bits
    }

    private static func ends(
        _ part: Substring,
        _ what: String,
        _ range: ClosedRange<Int>,
        _ names: [String],
        _ first: Int,
        isOpen: Bool
    ) throws(Problem) -> (Int, Int) {
        if part == "*" || part == "?" {
            // 7 would be Sunday a second time, and with a step another day.
            return (range.lowerBound, names.count == 7 ? 6 : range.upperBound)
        }
        let halves = part.split(separator: "-", omittingEmptySubsequences: false)
        guard halves.count <= 2, let one = halves.first else {
            throw Problem(description: "\(what) “\(part)” is no range such as 1-5")
        }
        let low = try value(one, what, range, names, first: first)
        if halves.count == 2 {
            return (low, try value(halves[1], what, range, names, first: first))
        }
        return (low, isOpen ? (names.count == 7 ? 6 : range.upperBound) : low)
    }

    private static func value(
        _ text: Substring,
        _ what: String,
        _ range: ClosedRange<Int>,
        _ names: [String],
        first: Int
    ) throws(Problem) -> Int {
        if let place = names.firstIndex(of: text.lowercased()) { return place + first }
        guard let value = number(text), range.contains(value) else {
            let named = names.isEmpty ? "" : ", or one of \(names.joined(separator: ", "))"
            throw Problem(
                description: "\(what) “\(text)” is no number from \(range.lowerBound) to "
                    + "\(range.upperBound)\(named)"
            )
        }
        return value
    }

    /// Digits alone, without a sign.
    private static func number(_ text: Substring) -> Int? {
        guard (1...4).contains(text.utf8.count),
            text.utf8.allSatisfy({ (48...57).contains($0) })
        else { return nil }
        return Int(text)
    }
}
