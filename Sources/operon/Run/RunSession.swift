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

/// Follows a run, and says how it ended, in place of a report: `operon map` has one.
protocol RunListener: Sendable {
    /// Called on the coordinator's executor, so it returns at once.
    func note(_ notices: [Scheduler.Notice], at now: Timestamp)

    /// Returns when everything that was noted is written, or when the task is cancelled.
    func flush() async

    /// The exit code of a run that no signal and no failure of the broker ended.
    var exitCode: Int32 { get }

    /// The exit code after a failure of the broker.
    var failureCode: Int32 { get }

    /// Opened when nobody reads what the run prints: it is cancelled.
    var unread: Latch { get }
}

/// One `operon run`: a coordinator, a worker in this process unless there is a broker, the screen,
/// and the signals.
struct RunSession {
    let graph: LoadedGraph
    private let growing: GrowingGraph
    let options: Options
    let environment: [String: String]
    private let screen: RunScreen
    private let recorder: RunRecorder
    private let logWriter: LogWriter?
    private let shownOutput: ShownOutput?
    /// `nil`: nobody can be asked.
    private let questions: RunQuestions?
    private let logger: Logger
    private let busyWorker = BusyWorker()
    private let listener: (any RunListener)?

    init(
        graph: LoadedGraph,
        options: Options,
        environment: [String: String],
        listener: (any RunListener)? = nil
    ) throws {
        self.graph = graph
        self.listener = listener
        let growing = GrowingGraph(graph)
        self.growing = growing
        self.options = options
        self.environment = environment
        let screen = RunScreen(
            graph: growing,
            place: options.brokerURL == nil ? .thisProcess : .broker,
            isQuiet: options.output == .quiet,
            canAsk: options.output == .text,
            resumes: options.store != nil,
            folds: options.folds,
            environment: environment
        )
        self.screen = screen
        recorder = RunRecorder(operationCount: graph.compiled.topology.operationCount)
        logWriter = try options.logDirectory.map {
            try LogWriter(directory: $0, graph: growing, say: screen.say)
        }
        shownOutput = try options.showsOutput.map {
            try ShownOutput(mode: $0, graph: growing, screen: screen)
        }
        questions = screen.canAsk ? RunQuestions(growing, screen) : nil
        logger = Logger(label: "operon") { _ in
            PlainLog(level: .warning) { screen.say($0) }
        }
    }

    func run() async throws -> Int32 {
        do {
            // What a resumed run asked before may have been answered: its store tells.
            if !options.resumes, questions == nil { try RunQuestions.refuse(graph) }
            if let traceFile = options.traceFile { try TraceFile.output(at: traceFile).check() }
            if let reportFile = options.reportFile { try ReportFile.output(at: reportFile).check() }
            let warn: @Sendable (String) -> Void = { [screen] in screen.say("warning: \($0)") }
            let code = try await ProgramSpans.recorded(as: "operon", environment, warn: warn) {
                if let url = options.brokerURL { return try await runOnBroker(url, $0) }
                return try await runInProcess($0)
            }
            await writeOutput(within: Self.outputPatience)
            return code
        } catch {
            // The reason for the failure is printed after the earlier output.
            OwnProcess.endAtSignals()
            await writeOutput()
            throw error
        }
    }

    // MARK: - Where it runs

    private func runInProcess(_ spans: (any SpanSink)?) async throws -> Int32 {
        var worker = WorkerHost.Configuration(slots: options.slots, environment: environment) {
            [logger] in logger.warning("\($0)")
        }
        worker.kinds.elements = ElementExpansion()
        worker.stateDirectory = options.store.map { $0 + ".worker" }
        worker.resources = options.resources
        worker.labels = options.labels
        worker.controlGroups = options.controlGroups
        worker.secrets = options.secrets
        worker.spans = spans
        let offer = LocalOffer(worker)
        try offer.check(graph)
        // In this process a message costs next to nothing, and a person watches.
        worker.agent = { $0.startReportDelay = .milliseconds(10) }
        return try await run(offer: offer, spans) { _ in try .inProcess(worker, logger: logger) }
    }

    private func runOnBroker(_ url: String, _ spans: (any SpanSink)?) async throws -> Int32 {
        let trust = try options.trust.keys(environment: environment, say: screen.say)
        let broker = try BrokerConnection(url: url, prefix: options.prefix)
        defer { broker.close() }
        return try await run(attendance: broker.configuration.attendance, trust, spans) { epoch in
            let transport = broker.coordinatorTransport(epoch: epoch, logger: logger)
            return CoordinatorHost.Link(transport, on: broker.executor)
        }
    }

    private func run(
        attendance: Attendance? = nil,
        _ trust: CoordinatorTrust? = nil,
        offer: LocalOffer? = nil,
        _ spans: (any SpanSink)?,
        link: (Epoch) throws -> CoordinatorHost.Link
    ) async throws -> Int32 {
        let host = try await CoordinatorHost.open(
            path: options.store,
            makeConfiguration(attendance, trust, spans),
            logger: logger,
            warn: { screen.say("warning: \($0)") }
        ) { scheduler, restored in
            if let restored {
                try check(scheduler.graphCount, restored)
                if questions == nil {
                    let continuation = try restored.continuation(
                        of: graph.description,
                        failFast: graph.compiled.failFast,
                        again: options.again,
                        scheduler
                    )
                    try RunQuestions.refuse(graph, except: continuation?.stayingIndices ?? [])
                }
                try takeUpAdditions(restored, scheduler)
            }
            return try link(scheduler.epoch)
        }
        let code: Result<Int32, any Error>
        do {
            code = .success(try await finish(try await serve(host, offer)))
        } catch {
            code = .failure(error)
        }
        await host.close()
        return try code.get()
    }

    static func foreignStore(_ path: String) -> String {
        "\(path) contains the graphs of a coordinator: name another file."
    }

    /// - Throws: `Failure` if the store holds other graphs, or a run that was not to be resumed.
    private func check(
        _ graphCount: Int,
        _ restored: CoordinatorService.Restored
    ) throws(Failure) {
        guard let path = options.store, graphCount > 0 else { return }
        guard restored.isRun else {
            throw Failure(ExitStatus.usage, Self.foreignStore(path))
        }
        guard options.resumes else {
            throw Failure(
                ExitStatus.usage,
                "\(path) contains a run: add --resume to continue it, delete it to start anew, or "
                    + "name another file."
            )
        }
    }

    /// Takes up the operations that running operations added in previous runs.
    private func takeUpAdditions(
        _ restored: CoordinatorService.Restored,
        _ scheduler: Scheduler
    ) throws(ClientError) {
        let (id, isThere) = try restored.runGraph(
            graph.description,
            failFast: graph.compiled.failFast,
            again: options.again,
            scheduler
        )
        growing.id = id
        guard isThere else { return }
        logWriter?.resume(after: restored.attemptCounts(of: id, scheduler))
        let first = graph.description.operations.count
        let operations = restored.operations(of: id, from: first)
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

    // MARK: - Serving

    private struct Ending {
        /// The exit code of the signal that ended the run; `nil`: no signal ended it.
        var signal: Int32?
        /// What can never run here, if that ended the run.
        var deadEnd: String?
        /// Why the broker cannot be used any more, if that ended the run.
        var failure: PortError?
        /// What the store has not stored, if the run did not wait for it.
        var unstored: String?
        /// Whether the reader of the screen has read everything, and will read the report.
        var isRead = true
    }

    private func makeConfiguration(
        _ attendance: Attendance?,
        _ trust: CoordinatorTrust?,
        _ spans: (any SpanSink)?
    ) -> CoordinatorHost.Configuration {
        var configuration = CoordinatorHost.Configuration()
        configuration.trust = trust
        configuration.spans = spans
        configuration.operationsPerMessage = options.operationsPerMessage
        configuration.growthObserver = { [growing] in if $0 == growing.id { growing.append($1) } }
        configuration.observer = {
            [growing, recorder, busyWorker, screen, logWriter, shownOutput, questions, listener]
            all,
            now in
            let notices = growing.relevant(all)
            recorder.note(notices, at: now)
            listener?.note(notices, at: now)
            busyWorker.note(notices)
            screen.note(notices, at: now)
            logWriter?.note(notices)
            shownOutput?.note(notices)
            questions?.note(notices)
            attendance?.note(notices)
        }
        return configuration
    }

    /// Serves until the graph is finished, a second signal arrives, or the transport gives up.
    private func serve(_ host: CoordinatorHost, _ offer: LocalOffer?) async throws -> Ending {
        let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm)
        let interruption = Interruption(growing)
        try await host.service.prepareRun(of: growing.id)
        return try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await host.run() }
            group.addTask { await screen.run(asking: host.service) }
            group.addTask { await questions?.run(host.service) }
            group.addTask {
                for await signal in signals {
                    await interruption.received(signal, host.service, screen)
                }
            }
            group.addTask {
                guard let offer else { return }
                let sentence = try await offer.waitForDeadEnd(host.service, growing)
                await interruption.cameToDeadEnd(sentence, host.service, screen)
            }
            group.addTask {
                guard let unread = listener?.unread ?? shownOutput?.unread else { return }
                await unread.wait()
                if !Task.isCancelled { await interruption.lostReader(host.service, screen) }
            }
            group.addTask {
                try await runGraph(host, interruption)
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
                throw Failure(error, hint: "To continue, run the same command with --resume.")
            }
            ending.signal = await interruption.exitCode
            ending.unstored = await interruption.unstored
            ending.deadEnd = await interruption.deadEnd
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
                await listener?.flush()
                await shownOutput?.flush()
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
        await shownOutput?.flush()
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
    private func runGraph(_ host: CoordinatorHost, _ interruption: Interruption) async throws {
        let coordinator = host.service
        if options.brokerURL != nil {
            let connectTimeout = options.connectTimeout
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
                    try await giveUpOnStore(host, interruption)
                }
                defer { first.cancelAll() }
                try await first.next()
            }
        }
        await host.stop(.forGood(kill: interruption.killed.isOpen))
    }

    /// Returns when, after a signal, the store has accepted nothing for a while. Waiting for it
    /// could then take forever, so the run waits for nothing else.
    private func giveUpOnStore(
        _ host: CoordinatorHost,
        _ interruption: Interruption
    ) async throws {
        let coordinator = host.service
        await interruption.cancelled.wait()
        try await coordinator.waitUntilStoreIsStuck(
            for: Self.storePatience,
            refused: Self.fullStorePatience
        )
        let trouble = await coordinator.trouble ?? "The store does not answer."
        if options.brokerURL == nil {
            // The cancel orders wait for the store as well, so the workers are stopped directly.
            await host.stopOperations(within: CommandDescription.defaultGrace)
            // The last results are on their way here. A coordinator whose store takes nothing may
            // take no results either.
            await coordinator.waitUntilDecided(growing.id, within: Self.lastResultPatience)
        }
        // The run has ended in the meantime, and so has this wait.
        try Task.checkCancellation()
        let count = await coordinator.unstoredResultCount
        await interruption.giveUp(
            "\(trouble) "
                + (count == 0
                    ? "The cancel is not stored."
                    : "The cancel is not stored, nor the results of "
                        + (count == 1 ? "1 operation." : "\(count) operations."))
        )
    }

    /// How long a store may accept nothing after a signal: a slow disk answers within this time.
    private static let storePatience = Duration.seconds(5)
    /// How long results that a worker has sent may take through this process.
    private static let lastResultPatience = Duration.milliseconds(500)
    /// How long a store that reports a full disk is tried after a signal: the cancel may still fit.
    private static let fullStorePatience = Duration.seconds(2)

    private func submit(to coordinator: CoordinatorService) async throws -> GraphID {
        guard let path = options.store else {
            return await coordinator.submit(
                graph.description,
                compiled: graph.compiled,
                traceParent: Environment.traceParent(in: environment) ?? ""
            )
        }
        do throws(ClientError) {
            let plan = try await coordinator.planRun(
                graph.description,
                compiled: graph.compiled,
                again: options.again
            )
            if let continuation = plan.continuation {
                growing.stay(continuation.stayingIndices)
                let isWhole = graph.omitted.isEmpty
                let lead = plan.isEdited && isWhole ? "The graph has changed: " : ""
                let text = ContinuationText(graph.view(of: continuation), screen.style)
                screen.show(text.summary(lead))
            }
            let isResumed = !plan.isNew
            try await coordinator.takeUp(
                plan,
                traceParent: Environment.traceParent(in: environment) ?? ""
            ) { [recorder, screen] restored in
                recorder.restore(restored.now, isResumed: isResumed)
                screen.restored(restored.before, wasCancelled: restored.wasCancelled)
            }
            await questions?.askAgain(coordinator)
            return plan.graph
        } catch {
            await coordinator.shutDown()
            throw Failure(ExitStatus.failed, "\(path): \(error.message)")
        }
    }

    /// Workers answer the first message of a coordinator at once. A worker that still holds work of
    /// another run has this long to report it, before this run dispatches anything.
    private static let helloPatience = Duration.milliseconds(200)

    private static func busySentence(_ name: String) -> String {
        "Worker “\(TerminalText.line(name))” still holds operations of another run with this "
            + "prefix. It drops them when that run has their results, or when it has not heard "
            + "from that run for a minute. Try again then, use another --prefix, or stop the "
            + "worker."
    }

    /// Thrown to end the services once the work is done.
    private struct Finished: Error {
        let isRead: Bool
    }

    // MARK: - The end

    private func finish(_ ending: Ending) async throws -> Int32 {
        // No task handles signals any more, and the reader of the report may be blocked.
        OwnProcess.endAtSignals()
        let record = recorder.current
        if let failure = ending.failure, record.startedAt == nil {
            throw Failure(ExitStatus.of(failure), failure.message)
        }
        let assembly = ReportAssembly(
            graph: growing.current,
            record: record,
            slots: options.brokerURL == nil ? options.slots : record.slotsMax,
            now: SystemClock.now()
        )
        let report = assembly.report
        switch options.output {
        case .text:
            var limits = RunReport.TextLimits(
                rows: FileOutput.standardError.size()?.rows,
                logs: placeOfLogs
            )
            limits.nothingRuns = ending.unstored != nil && options.brokerURL == nil
            screen.print(report.summary(style: screen.style, limits: limits))
        case .json: report.writeJSON { FileOutput.standardOutput.write($0) }
        case .quiet: break
        }
        var code = ending.signal ?? listener?.exitCode ?? assembly.exitCode(signal: nil)
        if let deadEnd = ending.deadEnd {
            tell(Failure(ExitStatus.failed, TerminalText.line(deadEnd)))
            code = ending.signal ?? ExitStatus.failed
        }
        if let failure = ending.failure {
            tell(Failure(ExitStatus.of(failure), failure.message))
            code = listener?.failureCode ?? ExitStatus.of(failure)
        }
        if let unstored = ending.unstored { tell(Failure(code, unstored)) }
        if options.store != nil, options.output == .text, code != ExitStatus.success {
            screen.print(["To run what has not succeeded, run the same command with --resume."])
            let looksAtFiles = graph.description.operations.contains { operation in
                if case .command(let command) = operation.work {
                    command.skipsIfUpToDate
                } else {
                    false
                }
            }
            if looksAtFiles {
                // A person who knows make expects otherwise.
                screen.print([
                    "What has succeeded does not run again then, even if its files have changed. "
                        + "To look at all files again, run without --store."
                ])
            }
        }
        for problem in writeFiles(report, assembly.graph) {
            // The outcome of the run matters more than these files.
            tell(problem)
            code = code == ExitStatus.success ? ExitStatus.outputLost : code
        }
        if ending.isRead {
            await writeOutput()
        } else {
            await writeOutput(within: Self.outputPatience)
        }
        return code
    }

    /// Prints an error below everything; one of several, perhaps.
    private func tell(_ failure: Failure) {
        let report = ErrorReport(isJSON: options.output == .json)
        screen.print([String(report.text(failure).dropLast())])
    }

    /// Where the run has written the logs of operations, such as “in DIR”; `nil`: nowhere.
    private var placeOfLogs: String? {
        guard shownOutput != nil else { return options.logDirectory.map { "in \($0)" } }
        let (output, errors) = (FileOutput.standardOutput, FileOutput.standardError)
        return output.isTerminal && errors.isTerminal ? "above" : "in the standard output"
    }

    /// Writes the timeline and the report, as far as that works.
    private func writeFiles(_ report: RunReport, _ graph: LoadedGraph) -> [Failure] {
        var problems: [Failure] = []
        do {
            if let traceFile = options.traceFile { try TraceFile(report).write(to: traceFile) }
        } catch let failure as Failure {
            problems.append(failure)
        } catch {
            problems.append(Failure(ExitStatus.outputLost, "\(error)"))
        }
        guard let reportFile = options.reportFile else { return problems }
        let place = options.brokerURL == nil ? "in this process" : "over a broker"
        do throws(Failure) {
            try ReportFile(report, graph, place: place).write(to: reportFile)
        } catch {
            problems.append(error)
        }
        return problems
    }
}
