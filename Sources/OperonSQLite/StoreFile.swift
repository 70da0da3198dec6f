import COperonSQLite
import Glibc
import OperonModel
import OperonPorts
import OperonSystem

/// The file of a store. It is created whole, opened by one process at a time, and checked before it
/// is used. A file that is not a store, or not whole, is refused and not changed.
///
/// Every call blocks and belongs on the thread of the store. No other code in the process may open
/// and close the file: closing any descriptor of it releases the lock of the whole process.
final class StoreFile {
    let path: String
    let database: Database
    /// Whether its last user closed it. If not, SQLite's log is still there.
    let wasClosed: Bool

    /// Opens an existing store for this process alone.
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
            database = try Database(path: path)
            try configure(options)
            try validate(bytes: bytes)
        } catch {
            throw StoreFile.error(error, path, isOpening: true)
        }
    }

    private func configure(_ options: SQLiteStore.Options) throws {
        // Must come before the first read. SQLite then needs no shared memory and keeps the
        // lock on the file that the first read takes.
        try database.execute("PRAGMA locking_mode = EXCLUSIVE")
        try database.execute("PRAGMA cell_size_check = ON")
        try database.execute("PRAGMA trusted_schema = OFF")
        // NORMAL: a commit is written but not waited for; `sync` waits. SQLite itself syncs its
        // log before it copies the log into the file, and syncs the file before it restarts the
        // log. So everything before a completed `sync` is on the disk for good, in the log or
        // in the file; what comes after it is lost in whole transactions or not at all.
        try database.execute("PRAGMA synchronous = NORMAL")
        try database.execute("PRAGMA journal_mode = WAL")
        // 16 MiB of log between two copies of the log into the file, because each copy waits
        // for the disk.
        try database.execute("PRAGMA wal_autocheckpoint = 4096")
        // After one huge submission, its log is given back to the disk.
        try database.execute("PRAGMA journal_size_limit = 67108864")
        // 64 MiB: enough for the upper pages and the ends of all tables of a store of some
        // gigabytes.
        try database.execute("PRAGMA cache_size = -65536")
        if let pages = options.pagesMax {
            try database.execute("PRAGMA max_page_count = \(pages)")
        }
    }

    // MARK: - Checks

    /// A file up to this size is always checked in full, which takes some tenths of a second.
    private static let checkedAlwaysBytes: Int64 = 64 << 20
    /// Larger files are not checked in full when a coordinator starts, because that would take too
    /// long; `operon store check` does it. Every row that is used has a checksum of its own.
    private static let checkedAfterCrashBytes: Int64 = 1 << 30

    private func validate(bytes: Int64) throws {
        // Killing the process can do no damage that needs a check. A power cut can, on a disk that
        // does not do what it reports; SQLite's log is still there after one.
        let limit = wasClosed ? Self.checkedAlwaysBytes : Self.checkedAfterCrashBytes
        try checkOwner()
        if bytes <= limit {
            let problems = try database.texts("PRAGMA quick_check(1)")
            guard problems == ["ok"] else {
                throw StoreFile.refused(path, problems.first ?? "SQLite finds it damaged")
            }
        }
        // SQLite reads missing bytes of the last page as zeros. Without a log, nothing can still
        // complete the file.
        let pages = try database.number("PRAGMA page_count")
        let pageBytes = try database.number("PRAGMA page_size")
        if wasClosed, bytes < pages * pageBytes {
            throw StoreFile.refused(path, "its end is missing")
        }
        let version = try database.number("PRAGMA user_version")
        if version == StoreSchema.version,
            try StoreSchema.description(database) != StoreSchema.expected()
        {
            throw StoreFile.refused(path, "its tables are not those of a store")
        }
    }

    private func checkOwner() throws {
        let owner = try database.number("PRAGMA application_id")
        guard owner == StoreSchema.applicationID else {
            throw StoreFile.refused(path, "it is a database of another program")
        }
        let version = try database.number("PRAGMA user_version")
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

    /// Migrates the tables of an older version.
    func migrate() throws(StoreError) {
        do {
            let version = try database.number("PRAGMA user_version")
            guard version < StoreSchema.version else { return }
            try StoreTables(database, limits: Limits()).transaction(by: nil) {
                try StoreSchema.migrate(database, from: version)
            }
        } catch {
            throw StoreFile.error(error, path, isOpening: true)
        }
    }

    // MARK: - Making

    /// Creates an empty store if there is no file yet. The file gets its name only when it is
    /// complete and on the disk. So a crash leaves no half-made store, and two coordinators that
    /// start at the same time use the same one.
    static func makeIfMissing(_ path: String, reign: Reign) throws(StoreError) {
        guard try size(of: path) == nil else { return }
        let draft = "\(path).new-\(getpid())-\(reign)"
        try makeFile(draft, for: path)
        defer { remove(draft) }
        do {
            // Not in WAL mode, so that no other file remains next to it.
            let database = try Database(path: draft)
            try database.execute("PRAGMA synchronous = FULL")
            try database.execute("PRAGMA application_id = \(StoreSchema.applicationID)")
            let tables = StoreTables(database, limits: Limits())
            try tables.transaction(by: nil) {
                try StoreSchema.migrate(database, from: 0)
                try tables.write(reign: reign, epoch: Epoch(rawValue: 0))
            }
            try tables.close()
        } catch {
            throw self.error(error, path, isOpening: true)
        }
        try publish(draft, as: path)
    }

    /// Creates an empty file that only its owner may read. SQLite gives its log the same mode.
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

    /// Removes the file if it exists.
    static func remove(_ path: String) { _ = unsafe unlink(path) }

    /// Gives a finished file its name, unless another process has already created a file with that
    /// name.
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

    /// The size in bytes; `nil` if there is no such file.
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

    /// A user who can write a store can have any command run.
    private static func checkRights(_ path: String) throws(StoreError) {
        guard let rights = FileRights(path) else { return }
        guard rights.hasTrustedOwner else {
            throw StoreError(.failed, "The store “\(path)” belongs to another user.")
        }
        guard rights.isWritableByOthers else { return }
        throw StoreError(
            .failed,
            "Other users may write the store “\(path)” (mode \(rights.text)): chmod go-w \(path)"
        )
    }

    // MARK: - Errors

    static func reason(_ code: Int32) -> String { SystemWords.text(of: code) }

    static func refused(_ path: String, _ why: String) -> StoreError {
        StoreError(
            .damaged,
            """
            “\(path)” is not a sound store of operon: \(why). It is left as it is. Put a backup \
            in its place, or move it away to begin a new store.
            """
        )
    }

    /// The error in words for a person, and whether the call may be tried again.
    static func error(_ error: any Error, _ path: String, isOpening: Bool = false) -> StoreError {
        if let error = error as? StoreError { return error }
        if let damage = error as? RowDamage { return refused(path, "it has \(damage.what)") }
        guard let error = error as? DatabaseError else {
            return StoreError(.failed, "The store “\(path)” failed: \(error).")
        }
        switch error.code {
        case SQLITE_FULL:
            return StoreError(
                .full,
                "The disk that holds “\(path)” is full: nothing new starts until there is room."
            )
        case SQLITE_BUSY, SQLITE_LOCKED:
            guard isOpening else {
                return StoreError(.busy, "The store “\(path)” is being read by somebody else.")
            }
            return StoreError(
                .held,
                """
                The store “\(path)” is held by another process, and one at a time may have it. \
                Stop that one and wait until it has ended, or give this one another path.
                """
            )
        case SQLITE_NOTADB: return refused(path, "it is no database")
        case SQLITE_CORRUPT, SQLITE_FORMAT: return refused(path, "SQLite cannot read all of it")
        case SQLITE_CANTOPEN, SQLITE_READONLY, SQLITE_PERM:
            return StoreError(
                .failed,
                """
                The store “\(path)” cannot be opened for writing: a coordinator \
                needs to write in it and in its folder.
                """
            )
        case _: return StoreError(.failed, "The store “\(path)” failed: \(error.message).")
        }
    }
}
