import OperonModel

/// The findings of the doctor's checks, in order, for a person and for a program.
package struct CheckReport: Hashable, Sendable {
    package enum Mark: String, Hashable, Sendable {
        /// As it should be.
        case fine
        /// It works but needs attention.
        case warning
        /// It does not work.
        case failure
    }

    package struct Finding: Hashable, Sendable {
        package var mark: Mark
        /// One word for what was checked.
        package var subject: String
        /// What was found.
        package var text: String
        /// What to do about it; empty: nothing.
        package var advice: String

        package init(_ mark: Mark, _ subject: String, _ text: String, advice: String = "") {
            self.mark = mark
            self.subject = subject
            self.text = text
            self.advice = advice
        }
    }

    package var findings: [Finding]

    package init(_ findings: [Finding] = []) { self.findings = findings }

    /// The worst of the findings.
    package var mark: Mark {
        let marks = findings.map(\.mark)
        return marks.contains(.failure) ? .failure : marks.contains(.warning) ? .warning : .fine
    }

    /// The version of the JSON form, raised when a key is removed or changes its meaning.
    package static let version = 1

    // MARK: - Text

    /// One line for each finding, followed by a line that says what to do, if there is something.
    package func lines(style: TerminalStyle) -> [String] {
        findings.flatMap { finding in
            let sign: (String, String, Tint) =
                switch finding.mark {
                case .fine: ("✓", "ok", .good)
                case .warning: ("!", "! ", .attention)
                case .failure: ("✗", "x ", .bad)
                }
            let mark = style.tinted(style.hasUnicode ? sign.0 : sign.1, sign.2)
            func text(_ text: String) -> String { style.spelled(TerminalText.line(text)) }
            var lines = ["\(mark) \(text(finding.subject)): \(text(finding.text))"]
            if !finding.advice.isEmpty {
                lines.append("    \(style.hasUnicode ? "→" : "->") \(text(finding.advice))")
            }
            return lines
        }
    }

    // MARK: - JSON

    /// `{"version":1,"mark":…,"findings":[{"mark":…,"subject":…,"text":…,"advice":…},…]}` and a
    /// newline.
    package var json: [UInt8] {
        var json = JSONText()
        json.raw("{\"version\":\(Self.version),\"mark\":\"\(mark.rawValue)\",\"findings\":[")
        for (index, finding) in findings.enumerated() {
            json.raw(index == 0 ? "\n" : ",\n")
            json.raw("{\"mark\":\"\(finding.mark.rawValue)\"")
            for (key, text) in [
                ("subject", finding.subject), ("text", finding.text), ("advice", finding.advice),
            ] {
                json.key(key)
                json.string(text)
            }
            json.raw("}")
        }
        json.raw("\n]}\n")
        return PrintableJSON.escaped(json.bytes)
    }
}
