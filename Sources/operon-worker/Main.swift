import ArgumentParser
import Logging
import NIOCore
import NIOPosix
import OperonAMQP
import OperonArguments
import OperonCore
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
        abstract: "Run operations that a coordinator publishes to a broker.",
        discussion: """
            SIGTERM, Ctrl-C and “operon drain” drain: nothing new is taken, what waits is given \
            back, what runs is finished within --drain-timeout. A second signal ends everything \
            at once.

            Exit codes: 0 drained; 2 the call was wrong; 5 the broker refused; 8 another worker \
            holds the state directory; 130 and 143 ended by a second signal.
            """,
        version: Version.text
    )

    @OptionGroup var broker: BrokerArguments

    @Option(help: "What people call it. Default: the host's name and the process id.")
    var name: String?

    @Option(
        name: [.customShort("j"), .long],
        help: "How many operations run at once. Default: one per processor."
    )
    var slots: Int?

    @Option(help: "Serve only these queues, separated by commas. Default: all.")
    var queues: String?

    @Option(help: "Seconds that running operations have to finish when it drains.")
    var drainTimeout: Double = 30

    @Option(
        help: ArgumentHelp(
            "Where it keeps its identity over restarts; one directory per worker.",
            discussion: "Default: the variable STATE_DIRECTORY, which systemd sets, else nowhere.",
            valueName: "directory"
        ),
        completion: .directory
    )
    var stateDirectory: String?

    @Flag(help: "Start it again, after a pause, whenever it ends without having drained.")
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
            throw ValidationError("--slots takes a number from 1 to \(Limits().slots)")
        }
        if let name, name.isEmpty || name.utf8.count > Limits().nameBytes {
            throw ValidationError("--name takes 1 to \(Limits().nameBytes) bytes")
        }
        guard drainTimeout >= 0, drainTimeout.isFinite else {
            throw ValidationError("--drain-timeout takes a number that is not negative")
        }
        if let stateDirectory, stateDirectory.isEmpty {
            throw ValidationError("--state-directory takes the path of a directory")
        }
        if let eventsPerMessage, eventsPerMessage < 1 {
            throw ValidationError("--events-per-message takes a number from 1")
        }
    }

    static func main() async { await Program<OperonWorker>.run(name: "operon-worker") }

    func run() async throws {
        let environment = Environment.current
        let (logger, say) = log.make("operon-worker")
        if supervise {
            throw ExitCode(try await Supervision(environment: environment, say: say).run())
        }
        var random = SystemRandomNumberGenerator()
        let incarnation = Incarnation(rawValue: random.next() | 1)
        let state = try takeStateDirectory(environment, for: incarnation)
        if let warning = state?.warning { say(warning) }
        let configuration = makeConfiguration(incarnation, state)
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        defer { group.shutdownGracefully { _ in } }
        let connection = try AMQPConfiguration(
            url: try broker.requiredURL(environment: environment),
            prefix: broker.prefix
        )
        let transport = AMQPWorkerTransport(
            configuration: connection,
            incarnation: incarnation,
            seed: random.next(),
            logger: logger,
            group: group
        )
        let status = ServiceStatus(
            manager: ServiceManager(socket: environment["NOTIFY_SOCKET"]),
            fail: say
        )
        var processConfiguration = ProcessRunner.Configuration(environment: environment)
        processConfiguration.stateDirectory = state
        processConfiguration.report = say
        let processes = try ProcessRunner(processConfiguration)
        let patience = configuration.drainTimeout + Self.lastWordsTimeout
        let service = WorkerService(
            agent: WorkerAgent(configuration: configuration),
            transport: transport,
            processes: processes,
            logger: logger
        ) { event in
            status.note(event)
            if event == .noCoordinator { say("connected; no coordinator has been there yet") }
        } observer: { notices in
            for notice in notices {
                status.note(notice)
                if case .draining = notice { status.stopping(within: patience) }
                Self.tell(notice, say)
            }
        }
        let count = configuration.slots == 1 ? "1 slot" : "\(configuration.slots) slots"
        let greeting = "“\(configuration.name)” with \(count) serves \(connection.address)"
        let executor = LoopExecutor(group.next())
        let signal = try await serve(service, status, on: executor, greeting, say)
        await processes.shutdown()
        if let signal { throw ExitCode(signal) }
    }

    private func makeConfiguration(
        _ incarnation: Incarnation,
        _ state: StateDirectory?
    ) -> WorkerAgent.Configuration {
        let host = Environment.hostName
        let processID = Environment.processID
        var configuration = WorkerAgent.Configuration(
            name: name ?? "\(host)-\(processID)",
            incarnation: incarnation,
            host: host,
            processID: processID,
            slots: slots ?? Environment.processorCount,
            kinds: Work.builtInKinds
        )
        configuration.queues =
            queues.map { $0.split(separator: ",").map { String($0) } } ?? []
        configuration.workerID = state?.worker ?? ""
        configuration.predecessor = state?.predecessor
        configuration.drainTimeout = .seconds(drainTimeout)
        if let eventsPerMessage { configuration.eventsPerMessage = eventsPerMessage }
        return configuration
    }

    /// How long ending the remaining operations and acknowledging their events may take after the
    /// drain.
    private static let lastWordsTimeout = Duration.seconds(30)

    /// Serves until the worker has drained. Returns the exit code of the signal that cut the drain
    /// short, if one did.
    private func serve(
        _ service: WorkerService,
        _ status: ServiceStatus,
        on executor: LoopExecutor,
        _ greeting: String,
        _ say: @escaping @Sendable (String) -> Void
    ) async throws -> Int32? {
        let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm)
        let drainTimeout = drainTimeout
        // From here on signals start a drain.
        say(greeting)
        return try await withThrowingTaskGroup(of: Int32?.self) { group in
            group.addTask(executorPreference: executor) {
                async let _: Void = status.waitForReadiness()
                try await service.run()
                return nil
            }
            group.addTask {
                var isDraining = false
                for await signal in signals {
                    if isDraining {
                        service.stop()
                        return signal == .sigterm ? ExitStatus.terminated : ExitStatus.interrupted
                    }
                    isDraining = true
                    say("draining; once more ends everything now")
                    service.drain(timeout: .seconds(drainTimeout))
                }
                return nil
            }
            defer { group.cancelAll() }
            let first = try await group.next() ?? nil
            guard first != nil else { return nil }
            // The second signal: waits briefly until the killed processes are reaped.
            _ = try await group.next()
            return first
        }
    }

    /// `nil`: no directory was named.
    private func takeStateDirectory(
        _ environment: [String: String],
        for incarnation: Incarnation
    ) throws -> StateDirectory? {
        // systemd separates several directories by colons; the first one is for the worker.
        let given = environment["STATE_DIRECTORY"]?.split(separator: ":").first.map(String.init)
        guard let path = stateDirectory ?? given else { return nil }
        do throws(StateDirectoryError) {
            return try StateDirectory(path: path, incarnation: incarnation)
        } catch {
            throw Failure(error.isHeld ? ExitStatus.held : ExitStatus.usage, error.message)
        }
    }

    private static func tell(
        _ notice: WorkerAgent.Notice,
        _ say: @Sendable (String) -> Void
    ) {
        switch notice {
        case .welcomed: say("welcomed by the coordinator")
        case .leaseExpired(let dropped):
            say("no word from the coordinator: gave up \(dropped) operations that had not started")
        case .refused(.newIncarnation): say("a newer connection speaks for this worker")
        case .refused(.nameTaken): say("another worker has this name")
        case .draining(let returned, let running):
            say("gave back \(returned) operations, finishing \(running)")
        case .orphaned: say("the coordinator did not come back: its operations were ended")
        case .dispatchIgnored: break  // Repaired by the next beat.
        }
    }
}
