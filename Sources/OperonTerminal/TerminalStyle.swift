/// What an output supports: overprinting lines, colours, and characters beyond ASCII. It is decided
/// once, where the program starts; no other code reads the environment for this.
package struct TerminalStyle: Hashable, Sendable {
    /// Whether lines may be overprinted: the terminal understands escape sequences.
    package var overprints: Bool
    package var hasColor: Bool
    package var hasUnicode: Bool

    package init(overprints: Bool, hasColor: Bool, hasUnicode: Bool) {
        self.overprints = overprints
        self.hasColor = hasColor
        self.hasUnicode = hasUnicode
    }

    /// Plain lines of ASCII characters.
    package static let plain = TerminalStyle(
        overprints: false,
        hasColor: false,
        hasUnicode: false
    )

    /// Follows the usual conventions. `TERM=dumb`, or no `TERM`, disables escape sequences.
    /// `NO_COLOR` (https://no-color.org: present and not empty) and `CLICOLOR=0` disable colours.
    /// `CLICOLOR_FORCE` (https://bixense.com/clicolors: not empty and not 0) enables colours even
    /// on a pipe, unless `NO_COLOR` disables them. The locale determines the character set: the
    /// first of `LC_ALL`, `LC_CTYPE`, `LANG` that is not empty.
    package init(environment: [String: String], isTerminal: Bool) {
        func value(_ name: String) -> String? {
            guard let value = environment[name], !value.isEmpty else { return nil }
            return value
        }
        let terminal = value("TERM") ?? "dumb"
        overprints = isTerminal && terminal != "dumb"

        if value("NO_COLOR") != nil {
            hasColor = false
        } else if let force = value("CLICOLOR_FORCE"), force != "0" {
            hasColor = true
        } else {
            hasColor = overprints && value("CLICOLOR") != "0"
        }

        let locale = value("LC_ALL") ?? value("LC_CTYPE") ?? value("LANG") ?? "C"
        let charset = locale.lowercased()
        hasUnicode = charset.contains("utf-8") || charset.contains("utf8")
        // A dumb terminal may be any program, for example an old log viewer.
        if isTerminal, terminal == "dumb" { hasUnicode = false }
    }
}

// MARK: - Colours

/// The meaning of a colour. One place maps meanings to colours.
enum Tint: Hashable, Sendable {
    case good
    case bad
    case attention
    case faint
    case strong
}

extension TerminalStyle {
    /// The text in a colour, if colours are enabled. The numbers are those of Select Graphic
    /// Rendition (ECMA-48, 8.3.117).
    func tinted(_ text: String, _ tint: Tint) -> String {
        guard hasColor, !text.isEmpty else { return text }
        let (bold, dim, red, green, yellow) = ("1", "2", "31", "32", "33")
        let codes =
            switch tint {
            case .good: green
            case .bad: "\(red);\(bold)"
            case .attention: yellow
            case .faint: dim
            case .strong: bold
            }
        return "\u{1B}[\(codes)m\(text)\u{1B}[0m"
    }

    /// The text in one of six colours, if colours are enabled: neighbours differ.
    func labelled(_ text: String, by number: UInt32) -> String {
        guard hasColor, !text.isEmpty else { return text }
        // Cyan, yellow, green, magenta, blue, and bright cyan. Red is for what failed.
        let codes = ["36", "33", "32", "35", "34", "96"]
        return "\u{1B}[\(codes[Int(number % 6)])m\(text)\u{1B}[0m"
    }

    /// Replaces the middle of a name that is too long.
    var ellipsis: String { hasUnicode ? "…" : "..." }

    /// Operon's own text for an output without Unicode: quotation marks, arrows, dots and dashes
    /// get ASCII replacements; any other character beyond ASCII becomes `?`.
    package func spelled(_ text: String) -> String {
        guard !hasUnicode, !text.utf8.allSatisfy({ $0 < 0x80 }) else { return text }
        var result = ""
        result.reserveCapacity(text.utf8.count)
        for character in text {
            switch character {
            case _ where character.isASCII: result.append(character)
            case "“", "”": result.append("\"")
            case "‘", "’": result.append("'")
            case "→": result += "->"
            case "…": result += "..."
            case "–", "—": result += "-"
            case "·": result += "-"
            default: result.append("?")
            }
        }
        return result
    }
}
