package import Logging
package import OperonCore
package import OperonModel
package import OperonPorts
import OperonWire

/// The coordinator's shell: feeds messages, commands and time to a `Scheduler`, and performs what
/// it asks for in its order. It decides nothing.
///
/// One task receives, one sends, so that a transport that takes nothing more for a while keeps
/// nobody from being heard.
package actor CoordinatorService {
    /// Called on the service, in order, with what has just happened; must return at once.
    package typealias Observer = @Sendable ([Scheduler.Notice], Timestamp) -> Void
    /// Called on the service with what a running operation added to a graph, before the observer
    /// hears of it; must return at once.
    package typealias GrowthObserver = @Sendable (GraphID, [OperationDescription]) -> Void

    var scheduler: Scheduler
    var effects = Scheduler.Effects()
    /// What additions of running operations ask for, loaded for the next step.
    var loadedOutputs: [OperationID: Payload] = [:]
    /// Those that could not be read.
    var unloadedOutputs: Set<OperationID> = []
    /// Additions of the events that are being served. Only looked up.
    var decoded: [AdditionKey: GraphDescription] = [:]
    let transport: any CoordinatorTransport
    private let observer: Observer
    let growthObserver: GrowthObserver
    let logger: Logger
    let limits: Limits
    var contents: ContentsTable
    var register = GraphRegister()
    /// Where it reads the time of everything that belongs to its graphs.
    let time: TimeSource
    let startedAt: WallTime
    /// `nil`: nothing is kept on a disk, or there is no room for it.
    let inHand: EventsInHand?
    /// What is kept on a disk; `nil`: nothing is.
    var keeping: Keeping?
    /// The worker in the same process, which leaves when this does.
    let ownWorker: Incarnation?
    /// Called at each place where a test may end the process.
    let reached: @Sendable (FailPoint) -> Void
    let commitSignal = Signal()
    let syncSignal = Signal()
    private var outbox: CoordinatorOutbox
    /// Ticks to itself that have not been sent yet.
    private var ticks: [UInt64] = []
    /// Requests of workers for outputs.
    var desk: OutputDesk
    let deskSignal = Signal()
    /// Whoever waits until everything before has been handed to the transport.
    private var sendWaiters: [Latch] = []
    private let sendSignal = Signal()
    private var alarm = Alarm<Timestamp>()
    private var dateAlarm = Alarm<WallTime>()
    private let connected = Latch()
    private(set) var hasEnded = false
    /// What the last command did; `nil`: it was refused.
    private(set) var result: Scheduler.CommandResult?
    /// Why the service cannot go on.
    var fatal: (any Error)?
    /// Names of workers that were heard of, in this life or an earlier one. Only looked up.
    var workerNames: [Incarnation: String]
    /// Beyond so many it is looked which of them nobody asks for any more.
    var workerNamesMax: Int
    /// Whoever listens to what an operation prints.
    var logListeners: [LogListener] = []
    var nextListener: UInt64 = 0
    /// The latest word of attempts that run. Only looked up.
    var progress: [OperationID: ProgressReport] = [:]
    private var finished: [GraphID: Latch] = [:]
    /// The same before that is stored.
    private var decided: [GraphID: Latch] = [:]
    /// What has ended since old graphs were looked for.
    var ended = Ended()
    /// With so much of it they are looked for again.
    var pruneAfter = Ended(graphs: .max, operations: .max, bytes: .max)
    let pruneSignal = Signal()
    /// `nil`: nobody measures.
    let meters: CoordinatorMeters?
    /// Of the attempts in flight, where somebody measures. Only looked up.
    private var grantedAt: [AttemptID: Timestamp] = [:]

    /// Operations that travel together at most, if they wait for the transport together: beyond
    /// this a message costs next to nothing more than what it carries.
    package static let defaultOperationsPerMessage = 64

    package init(
        scheduler: Scheduler,
        transport: any CoordinatorTransport,
        logger: Logger,
        operationsPerMessage: Int = defaultOperationsPerMessage,
        restored: Restored? = nil,
        ownWorker: Incarnation? = nil,
        meters: CoordinatorMeters? = nil,
        time: TimeSource = .system,
        reached: @escaping @Sendable (FailPoint) -> Void = { _ in },
        growthObserver: @escaping GrowthObserver = { _, _ in },
        observer: @escaping Observer
    ) {
        self.reached = reached
        self.time = time
        startedAt = time.wall()
        self.ownWorker = ownWorker
        self.meters = meters
        self.scheduler = scheduler
        contents =
            restored?.contents ?? ContentsTable(limits: scheduler.configuration.limits)
        register = restored?.register ?? GraphRegister()
        workerNames = restored?.workerNames ?? [:]
        workerNamesMax = scheduler.configuration.limits.storedWorkers
        inHand = restored?.store.filePath.flatMap { Self.eventsInHand(besideStore: $0, logger) }
        keeping = restored.map { Keeping(store: $0.store, lastEvent: $0.lastEvent) }
        self.transport = transport
        self.logger = logger
        self.observer = observer
        self.growthObserver = growthObserver
        limits = scheduler.configuration.limits
        outbox = CoordinatorOutbox(operationsPerMessage: operationsPerMessage)
        desk = OutputDesk(limits: scheduler.configuration.limits)
    }

    /// Serves until `shutDown` or until the transport gives up for good, which it throws.
    package func run() async throws {
        defer {
            alarm.cancel()
            dateAlarm.cancel()
            end()
        }
        let transport = transport
        // What was restored may wait for a time that comes before anything else happens.
        handle([.timeReached])
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await self.receiveAll() }
            group.addTask { await self.sendAll() }
            // Apart from the rest, which must not wait behind outputs.
            group.addTask { await self.sendOutputs() }
            group.addTask { await self.commitAll() }
            group.addTask { await self.syncAll() }
            defer { group.cancelAll() }
            // Not one of the group: its events end before it says why, and that must not be lost.
            try await transport.run()
        }
        if let fatal { throw fatal }
    }

    /// Nothing can be kept any more: whoever holds this service ends, and recovery takes over.
    func fail(_ error: any Error) async {
        fatal = fatal ?? error
        failKeeping(error)
        await transport.close()
    }

    // MARK: - Commands

    /// Takes a graph that was compiled from this description.
    ///
    /// - Parameter outputs: of other graphs, which it asks for.
    package func submit(
        _ graph: GraphDescription,
        compiled: CompiledGraph,
        traceParent: String = "",
        kept: StoredContents? = nil,
        outputs: [OperationID: Payload] = [:]
    ) -> GraphID {
        let id = GraphID(rawValue: UInt32(scheduler.graphCount))
        contents.append(contents(of: graph, kept))
        contents[contents.count - 1].traceParent = kept?.traceParent ?? traceParent
        if keeping == nil { contents[contents.count - 1].keepSpareOutputs() }
        contents.began(id)
        keep(outputs)
        register.append(
            GraphRegister.Entry(
                name: graph.name,
                submitter: kept?.submitter ?? "",
                submittedAt: time.wall(),
                isOpen: kept?.isOpen ?? false
            )
        )
        reportSubmission(
            of: id,
            operations: graph.operations.count,
            by: kept?.submitter ?? ""
        )
        if var kept {
            kept.graph = id
            keeping?.submitted.append(kept)
        }
        handle([.graphSubmitted(compiled, isOpen: kept?.isOpen ?? false)])
        if graph.operations.count >= HeapMemory.largeGraph { HeapMemory.giveBackSoon() }
        return id
    }

    /// What is kept as bytes is kept in memory as the same bytes.
    private func contents(of graph: GraphDescription, _ kept: StoredContents?) -> GraphContents {
        var stored = StoredOperations()
        guard let kept, keeping != nil else { return GraphContents(graph, limits: limits) }
        do throws(WireError) {
            try stored.append(kept.body)
        } catch {
            // Its restart would fail, but its run need not.
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

    /// Cancels, suspends, sets a limit or a priority. The first refusal is thrown.
    package func command(_ event: Scheduler.Event) throws(Refusal) {
        if let refusal = handle([event]) { throw refusal }
    }

    /// Returns when the transport has been up once.
    ///
    /// - Throws: `PortError.unreachable` after `timeout`.
    package func waitUntilConnected(within timeout: Duration) async throws {
        await connected.wait(within: timeout)
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

    /// Returns when every operation of the graph has its outcome, whether or not a store has taken
    /// that, or when the service has ended, or after this time.
    package func waitUntilDecided(_ graph: GraphID, within limit: Duration) async {
        guard !scheduler.isFinished(graph), !hasEnded else { return }
        let latch = decided[graph] ?? Latch()
        decided[graph] = latch
        await latch.wait(within: limit)
    }

    /// Gives the workers the last word on what they reported, and ends `run`. What the broker does
    /// not take within a few seconds is given up; in haste, within one.
    ///
    /// - Parameter kill: have the workers end what runs.
    package func shutDown(kill: Bool = false, inHaste: Bool = false) async {
        guard !hasEnded else { return }
        handle([.shutdownRequested(kill: kill)])
        let patience = kill || inHaste ? Self.killPatience : Self.shutdownPatience
        // The last words wait for the disk as well.
        await durable(within: patience)
        let handedOver = Latch()
        sendWaiters.append(handedOver)
        sendSignal.raise()
        await handedOver.wait(within: patience)
        await transport.close()
        end()
    }

    /// How long the last words may wait for a broker that takes nothing: workers that miss them
    /// hold their results for a minute longer.
    private static let shutdownPatience = Duration.seconds(5)
    private static let killPatience = Duration.seconds(1)

    /// What has no outcome by now gets none here: nobody shall wait for it.
    private func end() {
        hasEnded = true
        failKeeping(CancellationError())
        for listener in logListeners { listener.queue.finish() }
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

    // MARK: - Input

    private nonisolated func receiveAll() async {
        for await batch in transport.events {
            var events: [Scheduler.Event] = []
            events.reserveCapacity(batch.count)
            for event in batch {
                if let event = await translate(event) { events.append(event) }
            }
            for group in await vetted(events) { await receive(group) }
        }
    }

    private nonisolated func receive(_ events: [Scheduler.Event]) async {
        // What was said before a request decides whose the attempt is that asks.
        var rest = events[...]
        while let place = rest.firstIndex(where: \.hasRequests) {
            if rest.startIndex < place { await handle(Array(rest[..<place])) }
            let request = [rest[place]]
            await serve(request)
            rest = rest[(place + 1)...]
        }
        if !rest.isEmpty { await handle(Array(rest)) }
    }

    private nonisolated func translate(
        _ event: CoordinatorTransportEvent
    ) async -> Scheduler.Event? {
        switch event {
        case .up: return .transportUp
        case .down(let reason):
            logger.warning("connection lost", metadata: ["reason": "\(reason)"])
            return .transportDown
        case .message(let bytes):
            do throws(WireError) {
                return .workerMessage(try Wire.decodeWorker(bytes, limits: limits))
            } catch {
                await countUndecodable(error)
                return nil
            }
        case .envelope(let envelope): return .workerMessage(envelope)
        case .returned(let address): return .addressReturned(address)
        case .blocked(let isBlocked, let reason):
            logger.warning(
                isBlocked ? "the broker takes nothing more" : "the broker goes on",
                metadata: ["reason": "\(reason)"]
            )
            return nil
        }
    }

    private func countUndecodable(_ error: WireError) {
        meters?.countUndecodable()
        logger.error("message dropped", metadata: ["reason": "\(error)"])
    }

    private func wake() {
        alarm.rang()
        handle([.timeReached])
    }

    private func dateCame() {
        dateAlarm.rang()
        handle([.timeReached])
    }

    // MARK: - Effects

    /// While nothing can be kept nobody new is welcomed: the name of each would wait for the store.
    /// A worker says hello again with every beat until it is welcomed.
    private func mustWaitForStore(_ event: Scheduler.Event) -> Bool {
        guard keeping?.trouble != nil, case .workerMessage(let envelope) = event,
            case .hello = envelope.body
        else { return false }
        return !scheduler.knows(envelope.sender.incarnation)
    }

    /// The first refusal among what follows from the events, if any. Its records are kept before
    /// anything else of it is done.
    ///
    /// What waits is handled together and its effects are performed together, in their order: one
    /// message for many operations, and one call of the observer.
    @discardableResult
    func handle(_ events: [Scheduler.Event]) -> Refusal? {
        var refusal: Refusal?
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
                scheduler.handle(event, at: now, into: &effects)
                judgeRequests(at: now)
            }
            refusal = refusal ?? effects.refusals.first
            result = effects.results.last
            wakeAt = effects.wakeAt
            nextDate = effects.nextDate
            keepOutputs()
            pending = []
            if keeping == nil {
                perform(effects, at: now.monotonic, unsendable: &pending)
            } else {
                reached(.decided)
                let taken = effects
                effects = Scheduler.Effects()
                if let free = keep(taken, at: now) {
                    perform(free, at: now.monotonic, unsendable: &pending)
                }
            }
        }
        putDown()
        alarm.set(wakeAt, sleep: time.sleep) { [weak self] in await self?.wake() }
        dateAlarm.set(nextDate, sleep: time.sleepUntilDate) { [weak self] in
            await self?.dateCame()
        }
        raiseSignals()
        return refusal
    }

    private func raiseSignals() {
        if !outbox.isEmpty || !ticks.isEmpty { sendSignal.raise() }
        if !desk.isEmpty { deskSignal.raise() }
    }

    /// What follows from effects whose records are kept.
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
        for order in effects.fetches { desk.take(order) }
        finishNotices(effects.notices, at: now)
    }

    /// Before messages: a dependent that is released by the same event finds its input. What
    /// nobody will ask for any more is dropped.
    private func keepOutputs() {
        for notice in effects.notices {
            switch notice {
            case .result(let operation, _, let result):
                contents[Int(operation.graph.rawValue)].keep(result.output, of: operation.index)
                ended.bytes += result.output.bytes.count + result.logTail.count
            case .finished(let operation, _):
                contents.finished(operation)
                progress[operation] = nil
            case .attemptEnded(let operation, _, _, _, _): progress[operation] = nil
            case .progress(let report): progress[report.held.operation] = report
            case .graphFinished(let graph):
                register.finished(graph, at: time.wall())
                decided.removeValue(forKey: graph)?.open()
            case .workerLost(let worker): desk.forget(worker.incarnation)
            case .operationsAdded, .ready, .granted, .started, .resumed, .yielded, .wentOn,
                .retry, .workerJoined, .workerDraining,
                .workerBusy, .graphClosedIdle, .superseded, .eventRefused, .log:
                continue
            }
        }
    }

    private func finishNotices(_ notices: [Scheduler.Notice], at now: Timestamp) {
        guard !notices.isEmpty else { return }
        observer(notices, now)
        meters?.note(notices, at: now, grantedAt: &grantedAt)
        report(notices)
        for notice in notices {
            switch notice {
            case .graphFinished(let graph):
                finished.removeValue(forKey: graph)?.open()
                noteEnded(graph)
            case .finished(let operation, _): endListening(to: operation)
            case .workerJoined(let worker, _, _): workerNames[worker.incarnation] = worker.name
            case .log(let chunk): tell(chunk)
            case .superseded(let epoch):
                // What this one decides counts no more: it must not go on beside the other.
                let why = "A newer coordinator rules (epoch \(epoch)): this one ends."
                Task { await fail(PortError(.prefixHeld, why)) }
            default: continue
            }
        }
    }

    /// An operation that no message can carry fails, by an event that is added to `unsendable`.
    private func enqueue(_ message: Scheduler.Message, unsendable: inout [Scheduler.Event]) {
        var priority: UInt8 = QueuePriority.veryHigh.level
        let body: CoordinatorMessage
        switch message.body {
        case .plain(let plain): body = named(plain)
        case .dispatch(let acknowledged, let grants):
            var operations: [DispatchedOperation] = []
            operations.reserveCapacity(grants.count)
            priority = grants.map(\.priority.level).max() ?? priority
            for grant in grants {
                let operation = contents.dispatched(grant)
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
        let envelope = CoordinatorEnvelope(
            reign: scheduler.reign,
            epoch: scheduler.epoch,
            sequence: message.sequence,
            sender: .none,
            body: body
        )
        switch message.destination {
        case .everyWorker: outbox.append(envelope, to: .everyWorker, priority: priority)
        case .worker(let address):
            outbox.append(envelope, to: .worker(address), priority: priority)
        }
    }

    // MARK: - Output

    private func takeOutbox() -> ([CoordinatorOutbox.Item], [Latch]) {
        defer { sendWaiters = [] }
        return (outbox.take(), sendWaiters)
    }

    private func takeTicks() -> [UInt64] {
        defer { ticks = [] }
        return ticks
    }

    private nonisolated func sendAll() async {
        for await _ in sendSignal.raised {
            let (items, waiters) = await takeOutbox()
            for item in items {
                reached(.beforeSend)
                await send(item)
                reached(.afterSend)
            }
            for tick in await takeTicks() { await send(tick) }
            for waiter in waiters { waiter.open() }
        }
        // Nobody sends any more; nobody shall wait for it either.
        let (_, waiters) = await takeOutbox()
        for waiter in waiters { waiter.open() }
    }
}
