import ArgumentParser
import Logging
import OperonAMQP
import OperonArguments
import OperonCore
import OperonGraphFile
import OperonModel
import OperonPorts
import OperonRuntime
import OperonTerminal
import UnixSignals

/// The stock worker: runs commands and waits for any coordinator.
@main
struct OperonWorker: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "operon-worker",
        abstract: "Run operations of a coordinator, which sends them over a broker.",
        discussion: """
            SIGTERM, Ctrl-C and “operon drain” drain the worker: it takes no more operations, \
            gives back those that have not started, and lets the others finish within \
            --drain-timeout. A second signal ends everything at once.

            Exit codes: 0 drained; 2 the command line was wrong; 5 the broker refused the \
            connection; 8 another worker holds the state directory; 130, 143 ended by a second \
            SIGINT, SIGTERM.
            """,
        version: Version.full
    )

    @OptionGroup var broker: BrokerArguments
    @OptionGroup var trust: WorkerTrustArguments

    @Option(help: "The name of this worker. Default: the host name and the process id.")
    var name: String?

    @Option(
        name: [.customShort("j"), .long],
        help: "How many operations run at once. Default: one per processor."
    )
    var slots: Int?

    @Option(help: "Serve only these queues, separated by commas. Default: all.")
    var queues: String?

    @OptionGroup var offer: OfferArguments

    @OptionGroup var secrets: SecretArguments

    @OptionGroup var user: UserArguments

    @Option(help: "When draining: seconds that running operations have to finish.")
    var drainTimeout: Double = 30

    @Option(
        help: ArgumentHelp(
            "Where the worker keeps its identity; one directory per worker.",
            discussion: "Default: the variable STATE_DIRECTORY, which systemd sets; else none.",
            valueName: "directory"
        ),
        completion: .directory
    )
    var stateDirectory: String?

    @Flag(help: "Restart the worker, after a pause, if it ends without having drained.")
    var supervise = false

    @OptionGroup var log: LogArguments

    @Option(
        help: ArgumentHelp(
            "Events in one message at most: for measuring what a message costs.",
            visibility: .hidden
        )
    )
    var eventsPerMessage: Int?

    func validate() throws {
        if let slots, !(1...Limits().slots).contains(slots) {
            throw ValidationError("--slots must be from 1 to \(Limits().slots)")
        }
        if let name, name.isEmpty || name.utf8.count > Limits().nameBytes {
            throw ValidationError("--name must have 1 to \(Limits().nameBytes) bytes")
        }
        try DrainTimeout.check(drainTimeout)
        if let stateDirectory, stateDirectory.isEmpty {
            throw ValidationError("the path of --state-directory is empty")
        }
        if let eventsPerMessage, eventsPerMessage < 1 {
            throw ValidationError("--events-per-message must be at least 1")
        }
    }

    static func main() async {
        await Program<OperonWorker>.run(
            name: "operon-worker",
            nearest: { Suggestion.nearest(to: $0, among: $1) }
        )
    }

    func run() async throws {
        let environment = Environment.current
        let (logger, say) = log.make("operon-worker")
        if supervise {
            throw ExitCode(try await Supervision(environment: environment, say: say).run())
        }
        try await ProgramSpans.recorded(as: "operon-worker", environment, warn: say) { spans in
            try await serve(environment, logger, say, spans)
        }
    }

    private func serve(
        _ environment: [String: String],
        _ logger: Logger,
        _ say: @escaping @Sendable (String) -> Void,
        _ spans: (any SpanSink)?
    ) async throws {
        let connection = try BrokerConnection(
            url: try broker.requiredURL(environment: environment),
            prefix: broker.prefix
        )
        defer { connection.close() }
        let status = ServiceStatus(
            manager: ServiceManager(socket: environment["NOTIFY_SOCKET"]),
            fail: say
        )
        var configuration = makeConfiguration(environment, status, say)
        configuration.spans = spans
        configuration.token = try trust.token(environment: environment, say: say)
        let worker = try WorkerHost(configuration, logger: logger) { incarnation in
            connection.workerTransport(of: incarnation, logger: logger)
        }
        // From here on signals start a drain.
        let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm)
        let count = configuration.slots == 1 ? "1 slot" : "\(configuration.slots) slots"
        say("“\(worker.name)” with \(count) serves \(connection.configuration.address)")
        async let _: Void = status.waitForReadiness()
        let signal = try await worker.serve(
            on: connection.executor,
            until: signals.map { .signal($0.rawValue) }
        ) {
            say("draining; a second signal ends everything at once")
        }
        guard let signal else { return }
        let isTermination = signal == UnixSignal.sigterm.rawValue
        throw ExitCode(isTermination ? ExitStatus.terminated : ExitStatus.interrupted)
    }

    private func makeConfiguration(
        _ environment: [String: String],
        _ status: ServiceStatus,
        _ say: @escaping @Sendable (String) -> Void
    ) -> WorkerHost.Configuration {
        var configuration = WorkerHost.Configuration(
            slots: slots ?? Environment.processorCount,
            environment: environment,
            report: say
        )
        configuration.name = name
        configuration.resources = offer.amounts
        configuration.labels = offer.workerLabels
        configuration.controlGroups = offer.controlGroups
        configuration.secrets = secrets.places(environment)
        configuration.users = user.users
        configuration.hasNoNewPrivileges = user.noNewPrivileges
        configuration.kinds.elements = ElementExpansion()
        configuration.watchesSources = true
        configuration.queues =
            queues.map { $0.split(separator: ",").map { String($0) } } ?? []
        // systemd separates several directories by colons; the first one is for the worker.
        let given = environment["STATE_DIRECTORY"]?.split(separator: ":").first.map(String.init)
        configuration.stateDirectory = stateDirectory ?? given
        configuration.drainTimeout = .seconds(drainTimeout)
        if let eventsPerMessage {
            configuration.agent = { $0.eventsPerMessage = eventsPerMessage }
        }
        configuration.linkObserver = { event in
            status.note(event)
            if event == .noCoordinator { say("connected; no coordinator has used this prefix yet") }
        }
        let patience = configuration.drainTimeout + Self.lastWordsTimeout
        configuration.observer = { notices in
            for notice in notices {
                status.note(notice)
                if case .draining = notice { status.stopping(within: patience) }
                Self.tell(notice, say)
            }
        }
        return configuration
    }

    /// How long ending the remaining operations and acknowledging their events may take after the
    /// drain.
    private static let lastWordsTimeout = Duration.seconds(30)

    private static func tell(
        _ notice: WorkerAgent.Notice,
        _ say: @Sendable (String) -> Void
    ) {
        switch notice {
        case .welcomed: say("welcomed by the coordinator")
        case .leaseExpired(let dropped):
            say("the coordinator is silent: gave up \(dropped) operations that had not started")
        case .refused(.newIncarnation): say("a newer connection of this worker replaced this one")
        case .refused(.nameTaken): say("another worker has this name")
        case .refused(.tooManyWorkers): say("the coordinator takes no further worker at present")
        case .draining(let returned, let running):
            say("gave back \(returned) operations, waits for \(running) to finish")
        case .orphaned: say("the coordinator did not come back: its operations were stopped")
        case .dispatchIgnored: break  // Repaired by the next beat.
        }
    }
}
