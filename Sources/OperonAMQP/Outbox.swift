import NIOConcurrencyHelpers
import NIOCore
import OperonModel
import OperonPorts

/// What was accepted and is not yet in the socket, in three lanes of which each overtakes the next.
/// Filled from anywhere, emptied by the connection's event loop.
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
        /// It goes behind everything else.
        var isBulk = false
    }

    private struct State {
        var isAccepting = false
        var isPumpScheduled = false
        var urgent = CircularBuffer<Message>()
        var ordinary = CircularBuffer<Message>()
        var bulk = CircularBuffer<Message>()
    }

    /// What a message costs besides its body: method, header and three frames' ends.
    private static let messageOverhead = 128
    /// Bytes of bulk that may wait: enough to keep the socket busy.
    static let bulkBytesMax = 1 << 20
    private let gate: RoomGate
    private let bulkGate = RoomGate(limit: Outbox.bulkBytesMax)
    private let state = NIOLockedValueBox(State())

    init(bytesMax: Int) { gate = RoomGate(limit: bytesMax) }

    var bytes: Int { gate.used + bulkGate.used }

    /// Returns whether the event loop has to be told; the caller then waits for room.
    func append(_ message: Message) -> Bool {
        state.withLockedValue { state in
            // Nobody is there: it would be lost with the connection anyway.
            guard state.isAccepting else { return false }
            gate(of: message).add(message.body.count + Self.messageOverhead)
            if message.isBulk { state.bulk.append(message) }
            switch message.destination {
            case .worker where message.isBulk: break
            case .beats: state.urgent.append(message)
            case .worker, .broadcast, .events: state.ordinary.append(message)
            }
            defer { state.isPumpScheduled = true }
            return !state.isPumpScheduled
        }
    }

    private func gate(of message: Message) -> RoomGate { message.isBulk ? bulkGate : gate }

    /// These wait no longer.
    private func makeRoom(for messages: [Message]) {
        for isBulk in [false, true] {
            let bytes = messages.reduce(0) { sum, message in
                message.isBulk == isBulk
                    ? sum + message.body.count + Self.messageOverhead : sum
            }
            if bytes > 0 { (isBulk ? bulkGate : gate).remove(bytes) }
        }
    }

    func waitForRoom(isBulk: Bool = false) async {
        await (isBulk ? bulkGate : gate).waitForRoom()
    }

    /// The next messages, until they have `bytesMax`; the urgent ones first.
    func take(bytesMax: Int) -> [Message] {
        let messages = state.withLockedValue { state in
            var messages: [Message] = []
            var bytes = 0
            while bytes < bytesMax,
                let message = state.urgent.popFirst() ?? state.ordinary.popFirst()
                    ?? state.bulk.popFirst()
            {
                bytes += message.body.count + Self.messageOverhead
                messages.append(message)
            }
            if messages.isEmpty { state.isPumpScheduled = false }
            return messages
        }
        makeRoom(for: messages)
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
        bulkGate.open()
    }

    private func clear(isAccepting: Bool) {
        let dropped = state.withLockedValue { state in
            let messages = Array(state.urgent) + Array(state.ordinary) + Array(state.bulk)
            state = State(isAccepting: isAccepting)
            return messages
        }
        makeRoom(for: dropped)
    }
}
