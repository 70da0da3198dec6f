package import OperonModel

/// What a store keeps of a graph beside what it is made of and what became of its operations.
package struct GraphEntry: Hashable, Sendable {
    package let id: GraphID
    package var name: String
    package var submittedAt: WallTime
    /// When nothing of it was left to do and nothing could be added any more.
    package var finishedAt: WallTime?
    package var isOpen: Bool
    package var isTombstone = false
    package var suspension: Suspension?
    package var cancelReason: String?
    package var operationCount: UInt32
    /// Operations with an outcome.
    package var finishedCount: UInt32 = 0
    /// Other graphs that operations of it depend on, in their order.
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

    /// What is left of it when it is dropped.
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

/// What a store looks up to find what a batch changes. Before the batch, that is: what the batch
/// itself changed is remembered by `StoreChanges`.
package protocol StoreRows {
    func graph(_ id: GraphID) throws -> GraphEntry?
    /// `nil`: it is as it was submitted.
    func operation(_ id: OperationID) throws -> StoredOperation?
    /// The attempt of an operation that is in flight.
    func openAttempt(of operation: OperationID) throws -> StoredAttempt?
    /// Operations of a graph that have an attempt in flight, in their order.
    func openOperations(of graph: GraphID) throws -> [OperationID]
    /// One in flight or ended.
    func attempt(_ id: AttemptID, of operation: OperationID) throws -> StoredAttempt?
    func queue(_ name: String) throws -> StoredQueue?
    func key(_ name: String) throws -> StoredKey?
    /// Bytes of the logs of an operation, by attempt, the first first.
    func logSizes(of operation: OperationID) throws -> [(attempt: AttemptID, bytes: Int)]
    /// Number of the oldest event that is kept; one more than `lastEvent` if none is.
    var firstEvent: UInt64 { get throws }
    var lastEvent: UInt64 { get throws }
}

extension StoreError {
    /// A batch says what cannot be: the coordinator that sent it cannot go on.
    static func contradiction(_ what: String) -> StoreError {
        StoreError(.failed, "The store was told what cannot be: \(what). This is a defect.")
    }
}
