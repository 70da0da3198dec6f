import NIOConcurrencyHelpers
import OperonModel
import OperonPorts
import OperonRuntime

/// A transport whose worker is the test: each message is handed over when the one before it has
/// been handled, and what is sent is kept.
final class SteppedTransport: CoordinatorTransport {
    private struct State {
        var waiting = [CoordinatorTransportEvent.up]
        var handed = 0
        var given = 0
        var isOver = false
        var sent: [CoordinatorEnvelope] = []
    }

    private let state = NIOLockedValueBox(State())
    private let arrived = Signal()
    private let handled = Signal()
    private let wasSent = Signal()
    private let ended = Latch()

    var events: AsyncStream<[CoordinatorTransportEvent]> {
        AsyncStream { await self.next() }
    }

    private func next() async -> [CoordinatorTransportEvent]? {
        // Whoever asks for more has handled what it had.
        state.withLockedValue { $0.handed = $0.given }
        handled.raise()
        while true {
            let event: CoordinatorTransportEvent? = state.withLockedValue { state in
                guard !state.waiting.isEmpty else { return nil }
                state.given += 1
                return state.waiting.removeFirst()
            }
            if let event { return [event] }
            if state.withLockedValue({ $0.isOver }) { return nil }
            for await _ in arrived.raised { break }
            if Task.isCancelled { return nil }
        }
    }

    func run() async throws {
        await ended.wait()
        state.withLockedValue { $0.isOver = true }
        arrived.raise()
    }

    func send(_ body: [UInt8], to address: WorkerAddress, priority: UInt8) async {}

    func send(
        _ envelope: CoordinatorEnvelope,
        cost: Int,
        to address: WorkerAddress,
        priority: UInt8
    ) async -> Bool {
        state.withLockedValue { $0.sent.append(envelope) }
        wasSent.raise()
        return true
    }

    func broadcast(_ body: [UInt8]) async {}
    func sendToSelf(_ body: [UInt8], lane: WorkerLane) async {}
    func close() async { ended.open() }

    // MARK: - For the test

    /// Returns when the coordinator has handled it.
    func handle(_ envelope: WorkerEnvelope) async {
        let number = state.withLockedValue { state in
            state.waiting.append(.envelope(envelope))
            return state.given + state.waiting.count
        }
        arrived.raise()
        while state.withLockedValue({ $0.handed }) < number {
            for await _ in handled.raised { break }
        }
    }

    var sent: [CoordinatorEnvelope] { state.withLockedValue { $0.sent } }

    /// The first of what was sent, or is, in which something is found.
    func find<Value>(_ look: (CoordinatorEnvelope) -> Value?) async -> Value {
        while true {
            for envelope in sent {
                if let value = look(envelope) { return value }
            }
            for await _ in wasSent.raised { break }
        }
    }
}
