package import OperonModel

/// The properties of a graph's operations: one column for each, 18 bytes per operation.
struct OperationTable: Sendable {
    /// Only `move` and `restore` write it.
    private(set) var state: Column<OperationState>
    /// The number of operations in each state, so that nobody has to count them.
    private(set) var stateCounts = OperationStateCounts()
    var outcome: Column<OutcomeKind?>
    var flags: Column<OperationFlags>
    var level: Column<UInt8>
    /// The number of dependencies that have no outcome yet. Valid only while the operation is
    /// pending.
    var waiting: Column<UInt32>
    /// The place in the table of attempts, or `AttemptTable.none`.
    var attempt: Column<UInt32>
    /// The number of attempts so far.
    var ordinal: Column<UInt32>
    /// How often the operation was retried after a failure of its own, so far.
    var retries: Column<UInt16>

    /// Pending operations, one for each level.
    init(levels: [UInt8]) {
        state = Column()
        outcome = Column()
        flags = Column()
        level = Column()
        waiting = Column()
        attempt = Column()
        ordinal = Column()
        retries = Column()
        append(levels: levels)
    }

    var count: UInt32 { state.count }

    var indices: Range<UInt32> { 0..<count }

    /// Appends pending operations, one for each level.
    mutating func append(levels: [UInt8]) {
        state.append(.pending, count: levels.count)
        stateCounts[.pending] += levels.count
        outcome.append(nil, count: levels.count)
        flags.append([], count: levels.count)
        level.append(levels)
        waiting.append(0, count: levels.count)
        attempt.append(AttemptTable.none, count: levels.count)
        ordinal.append(0, count: levels.count)
        retries.append(0, count: levels.count)
    }

    /// Changes an operation's state. `OperationState.mayBecome` says which changes there are.
    mutating func move(_ index: UInt32, to next: OperationState) {
        precondition(
            state[index].mayBecome(next),
            "no operation that is \(state[index]) becomes \(next)"
        )
        change(index, to: next)
    }

    mutating func finish(_ indices: Range<UInt32>, _ kind: OutcomeKind) {
        for index in indices {
            move(index, to: .finished)
            outcome[index] = kind
        }
    }

    /// Sets the state that a store has for a pending operation.
    mutating func restore(_ index: UInt32, as stored: OperationState) {
        precondition(state[index] == .pending, "a state is restored once, before anything moves")
        change(index, to: stored)
    }

    @inline(__always) private mutating func change(_ index: UInt32, to next: OperationState) {
        stateCounts[state[index]] -= 1
        stateCounts[next] += 1
        state[index] = next
    }
}

/// Numbers of operations, one for each outcome. Without an array, because most graphs are small.
struct OutcomeCounts: Hashable, Sendable {
    private var succeeded = 0
    private var failed = 0
    private var cancelled = 0
    private var skipped = 0

    subscript(kind: OutcomeKind) -> Int {
        @inline(__always) get {
            switch kind {
            case .succeeded: succeeded
            case .failed: failed
            case .cancelled: cancelled
            case .skipped: skipped
            }
        }
        @inline(__always) set {
            switch kind {
            case .succeeded: succeeded = newValue
            case .failed: failed = newValue
            case .cancelled: cancelled = newValue
            case .skipped: skipped = newValue
            }
        }
    }
}

/// Numbers of operations, one for each state. Without an array, because most graphs are small.
struct OperationStateCounts: Hashable, Sendable {
    private var pending = 0
    private var ready = 0
    private var dispatched = 0
    private var executing = 0
    private var finished = 0

    subscript(state: OperationState) -> Int {
        @inline(__always) get {
            switch state {
            case .pending: pending
            case .ready: ready
            case .dispatched: dispatched
            case .executing: executing
            case .finished: finished
            }
        }
        @inline(__always) set {
            switch state {
            case .pending: pending = newValue
            case .ready: ready = newValue
            case .dispatched: dispatched = newValue
            case .executing: executing = newValue
            case .finished: finished = newValue
            }
        }
    }
}

/// One property of all operations of a graph, by the operation's index.
struct Column<Value: Sendable>: Sendable {
    private var values: [Value] = []

    var count: UInt32 { UInt32(values.count) }

    subscript(index: UInt32) -> Value {
        @inline(__always) _read { yield values[Int(index)] }
        @inline(__always) _modify { yield &values[Int(index)] }
    }

    mutating func append(_ value: Value, count: Int) {
        values.append(contentsOf: repeatElement(value, count: count))
    }

    mutating func append(_ values: [Value]) { self.values.append(contentsOf: values) }

    /// The values in the order of the operations.
    var all: [Value] { values }
}

extension OperationState {
    /// The arrows of `docs/STATES.md`. What comes back from a worker to `pending` becomes `ready`
    /// first, within the same event.
    package func mayBecome(_ next: OperationState) -> Bool {
        switch (self, next) {
        case (.pending, .ready), (.pending, .finished): true
        case (.ready, .pending), (.ready, .dispatched), (.ready, .executing), (.ready, .finished):
            true
        case (.dispatched, .ready), (.dispatched, .executing), (.dispatched, .finished): true
        case (.executing, .ready), (.executing, .finished): true
        case (.finished, .pending): true
        default: false
        }
    }
}
