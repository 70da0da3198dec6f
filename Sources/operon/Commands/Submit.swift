import ArgumentParser
import OperonArguments
import OperonCore
import OperonGraphFile
import OperonModel
import OperonPorts
import OperonTerminal

struct Submit: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "submit",
        abstract: "Submit a graph, or more operations for an open graph.",
        usage: """
            operon submit <file> [<options>]
            operon submit [<options>] -- <command> ...
            """,
        discussion: """
            Takes a graph file, or one command, which becomes a graph of one operation. The \
            command starts in the current directory; it is no shell line: for pipes and variables, \
            submit sh -c "LINE". --after names operations that it waits for.

            Prints the number of the graph. With --wait or --watch, the exit code tells the \
            outcome of the graph, as for operon run. Otherwise 0 means that the coordinator has \
            stored the graph. Operations that no worker could ever run are named in a warning: \
            they wait for one that can.
            """
    )

    @Argument(
        help: "The graph file: YAML, JSON, JSON Lines, or WfFormat; - is standard input.",
        completion: .file()
    )
    var file: String?

    @OptionGroup var reading: GraphReadingArguments
    @OptionGroup var single: SingleCommandArguments

    @Option(
        help: ArgumentHelp("Add the operations to this open graph.", valueName: "graph"),
        transform: Selectors.graph
    )
    var graph: String?

    @Flag(help: "Allow more operations to be added until operon graph close.")
    var open = false

    @Flag(help: "Show progress until the graph has finished. Ctrl-C ends only the command.")
    var watch = false

    @Flag(help: "Wait, without progress, until the graph has finished.")
    var wait = false

    @Option(
        help: "With --wait: stop waiting after this long, \(DurationArgument.example)."
    )
    var timeout: DurationArgument?

    @OptionGroup var key: IdempotencyArguments

    @OptionGroup var coordinator: ClientArguments

    func validate() throws {
        if watch, wait { throw ValidationError("--watch and --wait cannot be combined") }
        if timeout != nil, !wait { throw ValidationError("--timeout needs --wait") }
        if graph != nil, open {
            throw ValidationError("--open is for a new graph and cannot be combined with --graph")
        }
        try single.check(file: file, graph: graph)
        if !single.command.isEmpty, let option = reading.firstOption {
            throw ValidationError("\(option) is for a graph file")
        }
    }

    func run() async throws {
        // Directories are resolved on this machine, where the file is: the coordinator does not
        // know them.
        let read = try file.map { path throws(Failure) in
            try reading.read(path)
        }
        var submission = Submission(graph: read?.graph ?? single.graph(in: graph))
        submission.isOpen = open
        submission.idempotencyKey = key.idempotencyKey
        submission.traceParent = Environment.traceParent(in: Environment.current)
        let subject = graph.map { ClientSession.Subject.graph($0) }
        try await ClientSession.run(coordinator, about: subject) { session in
            let view = try await send(submission, from: read, session)
            let id = String(view.id)
            switch session.console.format {
            case .text, .quiet: session.console.write([id])
            // A wait prints the graph as it ended.
            case .json: if !wait { try session.console.show(view) { _ in [] } }
            }
            session.console.say(
                session.console.speech.submitted(
                    view,
                    isAddition: graph != nil,
                    isFollowed: watch || wait
                )
            )
            session.console.warn(session.console.speech.warnings(view))
            if watch {
                throw ExitCode(try await Watching(session, output: session.console.errors).run(id))
            }
            if wait {
                let waiting = Waiting(session, isAsked: session.console.format == .json)
                throw ExitCode(try await waiting.run(view, within: timeout?.duration))
            }
        }
    }

    /// Submits the graph. A refusal is reported with its position in the file.
    private func send(
        _ submission: Submission,
        from file: GraphFile?,
        _ session: ClientSession
    ) async throws -> GraphView {
        do throws(ClientError) {
            guard let graph else {
                return try await session.change { () async throws(ClientError) in
                    try await session.client.submit(submission)
                }
            }
            return try await session.change { () async throws(ClientError) in
                try await session.client.add(submission, to: graph)
            }
        } catch {
            // A conflict does not refer to a position in the file.
            guard let file, let refusal = error.refusal, error.code != .unreachable,
                error.code != .conflict
            else { throw error }
            throw Failure(file.located(refusal))
        }
    }
}
