/// Makes untrusted text safe to print on a terminal, and measures it.
///
/// Names and logs of operations are untrusted: an escape sequence in them could move the cursor,
/// change the title or overwrite earlier output.
package enum TerminalText {
    /// One line without anything that a terminal acts on. Escape sequences are dropped, and a tab
    /// becomes a space. Every other control character and every bidirectional control becomes
    /// visible as `\u{…}`.
    package static func line(_ text: String) -> String {
        // Most text is clean; it is returned without a copy.
        guard text.unicodeScalars.contains(where: isActive) else { return text }
        var result = ""
        result.reserveCapacity(text.utf8.count)
        var sequence = EscapeSequence.none
        for scalar in text.unicodeScalars {
            if sequence.swallows(scalar) { continue }
            if scalar == "\t" {
                result.append(" ")
            } else if isActive(scalar) {
                result += "\\u{" + String(scalar.value, radix: 16) + "}"
            } else {
                result.unicodeScalars.append(scalar)
            }
        }
        return result
    }

    /// With more characters, a line helps nobody: `bounded` cuts it.
    package static let lineMax = 2_000

    /// A line of at most `lineMax` characters; what is cut is counted.
    package static func bounded(_ line: some StringProtocol) -> String {
        guard line.utf8.count > lineMax, line.count > lineMax else { return String(line) }
        let more = line.count - lineMax
        return "\(line.prefix(lineMax))… (\(more) more character\(more == 1 ? "" : "s"))"
    }

    /// The last `limit` lines of a log, each cleaned by `line`. A line that carriage returns
    /// overprinted shows its final text, as on a terminal.
    package static func tail(_ log: String, limit: Int) -> (lines: [String], omitted: Int) {
        // CR LF is one Character, so the split is on scalars.
        var lines = log.unicodeScalars.split(
            separator: "\n",
            omittingEmptySubsequences: false
        )
        while let last = lines.last, last.allSatisfy({ $0 == "\r" || $0 == " " }) {
            lines.removeLast()
        }
        let shown = lines.suffix(limit).map { raw in
            let spoken = raw.split(separator: "\r").last ?? raw[raw.startIndex..<raw.startIndex]
            return line(String(String.UnicodeScalarView(spoken)))
        }
        return (shown, lines.count - shown.count)
    }

    /// The number of columns that a line takes on a terminal. Each scalar counts by itself: wide
    /// East Asian scalars and pictographs take two columns, combining marks none.
    package static func width(_ text: String) -> Int {
        var width = 0
        for scalar in text.unicodeScalars { width += columns(of: scalar) }
        return width
    }

    /// The text; if it is wider than `width` columns, `mark` replaces its middle, because the ends
    /// of names tell them apart.
    package static func elided(_ text: String, to width: Int, mark: String = "…") -> String {
        guard self.width(text) > width else { return text }
        let room = width - self.width(mark)
        guard room > 0 else { return prefix(of: text, width: width) }
        let front = prefix(of: text, width: (room + 1) / 2)
        let back = String(
            prefix(of: String(text.reversed()), width: room - self.width(front)).reversed()
        )
        return front + mark + back
    }

    /// As many characters as fit into `width` columns.
    static func prefix(of text: String, width: Int) -> String {
        var result = ""
        var left = width
        for character in text {
            let columns = self.width(String(character))
            guard columns <= left else { break }
            left -= columns
            result.append(character)
        }
        return result
    }

    /// Whether a terminal would act on this scalar, or a reader would be misled by it.
    private static func isActive(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0..<0x20, 0x7F..<0xA0: true
        // Direction marks, embeddings, overrides and isolates: “Trojan Source”,
        // https://trojansource.codes
        case 0x200E, 0x200F, 0x202A...0x202E, 0x2066...0x2069: true
        // Line and paragraph separators.
        case 0x2028, 0x2029: true
        default: false
        }
    }

    private static func columns(of scalar: Unicode.Scalar) -> Int {
        switch scalar.value {
        case 0..<0x300: return 1
        // Zero-width space and joiners, variation selectors.
        case 0x200B...0x200D, 0xFE00...0xFE0F: return 0
        // The blocks with East Asian Width W or F in Unicode, rounded to whole blocks:
        // https://www.unicode.org/reports/tr11/
        case 0x1100...0x115F, 0x2E80...0x303E, 0x3041...0xA4CF, 0xAC00...0xD7A3, 0xF900...0xFAFF,
            0xFE30...0xFE6F, 0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x1F300...0x1F64F,
            0x1F680...0x1F6FF, 0x1F900...0x1FAFF, 0x20000...0x3FFFD:
            return 2
        default:
            switch scalar.properties.generalCategory {
            case .nonspacingMark, .enclosingMark: return 0
            default: return 1
            }
        }
    }
}

/// The position within an escape sequence (ECMA-48).
enum EscapeSequence: Sendable {
    /// In plain text.
    case none
    /// After ESC.
    case escape
    /// In a control sequence (`ESC [`): ends with `@`…`~`.
    case control
    /// In a string (`ESC ]`, `ESC P`, `ESC X`, `ESC ^`, `ESC _`): ends with BEL or `ESC \`.
    case string
    /// After an ESC within a string.
    case stringEscape

    /// Takes the next scalar. Returns whether it belongs to a sequence.
    mutating func swallows(_ scalar: Unicode.Scalar) -> Bool {
        switch self {
        case .none:
            guard scalar.value == 0x1B else { return false }
            self = .escape
            return true
        case .escape:
            switch scalar {
            case "[": self = .control
            case "]", "P", "X", "^", "_": self = .string
            // Intermediate bytes of a longer sequence.
            case " "..."/": break
            default: self = .none
            }
            return true
        case .control:
            if ("@"..."~").contains(scalar) {
                self = .none
                return true
            }
            // Any scalar but a parameter ends a broken sequence and counts as text.
            guard (" "..."?").contains(scalar) else {
                self = .none
                return swallows(scalar)
            }
            return true
        case .string:
            if scalar.value == 0x07 { self = .none }
            if scalar.value == 0x1B { self = .stringEscape }
            return true
        case .stringEscape:
            self = scalar == "\\" ? .none : .string
            return true
        }
    }
}
