import DequeModule
package import Logging
package import OperonCore
import OperonModel
package import OperonPorts
import OperonWire

/// The worker's shell: feeds messages, ends of operations and time to a `WorkerAgent`, and performs
/// what it asks for. It decides nothing.
package actor WorkerService {
    /// Called on the service, in order; must return at once.
    package typealias Observer = @Sendable ([WorkerAgent.Notice]) -> Void
    /// Called for what happens to the connection, messages apart; must return at once.
    package typealias LinkObserver = @Sendable (WorkerTransportEvent) -> Void

    private var agent: WorkerAgent
    private var effects = WorkerAgent.Effects()
    private let transport: any WorkerTransport
    private let executor: OperationExecutor
    private let observer: Observer
    private let linkObserver: LinkObserver
    private let logger: Logger
    private let limits: Limits
    private var outbox: WorkerOutbox
    private let sendSignal = Signal()
    private var alarm = Alarm()
    /// Requests of running operations, and who waits for their answers. Only looked up.
    private var asking: [UInt64: CheckedContinuation<WorkerAgent.RequestAnswer.Content, Never>] =
        [:]
    private var lastRequest: UInt64 = 0
    private var hasEnded = false
    private var isLeaving = false
    private let leaving = Latch()
    /// Everything that was to be said before leaving has been handed to the transport.
    private let handedOver = Latch()

    package init(
        agent: WorkerAgent,
        transport: any WorkerTransport,
        processes: ProcessRunner,
        kinds: RegisteredKinds = .none,
        logger: Logger,
        linkObserver: @escaping LinkObserver = { _ in },
        observer: @escaping Observer = { _ in }
    ) {
        self.agent = agent
        self.transport = transport
        self.logger = logger
        self.observer = observer
        self.linkObserver = linkObserver
        limits = agent.configuration.limits
        outbox = WorkerOutbox(agent.configuration)
        executor = OperationExecutor(
            processes: processes,
            kinds: kinds,
            limits: agent.configuration.limits
        )
    }

    /// Serves until it has drained or was stopped, or until the transport gives up for good, which
    /// it throws. Ends every process it started.
    package func run() async throws {
        defer {
            alarm.cancel()
            answerNobody()
        }
        let transport = transport
        let executor = executor
        executor.serveRequests { [weak self] attempt, content in
            await self?.ask(content, of: attempt) ?? .ended
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await self.receiveAll() }
            group.addTask { await self.sendAll() }
            group.addTask { await self.leaveWhenAsked() }
            group.addTask { await self.forwardLogs() }
            group.addTask { await self.forwardProgress() }
            group.addTask { await self.followInputs() }
            // Starting processes blocks, wherever messages are handled.
            group.addTask(executorPreference: globalConcurrentExecutor) {
                await executor.run { attempt, result in await self.ended(attempt, result) }
            }
            defer { group.cancelAll() }
            // Not one of the group: its events end before it says why, and that must not be lost.
            try await transport.run()
        }
    }

    /// Takes nothing more, gives back what waits, finishes what runs by `timeout`, then ends.
    package func drain(timeout: Duration) {
        handle([.drainRequested(deadline: SystemClock.now() + timeout)])
    }

    /// Ends everything now.
    package func stop() {
        handle([.stopRequested])
    }

    // MARK: - Requests

    /// Asks the coordinator for a running operation. Returns when the answer has come, however long
    /// that takes, or when the attempt has ended, or the calling task is cancelled while it waits
    /// for operations: then it waits no more. What is to be added is added all the same.
    func ask(
        _ content: WorkerAgent.RequestContent,
        of attempt: AttemptID
    ) async -> WorkerAgent.RequestAnswer.Content {
        guard !hasEnded else { return .ended }
        lastRequest += 1
        let number = lastRequest
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                asking[number] = continuation
                handle([.asked(number, attempt, content)])
            }
        } onCancel: {
            if case .wait = content { Task { await withdraw(number) } }
        }
    }

    private func withdraw(_ number: UInt64) { handle([.withdrawn(number)]) }

    /// Whoever still waits shall not wait for ever.
    private func answerNobody() {
        hasEnded = true
        let waiting = asking.values
        asking = [:]
        for continuation in waiting { continuation.resume(returning: .ended) }
    }

    // MARK: - Input

    private nonisolated func receiveAll() async {
        for await batch in transport.events {
            var events: [WorkerAgent.Event] = []
            events.reserveCapacity(batch.count)
            for event in batch {
                if let event = translate(event) { events.append(event) }
            }
            await handle(events)
        }
    }

    private nonisolated func translate(_ event: WorkerTransportEvent) -> WorkerAgent.Event? {
        switch event {
        case .up(let connection):
            linkObserver(event)
            return .linkUp(connection: connection)
        case .noCoordinator:
            linkObserver(event)
            return nil
        case .down(let reason):
            linkObserver(event)
            logger.warning("connection lost", metadata: ["reason": "\(reason)"])
            return .linkDown
        case .message(let bytes):
            do throws(WireError) {
                return .message(try Wire.decodeCoordinator(bytes, limits: limits))
            } catch {
                logger.error("message dropped", metadata: ["reason": "\(error)"])
                return nil
            }
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

    private func ended(_ attempt: AttemptID, _ result: AttemptResult) {
        handle([.ended(attempt, result)])
    }

    private nonisolated func followInputs() async {
        for await progress in executor.staging.progress { await handle([.inputs(progress)]) }
    }

    private func wake() {
        alarm.rang()
        handle([.timeReached])
    }

    // MARK: - Effects

    private func handle(_ events: [WorkerAgent.Event]) {
        var pending = Deque(events)
        while let event = pending.popFirst() {
            effects.removeAll()
            let now = SystemClock.now()
            agent.handle(event, at: now, into: &effects)
            for (lane, envelope) in effects.messages {
                outbox.append(.message(lane == .beats ? .beats : .events, envelope))
            }
            for step in effects.inputSteps {
                if let progress = executor.staging.perform(step) {
                    pending.append(.inputs(progress))
                }
            }
            for operation in effects.starts {
                if let result = executor.start(operation, at: now) {
                    pending.append(.ended(operation.held.attempt, result))
                }
            }
            for stop in effects.stops { executor.stop(stop) }
            for answer in effects.answers {
                asking.removeValue(forKey: answer.number)?.resume(returning: answer.content)
            }
            if effects.wantsReconnect { outbox.append(.reconnect) }
            if effects.wantsExit, !isLeaving {
                isLeaving = true
                outbox.append(.leave)
                leaving.open()
            }
            if !effects.notices.isEmpty { observer(effects.notices) }
        }
        alarm.set(effects.wakeAt) { [weak self] in await self?.wake() }
        if !outbox.isEmpty { sendSignal.raise() }
    }

    // MARK: - Output

    private func takeOutbox() -> [WorkerOutbox.Item] { outbox.take() }

    private nonisolated func sendAll() async {
        for await _ in sendSignal.raised {
            for outgoing in await takeOutbox() {
                switch outgoing {
                case .message(let lane, let envelope): await send(envelope, lane)
                case .reconnect: await transport.reconnect()
                case .leave: handedOver.open()
                }
            }
        }
    }

    /// Not behind what waits to be sent: a broker that takes nothing must not keep a worker.
    private nonisolated func leaveWhenAsked() async {
        await leaving.wait()
        guard leaving.isOpen else { return }
        await handedOver.wait(within: Self.lastWordsPatience)
        await transport.close()
    }

    private static let lastWordsPatience = Duration.seconds(1)

    private nonisolated func send(_ envelope: WorkerEnvelope, _ lane: WorkerLane) async {
        do throws(WireError) {
            await transport.send(try Wire.encode(envelope, limits: limits), lane: lane)
        } catch {
            logger.error("message not sent", metadata: ["reason": "\(error)"])
        }
    }

    /// What operations print goes out as it comes, and is dropped where it comes too fast: the tail
    /// travels with the result.
    private nonisolated func forwardLogs() async {
        for await chunk in executor.logs {
            guard let envelope = await logEnvelope(chunk) else { continue }
            await send(envelope, .events)
        }
    }

    private nonisolated func forwardProgress() async {
        for await report in executor.progress {
            guard let envelope = await progressEnvelope(report) else { continue }
            await send(envelope, .events)
        }
    }

    private func progressEnvelope(_ report: ProgressReport) -> WorkerEnvelope? {
        agent.isWelcomed ? agent.envelope(.progress(report)) : nil
    }

    private func logEnvelope(_ chunk: LogChunk) -> WorkerEnvelope? {
        agent.isWelcomed ? agent.envelope(.log(chunk)) : nil
    }
}
