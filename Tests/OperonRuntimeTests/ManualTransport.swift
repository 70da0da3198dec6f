import ClusterKit
import NIOConcurrencyHelpers
import OperonModel
import OperonPorts
import OperonRuntime
import OperonWire
import Testing

/// A transport whose workers are the test: each batch is handed over when the one before it has
/// been handled, and what is sent is kept.
final class ManualTransport: CoordinatorTransport {
    struct Ended: Error {}

    private struct State {
        var waiting: [[CoordinatorTransportEvent]] = []
        var given = 0
        var handled = 0
        var isOver = false
        var failure: PortError?
        var bodies: [[UInt8]] = []
        var sent: [CoordinatorEnvelope] = []
    }

    private let state: NIOLockedValueBox<State>
    private let changes = Changes()
    private let isTaking = Latch()
    private let ended = Latch()

    /// - Parameter isTaking: Whether the broker takes what is sent.
    init(isUp: Bool = true, isTaking: Bool = true) {
        state = NIOLockedValueBox(State(waiting: isUp ? [[.up]] : []))
        if isTaking { self.isTaking.open() }
    }

    var events: AsyncStream<[CoordinatorTransportEvent]> {
        AsyncStream { await self.next() }
    }

    private func next() async -> [CoordinatorTransportEvent]? {
        // Whoever asks for more has handled what it had.
        state.withLockedValue { $0.handled = $0.given }
        changes.note()
        while true {
            let seen = changes.count
            let batch: [CoordinatorTransportEvent]? = state.withLockedValue { state in
                guard !state.waiting.isEmpty else { return nil }
                state.given += 1
                return state.waiting.removeFirst()
            }
            if let batch { return batch }
            if isClosed { return nil }
            do { try await changes.wait(after: seen) } catch { return nil }
        }
    }

    func run() async throws {
        await ended.wait()
        state.withLockedValue { $0.isOver = true }
        changes.note()
        if let failure = state.withLockedValue({ $0.failure }) { throw failure }
    }

    func send(_ body: [UInt8], to address: WorkerAddress, priority: UInt8) async {
        await isTaking.wait()
        do throws(WireError) {
            let envelope = try Wire.decodeCoordinator(body)
            state.withLockedValue { state in
                state.bodies.append(body)
                state.sent.append(envelope)
            }
        } catch {
            Issue.record("a worker cannot read it: \(error)")
        }
        changes.note()
    }

    func broadcast(_ body: [UInt8]) async { await isTaking.wait() }

    func sendToSelf(_ body: [UInt8], lane: WorkerLane) async {
        await isTaking.wait()
        say([.message(body)])
    }

    func close() async { end() }

    // MARK: - For the test

    func end(throwing failure: PortError? = nil) {
        state.withLockedValue { $0.failure = failure }
        ended.open()
    }

    var isClosed: Bool { state.withLockedValue { $0.isOver } }

    /// Returns the number of the batch.
    @discardableResult
    func say(_ batch: [CoordinatorTransportEvent]) -> Int {
        let number = state.withLockedValue { state in
            state.waiting.append(batch)
            return state.given + state.waiting.count
        }
        changes.note()
        return number
    }

    /// Returns when the coordinator has handled it, or has ended.
    func handle(_ event: CoordinatorTransportEvent) async {
        let number = say([event])
        while true {
            let seen = changes.count
            if state.withLockedValue({ $0.handled >= number || $0.isOver }) { return }
            do { try await changes.wait(after: seen) } catch { return }
        }
    }

    var sent: [CoordinatorEnvelope] { state.withLockedValue { $0.sent } }

    /// The bytes that were sent since the last call.
    func takeBodies() -> [[UInt8]] {
        state.withLockedValue { state in
            defer { state.bodies = [] }
            return state.bodies
        }
    }

    /// The first of what was sent, or is, in which something is found.
    func find<Value>(_ look: (CoordinatorEnvelope) -> Value?) async throws -> Value {
        while true {
            let seen = changes.count
            for envelope in sent {
                if let value = look(envelope) { return value }
            }
            if isClosed { throw Ended() }
            try await changes.wait(after: seen)
        }
    }
}
