import ArgumentParser
import OperonArguments
import OperonGraphFile
import OperonModel
import OperonPorts
import OperonTerminal

struct Retry: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "retry",
        abstract: "Run operations again: failed ones, or one and what depends on it.",
        usage: """
            operon retry <graph> [<operation> ...] [<options>]
            operon retry <graph>/<operation> --from [<options>]
            operon retry <graph>/<operation> --with <file> [<options>]
            """,
        discussion: """
            Without names, all failed operations of the graph run again, and with --cancelled the \
            cancelled ones too. With names, only these run again; the name of a skipped operation \
            stands for the failed or cancelled ones that caused the skip. Operations that \
            succeeded do not run again.

            --from also runs operations that succeeded, and all that depends on them, in a new \
            graph. What else succeeded stays, with its outputs and logs; the old graph keeps its \
            history. An operation runs as it was described when it ran last, after the \
            dependencies that it has now; the name of a repeated operation stands for all its \
            elements. --with does the same with the edited file of the graph: its changes count \
            too, as with operon resubmit. Both need a graph that has finished.
            """
    )

    @Argument(help: "A graph, or one operation as GRAPH/OPERATION.")
    var graph: String

    @Argument(help: "Only these operations of the graph.")
    var operations: [String] = []

    @Flag(help: "All failed operations: the default without names.")
    var failed = false

    @Flag(help: "The cancelled operations too.")
    var cancelled = false

    @Flag(help: "Run these operations even if they succeeded, and all that depends on them.")
    var from = false

    @Option(
        help: ArgumentHelp("As --from, with the edited file of the graph.", valueName: "file"),
        completion: .file()
    )
    var with: String?

    @OptionGroup var reading: GraphReadingArguments
    @OptionGroup var ending: ContinuingArguments
    @OptionGroup var coordinator: ClientArguments

    private var startsNewGraph: Bool { from || with != nil }

    func validate() throws {
        let named = try self.named
        if failed || cancelled, !named.operations.isEmpty {
            throw ValidationError("--failed and --cancelled cannot be combined with names")
        }
        if startsNewGraph {
            guard !named.operations.isEmpty else {
                throw ValidationError("name an operation: GRAPH/OPERATION")
            }
        } else if ending.dryRun || ending.key.idempotencyKey != nil {
            throw ValidationError("--dry-run and --idempotency-key need --from or --with")
        }
        if with == nil, let option = reading.firstOption {
            throw ValidationError(
                "\(option) needs --with FILE: a coordinator does not keep the parameters of a file"
            )
        }
    }

    private var named: (graph: String, operations: [String]) {
        get throws {
            guard graph.contains("/") else { return (try Selectors.graph(graph), operations) }
            let first = try Selectors.operation(graph)
            return (first.graph, [first.operation] + operations)
        }
    }

    /// What to do about an operation that is not retried because it succeeded or has not finished;
    /// `nil`: none is such.
    private static func notRetried(
        _ operations: [String],
        of graph: String,
        _ session: ClientSession
    ) async -> Failure? {
        for name in operations {
            let selector = OperationSelector(graph: graph, operation: name)
            guard let detail = try? await session.client.operation(selector) else { continue }
            let shown = TerminalText.line("\(graph)/\(name)")
            let quoted = CommandText.quoted(shown)
            switch detail.operation.outcome {
            case nil:
                return Failure(
                    ExitStatus.usage,
                    "\(shown) has not finished, so there is nothing to retry. To see why: "
                        + "operon explain \(quoted)"
                )
            case .succeeded:
                return Failure(
                    ExitStatus.usage,
                    "\(shown) succeeded. To run it again, with all that depends on it: "
                        + "operon retry \(quoted) --from"
                )
            case _: continue
            }
        }
        return nil
    }

    /// Waits for the end of the graph if that was asked for.
    private func follow(_ graph: String, _ session: ClientSession) async throws {
        guard ending.wait || ending.watch else { return }
        let view = try await session.client.graph(graph)
        if ending.wait { throw ExitCode(try await Waiting(session).run(view, within: nil)) }
        let watching = Watching(session, output: session.console.errors)
        throw ExitCode(try await watching.run(String(view.id)))
    }

    func run() async throws {
        let (graph, operations) = try named
        let subject: ClientSession.Subject =
            operations.count == 1
            ? .operation(OperationSelector(graph: graph, operation: operations[0]))
            : .graph(graph)
        guard startsNewGraph else {
            var request = RetryRequest()
            request.operations = operations
            request.cancelled = cancelled
            return try await ClientSession.run(coordinator, about: subject) { session in
                do {
                    let view = try await session.change { () async throws(ClientError) in
                        try await session.client.retry(graph: graph, request)
                    }
                    let isInVain =
                        view.affected == 0 && operations.isEmpty && !self.cancelled
                    // Without an answer there is no hint.
                    let now = try? await session.client.graph(graph)
                    try session.console.tell(view) {
                        $0.retried(
                            view,
                            graph: graph,
                            cancelled: isInVain ? now?.counts.cancelled ?? 0 : 0,
                            isSuspended: now?.suspension != nil,
                            isFollowed: ending.wait || ending.watch
                        )
                    }
                    try await follow(graph, session)
                } catch let error as ClientError where error.refusal != nil {
                    throw await Self.notRetried(operations, of: graph, session) ?? error
                }
            }
        }
        let file = try with.map { path throws(Failure) in
            try reading.read(path)
        }
        try await ClientSession.run(coordinator, about: subject) { session in
            let view =
                if let file {
                    try await session.resubmit(file, of: graph, again: operations, ending)
                } else {
                    try await session.change { () async throws(ClientError) in
                        try await session.client.rerun(graph: graph, ending.request(operations))
                    }
                }
            try await ending.report(view, session)
        }
    }
}
