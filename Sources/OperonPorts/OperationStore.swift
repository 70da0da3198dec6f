package import OperonModel

/// Where a coordinator keeps what it must know after its death. One coordinator at a time: a
/// second one on the same store is refused.
///
/// Every call may block on a disk; none may be made on a cooperative thread without leaving it.
package protocol OperationStore: Sendable {
    /// Everything that was committed; raises the epoch, which is on the disk when this returns.
    /// To be called once, before anything else.
    ///
    /// - Throws: `StoreError`.
    func open() async throws -> StoredState

    /// Keeps a batch in one transaction: all of it or nothing.
    ///
    /// - Throws: `StoreError`; `isTransient` ones (full, busy) left nothing behind and may be tried
    ///   again in order; after any other the store's fate is unknown and the process must end.
    func commit(_ batch: StoreBatch) async throws

    /// Returns when everything committed before is on the disk, so that a power cut loses none of
    /// it.
    func sync() async throws

    /// How long what was committed may pile up before the next sync, unless somebody waits for it.
    /// `nil`: nothing is ever to be synced, as nothing outlives the process.
    var syncInterval: Duration? { get }

    /// Where its file is, for what lies beside it; `nil`: it has none.
    var filePath: String? { get }

    /// What a finished operation left, if it is still kept.
    func output(of operation: OperationID) async throws -> Payload?

    /// The tail of what the attempts of an operation printed, the last attempt's last.
    func log(of operation: OperationID) async throws -> [StoredLog]

    /// All attempts of an operation, the first first.
    func attempts(of operation: OperationID) async throws -> [StoredAttempt]

    /// Events with numbers above `after`, in order, at most `limit`, and fewer if they are large:
    /// see `StoredEvent.pageBytes`. Where the oldest were dropped the first number tells.
    func events(after: UInt64, limit: Int) async throws -> [StoredEvent]

    /// Finished graphs that are kept for nothing: what is beyond these bounds, but for what an
    /// unfinished operation depends on. In their order.
    func prunable(beyond bounds: StoreRetention.Bounds) async throws -> [GraphID]

    /// Drops all of these graphs but a tombstone (id, name, outcomes). One that is not finished, or
    /// dropped already, is left as it is.
    func drop(_ graphs: [GraphID]) async throws

    /// Drops the names of those of these workers that no attempt has which is kept. Reads all
    /// attempts.
    ///
    /// - Returns: those that were dropped.
    func forget(workers: [Incarnation]) async throws -> [Incarnation]

    /// Copies everything, as it is when the copy is whole, while the store goes on.
    ///
    /// - Throws: `StoreError`: a store in memory has nothing to copy; one copy at a time (`busy`).
    func backup() async throws -> StoreBackup

    func close() async
}

extension OperationStore {
    /// At this pace a disk that syncs in a few milliseconds does little else than to take what is
    /// written.
    package var syncInterval: Duration? { .milliseconds(20) }

    package var filePath: String? { nil }

    /// Drops what is kept for nothing, where no coordinator knows of it. The number of graphs.
    package func prune(
        finishedBefore before: WallTime?,
        keeping count: Int?
    ) async throws -> Int {
        let bounds = StoreRetention.Bounds(finishedBefore: before, graphs: count)
        let graphs = try await prunable(beyond: bounds)
        try await drop(graphs)
        return graphs.count
    }
}

extension StoredEvent {
    /// Bytes of events in one answer of a store, or one event more: each may carry an error with
    /// what was thrown, and there are as many answers at a time as there are readers.
    package static let pageBytes = 1 << 20
}

/// Why a store cannot do what it should.
package struct StoreError: Error, Hashable, Sendable, CustomStringConvertible {
    package struct Code: Hashable, Sendable {
        private enum Value { case full, busy, held, newer, damaged, failed }
        private let value: Value
        /// No space is left. Nothing was kept; may be tried again.
        package static let full = Code(value: .full)
        /// Somebody else reads it just now. Nothing was kept; may be tried again.
        package static let busy = Code(value: .busy)
        /// Another coordinator has it.
        package static let held = Code(value: .held)
        /// A later version of the program wrote it.
        package static let newer = Code(value: .newer)
        /// It is torn, or no store at all.
        package static let damaged = Code(value: .damaged)
        /// The disk or the system refused; what is there now is unknown.
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
