import NIOCore
import OperonModel
import OperonPorts
import Synchronization

/// Messages that were accepted but are not yet in the socket, in three lanes; each lane overtakes
/// the next. Any task adds messages; the connection's event loop takes them.
final class Outbox: Sendable {
    enum Destination: Hashable, Sendable {
        case worker(WorkerAddress)
        case broadcast
        case events
        case beats

        /// The destination at which the coordinator receives this lane.
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
        /// Whether the message waits behind everything else.
        var isBulk = false
    }

    private struct State {
        var isAccepting = false
        var isPumpScheduled = false
        var urgent = CircularBuffer<Message>()
        var ordinary = CircularBuffer<Message>()
        var bulk = CircularBuffer<Message>()
    }

    /// Bytes of a message besides its body: the method, the header and the ends of three frames.
    private static let messageOverhead = 128
    /// Bytes of bulk messages that may wait; this is enough to keep the socket busy.
    static let bulkBytesMax = 1 << 20
    private let gate: RoomGate
    private let bulkGate = RoomGate(limit: Outbox.bulkBytesMax)
    private let state = Mutex(State())

    init(bytesMax: Int) { gate = RoomGate(limit: bytesMax) }

    var bytes: Int { gate.used + bulkGate.used }

    /// Returns whether the event loop has to be notified. The caller then waits for room.
    func append(_ message: Message) -> Bool {
        state.withLock { state in
            // There is no connection, and the message would be lost with it anyway.
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

    /// Releases the room of messages that no longer wait.
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

    /// Takes the next messages, urgent ones first, until they have `bytesMax` bytes.
    func take(bytesMax: Int) -> [Message] {
        let messages = state.withLock { state in
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

    /// Takes the waiting urgent messages, the only ones that may be sent while a large message is
    /// being written.
    func takeUrgent() -> [Message] {
        let messages = state.withLock { state in
            defer { state.urgent.removeAll() }
            return Array(state.urgent)
        }
        let bytes = messages.reduce(0) { $0 + $1.body.count + Self.messageOverhead }
        if bytes > 0 { gate.remove(bytes) }
        return messages
    }

    /// Starts to accept messages. Drops those that wait, which belong to an earlier connection.
    func begin() {
        clear(isAccepting: true)
    }

    /// Drops the waiting messages, and all further ones.
    func drop() {
        clear(isAccepting: false)
    }

    /// Drops further messages. Those that wait are still sent.
    func stopAccepting() {
        state.withLock { $0.isAccepting = false }
        // The connection is being closed, so no sender may wait for room any longer.
        gate.open()
        bulkGate.open()
    }

    private func clear(isAccepting: Bool) {
        let dropped = state.withLock { state in
            let messages = Array(state.urgent) + Array(state.ordinary) + Array(state.bulk)
            state = State(isAccepting: isAccepting)
            return messages
        }
        makeRoom(for: dropped)
    }
}
