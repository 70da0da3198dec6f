import FoundationEssentials
import OperonArguments
import OperonModel
import OperonRuntime
import OperonTerminal

/// Writes the output of a command: data to standard output, sentences for people to standard error.
struct Console: Sendable {
    let format: OutputFormat
    /// Formats data for people.
    let data: ViewText
    /// Formats sentences for people.
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

    /// Whether somebody can be asked.
    var canAsk: Bool { format == .text && errors.isTerminal && OwnProcess.hasTerminalInput }

    /// Writes data, whatever the format.
    func write(_ lines: [String]) { write(Array(lines.map { $0 + "\n" }.joined().utf8)) }

    /// Writes data, whatever the format. Ends the program if nobody reads it, or it is lost.
    func write(_ bytes: [UInt8]) {
        output.write(bytes)
        LostOutput.endIfLost()
    }

    /// Writes sentences for people. Does nothing in formats for programs.
    func say(_ lines: [String]) {
        guard format == .text else { return }
        errors.write(Array(lines.map { $0 + "\n" }.joined().utf8))
    }

    /// Writes warnings for people, whatever the format.
    func warn(_ lines: [String]) {
        errors.write(Array(lines.map { $0 + "\n" }.joined().utf8))
    }

    /// Writes the result in the format that was asked for. `text` is the result for people, `names`
    /// are what a script continues with.
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

    /// The same for a command that changed something. People see a sentence about it.
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

    /// Writes one line of JSON with sorted keys, so that equal views give equal text.
    func writeJSON(_ value: some Encodable) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let line = PrintableJSON.escaped(Array(try encoder.encode(value)))
        write(line + [UInt8(ascii: "\n")])
    }
}

/// Adds the version of the JSON form to the keys of a view. A view with its own `version` stays
/// unchanged.
struct Versioned<View: Encodable>: Encodable {
    /// The version of the JSON form, raised when a key is removed or changes its meaning.
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

/// Writes a line to standard output. Unlike with `print`, a failed write is recorded, and makes the
/// program fail.
func printLine(_ line: String) { FileOutput.standardOutput.print(line) }
