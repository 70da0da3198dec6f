import DequeModule
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
    private var outbox = Deque<Outgoing>()
    private let sendSignal = Signal()
    private var alarm = Alarm()
    private let connected = Signal()
    private var hasConnected = false
    private var isShutDown = false
    private var graphWaiters: [GraphID: [CheckedContinuation<Void, Never>]] = [:]
    /// Messages that could not be read.
    package private(set) var undecodableCount = 0

    private enum Outgoing: Sendable {
        case worker(WorkerAddress, CoordinatorEnvelope, priority: UInt8)
        case everyWorker(CoordinatorEnvelope)
        /// Everything before it has been handed to the transport.
        case mark(CheckedContinuation<Void, Never>)
    }

    package init(
        scheduler: Scheduler,
        transport: any CoordinatorTransport,
        logger: Logger,
        observer: @escaping Observer
    ) {
        self.scheduler = scheduler
        self.transport = transport
        self.logger = logger
        self.observer = observer
        limits = scheduler.configuration.limits
    }

    /// Serves until `shutDown` or until the transport gives up for good, which it throws.
    package func run() async throws {
        defer { alarm.cancel() }
        let transport = transport
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await self.receiveAll() }
            group.addTask { await self.sendAll() }
            defer { group.cancelAll() }
            // Not one of the group: its events end before it says why, and that must not be lost.
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
            outbox.append(.mark(continuation))
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
    @discardableResult
    private func handle(_ events: [Scheduler.Event]) -> Refusal? {
        var refusal: Refusal?
        var pending = Deque(events)
        while let event = pending.popFirst() {
            effects.removeAll()
            if case .transportUp = event, !hasConnected {
                hasConnected = true
                connected.raise()
            }
            let now = Moment(monotonic: SystemClock.now(), wall: SystemClock.wall())
            scheduler.handle(event, at: now, into: &effects)
            refusal = refusal ?? effects.refusals.first
            // Records go first, to the store; this program keeps none.
            keepOutputs()
            for message in effects.messages {
                if let unsendable = enqueue(message) { pending.append(unsendable) }
            }
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

    /// An operation that no message can carry fails, by the event that is returned.
    private func enqueue(_ message: Scheduler.Message) -> Scheduler.Event? {
        var priority: UInt8 = QueuePriority.veryHigh.level
        let body: CoordinatorMessage
        switch message.body {
        case .plain(let plain): body = plain
        case .dispatch(let acknowledged, let grants):
            var operations: [DispatchedOperation] = []
            var unsendable: Scheduler.Event?
            for grant in grants {
                let operation = dispatched(grant)
                let bytes = operation.inputs.reduce(0) { $0 + ($1.output?.bytes.count ?? 0) }
                // Half a message for the inputs leaves room for everything else in it.
                guard bytes <= limits.messageBytes / 2 else {
                    let error = OperationError.inputTooLarge(
                        bytes: bytes,
                        limit: limits.messageBytes / 2
                    )
                    unsendable = .attemptUnsendable(grant.held, error)
                    continue
                }
                operations.append(operation)
                priority = grant.priority.level
            }
            guard !operations.isEmpty else { return unsendable }
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
        case .everyWorker: outbox.append(.everyWorker(envelope))
        case .worker(let address):
            outbox.append(.worker(address, envelope, priority: priority))
        }
        return nil
    }

    private func dispatched(_ grant: Scheduler.Grant) -> DispatchedOperation {
        let contents = contents[Int(grant.held.operation.graph.rawValue)]
        let operation = contents.operations[Int(grant.held.operation.index)]
        return DispatchedOperation(
            held: grant.held,
            ordinal: grant.ordinal,
            graphName: contents.name,
            name: operation.name,
            queue: operation.queue,
            work: operation.work,
            priority: grant.priority,
            rank: grant.rank,
            timeout: operation.timeout,
            qualityOfService: operation.qualityOfService,
            inputs: contents.inputs(of: grant.held.operation.index)
        )
    }

    // MARK: - Output

    private func takeOutbox() -> Deque<Outgoing> {
        defer { outbox.removeAll(keepingCapacity: true) }
        return outbox
    }

    private nonisolated func sendAll() async {
        for await _ in sendSignal.raised {
            for outgoing in await takeOutbox() { await send(outgoing) }
        }
        // Nobody sends any more; nobody shall wait for it either.
        for case .mark(let continuation) in await takeOutbox() { continuation.resume() }
    }

    private nonisolated func send(_ outgoing: Outgoing) async {
        do throws(WireError) {
            switch outgoing {
            case .worker(let address, let envelope, let priority):
                await transport.send(
                    try Wire.encode(envelope, limits: limits),
                    to: address,
                    priority: priority
                )
            case .everyWorker(let envelope):
                await transport.broadcast(try Wire.encode(envelope, limits: limits))
            case .mark(let continuation): continuation.resume()
            }
        } catch {
            logger.error("message not sent", metadata: ["reason": "\(error)"])
        }
    }
}
