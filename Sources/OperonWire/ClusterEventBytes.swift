import OperonModel

/// Encodes a `ClusterEvent` as Protocol Buffers field by field. Three of them are stored for each
/// operation, and the generated encoder takes several times as long.
struct ClusterEventBytes {
    private(set) var bytes: [UInt8] = []

    /// - Parameter event: must have no error; this encoder does not know the fields of errors.
    init(_ event: ClusterEvent) {
        bytes.reserveCapacity(64)
        addFixed(1, UInt64(bitPattern: event.at.nanosecondsSince1970))
        add(2, UInt64(event.kind.rawValue))
        if let graph = event.graph { addEvenZero(3, UInt64(graph.rawValue)) }
        if let operation = event.operation { addEvenZero(4, UInt64(operation.index)) }
        if let outcome = event.outcome { add(5, UInt64(outcome.rawValue) + 1) }
        if let attempt = event.attempt {
            add(6, UInt64(attempt.epoch.rawValue))
            add(7, attempt.number)
        }
        if let ending = event.ending { add(8, UInt64(ending.rawValue)) }
        if let worker = event.worker { addFixed(10, worker.rawValue) }
        add(11, event.workerName)
        add(12, event.queue)
        add(13, event.by)
        add(14, event.reason)
        add(15, event.key)
        // Field 16 is the first whose tag takes two bytes.
        if event.isUpToDate { bytes += [0x80, 0x01, 1] }
    }

    // Default values are left out, as in the generated encoder.

    private mutating func add(_ field: UInt8, _ value: UInt64) {
        if value != 0 { addEvenZero(field, value) }
    }

    private mutating func addEvenZero(_ field: UInt8, _ value: UInt64) {
        bytes.append(field << 3)
        addVarint(value)
    }

    private mutating func addVarint(_ value: UInt64) {
        var value = value
        while value > 0x7F {
            bytes.append(UInt8(truncatingIfNeeded: value) | 0x80)
            value >>= 7
        }
        bytes.append(UInt8(value))
    }

    private mutating func addFixed(_ field: UInt8, _ value: UInt64) {
        guard value != 0 else { return }
        bytes.append(field << 3 | 1)
        for shift in stride(from: 0, to: 64, by: 8) {
            bytes.append(UInt8(truncatingIfNeeded: value >> UInt64(shift)))
        }
    }

    private mutating func add(_ field: UInt8, _ text: String) {
        guard !text.isEmpty else { return }
        bytes.append(field << 3 | 2)
        addVarint(UInt64(text.utf8.count))
        bytes.append(contentsOf: text.utf8)
    }
}
