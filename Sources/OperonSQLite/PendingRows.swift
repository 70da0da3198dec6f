import OperonModel
import OperonPorts

/// What is in the journal and not in the tables yet. Several changes of one row become one, so most
/// operations get their rows once, when they have ended.
///
/// Graphs, attempts in flight, queues, keys and rates are in memory in any case; of these it has
/// only the names of those that changed.
struct PendingRows {
    private(set) var graphs: Set<GraphID> = []
    private(set) var operations: [OperationID: StoredOperation] = [:]
    private(set) var ranges: [StoredRange] = []
    /// Attempts that have ended.
    private(set) var attempts: [AttemptID: StoreChanges.Attempt] = [:]
    /// Attempts that go on, and may have rows among those that have ended.
    private(set) var resumed: [AttemptID: OperationID] = [:]
    /// Operations whose attempt in flight has changed.
    private(set) var open: Set<OperationID> = []
    private(set) var queues: Set<String> = []
    private(set) var keys: Set<String> = []
    private(set) var rates: Set<RateScope> = []
    /// In the order of the records.
    private(set) var triggers: [TriggerRecord] = []
    private(set) var dependencyChanges: [StoreRecord] = []

    /// By default so many rows are written at once, in 10 to 20 ms. If they were fewer, more of the
    /// operations would be in flight then, each of which takes two rows more.
    static let rowsMax = 8_192

    var rowCount: Int {
        graphs.count + operations.count + ranges.count + attempts.count + resumed.count
            + open.count + queues.count + keys.count + rates.count + triggers.count
            + dependencyChanges.count
    }

    /// Notes changes other than those of attempts, for which see `noteEnded` and `noteOpen`.
    mutating func note(_ changes: StoreChanges) {
        graphs.formUnion(changes.graphs.keys)
        operations.merge(changes.operations) { $1 }
        for id in changes.ranges.keys.sorted() { ranges += changes.ranges[id]?.all ?? [] }
        queues.formUnion(changes.queues.keys)
        keys.formUnion(changes.keys.keys)
        rates.formUnion(changes.rates.keys)
        triggers += changes.triggers
        dependencyChanges += changes.dependencyChanges
    }

    /// Removes everything, each field above, and keeps the memory, because as much comes again: at
    /// most the rows of `rowsMax` and of one commit, or of one part of a large commit.
    mutating func removeAll() {
        graphs.removeAll(keepingCapacity: true)
        operations.removeAll(keepingCapacity: true)
        ranges.removeAll(keepingCapacity: true)
        attempts.removeAll(keepingCapacity: true)
        resumed.removeAll(keepingCapacity: true)
        open.removeAll(keepingCapacity: true)
        queues.removeAll(keepingCapacity: true)
        keys.removeAll(keepingCapacity: true)
        rates.removeAll(keepingCapacity: true)
        triggers.removeAll(keepingCapacity: true)
        dependencyChanges.removeAll(keepingCapacity: true)
    }

    mutating func noteEnded(_ attempt: StoreChanges.Attempt) {
        attempts[attempt.attempt.id] = attempt
    }

    mutating func noteOpen(_ operation: OperationID) { open.insert(operation) }

    /// Notes that an attempt is in flight again.
    mutating func noteResumed(_ attempt: AttemptID, of operation: OperationID) {
        attempts[attempt] = nil
        resumed[attempt] = operation
    }
}
