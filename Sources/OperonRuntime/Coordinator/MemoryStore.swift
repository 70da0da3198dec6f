package import OperonModel
package import OperonPorts

/// A store of a coordinator whose graphs end with its process: it answers all that a store on a
/// disk answers, and syncs for nothing.
///
/// It grows with the operations, outputs and logs that it keeps, until they are dropped; of events
/// it keeps the last `Limits.storedEvents`.
package actor MemoryStore: OperationStore {
    private var image: StoreImage
    private var isOpen = false

    /// - Parameter reign: any but 0, and another for each store.
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

    package func commit(_ batch: StoreBatch) throws {
        try checkOpen()
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

    package func attempts(of operation: OperationID) throws -> [StoredAttempt] {
        try checkOpen()
        return image.attempts(of: operation)
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

    /// Rows of operations, attempts, outputs and logs: what grows until it is dropped.
    package var rowCount: Int { image.rowCount }

    package func drop(_ graphs: [GraphID]) throws {
        try checkOpen()
        image.drop(graphs)
    }

    package func forget(workers: [Incarnation]) throws -> [Incarnation] {
        try checkOpen()
        return image.forget(workers: workers)
    }

    package func backup() throws -> StoreBackup {
        throw StoreError(.failed, "What is kept in memory cannot be copied.")
    }

    package func close() { isOpen = false }

    private func checkOpen() throws {
        guard isOpen else { throw StoreError(.failed, "The store is not open.") }
    }
}
