import OperonModel
import OperonPorts

extension StoreTables {
    /// Reads everything that a coordinator must know, and keeps in memory what every batch needs.
    ///
    /// - Throws: `RowDamage` if anything is missing or differs from what was written.
    func load() throws -> StoredState {
        var state = try loadMeta()
        var rows = try loadGraphs()
        try loadContents(into: &rows)
        try loadOperations(into: &rows)
        let open = try loadInFlight(into: &rows)
        for record in try loadDependencyChanges() {
            guard let id = record.changedDependent?.graph, let place = rows.places[id] else {
                throw RowDamage(what: "a dependency of an unknown graph")
            }
            rows.graphs[place].dependencyChanges.append(record)
            noteChange(of: id)
        }
        state.graphs = rows.graphs
        state.queues = try loadQueues()
        state.keys = try loadKeys()
        state.rates = try loadRates()
        state.workers = try loadWorkers()
        state.triggers = try loadTriggers()
        state.inFlight = open.map { StoredInFlight($0.attempt, of: $0.operation) }
        state.inFlight.sort { $0.attempt < $1.attempt }
        let journal = try loadJournal()
        state.lastEvent = journal.last
        remember(
            graphs: rows.entries.filter { !$0.isTombstone || rows.unswept.contains($0.id) },
            dropped: rows.dropped,
            queues: state.queues,
            keys: state.keys,
            rates: state.rates,
            triggers: state.triggers,
            ranges: rows.ranges,
            open: open,
            journal: journal,
            unswept: rows.unswept.sorted(),
            epoch: state.epoch
        )
        return state
    }

    /// Reads what a replay needs.
    func beginReplay(after journal: Int64, firstEvent: UInt64) throws {
        var rows = try loadGraphs()
        try loadRanges(into: &rows)
        remember(
            graphs: rows.entries.filter { !$0.isTombstone || rows.unswept.contains($0.id) },
            dropped: rows.dropped,
            queues: try loadQueues(),
            keys: try loadKeys(),
            rates: try loadRates(),
            triggers: try loadTriggers(),
            ranges: rows.ranges,
            open: try loadOpen(),
            journal: (firstEvent, firstEvent - 1, journal)
        )
        assumeRows()
    }

    private struct Graphs {
        var graphs: [StoredGraph] = []
        var entries: [GraphEntry] = []
        /// Dropped graphs whose rows are not deleted yet.
        var unswept: Set<GraphID> = []
        var dropped = DroppedGraphs()
        /// Index of a graph in `graphs` and `entries`. Never iterated.
        var places: [GraphID: Int] = [:]
        var ranges: [GraphID: FinishedRanges] = [:]
    }

    func loadMeta() throws -> StoredState {
        let select = try statement("SELECT * FROM meta")
        defer { select.reset() }
        guard try select.step() else { throw RowDamage(what: "no reign") }
        _ = try select.readInteger()
        guard let reign = Reign(text: try select.readText()) else {
            throw RowDamage(what: "a reign that is none")
        }
        let epoch = Epoch(rawValue: try select.readNumber())
        try select.readSum()
        return StoredState(reign: reign, epoch: epoch)
    }

    func write(reign: Reign, epoch: Epoch) throws {
        let insert = try statement("INSERT OR REPLACE INTO meta VALUES (1, ?2, ?3, ?4)")
        try insert.bind(1 as Int64)
        try insert.bind(reign.description)
        try insert.bind(Int64(epoch.rawValue))
        try insert.bindSum()
        try insert.execute()
    }

    /// The most graph numbers without a row. Every graph leaves a row, but somebody may have
    /// deleted old ones.
    private static let missingGraphsMax = 1 << 20

    private func loadGraphs() throws -> Graphs {
        var rows = Graphs()
        var missing = 0
        let select = try statement("SELECT * FROM graphs ORDER BY id")
        defer { select.reset() }
        while try select.step() {
            let row = try select.readGraph()
            var graph = StoredGraph(row.entry, contents: [])
            graph.outcomes = row.outcomes
            if row.entry.isTombstone, row.outcomes.count != row.entry.operationCount {
                throw RowDamage(what: "a tombstone of graph \(row.entry.id) that is not whole")
            }
            // Every number below the highest one takes memory in each coordinator.
            let next = (rows.entries.last?.id.rawValue).map { Int($0) + 1 } ?? 0
            missing += Int(row.entry.id.rawValue) - next
            guard missing <= Self.missingGraphsMax else {
                throw RowDamage(what: "graph \(row.entry.id), and not those before it")
            }
            rows.places[row.entry.id] = rows.graphs.count
            rows.graphs.append(graph)
            rows.entries.append(row.entry)
            if row.tombstone == 1 {
                rows.unswept.insert(row.entry.id)
            } else if row.entry.isTombstone {
                rows.dropped.insert(row.entry.id, row.outcomes)
            }
        }
        return rows
    }

    private func loadContents(into rows: inout Graphs) throws {
        let select = try statement("SELECT * FROM contents ORDER BY id")
        defer { select.reset() }
        while try select.step() {
            var (number, contents, bytes) = try select.readContents()
            guard let place = rows.places[contents.graph] else {
                throw RowDamage(what: "contents of an unknown graph")
            }
            noteContents(number, of: contents.graph)
            contents.body = try loadBody(number, bytes: bytes)
            rows.graphs[place].contents.append(contents)
        }
        for (entry, graph) in zip(rows.entries, rows.graphs) where !entry.isTombstone {
            let count = graph.contents.reduce(0) { $0 + $1.operationCount }
            guard count == Int(entry.operationCount) else {
                throw RowDamage(what: "contents of graph \(entry.id) that are not there")
            }
        }
    }

    /// Reads contents without their body.
    func loadContents(row: Int64) throws -> StoredContents {
        let select = try statement("SELECT * FROM contents WHERE id = ?")
        try select.bind(row)
        defer { select.reset() }
        guard try select.step() else { throw RowDamage(what: "contents that are not there") }
        return try select.readContents().contents
    }

    private func loadBody(_ number: Int64, bytes: Int) throws -> [UInt8] {
        let select = try statement(
            "SELECT * FROM pieces WHERE id >= ? AND id < ? ORDER BY id"
        )
        guard number < 1 << 40 else { throw RowDamage(what: "a number out of its range") }
        try select.bind(number << 16)
        try select.bind((number + 1) << 16)
        defer { select.reset() }
        var body: [UInt8] = []
        var isFirst = true
        while try select.step() {
            _ = try select.readInteger()
            let piece = try select.readBytes()
            try select.readSum()
            if isFirst {
                body = piece
                isFirst = false
                continue
            }
            // Reserve once, within bounds that do not trust the row; growth by doubling would take
            // twice the memory.
            if body.capacity < bytes { body.reserveCapacity(min(bytes, body.count << 10)) }
            body += piece
        }
        guard body.count == bytes else { throw RowDamage(what: "contents that are not whole") }
        return body
    }

    private func loadOperations(into rows: inout Graphs) throws {
        let select = try statement("\(Self.selectOperations) ORDER BY id")
        defer { select.reset() }
        var place: Int?
        // Collected here and not inside the graph, because its array would be copied each time.
        var operations: [StoredOperation] = []
        var id = GraphID(rawValue: 0)
        var hasMore = try select.step()
        while hasMore {
            let row = try select.readOperation()
            if place == nil || row.id.graph != id {
                id = row.id.graph
                place = rows.places[id]
            }
            guard let graph = place, row.id.index < rows.entries[graph].operationCount else {
                throw RowDamage(what: "operation \(row.id), which does not exist")
            }
            operations.append(row.operation)
            if !rows.entries[graph].isTombstone { noteRow(of: row.id) }
            hasMore = try select.step()
            let next = hasMore ? try select.peekInteger() : nil
            if next.map({ OperationID(key: $0).graph }) != id {
                // The rows that a dropped graph still has are about to be deleted.
                if !rows.entries[graph].isTombstone { rows.graphs[graph].operations = operations }
                operations = []
            }
        }
        try loadRanges(into: &rows)
        // The graphs are independent.
        for (id, ranges) in rows.ranges {
            guard let place = rows.places[id] else { continue }
            rows.graphs[place].operations = ranges.merged(with: rows.graphs[place].operations)
        }
        for (entry, graph) in zip(rows.entries, rows.graphs) where !entry.isTombstone {
            let count = graph.operations.reduce(0) { $0 + ($1.outcome == nil ? 0 : 1) }
            guard count == Int(entry.finishedCount) else {
                throw RowDamage(what: "operations of graph \(entry.id) that are not there")
            }
        }
    }

    private func loadRanges(into rows: inout Graphs) throws {
        let select = try statement("SELECT * FROM finished_ranges ORDER BY graph, first")
        defer { select.reset() }
        while try select.step() {
            let range = try select.readRange()
            let id = range.operations.graph
            guard let place = rows.places[id], !rows.entries[place].isTombstone,
                range.operations.endIndex <= rows.entries[place].operationCount,
                range.operations.startIndex
                    >= rows.ranges[id]?.all.last?.operations.endIndex ?? 0
            else { throw RowDamage(what: "a range of operations that do not exist") }
            rows.ranges[id, default: FinishedRanges()].insert(range)
        }
    }

    private func loadInFlight(
        into rows: inout Graphs
    ) throws -> [(operation: OperationID, attempt: StoredAttempt)] {
        let open = try loadOpen()
        var start = 0
        while start < open.count {
            let id = open[start].operation.graph
            let end = open[start...].firstIndex { $0.operation.graph != id } ?? open.count
            guard let place = rows.places[id], !rows.entries[place].isTombstone else {
                throw RowDamage(what: "an attempt of an unknown graph")
            }
            try merge(open[start..<end], into: &rows.graphs[place].operations)
            start = end
        }
        return open
    }

    private func loadOpen() throws -> [(operation: OperationID, attempt: StoredAttempt)] {
        let select = try statement("SELECT * FROM attempts_in_flight ORDER BY operation")
        defer { select.reset() }
        var open: [(operation: OperationID, attempt: StoredAttempt)] = []
        while try select.step() {
            let row = try select.readAttemptStart()
            try select.readSum()
            open.append(row)
        }
        return open
    }

    /// Merges attempts in flight into operations: such an attempt gives the number of attempts of
    /// its operation.
    private func merge(
        _ open: ArraySlice<(operation: OperationID, attempt: StoredAttempt)>,
        into operations: inout [StoredOperation]
    ) throws {
        var merged: [StoredOperation] = []
        merged.reserveCapacity(operations.count + open.count)
        var next = open.startIndex
        for operation in operations {
            while next < open.endIndex, open[next].operation.index < operation.index {
                merged.append(StoredOperation(open[next]))
                next += 1
            }
            guard next < open.endIndex, open[next].operation.index == operation.index else {
                merged.append(operation)
                continue
            }
            guard operation.outcome == nil else {
                throw RowDamage(what: "a finished operation with an attempt in flight")
            }
            merged.append(operation.tried(open[next].attempt.ordinal))
            next += 1
        }
        merged += open[next...].map { StoredOperation($0) }
        operations = merged
    }

    private func loadQueues() throws -> [StoredQueue] {
        let select = try statement("SELECT * FROM queues ORDER BY name")
        defer { select.reset() }
        var queues: [StoredQueue] = []
        while try select.step() { queues.append(try select.readQueue()) }
        // SQLite sorts by bytes.
        return queues.sorted { $0.name < $1.name }
    }

    private func loadKeys() throws -> [StoredKey] {
        let select = try statement("SELECT * FROM keys ORDER BY name")
        defer { select.reset() }
        var keys: [StoredKey] = []
        while try select.step() { keys.append(try select.readKey()) }
        return keys.sorted { $0.settings.name < $1.settings.name }
    }

    private func loadRates() throws -> [StoredRate] {
        let select = try statement("SELECT * FROM rates")
        defer { select.reset() }
        var rates: [StoredRate] = []
        while try select.step() { rates.append(try select.readRate()) }
        return rates.sorted { $0.scope < $1.scope }
    }

    private func loadWorkers() throws -> [StoredWorker] {
        let select = try statement("SELECT * FROM workers")
        defer { select.reset() }
        var workers: [StoredWorker] = []
        while try select.step() { workers.append(try select.readWorker()) }
        return workers.sorted { $0.incarnation.rawValue < $1.incarnation.rawValue }
    }

    private func loadDependencyChanges() throws -> [StoreRecord] {
        let select = try statement("SELECT * FROM dependency_changes ORDER BY id")
        defer { select.reset() }
        var changes: [StoreRecord] = []
        while try select.step() { changes.append(try select.readDependency()) }
        return changes
    }

    /// The first and the last event, and the last row of the journal, which the tables have.
    private func loadJournal() throws -> (first: UInt64, last: UInt64, row: Int64) {
        let (projected, first) = try loadProjection()
        let select = try statement("SELECT * FROM journal ORDER BY id DESC LIMIT 1")
        defer { select.reset() }
        guard try select.step() else {
            guard projected == 0 else { throw RowDamage(what: "no end of its journal") }
            return (first, first - 1, 0)
        }
        let row = try select.readJournal()
        guard row.number == projected, first <= row.lastEvent + 1 else {
            throw RowDamage(what: "another journal than its tables")
        }
        return (first, row.lastEvent, row.number)
    }
}

extension PreparedStatement {
    /// Reads contents without their body, which has this size.
    fileprivate func readContents() throws -> (row: Int64, contents: StoredContents, bytes: Int) {
        let row = try readInteger()
        let graph = GraphID(rawValue: try readNumber())
        let name = try readText()
        let submitter = try readText()
        let isOpen = try readFlag()
        let key = try readText()
        let trace = try readText()
        let first: UInt32 = try readNumber()
        let count: UInt32 = try readNumber()
        let needs = try RowText.graphs(try readText())
        let bytes: Int = try readNumber()
        try readSum()
        let contents = StoredContents(
            graph: graph,
            name: name,
            submitter: submitter,
            isOpen: isOpen,
            idempotencyKey: key,
            traceParent: trace,
            first: first,
            operationCount: Int(count),
            needs: needs,
            body: []
        )
        return (row, contents, bytes)
    }
}

extension StoredOperation {
    fileprivate init(_ open: (operation: OperationID, attempt: StoredAttempt)) {
        self.init(index: open.operation.index)
        attempts = open.attempt.ordinal
    }
}
