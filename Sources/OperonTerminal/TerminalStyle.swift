import Rainbow

/// What may be written to an output: whether lines may be overprinted, colours and characters
/// beyond ASCII. Decided once, where the program starts; nothing below reads the environment.
package struct TerminalStyle: Hashable, Sendable {
    /// Lines may be overprinted: a terminal that understands escape sequences.
    package var overprints: Bool
    package var hasColor: Bool
    package var hasUnicode: Bool

    package init(overprints: Bool, hasColor: Bool, hasUnicode: Bool) {
        self.overprints = overprints
        self.hasColor = hasColor
        self.hasUnicode = hasUnicode
    }

    /// Plain lines of plain characters.
    package static let plain = TerminalStyle(
        overprints: false,
        hasColor: false,
        hasUnicode: false
    )

    /// Reads the conventions: `TERM=dumb` (and no `TERM`) means no escape sequence at all,
    /// `NO_COLOR` (https://no-color.org: present and not empty) no colours, `CLICOLOR=0` the same,
    /// `CLICOLOR_FORCE` (https://bixense.com/clicolors: not empty and not 0) colours even on a
    /// pipe, unless `NO_COLOR` says otherwise. The character set is that of the locale: the first
    /// of `LC_ALL`, `LC_CTYPE`, `LANG` that is not empty.
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
        // A dumb terminal may be anything, a log viewer of old among them.
        if isTerminal, terminal == "dumb" { hasUnicode = false }
    }
}

// MARK: - Colours

/// What a colour says; which one it is, is decided in one place.
enum Tint: Hashable, Sendable {
    case good
    case bad
    case attention
    case faint
    case strong
}

extension TerminalStyle {
    /// The text in a colour, if there are any. The codes are Rainbow's; whether to use them is not
    /// left to it, because it asks about standard output alone, once per process.
    func tinted(_ text: String, _ tint: Tint) -> String {
        guard hasColor, !text.isEmpty else { return text }
        let codes: [UInt8] =
            switch tint {
            case .good: NamedColor.green.value
            case .bad: NamedColor.red.value + Style.bold.value
            case .attention: NamedColor.yellow.value
            case .faint: Style.dim.value
            case .strong: Style.bold.value
            }
        let reset = Style.default.value
        return TerminalStyle.sequence(codes) + text + TerminalStyle.sequence(reset)
    }

    private static func sequence(_ codes: [UInt8]) -> String {
        "\u{1B}[" + codes.map { String($0) }.joined(separator: ";") + "m"
    }

    /// What replaces the middle of a name that is too long.
    var ellipsis: String { hasUnicode ? "…" : "..." }

    /// Text of ours for an output without Unicode: quotation marks, arrows, dots and dashes have
    /// stand-ins; any other character beyond ASCII becomes `?`.
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
