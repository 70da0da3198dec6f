import Glibc
package import OperonModel
package import OperonPorts
import Synchronization

/// A store in one SQLite file, with SQLite's log (`-wal`) next to it while it is open.
///
/// The store has two threads that may block, so that no others have to: one uses the database, the
/// other waits for the disk. So commits continue while a `sync` waits.
package final class SQLiteStore: OperationStore, Leadership {
    package struct Options: Sendable {
        package var limits = Limits()
        /// The most pages of 4 KiB that the file may have; `nil`: limited only by the disk.
        package var pagesMax: Int?
        /// How many rows of tables may have changed before they are written: all of them in one
        /// transaction.
        package var pendingRowsMax = PendingRows.rowsMax
        /// The most records of a batch whose changes are computed together. All parts of a larger
        /// batch are written in one transaction.
        package var recordsAtOnce = StoreTables.recordsAtOnce
        package var probe = StoreProbe()
        /// For a command that maintains a store but coordinates nothing: the epoch is not raised,
        /// and a missing store is not created.
        package var isMaintenance = false

        package init() {}
    }

    package let path: String
    package var filePath: String? { path }
    private let options: Options
    private let newReign: Reign
    private let opened = Mutex<OpenStore?>(nil)
    /// Whether a copy is being made or read.
    private let isCopying = Mutex(false)

    /// - Parameter newReign: the random id of the store if it has to be created.
    package init(path: String, newReign: Reign, options: Options = Options()) {
        self.path = path
        self.newReign = newReign
        self.options = options
    }

    /// Draws a random reign for a new store.
    package convenience init(path: String, options: Options = Options()) {
        self.init(path: path, newReign: .drawn(), options: options)
    }

    /// Opens the file, which locks it for this process, and checks it.
    package func acquire() async throws {
        guard opened.withLock({ $0 == nil }) else { throw isOpenAlready }
        let thread = try makeThread()
        let (path, reign, options) = (path, newReign, options)
        do {
            let connection = try await thread.perform {
                try SQLiteVersion.current().check()
                if !options.isMaintenance { try StoreFile.makeIfMissing(path, reign: reign) }
                let connection = try Connection(path: path, options: options)
                // A copy that a previous run did not finish.
                if !options.isMaintenance { StoreFile.remove(Self.copyPath(of: path)) }
                return connection
            }
            opened.withLock { $0 = OpenStore(connection: connection, database: thread) }
        } catch {
            thread.stop()
            throw error
        }
    }

    /// Closes the store, and with it the lock on the file.
    package func release() async { await close() }

    /// Opens in a fixed order: the file with its lock and its checks, unless `acquire` has done
    /// that; its content; the new epoch; and the sync of the epoch.
    package func open() async throws -> StoredState {
        if opened.withLock({ $0 == nil }) { try await acquire() }
        guard let store = opened.withLock({ $0 }), store.disk == nil else {
            throw isOpenAlready
        }
        do {
            let state = try await store.database.perform { try store.connection.begin() }
            let disk = try makeThread()
            opened.withLock { $0?.disk = disk }
            return state
        } catch {
            await close()
            throw error
        }
    }

    private var isNotOpen: StoreError {
        StoreError(.failed, "The store “\(path)” is not open.")
    }

    private var isOpenAlready: StoreError {
        StoreError(.failed, "The store “\(path)” is open already.")
    }

    private func makeThread() throws(StoreError) -> BlockingThread {
        do throws(BlockingThread.ThreadFailure) {
            return try BlockingThread()
        } catch {
            let why = StoreFile.reason(error.code)
            throw StoreError(.failed, "The system gives the store no thread: \(why).")
        }
    }

    private func perform<Value: Sendable>(
        _ body: @escaping @Sendable (Connection) throws -> Value
    ) async throws -> Value {
        guard let store = opened.withLock({ $0 }) else { throw isNotOpen }
        return try await store.database.perform { try body(store.connection) }
    }

    package func commit(_ batch: StoreBatch, by epoch: Epoch) async throws {
        guard let store = opened.withLock({ $0 }) else { throw isNotOpen }
        try await store.database.perform { [connection = store.connection] in
            try connection.write { try $0.commit(batch, by: epoch) }
        } andThen: { [connection = store.connection] in
            connection.projectIfDue()
        }
    }

    package func sync() async throws {
        guard let store = opened.withLock({ $0 }), let disk = store.disk else {
            throw isNotOpen
        }
        try await disk.perform { try store.connection.sync() }
    }

    package func output(of operation: OperationID) async throws -> Payload? {
        try await perform { try $0.read { try $0.output(of: operation) } }
    }

    package func log(of operation: OperationID) async throws -> [StoredLog] {
        try await perform { try $0.read { try $0.log(of: operation) } }
    }

    package func loggedOperations(of graph: GraphID) async throws -> [UInt32] {
        try await perform { try $0.read { try $0.loggedOperations(of: graph) } }
    }

    package func attempts(of operation: OperationID) async throws -> [StoredAttempt] {
        try await perform { try $0.read { try $0.attempts(of: operation) } }
    }

    package func attempts(
        of graph: GraphID,
        in operations: Range<UInt32>
    ) async throws -> [StoreChanges.Attempt] {
        try await perform { try $0.read { try $0.attempts(of: graph, in: operations) } }
    }

    package func events(after: UInt64, limit: Int) async throws -> [StoredEvent] {
        try await perform { try $0.read { try $0.events(after: after, limit: limit) } }
    }

    package func prunable(beyond bounds: StoreRetention.Bounds) async throws -> [GraphID] {
        try await perform { connection in
            try connection.read { tables in
                StoreRetention.dropped(Array(tables.graphs.values), beyond: bounds)
            }
        }
    }

    package func drop(_ graphs: [GraphID], by epoch: Epoch) async throws {
        for id in graphs { try await perform { try $0.write { try $0.bury(id, by: epoch) } } }
        try await sweep(by: epoch)
    }

    package func forget(workers: [Incarnation], by epoch: Epoch) async throws -> [Incarnation] {
        try await perform { try $0.write { try $0.forget(workers, by: epoch) } }
    }

    /// Deletes the rows that dropped graphs have left, some at a time, so that commits can run in
    /// between.
    private func sweep(by epoch: Epoch) async throws {
        for id in try await perform({ try $0.read { $0.unswept } }) {
            var next: UInt32? = 0
            while let first = next {
                next = try await perform { connection in
                    try connection.write { try $0.sweep(id, from: first, by: epoch) }
                }
            }
        }
    }

    /// Copies the store to a new file while the store stays in use. The copy has the state of the
    /// moment at which it ends. It gets a reign of its own, because its history differs from then
    /// on. If the task is cancelled, no file remains.
    package func backup(to target: String) async throws {
        try await copy { connection in try connection.beginBackup(to: target) }
    }

    /// Copies the store to a file next to it that is deleted once it is read. There is only one
    /// such copy at a time, because it takes as much space as the store.
    package func backup() async throws -> StoreBackup? {
        let isFirst = isCopying.withLock { isCopying in
            defer { isCopying = true }
            return !isCopying
        }
        guard isFirst else {
            throw StoreError(
                .busy,
                "Another backup of “\(path)” is on its way: try again when it has ended."
            )
        }
        let atEnd = { @Sendable [self] in isCopying.withLock { $0 = false } }
        let path = Self.copyPath(of: path)
        let file: BackupFile
        do {
            try await copy { connection in
                StoreFile.remove(path)
                return try connection.beginBackup(to: path, isDraft: false)
            }
            file = try BackupFile(takingOver: path, atEnd: atEnd)
        } catch {
            atEnd()
            throw error
        }
        return StoreBackup(
            byteCount: file.byteCount,
            pieces: AsyncThrowingStream { try await file.next() }
        )
    }

    /// An unusual name, because any file that already has it is removed.
    private static func copyPath(of path: String) -> String { path + ".operon-backup-draft" }

    private func copy(
        _ begin: @escaping @Sendable (Connection) throws -> RunningCopy
    ) async throws {
        let copy = try await perform(begin)
        do {
            repeat {
                try Task.checkCancellation()
            } while try await perform({ try $0.stepBackup(copy) }) == false
            try await perform { try $0.finishBackup(copy) }
        } catch {
            // If the store has been closed meanwhile, that has ended the copy.
            try? await perform { $0.abandonBackup(copy) }
            throw error
        }
    }

    /// Returns the space of deleted rows to the disk. The store does nothing else meanwhile.
    package func vacuum() async throws {
        try await perform { connection in
            try connection.write { tables in
                try tables.database.execute("VACUUM")
                try tables.database.truncateLog()
            }
        }
    }

    /// The problems of the store, as sentences; empty if there are none. Reads everything.
    package func check() async throws -> [String] {
        try await perform { connection in
            try connection.write { try $0.project() }
            return try connection.read { try $0.problems() }
        }
    }

    package func close() async {
        let store = opened.withLock { value in
            defer { value = nil }
            return value
        }
        guard let store else { return }
        // Errors cannot be handled now; if the disk refuses, SQLite's log stays.
        _ = try? await store.disk?.perform {}
        store.disk?.stop()
        _ = try? await store.database.perform { try store.connection.close() }
        store.database.stop()
    }
}

private struct OpenStore: Sendable {
    let connection: Connection
    let database: BlockingThread
    /// `nil`: this process has the file, but has not begun with its content.
    var disk: BlockingThread?
}
