import OperonModel

/// Durations as people write them: `500ms`, `2s`, `5m`, `1h30m`, `1d`, or a number of seconds.
///
/// Decimal down to the nanosecond, without floating point: `0.1s` is 100,000,000 ns. At most 100
/// years.
enum DurationText {
    static let secondsMax = Limits.durationMax.components.seconds

    private static let units: [(name: String, nanoseconds: Int64)] = [
        ("d", 86_400_000_000_000), ("h", 3_600_000_000_000), ("m", 60_000_000_000),
        ("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1),
    ]

    static let hint = "a duration such as 500ms, 2s, 5m, 1h30m, 1d, or a number of seconds"

    /// `nil`: the text is not a duration. Negative durations are accepted, so that a better error
    /// can be reported.
    static func duration(_ text: String) -> Duration? {
        var rest = Substring(text)
        let isNegative = rest.first == "-"
        if isNegative { rest = rest.dropFirst() }
        guard !rest.isEmpty, let nanoseconds = nanoseconds(rest) else { return nil }
        return .nanoseconds(isNegative ? -nanoseconds : nanoseconds)
    }

    private static func nanoseconds(_ text: Substring) -> Int64? {
        if let seconds = plainSeconds(text) { return seconds }
        var rest = text
        var total: Int64 = 0
        var unitsLeft = units[...]
        while !rest.isEmpty {
            guard let number = takeNumber(&rest) else { return nil }
            let unit = rest.prefix { $0.isLetter }
            guard let index = unitsLeft.firstIndex(where: { $0.name == unit }),
                let part = scaled(number, by: units[index].nanoseconds)
            else { return nil }
            rest = rest.dropFirst(unit.count)
            unitsLeft = units[(index + 1)...]
            total += part
            guard total <= secondsMax * 1_000_000_000 else { return nil }
        }
        return total
    }

    /// `2`, `0.5`, `1e-3`: seconds.
    private static func plainSeconds(_ text: Substring) -> Int64? {
        var rest = text
        guard let number = takeNumber(&rest) else { return nil }
        if rest.isEmpty { return scaled(number, by: 1_000_000_000) }
        guard rest.first == "e" || rest.first == "E", let value = Double(text) else { return nil }
        return nanoseconds(seconds: value)
    }

    /// Rounded to the nanosecond; `nil` if the result is not a valid duration.
    static func nanoseconds(seconds: Double) -> Int64? {
        guard seconds.isFinite, abs(seconds) <= Double(secondsMax) else { return nil }
        return Int64((seconds * 1e9).rounded())
    }

    private static func takeNumber(
        _ rest: inout Substring
    ) -> (whole: Substring, fraction: Substring)? {
        let whole = rest.prefix(while: isDigit)
        guard !whole.isEmpty else { return nil }
        rest = rest.dropFirst(whole.count)
        guard rest.first == "." else { return (whole, "") }
        let fraction = rest.dropFirst().prefix(while: isDigit)
        guard !fraction.isEmpty else { return nil }
        rest = rest.dropFirst(1 + fraction.count)
        return (whole, fraction)
    }

    private static func isDigit(_ character: Character) -> Bool {
        character.isASCII && character.isWholeNumber
    }

    /// Digits beyond the nanosecond are dropped.
    private static func scaled(
        _ number: (whole: Substring, fraction: Substring),
        by unit: Int64
    ) -> Int64? {
        let maximum = secondsMax * 1_000_000_000
        guard let whole = Int64(number.whole), whole <= maximum / unit else { return nil }
        var total = whole * unit
        var scale = unit
        for digit in number.fraction.utf8 {
            // Every unit can be divided by 10 down to the nanosecond, except that 86,400 s cannot
            // be divided forever. By then, the rest of a fraction of a day is smaller than a
            // nanosecond.
            let part = Int64(digit - Byte.zero) * scale
            total += part / 10
            scale /= 10
            if scale == 0 { break }
        }
        return total <= maximum ? total : nil
    }

    /// A duration that is not negative, unit by unit, such as `1h30m`. `duration` reads it back.
    static func text(_ duration: Duration) -> String {
        let (seconds, attoseconds) = duration.components
        var parts: [(Int64, String)] = []
        parts.append((seconds / 86_400, "d"))
        parts.append((seconds % 86_400 / 3_600, "h"))
        parts.append((seconds % 3_600 / 60, "m"))
        parts.append((seconds % 60, "s"))
        let nanoseconds = attoseconds / 1_000_000_000
        parts.append((nanoseconds / 1_000_000, "ms"))
        parts.append((nanoseconds / 1_000 % 1_000, "us"))
        parts.append((nanoseconds % 1_000, "ns"))
        let text = parts.filter { $0.0 != 0 }.map { "\($0.0)\($0.1)" }.joined()
        return text.isEmpty ? "0s" : text
    }
}

extension Duration {
    /// Reads a duration in the format of graph files: `500ms`, `1h30m`, or a number of seconds.
    /// `nil` if the text is not a duration or is longer than 100 years.
    package init?(graphFileText text: String) {
        guard let duration = DurationText.duration(text) else { return nil }
        self = duration
    }
}
