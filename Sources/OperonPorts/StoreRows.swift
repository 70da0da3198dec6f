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

/// Lookups that a store offers to compute the changes of a batch. They return the state before the
/// batch; `StoreChanges` itself tracks the changes within the batch.
package protocol StoreRows {
    func graph(_ id: GraphID) throws -> GraphEntry?
    /// `nil`: the operation is unchanged since its submission.
    func operation(_ id: OperationID) throws -> StoredOperation?
    /// The attempt of an operation that is in flight.
    func openAttempt(of operation: OperationID) throws -> StoredAttempt?
    /// Operations of a graph that have an attempt in flight, in ascending order.
    func openOperations(of graph: GraphID) throws -> [OperationID]
    /// An attempt that is in flight or has ended.
    func attempt(_ id: AttemptID, of operation: OperationID) throws -> StoredAttempt?
    func queue(_ name: String) throws -> StoredQueue?
    func key(_ name: String) throws -> StoredKey?
    /// Bytes of the logs of an operation by attempt, the first attempt first.
    func logSizes(of operation: OperationID) throws -> [(attempt: AttemptID, bytes: Int)]
    /// Number of the oldest stored event; one more than `lastEvent` if none is stored.
    var firstEvent: UInt64 { get throws }
    var lastEvent: UInt64 { get throws }
}
