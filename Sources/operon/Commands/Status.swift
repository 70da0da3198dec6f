import ArgumentParser
import OperonModel
import OperonPorts
import OperonTerminal

struct Status: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
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
            try session.console.show(view, names: [view.status.rawValue]) { $0.graph(view) }
        }
    }
}
