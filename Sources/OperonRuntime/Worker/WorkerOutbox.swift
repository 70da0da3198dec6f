package import OperonCore
package import OperonModel
package import OperonPorts

/// The messages that a worker has decided to send and its transport has not taken yet.
///
/// Events that wait here travel in one message: the busier the transport, the larger the messages.
/// No event waits here for others to join it.
package struct WorkerOutbox: Sendable {
    package enum Item: Sendable {
        case message(WorkerLane, WorkerEnvelope)
        /// A message in the form in which it is sealed, among events.
        case encoded([UInt8])
        case reconnect
        case leave
    }

    private let eventsPerMessage: Int
    private let bytesPerMessage: Int
    private var items: [Item] = []
    /// The size of the last item, if that is a message of events.
    private var lastBytes = 0

    package init(_ configuration: WorkerAgent.Configuration) {
        eventsPerMessage = configuration.eventsPerMessage
        bytesPerMessage = configuration.eventBytesPerMessage
    }

    package var isEmpty: Bool { items.isEmpty }

    package mutating func append(_ item: Item) {
        guard case .message(.events, let envelope) = item,
            case .events(let batch) = envelope.body
        else {
            items.append(item)
            return
        }
        let bytes = batch.events.reduce(0) { $0 + $1.byteCount }
        if joinLast(batch, bytes: bytes, of: envelope) {
            lastBytes += bytes
        } else {
            items.append(item)
            lastBytes = bytes
        }
    }

    /// Joins events to the last message if they follow it on the same connection, as if both
    /// messages had arrived one after the other.
    private mutating func joinLast(
        _ later: EventBatch,
        bytes: Int,
        of envelope: WorkerEnvelope
    ) -> Bool {
        guard case .message(.events, var last) = items.last, case .events(var batch) = last.body,
            last.reign == envelope.reign, last.epoch == envelope.epoch,
            last.sender.connection == envelope.sender.connection,
            batch.firstNumber + UInt64(batch.events.count) == later.firstNumber,
            batch.events.count + later.events.count <= eventsPerMessage,
            lastBytes + bytes <= bytesPerMessage
        else { return false }
        // Gives up the other references to the events, so that they are not copied.
        items.removeLast()
        last.body = .events(later)
        batch.events += later.events
        // The message states times as ages at `sentAt`, so that is the time of its latest events.
        batch.sentAt = later.sentAt
        last.body = .events(batch)
        items.append(.message(.events, last))
        return true
    }

    /// Takes everything that waits, in sending order.
    package mutating func take() -> [Item] {
        defer { items.removeAll(keepingCapacity: true) }
        return items
    }
}

extension WorkerEnvelope {
    /// The approximate size in memory, in bytes.
    var approximateBytes: Int {
        switch body {
        case .events(let batch): batch.events.reduce(0) { $0 + $1.byteCount }
        case .log(let chunk): chunk.bytes.count
        case .watched(let reports): reports.reduce(0) { $0 + $1.approximateBytes }
        case .hello, .beat, .progress, .tick, .fetch: 0
        }
    }
}
