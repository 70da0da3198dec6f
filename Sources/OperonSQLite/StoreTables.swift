import GRDB
import OperonModel
import OperonPorts

/// Looks up and writes the rows of a store, with statements that are prepared once. Data that every
/// batch needs is also kept in memory: graphs, queues, and attempts in flight.
///
/// Belongs to the thread of its store.
final class StoreTables {
    let database: Database
    let limits: Limits
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
    private(set) var firstEvent: UInt64 = 1
    private(set) var lastEvent: UInt64 = 0
    /// Dropped graphs whose rows are not deleted yet.
    private(set) var unswept: [GraphID] = []
    /// Operations that this batch has looked up and that have a row.
    private var found: Set<OperationID> = []
    /// Operations that may have a row. Most have none until they end and need no lookup.
    private var rows: [GraphID: IndexSet] = [:]
    /// No known attempt is newer than this one.
    private(set) var newestAttempt: AttemptID
    /// The statements that are used for every operation.
    private var hotStatements: [PreparedStatement?]

    init(_ database: Database, limits: Limits) {
        self.database = database
        self.limits = limits
        newestAttempt = AttemptID(epoch: Epoch(rawValue: .max), number: .max)
        hotStatements = Array(repeating: nil, count: HotStatement.allCases.count)
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

    /// Sets the data that is kept in memory.
    func remember(
        graphs: [GraphEntry],
        dropped: DroppedGraphs,
        queues: [StoredQueue],
        keys: [StoredKey],
        rates: [StoredRate],
        triggers: [RestoredTrigger],
        open: [(operation: OperationID, attempt: StoredAttempt)],
        events: ClosedRange<UInt64>?,
        unswept: [GraphID],
        epoch: Epoch
    ) {
        newestAttempt = AttemptID(epoch: epoch, number: .max)
        for graph in graphs { self.graphs[graph.id] = graph }
        self.dropped = dropped
        for queue in queues { self.queues[queue.name] = queue }
        for key in keys { self.keys[key.settings.name] = key }
        for rate in rates { self.rates[rate.scope] = rate }
        self.triggers = Set(triggers.map(\.trigger.id))
        for entry in open { self.open[entry.operation] = entry.attempt }
        if let events { (firstEvent, lastEvent) = (events.lowerBound, events.upperBound) }
        self.unswept = unswept
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
            if database.isInsideTransaction { try statement("ROLLBACK").execute() }
            throw error
        }
    }

    func commit(_ batch: StoreBatch, by epoch: Epoch) throws {
        guard batch.records.count > Self.recordsAtOnce else {
            return remember(try transaction(by: epoch) { try write(batch) })
        }
        // A large batch, such as the cancellation of a graph with a million operations, is written
        // in one transaction, but its changes are not all in memory at once. If the transaction
        // fails, the data kept in memory is restored.
        let before = (
            graphs, queues, keys, rates, triggers, open, firstEvent, lastEvent, newestAttempt
        )
        do {
            try transaction(by: epoch) {
                for part in batch.parts(of: Self.recordsAtOnce) { remember(try write(part)) }
            }
        } catch {
            (graphs, queues, keys, rates, triggers, open, firstEvent, lastEvent, newestAttempt) =
                before
            throw error
        }
    }

    /// The most records whose changes are computed together.
    private static let recordsAtOnce = 10_000

    private func write(_ batch: StoreBatch) throws -> StoreChanges {
        found.removeAll(keepingCapacity: true)
        let changes = try StoreChanges(batch, to: rows(for: StoreWants(batch)), limits: limits)
        try write(changes)
        return changes
    }

    /// Updates the data that is kept in memory after changes were written.
    private func remember(_ changes: StoreChanges) {
        for id in changes.graphs.keys.sorted() { graphs[id] = changes.graphs[id] }
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
        for (id, attempt) in changes.open where attempt == nil { open[id] = nil }
        for id in changes.attempts.keys.sorted() {
            guard let change = changes.attempts[id], isOpen(change, after: changes) else {
                continue
            }
            open[change.operation] = change.attempt
        }
        if let newest = changes.attempts.keys.max() { newestAttempt = max(newestAttempt, newest) }
        lastEvent = changes.events.last?.sequence ?? lastEvent
        if let last = changes.dropsEventsThrough { firstEvent = last + 1 }
    }

    /// Whether an attempt that a batch changed is in flight after the batch.
    private func isOpen(_ change: StoreChanges.Attempt, after changes: StoreChanges) -> Bool {
        let id = change.attempt.id
        return changes.open[change.operation].map { $0 == id }
            ?? (open[change.operation]?.id == id)
    }

    // MARK: - Writing

    private func write(_ changes: StoreChanges) throws {
        for id in changes.graphs.keys.sorted() {
            if let graph = changes.graphs[id] { try write(graph) }
        }
        for contents in changes.contents { try write(contents) }
        for id in changes.operations.keys.sorted() {
            guard let operation = changes.operations[id] else { continue }
            let last = changes.open[id] ?? open[id]?.id
            let attempt = last.flatMap { changes.attempts[$0]?.attempt } ?? open[id]
            let isTold = last != nil && attempt?.ordinal == operation.attempts
            try write(operation, of: id, isToldByAttempt: isTold)
        }
        for id in changes.attempts.keys.sorted() {
            if let change = changes.attempts[id] { try write(change, of: changes) }
        }
        for name in changes.queues.keys.sorted() {
            if let queue = changes.queues[name] { try write(queue) }
        }
        for name in changes.keys.keys.sorted() {
            if let key = changes.keys[name] { try write(key) }
        }
        for scope in changes.rates.keys.sorted() {
            if let rate = changes.rates[scope] { try write(rate) }
        }
        for worker in changes.workers { try write(worker) }
        for record in changes.triggers { try write(record) }
        for record in changes.dependencyChanges { try writeDependency(record) }
        for id in changes.outputs.keys.sorted() {
            if let output = changes.outputs[id] { try write(output, of: id) }
        }
        for (id, attempt) in changes.droppedLogs {
            let delete = try statement(
                "DELETE FROM logs WHERE operation = ? AND epoch = ? AND number = ?"
            )
            try delete.bind(id.key)
            try delete.bind(attempt)
            try delete.execute()
        }
        for log in changes.logs { try write(log) }
        let insert = try statement(.insertEvent)
        for event in changes.events {
            try insert.bind(Int64(bitPattern: event.sequence))
            try insert.bind(event.body)
            try insert.bindSum()
            try insert.execute()
        }
        if let last = changes.dropsEventsThrough {
            let delete = try statement("DELETE FROM events WHERE sequence <= ?")
            try delete.bind(Int64(bitPattern: last))
            try delete.execute()
        }
    }

    /// - Parameter tombstone: for a dropped graph, 1 while its rows are being deleted, then 2.
    func write(_ graph: GraphEntry, outcomes: OutcomeRuns = OutcomeRuns(), tombstone: Int64 = 0)
        throws
    {
        let insert = try statement(
            "INSERT OR REPLACE INTO graphs VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
        )
        try insert.bind(Int64(graph.id.rawValue))
        try insert.bind(graph.name)
        try insert.bind(graph.submittedAt.nanosecondsSince1970)
        try insert.bind(graph.finishedAt?.nanosecondsSince1970)
        try insert.bind(graph.isOpen)
        try insert.bind(tombstone)
        try insert.bind(graph.suspension)
        try insert.bind(graph.cancelReason)
        try insert.bind(Int64(graph.operationCount))
        try insert.bind(Int64(graph.finishedCount))
        try insert.bind(RowText.text(graph.needs))
        try insert.bind(outcomes.text)
        try insert.bindSum()
        try insert.execute()
    }

    /// SQLite refuses values over a gigabyte and is faster with smaller ones.
    private static let pieceBytes = 8 << 20

    private func write(_ contents: StoredContents) throws {
        let insert = try statement("INSERT INTO contents VALUES (?,?,?,?,?,?,?,?,?,?,?,?)")
        let last = try last(in: "contents")
        noteContents(last + 1, of: contents.graph)
        try insert.bind(last + 1)
        try insert.bind(Int64(contents.graph.rawValue))
        try insert.bind(contents.name)
        try insert.bind(contents.submitter)
        try insert.bind(contents.isOpen)
        try insert.bind(contents.idempotencyKey)
        try insert.bind(contents.traceParent)
        try insert.bind(Int64(contents.first))
        try insert.bind(Int64(contents.operationCount))
        try insert.bind(RowText.text(contents.needs))
        try insert.bind(Int64(contents.body.count))
        try insert.bindSum()
        try insert.execute()
        let piece = try statement("INSERT INTO pieces VALUES (?, ?, ?)")
        var start = 0
        var number: Int64 = 0
        while start < contents.body.count {
            let end = min(start + Self.pieceBytes, contents.body.count)
            try piece.bind((last + 1) << 16 | number)
            try piece.bind(contents.body[start..<end])
            try piece.bindSum()
            try piece.execute()
            (start, number) = (end, number + 1)
        }
    }

    private func write(_ operation: StoredOperation, of id: OperationID, isToldByAttempt: Bool)
        throws
    {
        var row = operation
        // Until the attempt in flight has ended, it gives the number of attempts. So most
        // operations need no row of their own during their first attempt.
        if isToldByAttempt { row.attempts = 0 }
        if row == StoredOperation(index: id.index) {
            guard found.contains(id) else { return }
            let delete = try statement("DELETE FROM operations WHERE id = ?")
            try delete.bind(id.key)
            return try delete.execute()
        }
        // Note the row before it exists: if the transaction fails, a wrong note only costs a
        // lookup.
        noteRow(of: id)
        let insert = try statement(.insertOperation)
        try insert.bind(id.key)
        try insert.bind(operation.outcome, isUpToDate: operation.isUpToDate)
        try insert.bind(operation.finishedAt?.nanosecondsSince1970)
        try insert.bind(Int64(operation.round))
        try insert.bind(Int64(operation.attempts))
        try insert.bind(Int64(operation.retries))
        try insert.bind(Int64(operation.workersLost))
        try insert.bind(Int64(operation.crashes))
        try insert.bind(operation.priority.map { Int64($0.rawValue) })
        try insert.bind(operation.suspension)
        try insert.bind(operation.cancelReason)
        try insert.bind(operation.retryAt?.nanosecondsSince1970)
        try insert.bind(operation.comesBack)
        try insert.bind(operation.deadlinePassed)
        try insert.bind(operation.hasOutput)
        try insert.bindSum()
        try insert.execute()
    }

    private func write(_ change: StoreChanges.Attempt, of changes: StoreChanges) throws {
        let attempt = change.attempt
        // Whether it was in flight before the batch, and whether it is after it.
        let wasOpen = open[change.operation]?.id == attempt.id
        let isOpen = isOpen(change, after: changes)
        if wasOpen, !isOpen, changes.open[change.operation] == .some(nil) {
            let delete = try statement(.deleteInFlight)
            try delete.bind(change.operation.key)
            try delete.execute()
        }
        if isOpen {
            if attempt.id.epoch.rawValue > 0, !wasOpen { try deleteEnded(change) }
            let insert = try statement(.insertInFlight)
            try insert.bind(change.operation.key)
            try insert.bind(start: attempt)
            try insert.bindSum()
            return try insert.execute()
        }
        let insert = try statement(.insertAttempt)
        try insert.bind(change.operation.key)
        try insert.bind(start: attempt)
        try insert.bind(attempt.endedAt?.nanosecondsSince1970)
        try insert.bind(attempt.ending)
        try insert.bindSum()
        try insert.execute()
    }

    /// Removes an attempt that was resumed from those that have ended.
    private func deleteEnded(_ change: StoreChanges.Attempt) throws {
        let delete = try statement(
            "DELETE FROM attempts WHERE operation = ? AND epoch = ? AND number = ?"
        )
        try delete.bind(change.operation.key)
        try delete.bind(change.attempt.id)
        try delete.execute()
    }

    private func write(_ worker: StoredWorker) throws {
        let insert = try statement("INSERT OR REPLACE INTO workers VALUES (?,?,?)")
        try insert.bind(worker.incarnation.key)
        try insert.bind(worker.name)
        try insert.bindSum()
        try insert.execute()
    }

    private func writeDependency(_ record: StoreRecord) throws {
        let insert = try statement(
            "INSERT INTO dependency_changes VALUES (?, ?, ?, ?, ?)"
        )
        try insert.bind(try last(in: "dependency_changes") + 1)
        switch record {
        case .dependencyAdded(let operation, let other, let condition):
            noteChange(of: operation.graph)
            try insert.bind(operation.key)
            try insert.bind(other.key)
            try insert.bind(Int64(condition.rawValue))
        case .dependencyRemoved(let operation, let other):
            noteChange(of: operation.graph)
            try insert.bind(operation.key)
            try insert.bind(other.key)
            try insert.bind(Int64?.none)
        case .graphAdded, .operationsAdded, .graphClosed, .granted, .started, .resumed,
            .attemptEnded, .finished, .retryScheduled, .delayed, .deadlinePassed, .cancelled,
            .suspended, .queueDefined, .queueLimit, .queuePriority, .priority, .keyLimit,
            .rateSet, .rateUsed, .queueReset, .keyReset, .reopened, .trigger:
            return
        }
        try insert.bindSum()
        try insert.execute()
    }

    private func write(_ output: Payload?, of id: OperationID) throws {
        guard let output else {
            let delete = try statement("DELETE FROM outputs WHERE operation = ?")
            try delete.bind(id.key)
            return try delete.execute()
        }
        let insert = try statement("INSERT OR REPLACE INTO outputs VALUES (?,?,?,?)")
        try insert.bind(id.key)
        try insert.bind(output.contentType)
        try insert.bind(output.bytes)
        try insert.bindSum()
        try insert.execute()
    }

    private func write(_ entry: StoreChanges.Log) throws {
        let insert = try statement("INSERT OR REPLACE INTO logs VALUES (?,?,?,?,?)")
        try insert.bind(entry.operation.key)
        try insert.bind(entry.log.attempt)
        try insert.bind(entry.log.tail)
        try insert.bindSum()
        try insert.execute()
    }

    /// The largest id in a table; 0 if the table is empty.
    private func last(in table: String) throws -> Int64 {
        let select = try statement("SELECT coalesce(max(id), 0) FROM \(table)")
        defer { select.reset() }
        guard try select.step() else { return 0 }
        return try select.readRowNumber()
    }

    // MARK: - Retention

    /// Drops a finished graph. `sweep` deletes its rows in steps.
    func bury(_ id: GraphID, by epoch: Epoch) throws {
        guard let old = graphs[id], old.hasEnded, !old.isTombstone else { return }
        let graph = old.tombstone
        try transaction(by: epoch) {
            let outcomes = try outcomes(of: id)
            guard outcomes.count == graph.operationCount else {
                throw RowDamage(what: "outcomes of graph \(id) that are not there")
            }
            try write(graph, outcomes: outcomes, tombstone: 1)
            for row in [firstContents[id]].compactMap({ $0 }) + (moreContents[id] ?? []) {
                try database.execute(
                    sql: Self.deletePieces,
                    arguments: [row << 16, (row + 1) << 16, row, id.rawValue]
                )
                try database.execute(sql: Self.deleteContents, arguments: [row, id.rawValue])
            }
            guard changedGraphs.contains(id) else { return }
            try database.execute(
                sql: "DELETE FROM dependency_changes WHERE operation >> 32 = ?",
                arguments: [id.rawValue]
            )
        }
        graphs[id] = graph
        rows[id] = nil
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
            for (table, key) in [
                ("operations", "id"), ("attempts", "operation"), ("outputs", "operation"),
                ("logs", "operation"),
            ] {
                try database.execute(
                    sql: "DELETE FROM \(table) WHERE \(key) >= ? AND \(key) < ?",
                    arguments: [low, high]
                )
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

    /// Notes that an operation which a batch looks up has a row.
    func note(rowOf id: OperationID) { found.insert(id) }

    /// Notes that an operation may have a row from now on.
    func noteRow(of id: OperationID) { rows[id.graph, default: IndexSet()].insert(id.index) }

    func mayHaveRow(_ id: OperationID) -> Bool { rows[id.graph]?.contains(id.index) ?? false }
}

/// A set of numbers from 0 up, with one bit for each.
private struct IndexSet {
    private var words: [UInt64] = []

    func contains(_ index: UInt32) -> Bool {
        let word = Int(index / 64)
        return word < words.count && words[word] & 1 << (index % 64) != 0
    }

    mutating func insert(_ index: UInt32) {
        let word = Int(index / 64)
        if word >= words.count {
            words.append(contentsOf: repeatElement(0, count: word + 1 - words.count))
        }
        words[word] |= 1 << (index % 64)
    }
}
