import DequeModule
package import Logging
package import OperonCore
import OperonModel
package import OperonPorts
import OperonSystem
import OperonTrust
import OperonWire
import Synchronization

/// The worker's shell: feeds messages, ends of operations and time to a `WorkerAgent`, and performs
/// the effects that the agent returns. It decides nothing.
///
/// It uses a lock instead of an actor, so that the thread on which an operation ends starts the
/// next one itself: waking another thread costs more than most of the work for a short operation.
package final class WorkerService: Sendable {
    /// Called under the service's lock, in order; must return at once, and not call the service.
    package typealias Observer = @Sendable ([WorkerAgent.Notice]) -> Void
    /// Called for changes of the connection, but not for messages; must return at once.
    package typealias LinkObserver = @Sendable (WorkerTransportEvent) -> Void

    private typealias Answer = WorkerAgent.RequestAnswer.Content

    private struct State {
        var agent: WorkerAgent
        var effects = WorkerAgent.Effects()
        var outbox: WorkerOutbox
        var alarm = Alarm<Timestamp>()
        /// The continuations that wait for answers to operations' requests. Only looked up.
        var asking: [UInt64: CheckedContinuation<Answer, Never>] = [:]
        var lastRequest: UInt64 = 0
        var hasEnded = false
        var isLeaving = false
        /// Why the coordinator will never accept this worker.
        var refusal: String?
    }

    /// Everything that runs under this lock returns at once.
    private let state: Mutex<State>
    private let transport: any WorkerTransport
    /// `nil`: messages are sent in clear.
    private let seals: WorkerSealBox?
    private let executor: OperationExecutor
    /// `nil`: this worker watches nothing.
    private let sources: WorkerSources?
    private let observer: Observer
    private let linkObserver: LinkObserver
    private let logger: Logger
    private let connectionLog = ConnectionLog()
    private let undecodable = FaultLog<WireError.Code>()
    private let limits: Limits
    private let sendSignal = Signal()
    private let leaving = Latch()
    /// Opened when it drains or was stopped, and no operation runs any more.
    private let idleForGood = Latch()
    /// Opened when all messages to be sent before leaving have been handed to the transport.
    private let handedOver = Latch()

    package init(
        agent: WorkerAgent,
        transport: any WorkerTransport,
        seals: WorkerSealBox? = nil,
        processes: ProcessRunner,
        kinds: RegisteredKinds = .none,
        sources: (any TriggerSourceProvider)? = nil,
        spans: (any SpanSink)? = nil,
        logger: Logger,
        linkObserver: @escaping LinkObserver = { _ in },
        observer: @escaping Observer = { _ in }
    ) {
        let outbox = WorkerOutbox(agent.configuration)
        state = Mutex(State(agent: agent, outbox: outbox))
        self.transport = transport
        self.seals = seals
        self.logger = logger
        self.observer = observer
        self.linkObserver = linkObserver
        limits = agent.configuration.limits
        self.sources = sources.map { WorkerSources($0) }
        executor = OperationExecutor(
            processes: processes,
            kinds: kinds,
            limits: agent.configuration.limits,
            trace: OperationTrace(spans)
        )
    }

    /// Serves until it has drained or was stopped, or until the transport fails for good; then
    /// throws its error. Ends every process it started.
    package func run() async throws {
        let executor = executor
        executor.serve { [weak self] attempt, content in
            await self?.ask(content, of: attempt) ?? .ended
        } ended: { [weak self] attempt, result in
            self?.handle([.ended(attempt, result)])
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await self.receiveAll() }
            group.addTask { await self.sendAll() }
            group.addTask { await self.leaveWhenAsked() }
            group.addTask { await self.forwardLogs() }
            group.addTask { await self.forwardProgress() }
            group.addTask { await self.followInputs() }
            group.addTask { await self.sources?.run() }
            group.addTask { await self.forwardWatchReports() }
            // Starting processes blocks, so it must not happen where messages are handled.
            group.addTask(executorPreference: globalConcurrentExecutor) {
                await executor.run { self.end() }
            }
            defer { group.cancelAll() }
            // Not in the group: its events end before it throws, and its error must not be lost.
            try await transport.run()
        }
        if let refusal = state.withLock(\.refusal) {
            throw PortError(.accessRefused, "The coordinator refuses this worker: \(refusal).")
        }
    }

    /// Takes no new attempts, gives back waiting ones, finishes running ones by `timeout`, then
    /// ends.
    package func drain(timeout: Duration) {
        handle([.drainRequested(deadline: SystemClock.now() + timeout)])
    }

    /// Returns when it drains or was stopped and no operation runs any more, or after this time.
    package func waitUntilIdleForGood(within limit: Duration) async {
        await idleForGood.wait(within: limit)
    }

    /// Ends everything now.
    package func stop() {
        handle([.stopRequested])
    }

    // MARK: - Requests

    /// Sends a request of a running operation to the coordinator. Returns when the answer has come,
    /// however long that takes, or when the attempt has ended. If the calling task is cancelled
    /// while it waits for operations, the wait ends, too. Operations to be added are added all the
    /// same.
    func ask(
        _ content: WorkerAgent.RequestContent,
        of attempt: AttemptID
    ) async -> WorkerAgent.RequestAnswer.Content {
        let number = state.withLock { state in
            state.lastRequest += 1
            return state.lastRequest
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let rest: Rest? = state.withLock { state in
                    guard !state.hasEnded else { return nil }
                    state.asking[number] = continuation
                    return handle([.asked(number, attempt, content)], &state)
                }
                guard let rest else { return continuation.resume(returning: .ended) }
                finish(rest)
                // If the task was cancelled before the request, `onCancel` found nothing to
                // withdraw.
                if Task.isCancelled, case .wait = content { withdraw(number) }
            }
        } onCancel: {
            if case .wait = content { withdraw(number) }
        }
    }

    private func withdraw(_ number: UInt64) { handle([.withdrawn(number)]) }

    /// Releases every caller that still waits.
    private func end() {
        let waiting = state.withLock { state in
            state.hasEnded = true
            state.alarm.cancel()
            defer { state.asking = [:] }
            return state.asking.values
        }
        for continuation in waiting { continuation.resume(returning: .ended) }
        idleForGood.open()
    }

    // MARK: - Input

    private func receiveAll() async {
        for await batch in transport.events {
            var events: [WorkerAgent.Event] = []
            events.reserveCapacity(batch.count)
            for event in batch {
                for event in await opened(event) {
                    if let event = translate(event) { events.append(event) }
                }
            }
            handle(events)
        }
    }

    /// What an event means once its seal is opened.
    private func opened(_ event: WorkerTransportEvent) async -> [WorkerTransportEvent] {
        guard let seals else { return [event] }
        switch event {
        case .up(let connection): seals.connected(connection)
        case .down: seals.disconnected()
        case .message(let bytes): return await opened(bytes, by: seals)
        case .envelope, .noCoordinator, .returned, .blocked: break
        }
        return [event]
    }

    private func opened(
        _ bytes: [UInt8],
        by seals: WorkerSealBox
    ) async -> [WorkerTransportEvent] {
        let outputs: [WorkerSeals.Output]
        do throws(SealFault) {
            outputs = try seals.receive(bytes)
        } catch {
            if let count = seals.faults.count(error, at: SystemClock.now()) {
                logger.warning(
                    "message refused",
                    metadata: ["reason": "\(error.text)", "messages": "\(count)"]
                )
            }
            return []
        }
        var events: [WorkerTransportEvent] = []
        for output in outputs {
            switch output {
            case .message(let body): events.append(.message(body))
            case .send(let frame): await transport.send(frame, lane: .events)
            case .sendAgain(let body):
                state.withLock { $0.outbox.append(.encoded(body)) }
                sendSignal.raise()
            case .resync(let reign, let epoch):
                let envelope = CoordinatorEnvelope(
                    reign: reign,
                    epoch: epoch,
                    sequence: 0,
                    sender: .none,
                    body: .resync
                )
                events.append(.envelope(envelope))
            case .accepted(let membership): seals.keep(membership)
            case .refused(let why):
                state.withLock { $0.refusal = why }
                // In a task of its own, because this one ends before the transport has closed.
                Task { [transport] in await transport.close() }
            }
        }
        return events
    }

    private func translate(_ event: WorkerTransportEvent) -> WorkerAgent.Event? {
        switch event {
        case .up(let connection):
            linkObserver(event)
            connectionLog.restored(logger)
            return .linkUp(connection: connection)
        case .noCoordinator:
            linkObserver(event)
            return nil
        case .down(let reason):
            linkObserver(event)
            connectionLog.lost(logger, reason)
            return .linkDown
        case .message(let bytes):
            do throws(WireError) {
                return .message(try Wire.decodeCoordinator(bytes, limits: limits))
            } catch {
                if let count = undecodable.count(error.code, at: SystemClock.now()) {
                    logger.error(
                        "message dropped",
                        metadata: ["reason": "\(error)", "messages": "\(count)"]
                    )
                }
                return nil
            }
        case .envelope(let envelope): return .message(envelope)
        case .returned: return .returned
        case .blocked(let isBlocked, let reason):
            linkObserver(event)
            logger.warning(
                isBlocked ? "the broker takes nothing more" : "the broker goes on",
                metadata: ["reason": "\(reason)"]
            )
            return nil
        }
    }

    private func followInputs() async {
        for await progress in executor.staging.progress { handle([.inputs(progress)]) }
    }

    private func wake() {
        let rest = state.withLock { state in
            state.alarm.rang()
            return handle([.timeReached], &state)
        }
        finish(rest)
    }

    // MARK: - Effects

    /// Effects that run foreign code, which may do anything; they are performed outside of the
    /// lock.
    private struct Rest {
        var stops: [WorkerAgent.Stop] = []
        var answers: [(CheckedContinuation<Answer, Never>, Answer)] = []
        var watchOrders: [(orders: [WatchOrder], reign: Reign)] = []
        var isWelcomed = false
    }

    private func handle(_ events: [WorkerAgent.Event]) {
        finish(state.withLock { handle(events, &$0) })
    }

    private func finish(_ rest: Rest) {
        for stop in rest.stops { executor.stop(stop) }
        for (continuation, answer) in rest.answers { continuation.resume(returning: answer) }
        for (orders, reign) in rest.watchOrders { sources?.obey(orders, by: reign) }
        if rest.isWelcomed { sources?.state() }
    }

    private func handle(_ events: [WorkerAgent.Event], _ state: inout State) -> Rest {
        var rest = Rest()
        // No message would be sent and no started operation ended any more.
        guard !state.hasEnded else { return rest }
        var pending = Deque(events)
        while let event = pending.popFirst() {
            state.effects.removeAll()
            let now = SystemClock.now()
            state.agent.handle(event, at: now, into: &state.effects)
            for (lane, envelope) in state.effects.messages {
                state.outbox.append(.message(lane == .beats ? .beats : .events, envelope))
            }
            for step in state.effects.inputSteps {
                if let progress = executor.staging.perform(step) {
                    pending.append(.inputs(progress))
                }
            }
            for operation in state.effects.starts {
                if let result = executor.start(operation, at: now) {
                    pending.append(.ended(operation.held.attempt, result))
                }
            }
            rest.stops += state.effects.stops
            if !state.effects.watchOrders.isEmpty {
                rest.watchOrders.append((state.effects.watchOrders, state.agent.reign))
            }
            for case .welcomed in state.effects.notices { rest.isWelcomed = true }
            for answer in state.effects.answers {
                guard let asker = state.asking.removeValue(forKey: answer.number) else { continue }
                rest.answers.append((asker, answer.content))
            }
            if state.effects.wantsReconnect { state.outbox.append(.reconnect) }
            if state.effects.wantsExit, !state.isLeaving {
                state.isLeaving = true
                state.outbox.append(.leave)
                leaving.open()
            }
            if !state.effects.notices.isEmpty { observer(state.effects.notices) }
        }
        if state.agent.isIdleForGood { idleForGood.open() }
        state.alarm.set(state.effects.wakeAt, sleep: TimeSource.system.sleep) { [weak self] in
            self?.wake()
        }
        if !state.outbox.isEmpty { sendSignal.raise() }
        return rest
    }

    // MARK: - Output

    private func takeOutbox() -> [WorkerOutbox.Item] {
        state.withLock { $0.outbox.take() }
    }

    private func sendAll() async {
        for await _ in sendSignal.raised {
            for outgoing in takeOutbox() {
                switch outgoing {
                case .message(let lane, let envelope):
                    await send(envelope, lane == .beats ? .beats : .events)
                case .encoded(let body): await send(body, .events)
                case .reconnect: await transport.reconnect()
                case .leave: handedOver.open()
                }
            }
        }
    }

    /// Independent of messages that wait to be sent: a stalled broker must not keep a worker.
    private func leaveWhenAsked() async {
        await leaving.wait()
        guard leaving.isOpen else { return }
        await handedOver.wait(within: Self.lastWordsPatience)
        await transport.close()
    }

    private static let lastWordsPatience = Duration.seconds(1)

    private func send(_ envelope: WorkerEnvelope, _ lane: WorkerSealBox.Lane) async {
        // A message that may be too large is encoded, which gives its exact size in bytes.
        let cost = envelope.approximateBytes
        if seals == nil, cost < limits.messageBytes / 2,
            await transport.send(envelope, cost: cost, lane: lane.way)
        {
            return
        }
        // What waits here since before the connection was lost would be taken for a forgery.
        if let seals, !seals.isOf(envelope.sender.connection) { return }
        do throws(WireError) {
            await send(try Wire.encode(envelope, limits: limits), lane)
        } catch {
            logger.error("message not sent", metadata: ["reason": "\(error)"])
        }
    }

    private func send(_ body: [UInt8], _ lane: WorkerSealBox.Lane) async {
        guard let seals else { return await transport.send(body, lane: lane.way) }
        guard let sealed = seals.seal(body, lane: lane) else { return }
        await transport.send(sealed, lane: lane.way)
    }

    /// Sends the output of operations as it comes. Output that comes too fast is dropped; its tail
    /// travels with the result.
    private func forwardLogs() async {
        for await chunk in executor.logs {
            guard let envelope = envelope(.log(chunk)) else { continue }
            await send(envelope, .logs)
        }
    }

    private func forwardProgress() async {
        for await report in executor.progress {
            guard let envelope = envelope(.progress(report)) else { continue }
            await send(envelope, .progress)
        }
    }

    /// The coordinator asks again for what is lost.
    private func forwardWatchReports() async {
        guard let sources else { return }
        for await reports in sources.reports {
            let pieces = reports.pieces(ofBytes: Limits.watchMessageBytes, \.approximateBytes)
            for piece in pieces {
                guard let envelope = envelope(.watched(Array(piece))) else { continue }
                await send(envelope, .watches)
            }
        }
    }

    /// Returns `nil` if no coordinator has welcomed this worker.
    private func envelope(_ message: WorkerMessage) -> WorkerEnvelope? {
        state.withLock { $0.agent.isWelcomed ? $0.agent.envelope(message) : nil }
    }
}
