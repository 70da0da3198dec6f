import ArgumentParser
import Foundation
import OperonArguments
import OperonGraphFile
import OperonModel
import OperonRuntime
import OperonTerminal
import OperonWire

struct Add: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "From inside a running operation: add operations to its graph.",
        usage: "operon add <file>|- [<options>]",
        discussion: """
            For a command that finds out while it runs what there is to do. The file is a graph \
            file; its operations may depend on one another and on those of the graph. They start \
            without waiting for the operation that adds them, unless they depend on it.

            An operation that runs again, after a failure or because its worker was lost, adds the \
            same again without harm: what is there already stays as it is. The command returns \
            when the coordinator has the operations for good. Prints their names.

            From outside, operon submit --graph adds to a graph that is open.
            """
    )

    @Argument(
        help: "The graph file: YAML, JSON or JSON Lines; - for standard input.",
        completion: .file()
    )
    var file: String

    @Option(help: "text, json or quiet.")
    var output: OutputFormat = .text

    func run() throws {
        let environment = Environment.current
        guard let client = InsideClient(environment: environment) else {
            throw Failure(
                ExitStatus.usage,
                "This is no running operation: operon add is for commands that operon runs. From "
                    + "outside, operon submit --graph GRAPH FILE adds to an open graph."
            )
        }
        let read = try self.read()
        let answer: InsideFormat.Answer
        do throws(InsideError) {
            answer = try client.ask(.add(try InsideClient.body(of: read.graph)))
        } catch {
            throw Failure(ExitStatus.unreachable, error.message)
        }
        switch answer {
        case .added(let count):
            try report(read.graph, new: Int(count), environment)
        case .refused(let refusal):
            throw Failure(ExitStatus.usage, Self.sentence(refusal, of: read))
        case .ended:
            throw Failure(
                ExitStatus.noSuchObject,
                "Nothing was added: this attempt has ended, or the operation runs elsewhere "
                    + "by now."
            )
        case .unknownToken:
            throw Failure(
                ExitStatus.noSuchObject,
                "Nothing was added: the worker does not know \(InsideClient.tokenVariable). It "
                    + "ends with the attempt that it was given to."
            )
        case .unreadable(let why):
            throw Failure(
                ExitStatus.usage,
                "Nothing was added: the worker cannot read it: \(why)."
            )
        }
    }

    /// One that the file has once is in the graph.
    private static func sentence(_ refusal: Refusal, of read: GraphFile) -> String {
        guard case .duplicateOperation(let name) = refusal,
            read.graph.operations.count(where: { $0.name == name }) == 1
        else { return read.located(refusal).description }
        let shown = TerminalText.line(name)
        return "\(read.file): the graph has an operation “\(shown)” already, which is another one."
    }

    /// Processes start where this one is, as a rule the directory of the operation that adds them.
    private func read() throws -> GraphFile {
        let options = GraphFileOptions(
            directory: FileManager.default.currentDirectoryPath,
            name: "added"
        )
        do throws(GraphFileError) {
            guard file == "-" else { return try GraphFile.read(path: file, options: options) }
            let bytes = [UInt8](FileHandle.standardInput.readDataToEndOfFile())
            return try Self.read(bytes, options)
        } catch {
            throw Failure(ExitStatus.usage, error.description)
        }
    }

    /// A single operation on a line of its own looks like a graph in JSON: as one it has no
    /// operations, and then it is read as what it is.
    private static func read(
        _ bytes: [UInt8],
        _ options: GraphFileOptions
    ) throws(GraphFileError) -> GraphFile {
        let name = "standard input"
        do throws(GraphFileError) {
            return try GraphFile.read(bytes: bytes, file: name, options: options)
        } catch let first {
            do throws(GraphFileError) {
                return try GraphFile.read(
                    bytes: bytes,
                    file: name,
                    format: .jsonLines,
                    options: options
                )
            } catch {
                throw first
            }
        }
    }

    private struct Report: Encodable {
        var added: Int
        var known: Int
        var operations: [String]
    }

    private func report(
        _ graph: GraphDescription,
        new: Int,
        _ environment: [String: String]
    ) throws {
        let console = Console(format: output, environment: environment)
        let names = graph.operations.map(\.name)
        let known = names.count - new
        let report = Report(added: new, known: known, operations: names)
        try console.show(report, names: names) { _ in names.map(TerminalText.line) }
        let operations = new == 1 ? "1 operation" : "\(new) operations"
        console.say([known == 0 ? "added \(operations)" : "added \(operations); \(known) known"])
    }
}
