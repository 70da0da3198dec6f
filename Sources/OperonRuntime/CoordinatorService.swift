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

    private var scheduler: Scheduler
    private var effects = Scheduler.Effects()
    private let transport: any CoordinatorTransport
    private let observer: Observer
    private let logger: Logger
    private let limits: Limits
    private var contents: [GraphContents] = []
    private var outbox: CoordinatorOutbox
    /// Whoever waits until everything before has been handed to the transport.
    private var sendWaiters: [Waiting] = []
    private let sendSignal = Signal()
    private var alarm = Alarm()
    private let connected = Signal()
    private var hasConnected = false
    private var isShutDown = false
    private var graphWaiters: [GraphID: [CheckedContinuation<Void, Never>]] = [:]
    /// Messages that could not be read.
    package private(set) var undecodableCount = 0

    /// Operations that travel together at most, if they wait for the transport together: beyond
    /// this a message costs next to nothing more than what it carries.
    package static let defaultOperationsPerMessage = 64

    package init(
        scheduler: Scheduler,
        transport: any CoordinatorTransport,
        logger: Logger,
        operationsPerMessage: Int = defaultOperationsPerMessage,
        observer: @escaping Observer
    ) {
        self.scheduler = scheduler
        self.transport = transport
        self.logger = logger
        self.observer = observer
        limits = scheduler.configuration.limits
        outbox = CoordinatorOutbox(operationsPerMessage: operationsPerMessage)
    }

    /// Serves until `shutDown` or until the transport gives up for good, which it throws.
    package func run() async throws {
        defer { alarm.cancel() }
        let transport = transport
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await self.receiveAll() }
            group.addTask { await self.sendAll() }
            defer { group.cancelAll() }
            // Not as a child: its end also ends `receiveAll`, and its error must not come second.
            try await transport.run()
        }
    }

    // MARK: - Commands

    /// Takes a graph that was compiled from this description.
    package func submit(_ graph: GraphDescription, compiled: CompiledGraph) -> GraphID {
        let id = GraphID(rawValue: UInt32(scheduler.graphCount))
        contents.append(GraphContents(graph))
        handle([.graphSubmitted(compiled)])
        return id
    }

    /// Cancels, suspends, sets a limit or a priority. The first refusal is thrown.
    package func command(_ event: Scheduler.Event) throws(Refusal) {
        if let refusal = handle([event]) { throw refusal }
    }

    /// Returns when the transport has been up once.
    ///
    /// - Throws: `PortError.unreachable` after `timeout`.
    package func waitUntilConnected(within timeout: Duration) async throws {
        guard !hasConnected else { return }
        let connected = connected
        try await withThrowingTaskGroup(of: Bool.self) { group in
            group.addTask {
                for await _ in connected.raised { return true }
                return false
            }
            group.addTask {
                try await Task.sleep(for: timeout)
                return false
            }
            defer { group.cancelAll() }
            guard try await group.next() == true else {
                throw PortError(
                    .unreachable,
                    "The broker could not be reached within \(timeout.seconds) s."
                )
            }
        }
    }

    /// Returns when every operation of the graph has its outcome, or after `shutDown`.
    package func waitUntilFinished(_ graph: GraphID) async {
        guard !scheduler.isFinished(graph), !isShutDown else { return }
        await withCheckedContinuation { graphWaiters[graph, default: []].append($0) }
    }

    /// Gives the workers the last word on what they reported, and ends `run`.
    package func shutDown(kill: Bool = false) async {
        handle([.shutdownRequested(kill: kill)])
        await withCheckedContinuation { continuation in
            sendWaiters.append(continuation)
            sendSignal.raise()
        }
        await transport.close()
        // What has no outcome by now gets none here; nobody shall wait for it.
        isShutDown = true
        let waiters = graphWaiters
        graphWaiters = [:]
        for id in waiters.keys.sorted() { waiters[id]?.forEach { $0.resume() } }
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
            await handle(events)
        }
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
        undecodableCount += 1
        logger.error("message dropped", metadata: ["reason": "\(error)"])
    }

    private func wake() {
        alarm.rang()
        handle([.timeReached])
    }

    // MARK: - Effects

    /// The first refusal among what follows from the events, if any.
    ///
    /// What waits is handled together and its effects are performed together, in their order: one
    /// message for many operations, and one call of the observer.
    @discardableResult
    private func handle(_ events: [Scheduler.Event]) -> Refusal? {
        var refusal: Refusal?
        var pending = events
        while !pending.isEmpty {
            effects.removeAll()
            let now = Moment(monotonic: SystemClock.now(), wall: SystemClock.wall())
            for event in pending {
                if case .transportUp = event, !hasConnected {
                    hasConnected = true
                    connected.raise()
                }
                scheduler.handle(event, at: now, into: &effects)
            }
            refusal = refusal ?? effects.refusals.first
            // Records go first, to the store; this program keeps none.
            keepOutputs()
            pending = []
            for message in effects.messages { enqueue(message, unsendable: &pending) }
            finishNotices(at: now.monotonic)
        }
        alarm.set(effects.wakeAt) { [weak self] in await self?.wake() }
        if !outbox.isEmpty { sendSignal.raise() }
        return refusal
    }

    /// Before messages: a dependent that is released by the same event finds its input.
    private func keepOutputs() {
        for notice in effects.notices {
            guard case .result(let operation, _, let result) = notice else { continue }
            contents[Int(operation.graph.rawValue)].keep(result.output, of: operation.index)
        }
    }

    private func finishNotices(at now: Timestamp) {
        guard !effects.notices.isEmpty else { return }
        observer(effects.notices, now)
        for notice in effects.notices {
            guard case .graphFinished(let graph) = notice else { continue }
            for waiter in graphWaiters.removeValue(forKey: graph) ?? [] { waiter.resume() }
        }
    }

    /// An operation that no message can carry fails, by an event that is added to `unsendable`.
    private func enqueue(_ message: Scheduler.Message, unsendable: inout [Scheduler.Event]) {
        var priority: UInt8 = QueuePriority.veryHigh.level
        let body: CoordinatorMessage
        switch message.body {
        case .plain(let plain): body = plain
        case .dispatch(let acknowledged, let grants):
            var operations: [DispatchedOperation] = []
            operations.reserveCapacity(grants.count)
            priority = grants.map(\.priority.level).max() ?? priority
            for grant in grants {
                let operation = contents[Int(grant.held.operation.graph.rawValue)].dispatched(grant)
                let bytes = operation.inputs.reduce(0) { $0 + ($1.output?.bytes.count ?? 0) }
                // Half a message for the inputs leaves room for everything else in it.
                if bytes <= limits.messageBytes / 2 {
                    operations.append(operation)
                } else {
                    let error = OperationError.inputTooLarge(
                        bytes: bytes,
                        limit: limits.messageBytes / 2
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

    private typealias Waiting = CheckedContinuation<Void, Never>

    private func takeOutbox() -> ([CoordinatorOutbox.Item], [Waiting]) {
        defer { sendWaiters = [] }
        return (outbox.take(), sendWaiters)
    }

    private nonisolated func sendAll() async {
        for await _ in sendSignal.raised {
            let (items, waiters) = await takeOutbox()
            for item in items { await send(item) }
            for waiter in waiters { waiter.resume() }
        }
        // Nobody sends any more; nobody shall wait for it either.
        let (_, waiters) = await takeOutbox()
        for waiter in waiters { waiter.resume() }
    }

    private nonisolated func send(_ item: CoordinatorOutbox.Item) async {
        do throws(WireError) {
            let body = try Wire.encode(item.envelope, limits: limits)
            switch item.receiver {
            case .worker(let address):
                await transport.send(body, to: address, priority: item.priority)
            case .everyWorker: await transport.broadcast(body)
            }
        } catch {
            logger.error("message not sent", metadata: ["reason": "\(error)"])
        }
    }
}
