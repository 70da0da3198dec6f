import OperonModel
import OperonPorts

/// Looks up and writes the rows of a store, with statements that are prepared once. Data that every
/// batch needs is also kept in memory: graphs, queues, and attempts in flight.
///
/// A commit adds a row to the journal, or several if it is large, and the results of attempts. The
/// tables follow: what a commit changes in them is pending in memory until there is enough of it
/// for `project`, which writes it in one transaction that also says in `projection` how far the
/// tables are then. So tables and journal together always have everything that was committed, and
/// after a process was killed, `replay` works out again what was pending.
///
/// Belongs to the thread of its store.
final class StoreTables {
    let database: Database
    let limits: Limits
    let probe: StoreProbe
    private let pendingRowsMax: Int
    private let recordsAtOnce: Int
    /// The number of pending rows, or of rows of the journal that the tables lack, at which the
    /// tables get them.
    private var projectionDueAt: Int
    private var statements: [String: PreparedStatement] = [:]

    /// Graphs that are kept, and dropped graphs whose rows are not deleted yet.
    private(set) var graphs: [GraphID: GraphEntry] = [:]
    /// Dropped graphs whose rows are deleted; four bytes each.
    private(set) var dropped = DroppedGraphs()
    /// Rows of `contents` by graph: the first row, and those after it.
    private var firstContents: [GraphID: Int64] = [:]
    private var moreContents: [GraphID: [Int64]] = [:]
    /// Graphs that have rows in `dependency_changes`.
    private var changedGraphs: Set<GraphID> = []
    private(set) var queues: [String: StoredQueue] = [:]
    private(set) var keys: [String: StoredKey] = [:]
    private(set) var rates: [RateScope: StoredRate] = [:]
    private(set) var triggers: Set<TriggerID> = []
    private(set) var open: [OperationID: StoredAttempt] = [:]
    /// Those that the tables have, and those that are pending.
    private(set) var ranges: [GraphID: FinishedRanges] = [:]
    private(set) var firstEvent: UInt64 = 1
    private(set) var lastEvent: UInt64 = 0
    /// Dropped graphs whose rows are not deleted yet.
    private(set) var unswept: [GraphID] = []
    /// What the tables do not have yet.
    private(set) var pending = PendingRows()
    /// Operations that have a row among the attempts in flight.
    private(set) var openRows: Set<OperationID> = []
    /// The last row of the journal.
    private(set) var lastJournal: Int64 = 0
    /// The last row of the journal whose changes the tables have.
    private(set) var projected: Int64 = 0
    /// Operations that may have a row. Most have none until they end and need no lookup.
    private var rows: [GraphID: IndexSet] = [:]
    /// Any operation may have one: the rows have not been loaded.
    private var mayAllHaveRows = false
    /// No known attempt is newer than this one.
    private(set) var newestAttempt: AttemptID
    /// The statements that are used for every operation.
    private var hotStatements: [PreparedStatement?]

    init(_ database: Database, _ options: SQLiteStore.Options) {
        self.database = database
        limits = options.limits
        probe = options.probe
        pendingRowsMax = options.pendingRowsMax
        recordsAtOnce = options.recordsAtOnce
        projectionDueAt = options.pendingRowsMax
        newestAttempt = AttemptID(epoch: Epoch(rawValue: .max), number: .max)
        hotStatements = Array(repeating: nil, count: HotStatement.allCases.count)
    }

    convenience init(_ database: Database, limits: Limits) {
        var options = SQLiteStore.Options()
        options.limits = limits
        self.init(database, options)
    }

    func statement(_ hot: HotStatement) throws -> PreparedStatement {
        if let known = hotStatements[hot.rawValue] { return known }
        let new = try PreparedStatement(database, hot.sql)
        hotStatements[hot.rawValue] = new
        return new
    }

    /// The statement with this text, prepared at its first use.
    func statement(_ sql: String) throws -> PreparedStatement {
        if let known = statements[sql] { return known }
        let new = try PreparedStatement(database, sql)
        statements[sql] = new
        return new
    }

    /// Runs a statement without results.
    func run(_ sql: String, _ values: Int64...) throws {
        let statement = try statement(sql)
        for value in values { try statement.bind(value) }
        try statement.execute()
    }

    /// Closes the database. After that, nothing else may be called.
    func close() throws {
        statements.removeAll()
        for index in hotStatements.indices { hotStatements[index] = nil }
        try database.close()
    }

    /// Sets the data that is kept in memory.
    func remember(
        graphs: [GraphEntry],
        dropped: DroppedGraphs,
        queues: [StoredQueue],
        keys: [StoredKey],
        rates: [StoredRate],
        triggers: [RestoredTrigger],
        ranges: [GraphID: FinishedRanges],
        open: [(operation: OperationID, attempt: StoredAttempt)],
        journal: (first: UInt64, last: UInt64, row: Int64),
        unswept: [GraphID] = [],
        epoch: Epoch = Epoch(rawValue: .max)
    ) {
        newestAttempt = AttemptID(epoch: epoch, number: .max)
        for graph in graphs { self.graphs[graph.id] = graph }
        self.dropped = dropped
        for queue in queues { self.queues[queue.name] = queue }
        for key in keys { self.keys[key.settings.name] = key }
        for rate in rates { self.rates[rate.scope] = rate }
        self.triggers = Set(triggers.map(\.trigger.id))
        self.ranges = ranges
        remember(open: open)
        (firstEvent, lastEvent) = (journal.first, journal.last)
        (lastJournal, projected) = (journal.row, journal.row)
        self.unswept = unswept
    }

    /// Lets every operation have a row, for a replay, which does not load them.
    func assumeRows() { mayAllHaveRows = true }

    private func remember(open: [(operation: OperationID, attempt: StoredAttempt)]) {
        for entry in open {
            self.open[entry.operation] = entry.attempt
            openRows.insert(entry.operation)
        }
    }

    // MARK: - Transactions

    /// Runs `body` in one transaction: all of it takes effect, or nothing. `epoch` is that of the
    /// coordinator that writes; `nil`: no coordinator writes.
    func transaction<Value>(by epoch: Epoch?, _ body: () throws -> Value) throws -> Value {
        try statement("BEGIN IMMEDIATE").execute()
        do {
            try epoch?.checkWrite(to: loadMeta().epoch)
            let value = try body()
            try statement("COMMIT").execute()
            return value
        } catch {
            // After some errors SQLite has already rolled back.
            if database.isInTransaction { try statement("ROLLBACK").execute() }
            throw error
        }
    }

    func commit(_ batch: StoreBatch, by epoch: Epoch) throws {
        guard !batch.isEmpty else { return try transaction(by: epoch) {} }
        let weight = batch.records.reduce(0) { $0 + rowCount(of: $1) }
        guard weight > recordsAtOnce else { return try commitAtOnce(batch, by: epoch) }
        // A large batch, such as the retry of a graph with a million operations, is written in one
        // transaction, but its changes are not all in memory at once. If the transaction fails, the
        // data kept in memory is restored.
        var batch = batch
        batch.records = batch.records.flatMap { record in
            rowCount(of: record) > recordsAtOnce ? record.pieces(of: recordsAtOnce) : [record]
        }
        let before = (
            graphs, queues, keys, rates, triggers, open, firstEvent, lastEvent, newestAttempt
        )
        let journal = (pending, openRows, ranges, lastJournal, projected)
        do {
            try transaction(by: epoch) {
                for part in batch.parts(of: recordsAtOnce, weighing: rowCount) {
                    let (changes, row) = try append(part, by: epoch)
                    remember(changes, row)
                    guard isProjectionDue else { continue }
                    try writePending()
                    didWritePending()
                }
                try probe.passed(.beforeCommit)
            }
        } catch {
            (graphs, queues, keys, rates, triggers, open, firstEvent, lastEvent, newestAttempt) =
                before
            (pending, openRows, ranges, lastJournal, projected) = journal
            throw error
        }
        try probe.passed(.afterCommit)
    }

    /// How many rows a record changes at most, about.
    private func rowCount(of record: StoreRecord) -> Int {
        guard case .rangeFinished(let range, _) = record else { return 1 }
        return 1 + (rows[range.graph]?.count(in: range.indices) ?? 0)
    }

    /// The default of `SQLiteStore.Options.recordsAtOnce`.
    static let recordsAtOnce = 10_000

    private func commitAtOnce(_ batch: StoreBatch, by epoch: Epoch) throws {
        if probe.mutation == .commitsRecordByRecord, batch.records.count > 1 {
            for part in batch.parts(of: 1) { try commitAtOnce(part, by: epoch) }
            return
        }
        if probe.mutation == .storesResultsFirst {
            let rows = try rows(for: StoreWants(batch))
            let changes = try StoreChanges(batch, to: rows, limits: limits)
            try transaction(by: epoch) { try writeResults(changes) }
        }
        let (changes, row) = try transaction(by: epoch) {
            let appended = try append(batch, by: epoch)
            try probe.passed(.beforeCommit)
            return appended
        }
        try probe.passed(.afterCommit)
        remember(changes, row)
    }

    private func append(
        _ batch: StoreBatch,
        by epoch: Epoch
    ) throws -> (changes: StoreChanges, row: Int64) {
        let changes = try StoreChanges(batch, to: rows(for: StoreWants(batch)), limits: limits)
        return (changes, try append(batch, changes, by: epoch))
    }

    private func remember(_ changes: StoreChanges, _ row: Int64) {
        let last = changes.events.last?.sequence ?? lastEvent
        remember(changes, journal: row, lastEvent: last)
        if let last = changes.dropsEventsThrough { firstEvent = last + 1 }
    }

    /// Updates the data that is kept in memory after changes were written to the journal.
    func remember(_ changes: StoreChanges, journal: Int64, lastEvent: UInt64) {
        lastJournal = journal
        self.lastEvent = lastEvent
        pending.note(changes)
        for id in changes.graphs.keys.sorted() { graphs[id] = changes.graphs[id] }
        for (id, new) in changes.ranges { ranges[id, default: FinishedRanges()].insert(new) }
        for queue in changes.queues.values {
            queues[queue.name] = queue.hasNoSettings ? nil : queue
        }
        for key in changes.keys.values { keys[key.settings.name] = key.hasNoSettings ? nil : key }
        for rate in changes.rates.values { rates[rate.scope] = rate.rate == nil ? nil : rate }
        for record in changes.triggers {
            switch record {
            case .added(let trigger, _): triggers.insert(trigger.id)
            case .removed(let id): triggers.remove(id)
            case .replaced, .changed, .firing, .firingForgotten: continue
            }
        }
        // The operations are independent, so their order does not matter.
        let newestBefore = newestAttempt
        for (id, change) in changes.attempts {
            newestAttempt = max(newestAttempt, id)
            guard isOpen(change, after: changes) else {
                pending.noteEnded(change)
                continue
            }
            let isNew = open[change.operation]?.id != id
            if isNew, id <= newestBefore { pending.noteResumed(id, of: change.operation) }
            pending.noteOpen(change.operation)
            open[change.operation] = change.attempt
        }
        for (id, attempt) in changes.open where attempt == nil {
            if open.removeValue(forKey: id) != nil { pending.noteOpen(id) }
        }
    }

    /// Whether an attempt that a batch changed is in flight after the batch.
    private func isOpen(_ change: StoreChanges.Attempt, after changes: StoreChanges) -> Bool {
        let id = change.attempt.id
        return changes.open[change.operation].map { $0 == id }
            ?? (open[change.operation]?.id == id)
    }

    // MARK: - Writing

    /// Whether so much is pending that the tables should get it.
    var isProjectionDue: Bool {
        max(pending.rowCount, Int(lastJournal - projected)) >= projectionDueAt
    }

    func postponeProjection() { projectionDueAt += pendingRowsMax }

    /// Writes what is pending, within the caller's transaction. If that succeeds, `didWritePending`
    /// has to follow.
    ///
    /// - Parameter isNoted: whether `projection` says so in the same transaction.
    func writePending(isNoted: Bool = true) throws {
        for id in pending.graphs.sorted() {
            if let graph = graphs[id] { try write(graph) }
        }
        for id in pending.operations.keys.sorted() {
            if let operation = pending.operations[id] { try write(operation, of: id) }
        }
        for range in pending.ranges { try write(range) }
        // Independent of each other, and before the rows of those that have ended again.
        for (id, operation) in pending.resumed { try deleteEnded(id, of: operation) }
        // In the order of the table.
        let attempts = pending.attempts.values.sorted { one, other in
            (one.operation, one.attempt.id) < (other.operation, other.attempt.id)
        }
        for attempt in attempts { try write(ended: attempt) }
        for id in pending.open.sorted() { try writeOpen(id) }
        for name in pending.queues.sorted() {
            try write(queues[name] ?? StoredQueue(name: name))
        }
        for name in pending.keys.sorted() { try write(keys[name] ?? StoredKey(name)) }
        for scope in pending.rates.sorted() { try write(rates[scope] ?? StoredRate(scope)) }
        for record in pending.triggers { try write(record) }
        for record in pending.dependencyChanges { try writeDependency(record) }
        try probe.passed(.inProjection)
        if isNoted { try writeProjection(lastJournal, firstEvent: firstEvent) }
    }

    /// Updates the data that is kept in memory after the transaction with `writePending`.
    func didWritePending() {
        for id in pending.open {
            if open[id] == nil { openRows.remove(id) } else { openRows.insert(id) }
        }
        pending.removeAll()
        projected = lastJournal
        projectionDueAt = pendingRowsMax
    }

    /// The largest id in a table; 0 if the table is empty.
    func last(in table: StaticString) throws -> Int64 {
        let select = try statement("SELECT coalesce(max(id), 0) FROM \(table)")
        defer { select.reset() }
        guard try select.step() else { return 0 }
        return try select.readRowNumber()
    }

    // MARK: - Retention

    /// Drops a finished graph. `sweep` deletes its rows in steps.
    func bury(_ id: GraphID, by epoch: Epoch) throws {
        guard let old = graphs[id], old.hasEnded, !old.isTombstone else { return }
        try project()
        let graph = old.tombstone
        try transaction(by: epoch) {
            let outcomes = try outcomes(of: id)
            guard outcomes.count == graph.operationCount else {
                throw RowDamage(what: "outcomes of graph \(id) that are not there")
            }
            try write(graph, outcomes: outcomes, tombstone: 1)
            for row in [firstContents[id]].compactMap({ $0 }) + (moreContents[id] ?? []) {
                try run(Self.deletePieces, row << 16, (row + 1) << 16, row, Int64(id.rawValue))
                try run(Self.deleteContents, row, Int64(id.rawValue))
            }
            try run("DELETE FROM finished_ranges WHERE graph = ?", Int64(id.rawValue))
            guard changedGraphs.contains(id) else { return }
            try run(
                "DELETE FROM dependency_changes WHERE operation >> 32 = ?",
                Int64(id.rawValue)
            )
        }
        graphs[id] = graph
        rows[id] = nil
        ranges[id] = nil
        firstContents[id] = nil
        moreContents[id] = nil
        changedGraphs.remove(id)
        unswept.append(id)
    }

    /// Deletes by key, so that the number of steps does not depend on what else is stored.
    static let deletePieces = """
        DELETE FROM pieces WHERE id >= ? AND id < ?
        AND EXISTS (SELECT 1 FROM contents WHERE id = ? AND graph = ?)
        """
    static let deleteContents = "DELETE FROM contents WHERE id = ? AND graph = ?"

    /// Notes the row of a graph's contents. A wrong note of a failed transaction is harmless:
    /// deleting checks that the row belongs to the graph.
    func noteContents(_ row: Int64, of graph: GraphID) {
        guard let first = firstContents[graph] else {
            firstContents[graph] = row
            return
        }
        // A failed transaction is tried again.
        guard row > moreContents[graph]?.last ?? first else { return }
        moreContents[graph, default: []].append(row)
    }

    /// The tables with rows of operations, and the column with the operation. No text that comes
    /// from outside is a `StaticString`: the name of a table in a statement is one of the source.
    private static let operationTables: [(table: StaticString, key: StaticString)] = [
        ("operations", "id"), ("attempts", "operation"), ("outputs", "operation"),
        ("logs", "operation"), ("cut_logs", "operation"),
    ]
    static let logTables: [(table: StaticString, isWhole: Bool)] = [
        ("logs", true), ("cut_logs", false),
    ]

    func noteChange(of graph: GraphID) { changedGraphs.insert(graph) }

    /// Deletes the rows of some operations of a dropped graph, starting at an index. Returns the
    /// next index, or `nil` at the end.
    func sweep(_ id: GraphID, from first: UInt32, by epoch: Epoch) throws -> UInt32? {
        let step: UInt32 = 10_000
        let count = graphs[id]?.operationCount ?? 0
        var remains: OutcomeRuns?
        let end = min(count - min(first, count), step) + first
        try transaction(by: epoch) {
            let low = OperationID(graph: id, index: first).key
            let high = OperationID(graph: id, index: end).key
            for (table, key) in Self.operationTables {
                try run("DELETE FROM \(table) WHERE \(key) >= ? AND \(key) < ?", low, high)
            }
            if end >= count, let graph = graphs[id] {
                let outcomes = try buriedOutcomes(of: id)
                try write(graph, outcomes: outcomes, tombstone: 2)
                remains = outcomes
            }
        }
        guard end >= count else { return end }
        if let remains { dropped.insert(id, remains) }
        graphs[id] = nil
        unswept.removeAll { $0 == id }
        return nil
    }

    /// Removes the names of those of these workers that no attempt refers to, and returns those
    /// workers.
    func forget(_ workers: [Incarnation], by epoch: Epoch) throws -> [Incarnation] {
        try project()
        let select = try PreparedStatement(
            database,
            "SELECT worker FROM attempts UNION SELECT worker FROM attempts_in_flight"
        )
        var used: Set<Int64> = []
        while try select.step() { used.insert(try select.readInteger()) }
        let unused = workers.filter { !used.contains($0.key) }
        try transaction(by: epoch) {
            let delete = try statement("DELETE FROM workers WHERE id = ?")
            for worker in unused {
                try delete.bind(worker.key)
                try delete.execute()
            }
        }
        return unused
    }

    /// Notes that an operation may have a row from now on.
    func noteRow(of id: OperationID) { rows[id.graph, default: IndexSet()].insert(id.index) }

    func mayHaveRow(_ id: OperationID) -> Bool {
        mayAllHaveRows || rows[id.graph]?.contains(id.index) ?? false
    }

    func mayHaveRows(in range: OperationRange) -> Bool {
        mayAllHaveRows || rows[range.graph]?.count(in: range.indices) ?? 0 > 0
    }
}

/// A set of numbers from 0 up, with one bit for each.
private struct IndexSet {
    private var words: [UInt64] = []

    func contains(_ index: UInt32) -> Bool {
        let word = Int(index / 64)
        return word < words.count && words[word] & 1 << (index % 64) != 0
    }

    func count(in indices: Range<UInt32>) -> Int {
        guard let last = indices.last else { return 0 }
        let (low, high) = (Int(indices.lowerBound / 64), Int(last / 64))
        var count = 0
        for word in low..<max(low, min(high + 1, words.count)) {
            var bits = words[word]
            if word == low { bits &= UInt64.max << (indices.lowerBound % 64) }
            if word == high { bits &= UInt64.max >> (63 - last % 64) }
            count += bits.nonzeroBitCount
        }
        return count
    }

    mutating func insert(_ index: UInt32) {
        let word = Int(index / 64)
        if word >= words.count {
            words.append(contentsOf: repeatElement(0, count: word + 1 - words.count))
        }
        words[word] |= 1 << (index % 64)
    }
}
