import ArgumentParser
import OperonModel
import OperonPorts
import OperonTerminal

struct Status: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Show the status of a coordinator or of a graph.",
        usage: "operon status [<graph>] [<options>]"
    )

    @Argument(help: ArgumentHelp(Selectors.graphHelp), transform: Selectors.graph)
    var graph: String?

    @OptionGroup var coordinator: ClientArguments

    func run() async throws {
        let subject = graph.map { ClientSession.Subject.graph($0) }
        try await ClientSession.run(coordinator, about: subject) { session in
            guard let graph else {
                let view = try await session.client.status()
                return try session.console.show(view) { $0.cluster(view) }
            }
            let view = try await session.client.graph(graph)
            let rows = try await repeated(view, session)
            try session.console.show(view, names: [view.status.rawValue]) {
                $0.graph(view, repeated: rows)
            }
        }
    }

    /// In a larger graph, counting the elements would take longer than a person wants to wait.
    private static let countedMax = 10_000

    /// The repeated operations of a graph, for people.
    private func repeated(_ view: GraphView, _ session: ClientSession) async throws -> [RepeatedRow]
    {
        guard session.console.format == .text, view.counts.total <= Self.countedMax else {
            return []
        }
        var folding = OperationFolding()
        var query = OperationQuery()
        query.limit = PagingArguments.pageMax
        repeat {
            let page = try await session.client.operations(of: String(view.id), query)
            for operation in page.operations { folding.add(operation) }
            query.after = page.next
        } while query.after != nil
        return folding.rows.compactMap { if case .repeated(let row) = $0 { row } else { nil } }
    }
}
