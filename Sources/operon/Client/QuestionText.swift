import FoundationEssentials
import OperonModel
import OperonTerminal

/// What a person is asked who completes an external operation.
enum QuestionText {
    /// The most lines of what is asked.
    private static let linesMax = 20

    /// The description of the operation and its input, as lines that a terminal can show.
    ///
    /// - Parameter input: The input as JSON. A text, or the text of its field `question`, stands
    ///   there as it is, and other fields below it. `nil`: there is none.
    static func lines(summary: String, input: String?) -> [String] {
        let asked = [summary, input.map { text(of: $0) } ?? ""]
            .filter { !$0.isEmpty }.joined(separator: "\n")
        guard !asked.isEmpty else { return [] }
        // CR LF is one Character, so the split is on scalars.
        let lines = asked.unicodeScalars.split(separator: "\n", omittingEmptySubsequences: false)
        var shown = lines.prefix(linesMax).map {
            TerminalText.bounded(TerminalText.line(String($0)))
        }
        let more = lines.count - shown.count
        if more > 0 {
            shown.append("… and \(more) more \(more == 1 ? "line" : "lines"): operon show")
        }
        return shown
    }

    private static func text(of input: String) -> String {
        let decoder = JSONDecoder()
        let bytes = Data(input.utf8)
        if let text = try? decoder.decode(String.self, from: bytes) { return text }
        guard let fields = try? decoder.decode([String: Field].self, from: bytes) else {
            return input
        }
        var lines: [String] = []
        if case .text(let question)? = fields["question"] { lines.append(question) }
        for (name, field) in fields.sorted(by: { $0.key < $1.key }) {
            switch field {
            case .text(_) where name == "question": continue
            case .text(let text): lines.append("\(name): \(text)")
            // A part of it would be no answer to what is asked.
            case .other: return input
            }
        }
        return lines.joined(separator: "\n")
    }

    /// A field that one line can show.
    private enum Field: Decodable {
        case text(String)
        case other

        /// From here on, a number may be another one than what is written.
        private static let exactMax = 0x1p53

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            if let text = try? container.decode(String.self) {
                self = .text(text)
            } else if let isTrue = try? container.decode(Bool.self) {
                self = .text(isTrue ? "true" : "false")
            } else if let number = try? container.decode(Int.self) {
                self = .text("\(number)")
            } else if let number = try? container.decode(Double.self), abs(number) < Self.exactMax {
                self = .text("\(number)")
            } else {
                self = .other
            }
        }
    }
}
