import Foundation
import OperonArguments
import OperonModel
import OperonTerminal

/// Where a command says what it has to say: data on standard output, sentences for people on
/// standard error.
struct Console: Sendable {
    let format: OutputFormat
    /// How data are written for people.
    let data: ViewText
    /// How sentences are.
    let speech: ViewText

    let output = FileOutput.standardOutput
    let errors = FileOutput.standardError

    init(format: OutputFormat, environment: [String: String]) {
        self.format = format
        func text(_ output: FileOutput) -> ViewText {
            let isTerminal = output.isTerminal
            return ViewText(
                style: TerminalStyle(environment: environment, isTerminal: isTerminal),
                width: isTerminal ? output.size()?.columns : nil
            )
        }
        data = text(output)
        speech = text(errors)
    }

    /// Data, whatever the format.
    func write(_ lines: [String]) {
        output.write(Array(lines.map { $0 + "\n" }.joined().utf8))
    }

    /// Sentences for a person: nobody reads them where a program asked.
    func say(_ lines: [String]) {
        guard format == .text else { return }
        errors.write(Array(lines.map { $0 + "\n" }.joined().utf8))
    }

    /// Writes what was asked for in the form that was asked for. `text` is data, `names` are what
    /// a script goes on with.
    func show(
        _ view: some Encodable,
        names: [String] = [],
        text: (ViewText) -> [String]
    ) throws {
        switch format {
        case .text: write(text(data))
        case .json: try writeJSON(Versioned(view))
        case .quiet: write(names.map(TerminalText.line))
        }
    }

    /// The same for a command that changed something, which is told to a person as a sentence.
    func tell(
        _ view: some Encodable,
        names: [String] = [],
        text: (ViewText) -> [String]
    ) throws {
        switch format {
        case .text: say(text(speech))
        case .json: try writeJSON(Versioned(view))
        case .quiet: write(names.map(TerminalText.line))
        }
    }

    /// One line of JSON: keys in their order, so that the same view is the same text.
    func writeJSON(_ value: some Encodable) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let line = PrintableJSON.escaped(Array(try encoder.encode(value)))
        output.write(line + [UInt8(ascii: "\n")])
    }
}

/// A view with the version of its form beside its own keys; a view that has a `version` of its own
/// stays as it is.
struct Versioned<View: Encodable>: Encodable {
    /// Raised when a key is taken away or changes its meaning.
    static var version: Int { 1 }

    private let view: View

    init(_ view: View) { self.view = view }

    private enum Key: String, CodingKey {
        case version
    }

    func encode(to encoder: any Encoder) throws {
        if !(view is ClusterView) {
            var container = encoder.container(keyedBy: Key.self)
            try container.encode(Self.version, forKey: .version)
        }
        try view.encode(to: encoder)
    }
}

/// Writes a line to standard output. A failure is noted, unlike one of `print`: the program fails.
func printLine(_ line: String) { FileOutput.standardOutput.print(line) }
