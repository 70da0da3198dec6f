package import OperonModel
package import OperonPorts

/// A store for a coordinator whose graphs end with its process. It answers everything that a store
/// on a disk answers; its syncs do nothing.
///
/// It grows with the operations, outputs and logs that it keeps, until they are dropped. It keeps
/// the last `Limits.storedEvents` events.
package actor MemoryStore: OperationStore {
    private var image: StoreImage
    private var isOpen = false

    /// - Parameter reign: Not 0, and different for each store.
    package init(reign: Reign, limits: Limits = Limits()) {
        image = StoreImage(reign: reign, limits: limits)
    }

    package nonisolated var syncInterval: Duration? { nil }

    package func open() throws -> StoredState {
        guard !isOpen else {
            throw StoreError(.held, "The store is held by another coordinator.")
        }
        isOpen = true
        image.raiseEpoch()
        return image.state
    }

    package func commit(_ batch: StoreBatch, by epoch: Epoch) throws {
        try checkOpen(by: epoch)
        try image.apply(batch)
    }

    package func sync() throws { try checkOpen() }

    package func output(of operation: OperationID) throws -> Payload? {
        try checkOpen()
        return image.output(of: operation)
    }

    package func log(of operation: OperationID) throws -> [StoredLog] {
        try checkOpen()
        return image.log(of: operation)
    }

    package func loggedOperations(of graph: GraphID) throws -> [UInt32] {
        try checkOpen()
        return image.loggedOperations(of: graph)
    }

    package func attempts(of operation: OperationID) throws -> [StoredAttempt] {
        try checkOpen()
        return image.attempts(of: operation)
    }

    package func attempts(
        of graph: GraphID,
        in operations: Range<UInt32>
    ) throws -> [StoreChanges.Attempt] {
        try checkOpen()
        return image.attempts(of: graph, in: operations)
    }

    package func events(after: UInt64, limit: Int) throws -> [StoredEvent] {
        try checkOpen()
        return image.events(after: after, limit: limit)
    }

    package func prunable(beyond bounds: StoreRetention.Bounds) throws -> [GraphID] {
        try checkOpen()
        if bounds.bytes != nil { image.weigh() }
        return image.prunable(beyond: bounds)
    }

    /// The number of rows of operations, attempts, outputs and logs, which grow until they are
    /// dropped.
    package var rowCount: Int { image.rowCount }

    package func drop(_ graphs: [GraphID], by epoch: Epoch) throws {
        try checkOpen(by: epoch)
        image.drop(graphs)
    }

    package func forget(workers: [Incarnation], by epoch: Epoch) throws -> [Incarnation] {
        try checkOpen(by: epoch)
        return image.forget(workers: workers)
    }

    package func backup() -> StoreBackup? { nil }

    package func close() { isOpen = false }

    /// - Parameter epoch: of the coordinator that writes; `nil`: of one that reads.
    private func checkOpen(by epoch: Epoch? = nil) throws {
        guard isOpen else { throw StoreError(.failed, "The store is not open.") }
        try epoch?.checkWrite(to: image.epoch)
    }
}
