import ArgumentParser
import OperonModel
import OperonPorts
import OperonTerminal

struct GraphClose: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "close",
        abstract: "Close an open graph: submit can no longer add operations to it.",
        usage: "operon graph close <graph> [<options>]"
    )

    @Argument(help: ArgumentHelp(Selectors.graphHelp), transform: Selectors.graph)
    var graph: String

    @OptionGroup var coordinator: ClientArguments

    func run() async throws {
        try await ClientSession.run(coordinator, about: .graph(graph)) { session in
            let view: GraphView
            do throws(ClientError) {
                view = try await session.change { () async throws(ClientError) in
                    try await session.client.close(graph: graph)
                }
            } catch {
                guard case .graphClosed(let name)? = error.refusal else { throw error }
                var said = error
                said.message = "Graph “\(TerminalText.line(name))” is already closed."
                throw said
            }
            try session.console.tell(view, names: [String(view.id)]) { $0.closed(view) }
        }
    }
}
