package import OperonModel
package import OperonPorts
import Synchronization

/// The transport without a broker: a coordinator and its workers in one process. Message bodies are
/// handed over, neither encoded nor copied. Everything that waits for a receiver is handed to it in
/// one batch.
///
/// It keeps the promises of the broker's transport: the order from one sender to one receiver,
/// connection numbers, `up` before the first message, a return when the receiver is absent, and a
/// bound on waiting messages, beyond which senders are suspended.
package final class InProcessHub: Sendable {
    private struct State {
        var coordinator: BatchBuffer<CoordinatorTransportEvent>?
        var workers: [WorkerAddress: BatchBuffer<WorkerTransportEvent>] = [:]
        /// The keys of `workers` in the order in which they connected, which a broadcast follows.
        var order: [WorkerAddress] = []
    }

    /// The bytes that a message costs in addition to its body: its place in an array.
    static let messageOverhead = 64
    let bytesMax: Int
    private let state = Mutex(State())

    package init(limits: Limits = Limits()) { bytesMax = limits.outgoingBytes }

    package func makeCoordinator() -> InProcessCoordinatorTransport {
        InProcessCoordinatorTransport(hub: self)
    }

    package func makeWorker(incarnation: Incarnation) -> InProcessWorkerTransport {
        InProcessWorkerTransport(hub: self, incarnation: incarnation)
    }

    // MARK: - Connections

    /// Connects the coordinator; returns whether there was none before.
    func attach(coordinator: BatchBuffer<CoordinatorTransportEvent>) -> Bool {
        state.withLock { state in
            guard state.coordinator == nil else { return false }
            state.coordinator = coordinator
            // Under the lock, so that no message overtakes it.
            coordinator.append([.up], cost: 0)
            return true
        }
    }

    func detach(coordinator: BatchBuffer<CoordinatorTransportEvent>) {
        state.withLock { state in
            if state.coordinator === coordinator { state.coordinator = nil }
        }
    }

    func attach(worker: BatchBuffer<WorkerTransportEvent>, as address: WorkerAddress) {
        state.withLock { state in
            state.workers[address] = worker
            state.order.append(address)
            worker.append([.up(connection: address.connection)], cost: 0)
        }
    }

    func detach(worker address: WorkerAddress) {
        state.withLock { state in
            state.workers[address] = nil
            state.order.removeAll { $0 == address }
        }
    }

    // MARK: - Messages

    /// Delivers a message; returns the inbox that took it. `nil`: the receiver is absent.
    func deliver(
        _ event: WorkerTransportEvent,
        cost: Int,
        to address: WorkerAddress
    ) -> BatchBuffer<WorkerTransportEvent>? {
        let worker = state.withLock { $0.workers[address] }
        worker?.append([event], cost: cost)
        return worker
    }

    /// Delivers a message to every worker; returns the inboxes that took it.
    func broadcast(
        _ event: WorkerTransportEvent,
        cost: Int
    ) -> [BatchBuffer<WorkerTransportEvent>] {
        let workers = state.withLock { state in
            state.order.compactMap { state.workers[$0] }
        }
        for worker in workers { worker.append([event], cost: cost) }
        return workers
    }

    func deliver(
        _ event: CoordinatorTransportEvent,
        cost: Int
    ) -> BatchBuffer<CoordinatorTransportEvent>? {
        let coordinator = state.withLock { $0.coordinator }
        coordinator?.append([event], cost: cost)
        return coordinator
    }
}

/// The coordinator's end of an `InProcessHub`.
package final class InProcessCoordinatorTransport: CoordinatorTransport {
    package let isWithinProcess = true
    package let events: AsyncStream<[CoordinatorTransportEvent]>
    private let hub: InProcessHub
    private let inbox: BatchBuffer<CoordinatorTransportEvent>
    private let lifetime = TransportLifetime()

    init(hub: InProcessHub) {
        self.hub = hub
        inbox = BatchBuffer(costLimit: hub.bytesMax)
        events = inbox.stream
    }

    package func run() async throws {
        guard lifetime.begin() else { return }
        guard hub.attach(coordinator: inbox) else {
            inbox.finish()
            throw PortError(.prefixHeld, "Another coordinator runs in this process.")
        }
        await lifetime.untilEnd()
        hub.detach(coordinator: inbox)
        inbox.finish()
    }

    package func send(_ body: [UInt8], to address: WorkerAddress, priority: UInt8) async {
        await send(.message(body), cost: body.count, to: address)
    }

    package func send(
        _ envelope: CoordinatorEnvelope,
        cost: Int,
        to address: WorkerAddress,
        priority: UInt8
    ) async -> Bool {
        await send(.envelope(envelope), cost: cost, to: address)
        return true
    }

    private func send(_ event: WorkerTransportEvent, cost: Int, to address: WorkerAddress) async {
        guard lifetime.isRunning else { return }
        let cost = cost + InProcessHub.messageOverhead
        guard let worker = hub.deliver(event, cost: cost, to: address) else {
            inbox.append([.returned(address)], cost: 0)
            return
        }
        await worker.gate.waitForRoom()
    }

    package func broadcast(_ body: [UInt8]) async {
        guard lifetime.isRunning else { return }
        let cost = body.count + InProcessHub.messageOverhead
        for worker in hub.broadcast(.message(body), cost: cost) {
            await worker.gate.waitForRoom()
        }
    }

    package func sendToSelf(_ body: [UInt8], lane: WorkerLane) async {
        guard lifetime.isRunning else { return }
        // Not suspended by waiting messages: the sender is the one who must take them out.
        inbox.append([.message(body)], cost: 0)
    }

    package func close() async {
        hub.detach(coordinator: inbox)
        inbox.finish()
        lifetime.end()
    }
}

/// A worker's end of an `InProcessHub`.
package final class InProcessWorkerTransport: WorkerTransport {
    package let events: AsyncStream<[WorkerTransportEvent]>
    private let hub: InProcessHub
    private let incarnation: Incarnation
    private let inbox: BatchBuffer<WorkerTransportEvent>
    private let lifetime = TransportLifetime()
    private let connection = Mutex<UInt32>(0)

    init(hub: InProcessHub, incarnation: Incarnation) {
        self.hub = hub
        self.incarnation = incarnation
        inbox = BatchBuffer(costLimit: hub.bytesMax)
        events = inbox.stream
    }

    package func run() async throws {
        guard lifetime.begin() else { return }
        connect()
        await lifetime.untilEnd()
        disconnect()
        inbox.finish()
    }

    package func send(_ body: [UInt8], lane: WorkerLane) async {
        await send(.message(body), cost: body.count, lane: lane)
    }

    package func send(_ envelope: WorkerEnvelope, cost: Int, lane: WorkerLane) async -> Bool {
        await send(.envelope(envelope), cost: cost, lane: lane)
        return true
    }

    private func send(
        _ event: CoordinatorTransportEvent,
        cost: Int,
        lane: WorkerLane
    ) async {
        guard lifetime.isRunning else { return }
        let cost = cost + InProcessHub.messageOverhead
        guard let coordinator = hub.deliver(event, cost: cost) else {
            inbox.append([.returned(lane: lane)], cost: 0)
            return
        }
        await coordinator.gate.waitForRoom()
    }

    package func reconnect() async {
        guard lifetime.isRunning else { return }
        disconnect()
        // Without a reason it is not logged: in one process, people know of no connection.
        inbox.append([.down(reason: "")], cost: 0)
        connect()
    }

    package func close() async {
        disconnect()
        inbox.finish()
        lifetime.end()
    }

    private func connect() {
        let address = connection.withLock { number in
            number += 1
            return WorkerAddress(incarnation: incarnation, connection: number)
        }
        hub.attach(worker: inbox, as: address)
    }

    private func disconnect() {
        let number = connection.withLock { $0 }
        hub.detach(worker: WorkerAddress(incarnation: incarnation, connection: number))
    }
}

/// The states of a transport: it begins once and ends once, by a call or by the end of the task
/// that waits.
private final class TransportLifetime: Sendable {
    private enum State {
        case new
        case running
        case ended
    }

    private let state = Mutex(State.new)
    private let stream: AsyncStream<Never>
    private let continuation: AsyncStream<Never>.Continuation

    init() { (stream, continuation) = AsyncStream<Never>.makeStream() }

    var isRunning: Bool { state.withLock { $0 == .running } }

    /// Returns whether this is the first call and the transport has not ended before it.
    func begin() -> Bool {
        state.withLock { state in
            guard state == .new else { return false }
            state = .running
            return true
        }
    }

    func untilEnd() async {
        for await _ in stream {}
        end()
    }

    func end() {
        state.withLock { $0 = .ended }
        continuation.finish()
    }
}
