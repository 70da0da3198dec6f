import ArgumentParser
import OperonModel
import OperonPorts
import OperonTerminal

struct Watch: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show the progress of a graph until it has finished.",
        usage: "operon watch <graph> [<options>]",
        discussion: """
            On a terminal, one line with counts, a bar and the time left; on a pipe, a line when \
            an operation starts or ends; with --output json, a line for each event. Ctrl-C ends \
            only the command, with exit code 0; the graph keeps running. Otherwise the exit code \
            tells the outcome of the graph, as for operon run. An open graph finishes only after \
            operon graph close.
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
