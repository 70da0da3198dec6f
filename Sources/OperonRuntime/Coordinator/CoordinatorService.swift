package import Logging
package import OperonCore
package import OperonModel
package import OperonPorts
import OperonSystem
import OperonWire

/// The coordinator's shell: feeds messages, commands and time to a `Scheduler`, and performs the
/// effects that the scheduler returns, in their order. It decides nothing.
///
/// One task receives and another one sends, so that a stalled transport does not keep incoming
/// messages waiting.
package actor CoordinatorService {
    /// Called on the service, in order, with the latest notices; must return at once.
    package typealias Observer = @Sendable ([Scheduler.Notice], Timestamp) -> Void
    /// Called on the service with the operations that a running operation added to a graph, before
    /// the observer gets the notices of it; must return at once.
    package typealias GrowthObserver = @Sendable (GraphID, [OperationDescription]) -> Void

    var scheduler: Scheduler
    var effects = Scheduler.Effects()
    let transport: any CoordinatorTransport
    /// `nil`: messages are sent in clear, because nobody can be in between or because the user
    /// wants that.
    let seals: CoordinatorSealBox?
    private let observer: Observer
    let growthObserver: GrowthObserver
    let logger: Logger
    nonisolated let connectionLog = ConnectionLog()
    let undecodable = FaultLog<WireError.Code>()
    nonisolated let refusals = FaultLog<WorkerRefusal>()
    let limits: Limits
    var catalog: GraphCatalog
    var triggering: TriggerShell
    /// The clock for everything that concerns its graphs.
    let time: TimeSource
    /// The clock for what concerns this process: when to write, to show and to give up. A program
    /// that moves the clock of its graphs does not move this one.
    let machineTime: TimeSource
    /// A rule that is broken on purpose, which the simulator must notice.
    let violation: ShellViolation?
    let startedAt: WallTime
    /// `nil`: the coordinator has no store on a disk, or the file cannot be made.
    let inHand: EventsInHand?
    /// The state of a coordinator with a store; `nil`: there is no store.
    var keeping: Keeping?
    /// The worker in this process, which leaves when the coordinator ends.
    let ownWorker: Incarnation?
    /// Called at each crash point, where a test may end the process.
    let passed: @Sendable (CrashPoint) -> Void
    let commitSignal = Signal()
    let syncSignal = Signal()
    /// What readers of events have in common.
    nonisolated let feed = EventFeed()
    private var outbox: CoordinatorOutbox
    /// Ticks that the coordinator has still to send to itself.
    private var ticks: [UInt64] = []
    /// Requests from workers for outputs.
    var outputServer: OutputServer
    let outputSignal = Signal()
    /// Callers that wait until all earlier messages have been handed to the transport.
    private var sendWaiters: [Latch] = []
    let sendSignal = Signal()
    private var alarm = Alarm<Timestamp>()
    private var dateAlarm = Alarm<WallTime>()
    let connected = Latch()
    private(set) var hasEnded = false
    /// The result of the last command; `nil`: it was refused.
    var result: Scheduler.CommandResult?
    /// Why the service cannot go on.
    var fatal: (any Error)?
    /// Names of all workers that this or an earlier run of the coordinator knew. Only looked up.
    var workerNames: [Incarnation: String]
    /// With more names than this, the store is asked which of them are still needed.
    var workerNamesMax: Int
    /// What attempts in flight have printed.
    var liveLogs: LiveLogs
    /// The readers that follow logs.
    var logListeners: [LogListener] = []
    var nextListener: UInt64 = 0
    /// One for each graph whose progress somebody watches. Only looked up.
    var progressFeeds: [GraphID: ProgressFeed] = [:]
    /// The least time between two counts of a graph that somebody watches.
    var progressPace = ProgressFeed.defaultPace
    /// Nobody watches the cluster: `nil`.
    var statusFeed: StatusFeed?
    let statusPace = StatusFeed.defaultPace
    /// The latest progress of running operations. Only looked up.
    var progress: [OperationID: ProgressReport] = [:]
    private var finished: [GraphID: Latch] = [:]
    /// The same, released as soon as the outcomes are decided, before they are stored.
    private var decided: [GraphID: Latch] = [:]
    /// What has finished since the last check for graphs to drop.
    var ended = Ended()
    /// With this much of it, graphs to drop are looked for again.
    var pruneAfter = Ended(graphs: .max, operations: .max, bytes: .max)
    let pruneSignal = Signal()
    /// `nil`: nothing is measured.
    let meters: CoordinatorMeters?
    /// Empty if nothing is measured.
    var latency = CoordinatorLatency()
    /// `nil`: no spans are recorded.
    var spans: CoordinatorSpans?

    /// The most operations that travel in one message if they wait for the transport together.
    /// Beyond this number the fixed cost of a message is negligible.
    package static let defaultOperationsPerMessage = 64

    package init(
        scheduler: Scheduler,
        transport: any CoordinatorTransport,
        logger: Logger,
        operationsPerMessage: Int = defaultOperationsPerMessage,
        restored: Restored? = nil,
        triggers: TriggerSupport? = nil,
        ownWorker: Incarnation? = nil,
        trust: CoordinatorTrust? = nil,
        meters: CoordinatorMeters? = nil,
        spans: (any SpanSink)? = nil,
        time: TimeSource = .system,
        machineTime: TimeSource = .system,
        violation: ShellViolation? = nil,
        boundsOfSubmitter: @escaping @Sendable (String) -> SubmitterBounds = { _ in .none },
        passed: @escaping @Sendable (CrashPoint) -> Void = { _ in },
        growthObserver: @escaping GrowthObserver = { _, _ in },
        observer: @escaping Observer
    ) {
        self.passed = passed
        self.time = time
        self.machineTime = machineTime
        self.violation = violation
        startedAt = time.wall()
        self.ownWorker = ownWorker
        self.meters = meters
        self.spans = spans.map { CoordinatorSpans($0, scheduler.reign, startedAt: time.now()) }
        self.scheduler = scheduler
        let limits = scheduler.configuration.limits
        self.limits = limits
        catalog = restored?.catalog ?? GraphCatalog(limits: limits, hasStore: false)
        catalog.boundsOfSubmitter = boundsOfSubmitter
        triggering = restored?.triggers ?? TriggerShell(triggers)
        workerNames = restored?.workerNames ?? [:]
        workerNamesMax = scheduler.configuration.limits.storedWorkers
        inHand = restored?.store.filePath.flatMap { Self.eventsInHand(besideStore: $0, logger) }
        keeping = restored.map { Keeping(store: $0.store, lastEvent: $0.lastEvent) }
        self.transport = transport
        seals = trust.map { trust in
            CoordinatorSealBox(trust, reign: scheduler.reign, epoch: scheduler.epoch)
        }
        self.logger = logger
        self.observer = observer
        self.growthObserver = growthObserver
        liveLogs = LiveLogs(
            logBytes: limits.logBytes * Self.liveLogFactor,
            bytesMax: Self.liveLogBytes
        )
        outbox = CoordinatorOutbox(operationsPerMessage: operationsPerMessage)
        outputServer = OutputServer(limits: scheduler.configuration.limits)
    }

    /// Serves until `shutDown`, or until the transport fails for good; then throws its error.
    package func run() async throws {
        defer {
            alarm.cancel()
            dateAlarm.cancel()
            triggering.alarm.cancel()
            triggering.dateAlarm.cancel()
            end()
        }
        let transport = transport
        // Restored operations may wait for a time that comes before any other event.
        handle([.timeReached])
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await self.receiveAll() }
            group.addTask { await self.sendAll() }
            // In a task of its own, so that other messages do not wait behind outputs.
            group.addTask { await self.sendOutputs() }
            group.addTask { await self.commitAll() }
            group.addTask { await self.syncAll() }
            defer { group.cancelAll() }
            // Not in the group: its events end before it throws, and its error must not be lost.
            try await transport.run()
        }
        if let fatal { throw fatal }
    }

    /// Stops the service, which cannot store anything any more; its owner ends and starts recovery.
    func fail(_ error: any Error) async {
        fatal = fatal ?? error
        failKeeping(error)
        await transport.close()
    }

    // MARK: - Commands

    /// Submits a graph that was compiled from this description.
    ///
    /// - Parameters:
    ///   - outputs: Outputs of other graphs that its operations take.
    ///   - firing: The firing of a trigger that submits it; stored in the same step.
    package func submit(
        _ graph: GraphDescription,
        compiled: CompiledGraph,
        traceParent: String = "",
        kept: StoredContents? = nil,
        outputs: [OperationID: Payload] = [:],
        for firing: FiringID? = nil
    ) -> GraphID {
        let id = GraphID(rawValue: UInt32(scheduler.graphCount))
        let now = time.wall()
        var kept = kept
        let trace = self.traceParent(given: kept?.traceParent ?? traceParent)
        kept?.traceParent = trace
        var contents = contents(of: graph, kept)
        contents.traceParent = trace
        let submission = GraphCatalog.Submission(
            submitter: kept?.submitter ?? "",
            submittedAt: now
        )
        catalog.append(graph.name, contents, submission)
        catalog.began(id)
        catalog.keep(outputs)
        reportSubmission(
            of: id,
            operations: graph.operations.count,
            by: kept?.submitter ?? ""
        )
        if var kept {
            kept.graph = id
            keeping?.submitted.append(kept)
        }
        if let firing { attach(trigger: .submitted(firing, id)) }
        handle(
            [.graphSubmitted(compiled, isOpen: kept?.isOpen ?? false)],
            by: kept?.submitter ?? ""
        )
        if graph.operations.count >= HeapMemory.largeGraph { HeapMemory.giveBackSoon() }
        recordSubmission(of: id, at: now)
        return id
    }

    /// A graph that is stored as bytes is kept in memory as the same bytes.
    private func contents(of graph: GraphDescription, _ kept: StoredContents?) -> GraphContents {
        var stored = StoredOperations()
        guard let kept, keeping != nil else { return GraphContents(graph, limits: limits) }
        do throws(WireError) {
            try stored.append(kept.body)
        } catch {
            // Restoring the graph would fail, but it can still run now.
            logger.error("bytes to keep cannot be read", metadata: ["reason": "\(error)"])
            return GraphContents(graph, limits: limits)
        }
        let wanting = graph.operations.indices.filter { graph.operations[$0].wantsInputs }
        return GraphContents(
            name: graph.name,
            stored: stored,
            wanting: wanting.map { UInt32($0) },
            limits: limits
        )
    }

    /// Cancels, suspends, sets a limit or a priority. Throws the first refusal.
    package func command(_ event: Scheduler.Event) throws(Refusal) {
        if let refusal = handle([event]) { throw worded(refusal) }
    }

    /// Returns once the transport has been connected.
    ///
    /// - Throws: `PortError.unreachable` after `timeout`.
    package func waitUntilConnected(within timeout: Duration) async throws {
        await connected.wait(within: timeout, by: machineTime)
        try Task.checkCancellation()
        guard connected.isOpen else {
            throw PortError(
                .unreachable,
                "The broker could not be reached within \(timeout.seconds) s."
            )
        }
    }

    /// Returns when every operation of the graph has its outcome, or when the service has ended.
    package func waitUntilFinished(_ graph: GraphID) async {
        guard !scheduler.isFinished(graph), !hasEnded else { return }
        let latch = finished[graph] ?? Latch()
        finished[graph] = latch
        await latch.wait()
    }

    /// Returns when every operation of the graph has its outcome, stored or not, or when the
    /// service has ended, or after this time.
    package func waitUntilDecided(_ graph: GraphID, within limit: Duration) async {
        guard !scheduler.isFinished(graph), !hasEnded else { return }
        let latch = decided[graph] ?? Latch()
        decided[graph] = latch
        await latch.wait(within: limit, by: machineTime)
    }

    /// Sends the workers the last acknowledgements of their reports, then ends `run`. Gives up what
    /// the broker does not take within 5 s, or within 1 s with `kill` or in haste.
    ///
    /// - Parameter kill: Has the workers kill what runs.
    package func shutDown(kill: Bool = false, inHaste: Bool = false) async {
        guard !hasEnded else { return }
        handle([.shutdownRequested(kill: kill)])
        let patience = kill || inHaste ? Self.killPatience : Self.shutdownPatience
        // The last messages wait for the disk, too.
        await durable(within: patience)
        let handedOver = Latch()
        sendWaiters.append(handedOver)
        sendSignal.raise()
        await handedOver.wait(within: patience, by: machineTime)
        await transport.close()
        end()
    }

    /// How long the last messages may wait for a broker that takes nothing. Workers that miss them
    /// hold their results for a minute longer.
    private static let shutdownPatience = Duration.seconds(5)
    private static let killPatience = Duration.seconds(1)

    /// Releases everyone who waits: operations without an outcome get none here any more.
    private func end() {
        hasEnded = true
        failKeeping(CancellationError())
        for listener in logListeners { listener.signal.finish() }
        logListeners = []
        for graph in finished.keys.sorted() { finished[graph]?.open() }
        finished = [:]
        for graph in decided.keys.sorted() { decided[graph]?.open() }
        decided = [:]
    }

    /// Asks the scheduler something; changes nothing.
    package func query<Answer: Sendable>(_ question: (Scheduler) -> Answer) -> Answer {
        question(scheduler)
    }

    // MARK: - Time

    private func wake() {
        alarm.rang()
        handle([.timeReached])
    }

    private func dateCame() {
        dateAlarm.rang()
        handle([.timeReached])
    }

    // MARK: - Effects

    /// While the store cannot write, no new worker is welcomed, because its name could not be
    /// stored. A worker repeats its hello with every beat until it is welcomed.
    private func mustWaitForStore(_ event: Scheduler.Event) -> Bool {
        guard keeping?.trouble != nil, case .workerMessage(let envelope) = event,
            case .hello = envelope.body
        else { return false }
        return !scheduler.knows(envelope.sender.incarnation)
    }

    /// Handles events and everything that follows from them; returns the first refusal, if any.
    /// Records are stored before any other effect is performed.
    ///
    /// Waiting events are handled together, and their effects are performed together, in order:
    /// that gives one message for many operations, and one call of the observer.
    ///
    /// - Parameter caller: The name of the client whose commands the events are; empty: the client
    ///   has none, or they are no commands.
    @discardableResult
    func handle(_ events: [Scheduler.Event], by caller: String = "") -> NumberedRefusal? {
        var refusal: NumberedRefusal?
        var wakeAt: Timestamp?
        var nextDate: WallTime?
        var pending = events.filter { !mustWaitForStore($0) }
        guard !pending.isEmpty else { return nil }
        while !pending.isEmpty {
            effects.removeAll()
            let now = Moment(monotonic: time.now(), wall: time.wall())
            for event in pending {
                if case .transportUp = event { connected.open() }
                take(event)
                scheduler.handle(event, by: caller, at: now, resolving: &catalog, into: &effects)
            }
            for addition in catalog.takeAdded() {
                if violation != .storesNoAdditions { keeping?.submitted.append(addition.kept) }
                growthObserver(addition.kept.graph, addition.operations)
            }
            refusal = refusal ?? effects.refusals.first
            result = effects.results.last
            wakeAt = effects.wakeAt
            nextDate = effects.nextDate
            keepOutputs(at: now.wall)
            pending = []
            if keeping == nil {
                perform(effects, at: now.monotonic, unsendable: &pending)
            } else {
                passed(.decided)
                var taken = effects
                effects = Scheduler.Effects()
                if violation == .sendsBeforeCommit {
                    for message in taken.messages { enqueue(message, unsendable: &pending) }
                    taken.messages = []
                }
                if let free = keep(taken, at: now) {
                    perform(free, at: now.monotonic, unsendable: &pending)
                }
            }
        }
        putDown()
        performTriggers()
        alarm.set(wakeAt, sleep: time.sleep) { [weak self] in await self?.wake() }
        dateAlarm.set(nextDate, sleep: time.sleepUntilDate) { [weak self] in
            await self?.dateCame()
        }
        raiseSignals()
        return refusal
    }

    private func raiseSignals() {
        if !outbox.isEmpty || !ticks.isEmpty { sendSignal.raise() }
        if !outputServer.isEmpty { outputSignal.raise() }
    }

    /// Performs effects whose records are stored.
    func perform(_ steps: [Scheduler.Effects], _ messages: [Scheduler.Message]) {
        var unsendable: [Scheduler.Event] = []
        let now = time.now()
        for step in steps { perform(step, at: now, unsendable: &unsendable) }
        for message in messages { enqueue(message, unsendable: &unsendable) }
        if unsendable.isEmpty { raiseSignals() } else { handle(unsendable) }
    }

    private func perform(
        _ effects: Scheduler.Effects,
        at now: Timestamp,
        unsendable: inout [Scheduler.Event]
    ) {
        for message in effects.messages { enqueue(message, unsendable: &unsendable) }
        ticks += effects.ticks
        for order in effects.fetches { outputServer.take(order) }
        finishNotices(effects.notices, at: now)
    }

    /// Keeps outputs before messages are made, so that a dependent that the same event releases
    /// finds its input. Drops outputs that no operation will ask for any more.
    private func keepOutputs(at now: WallTime) {
        for notice in effects.notices {
            switch notice {
            case .result(let operation, _, let result):
                if violation != .forgetsOutputs {
                    catalog[operation.graph].keep(result.output, of: operation.index)
                }
                ended.bytes += result.output.bytes.count + result.log.count
            case .finished(let operation, _):
                catalog.finished(operation, at: now)
                progress[operation] = nil
            case .rangeFinished(let operations, _):
                // None of them has an attempt, which alone reports progress.
                catalog.finished(operations, at: now)
            case .attemptEnded(let operation, _, _, _, _): progress[operation] = nil
            case .progress(let report): progress[report.held.operation] = report
            case .graphFinished(let graph):
                catalog.finished(graph, at: now)
                decided.removeValue(forKey: graph)?.open()
                noteForTriggers(endOf: graph)
            case .workerLost(let worker): outputServer.forget(worker.incarnation)
            case .operationsAdded, .ready, .granted, .started, .resumed, .yielded, .waitEnded,
                .retry, .workerJoined, .workerDraining,
                .workerBusy, .graphClosedIdle, .superseded, .eventRefused, .log,
                .watched:
                continue
            }
        }
    }

    private func finishNotices(_ notices: [Scheduler.Notice], at now: Timestamp) {
        guard !notices.isEmpty else { return }
        observer(notices, now)
        spans?.note(notices, spanState(at: now))
        let isLogged = logger.logLevel <= .info
        // Taken out for the loop, so that each change is one in place and nothing is copied each
        // time.
        var measured = latency
        latency = CoordinatorLatency()
        let meters = meters
        // The attempt whose result had a log; its end is the next notice about it.
        var logged: AttemptID?
        for notice in notices {
            meters?.note(notice, at: now, &measured)
            if isLogged { report(notice) }
            switch notice {
            case .graphFinished(let graph):
                if violation != .forgetsWaiters { finished.removeValue(forKey: graph)?.open() }
                noteEnded(graph)
                noteOver { $0 == .graph(graph) }
            case .result(_, let attempt, let result):
                if !result.log.isEmpty { logged = attempt }
            case .attemptEnded(let operation, let attempt, _, _, _):
                endLog(of: attempt, operation, isStored: logged == attempt)
            case .finished(let operation, _): noteOver { $0 == .operation(operation) }
            case .rangeFinished(let operations, _): noteOver { $0.isOne(of: operations) }
            case .workerJoined(let worker, _, _):
                workerNames[worker.incarnation] = worker.name
                noteWatchers()
            case .log(let chunk): keep(chunk)
            case .watched(let worker, let reports): note(reports, of: worker)
            case .workerLost, .workerDraining: noteWatchers()
            case .superseded(let epoch):
                // The decisions of this coordinator do not count any more: it must not run beside
                // the newer one.
                let why = "A newer coordinator rules (epoch \(epoch)): this one ends."
                Task { await fail(PortError(.prefixHeld, why)) }
            default: continue
            }
        }
        latency = measured
    }

    /// Queues a message. If no message can carry an operation, that operation fails, by an event
    /// that is added to `unsendable`.
    private func enqueue(_ message: Scheduler.Message, unsendable: inout [Scheduler.Event]) {
        var priority: UInt8 = QueuePriority.veryHigh.level
        let body: CoordinatorMessage
        switch message.body {
        case .plain(.control(var control)):
            control.verdicts = message.verdicts.map { $0.mapRefusal(worded) }
            body = .control(control)
        case .plain(let plain): body = plain
        case .dispatch(let acknowledged, let grants):
            var operations: [DispatchedOperation] = []
            operations.reserveCapacity(grants.count)
            priority = grants.map(\.priority.level).max() ?? priority
            for grant in grants {
                var operation = catalog.dispatched(grant)
                let id = grant.held.operation
                if violation == .mixesUpInputs, operation.inputs.count > 1 {
                    operation.inputs[0].output = operation.inputs[1].output
                }
                let own = operation.traceParent
                if let parent = spans?.traceParent(of: id, round: scheduler.round(of: id), in: own)
                {
                    operation.traceParent = parent
                }
                let bytes = operation.inputs.reduce(0) { $0 + $1.byteCount }
                if operation.work.isUnreadable {
                    let why = "what was kept of it makes no sense"
                    unsendable.append(.attemptUnsendable(grant.held, .undecodable(why)))
                } else if bytes <= limits.inputsBytes {
                    operations.append(operation)
                } else {
                    let error = OperationError.inputTooLarge(
                        bytes: bytes,
                        limit: limits.inputsBytes
                    )
                    unsendable.append(.attemptUnsendable(grant.held, error))
                }
            }
            guard !operations.isEmpty else { return }
            body = .dispatch(Dispatch(acknowledged: acknowledged, operations: operations))
        }
        let envelope = envelope(body, sequence: message.sequence)
        switch message.destination {
        case .everyWorker: outbox.append(envelope, to: .everyWorker, priority: priority)
        case .worker(let address):
            outbox.append(envelope, to: .worker(address), priority: priority)
        }
    }

    /// Queues a message without a number, behind those that wait for this worker.
    func post(_ body: CoordinatorMessage, to address: WorkerAddress) {
        let envelope = envelope(body, sequence: 0)
        outbox.append(envelope, to: .worker(address), priority: QueuePriority.veryHigh.level)
        sendSignal.raise()
    }

    /// A message of this coordinator.
    func envelope(_ body: CoordinatorMessage, sequence: UInt64) -> CoordinatorEnvelope {
        CoordinatorEnvelope(
            reign: scheduler.reign,
            epoch: scheduler.epoch,
            sequence: sequence,
            sender: .none,
            body: body
        )
    }

    // MARK: - Output

    func takeOutbox() -> ([CoordinatorOutbox.Item], [Latch]) {
        defer { sendWaiters = [] }
        let items = outbox.take()
        return (violation == .sendsOutOfOrder ? items.reversed() : items, sendWaiters)
    }

    func takeTicks() -> [UInt64] {
        defer { ticks = [] }
        return ticks
    }
}
