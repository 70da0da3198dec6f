import ArgumentParser
import OperonModel
import OperonPorts
import OperonRuntime
import OperonTerminal

struct Watch: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch",
        abstract: "Show the progress of a graph until it has finished.",
        usage: "operon watch <graph> [<options>]",
        discussion: """
            On a terminal, one line with counts, a bar and the time left; on a pipe, a line when \
            an operation starts or ends, and for each tenth of a repeated operation; with --output \
            json, a line for each event. Ctrl-C ends only the command, with exit code 0; the graph \
            keeps running. Otherwise the exit code tells the outcome of the graph, as for operon \
            run. An open graph finishes only after operon graph close.
            """
    )

    @Argument(help: ArgumentHelp(Selectors.graphHelp), transform: Selectors.graph)
    var graph: String

    @Flag(help: "Show each element of repeated operations instead of one line for all.")
    var elements = false

    @OptionGroup var coordinator: ClientArguments

    func run() async throws {
        try await ClientSession.run(coordinator, about: .graph(graph)) { session in
            OwnProcess.endWhenUnread()
            let watching = Watching(
                session,
                output: session.console.output,
                folds: !elements
            )
            throw ExitCode(try await watching.run(graph))
        }
    }
}
