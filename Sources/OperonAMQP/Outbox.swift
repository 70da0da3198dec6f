import NIOConcurrencyHelpers
import NIOCore
import OperonModel
import OperonPorts

/// What was accepted and is not yet in the socket, in two lanes of which the first overtakes the
/// other. Filled from anywhere, emptied by the connection's event loop.
final class Outbox: Sendable {
    enum Destination: Hashable, Sendable {
        case worker(WorkerAddress)
        case broadcast
        case events
        case beats

        /// Where the coordinator hears this lane.
        init(_ lane: WorkerLane) {
            switch lane {
            case .events: self = .events
            case .beats: self = .beats
            }
        }
    }

    struct Message: Sendable {
        var destination: Destination
        var priority: UInt8
        var body: [UInt8]
    }

    private struct State {
        var isAccepting = false
        var isPumpScheduled = false
        var urgent = CircularBuffer<Message>()
        var ordinary = CircularBuffer<Message>()
    }

    /// What a message costs besides its body: method, header and three frames' ends.
    private static let messageOverhead = 128
    private let gate: RoomGate
    private let state = NIOLockedValueBox(State())

    init(bytesMax: Int) { gate = RoomGate(limit: bytesMax) }

    var bytes: Int { gate.used }

    /// Returns whether the event loop has to be told; the caller then waits for room.
    func append(_ message: Message) -> Bool {
        state.withLockedValue { state in
            // Nobody is there: it would be lost with the connection anyway.
            guard state.isAccepting else { return false }
            gate.add(message.body.count + Self.messageOverhead)
            switch message.destination {
            case .beats: state.urgent.append(message)
            case .worker, .broadcast, .events: state.ordinary.append(message)
            }
            defer { state.isPumpScheduled = true }
            return !state.isPumpScheduled
        }
    }

    func waitForRoom() async { await gate.waitForRoom() }

    /// The next messages, until they have `bytesMax`; the urgent ones first.
    func take(bytesMax: Int) -> [Message] {
        let (messages, bytes) = state.withLockedValue { state in
            var messages: [Message] = []
            var bytes = 0
            while bytes < bytesMax,
                let message = state.urgent.popFirst() ?? state.ordinary.popFirst()
            {
                bytes += message.body.count + Self.messageOverhead
                messages.append(message)
            }
            if messages.isEmpty { state.isPumpScheduled = false }
            return (messages, bytes)
        }
        if bytes > 0 { gate.remove(bytes) }
        return messages
    }

    /// The urgent ones that wait: all that may go while a large one is under way.
    func takeUrgent() -> [Message] {
        let messages = state.withLockedValue { state in
            defer { state.urgent.removeAll() }
            return Array(state.urgent)
        }
        let bytes = messages.reduce(0) { $0 + $1.body.count + Self.messageOverhead }
        if bytes > 0 { gate.remove(bytes) }
        return messages
    }

    /// From now on messages are taken; what was there is of an earlier connection.
    func begin() {
        clear(isAccepting: true)
    }

    /// Messages are dropped from now on, and so are those that wait.
    func drop() {
        clear(isAccepting: false)
    }

    /// Messages are dropped from now on; those that wait are still to be sent.
    func stopAccepting() {
        state.withLockedValue { $0.isAccepting = false }
        // The connection is being closed: nobody's message waits for room any more.
        gate.open()
    }

    private func clear(isAccepting: Bool) {
        let bytes = state.withLockedValue { state in
            let bytes = (Array(state.urgent) + Array(state.ordinary)).reduce(0) {
                $0 + $1.body.count + Self.messageOverhead
            }
            state = State(isAccepting: isAccepting)
            return bytes
        }
        if bytes > 0 { gate.remove(bytes) }
    }
}
