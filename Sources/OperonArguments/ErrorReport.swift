import FoundationEssentials
import OperonModel
import OperonTerminal

/// An error as a program ends with it: sentences for people, or one line of JSON.
package struct ErrorReport: Sendable {
    /// What precedes the sentences; `nil`: nothing.
    let name: String?
    let isJSON: Bool

    package init(name: String? = nil, isJSON: Bool) {
        self.name = name
        self.isJSON = isJSON
    }

    /// Whether the arguments ask for JSON. They may be wrong otherwise, so the parser cannot tell.
    package static func isJSON(_ arguments: [String]) -> Bool {
        let own = arguments.prefix { $0 != "--" }
        return own.contains("--output=json")
            || zip(own, own.dropFirst()).contains { $0 == "--output" && $1 == "json" }
    }

    private struct Document: Encodable {
        struct Failed: Encodable {
            var exitCode: Int32
            var message: String
            var problems: [Failure.Problem]?
        }

        var error: Failed
        var version = 1
    }

    package func text(_ failure: Failure) -> String {
        let message = Mask.passwords(in: failure.message)
        guard isJSON else {
            let lines = message.split(separator: "\n", omittingEmptySubsequences: false)
            let begin = name.map { "\($0): " } ?? ""
            return begin + lines.map { TerminalText.bounded($0) }.joined(separator: "\n") + "\n"
        }
        let failed = Document.Failed(
            exitCode: failure.code,
            message: message,
            problems: failure.problems.isEmpty ? nil : failure.problems
        )
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        guard let json = try? encoder.encode(Document(error: failed)) else { return message + "\n" }
        return String(decoding: PrintableJSON.escaped(Array(json)), as: UTF8.self) + "\n"
    }

    /// What the parser says of a wrong call, in the style of all other errors: a sentence, what the
    /// option means, the usage, and where to read more.
    ///
    /// - Parameter unknownOption: A sentence that replaces what is said before the usage; `nil`:
    ///   nothing does.
    static func sentences(ofParser text: String, unknownOption: String? = nil) -> String {
        var lines: [String] = []
        var isUsage = false
        // The parser has its own suggestion.
        let isReplaced = unknownOption != nil && !text.hasPrefix("Error: Unknown option")
        let text = Self.withListsInline(text)
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            if line.hasPrefix("Usage: ") { isUsage = true }
            if let help = line.wholeMatch(of: /\s*See '(.+)' for more information\./) {
                lines.append("To list the options: \(help.1)")
            } else if isUsage {
                lines.append(String(line))
            } else if isReplaced {
                if lines.isEmpty, let unknownOption { lines.append(quoted(unknownOption[...])) }
            } else if line.hasPrefix("Help:  ") {
                lines.append("  " + line.dropFirst(7))
            } else if lines.isEmpty {
                lines.append(sentence(line.hasPrefix("Error: ") ? line.dropFirst(7) : line))
            } else {
                lines.append(quoted(line))
            }
        }
        return lines.joined(separator: "\n")
    }

    /// The parser lists more than five values in a line for each.
    private static func withListsInline(_ text: String) -> String {
        text.replacing(/one of the following:((?:\n\s+- [^\n]+)+)/) { match in
            let values = match.1.split(separator: "\n").map { line in
                "'" + line.drop { $0 == " " || $0 == "-" } + "'"
            }
            let last = values.count - 1
            return "one of " + values[..<last].joined(separator: ", ") + " or \(values[last])."
        }
    }

    private static func sentence(_ text: Substring) -> String {
        var sentence = quoted(text)
        if let first = sentence.first, first.isLowercase {
            sentence = first.uppercased() + sentence.dropFirst()
        }
        if let last = sentence.last, !".:!?".contains(last) { sentence += "." }
        return sentence
    }

    private static func quoted(_ text: Substring) -> String {
        String(text).replacing(/(^|[\s(])'([^']+)'(?=[\s.,:;?)]|$)/) { "\($0.1)“\($0.2)”" }
    }
}
