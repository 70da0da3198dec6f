import ArgumentParser
import OperonModel
import OperonPorts
import OperonTerminal

struct Operations: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "List the operations of a graph in the order of submission.",
        usage: "operon operations <graph> [<options>]"
    )

    @Argument(help: ArgumentHelp(Selectors.graphHelp), transform: Selectors.graph)
    var graph: String

    @Option(help: "Only operations that are pending, ready, dispatched, executing or finished.")
    var state: Named<OperationState>?

    @Option(help: "Only operations that succeeded, failed, were cancelled or were skipped.")
    var outcome: Named<OutcomeKind>?

    @Option(help: ArgumentHelp("Only operations of this queue.", valueName: "name"))
    var queue: String?

    @OptionGroup var paging: PagingArguments

    @OptionGroup var coordinator: ClientArguments

    func validate() throws {
        if outcome != nil, let state = state?.value, state != .finished {
            throw ValidationError("an operation that is \(state.name) has no outcome yet")
        }
    }

    func run() async throws {
        try await ClientSession.run(coordinator, about: .graph(graph)) { session in
            var query = OperationQuery()
            query.state = state?.value
            query.outcome = outcome?.value
            query.queue = queue
            let page = try await session.operations(of: graph, query, paging)
            let operations = page.operations
            try session.console.show(page, names: operations.map(\.selector)) {
                $0.operations(operations)
            }
            if operations.isEmpty { session.console.say(["There are no such operations."]) }
            if let next = page.next {
                let graph = TerminalText.line(self.graph)
                session.console.say(["To list more: operon operations \(graph) --after \(next)"])
            }
        }
    }
}

extension ClientSession {
    /// Fetches as many operations as were asked for, page by page.
    func operations(
        of graph: String,
        _ query: OperationQuery,
        _ paging: PagingArguments
    ) async throws(ClientError) -> OperationPage {
        var operations: [OperationView] = []
        var query = query
        query.after = paging.after
        repeat {
            query.limit = paging.pageSize(have: operations.count)
            let page = try await client.operations(of: graph, query)
            operations += page.operations
            query.after = page.next
        } while query.after != nil && operations.count < paging.limit
        return OperationPage(operations: operations, next: query.after)
    }
}

extension OperationView {
    /// The operation, as commands take it.
    var selector: String { "\(graph)/\(name)" }
}
