import GRDB
import Glibc
import OperonModel
import OperonPorts

/// The file of a store: made whole, opened by one at a time, checked before it is believed. What
/// is no store, or not whole, is refused and left as it is.
///
/// Every call blocks. Belongs to the thread of its store. Nobody else in the process may open and
/// close the file: closing any descriptor of it gives up the lock of the whole process.
final class StoreFile {
    let path: String
    let queue: DatabaseQueue
    /// Whether its last owner closed it: else SQLite's log is still there.
    let wasClosed: Bool

    /// Opens an existing store for its only user.
    ///
    /// - Throws: `StoreError`.
    init(path: String, options: SQLiteStore.Options) throws(StoreError) {
        self.path = path
        let bytes = try StoreFile.size(of: path)
        guard let bytes else {
            throw StoreError(.damaged, "There is no store at “\(path)”.")
        }
        guard bytes > 0 else {
            throw StoreFile.refused(path, "the file is empty, which a store never is")
        }
        try StoreFile.checkRights(path)
        wasClosed = try StoreFile.size(of: path + "-wal") ?? 0 == 0
        do {
            queue = try DatabaseQueue(path: path, configuration: StoreFile.configuration(options))
        } catch {
            throw StoreFile.error(error, path, isOpening: true)
        }
        do {
            try validate(bytes: bytes)
        } catch {
            let error = StoreFile.error(error, path, isOpening: true)
            try? queue.close()
            throw error
        }
    }

    private static func configuration(_ options: SQLiteStore.Options) -> Configuration {
        var configuration = Configuration()
        configuration.foreignKeysEnabled = false
        configuration.prepareDatabase { database in
            // Before anything is read: SQLite then needs no memory shared with others, and keeps
            // the lock on the file that it takes with the first read.
            try database.execute(sql: "PRAGMA locking_mode = EXCLUSIVE")
            try database.execute(sql: "PRAGMA cell_size_check = ON")
            try database.execute(sql: "PRAGMA trusted_schema = OFF")
            // NORMAL: a commit is written, but not waited for; `sync` does that. SQLite itself
            // waits for its log before it copies it into the file, and for the file before it
            // begins the log again. So what a `sync` that returned has seen is on the disk for
            // good, in one or the other, and what comes after it is lost whole or not at all.
            try database.execute(sql: "PRAGMA synchronous = NORMAL")
            try database.execute(sql: "PRAGMA journal_mode = WAL")
            // 16 MiB between two copies of the log into the file: each waits for the disk.
            try database.execute(sql: "PRAGMA wal_autocheckpoint = 4096")
            // The log of one huge submission is given back to the disk afterwards.
            try database.execute(sql: "PRAGMA journal_size_limit = 67108864")
            // 64 MiB: the upper pages and the ends of all tables of a store of some gigabytes.
            try database.execute(sql: "PRAGMA cache_size = -65536")
            if let pages = options.pagesMax {
                try database.execute(sql: "PRAGMA max_page_count = \(pages)")
            }
        }
        return configuration
    }

    // MARK: - Checks

    /// Up to this size a check of the whole file costs some tenths of a second: always.
    private static let checkedAlwaysBytes: Int64 = 64 << 20
    /// Beyond this size a check takes longer than anybody wants to wait for a coordinator, and is
    /// left to `operon store check`. Every row that is used has a check sum of its own.
    private static let checkedAfterCrashBytes: Int64 = 1 << 30

    private func validate(bytes: Int64) throws {
        // Nothing that a kill of the process can do needs a check; a power cut on a disk that does
        // not keep its word does, and after it the log of SQLite is still there.
        let limit = wasClosed ? Self.checkedAlwaysBytes : Self.checkedAfterCrashBytes
        try queue.inDatabase { database in
            try checkOwner(database)
            if bytes <= limit {
                let problems = try String.fetchAll(database, sql: "PRAGMA quick_check(1)")
                guard problems == ["ok"] else {
                    throw StoreFile.refused(path, problems.first ?? "SQLite finds it damaged")
                }
            }
            // SQLite reads what a last page lacks as zeros. Without a log nothing is to come.
            let pages = try StoreFile.number("page_count", database)
            let pageBytes = try StoreFile.number("page_size", database)
            if wasClosed, bytes < pages * pageBytes {
                throw StoreFile.refused(path, "its end is missing")
            }
            let version = try StoreFile.number("user_version", database)
            if version == StoreSchema.version,
                try StoreSchema.description(database)
                    != StoreSchema.expected()
            {
                throw StoreFile.refused(path, "its tables are not those of a store")
            }
        }
    }

    private func checkOwner(_ database: Database) throws {
        guard try StoreFile.number("application_id", database) == StoreSchema.applicationID else {
            throw StoreFile.refused(path, "it is a database of another program")
        }
        let version = try StoreFile.number("user_version", database)
        guard version <= StoreSchema.version else {
            throw StoreError(
                .newer,
                """
                The store “\(path)” was written by a later version of operon (its format is \
                \(version), this operon knows \(StoreSchema.version)). Use that version, or give \
                another path. The file is left as it is.
                """
            )
        }
        guard version > 0 else {
            throw StoreFile.refused(path, "its format is \(version), which there is not")
        }
    }

    /// Brings the tables of an older version up to date.
    func migrate() throws(StoreError) {
        do {
            try queue.inDatabase { database in
                let version = try StoreFile.number("user_version", database)
                guard version < StoreSchema.version else { return }
                try database.inTransaction(.immediate) {
                    try StoreSchema.migrate(database, from: version)
                    return .commit
                }
            }
        } catch {
            throw StoreFile.error(error, path, isOpening: true)
        }
    }

    private static func number(_ pragma: String, _ database: Database) throws -> Int64 {
        try Int64.fetchOne(database, sql: "PRAGMA \(pragma)") ?? 0
    }

    // MARK: - Making

    /// Makes an empty store unless there is a file already. It appears under its name when it is
    /// whole and on the disk, so that a crash leaves no half a store, and two coordinators that
    /// start at once find the same.
    static func makeIfMissing(_ path: String, reign: Reign) throws(StoreError) {
        guard try size(of: path) == nil else { return }
        let draft = "\(path).new-\(getpid())-\(reign)"
        try makeFile(draft, for: path)
        defer { remove(draft) }
        do {
            // Not in WAL mode: nothing is left beside it.
            let queue = try DatabaseQueue(path: draft)
            try queue.inDatabase { database in
                try database.execute(sql: "PRAGMA synchronous = FULL")
                try database.execute(
                    sql: "PRAGMA application_id = \(StoreSchema.applicationID)"
                )
                try database.inTransaction(.immediate) {
                    try StoreSchema.migrate(database, from: 0)
                    let tables = StoreTables(database, limits: Limits())
                    try tables.write(reign: reign, epoch: Epoch(rawValue: 0))
                    return .commit
                }
            }
            try queue.close()
        } catch {
            throw self.error(error, path, isOpening: true)
        }
        try publish(draft, as: path)
    }

    /// Makes an empty file that only its owner may read; SQLite's log takes over its mode.
    static func makeFile(_ draft: String, for path: String) throws(StoreError) {
        let descriptor = unsafe open(draft, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw StoreError(
                errno == ENOSPC ? .full : .failed,
                "The store “\(path)” cannot be made: \(reason(errno)). A coordinator needs to "
                    + "write in that folder."
            )
        }
        close(descriptor)
    }

    /// Whether it is there or not.
    static func remove(_ path: String) { _ = unsafe unlink(path) }

    /// Gives a finished file its name, unless somebody else was faster.
    static func publish(_ draft: String, as path: String) throws(StoreError) {
        if unsafe link(draft, path) != 0, errno != EEXIST {
            throw StoreError(.failed, "The store “\(path)” cannot be made: \(reason(errno)).")
        }
        let folder = unsafe open(self.folder(of: path), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard folder >= 0 else { return }
        fsync(folder)
        close(folder)
    }

    private static func folder(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// In bytes; `nil`: there is no such file.
    static func size(of path: String) throws(StoreError) -> Int64? {
        var facts = stat()
        guard unsafe stat(path, &facts) == 0 else {
            if errno == ENOENT { return nil }
            throw StoreError(.failed, "The store “\(path)” cannot be read: \(reason(errno)).")
        }
        guard facts.st_mode & S_IFMT == S_IFREG else {
            throw StoreError(.failed, "“\(path)” is no file, so it can be no store.")
        }
        return Int64(facts.st_size)
    }

    /// Whoever may write a store may have any command run.
    private static func checkRights(_ path: String) throws(StoreError) {
        guard let rights = rights(of: path) else { return }
        guard rights.hasTrustedOwner else {
            throw StoreError(.failed, "The store “\(path)” belongs to another user.")
        }
        guard rights.isWritableByOthers else { return }
        throw StoreError(
            .failed,
            "Other users may write the store “\(path)” (mode \(rights.text)): chmod go-w \(path)"
        )
    }

    private static func rights(of path: String) -> FileRights? {
        var facts = stat()
        guard unsafe stat(path, &facts) == 0 else { return nil }
        return FileRights(mode: facts.st_mode, owner: facts.st_uid, user: geteuid())
    }

    // MARK: - Errors

    static func reason(_ code: Int32) -> String { unsafe String(cString: strerror(code)) }

    static func refused(_ path: String, _ why: String) -> StoreError {
        StoreError(
            .damaged,
            """
            “\(path)” is not a sound store of operon: \(why). It is left as it is. Put a backup \
            in its place, or move it away to begin a new store.
            """
        )
    }

    /// What went wrong, for a person, and whether it may be tried again.
    static func error(_ error: any Error, _ path: String, isOpening: Bool = false) -> StoreError {
        if let error = error as? StoreError { return error }
        if let damage = error as? RowDamage { return refused(path, "it has \(damage.what)") }
        guard let error = error as? DatabaseError else {
            return StoreError(.failed, "The store “\(path)” failed: \(error).")
        }
        let message = error.message ?? "no reason was given"
        switch error.resultCode.primaryResultCode {
        case .SQLITE_FULL:
            return StoreError(
                .full,
                "No space is left for the store “\(path)”: nothing new is taken until there is."
            )
        case .SQLITE_BUSY, .SQLITE_LOCKED:
            guard isOpening else {
                return StoreError(.busy, "The store “\(path)” is being read by somebody else.")
            }
            return StoreError(
                .held,
                """
                The store “\(path)” is held by another process, and one at a time may have it. \
                Stop that one, or give this one another path.
                """
            )
        case .SQLITE_CORRUPT, .SQLITE_NOTADB, .SQLITE_FORMAT:
            return refused(path, message)
        case .SQLITE_CANTOPEN, .SQLITE_READONLY, .SQLITE_PERM:
            return StoreError(
                .failed,
                """
                The store “\(path)” cannot be opened for writing (\(message)): a coordinator \
                needs to write in it and in its folder.
                """
            )
        case _: return StoreError(.failed, "The store “\(path)” failed: \(message).")
        }
    }
}
