import OperonModel
import OperonPorts

/// What a commit, or a part of a large one, has changed; or more of its events.
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

// The rows of the journal. The tables follow them: see `StoreTables`.
extension StoreTables {
    // MARK: - Writing

    /// The most events in one row, because a reader of a few of them reads the whole row.
    private static let eventsPerRow = 1_000

    /// Adds the rows of a commit, and what is in tables of its own from the beginning: contents,
    /// workers, outputs and logs. A replay changes none of these.
    ///
    /// - Returns: the number of the last row.
    func append(_ batch: StoreBatch, _ changes: StoreChanges, by epoch: Epoch) throws -> Int64 {
        var contents: [Int64] = []
        for new in changes.contents { contents.append(try write(new)) }
        for worker in changes.workers { try write(worker) }
        try writeResults(changes)
        var row = JournalRow(
            number: lastJournal,
            epoch: epoch,
            wall: batch.wall,
            records: try JournalBytes.encode(kept(batch), contents: contents),
            events: [],
            lastEvent: lastEvent
        )
        var rest = changes.events[...]
        // A row with events stays as long as they do. The data of a firing must not.
        var room = changes.triggers.isEmpty ? Self.eventsPerRow : 0
        repeat {
            row.number += 1
            row.events = Array(rest.prefix(room))
            rest = rest.dropFirst(room)
            let firstEvent = row.events.first?.sequence ?? lastEvent + 1
            row.lastEvent = row.events.last?.sequence ?? lastEvent
            try writeJournal(row, firstEvent: firstEvent)
            row.records = try JournalBytes.encode(StoreBatch.nothing, contents: [])
            room = Self.eventsPerRow
        } while !rest.isEmpty
        if let last = changes.dropsEventsThrough {
            try writeProjection(projected, firstEvent: last + 1)
        }
        return row.number
    }

    /// The batch, but for a record that a test lets the journal lose.
    private func kept(_ batch: StoreBatch) -> StoreBatch {
        guard probe.mutation == .losesLastRecord else { return batch }
        var batch = batch
        batch.records = batch.records.dropLast()
        return batch
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
    /// more: the tables have their changes, and their events are dropped, or they have none. The
    /// last row stays, because it has the number of the last event.
    func writeProjection(_ journal: Int64, firstEvent: UInt64) throws {
        let insert = try statement("INSERT OR REPLACE INTO projection VALUES (?,?,?,?)")
        try insert.bind(1 as Int64)
        try insert.bind(journal)
        try insert.bind(Int64(bitPattern: firstEvent))
        try insert.bindSum()
        try insert.execute()
        try probe.passed(.beforeTrimming)
        let isEarly = probe.mutation == .trimsBeforeProjection
        try trim(upTo: isEarly ? lastJournal : journal, firstEvent: firstEvent)
        try probe.passed(.afterTrimming)
    }

    private func trim(upTo journal: Int64, firstEvent: UInt64) throws {
        // The search believes single rows. The second condition keeps a damaged one from taking
        // others with it.
        let delete = try statement("DELETE FROM journal WHERE id < ? AND last_event < ?")
        try delete.bind(min(journal, try firstRow(from: firstEvent)))
        try delete.bind(Int64(bitPattern: firstEvent))
        try delete.execute()
        let deleteEmpty = try statement(
            "DELETE FROM journal WHERE id >= ? AND id < ? AND first_event > last_event"
        )
        try deleteEmpty.bind(projected)
        try deleteEmpty.bind(journal)
        try deleteEmpty.execute()
    }

    // MARK: - Reading

    /// The number below which no row has this event or a later one. Rows without events may have
    /// been removed. The numbers of events never fall from row to row.
    func firstRow(from event: UInt64) throws -> Int64 {
        let select = try statement(
            "SELECT id, last_event FROM journal WHERE id >= ? ORDER BY id LIMIT 1"
        )
        // Every row below `low` ends before the event, and every row from `high` on at it or later.
        // Most searches are for an event near the end.
        var (low, high, step) = (0 as Int64, lastJournal + 1, 1 as Int64)
        while low < high {
            let middle = max(low + (high - low) / 2, high - step)
            try select.bind(middle)
            defer { select.reset() }
            if try select.step() {
                let row = try select.readRowNumber()
                if UInt64(bitPattern: try select.readInteger()) < event {
                    low = row + 1
                    continue
                }
            }
            high = middle
            step = min(2 * step, 1 << 40)
        }
        return low
    }

    /// How far the tables are, and the oldest event that was not dropped.
    func loadProjection() throws -> (journal: Int64, firstEvent: UInt64) {
        let select = try statement("SELECT * FROM projection")
        defer { select.reset() }
        guard try select.step() else { throw RowDamage(what: "no state of its journal") }
        _ = try select.readInteger()
        let journal = try select.readRowNumber()
        let firstEvent = UInt64(try select.readRowNumber())
        try select.readSum()
        guard firstEvent >= 1 else { throw RowDamage(what: "an event 0") }
        return (journal, firstEvent)
    }

    /// Brings the tables up to the end of the journal, after a process that was killed. Call it on
    /// a new object, before another one loads the tables.
    func replay() throws {
        let (projected, firstEvent) = try loadProjection()
        // All rows are read once before anything is written.
        let start = probe.mutation == .replaysTwice ? max(0, projected - 1) : projected
        var last = start
        try forEachRow(after: start) { row in
            guard row.number == last + 1 else {
                throw RowDamage(what: "no row \(last + 1) in its journal")
            }
            _ = try JournalBytes.decode(row.records, at: row.wall)
            last = row.number
        }
        guard last > projected else { return }
        try beginReplay(after: projected, firstEvent: firstEvent)
        try forEachRow(after: start) { row in
            try replay(row)
            try probe.passed(.inReplay)
            try projectIfDue()
        }
        try project()
    }

    /// Rows up to the current one may be removed meanwhile.
    private func forEachRow(after number: Int64, _ body: (JournalRow) throws -> Void) throws {
        let select = try PreparedStatement(
            database,
            "SELECT * FROM journal WHERE id > ? ORDER BY id"
        )
        try select.bind(number)
        defer { select.reset() }
        while try select.step() { try body(try select.readJournal()) }
    }

    private func replay(_ row: JournalRow) throws {
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

    /// Writes the pending rows if they are many. If there is no room for them, the next attempt is
    /// made when there are more of them.
    func projectIfDue() throws {
        guard isProjectionDue else { return }
        do {
            try project()
        } catch {
            postponeProjection()
            throw error
        }
    }

    /// Writes the pending rows in a transaction of their own.
    func project() throws {
        guard pending.rowCount > 0 || projected < lastJournal else { return }
        if probe.mutation == .notesBeforeWriting { try noteProjection() }
        try probe.passed(.beforeProjection)
        let isNoted = probe.mutation != .notesAfterWriting
        try transaction(by: nil) { try writePending(isNoted: isNoted) }
        try probe.passed(.afterProjection)
        if !isNoted { try noteProjection() }
        didWritePending()
    }

    private func noteProjection() throws {
        try transaction(by: nil) { try writeProjection(lastJournal, firstEvent: firstEvent) }
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
            // An event that is damaged or missing is a gap for its readers.
            guard let event = try? events.readEvent() else { continue }
            firstEvent = firstEvent ?? event.sequence
            if let last = page.last, last.sequence != event.sequence - 1 { try write() }
            page.append(event)
            if page.count == Self.eventsPerRow { try write() }
        }
        try write()
        try writeProjection(number, firstEvent: firstEvent ?? 1)
    }
}

extension StoreBatch {
    fileprivate static var nothing: StoreBatch {
        StoreBatch(wall: WallTime(nanosecondsSince1970: 0))
    }
}
