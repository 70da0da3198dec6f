import ArgumentParser
import OperonModel
import OperonPorts
import OperonTerminal

struct Operations: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "operations",
        abstract: "List the operations of a graph in the order of submission.",
        usage: "operon operations <graph> [<options>]",
        discussion: """
            A repeated operation has one row, with the states of its elements. --elements, \
            --state, --outcome, --queue, --name-prefix, and the formats json and quiet list each \
            element.
            """
    )

    @Argument(help: ArgumentHelp(Selectors.graphHelp), transform: Selectors.graph)
    var graph: String

    @Option(help: "Only operations that are pending, ready, dispatched, executing or finished.")
    var state: Named<OperationState>?

    @Option(help: "Only operations that succeeded, failed, were cancelled or were skipped.")
    var outcome: Named<OutcomeKind>?

    @Option(help: ArgumentHelp("Only operations of this queue.", valueName: "name"))
    var queue: String?

    @Option(help: ArgumentHelp("Only operations whose names begin with this.", valueName: "text"))
    var namePrefix: String?

    @Flag(help: "List each element of repeated operations.")
    var elements = false

    @OptionGroup var paging: PagingArguments

    @OptionGroup var coordinator: ClientArguments

    func validate() throws {
        if outcome != nil, let state = state?.value, state != .finished {
            throw ValidationError("an operation that is \(state.name) has no outcome yet")
        }
    }

    func run() async throws {
        try await ClientSession.run(coordinator, about: .graph(graph)) { session in
            guard !folds(session.console.format) else { return try await listFolded(session) }
            var query = OperationQuery()
            query.state = state?.value
            query.outcome = outcome?.value
            query.queue = queue
            query.namePrefix = namePrefix
            let page = try await session.operations(of: graph, query, paging)
            let operations = page.operations
            try session.console.show(page, names: operations.map(\.selector)) {
                $0.operations(operations)
            }
            sayMore(session, isEmpty: operations.isEmpty, next: page.next)
        }
    }

    private func sayMore(_ session: ClientSession, isEmpty: Bool, next: UInt32?) {
        if isEmpty { session.console.say(["There are no such operations."]) }
        if let next {
            let graph = TerminalText.line(self.graph)
            let flag = elements ? " --elements" : ""
            session.console.say(["To list more: operon operations \(graph)\(flag) --after \(next)"])
        }
    }

    /// A selection lists what it selects, one by one.
    private func folds(_ format: OutputFormat) -> Bool {
        let selects = state != nil || outcome != nil || queue != nil || namePrefix != nil
        return format == .text && !elements && !selects
    }

    /// Lists rows until there are as many as were asked for. It always begins with the first
    /// operation: the elements on a later page belong to a row of an earlier one.
    private func listFolded(_ session: ClientSession) async throws {
        var folding = OperationFolding(after: paging.after)
        var query = OperationQuery()
        query.limit = PagingArguments.pageMax
        var isFull = false
        var hasMore = false
        repeat {
            let page = try await session.client.operations(of: graph, query)
            query.after = page.next
            for operation in page.operations {
                isFull = isFull || folding.rows.count >= paging.limit && !folding.isWithinGroup
                if !isFull {
                    folding.add(operation)
                } else if !folding.addElement(operation) {
                    hasMore = true
                }
            }
            // Elements that were added while the graph ran belong to rows that are there already.
        } while query.after != nil && (!isFull || folding.isGrowing)
        var rows = Array(folding.rows)
        var next = hasMore ? folding.last : nil
        // Elements whose group did not follow, as those of `operon map`, are rows of their own.
        if rows.count > paging.limit, case .operation(let hidden) = rows[paging.limit] {
            rows.removeLast(rows.count - paging.limit)
            next = hidden.index - 1
        }
        session.console.write(session.console.data.operations(rows))
        sayMore(session, isEmpty: rows.isEmpty, next: next)
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
