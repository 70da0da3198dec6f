import OperonModel

/// A hash of what stays the same in an event or a message when it is sent again, also by another
/// attempt of the same operation: it excludes sequence numbers, times and attempts. Every process
/// computes the same hash.
struct EventIdentity {
    private(set) var key: UInt64 = 0xCBF2_9CE4_8422_2325

    /// The identity of an operation's event.
    init(_ event: WorkerEvent) {
        let operation = event.held.operation
        add(UInt64(operation.graph.rawValue) << 32 | UInt64(operation.index))
        switch event {
        case .started: add(1)
        case .finished(_, let result):
            add(2)
            add(result.output.bytes)
            add(result.log.tail)
            switch result.end {
            case .succeeded: add(1)
            case .failed(let error): add(Array("\(error.code)".utf8))
            case .cancelled: add(3)
            case .crashed: add(4)
            case .notYet: add(5)
            }
        case .returned: add(3)
        case .added(_, let request):
            add(4)
            add(request.operations)
        case .yielded(_, let request):
            add(5)
            add(UInt64(request.names.count))
            for name in request.names.prefix(Self.namesMax) { add(Array(name.utf8)) }
        case .read(_, let request):
            add(6)
            add(Array(request.name.utf8))
        }
    }

    /// The identity of a message without events: the worker and the kind of message. `nil`: the
    /// message has events.
    init?(_ envelope: WorkerEnvelope) {
        let kind: UInt64
        switch envelope.body {
        case .events: return nil
        case .hello: kind = 16
        case .beat: kind = 17
        case .log: kind = 18
        case .progress: kind = 19
        case .fetch: kind = 20
        case .tick: kind = 21
        case .watched: kind = 22
        }
        add(envelope.sender.incarnation.rawValue)
        add(kind)
    }

    /// The most names that are hashed.
    private static let namesMax = 64
    /// The most bytes that are hashed at either end, few enough to cost next to nothing.
    private static let bytesMax = 1_024

    private mutating func add(_ bytes: [UInt8]) {
        add(UInt64(bytes.count))
        let first = min(bytes.count, Self.bytesMax)
        add(bytes[..<first])
        add(bytes[max(first, bytes.count - Self.bytesMax)...])
    }

    private mutating func add(_ bytes: ArraySlice<UInt8>) {
        var word: UInt64 = 0
        var count = 0
        for byte in bytes {
            word = word << 8 | UInt64(byte)
            count += 1
            if count.isMultiple(of: 8) { add(word) }
        }
        add(word)
    }

    private mutating func add(_ word: UInt64) {
        key = (key ^ word) &* 0x9E37_79B9_7F4A_7C15
        key ^= key >> 29
    }
}
