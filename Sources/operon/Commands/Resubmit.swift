import ArgumentParser
import OperonModel
import OperonPorts

struct Resubmit: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "resubmit",
        abstract: "Submit the edited file of a finished graph; what succeeded stays.",
        usage: "operon resubmit <graph> <file> [<options>]",
        discussion: """
            An operation stays if it succeeded, does the same work on the same dependencies, and \
            all of those stay. Everything else runs: what is new or changed, what did not succeed, \
            and what depends on that. Another priority, timeout, retry or queue is no reason to \
            run an operation again.

            The answer is a new graph, in which operations that stay have succeeded. Their outputs \
            and logs are those of the old graph, which keeps its history. --dry-run shows what \
            would run and why, and submits nothing.

            operon retry GRAPH/OPERATION --with FILE also runs an operation that has not changed.
            """
    )

    @Argument(help: ArgumentHelp(Selectors.graphHelp), transform: Selectors.graph)
    var graph: String

    @OptionGroup var graphFile: GraphFileArguments
    @OptionGroup var ending: ContinuingArguments
    @OptionGroup var coordinator: ClientArguments

    func run() async throws {
        let file = try graphFile.read()
        try await ClientSession.run(coordinator, about: .graph(graph)) { session in
            let view = try await session.resubmit(file, of: graph, ending)
            try await ending.report(view, session)
        }
    }
}
