import ArgumentParser
import OperonArguments
import OperonModel
import OperonTerminal

struct Await: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "From inside a running operation: wait for others of its graph.",
        usage: "operon await <operation> ... [<options>]",
        discussion: """
            For a command that goes on when others have ended, those that it has added for \
            example. Until then it has no slot and no place in its queue, so that they are free \
            for what it waits for; it keeps its keys. When all have ended it goes on before \
            anything new starts, as soon as its worker has a slot and its queue a place for it. \
            Its timeout goes on meanwhile. At most 10,000 operations at once.

            An operation of another graph is named GRAPH/OPERATION. What waits for this operation \
            itself, or needs a key that it holds, is refused, since neither could ever end.

            Prints how each ended. The exit code is 0 if all succeeded, 1 if any failed, else 3 if \
            any was cancelled, else 7 if any was skipped.

            From outside, operon wait waits for a graph.
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
        let worker = try InsideWorker(environment) {
            "This is no running operation: operon await is for commands that operon runs. From "
                + "outside, operon wait GRAPH waits for a graph."
        }
        let outcomes = try worker.wait(for: operations)
        let ended = zip(operations, outcomes).map { Ended(name: $0, outcome: $1) }
        let console = Console(format: output, environment: environment)
        try console.show(Report(operations: ended)) { _ in
            ended.map { "\(TerminalText.line($0.name)) \($0.outcome)" }
        }
        throw ExitCode(InsideWorker.exitCode(of: outcomes))
    }
}
