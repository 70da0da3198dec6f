import Glibc
import OperonModel
import OperonPorts
import Synchronization

/// An open store. Everything except `sync` is called on the database thread, one call after the
/// other; that protects `file` and `tables`. `log` and `failure` have locks of their own.
final class Connection: @unchecked Sendable {
    private let file: StoreFile
    private var tables: StoreTables?
    private let options: SQLiteStore.Options
    /// A second descriptor of SQLite's log, so that `sync` can wait for the disk without blocking
    /// the database thread.
    private let log = Mutex<Int32>(-1)
    /// Copies that are being made. SQLite closes no database with one.
    private var copies: [RunningCopy] = []
    /// The error after which the store refuses everything.
    private let failure = Mutex<StoreError?>(nil)

    /// - Throws: `StoreError`.
    init(path: String, options: SQLiteStore.Options) throws(StoreError) {
        self.options = options
        file = try StoreFile(path: path, options: options)
        try file.migrate()
        tables = StoreTables(file.database, options)
    }

    /// Loads the stored state and raises the epoch.
    func begin() throws -> StoredState {
        do {
            try replay()
        } catch let error as StoreError where error.code == .full {
            // Its own log may have taken the room.
            try replay()
        }
        var state = try read { try $0.load() }
        if options.isMaintenance { return state }
        guard state.epoch.rawValue < .max else {
            throw StoreError(.failed, "The store “\(file.path)” was opened too often.")
        }
        state.epoch = Epoch(rawValue: state.epoch.rawValue + 1)
        let (reign, epoch) = (state.reign, state.epoch)
        try write { tables in
            try tables.transaction(by: nil) { try tables.write(reign: reign, epoch: epoch) }
        }
        try openLog()
        try sync()
        return state
    }

    private func replay() throws {
        try write { try StoreTables($0.database, options).replay() }
    }

    /// Opens SQLite's log. The log exists since the epoch was raised and stays the same file until
    /// the store is closed.
    private func openLog() throws(StoreError) {
        let descriptor = unsafe Glibc.open(file.path + "-wal", O_RDWR | O_CLOEXEC)
        guard descriptor >= 0 else {
            let why = StoreFile.reason(errno)
            throw StoreError(.failed, "The log of the store “\(file.path)” is gone: \(why).")
        }
        log.withLock { $0 = descriptor }
    }

    func read<Value>(_ body: (StoreTables) throws -> Value) throws -> Value {
        if let error = failure.withLock({ $0 }) { throw error }
        do {
            guard let tables else {
                throw StoreError(.failed, "The store “\(file.path)” is closed.")
            }
            return try body(tables)
        } catch {
            throw StoreFile.error(error, file.path)
        }
    }

    /// Like `read`. Only a transient error is known to have left nothing behind; after any other
    /// the store refuses everything.
    func write<Value>(_ body: (StoreTables) throws -> Value) throws -> Value {
        do {
            return try read(body)
        } catch let error as StoreError {
            if !error.isTransient {
                failure.withLock { $0 = $0 ?? error }
            } else if error.code == .full {
                try makeRoom()
            }
            throw error
        }
    }

    /// Lets the tables follow the journal if enough is pending. A transient error changes nothing,
    /// and the next commit that can be made tries again; any other is one of the store.
    func projectIfDue() { try? write { try $0.projectIfDue() } }

    /// The log may be what fills the disk. If there is room for it in the database file, the
    /// content of the log is copied there and the log is truncated.
    private func makeRoom() throws {
        do {
            try read { tables in try tables.database.truncateLog() }
        } catch let error as StoreError where !error.isTransient {
            failure.withLock { $0 = $0 ?? error }
            throw error
        } catch {
            // No room was gained and nothing was lost.
        }
    }

    /// Waits until the log is on the disk, and with it everything that was committed before.
    func sync() throws {
        if let error = failure.withLock({ $0 }) { throw error }
        try options.probe.passed(.beforeSync)
        if options.probe.mutation == .answersBeforeSync { return }
        let code = log.withLock { fdatasync($0) == 0 ? 0 : errno }
        guard code == 0 else {
            // The kernel forgets data that it could not write, so a second sync would falsely
            // succeed.
            let error = StoreError(
                .failed,
                "The disk did not take the store “\(file.path)”: \(StoreFile.reason(code))."
            )
            failure.withLock { $0 = $0 ?? error }
            throw error
        }
        try options.probe.passed(.afterSync)
    }

    /// Writes what the tables lack, copies the log into the database file and deletes the log.
    /// After a failure it does none of that: the next process reads the log.
    func close() throws {
        for copy in copies { copy.abandon() }
        copies = []
        // If that fails, the next process does it.
        try? write { try $0.project() }
        defer {
            log.withLock { descriptor in
                if descriptor >= 0 { Glibc.close(descriptor) }
                descriptor = -1
            }
        }
        do {
            // After a failure nobody knows what the disk has of the log. If it were copied into the
            // database file, a lost page could take the place of a good one.
            if failure.withLock({ $0 != nil }) { try tables?.database.keepLog() }
            try tables?.close()
            tables = nil
        } catch {
            throw StoreFile.error(error, file.path)
        }
    }

    // MARK: - Backup

    /// Pages per step. A step takes some milliseconds, and commits wait for it.
    private static let stepPages: Int32 = 1_000

    /// - Parameter isDraft: whether the copy gets its name only when it is complete.
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
            let copy = try RunningCopy(of: tables.database, draft: draft, target: target, reign)
            copies.append(copy)
            return copy
        }
    }

    /// Copies the next pages. Returns whether everything is copied.
    func stepBackup(_ copy: RunningCopy) throws -> Bool {
        try read { _ in try copy.step(pages: Self.stepPages) }
    }

    /// Gives a complete copy its name.
    func finishBackup(_ copy: RunningCopy) throws {
        copies.removeAll { $0 === copy }
        try copy.finish()
    }

    func abandonBackup(_ copy: RunningCopy) {
        copies.removeAll { $0 === copy }
        copy.abandon()
    }
}

/// A backup in progress. Used on the database thread of the copied store, one call after the other.
final class RunningCopy: @unchecked Sendable {
    private let target: String
    private let draft: String
    private let reign: Reign
    private let database: Database
    private var backup: RunningBackup?

    init(of source: Database, draft: String, target: String, _ reign: Reign) throws {
        self.draft = draft
        self.target = target
        self.reign = reign
        try StoreFile.makeFile(draft, for: target)
        do {
            database = try Database(path: draft)
            backup = try RunningBackup(from: source, to: database)
        } catch {
            StoreFile.remove(draft)
            throw StoreFile.error(error, target)
        }
    }

    func step(pages: Int32) throws -> Bool {
        do {
            return try backup?.step(pages: pages) ?? true
        } catch {
            throw StoreFile.error(error, target)
        }
    }

    /// Gives the copy its reign and, once it is on the disk, its name.
    func finish() throws {
        do {
            backup?.finish()
            backup = nil
            // Without a log next to it, the copy is a single file.
            try database.execute("PRAGMA journal_mode = DELETE")
            try database.execute("PRAGMA synchronous = FULL")
            let tables = StoreTables(database, limits: Limits())
            let epoch = try tables.loadMeta().epoch
            try tables.transaction(by: nil) { try tables.write(reign: reign, epoch: epoch) }
            try tables.close()
            guard draft != target else { return }
            try StoreFile.publish(draft, as: target)
            StoreFile.remove(draft)
        } catch {
            abandon()
            throw StoreFile.error(error, target)
        }
    }

    func abandon() {
        backup?.finish()
        backup = nil
        // Ignore errors: the copy is removed in any case.
        try? database.close()
        StoreFile.remove(draft)
    }
}
