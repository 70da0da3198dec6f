import ArgumentParser
import OperonModel
import OperonPorts
import OperonTerminal

struct Watch: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Watch a graph to its end.",
        usage: "operon watch <graph> [<options>]",
        discussion: """
            On a terminal a line with counts, a bar and the time left; on a pipe a line for each \
            change of state; with --output json each event is a line. Ctrl-C detaches with exit \
            code 0: the graph goes on. Otherwise the exit code is that of the work, as for \
            operon run. An open graph ends when it is closed.
            """
    )

    @Argument(help: ArgumentHelp(Selectors.graphHelp), transform: Selectors.graph)
    var graph: String

    @OptionGroup var coordinator: ClientArguments

    func run() async throws {
        try await ClientSession.run(coordinator, about: .graph(graph)) { session in
            let watching = Watching(session, output: session.console.output)
            throw ExitCode(try await watching.run(graph))
        }
    }
}
