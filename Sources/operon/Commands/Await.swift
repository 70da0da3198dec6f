import ArgumentParser
import OperonArguments
import OperonModel
import OperonTerminal

struct Await: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "await",
        abstract: "Inside an operation: wait for other operations.",
        usage: "operon await <operation> ... [<options>]",
        discussion: """
            For a command that an operation runs and that needs others to finish first, such as \
            those it has added. While it waits, it holds no slot and does not count towards the \
            limit of its queue, so others can run. It keeps its keys, and the wait counts towards \
            its timeout. When all have finished, it continues before anything new starts, as soon \
            as its worker has a free slot and its queue has room. At most 10,000 operations.

            An operation of another graph is named GRAPH/OPERATION. The wait is refused if one of \
            the operations waits for this one or needs a key that it holds: neither could finish.

            Prints the outcome of each. The exit code is 0 if all succeeded, 1 if any failed, else \
            3 if any was cancelled, else 7 if any was skipped.

            Outside an operation, operon wait waits for a graph.
            """
    )

    @Argument(help: "The names of operations.")
    var operations: [String]

    @Option(help: "text, json or quiet.")
    var output: OutputFormat = .text

    private struct Ended: Encodable {
        var name: String
        var outcome: OutcomeKind
    }

    private struct Report: Encodable {
        var operations: [Ended]
    }

    func run() throws {
        let environment = Environment.current
        let worker = try OperationRequests(environment) {
            "operon await only works inside a command that an operation runs. Elsewhere, operon "
                + "wait GRAPH waits for a graph."
        }
        let outcomes = try worker.wait(for: operations)
        let ended = zip(operations, outcomes).map { Ended(name: $0, outcome: $1) }
        let console = Console(format: output, environment: environment)
        try console.show(Report(operations: ended)) { _ in
            ended.map { "\(TerminalText.line($0.name)) \($0.outcome)" }
        }
        throw ExitCode(OperationRequests.exitCode(of: outcomes))
    }
}
