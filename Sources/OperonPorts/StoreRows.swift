package import OperonModel

/// What a store keeps of a graph, apart from its contents and the progress of its operations.
package struct GraphEntry: Hashable, Sendable {
    package let id: GraphID
    package var name: String
    package var submittedAt: WallTime
    /// When all its operations were finished and no more could be added.
    package var finishedAt: WallTime?
    package var isOpen: Bool
    package var isTombstone = false
    package var suspension: Suspension?
    package var cancelReason: String?
    package var operationCount: UInt32
    /// Operations with an outcome.
    package var finishedCount: UInt32 = 0
    /// Other graphs that its operations depend on, in ascending order.
    package var needs: [GraphID] = []

    package init(
        id: GraphID,
        name: String,
        submittedAt: WallTime,
        isOpen: Bool,
        operationCount: UInt32
    ) {
        self.id = id
        self.name = name
        self.submittedAt = submittedAt
        self.isOpen = isOpen
        self.operationCount = operationCount
    }

    package var hasEnded: Bool { !isOpen && finishedCount == operationCount }

    /// What remains of the entry when the graph is dropped.
    package var tombstone: GraphEntry {
        var entry = self
        entry.isTombstone = true
        entry.suspension = nil
        entry.cancelReason = nil
        entry.needs = []
        return entry
    }

    package mutating func need(_ others: [GraphID]) {
        for other in others where other != id && !needs.contains(other) {
            let place = needs.firstIndex { $0 > other } ?? needs.count
            needs.insert(other, at: place)
        }
    }
}

/// The rows that a store has for the wants of a batch, as they are before the batch.
package struct StoreRows: Sendable {
    package var graphs: [GraphID: GraphEntry] = [:]
    /// None for an operation that is unchanged since its submission.
    package var operations: [OperationID: StoredOperation] = [:]
    /// Attempts in flight and attempts that have ended.
    package var attempts: [AttemptID: StoreChanges.Attempt] = [:]
    /// The attempt in flight of each wanted operation that has one.
    package var open: [OperationID: AttemptID?] = [:]
    package var queues: [String: StoredQueue] = [:]
    package var keys: [String: StoredKey] = [:]
    package var rates: [RateScope: StoredRate] = [:]
    /// Those of the wanted triggers that exist.
    package var triggers: Set<TriggerID> = []
    /// The operations that have an attempt in flight, of each cancelled graph of which operations
    /// are reopened.
    package var running: [GraphID: [OperationID: StoredOperation]] = [:]
    /// Bytes of the logs of an operation by attempt, the first attempt first.
    package var logSizes: [OperationID: [(attempt: AttemptID, bytes: Int)]] = [:]
    /// Number of the oldest stored event; one more than `lastEvent` if none is stored.
    package var firstEvent: UInt64
    package var lastEvent: UInt64
}

/// A store that looks up rows one by one, without a round trip.
package protocol StoreLookup {
    func graph(_ id: GraphID) throws -> GraphEntry?
    func operation(_ id: OperationID) throws -> StoredOperation?
    /// Those of a range that have changed since their submission, in any order.
    func changedOperations(in range: OperationRange) throws -> [OperationID]
    /// The attempt of an operation that is in flight.
    func openAttempt(of operation: OperationID) throws -> StoredAttempt?
    func openOperations(of graph: GraphID) throws -> [OperationID]
    /// An attempt that is in flight or has ended.
    func attempt(_ id: AttemptID, of operation: OperationID) throws -> StoredAttempt?
    func queue(_ name: String) throws -> StoredQueue?
    func key(_ name: String) throws -> StoredKey?
    func rate(_ scope: RateScope) throws -> StoredRate?
    func hasTrigger(_ id: TriggerID) throws -> Bool
    func logSizes(of operation: OperationID) throws -> [(attempt: AttemptID, bytes: Int)]
    var firstEvent: UInt64 { get }
    var lastEvent: UInt64 { get }
}

extension StoreLookup {
    private static var reservedRowsMin: Int { 8 }

    package func rows(for wants: StoreWants) throws -> StoreRows {
        var rows = StoreRows(firstEvent: firstEvent, lastEvent: lastEvent)
        // For a few rows, the tables that grow cost less.
        if wants.operations.count >= Self.reservedRowsMin {
            rows.operations.reserveCapacity(wants.operations.count)
            rows.attempts.reserveCapacity(wants.open.count)
            rows.open.reserveCapacity(wants.open.count)
        }
        for id in wants.graphs where rows.graphs[id] == nil { rows.graphs[id] = try graph(id) }
        // Rows are large: they are looked for without being copied.
        for id in wants.operations where rows.operations.index(forKey: id) == nil {
            if let known = try operation(id) { rows.operations[id] = known }
        }
        var open = wants.open
        for range in wants.ranges {
            for id in try changedOperations(in: range) {
                open.append(id)
                guard rows.operations.index(forKey: id) == nil else { continue }
                if let known = try operation(id) { rows.operations[id] = known }
            }
        }
        for id in open where rows.open.index(forKey: id) == nil {
            guard let attempt = try openAttempt(of: id) else { continue }
            rows.open[id] = attempt.id
            rows.attempts[attempt.id] = StoreChanges.Attempt(operation: id, attempt: attempt)
        }
        for (id, operation) in wants.attempts where rows.attempts.index(forKey: id) == nil {
            guard let attempt = try attempt(id, of: operation) else { continue }
            rows.attempts[id] = StoreChanges.Attempt(operation: operation, attempt: attempt)
        }
        for name in wants.queues { rows.queues[name] = try queue(name) }
        for name in wants.keys { rows.keys[name] = try key(name) }
        for scope in wants.rates { rows.rates[scope] = try rate(scope) }
        for id in wants.triggers where try hasTrigger(id) { rows.triggers.insert(id) }
        for graph in wants.reopened where rows.running[graph] == nil {
            let isCancelled = rows.graphs[graph]?.cancelReason != nil
            guard isCancelled || wants.cancelled.contains(graph) else { continue }
            for id in try openOperations(of: graph) {
                rows.running[graph, default: [:]][id] = try operation(id)
            }
        }
        for id in wants.logs where rows.hasEndedAttempt(id) {
            rows.logSizes[id] = try logSizes(of: id)
        }
        return rows
    }
}

extension StoreRows {
    /// Whether an operation may have logs: it has an attempt beside the one in flight.
    fileprivate func hasEndedAttempt(_ id: OperationID) -> Bool {
        let attempts = operations[id]?.attempts ?? 0
        return attempts > 1 || attempts == 1 && open[id] == nil
    }
}
