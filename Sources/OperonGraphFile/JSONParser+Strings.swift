// JSON strings: checked in place, and copied only where a caller needs their text.

extension JSONParser {
    mutating func string() throws(Stop) -> String {
        let (range, hasEscapes) = try scanString()
        return hasEscapes ? unescaped(range) : text(range)
    }

    /// Skips a string and checks it. Returns the range between its quotation marks.
    mutating func scanString() throws(Stop) -> (range: Range<Int>, hasEscapes: Bool) {
        let opening = position
        index += 1
        let start = index
        var hasEscapes = false
        while index < end {
            let byte = bytes[index]
            switch byte {
            case Byte.quote:
                index += 1
                return (start..<(index - 1), hasEscapes)
            case Byte.backslash:
                hasEscapes = true
                try skipEscape()
            case 0..<0x20: throw controlCharacter(byte)
            case 0..<0x80: index += 1
            default: try skipMultibyte()
            }
        }
        throw .problem(
            GraphFileError.Problem(.syntax, at: opening, "\"", "this string does not end")
        )
    }

    private func controlCharacter(_ byte: UInt8) -> Stop {
        let thing = String(Character(Unicode.Scalar(byte)))
        let message =
            byte == Byte.newline
            ? "this string does not end in its line"
            : "a control character in a string is written as an escape, such as \\t or \\u0001"
        return .problem(GraphFileError.Problem(.syntax, at: position, thing, message))
    }

    private mutating func skipEscape() throws(Stop) {
        guard index + 1 < end else { throw unexpected("an escape such as \\n") }
        switch bytes[index + 1] {
        case Byte.quote, Byte.backslash, 0x2F, 0x62, 0x66, 0x6E, 0x72, 0x74: index += 2
        case 0x75:
            let unit = try codeUnit(at: index)
            switch unit {
            case 0xD800..<0xDC00:
                let hasSecond =
                    index + 7 < end && bytes[index + 6] == Byte.backslash
                    && bytes[index + 7] == 0x75
                guard hasSecond, (0xDC00..<0xE000).contains(try codeUnit(at: index + 6)) else {
                    throw halfPair()
                }
                index += 12
            case 0xDC00..<0xE000: throw halfPair()
            default: index += 6
            }
        default: throw unexpected("an escape such as \\n")
        }
    }

    private func halfPair() -> Stop {
        let thing = text(index..<min(index + 6, end))
        return .problem(
            GraphFileError.Problem(
                .syntax,
                at: position,
                thing,
                "\(thing.quoted) is half of a surrogate pair"
            )
        )
    }

    /// The four hexadecimal digits of the escape that begins at `start`.
    private func codeUnit(at start: Int) throws(Stop) -> UInt32 {
        guard start + 6 <= end else { throw unexpected("four hexadecimal digits") }
        var unit: UInt32 = 0
        for byte in bytes[(start + 2)..<(start + 6)] {
            guard let digit = Character(Unicode.Scalar(byte)).hexDigitValue, byte < 0x80 else {
                throw unexpected("four hexadecimal digits")
            }
            unit = unit << 4 | UInt32(digit)
        }
        return unit
    }

    private mutating func skipMultibyte() throws(Stop) {
        let first = bytes[index]
        let length: Int
        let second: ClosedRange<UInt8>
        // Table 3-7 of the Unicode standard: no overlong forms, no surrogates, no more than 10FFFF.
        switch first {
        case 0xC2...0xDF: (length, second) = (2, 0x80...0xBF)
        case 0xE0: (length, second) = (3, 0xA0...0xBF)
        case 0xED: (length, second) = (3, 0x80...0x9F)
        case 0xE1...0xEF: (length, second) = (3, 0x80...0xBF)
        case 0xF0: (length, second) = (4, 0x90...0xBF)
        case 0xF1...0xF3: (length, second) = (4, 0x80...0xBF)
        case 0xF4: (length, second) = (4, 0x80...0x8F)
        default: throw notUTF8()
        }
        guard index + length <= end, second.contains(bytes[index + 1]) else { throw notUTF8() }
        for byte in bytes[(index + 1)..<(index + length)] where byte & 0xC0 != 0x80 {
            throw notUTF8()
        }
        index += length
        lineStart += length - 1
    }

    private func notUTF8() -> Stop {
        let thing = "0x" + String(bytes[index], radix: 16, uppercase: true)
        return .problem(
            GraphFileError.Problem(.syntax, at: position, thing, "byte \(thing) is not UTF-8")
        )
    }

    /// The text of a string with escapes, which has been checked.
    private func unescaped(_ range: Range<Int>) -> String {
        var out: [UInt8] = []
        out.reserveCapacity(range.count)
        var at = range.lowerBound
        while at < range.upperBound {
            guard bytes[at] == Byte.backslash else {
                out.append(bytes[at])
                at += 1
                continue
            }
            at += 2
            switch bytes[at - 1] {
            case 0x62: out.append(0x08)
            case 0x66: out.append(0x0C)
            case 0x6E: out.append(0x0A)
            case 0x72: out.append(0x0D)
            case 0x74: out.append(0x09)
            case 0x75: at = appendScalar(from: at - 2, to: &out)
            case let plain: out.append(plain)
            }
        }
        return String(decoding: out, as: UTF8.self)
    }

    /// Appends the character of a checked `\u` escape, or of a pair of them. Returns where it ends.
    private func appendScalar(from start: Int, to out: inout [UInt8]) -> Int {
        // benign: `scanString` has checked the digits and the pair.
        let high = (try? codeUnit(at: start)) ?? 0xFFFD
        guard (0xD800..<0xDC00).contains(high) else {
            out.append(contentsOf: String(Unicode.Scalar(high) ?? "\u{FFFD}").utf8)
            return start + 6
        }
        let low = (try? codeUnit(at: start + 6)) ?? 0xDC00
        let value = 0x10000 + (high - 0xD800) << 10 + (low - 0xDC00)
        out.append(contentsOf: String(Unicode.Scalar(value) ?? "\u{FFFD}").utf8)
        return start + 12
    }
}
