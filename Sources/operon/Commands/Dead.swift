import ArgumentParser
import OperonModel
import OperonPorts
import OperonTerminal

struct Dead: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "dead",
        abstract: "List the failed operations, and with --retry run them again.",
        usage: "operon dead [<graph>] [<options>]",
        discussion: """
            An operation is listed if it failed and will not be tried again. --retry does the same \
            as operon retry --failed for each graph that is listed.
            """
    )

    @Argument(help: "Only of this graph. Default: all graphs.", transform: Selectors.graph)
    var graph: String?

    @Flag(help: "Run them again, and those skipped because of them.")
    var retry = false

    @Option(help: "List at most this many operations.")
    var limit = 100

    @OptionGroup var coordinator: ClientArguments

    func validate() throws {
        guard limit > 0 else { throw ValidationError("--limit must be at least 1") }
    }

    func run() async throws {
        let subject = graph.map { ClientSession.Subject.graph($0) }
        try await ClientSession.run(coordinator, about: subject) { session in
            var dead = DeadOperations()
            try await forEachFailed(session) { graph in
                try await list(graph, session, into: &dead)
            }
            let operations = dead.operations
            try session.console.show(dead, names: operations.map(\.selector)) {
                $0.dead(operations)
            }
            if dead.count > operations.count {
                let count = dead.count - operations.count
                session.console.say([session.console.speech.more(count)])
            }
            if dead.count == 0 { session.console.say(["No operation has failed."]) }
            if retry {
                for graph in dead.graphs { try await run(graph, session) }
            } else if let first = dead.graphs.first {
                session.console.say([
                    "To see a log: operon logs GRAPH/OPERATION",
                    "To retry the failed operations: operon retry \(first) --failed",
                ])
            }
        }
    }

    private struct DeadOperations: Encodable {
        var operations: [OperationView] = []
        /// How many there are in all, listed or not.
        var count = 0
        var graphs: [UInt32] = []

        private enum CodingKeys: String, CodingKey {
            case operations
            case count
        }
    }

    /// Calls a closure for each graph with failed operations, newest first.
    private func forEachFailed(
        _ session: ClientSession,
        _ body: (GraphView) async throws -> Void
    ) async throws {
        if let graph {
            let view = try await session.client.graph(graph)
            if view.counts.failed > 0 { try await body(view) }
            return
        }
        var query = GraphQuery()
        repeat {
            let page = try await session.client.graphs(query)
            for graph in page.graphs where graph.counts.failed > 0 { try await body(graph) }
            query.after = page.next
        } while query.after != nil
    }

    private func list(
        _ graph: GraphView,
        _ session: ClientSession,
        into dead: inout DeadOperations
    ) async throws {
        dead.graphs.append(graph.id)
        dead.count += graph.counts.failed
        var query = OperationQuery()
        query.outcome = .failed
        repeat {
            guard dead.operations.count < limit else { return }
            query.limit = min(500, limit - dead.operations.count)
            let page = try await session.client.operations(of: String(graph.id), query)
            dead.operations += page.operations
            query.after = page.next
        } while query.after != nil
    }

    private func run(_ graph: UInt32, _ session: ClientSession) async throws {
        let view = try await session.change { () async throws(ClientError) in
            try await session.client.retry(graph: String(graph), RetryRequest())
        }
        session.console.say(session.console.speech.retried(view, graph: String(graph)))
    }
}
