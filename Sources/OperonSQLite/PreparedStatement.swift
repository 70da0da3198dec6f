import COperonSQLite

/// A row differs from what was written.
struct RowDamage: Error {
    let what: String
}

/// A statement that is prepared once and used many times. Values are bound and read in the order of
/// their columns, without an allocation for each. Only this file, `Database` and `SQLiteVersion`
/// call SQLite.
///
/// The last column of most tables is a checksum over the columns before it. `bindSum` and `readSum`
/// cover the values that were bound or read since the start of the row. Use it only on the database
/// thread.
@safe final class PreparedStatement {
    private let database: Database
    private let handle: OpaquePointer
    private var position: Int32 = 0
    private var sum = RowSum()

    init(_ database: Database, _ sql: String) throws {
        self.database = database
        unsafe handle = try database.prepare(sql)
    }

    deinit { _ = unsafe sqlite3_finalize(handle) }

    // MARK: - Writing

    func bind(_ value: Int64) throws {
        position += 1
        sum.add(UInt64(bitPattern: value))
        try unsafe check(sqlite3_bind_int64(handle, position, value))
    }

    func bind(_ value: Int64?) throws {
        guard let value else { return try bindNothing() }
        try bind(value)
    }

    func bind(_ value: String?) throws {
        guard var value else { return try bindNothing() }
        position += 1
        let code = value.withUTF8 { bytes in
            unsafe sum.add(UnsafeRawBufferPointer(bytes))
            return unsafe bytes.withMemoryRebound(to: CChar.self) { characters in
                // The pointer of an empty text is null, which SQLite would bind as NULL.
                unsafe sqlite3_bind_text64(
                    handle,
                    position,
                    characters.baseAddress ?? PreparedStatement.empty,
                    UInt64(characters.count),
                    PreparedStatement.copied,
                    UInt8(SQLITE_UTF8)
                )
            }
        }
        try check(code)
    }

    func bind(_ value: some Collection<UInt8>) throws {
        position += 1
        let code: Int32? = value.withContiguousStorageIfAvailable { bytes in
            unsafe sum.add(UnsafeRawBufferPointer(bytes))
            return unsafe sqlite3_bind_blob64(
                handle,
                position,
                bytes.baseAddress ?? UnsafePointer(PreparedStatement.emptyBytes),
                UInt64(bytes.count),
                PreparedStatement.copied
            )
        }
        guard let code else { preconditionFailure("arrays and their slices are contiguous") }
        try check(code)
    }

    private func bindNothing() throws {
        position += 1
        sum.addNothing()
        try unsafe check(sqlite3_bind_null(handle, position))
    }

    func bindSum() throws { try bind(sum.value) }

    /// Runs a statement that returns no rows.
    func execute() throws {
        defer { reset() }
        let code = unsafe sqlite3_step(handle)
        guard code == SQLITE_DONE || code == SQLITE_ROW else { throw database.failure(code) }
    }

    // MARK: - Reading

    /// Moves to the next row; `false` if there is none. `reset` ends reading.
    func step() throws -> Bool {
        position = 0
        sum = RowSum()
        switch unsafe sqlite3_step(handle) {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        case let code: throw database.failure(code)
        }
    }

    func reset() {
        position = 0
        sum = RowSum()
        // `sqlite3_reset` repeats the error that `step` already reported.
        _ = unsafe sqlite3_reset(handle)
    }

    func readInteger() throws -> Int64 {
        guard let value = try readOptionalInteger() else { throw RowDamage(what: "a lost number") }
        return value
    }

    func readOptionalInteger() throws -> Int64? {
        defer { position += 1 }
        switch unsafe sqlite3_column_type(handle, position) {
        case SQLITE_NULL:
            sum.addNothing()
            return nil
        case SQLITE_INTEGER:
            let value = unsafe sqlite3_column_int64(handle, position)
            sum.add(UInt64(bitPattern: value))
            return value
        case _: throw RowDamage(what: "a value that should be a number")
        }
    }

    /// The number in the first column, without moving on to the next column.
    func peekInteger() throws -> Int64 {
        unsafe sqlite3_column_int64(handle, 0)
    }

    func readText() throws -> String {
        guard let value = try readOptionalText() else { throw RowDamage(what: "a lost text") }
        return value
    }

    func readOptionalText() throws -> String? {
        defer { position += 1 }
        switch unsafe sqlite3_column_type(handle, position) {
        case SQLITE_NULL:
            sum.addNothing()
            return nil
        case SQLITE_TEXT:
            // Read the text first: asking for its size may convert it.
            let start = unsafe sqlite3_column_text(handle, position)
            let count = unsafe Int(sqlite3_column_bytes(handle, position))
            let bytes = unsafe UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : count)
            unsafe sum.add(bytes)
            return unsafe String(decoding: bytes, as: UTF8.self)
        case _: throw RowDamage(what: "a value that should be a text")
        }
    }

    func readBytes() throws -> [UInt8] {
        defer { position += 1 }
        guard unsafe sqlite3_column_type(handle, position) == SQLITE_BLOB else {
            throw RowDamage(what: "a value that should be bytes")
        }
        let start = unsafe sqlite3_column_blob(handle, position)
        let count = unsafe Int(sqlite3_column_bytes(handle, position))
        let bytes = unsafe UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : count)
        unsafe sum.add(bytes)
        return unsafe Array(bytes)
    }

    /// - Throws: `RowDamage` if the row differs from what was written.
    func readSum() throws {
        let expected = sum.value
        guard unsafe sqlite3_column_int64(handle, position) == expected else {
            throw RowDamage(what: "a row with a wrong check sum")
        }
    }

    // MARK: - Failing

    private func check(_ code: Int32) throws {
        guard code == SQLITE_OK else { throw database.failure(code) }
    }

    /// Tells SQLite to copy bound values before the call returns.
    private static var copied: sqlite3_destructor_type {
        unsafe unsafeBitCast(-1, to: sqlite3_destructor_type.self)
    }

    nonisolated(unsafe) private static let empty = unsafe UnsafePointer<CChar>(
        bitPattern: MemoryLayout<CChar>.alignment
    )!
    nonisolated(unsafe) private static let emptyBytes = unsafe UnsafePointer<UInt8>(
        bitPattern: MemoryLayout<UInt8>.alignment
    )!
}

/// A copy of a database in progress, while the database stays in use. Between two steps the source
/// may be written through the same connection, and the copy includes these changes.
@safe final class RunningBackup {
    /// Kept open as long as the copy is made.
    private let databases: (source: Database, destination: Database)
    private let handle: OpaquePointer

    init(from source: Database, to destination: Database) throws(DatabaseError) {
        databases = (source, destination)
        unsafe handle = try source.beginBackup(to: destination)
    }

    /// Copies some pages. Returns whether all are copied.
    func step(pages: Int32) throws(DatabaseError) -> Bool {
        switch unsafe sqlite3_backup_step(handle, pages) {
        case SQLITE_DONE: return true
        case SQLITE_OK: return false
        // A step leaves no words in either database.
        case let code: throw DatabaseError(code, unsafe String(cString: sqlite3_errstr(code)))
        }
    }

    func finish() { _ = unsafe sqlite3_backup_finish(handle) }
}
