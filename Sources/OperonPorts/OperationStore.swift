package import OperonModel

/// Where a coordinator keeps the state that must outlive its process. Only one coordinator at a
/// time can open a store; a second one is refused.
///
/// Every write names the epoch of the coordinator that makes it. If that is not the store's epoch,
/// nothing is written: see `Epoch.checkWrite`.
///
/// Every call may block on a disk, so an implementation must not do its work on a cooperative
/// thread.
package protocol OperationStore: Sendable {
    /// Returns everything that was committed and raises the epoch. The new epoch is synced when
    /// this returns. Call it once, before anything else.
    ///
    /// - Throws: `StoreError`.
    func open() async throws -> StoredState

    /// Stores a batch in one transaction: all of it or nothing.
    ///
    /// - Throws: `StoreError`. After a transient error (`isTransient`: full, busy) nothing of the
    ///   batch was stored, and the batches may be tried again in order. After any other error the
    ///   state of the store is unknown and the process must end.
    func commit(_ batch: StoreBatch, by epoch: Epoch) async throws

    /// Returns when everything committed before is synced, so that a power cut loses none of it.
    func sync() async throws

    /// The longest time between a commit and its sync when no caller waits for the sync. `nil` if
    /// nothing ever needs a sync because nothing outlives the process.
    var syncInterval: Duration? { get }

    /// The path of the store's file, for files that belong next to it; `nil` if the store has no
    /// file.
    var filePath: String? { get }

    /// The output of a finished operation, if it is still stored.
    func output(of operation: OperationID) async throws -> Payload?

    /// What is kept of what each attempt of an operation printed, the last attempt last.
    func log(of operation: OperationID) async throws -> [StoredLog]

    /// The operations of a graph of which a log is kept, in order.
    func loggedOperations(of graph: GraphID) async throws -> [UInt32]

    /// All attempts of an operation in order, the first one first.
    func attempts(of operation: OperationID) async throws -> [StoredAttempt]

    /// The same for operations of a graph with successive numbers, in their order.
    func attempts(
        of graph: GraphID,
        in operations: Range<UInt32>
    ) async throws -> [StoreChanges.Attempt]

    /// Events with numbers above `after`, in order. At most `limit`, and fewer if they are large:
    /// see `StoredEvent.pageBytes`. If the oldest events were dropped, the first number shows it.
    func events(after: UInt64, limit: Int) async throws -> [StoredEvent]

    /// The finished graphs that exceed these bounds, except those that an unfinished operation
    /// depends on. In the order of their ids.
    func prunable(beyond bounds: StoreRetention.Bounds) async throws -> [GraphID]

    /// Drops these graphs: only the id, the name and the outcomes of each stay. Ignores graphs that
    /// are not finished or are already dropped.
    func drop(_ graphs: [GraphID], by epoch: Epoch) async throws

    /// Removes the names of those of these workers that no stored attempt refers to. Reads all
    /// attempts.
    ///
    /// - Returns: the workers whose names were removed.
    func forget(workers: [Incarnation], by epoch: Epoch) async throws -> [Incarnation]

    /// Copies the whole store while it stays in use. The copy has the state of the moment at which
    /// it is complete.
    ///
    /// - Returns: `nil` if the store is in memory, where a copy would outlive nothing.
    /// - Throws: `StoreError.busy` if another copy is under way.
    func backup() async throws -> StoreBackup?

    func close() async
}

extension OperationStore {
    /// At this interval, a disk that syncs in a few milliseconds spends most of its time on writes.
    package var syncInterval: Duration? { .milliseconds(20) }

    package var filePath: String? { nil }

    /// Drops the graphs that exceed these bounds, for a store that no coordinator uses. Returns
    /// their number.
    package func prune(
        finishedBefore before: WallTime?,
        keeping count: Int?,
        by epoch: Epoch
    ) async throws -> Int {
        let bounds = StoreRetention.Bounds(finishedBefore: before, graphs: count)
        let graphs = try await prunable(beyond: bounds)
        try await drop(graphs, by: epoch)
        return graphs.count
    }
}

extension StoredEvent {
    /// The most bytes of events in one answer of a store; the last event may exceed it. There is a
    /// bound because each event may carry an error, and each reader holds one answer in memory.
    package static let pageBytes = 1 << 20
}

/// Why a store cannot do what it was asked to do.
package struct StoreError: Error, Hashable, Sendable, CustomStringConvertible {
    package struct Code: Hashable, Sendable {
        private enum Value { case full, busy, held, superseded, newer, damaged, failed }
        private let value: Value
        /// There is no space left. Nothing was stored; the caller may try again.
        package static let full = Code(value: .full)
        /// Another reader or copy uses the store. Nothing was stored; the caller may try again.
        package static let busy = Code(value: .busy)
        /// Another coordinator holds the store.
        package static let held = Code(value: .held)
        /// A later coordinator has opened the store. Nothing was stored; the coordinator that asked
        /// must end.
        package static let superseded = Code(value: .superseded)
        /// A later version of the program wrote the store.
        package static let newer = Code(value: .newer)
        /// The file is damaged, or is not a store.
        package static let damaged = Code(value: .damaged)
        /// The disk or the system refused an operation; the state of the store is unknown.
        package static let failed = Code(value: .failed)
    }

    package let code: Code
    /// A sentence for a person: what, where, and what to do.
    package let message: String

    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    package var isTransient: Bool { code == .full || code == .busy }
    package var description: String { message }
}

extension Epoch {
    /// Refuses a write by the coordinator of this epoch unless the store has the same epoch. Only
    /// opening a store raises its epoch, so no coordinator has a higher one.
    package func checkWrite(to store: Epoch) throws(StoreError) {
        if self < store {
            throw StoreError(
                .superseded,
                """
                A later coordinator (epoch \(store)) has opened the store; this one \
                (epoch \(self)) ends.
                """
            )
        }
        guard self == store else {
            throw .contradiction("epoch \(self) writes to a store of epoch \(store)")
        }
    }
}

extension StoreError {
    /// The batch contradicts the store or itself. The coordinator that sent it cannot continue.
    static func contradiction(_ what: String) -> StoreError {
        StoreError(.failed, "The store was told what cannot be: \(what). This is a defect.")
    }
}
