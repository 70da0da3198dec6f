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

/// One `operon run`: a coordinator, in this process a worker too unless there is a broker, the
/// screen, and the signals.
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
        /// Where the run is kept, so that it can go on after its end; `nil`: nowhere.
        var store: String?
        /// Goes on with what the store has.
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
            // The reason for the failure stands behind what was said before it.
            OwnProcess.endAtSignals()
            await writeOutput()
            throw error
        }
    }

    private func run(_ opened: OpenedStore?) async throws -> Int32 {
        if let url = options.brokerURL { return try await runOnBroker(url, opened) }
        return try await runInProcess(opened)
    }

    /// - Throws: `Failure` for a store with another graph, or with a run that was not asked for.
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

    /// What running operations added to it in the lives before.
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
            // A message costs next to nothing here, and somebody watches.
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
        /// The exit code of the signal that ended it, if one did.
        var signal: Int32?
        /// Why the broker cannot be used any more, if that ended it.
        var failure: PortError?
        /// What the store has not taken, if it was not waited for.
        var unstored: String?
        /// Whoever reads the screen has read it, and will read the report.
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

    /// Of a reign that ends with this process.
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

    /// For whoever asks who holds the prefix.
    private static func note(_ notices: [Scheduler.Notice], in attendance: Attendance) {
        for notice in notices {
            if case .workerJoined(let worker, _, let slots) = notice {
                attendance.joined(worker.incarnation, slots: slots)
            }
            if case .workerLost(let worker) = notice { attendance.lost(worker.incarnation) }
        }
    }

    /// Runs the services until the graph is finished, until a second signal, or until the transport
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

    /// Waits for whoever reads the screen and for the disk of the logs, as long as they take; after
    /// the second signal no longer than a moment. Whether all of it was taken.
    private func finishOutput(_ interruption: Interruption) async -> Bool {
        await withTaskGroup(of: Bool.self) { group in
            group.addTask {
                // The logs may have something to say.
                await logWriter?.flush()
                await screen.finish()
                await screen.flush()
                return true
            }
            group.addTask {
                await interruption.killed.wait()
                // Cancelled: the other one was first.
                do { try await Task.sleep(for: Self.outputPatience) } catch {}
                return false
            }
            defer { group.cancelAll() }
            return await group.next() ?? true
        }
    }

    private static let outputPatience = Duration.seconds(1)

    /// Returns when the files of logs are complete and what the screen has to say is read, or when
    /// the task is cancelled.
    private func writeOutput() async {
        await logWriter?.flush()
        await screen.flush()
    }

    private func writeOutput(within limit: Duration) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await writeOutput() }
            group.addTask {
                // Cancelled: the other one was first.
                do { try await Task.sleep(for: limit) } catch {}
            }
            await group.next()
            group.cancelAll()
        }
    }

    /// Submits the graph once there is somebody to submit it to, and ends the services after it.
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
        // Nothing of it has started: a signal now means that nothing shall.
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

    /// Returns when, after a signal, the store takes nothing for a while: what waits for it could
    /// wait for ever. Then nothing else is waited for.
    private func giveUpOnStore(
        _ coordinator: CoordinatorService,
        _ interruption: Interruption,
        _ endWorkers: @escaping @Sendable (_ kill: Bool) async -> Void
    ) async throws {
        await interruption.cancelled.wait()
        try await coordinator.waitUntilStoreIsStuck(for: Self.storePatience)
        let trouble = await coordinator.trouble ?? "The store does not answer."
        if options.brokerURL == nil {
            // What asks them to stop waits for the store as well.
            await endWorkers(false)
            await coordinator.waitUntilDecided(
                GraphID(rawValue: 0),
                within: CommandDescription.defaultGrace
            )
        }
        // The run has ended meanwhile, and with it what is waited for here.
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

    /// How long a store may take nothing after a signal: a slow disk answers within that.
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

    /// Workers answer the first word of a coordinator at once. One that still holds work of another
    /// run has this long to say so, before anything of this one is given to anybody.
    private static let helloPatience = Duration.milliseconds(200)

    private static func busySentence(_ name: String) -> String {
        "Worker “\(TerminalText.line(name))” still holds work of another run under this prefix. It "
            + "lets go when that run takes the results, or a minute after its last word: try again "
            + "then, use another --prefix, or stop the worker."
    }

    /// Thrown to end the services: the work is done.
    private struct Finished: Error {
        let isRead: Bool
    }

    // MARK: - The end

    private func finish(_ ending: Ending, slots: Int) async throws -> Int32 {
        // Nobody listens for them any more, and who reads the report may stand still.
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
                // What the work did is worth more than its picture.
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

/// The first worker that was heard of and belongs to another reign.
private final class BusyWorker: Sendable {
    private let first = NIOLockedValueBox<String?>(nil)
    private let found = Latch()

    func note(_ notices: [Scheduler.Notice]) {
        for case .workerBusy(let worker, _) in notices {
            first.withLockedValue { $0 = $0 ?? worker.name }
            found.open()
        }
    }

    /// Its name, as soon as there is one; `nil` after the time.
    func name(within limit: Duration) async -> String? {
        await found.wait(within: limit)
        return first.withLockedValue { $0 }
    }
}

/// What Ctrl-C does: the first time it cancels and waits, the second time it kills.
private actor Interruption {
    private var signal: UnixSignal?
    /// Nothing is to be waited for any more.
    nonisolated let killed = Latch()
    /// The graph is cancelled.
    nonisolated let cancelled = Latch()
    /// What the store has not taken, if it is not waited for.
    private(set) var unstored: String?

    /// The exit code that says which signal came; `nil`: none did.
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
            // Nothing was submitted yet: there is nothing to wait for.
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
