import GRDB
import Glibc
import NIOConcurrencyHelpers
package import OperonModel
package import OperonPorts

/// A store in one SQLite file, with SQLite's log (`-wal`) beside it while it is open.
///
/// Two threads of its own block, so that no other does: one has the database, one waits for the
/// disk. So commits go on while a `sync` waits.
package final class SQLiteStore: OperationStore {
    package struct Options: Sendable {
        package var limits = Limits()
        /// Pages of 4 KiB that the file may have; `nil`: as many as the disk has room for.
        package var pagesMax: Int?
        /// For a command that looks after a store and rules nothing: the epoch stays, and a store
        /// that is not there is not made.
        package var isMaintenance = false

        package init() {}
    }

    package let path: String
    package var filePath: String? { path }
    private let options: Options
    private let newReign: Reign
    private let opened = NIOLockedValueBox<OpenStore?>(nil)
    /// A copy is being made or read.
    private let isCopying = NIOLockedValueBox(false)

    /// - Parameter newReign: the random id of the store, if it has to be made.
    package init(path: String, newReign: Reign, options: Options = Options()) {
        self.path = path
        self.newReign = newReign
        self.options = options
    }

    /// Draws the id for a new store.
    package convenience init(path: String, options: Options = Options()) {
        self.init(path: path, newReign: .drawn(), options: options)
    }

    /// The order in which everything stands: the file, its lock, its checks, what it holds, the
    /// epoch, and the disk's word that the epoch is there.
    package func open() async throws -> StoredState {
        guard opened.withLockedValue({ $0 == nil }) else {
            throw StoreError(.failed, "The store “\(path)” is open already.")
        }
        let database = try makeThread()
        let (path, reign, options) = (path, newReign, options)
        do {
            let (store, state) = try await database.perform {
                try SQLiteVersion.current().check()
                if !options.isMaintenance { try StoreFile.makeIfMissing(path, reign: reign) }
                let connection = try Connection(path: path, options: options)
                // The copy that a life before this one did not finish.
                if !options.isMaintenance { StoreFile.remove(Self.copyPath(of: path)) }
                return (connection, try connection.begin())
            }
            let disk = try makeThread()
            opened.withLockedValue { value in
                value = OpenStore(connection: store, database: database, disk: disk)
            }
            return state
        } catch {
            database.stop()
            throw error
        }
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
        guard let store = opened.withLockedValue({ $0 }) else {
            throw StoreError(.failed, "The store “\(path)” is not open.")
        }
        return try await store.database.perform { try body(store.connection) }
    }

    package func commit(_ batch: StoreBatch) async throws {
        try await perform { try $0.write { try $0.commit(batch) } }
    }

    package func sync() async throws {
        guard let store = opened.withLockedValue({ $0 }) else {
            throw StoreError(.failed, "The store “\(path)” is not open.")
        }
        try await store.disk.perform { try store.connection.sync() }
    }

    package func output(of operation: OperationID) async throws -> Payload? {
        try await perform { try $0.read { try $0.output(of: operation) } }
    }

    package func log(of operation: OperationID) async throws -> [StoredLog] {
        try await perform { try $0.read { try $0.log(of: operation) } }
    }

    package func attempts(of operation: OperationID) async throws -> [StoredAttempt] {
        try await perform { try $0.read { try $0.attempts(of: operation) } }
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

    package func drop(_ graphs: [GraphID]) async throws {
        for id in graphs { try await perform { try $0.write { try $0.bury(id) } } }
        try await sweep()
    }

    package func forget(workers: [Incarnation]) async throws -> [Incarnation] {
        try await perform { try $0.write { try $0.forget(workers) } }
    }

    /// Deletes what tombstones left, some rows at a time: commits go on in between.
    private func sweep() async throws {
        for id in try await perform({ try $0.read { $0.unswept } }) {
            var next: UInt32? = 0
            while let first = next {
                next = try await perform { try $0.write { try $0.sweep(id, from: first) } }
            }
        }
    }

    /// Copies the store as it is when the copy ends, while it goes on: to a file that does not
    /// exist. The copy has a reign of its own, because what is done with it is not what is done
    /// here. A copy whose task is cancelled leaves nothing.
    package func backup(to target: String) async throws {
        try await copy { connection in try connection.beginBackup(to: target) }
    }

    /// The same to a file beside the store that is gone when it is read. There is one at a time:
    /// it takes as much room as the store itself.
    package func backup() async throws -> StoreBackup {
        let isFirst = isCopying.withLockedValue { isCopying in
            defer { isCopying = true }
            return !isCopying
        }
        guard isFirst else {
            throw StoreError(
                .busy,
                "Another backup of “\(path)” is on its way: try again when it has ended."
            )
        }
        let atEnd = { @Sendable [isCopying] in isCopying.withLockedValue { $0 = false } }
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

    /// No name that anybody would give a copy of his own: what is there is removed.
    private static func copyPath(of path: String) -> String { path + ".operon-backup-draft" }

    private func copy(
        _ begin: @escaping @Sendable (Connection) throws -> RunningCopy
    ) async throws {
        let copy = try await perform(begin)
        do {
            repeat {
                try Task.checkCancellation()
            } while try await perform({ try $0.stepBackup(copy) }) == false
            try await perform { _ in try copy.finish() }
        } catch {
            _ = try? await perform { _ in copy.abandon() }
            throw error
        }
    }

    /// Gives back to the disk what deleted rows left; nothing else is done meanwhile.
    package func vacuum() async throws {
        try await perform { connection in
            try connection.write { tables in
                try tables.database.execute(sql: "VACUUM")
                try tables.database.checkpoint(.truncate)
            }
        }
    }

    /// What is wrong with it, in sentences; none if nothing is. Reads everything.
    package func check() async throws -> [String] {
        try await perform { try $0.read { try $0.problems() } }
    }

    package func close() async {
        let store = opened.withLockedValue { value in
            defer { value = nil }
            return value
        }
        guard let store else { return }
        // Nothing can be done about a disk that refuses now; the log of SQLite stays.
        _ = try? await store.disk.perform {}
        store.disk.stop()
        _ = try? await store.database.perform { try store.connection.close() }
        store.database.stop()
    }
}

private struct OpenStore: Sendable {
    let connection: Connection
    let database: BlockingThread
    let disk: BlockingThread
}

extension Reign {
    /// A random one; never 0, which means “not known yet”.
    package static func drawn() -> Reign {
        var generator = SystemRandomNumberGenerator()
        return Reign(rawValue: UInt64.random(in: 1...UInt64.max, using: &generator))
    }
}
