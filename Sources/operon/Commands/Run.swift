import ArgumentParser
import OperonArguments
import OperonCore
import OperonGraphFile
import OperonModel
import OperonRuntime
import OperonTerminal

struct Run: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run",
        abstract: "Run a graph file in this process, or on the workers of a broker.",
        discussion: """
            Without a broker, operations run in this process. With --broker, they run on the \
            operon-worker processes that are connected to it.

            Ctrl-C cancels waiting operations and asks running ones to stop; a second Ctrl-C kills \
            them.
            """
    )

    @OptionGroup var graphFile: GraphFileArguments

    @Argument(help: "Run only these operations and their dependencies.")
    var targets: [String] = []

    @Option(
        name: [.customShort("j", allowingJoined: true), .long],
        help: "How many operations run at once in this process. Default: one per processor."
    )
    var slots: Int?

    @OptionGroup var offer: OfferArguments

    @OptionGroup var secrets: SecretArguments

    @OptionGroup var broker: BrokerArguments
    @OptionGroup var trust: CoordinatorTrustArguments

    @Option(
        help: ArgumentHelp(
            "How long the first connection to the broker may take. Reconnecting has no limit.",
            valueName: "seconds"
        )
    )
    // Longer than the 20 s for which a dead connection may still hold the lock of a prefix.
    var connectTimeout: Double = 30

    @Flag(help: "Run in this process, even if OPERON_BROKER is set.")
    var local = false

    @Flag(help: "After a failure, run what does not depend on it, or cancel the rest.")
    var failureMode = FailureMode.keepGoing

    @Flag(help: "Show each element of repeated operations instead of one line for all.")
    var elements = false

    @Flag(help: "Print what would run, in a possible order, and run nothing.")
    var dryRun = false

    @Option(help: "text, json or quiet.")
    var output: OutputFormat = .text

    @Option(help: "Write the log of each attempt to a file in this directory.")
    var logs: String?

    @Option(
        help: ArgumentHelp(
            """
            Show what operations print: of each attempt when it ends (whole, also without a mode), \
            or each line as it comes, after the name of its operation (stream).
            """,
            valueName: "mode"
        )
    )
    var showOutput: ShownOutput.Mode?

    @Option(help: "Write a timeline to this file, in Chrome's trace format.", completion: .file())
    var trace: String?

    @Option(
        help: "Write a report to this file, as one HTML page: the graph, the timeline, failures.",
        completion: .file()
    )
    var report: String?

    @Option(
        help: ArgumentHelp(
            "Store the run in this file, so that --resume can continue it.",
            valueName: "path"
        ),
        completion: .file()
    )
    var store: String?

    @Flag(
        help: """
            Continue the run in --store: operations that succeeded stay so, all others run. If \
            the file has changed, what succeeded and is the same stays, as does what it depends \
            on; --dry-run shows what would run and why. Starts a new run if there is none.
            """
    )
    var resume = false

    @Option(
        help: ArgumentHelp(
            """
            With --resume: run this operation even if it succeeded, and all that depends on it. \
            May be repeated.
            """,
            valueName: "operation"
        )
    )
    var from: [String] = []

    @Option(
        help: ArgumentHelp(
            "Operations in one message at most: for measuring what a message costs.",
            visibility: .hidden
        )
    )
    var operationsPerMessage = CoordinatorService.defaultOperationsPerMessage

    enum FailureMode: String, EnumerableFlag {
        case keepGoing
        case failFast
    }

    func validate() throws {
        if let slots, !(1...Limits().slots).contains(slots) {
            throw ValidationError("--slots must be from 1 to \(Limits().slots)")
        }
        guard connectTimeout > 0, connectTimeout <= 86_400 else {
            throw ValidationError("--connect-timeout must be more than 0 and at most a day")
        }
        guard operationsPerMessage >= 1 else {
            throw ValidationError("--operations-per-message must be at least 1")
        }
        if showOutput != nil, output == .json {
            throw ValidationError("--show-output and --output json cannot be combined")
        }
        let modes = ShownOutput.Mode.allCases.map(\.rawValue)
        if showOutput == .whole, Suggestion.nearest(to: graphFile.file, among: modes) != nil,
            UserFile.byteCount(of: graphFile.file) == nil
        {
            throw ValidationError(
                "“\(graphFile.file)” is no file, and no mode of --show-output: the modes are"
                    + " “whole” and “stream”"
            )
        }
        if let store, store.isEmpty { throw ValidationError("the path of --store is empty") }
        if !from.isEmpty, !resume { throw ValidationError("--from needs --resume") }
        if resume, store == nil { throw ValidationError("--resume needs --store") }
        if local, broker.isNamed {
            throw ValidationError("--local and a broker cannot be combined")
        }
    }

    func run() async throws {
        let environment = Environment.current
        let graph = try graphFile.load(targets: targets, failFast: failureMode == .failFast)
        try checkFrom(graph)
        if dryRun {
            let dryRun = DryRun(
                graph: graph,
                console: Console(format: output, environment: environment),
                folds: !elements
            )
            guard resume, let store, UserFile.byteCount(of: store) != nil else {
                return try dryRun.print()
            }
            return try await dryRun.print(resuming: store, again: Set(from))
        }
        let url = local ? nil : try broker.url(environment: environment)
        if url != nil {
            try offer.checkUnused()
            try secrets.checkUnused()
        }
        let session = try RunSession(
            graph: graph,
            options: RunSession.Options(
                slots: slots ?? Environment.processorCount,
                brokerURL: url,
                prefix: broker.prefix,
                trust: trust,
                connectTimeout: .seconds(connectTimeout),
                operationsPerMessage: operationsPerMessage,
                output: output,
                logDirectory: logs,
                showsOutput: showOutput,
                traceFile: trace,
                reportFile: report,
                store: store,
                resumes: resume,
                again: Set(from),
                folds: !elements,
                resources: offer.amounts,
                labels: offer.workerLabels,
                controlGroups: offer.controlGroups,
                secrets: secrets.places(environment)
            ),
            environment: environment
        )
        let code = try await session.run()
        throw ExitCode(code)
    }
}

extension Run {
    /// - Throws: `Failure` if an operation of `--from` is not in the graph that runs.
    private func checkFrom(_ graph: LoadedGraph) throws(Failure) {
        guard !from.isEmpty else { return }
        let names = Set(graph.description.operations.lazy.map(\.name))
        guard let name = from.first(where: { !names.contains($0) }) else { return }
        guard graph.omitted.contains(name) else {
            throw graphFile.missing(
                name,
                among: names.union(graph.omitted).sorted(),
                else: "; what other operations add runs again with them"
            )
        }
        throw Failure(
            ExitStatus.usage,
            "The targets do not need “\(name)”: name it as a target, or leave it out of --from."
        )
    }
}

extension OutputFormat: ExpressibleByArgument {}
