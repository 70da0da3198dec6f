import Logging
import NIOConcurrencyHelpers
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

/// One `operon run`: a coordinator, a worker in this process unless there is a broker, the screen,
/// and the signals.
struct RunSession {
    struct Options {
        var slots: Int
        var brokerURL: String?
        var prefix: String
        /// How long the first connection may take before the broker counts as unreachable.
        var connectTimeout: Duration
        var operationsPerMessage: Int
        var output: OutputFormat
        var logDirectory: String?
        var traceFile: String?
        /// Where the run is stored, so that it can be resumed later; `nil`: it is not stored.
        var store: String?
        /// Whether to resume the run in the store.
        var resumes = false
    }

    let graph: LoadedGraph
    private let growing: GrowingGraph
    let options: Options
    let environment: [String: String]
    private let screen: RunScreen
    private let recorder: RunRecorder
    private let logWriter: LogWriter?
    private let logger: Logger
    private let busyWorker = BusyWorker()

    init(graph: LoadedGraph, options: Options, environment: [String: String]) throws {
        self.graph = graph
        let growing = GrowingGraph(graph)
        self.growing = growing
        self.options = options
        self.environment = environment
        let screen = RunScreen(
            graph: growing,
            place: options.brokerURL == nil ? .thisProcess : .broker,
            isQuiet: options.output == .quiet,
            resumes: options.store != nil,
            environment: environment
        )
        self.screen = screen
        recorder = RunRecorder(operationCount: graph.compiled.topology.operationCount)
        logWriter = try options.logDirectory.map {
            try LogWriter(directory: $0, graph: growing, say: screen.say)
        }
        logger = Logger(label: "operon") { _ in
            PlainLog(level: .warning) { screen.say($0) }
        }
    }

    func run() async throws -> Int32 {
        do {
            let opened = try await openStore()
            if let opened { takeUpAdditions(opened) }
            do {
                let code = try await run(opened)
                await opened?.close()
                return code
            } catch {
                await opened?.close()
                throw error
            }
        } catch {
            // The reason for the failure is printed after the earlier output.
            OwnProcess.endAtSignals()
            await writeOutput()
            throw error
        }
    }

    private func run(_ opened: OpenedStore?) async throws -> Int32 {
        if let url = options.brokerURL { return try await runOnBroker(url, opened) }
        return try await runInProcess(opened)
    }

    /// - Throws: `Failure` if the store holds another graph, or a run that was not to be resumed.
    private func openStore() async throws -> OpenedStore? {
        guard let path = options.store else { return nil }
        let opened = try await OpenedStore.open(path: path)
        if let warning = opened.warning { screen.say("warning: \(warning)") }
        let count = opened.scheduler.graphCount
        guard count == 0 || count == 1 && options.resumes else {
            await opened.close()
            throw Failure(
                ExitStatus.usage,
                count == 1
                    ? "\(path) keeps a run already: --resume goes on with it; or name another file."
                    : "\(path) keeps the \(count) graphs of a coordinator: name another file."
            )
        }
        return opened
    }

    /// Takes up the operations that running operations added in previous runs.
    private func takeUpAdditions(_ opened: OpenedStore) {
        let id = GraphID(rawValue: 0)
        let first = graph.description.operations.count
        let operations = opened.restored.operations(of: id, from: first)
        guard !operations.isEmpty else { return }
        growing.append(operations)
        let notice = Scheduler.Notice.operationsAdded(
            id,
            first: UInt32(first),
            count: UInt32(operations.count)
        )
        recorder.note([notice], at: SystemClock.now())
        screen.note([notice], at: SystemClock.now())
    }

    // MARK: - In this process

    private func runInProcess(_ opened: OpenedStore?) async throws -> Int32 {
        let hub = InProcessHub()
        let coordinator = makeCoordinator(hub.makeCoordinator(), opened)
        let worker = try InProcessWorker.stock(
            on: hub,
            slots: options.slots,
            stateDirectory: options.store.map { $0 + ".worker" },
            environment: environment,
            logger: logger
        ) { configuration in
            // In this process a message costs next to nothing, and a person watches.
            configuration.startReportDelay = .milliseconds(10)
        }
        let ending: Ending
        do {
            ending = try await serve(coordinator) { kill in
                if kill {
                    worker.service.stop()
                } else {
                    worker.service.drain(timeout: .zero)
                }
            } services: { group in
                group.addTask { try await worker.service.run() }
            }
        } catch {
            await worker.shutDown()
            throw error
        }
        await worker.shutDown()
        return try await finish(ending, slots: options.slots)
    }

    // MARK: - On a broker

    private func runOnBroker(_ url: String, _ opened: OpenedStore?) async throws -> Int32 {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        defer { group.shutdownGracefully { _ in } }
        var random = SystemRandomNumberGenerator()
        let configuration: AMQPConfiguration
        do throws(PortError) {
            configuration = try AMQPConfiguration(url: url, prefix: options.prefix)
        } catch {
            throw Failure(ExitStatus.usage, error.message)
        }
        let transport = AMQPCoordinatorTransport(
            configuration: configuration,
            epoch: opened?.scheduler.epoch ?? Epoch(rawValue: 1),
            seed: random.next(),
            logger: logger,
            group: group
        )
        let ending = try await serve(
            makeCoordinator(transport, opened, attendance: configuration.attendance),
            on: LoopExecutor(group.next()),
            connectTimeout: options.connectTimeout
        ) { _ in
        } services: { _ in
        }
        return try await finish(ending, slots: recorder.current.slotsMax)
    }

    // MARK: - Serving

    private struct Ending {
        /// The exit code of the signal that ended the run; `nil`: no signal ended it.
        var signal: Int32?
        /// Why the broker cannot be used any more, if that ended the run.
        var failure: PortError?
        /// What the store has not stored, if the run did not wait for it.
        var unstored: String?
        /// Whether the reader of the screen has read everything, and will read the report.
        var isRead = true
    }

    private func makeCoordinator(
        _ transport: any CoordinatorTransport,
        _ opened: OpenedStore?,
        attendance: Attendance? = nil
    ) -> CoordinatorService {
        let recorder = recorder
        let screen = screen
        let logWriter = logWriter
        let busyWorker = busyWorker
        let growing = growing
        return CoordinatorService(
            scheduler: opened?.scheduler ?? Self.makeScheduler(),
            transport: transport,
            logger: logger,
            operationsPerMessage: options.operationsPerMessage,
            restored: opened?.restored,
            growthObserver: { growing.append($1) }
        ) { notices, now in
            recorder.note(notices, at: now)
            busyWorker.note(notices)
            screen.note(notices, at: now)
            logWriter?.note(notices)
            if let attendance { Self.note(notices, in: attendance) }
        }
    }

    /// A scheduler whose reign ends with this process.
    private static func makeScheduler() -> Scheduler {
        var random = SystemRandomNumberGenerator()
        var configuration = Scheduler.Configuration()
        configuration.seed = random.next()
        return Scheduler(
            configuration: configuration,
            reign: Reign(rawValue: random.next() | 1),
            epoch: Epoch(rawValue: 1)
        )
    }

    /// Records which workers are there, for other programs that ask who holds the prefix.
    private static func note(_ notices: [Scheduler.Notice], in attendance: Attendance) {
        for notice in notices {
            if case .workerJoined(let worker, _, let slots) = notice {
                attendance.joined(worker.incarnation, slots: slots)
            }
            if case .workerLost(let worker) = notice { attendance.lost(worker.incarnation) }
        }
    }

    /// Runs the services until the graph is finished, a second signal arrives, or the transport
    /// gives up.
    private func serve(
        _ coordinator: CoordinatorService,
        on executor: LoopExecutor? = nil,
        connectTimeout: Duration? = nil,
        endWorkers: @escaping @Sendable (_ kill: Bool) async -> Void,
        services: (inout ThrowingTaskGroup<Void, any Error>) -> Void
    ) async throws -> Ending {
        let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm)
        let interruption = Interruption()
        return try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask(executorPreference: executor) { try await coordinator.run() }
            services(&group)
            group.addTask { await screen.run(asking: coordinator) }
            group.addTask {
                for await signal in signals {
                    await interruption.received(signal, coordinator, screen)
                }
            }
            group.addTask {
                try await runGraph(coordinator, interruption, connectTimeout, endWorkers)
                throw Finished(isRead: await finishOutput(interruption))
            }
            defer { group.cancelAll() }
            var ending = Ending()
            do {
                while try await group.next() != nil {}
            } catch let finished as Finished {
                ending.isRead = finished.isRead
            } catch let failure as PortError {
                ending.failure = failure
            } catch let error as StoreError {
                let hint = "The same command with --resume goes on."
                throw Failure(ExitStatus.failed, "\(error.message) \(hint)")
            }
            ending.signal = await interruption.exitCode
            ending.unstored = await interruption.unstored
            return ending
        }
    }

    /// Waits, without a limit, until the screen output is read and the logs are on disk; after the
    /// second signal for at most `outputPatience`. Returns whether everything was written.
    private func finishOutput(_ interruption: Interruption) async -> Bool {
        await withTaskGroup(of: Bool.self) { group in
            group.addTask {
                // Writing the logs may add a message.
                await logWriter?.flush()
                await screen.finish()
                await screen.flush()
                return true
            }
            group.addTask {
                await interruption.killed.wait()
                // Cancelled: the other task was first.
                do { try await Task.sleep(for: Self.outputPatience) } catch {}
                return false
            }
            defer { group.cancelAll() }
            return await group.next() ?? true
        }
    }

    private static let outputPatience = Duration.seconds(1)

    /// Returns when the log files are complete and the screen output is read, or when the task is
    /// cancelled.
    private func writeOutput() async {
        await logWriter?.flush()
        await screen.flush()
    }

    private func writeOutput(within limit: Duration) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await writeOutput() }
            group.addTask {
                // Cancelled: the other task was first.
                do { try await Task.sleep(for: limit) } catch {}
            }
            await group.next()
            group.cancelAll()
        }
    }

    /// Submits the graph once the coordinator is connected, and ends the services after it.
    private func runGraph(
        _ coordinator: CoordinatorService,
        _ interruption: Interruption,
        _ connectTimeout: Duration?,
        _ endWorkers: @escaping @Sendable (_ kill: Bool) async -> Void
    ) async throws {
        if let connectTimeout {
            try await withThrowingTaskGroup(of: Void.self) { first in
                first.addTask { try await coordinator.waitUntilConnected(within: connectTimeout) }
                first.addTask { await interruption.killed.wait() }
                defer { first.cancelAll() }
                try await first.next()
            }
            if let name = await busyWorker.name(within: Self.helloPatience) {
                await coordinator.shutDown()
                throw Failure(ExitStatus.held, Self.busySentence(name))
            }
        }
        // Nothing has started yet. If a signal has arrived by now, nothing will start.
        if !interruption.killed.isOpen {
            screen.connected()
            try await withThrowingTaskGroup(of: Void.self) { first in
                first.addTask {
                    let id = try await submit(to: coordinator)
                    await coordinator.waitUntilFinished(id)
                }
                first.addTask { await interruption.killed.wait() }
                first.addTask {
                    try await giveUpOnStore(coordinator, interruption, endWorkers)
                }
                defer { first.cancelAll() }
                try await first.next()
            }
        }
        let kill = interruption.killed.isOpen
        await coordinator.shutDown(kill: kill)
        await endWorkers(kill)
    }

    /// Returns when, after a signal, the store has accepted nothing for a while. Waiting for it
    /// could then take forever, so the run waits for nothing else.
    private func giveUpOnStore(
        _ coordinator: CoordinatorService,
        _ interruption: Interruption,
        _ endWorkers: @escaping @Sendable (_ kill: Bool) async -> Void
    ) async throws {
        await interruption.cancelled.wait()
        try await coordinator.waitUntilStoreIsStuck(for: Self.storePatience)
        let trouble = await coordinator.trouble ?? "The store does not answer."
        if options.brokerURL == nil {
            // The cancel orders wait for the store as well, so the workers are stopped directly.
            await endWorkers(false)
            await coordinator.waitUntilDecided(
                GraphID(rawValue: 0),
                within: CommandDescription.defaultGrace
            )
        }
        // The run has ended in the meantime, and so has this wait.
        try Task.checkCancellation()
        let count = await coordinator.unstoredResultCount
        await interruption.giveUp(
            "error: \(trouble) "
                + (count == 0
                    ? "The cancel is not stored."
                    : "The cancel is not stored, and neither is what "
                        + (count == 1 ? "1 operation did." : "\(count) operations did."))
        )
    }

    /// How long a store may accept nothing after a signal: a slow disk answers within this time.
    private static let storePatience = Duration.seconds(5)

    private func submit(to coordinator: CoordinatorService) async throws -> GraphID {
        guard let path = options.store else {
            return await coordinator.submit(
                graph.description,
                compiled: graph.compiled,
                traceParent: Environment.traceParent(in: environment) ?? ""
            )
        }
        do throws(ClientError) {
            let (id, operations) = try await coordinator.takeUp(
                graph.description,
                compiled: graph.compiled,
                traceParent: Environment.traceParent(in: environment) ?? ""
            )
            if !operations.isEmpty { recorder.restore(operations) }
            screen.restored(operations)
            return id
        } catch {
            await coordinator.shutDown()
            guard error.code == .conflict else {
                throw Failure(ExitStatus.failed, "\(path): \(error.message)")
            }
            throw Failure(
                ExitStatus.usage,
                "\(path) keeps another graph than this: has the file changed, or were other"
                    + " operations asked for? Name another store to begin anew."
            )
        }
    }

    /// Workers answer the first message of a coordinator at once. A worker that still holds work of
    /// another run has this long to report it, before this run dispatches anything.
    private static let helloPatience = Duration.milliseconds(200)

    private static func busySentence(_ name: String) -> String {
        "Worker “\(TerminalText.line(name))” still holds work of another run under this prefix. It "
            + "lets go when that run takes the results, or a minute after its last word: try again "
            + "then, use another --prefix, or stop the worker."
    }

    /// Thrown to end the services once the work is done.
    private struct Finished: Error {
        let isRead: Bool
    }

    // MARK: - The end

    private func finish(_ ending: Ending, slots: Int) async throws -> Int32 {
        // No task handles signals any more, and the reader of the report may be blocked.
        OwnProcess.endAtSignals()
        let record = recorder.current
        if let failure = ending.failure, record.startedAt == nil {
            throw Failure(ExitStatus.of(failure), failure.message)
        }
        let assembly = ReportAssembly(
            graph: growing.current,
            record: record,
            slots: slots,
            now: SystemClock.now()
        )
        let report = assembly.report
        switch options.output {
        case .text: screen.print(report.summary(style: screen.style))
        case .json: report.writeJSON { FileOutput.standardOutput.write($0) }
        case .quiet: break
        }
        var code = assembly.exitCode(signal: ending.signal)
        if let failure = ending.failure {
            screen.print([failure.message])
            code = ExitStatus.of(failure)
        }
        if let unstored = ending.unstored { screen.print([unstored]) }
        if options.store != nil, options.output == .text, code != ExitStatus.success {
            screen.print(["The same command with --resume runs what has not succeeded."])
        }
        if let traceFile = options.traceFile {
            do {
                try TraceFile(report).write(to: traceFile)
            } catch let failure as Failure {
                // The outcome of the run matters more than the trace file.
                screen.print([failure.message])
                code = code == ExitStatus.success ? failure.code : code
            }
        }
        if ending.isRead {
            await writeOutput()
        } else {
            await writeOutput(within: Self.outputPatience)
        }
        return code
    }
}

/// The first worker that was found to belong to another reign.
private final class BusyWorker: Sendable {
    private let first = NIOLockedValueBox<String?>(nil)
    private let found = Latch()

    func note(_ notices: [Scheduler.Notice]) {
        for case .workerBusy(let worker, _) in notices {
            first.withLockedValue { $0 = $0 ?? worker.name }
            found.open()
        }
    }

    /// The name of the worker, as soon as one is known; `nil` after the limit.
    func name(within limit: Duration) async -> String? {
        await found.wait(within: limit)
        return first.withLockedValue { $0 }
    }
}

/// Handles Ctrl-C: the first cancels the graph and waits, the second kills.
private actor Interruption {
    private var signal: UnixSignal?
    /// Open once the run must not wait for anything any more.
    nonisolated let killed = Latch()
    /// Open once the graph is cancelled.
    nonisolated let cancelled = Latch()
    /// What the store has not stored, if the run does not wait for it.
    private(set) var unstored: String?

    /// The exit code for the signal that arrived; `nil`: none did.
    var exitCode: Int32? {
        guard let signal else { return nil }
        return signal == .sigterm ? ExitStatus.terminated : ExitStatus.interrupted
    }

    func received(
        _ signal: UnixSignal,
        _ coordinator: CoordinatorService,
        _ screen: RunScreen
    ) async {
        guard self.signal == nil else {
            killed.open()
            return
        }
        self.signal = signal
        guard await coordinator.query({ $0.graphCount }) > 0 else {
            // Nothing was submitted yet, so there is nothing to wait for.
            killed.open()
            return
        }
        screen.say("Cancelling; what runs is asked to stop. Once more kills it.")
        defer { cancelled.open() }
        let target = Scheduler.Target.graph(GraphID(rawValue: 0))
        do {
            try await coordinator.command(
                .cancelRequested(target, reason: "interrupted", cascade: false)
            )
        } catch {
            screen.say("warning: \(error)")
        }
    }

    func giveUp(_ unstored: String) {
        self.unstored = unstored
        killed.open()
    }
}
