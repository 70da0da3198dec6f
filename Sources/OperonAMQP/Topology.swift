import OperonModel
import OperonPorts

/// The names of queues and exchanges under a prefix, and the declarations of each side.
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

    /// The worker connection of the queue with this name; `nil` for other names.
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
            // Not mandatory: without workers, nobody needs the message.
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
    /// The methods for a worker's queue, which is bound before it is consumed.
    func worker(_ address: WorkerAddress) -> [OutgoingMethod] {
        let queue = queue(of: address)
        return [
            .queueDeclare(name: queue, arguments: []),
            .queueBind(queue: queue, exchange: dispatch, routingKey: queue),
            .queueBind(queue: queue, exchange: broadcast, routingKey: ""),
            .consume(queue: queue, consumer: .worker),
        ]
    }

    /// The methods of a coordinator. The lock comes first, so that a coordinator that does not get
    /// it changes nothing.
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
                // If the queue is full, the broker refuses events of workers; their beats cause the
                // coordinator to request them again.
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
                // Four beats of 5,000 workers. A beat older than the last three has no meaning.
                arguments: [.messageTTL(beat * 3), .lengthMax(20_000), .overflow(.dropHead)]
            ),
            .queueBind(queue: beatsQueue, exchange: beats, routingKey: Self.coordinatorKey),
            .consume(queue: beatsQueue, consumer: .beats),
            // The exchanges that workers wait for come last: a worker that finds them can be heard.
            .exchangeDeclare(name: dispatch, kind: .direct),
            .exchangeDeclare(name: broadcast, kind: .fanout),
        ]
    }

    /// A queue for the answer of the lock's holder. `id` is random, because other processes may ask
    /// at the same time.
    func asking(id: UInt64) -> (queue: String, methods: [OutgoingMethod]) {
        let queue = "\(prefix)asks.\(Incarnation(rawValue: id))"
        return (
            queue,
            [.queueDeclare(name: queue, arguments: []), .consume(queue: queue, consumer: .asks)]
        )
    }
}
