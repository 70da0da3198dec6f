import OperonModel

/// The offsets of a time zone from UTC at all times, from a file of the IANA database (TZif,
/// RFC 8536): its table of changes and, after its last change, its rule for the years to come.
///
/// The bytes may be anything: whatever does not fit together is refused.
package struct TimeZoneRules: Hashable, Sendable {
    /// Why some bytes are no time zone.
    package struct Problem: Error, Hashable, Sendable, CustomStringConvertible {
        package let description: String
    }

    /// A time with one offset, from one change to the next, in seconds since 1970.
    private struct Segment {
        let start: Int64
        let end: Int64
        let offset: Int64
    }

    /// Seconds since 1970 at which the offset changes, ascending.
    private var changes: [Int64] = []
    /// The offset from each change on, in seconds east of UTC.
    private var offsets: [Int64] = []
    /// The offset before the first change.
    private var firstOffset: Int64 = 0
    /// What holds after the last change; `nil`: the last offset stays.
    private var rule: TimeZoneFooter?

    /// UTC.
    package static let utc = TimeZoneRules()

    private init() {}

    /// The largest file of the database has 4 kB.
    package static let bytesMax = 1 << 20
    /// RFC 8536, 3.2: offsets should be more than −25 h and less than 26 h.
    static let offsetMax: Int64 = 26 * 3_600

    // MARK: - Reading

    package init(tzif bytes: [UInt8]) throws(Problem) {
        guard bytes.count <= Self.bytesMax else {
            throw Problem(description: "it has more than \(Self.bytesMax) bytes")
        }
        var reader = Reader(bytes: bytes)
        var header = try reader.header()
        var width = 4
        if header.version >= 2 {
            try reader.skip(header.byteCount(width: 4))
            header = try reader.header()
            width = 8
        }
        guard header.typeCount > 0, header.leapCount == 0 else {
            throw Problem(
                description: header.leapCount > 0
                    ? "it counts leap seconds, which this clock does not" : "it has no offset"
            )
        }
        for _ in 0..<header.timeCount { changes.append(try reader.number(width)) }
        var kinds: [Int] = []
        for _ in 0..<header.timeCount { kinds.append(Int(try reader.byte())) }
        var types: [Int64] = []
        for _ in 0..<header.typeCount {
            let offset = try reader.number(4)
            guard abs(offset) <= Self.offsetMax else {
                throw Problem(description: "an offset of \(offset) s is out of range")
            }
            types.append(offset)
            try reader.skip(2)
        }
        guard kinds.allSatisfy({ $0 < types.count }) else {
            throw Problem(description: "a change names an offset that is not there")
        }
        // RFC 8536, 3.2: changes should not be before -2**59; nothing here comes near that.
        guard changes.allSatisfy({ abs($0 / 2) <= 1 << 58 }) else {
            throw Problem(description: "a change in it is too far away")
        }
        guard zip(changes, changes.dropFirst()).allSatisfy({ $0 < $1 }) else {
            throw Problem(description: "its changes are not in order")
        }
        offsets = kinds.map { types[$0] }
        firstOffset = types[0]
        let rest = header.charCount + header.standardCount + header.utcCount
        try reader.skip(rest)
        guard width == 8 else { return }
        rule = try reader.footer()
    }

    private struct Header {
        var version: Int
        var utcCount: Int
        var standardCount: Int
        var leapCount: Int
        var timeCount: Int
        var typeCount: Int
        var charCount: Int

        func byteCount(width: Int) -> Int {
            timeCount * (width + 1) + typeCount * 6 + charCount + leapCount * (width + 4)
                + standardCount + utcCount
        }
    }

    private struct Reader {
        let bytes: [UInt8]
        var place = 0

        mutating func byte() throws(Problem) -> UInt8 {
            guard place < bytes.count else { throw Problem(description: "it ends too early") }
            defer { place += 1 }
            return bytes[place]
        }

        mutating func skip(_ count: Int) throws(Problem) {
            guard count >= 0, count <= bytes.count - place else {
                throw Problem(description: "it ends too early")
            }
            place += count
        }

        /// A signed number of four or eight bytes, the highest first.
        mutating func number(_ width: Int) throws(Problem) -> Int64 {
            var bits: UInt64 = 0
            for _ in 0..<width { bits = bits << 8 | UInt64(try byte()) }
            return width == 8
                ? Int64(bitPattern: bits) : Int64(Int32(truncatingIfNeeded: bits))
        }

        mutating func header() throws(Problem) -> Header {
            for expected in "TZif".utf8 {
                guard try byte() == expected else {
                    throw Problem(description: "it is no file of the time zone database")
                }
            }
            let version = try byte()
            try skip(15)
            var counts: [Int] = []
            for _ in 0..<6 {
                let count = try number(4)
                // Each of them stands for at least one byte.
                guard (0...Int64(TimeZoneRules.bytesMax)).contains(count) else {
                    throw Problem(description: "a count in it is out of range")
                }
                counts.append(Int(count))
            }
            return Header(
                version: version == 0 ? 1 : Int(version) - 48,
                utcCount: counts[0],
                standardCount: counts[1],
                leapCount: counts[2],
                timeCount: counts[3],
                typeCount: counts[4],
                charCount: counts[5]
            )
        }

        /// The rule between two line ends; `nil`: it is empty.
        mutating func footer() throws(Problem) -> TimeZoneFooter? {
            guard try byte() == UInt8(ascii: "\n") else {
                throw Problem(description: "its last line is missing")
            }
            var line: [UInt8] = []
            while true {
                let next = try byte()
                if next == UInt8(ascii: "\n") { break }
                line.append(next)
            }
            return line.isEmpty ? nil : try TimeZoneFooter(line)
        }
    }

    // MARK: - Asking

    /// The offset at this time, in seconds east of UTC.
    package func offset(at seconds: Int64) -> Int64 { segment(at: seconds).offset }

    /// The seconds since 1970 that a clock on the wall would count at this time.
    package func local(at seconds: Int64) -> Int64 { seconds + offset(at: seconds) }

    /// The time at which clocks on the wall show this. If they never do, because they are set
    /// forward, the time at which they are set; if they do twice, the first time.
    package func instant(ofLocal local: Int64) -> Int64 {
        var segment = segment(at: local - Self.offsetMax - 3_600)
        while true {
            if segment.end == .max || local < segment.end + segment.offset {
                return max(local - segment.offset, segment.start)
            }
            segment = self.segment(at: segment.end)
        }
    }

    private func segment(at seconds: Int64) -> Segment {
        // The number of changes up to this time.
        var low = 0
        var high = changes.count
        while low < high {
            let middle = (low + high) / 2
            if changes[middle] <= seconds { low = middle + 1 } else { high = middle }
        }
        let offset = low == 0 ? firstOffset : offsets[low - 1]
        let start = low == 0 ? Int64.min / 2 : changes[low - 1]
        guard low == changes.count, let rule else {
            let end = low < changes.count ? changes[low] : Int64.max
            return Segment(start: start, end: end, offset: offset)
        }
        let found = rule.segment(at: seconds)
        // The rule holds only from the last change on.
        return Segment(start: max(found.start, start), end: found.end, offset: found.offset)
    }
}

/// The rule of a time zone for all years, as POSIX writes it: `CET-1CEST,M3.5.0,M10.5.0/3`.
struct TimeZoneFooter: Hashable, Sendable {
    /// A day of each year, and the time of it at which clocks are set.
    private struct Change: Hashable {
        enum Day: Hashable {
            /// From 1; February 29 is not counted.
            case julian(Int64)
            /// From 0; February 29 is counted.
            case ofYear(Int64)
            /// The week 5 is the last.
            case weekday(month: Int64, week: Int64, weekday: Int64)
        }

        var day: Day
        /// Seconds on the wall since the start of that day.
        var time: Int64

        func local(in year: Int64) -> Int64 {
            let first = DateText.daysSince1970(year, 1, 1)
            let number: Int64
            switch day {
            case .julian(let day):
                let isLeap = DateText.daysInMonth(2, year) == 29
                number = first + day - 1 + (isLeap && day >= 60 ? 1 : 0)
            case .ofYear(let day): number = first + day
            case .weekday(let month, let week, let weekday):
                let start = DateText.daysSince1970(year, month, 1)
                let shift = (weekday - CronSchedule.weekday(of: start) + 7) % 7
                var day = shift + (week - 1) * 7
                if day >= DateText.daysInMonth(month, year) { day -= 7 }
                number = start + day
            }
            return number * 86_400 + time
        }
    }

    private let standard: Int64
    private var summer: Int64?
    private var begins = Change(day: .ofYear(0), time: 0)
    private var ends = Change(day: .ofYear(0), time: 0)

    private typealias Problem = TimeZoneRules.Problem

    init(_ line: [UInt8]) throws(TimeZoneRules.Problem) {
        var reader = Reader(rest: line[...])
        try reader.name()
        standard = -(try reader.time(hoursMax: 24))
        guard !reader.rest.isEmpty else { return }
        try reader.name()
        if let next = reader.rest.first, next != UInt8(ascii: ",") {
            summer = -(try reader.time(hoursMax: 24))
        } else {
            summer = standard + 3_600
        }
        begins = try reader.change()
        ends = try reader.change()
        guard reader.rest.isEmpty else {
            throw Problem(description: "its rule has more than two changes")
        }
    }

    /// The time with one offset around this one, by the rule alone.
    func segment(at seconds: Int64) -> (start: Int64, end: Int64, offset: Int64) {
        guard let summer else { return (.min / 2, .max, standard) }
        let day = (seconds - (seconds % 86_400 + 86_400) % 86_400) / 86_400
        let year = DateText.calendarDay(day).year
        var changes: [(at: Int64, offset: Int64)] = []
        for year in (year - 1)...(year + 1) {
            changes.append((begins.local(in: year) - standard, summer))
            changes.append((ends.local(in: year) - summer, standard))
        }
        changes.sort { $0.at < $1.at }
        // Summer time all year is written as two changes at the same time.
        var found = (start: Int64.min / 2, end: Int64.max, offset: standard)
        for change in changes {
            guard change.at <= seconds else {
                found.end = change.at
                break
            }
            found = (change.at, found.end, change.offset)
        }
        return found
    }

    private struct Reader {
        var rest: ArraySlice<UInt8>

        mutating func take(_ character: Character) -> Bool {
            guard rest.first == character.asciiValue else { return false }
            rest.removeFirst()
            return true
        }

        private static func wrong(_ what: String) -> Problem {
            Problem(description: "its rule has \(what)")
        }

        mutating func name() throws(Problem) {
            let isQuoted = take("<")
            var count = 0
            while let byte = rest.first {
                let isLetter = (65...90).contains(byte & 0xDF)
                let isOther = isQuoted && ((48...57).contains(byte) || byte == 43 || byte == 45)
                guard isLetter || isOther else { break }
                rest.removeFirst()
                count += 1
            }
            guard count >= 3, !isQuoted || take(">") else { throw Self.wrong("no name") }
        }

        mutating func number(_ range: ClosedRange<Int64>) throws(Problem) -> Int64 {
            var value: Int64 = 0
            var count = 0
            while let byte = rest.first, (48...57).contains(byte), count < 4 {
                value = value * 10 + Int64(byte - 48)
                rest.removeFirst()
                count += 1
            }
            guard count > 0, range.contains(value) else { throw Self.wrong("no number") }
            return value
        }

        /// `[+-]h[:m[:s]]` in seconds.
        mutating func time(hoursMax: Int64) throws(Problem) -> Int64 {
            let sign: Int64 = take("-") ? -1 : 1
            if sign > 0 { _ = take("+") }
            var seconds = try number(0...hoursMax) * 3_600
            if take(":") {
                seconds += try number(0...59) * 60
                if take(":") { seconds += try number(0...59) }
            }
            return sign * seconds
        }

        mutating func change() throws(Problem) -> Change {
            guard take(",") else { throw Self.wrong("no change") }
            let day: Change.Day
            if take("M") {
                let month = try number(1...12)
                guard take(".") else { throw Self.wrong("no week") }
                let week = try number(1...5)
                guard take(".") else { throw Self.wrong("no day") }
                day = .weekday(month: month, week: week, weekday: try number(0...6))
            } else if take("J") {
                day = .julian(try number(1...365))
            } else {
                day = .ofYear(try number(0...365))
            }
            // RFC 8536, 3.3.1: the hours may be from -167 to 167.
            return Change(day: day, time: take("/") ? try time(hoursMax: 167) : 7_200)
        }
    }
}
