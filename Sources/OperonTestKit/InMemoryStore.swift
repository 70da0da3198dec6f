package import OperonModel
package import OperonPorts

/// A store without a disk: it can lose what was not synced, as in a power cut, and fail on demand.
package actor InMemoryStore: OperationStore {
    private var image: StoreImage
    /// What is safe from a power cut.
    private var synced: StoreImage
    private var isOpen = false
    /// What the next commits fail with, the first first.
    private var failures: [StoreError] = []
    /// What every sync fails with.
    private var syncFailure: StoreError?
    /// Syncs wait until somebody lets them go, one by one.
    private var holdsSyncs = false
    private var heldSync: CheckedContinuation<Void, Never>?
    private var heldSyncs = 0
    /// Whoever waits for so many syncs to be held, one after the other.
    private var holdWaiters: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []
    /// What reading an output fails with.
    private var readFailure: StoreError?
    /// Happens while an output is read.
    private var duringRead: (@Sendable () async -> Void)?
    package private(set) var commits = 0
    package private(set) var syncs = 0

    package init(reign: Reign, limits: Limits = Limits()) {
        image = StoreImage(reign: reign, limits: limits)
        synced = image
    }

    package func open() throws -> StoredState {
        guard !isOpen else {
            throw StoreError(.held, "The store is held by another coordinator.")
        }
        isOpen = true
        image.raiseEpoch()
        synced = image
        return image.state
    }

    package func commit(_ batch: StoreBatch, by epoch: Epoch) throws {
        try checkOpen(by: epoch)
        if !failures.isEmpty { throw failures.removeFirst() }
        try image.apply(batch)
        commits += 1
    }

    package func sync() async throws { try await sync {} }

    /// A sync that lasts as long as this function: what is committed meanwhile is not safe.
    package func sync(_ lasts: @Sendable () async throws -> Void) async throws {
        try checkOpen()
        if let syncFailure { throw syncFailure }
        let image = image
        try await lasts()
        if holdsSyncs { await hold() }
        synced = image
        syncs += 1
    }

    private func hold() async {
        heldSyncs += 1
        await withCheckedContinuation { continuation in
            heldSync = continuation
            let reached = holdWaiters.filter { $0.count <= heldSyncs }
            holdWaiters.removeAll { $0.count <= heldSyncs }
            for waiter in reached { waiter.continuation.resume() }
        }
    }

    package func output(of operation: OperationID) async throws -> Payload? {
        await duringRead?()
        try checkOpen()
        if let readFailure { throw readFailure }
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
        return image.prunable(beyond: bounds)
    }

    package func drop(_ graphs: [GraphID], by epoch: Epoch) throws {
        try checkOpen(by: epoch)
        image.drop(graphs)
    }

    package func forget(workers: [Incarnation], by epoch: Epoch) throws -> [Incarnation] {
        try checkOpen(by: epoch)
        return image.forget(workers: workers)
    }

    package func backup() -> StoreBackup? { nil }

    package func close() {
        if isOpen { synced = image }
        isOpen = false
    }

    /// - Parameter epoch: of the coordinator that writes; `nil`: of one that reads.
    private func checkOpen(by epoch: Epoch? = nil) throws {
        guard isOpen else { throw StoreError(.failed, "The store is not open.") }
        try epoch?.checkWrite(to: image.epoch)
    }

    // MARK: - Faults

    /// The next commits fail with these, one each, and leave nothing behind.
    package func fail(_ errors: [StoreError]) { failures += errors }

    /// No commit fails any more.
    package func heal() { failures = [] }

    /// Every sync fails with this from now on; what is committed can be read.
    package func failSyncs(_ error: StoreError) { syncFailure = error }

    /// From now on each sync waits for `letSyncGo`.
    package func holdSyncs() { holdsSyncs = true }

    /// Returns when so many syncs have been held, the last of them still.
    package func waitForHeldSync(number count: Int) async {
        guard heldSyncs < count else { return }
        await withCheckedContinuation { holdWaiters.append((count, $0)) }
    }

    /// The sync that is held goes on; with `all` every other as well.
    package func letSyncGo(all: Bool = false) {
        if all { holdsSyncs = false }
        heldSync?.resume()
        heldSync = nil
    }

    /// No output can be read from now on.
    package func failReads(_ error: StoreError) { readFailure = error }

    /// Whenever an output is read, this happens first.
    package func whileReading(_ action: @escaping @Sendable () async -> Void) {
        duringRead = action
    }

    /// Its coordinator dies. All that was committed is there for the next one.
    package func kill() { isOpen = false }

    /// Its machine dies: what was not synced is lost.
    package func cutPower() {
        image = synced
        isOpen = false
    }
}
