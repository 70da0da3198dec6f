import GRDB
import OperonModel
import OperonPorts

/// What one commit has changed.
struct JournalRow {
    var number: Int64
    var epoch: Epoch
    var wall: WallTime
    /// See `JournalBytes`.
    var records: [UInt8]
    var events: [StoredEvent]
    /// The number of the last event of this row and those before it.
    var lastEvent: UInt64
}

// A commit is one row of the journal. The tables follow it: see `StoreTables`.
extension StoreTables {
    // MARK: - Writing

    /// Adds the row of a commit, and what is in tables of its own from the beginning: contents,
    /// workers, outputs and logs. A replay changes none of these.
    func append(_ batch: StoreBatch, _ changes: StoreChanges, by epoch: Epoch) throws {
        var contents: [Int64] = []
        for new in changes.contents { contents.append(try write(new)) }
        for worker in changes.workers { try write(worker) }
        try writeResults(changes)
        let first = changes.events.first?.sequence ?? lastEvent + 1
        try writeJournal(
            JournalRow(
                number: lastJournal + 1,
                epoch: epoch,
                wall: batch.wall,
                records: try JournalBytes.encode(batch, contents: contents),
                events: changes.events,
                lastEvent: changes.events.last?.sequence ?? lastEvent
            ),
            firstEvent: first
        )
        guard let last = changes.dropsEventsThrough else { return }
        try writeProjection(projected, firstEvent: last + 1)
    }

    private func writeJournal(_ row: JournalRow, firstEvent: UInt64) throws {
        let insert = try statement(.insertJournal)
        try insert.bind(row.number)
        try insert.bind(Int64(row.epoch.rawValue))
        try insert.bind(row.wall.nanosecondsSince1970)
        try insert.bind(Int64(bitPattern: firstEvent))
        try insert.bind(Int64(bitPattern: row.lastEvent))
        try insert.bind(row.records)
        try insert.bind(JournalBytes.encode(row.events))
        try insert.bindSum()
        try insert.execute()
    }

    /// Notes how far the tables are, and removes the rows of the journal that nobody needs any
    /// more: the tables have their changes, and their events are dropped. The last row stays,
    /// because it has the number of the last event.
    func writeProjection(_ journal: Int64, firstEvent: UInt64) throws {
        let insert = try statement("INSERT OR REPLACE INTO projection VALUES (?,?,?,?)")
        try insert.bind(1 as Int64)
        try insert.bind(journal)
        try insert.bind(Int64(bitPattern: firstEvent))
        try insert.bindSum()
        try insert.execute()
        // The plus sign makes SQLite use the index of the events.
        let delete = try statement("DELETE FROM journal WHERE last_event < ? AND +id < ?")
        try delete.bind(Int64(bitPattern: firstEvent))
        try delete.bind(journal)
        try delete.execute()
    }

    // MARK: - Reading

    /// How far the tables are, and the oldest event that was not dropped.
    func loadProjection() throws -> (journal: Int64, firstEvent: UInt64) {
        let select = try statement("SELECT * FROM projection")
        defer { select.reset() }
        guard try select.step() else { throw RowDamage(what: "no state of its journal") }
        _ = try select.readInteger()
        let journal = try select.readRowNumber()
        let firstEvent = UInt64(try select.readRowNumber())
        try select.readSum()
        return (journal, firstEvent)
    }

    /// Brings the tables up to the end of the journal, after a process that was killed. Belongs
    /// before `load`, on an object of its own.
    func replay() throws {
        let (projected, firstEvent) = try loadProjection()
        let select = try PreparedStatement(
            database,
            "SELECT * FROM journal WHERE id > ? ORDER BY id"
        )
        try select.bind(projected)
        guard try select.step() else { return }
        try beginReplay(after: projected, firstEvent: firstEvent)
        var next: JournalRow? = try select.readJournal()
        while let row = next {
            try replay(row)
            // The statement stays as it is: only rows up to this one are removed.
            try projectIfDue()
            next = try select.step() ? try select.readJournal() : nil
        }
        select.reset()
        try project()
    }

    private func replay(_ row: JournalRow) throws {
        guard row.number == lastJournal + 1 else {
            throw RowDamage(what: "no row \(lastJournal + 1) in its journal")
        }
        let content = try JournalBytes.decode(row.records, at: row.wall)
        var batch = StoreBatch(wall: row.wall, records: content.records)
        batch.results = content.results
        for number in content.contents { batch.graphs.append(try loadContents(row: number)) }
        let changes: StoreChanges
        do {
            changes = try StoreChanges(batch, to: rows(for: StoreWants(batch)), limits: limits)
        } catch let error as StoreError {
            throw RowDamage(what: "a journal that contradicts its tables (\(error.message))")
        }
        remember(changes, journal: row.number, lastEvent: row.lastEvent)
    }

    func projectIfDue() throws {
        if isProjectionDue { try project() }
    }

    /// Writes the pending rows in a transaction of their own.
    func project() throws {
        guard pending.rowCount > 0 || projected < lastJournal else { return }
        try transaction(by: nil) { try writePending() }
        didWritePending()
    }

    // MARK: - Migrating

    /// Moves the events of a store that has none into its journal.
    func beginJournal() throws {
        let events = try PreparedStatement(database, "SELECT * FROM events ORDER BY sequence")
        var page: [StoredEvent] = []
        var number: Int64 = 0
        var firstEvent: UInt64?
        func write() throws {
            guard let first = page.first?.sequence, let last = page.last?.sequence else { return }
            number += 1
            let row = JournalRow(
                number: number,
                epoch: Epoch(rawValue: 0),
                wall: WallTime(nanosecondsSince1970: 0),
                records: try JournalBytes.encode(StoreBatch.nothing, contents: []),
                events: page,
                lastEvent: last
            )
            try writeJournal(row, firstEvent: first)
            page = []
        }
        while try events.step() {
            let event = try events.readEvent()
            firstEvent = firstEvent ?? event.sequence
            guard page.isEmpty || page.last?.sequence == event.sequence - 1 else {
                throw RowDamage(what: "events with a gap")
            }
            page.append(event)
            if page.count == Self.eventsPerMovedRow { try write() }
        }
        try write()
        try writeProjection(number, firstEvent: firstEvent ?? 1)
    }

    private static let eventsPerMovedRow = 1_000
}

extension StoreBatch {
    fileprivate static var nothing: StoreBatch {
        StoreBatch(wall: WallTime(nanosecondsSince1970: 0))
    }
}
