import OperonModel

/// Encodes a `ClusterEvent` as Protocol Buffers field by field. Three of them are stored for each
/// operation, and the generated encoder takes several times as long.
struct ClusterEventBytes {
    private var writer = FieldWriter(reserving: 64)
    var bytes: [UInt8] { writer.bytes }

    /// - Parameter event: must have no error; this encoder does not know the fields of errors.
    init(_ event: ClusterEvent) {
        writer.addFixed(1 << 3 | 1, UInt64(bitPattern: event.at.nanosecondsSince1970))
        writer.add(2 << 3, UInt64(event.kind.rawValue))
        if let graph = event.graph { writer.addEvenZero(3 << 3, UInt64(graph.rawValue)) }
        if let operation = event.operation { writer.addEvenZero(4 << 3, UInt64(operation.index)) }
        if let outcome = event.outcome { writer.add(5 << 3, UInt64(outcome.rawValue) + 1) }
        if let attempt = event.attempt {
            writer.add(6 << 3, attempt.epoch.rawValue)
            writer.add(7 << 3, attempt.number)
        }
        if let ending = event.ending { writer.add(8 << 3, UInt64(ending.rawValue)) }
        if let worker = event.worker { writer.addFixed(10 << 3 | 1, worker.rawValue) }
        writer.add(11 << 3 | 2, event.workerName)
        writer.add(12 << 3 | 2, event.queue)
        writer.add(13 << 3 | 2, event.by)
        writer.add(14 << 3 | 2, event.reason)
        writer.add(15 << 3 | 2, event.key)
        writer.add(16 << 3, event.isUpToDate)
        writer.add(17 << 3, event.count ?? 0)
        writer.add(18 << 3 | 2, event.trigger)
        writer.add(19 << 3, event.firing ?? 0)
    }
}
