import OperonModel
import OperonPorts

/// The names of queues and exchanges under a prefix, and what each side declares.
struct Topology: Hashable, Sendable {
    let prefix: String

    var dispatch: String { prefix + "dispatch" }
    var broadcast: String { prefix + "broadcast" }
    var events: String { prefix + "events" }
    var beats: String { prefix + "beats" }
    var lock: String { prefix + "coordinator" }
    static let coordinatorKey = "coordinator"

    func queue(of worker: WorkerAddress) -> String {
        "\(prefix)worker.\(worker.incarnation).\(worker.connection)"
    }

    /// The worker connection that a queue's name belongs to; `nil` for other names.
    func worker(queue: String) -> WorkerAddress? {
        let start = prefix + "worker."
        guard queue.hasPrefix(start) else { return nil }
        let parts = queue.dropFirst(start.count).split(separator: ".")
        guard parts.count == 2, let incarnation = Incarnation(text: parts[0]),
            let connection = UInt32(parts[1])
        else { return nil }
        return WorkerAddress(incarnation: incarnation, connection: connection)
    }

    func publish(to destination: Outbox.Destination) -> OutgoingMethod {
        switch destination {
        case .worker(let address):
            .publish(exchange: dispatch, routingKey: queue(of: address), isMandatory: true)
        case .broadcast:
            // With no worker there, there is nobody to tell: not mandatory.
            .publish(exchange: broadcast, routingKey: "", isMandatory: false)
        case .events:
            .publish(exchange: events, routingKey: Self.coordinatorKey, isMandatory: true)
        case .beats:
            .publish(exchange: beats, routingKey: Self.coordinatorKey, isMandatory: true)
        }
    }
}

// MARK: - Declared by each side

extension Topology {
    /// A worker's queue, bound before it is consumed.
    func worker(_ address: WorkerAddress) -> [OutgoingMethod] {
        let queue = queue(of: address)
        return [
            .queueDeclare(name: queue, arguments: []),
            .queueBind(queue: queue, exchange: dispatch, routingKey: queue),
            .queueBind(queue: queue, exchange: broadcast, routingKey: ""),
            .consume(queue: queue, consumer: .worker),
        ]
    }

    /// The lock first, so that whoever does not get it changes nothing.
    func coordinator(epoch: Epoch, connection: UInt32, beat: Duration) -> [OutgoingMethod] {
        let eventsQueue = "\(prefix)events.\(epoch).\(connection)"
        let beatsQueue = "\(prefix)beats.\(epoch).\(connection)"
        return [
            .queueDeclare(name: lock, arguments: []),
            .consume(queue: lock, consumer: .lock),
            .exchangeDeclare(name: events, kind: .direct),
            .exchangeDeclare(name: beats, kind: .direct),
            .queueDeclare(
                name: eventsQueue,
                // Full: what workers send is refused, and their beats have it asked for again.
                arguments: [.lengthBytesMax(512 << 20), .overflow(.rejectPublish)]
            ),
            .queueBind(
                queue: eventsQueue,
                exchange: events,
                routingKey: Self.coordinatorKey
            ),
            .consume(queue: eventsQueue, consumer: .events),
            .queueDeclare(
                name: beatsQueue,
                // Four beats of 5,000 workers; an older beat than the last three says nothing.
                arguments: [.messageTTL(beat * 3), .lengthMax(20_000), .overflow(.dropHead)]
            ),
            .queueBind(queue: beatsQueue, exchange: beats, routingKey: Self.coordinatorKey),
            .consume(queue: beatsQueue, consumer: .beats),
            // What workers wait for comes last: one that finds it can be heard.
            .exchangeDeclare(name: dispatch, kind: .direct),
            .exchangeDeclare(name: broadcast, kind: .fanout),
        ]
    }

    /// A queue for the answer of whoever holds the lock. `id` is random: another may be asking.
    func asking(id: UInt64) -> (queue: String, methods: [OutgoingMethod]) {
        let queue = "\(prefix)asks.\(Incarnation(rawValue: id))"
        return (
            queue,
            [.queueDeclare(name: queue, arguments: []), .consume(queue: queue, consumer: .asks)]
        )
    }
}
