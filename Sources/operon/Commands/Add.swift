import ArgumentParser
import FoundationEssentials
import OperonArguments
import OperonGraphFile
import OperonModel
import OperonRuntime
import OperonTerminal

struct Add: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add",
        abstract: "Inside an operation: add operations to its graph.",
        usage: "operon add <file>|- [<options>]",
        discussion: """
            For a command that an operation runs and that finds out only then what there is to \
            do. The operations of the graph file may depend on one another and on operations of \
            the graph. They do not wait for the operation that adds them, unless they depend on it.

            An operation that runs again, after a failure or the loss of its worker, can add the \
            same operations again: existing ones stay as they are. The command prints the names of \
            the operations, and returns when the coordinator has stored them.

            --wait then waits for these operations, as operon await does.

            Outside an operation, operon submit --graph adds operations to an open graph.
            """
    )

    @Flag(
        help: ArgumentHelp(
            "Wait until all of them have finished, without holding a slot. Exit codes as for "
                + "operon await. At most 10,000 operations."
        )
    )
    var wait = false

    @Argument(
        help: "The graph file: YAML, JSON or JSON Lines; - reads standard input.",
        completion: .file()
    )
    var file: String

    @OptionGroup var parameters: ParameterArguments

    @Option(help: "text, json or quiet.")
    var output: OutputFormat = .text

    func run() throws {
        let environment = Environment.current
        let worker = try OperationRequests(environment) {
            "operon add only works inside a command that an operation runs. Elsewhere, operon "
                + "submit FILE --graph GRAPH adds operations to an open graph."
        }
        let read = try self.read()
        let count = read.graph.operations.count
        let most = Limits().awaitedOperations
        guard !wait || count <= most else {
            throw Failure(
                ExitStatus.usage,
                "Nothing was added: --wait takes at most \(most) operations, and the file has "
                    + "\(count). Add them without --wait."
            )
        }
        let body: [UInt8]
        do throws(OperationSocketError) {
            body = try OperationSocketClient.body(of: read.graph)
        } catch {
            throw Failure(ExitStatus.usage, error.message)
        }
        let new = try worker.add(body) { Self.sentence($0, of: read) }
        try report(read.graph, new: new, environment)
        guard wait, !read.graph.operations.isEmpty else { return }
        let names = read.graph.operations.map(\.name)
        let outcomes = try worker.wait(for: names)
        // The log of the operation then says what failed.
        Console(format: output, environment: environment)
            .warn(OperationRequests.unsuccessful(names, outcomes))
        throw ExitCode(OperationRequests.exitCode(of: outcomes))
    }

    /// If the name occurs only once in the file, the graph already has another operation of this
    /// name.
    private static func sentence(_ refusal: Refusal, of read: GraphFile) -> String {
        guard case .duplicateOperation(let name) = refusal,
            read.graph.operations.count(where: { $0.name == name }) == 1
        else { return read.located(refusal).description }
        let shown = TerminalText.line(name)
        return "\(read.file): the graph has an operation “\(shown)” already, and it is different."
    }

    /// Processes start in the current directory, which is usually that of the operation that adds
    /// them.
    private func read() throws -> GraphFile {
        do {
            var options = GraphFileOptions(
                directory: FileManager.default.currentDirectoryPath,
                name: "added",
                parameters: try parameters.read()
            )
            options.isAddition = true
            guard file == "-" else { return try GraphFile.read(path: file, options: options) }
            let bytes = try UserFile.readStandardInput(bytesMax: Limits().graphFileBytes)
            return try Self.read(bytes, options)
        } catch let error as GraphFileError {
            throw Failure(error)
        }
    }

    /// A single operation on a line of its own looks like a graph in JSON. Read as a graph it has
    /// no operations; it is then read again as JSON Lines.
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
        let also = known == 0 ? "" : "; \(known) existed already"
        console.say(["added \(operations)\(also)"])
    }
}
