import COperonSQLite

/// An error of SQLite.
struct DatabaseError: Error {
    /// The primary result code, such as `SQLITE_FULL` (https://www.sqlite.org/rescode.html).
    let code: Int32
    let message: String

    /// - Parameter code: primary or extended.
    init(_ code: Int32, _ message: String) {
        self.code = code & 0xFF
        self.message = message
    }
}

/// An open database. Used by one thread at a time: the caller ensures this.
@safe final class Database {
    /// `nil` after `close`.
    private var handle: OpaquePointer?

    /// Opens a file, and makes it if it does not exist.
    init(path: String) throws(DatabaseError) {
        var opened: OpaquePointer?
        let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX
        let code = unsafe sqlite3_open_v2(path, &opened, flags, nil)
        guard code == SQLITE_OK else {
            // A database that could not be opened has the reason, and has to be closed.
            let message = unsafe opened.map { unsafe String(cString: sqlite3_errmsg($0)) }
            _ = unsafe sqlite3_close(opened)
            throw DatabaseError(code, message ?? "out of memory")
        }
        unsafe handle = opened
    }

    // Statements and backups keep the database, so there are none here.
    deinit { _ = unsafe sqlite3_close(handle) }

    /// - Throws: `DatabaseError` if a statement is still prepared or a backup is not finished; the
    ///   database stays open then.
    func close() throws(DatabaseError) {
        try check(unsafe sqlite3_close(handle))
        unsafe handle = nil
    }

    /// From now on, closing it leaves the log as it is.
    func keepLog() throws(DatabaseError) { try check(unsafe operon_sqlite_keep_log(handle)) }

    /// Runs statements that are separated by semicolons. Rows are not read.
    func execute(_ sql: String) throws(DatabaseError) {
        try check(unsafe sqlite3_exec(handle, sql, nil, nil, nil))
    }

    /// The texts in the first column.
    func texts(_ sql: String) throws -> [String] {
        let select = try PreparedStatement(self, sql)
        var texts: [String] = []
        while try select.step() { texts.append(try select.readText()) }
        return texts
    }

    /// The number in the first column of the first row; 0: there is no row.
    func number(_ sql: String) throws -> Int64 {
        let select = try PreparedStatement(self, sql)
        return try select.step() ? try select.readInteger() : 0
    }

    var isInTransaction: Bool { unsafe sqlite3_get_autocommit(handle) == 0 }

    /// Copies the content of the log into the file and truncates the log.
    func truncateLog() throws(DatabaseError) {
        try check(
            unsafe sqlite3_wal_checkpoint_v2(handle, nil, SQLITE_CHECKPOINT_TRUNCATE, nil, nil)
        )
    }

    /// The caller finalizes the statement, before the database is closed.
    func prepare(_ sql: String) throws(DatabaseError) -> OpaquePointer {
        var statement: OpaquePointer?
        // The statements of a store are used until it is closed.
        let flags = UInt32(SQLITE_PREPARE_PERSISTENT)
        try check(unsafe sqlite3_prepare_v3(handle, sql, -1, flags, &statement, nil))
        guard let statement = unsafe statement else {
            throw DatabaseError(SQLITE_MISUSE, "the SQL text is empty")
        }
        return unsafe statement
    }

    /// Begins to copy the database into another; see `RunningBackup`.
    func beginBackup(to target: Database) throws(DatabaseError) -> OpaquePointer {
        guard let copy = unsafe sqlite3_backup_init(target.handle, "main", handle, "main") else {
            throw unsafe target.failure(sqlite3_errcode(target.handle))
        }
        return unsafe copy
    }

    /// The error that SQLite has just reported.
    func failure(_ code: Int32) -> DatabaseError {
        DatabaseError(code, unsafe String(cString: sqlite3_errmsg(handle)))
    }

    private func check(_ code: Int32) throws(DatabaseError) {
        guard code == SQLITE_OK else { throw failure(code) }
    }
}
