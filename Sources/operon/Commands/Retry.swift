import ArgumentParser
import OperonModel
import OperonPorts
import OperonTerminal

struct Retry: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "retry",
        abstract: "Run failed operations again, and those skipped because of them.",
        usage: "operon retry <graph> [<operation> ...] [<options>]",
        discussion: """
            Without names, all failed operations of the graph run again, and with --cancelled the \
            cancelled ones too. With names, only these run again; the name of a skipped operation \
            stands for the failed or cancelled ones that caused the skip. Operations that \
            succeeded do not run again.
            """
    )

    @Argument(help: "A graph, or one operation as GRAPH/OPERATION.")
    var graph: String

    @Argument(help: "Only these operations of the graph.")
    var operations: [String] = []

    @Flag(help: "All failed operations: the default without names.")
    var failed = false

    @Flag(help: "The cancelled operations too.")
    var cancelled = false

    @OptionGroup var coordinator: ClientArguments

    func validate() throws {
        let named = try self.named
        if failed || cancelled, !named.operations.isEmpty {
            throw ValidationError("--failed and --cancelled cannot be combined with names")
        }
    }

    private var named: (graph: String, operations: [String]) {
        get throws {
            guard graph.contains("/") else { return (try Selectors.graph(graph), operations) }
            let first = try Selectors.operation(graph)
            return (first.graph, [first.operation] + operations)
        }
    }

    func run() async throws {
        let (graph, operations) = try named
        var request = RetryRequest()
        request.operations = operations
        request.cancelled = cancelled
        let subject: ClientSession.Subject =
            operations.count == 1
            ? .operation(OperationSelector(graph: graph, operation: operations[0]))
            : .graph(graph)
        try await ClientSession.run(coordinator, about: subject) { session in
            let view = try await session.client.retry(graph: graph, request)
            try session.console.tell(view) { $0.retried(view, graph: graph) }
        }
    }
}
