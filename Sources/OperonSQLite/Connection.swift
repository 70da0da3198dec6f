import GRDB
import Glibc
import NIOConcurrencyHelpers
import OperonModel
import OperonPorts

/// An open store. Everything but `sync` is called on the thread that has the database, one call
/// after the other, which protects `file` and `tables`; `log` and `failure` are safe by themselves.
final class Connection: @unchecked Sendable {
    private let file: StoreFile
    private var tables: StoreTables?
    private let options: SQLiteStore.Options
    /// SQLite's log, opened a second time: to wait for the disk beside the thread of the database.
    private let log = NIOLockedValueBox<Int32>(-1)
    /// Why nothing can be done any more.
    private let failure = NIOLockedValueBox<StoreError?>(nil)

    /// - Throws: `StoreError`.
    init(path: String, options: SQLiteStore.Options) throws(StoreError) {
        self.options = options
        file = try StoreFile(path: path, options: options)
        try file.migrate()
        tables = file.queue.inDatabase { StoreTables($0, limits: options.limits) }
    }

    /// Loads, and raises the epoch.
    func begin() throws -> StoredState {
        do {
            var state = try read { try $0.load() }
            if options.isMaintenance { return state }
            guard state.epoch.rawValue < .max else {
                throw StoreError(.failed, "The store “\(file.path)” was opened too often.")
            }
            state.epoch = Epoch(rawValue: state.epoch.rawValue + 1)
            let (reign, epoch) = (state.reign, state.epoch)
            try write { tables in
                try tables.transaction { try tables.write(reign: reign, epoch: epoch) }
            }
            try openLog()
            try sync()
            return state
        } catch {
            try? close()
            throw error
        }
    }

    /// The log exists since the epoch was raised, and is the same file until the store is closed.
    private func openLog() throws(StoreError) {
        let descriptor = unsafe Glibc.open(file.path + "-wal", O_RDWR | O_CLOEXEC)
        guard descriptor >= 0 else {
            let why = StoreFile.reason(errno)
            throw StoreError(.failed, "The log of the store “\(file.path)” is gone: \(why).")
        }
        log.withLockedValue { $0 = descriptor }
    }

    func read<Value>(_ body: (StoreTables) throws -> Value) throws -> Value {
        if let error = failure.withLockedValue({ $0 }) { throw error }
        do {
            return try file.queue.inDatabase { _ in
                guard let tables else {
                    throw StoreError(.failed, "The store “\(file.path)” is closed.")
                }
                return try body(tables)
            }
        } catch {
            throw StoreFile.error(error, file.path)
        }
    }

    /// As `read`; an error that is not known to have left nothing behind is the last.
    func write<Value>(_ body: (StoreTables) throws -> Value) throws -> Value {
        do {
            return try read(body)
        } catch let error as StoreError {
            if !error.isTransient {
                failure.withLockedValue { $0 = $0 ?? error }
            } else if error.code == .full {
                try makeRoom()
            }
            throw error
        }
    }

    /// The log may be what fills the disk: what it says is copied to the file, where there is room
    /// for that, and its own room given back.
    private func makeRoom() throws {
        do {
            try read { tables in _ = try tables.database.checkpoint(.truncate) }
        } catch let error as StoreError where !error.isTransient {
            failure.withLockedValue { $0 = $0 ?? error }
            throw error
        } catch {
            // Nothing is lost, and nothing gained.
        }
    }

    /// Waits until the log is on the disk: with it everything that was committed before.
    func sync() throws {
        if let error = failure.withLockedValue({ $0 }) { throw error }
        let code = log.withLockedValue { fdatasync($0) == 0 ? 0 : errno }
        guard code == 0 else {
            // The kernel forgets what it could not write: asking again would be answered with yes.
            let error = StoreError(
                .failed,
                "The disk did not take the store “\(file.path)”: \(StoreFile.reason(code))."
            )
            failure.withLockedValue { $0 = $0 ?? error }
            throw error
        }
    }

    /// Copies the log into the file and deletes it.
    func close() throws {
        file.queue.inDatabase { _ in tables = nil }
        defer {
            log.withLockedValue { descriptor in
                if descriptor >= 0 { Glibc.close(descriptor) }
                descriptor = -1
            }
        }
        do {
            try file.queue.close()
        } catch {
            throw StoreFile.error(error, file.path)
        }
    }

    // MARK: - Backup

    /// Pages of one step: some milliseconds, for which commits wait.
    private static let stepPages: Int32 = 1_000

    /// - Parameter isDraft: it gets its name when it is whole.
    func beginBackup(to target: String, isDraft: Bool = true) throws -> RunningCopy {
        guard try StoreFile.size(of: target) == nil else {
            throw StoreError(
                .failed,
                "“\(target)” exists already: a backup goes to a file that does not."
            )
        }
        return try read { tables in
            let reign = Reign.drawn()
            let draft = isDraft ? "\(target).new-\(getpid())-\(reign)" : target
            return try RunningCopy(of: tables.database, draft: draft, target: target, reign)
        }
    }

    /// Whether all is copied.
    func stepBackup(_ copy: RunningCopy) throws -> Bool {
        try read { _ in try copy.step(pages: Self.stepPages) }
    }
}

/// A backup on its way. Used on the thread of the store that is copied, one call after the other.
final class RunningCopy: @unchecked Sendable {
    private let target: String
    private let draft: String
    private let reign: Reign
    private let queue: DatabaseQueue
    private var backup: RunningBackup?

    init(of source: Database, draft: String, target: String, _ reign: Reign) throws {
        self.draft = draft
        self.target = target
        self.reign = reign
        try StoreFile.makeFile(draft, for: target)
        do {
            queue = try DatabaseQueue(path: draft)
            backup = try queue.inDatabase { destination in
                guard let backup = RunningBackup(from: source, to: destination) else {
                    throw DatabaseError(message: "SQLite begins no backup")
                }
                return backup
            }
        } catch {
            StoreFile.remove(draft)
            throw StoreFile.error(error, target)
        }
    }

    func step(pages: Int32) throws -> Bool {
        do {
            return try queue.inDatabase { _ in try backup?.step(pages: pages) ?? true }
        } catch {
            throw StoreFile.error(error, target)
        }
    }

    /// Gives the copy its reign and its name, when it is on the disk.
    func finish() throws {
        do {
            try queue.inDatabase { database in
                backup?.finish()
                backup = nil
                // Without a log beside it, it is one file to carry away.
                try database.execute(sql: "PRAGMA journal_mode = DELETE")
                try database.execute(sql: "PRAGMA synchronous = FULL")
                let tables = StoreTables(database, limits: Limits())
                let epoch = try tables.loadMeta().epoch
                try tables.transaction { try tables.write(reign: reign, epoch: epoch) }
            }
            try queue.close()
            guard draft != target else { return }
            try StoreFile.publish(draft, as: target)
            StoreFile.remove(draft)
        } catch {
            abandon()
            throw StoreFile.error(error, target)
        }
    }

    func abandon() {
        queue.inDatabase { _ in
            backup?.finish()
            backup = nil
        }
        // It goes away whatever is wrong with it.
        try? queue.close()
        StoreFile.remove(draft)
    }
}
