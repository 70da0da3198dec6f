import ArgumentParser
import OperonModel
import OperonPorts
import OperonTerminal

struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List the graphs of a coordinator, newest first.",
        usage: "operon list [<options>]"
    )

    @Option(
        help: """
            Only graphs that are running, suspended, cancelling, idle, finished, failed or \
            cancelled. One that failed or was cancelled is finished, too.
            """
    )
    var status: GraphStatus?

    @Option(help: "Only graphs of this name.")
    var name: String?

    @OptionGroup var paging: PagingArguments

    @OptionGroup var coordinator: ClientArguments

    func run() async throws {
        try await ClientSession.run(coordinator) { session in
            var graphs: [GraphView] = []
            var next = paging.after
            repeat {
                var query = GraphQuery()
                query.status = status
                query.name = name
                query.after = next
                query.limit = paging.pageSize(have: graphs.count)
                let page = try await session.client.graphs(query)
                graphs += page.graphs
                next = page.next
            } while next != nil && graphs.count < paging.limit
            let page = GraphPage(graphs: graphs, next: next)
            try session.console.show(page, names: graphs.map { String($0.id) }) {
                $0.graphs(graphs)
            }
            if graphs.isEmpty {
                let isFiltered = status != nil || name != nil || paging.after != nil
                let none = isFiltered ? "There are no such graphs." : "There are no graphs yet."
                session.console.say([none + " To submit one: operon submit FILE"])
            }
            if let next { session.console.say(["To list more: operon list --after \(next)"]) }
        }
    }
}

/// Which part of a list to print.
struct PagingArguments: ParsableArguments {
    @Option(help: "List at most this many.")
    var limit = 100

    @Option(
        help: ArgumentHelp("Start after this number; the previous page prints it.", valueName: "id")
    )
    var after: UInt32?

    /// The most entries that one request asks for.
    static let pageMax = 500

    func validate() throws {
        guard limit > 0 else { throw ValidationError("--limit must be at least 1") }
    }

    func pageSize(have count: Int) -> Int { min(Self.pageMax, limit - count) }
}
