import OperonModel
import OperonPorts

extension StoreTables: StoreLookup {
    /// The entry of a graph. Once the rows of a dropped graph are deleted, its entry has only the
    /// id and the number of operations.
    func graph(_ id: GraphID) -> GraphEntry? { graphs[id] ?? tombstone(of: id) }

    private func tombstone(of id: GraphID) -> GraphEntry? {
        guard dropped.contains(id) else { return nil }
        let time = WallTime(nanosecondsSince1970: 0)
        return GraphEntry(
            id: id,
            name: "",
            submittedAt: time,
            isOpen: false,
            operationCount: dropped[id].count
        ).tombstone
    }

    func queue(_ name: String) -> StoredQueue? { queues[name] }

    func key(_ name: String) -> StoredKey? { keys[name] }

    func rate(_ scope: RateScope) -> StoredRate? { rates[scope] }
    func hasTrigger(_ id: TriggerID) -> Bool { triggers.contains(id) }

    func openAttempt(of operation: OperationID) -> StoredAttempt? { open[operation] }

    func openOperations(of graph: GraphID) -> [OperationID] {
        open.keys.filter { $0.graph == graph }.sorted()
    }

    func operation(_ id: OperationID) throws -> StoredOperation? {
        // It has the number of its attempts, unlike a row.
        if let operation = pending.operations[id] { return operation }
        var operation: StoredOperation?
        if mayHaveRow(id) {
            let select = try statement(.selectOperation)
            try select.bind(id.key)
            defer { select.reset() }
            if try select.step() {
                operation = try select.readOperation().operation
            }
        }
        operation = operation ?? ranges[id.graph]?[id.index]
        guard let attempt = open[id] else { return operation }
        return (operation ?? StoredOperation(index: id.index)).tried(attempt.ordinal)
    }

    func changedOperations(in range: OperationRange) throws -> [OperationID] {
        var changed = Set(
            (ranges[range.graph]?.indices(among: range.indices) ?? []).map { range[$0] }
        )
        if range.count < pending.operations.count + open.count {
            for id in range where pending.operations.index(forKey: id) != nil || open[id] != nil {
                changed.insert(id)
            }
        } else {
            changed.formUnion(pending.operations.keys.filter(range.contains))
            changed.formUnion(open.keys.filter(range.contains))
        }
        guard let last = range.last, mayHaveRows(in: range) else { return Array(changed) }
        let select = try statement("SELECT id FROM operations WHERE id >= ? AND id <= ?")
        try select.bind(range[range.startIndex].key)
        try select.bind(last.key)
        defer { select.reset() }
        while try select.step() { changed.insert(OperationID(key: try select.readInteger())) }
        return Array(changed)
    }

    func attempt(_ id: AttemptID, of operation: OperationID) throws -> StoredAttempt? {
        if let attempt = open[operation], attempt.id == id { return attempt }
        if let change = pending.attempts[id], change.operation == operation {
            return change.attempt
        }
        guard id <= newestAttempt else { return nil }
        let select = try statement(
            "\(Self.selectAttempts) WHERE operation = ? AND epoch = ? AND number = ?"
        )
        try select.bind(operation.key)
        try select.bind(id)
        defer { select.reset() }
        return try select.step() ? try select.readAttempt().attempt : nil
    }

    func logSizes(of operation: OperationID) throws -> [(attempt: AttemptID, bytes: Int)] {
        let select = try statement(
            """
            SELECT epoch, number, length(tail) FROM logs WHERE operation = ?
            UNION ALL SELECT epoch, number, length(head) + length(tail) FROM cut_logs
            WHERE operation = ? ORDER BY 1, 2
            """
        )
        try select.bind(operation.key)
        try select.bind(operation.key)
        defer { select.reset() }
        var sizes: [(AttemptID, Int)] = []
        while try select.step() {
            sizes.append((try select.readAttemptID(), Int(try select.readInteger())))
        }
        return sizes
    }

    // MARK: - Queries of clients

    func output(of operation: OperationID) throws -> Payload? {
        let select = try statement("SELECT * FROM outputs WHERE operation = ?")
        try select.bind(operation.key)
        defer { select.reset() }
        guard isKept(operation) else { return nil }
        guard try select.step() else {
            guard try self.operation(operation)?.hasOutput != true else {
                throw RowDamage(what: "an output that is not there")
            }
            return nil
        }
        _ = try select.readInteger()
        let contentType = try select.readText()
        let bytes = try select.readBytes()
        try select.readSum()
        return Payload(contentType: contentType, bytes: bytes)
    }

    func log(of operation: OperationID) throws -> [StoredLog] {
        guard isKept(operation) else { return [] }
        var logs: [StoredLog] = []
        for (table, isWhole) in Self.logTables {
            let select = try statement("SELECT * FROM \(table) WHERE operation = ?")
            try select.bind(operation.key)
            defer { select.reset() }
            while try select.step() { logs.append(try select.readLog(isWhole: isWhole).log) }
        }
        return logs.sorted { $0.attempt < $1.attempt }
    }

    /// Operations of a graph of which a log is kept, in order.
    func loggedOperations(of graph: GraphID) throws -> [UInt32] {
        let first = OperationID(graph: graph, index: 0)
        let end = OperationID(graph: graph, index: .max)
        guard isKept(first) else { return [] }
        let select = try statement(
            """
            SELECT operation FROM logs WHERE operation >= ? AND operation <= ?
            UNION SELECT operation FROM cut_logs WHERE operation >= ? AND operation <= ?
            ORDER BY 1
            """
        )
        for id in [first, end, first, end] { try select.bind(id.key) }
        defer { select.reset() }
        var operations: [UInt32] = []
        while try select.step() {
            operations.append(OperationID(key: try select.readInteger()).index)
        }
        return operations
    }

    func attempts(of operation: OperationID) throws -> [StoredAttempt] {
        guard isKept(operation) else { return [] }
        let select = try statement("\(Self.selectAttempts) WHERE operation = ?")
        try select.bind(operation.key)
        defer { select.reset() }
        var attempts: [StoredAttempt] = []
        while try select.step() {
            let attempt = try select.readAttempt().attempt
            guard pending.attempts[attempt.id] == nil, pending.resumed[attempt.id] == nil else {
                continue
            }
            attempts.append(attempt)
        }
        for change in pending.attempts.values where change.operation == operation {
            attempts.append(change.attempt)
        }
        if let last = open[operation] { attempts.append(last) }
        return attempts.sorted { $0.id < $1.id }
    }

    func attempts(
        of graph: GraphID,
        in operations: Range<UInt32>
    ) throws -> [StoreChanges.Attempt] {
        guard let last = operations.last else { return [] }
        let ids =
            OperationID(
                graph: graph,
                index: operations.lowerBound
            )...OperationID(
                graph: graph,
                index: last
            )
        guard isKept(ids.lowerBound) else { return [] }
        let select = try statement(
            "\(Self.selectAttempts) WHERE operation >= ? AND operation <= ?"
        )
        try select.bind(ids.lowerBound.key)
        try select.bind(ids.upperBound.key)
        defer { select.reset() }
        var attempts: [StoreChanges.Attempt] = []
        while try select.step() {
            let (operation, attempt) = try select.readAttempt()
            guard pending.attempts[attempt.id] == nil, pending.resumed[attempt.id] == nil else {
                continue
            }
            attempts.append(StoreChanges.Attempt(operation: operation, attempt: attempt))
        }
        attempts += pending.attempts.values.filter { ids.contains($0.operation) }
        for (operation, attempt) in open where ids.contains(operation) {
            attempts.append(StoreChanges.Attempt(operation: operation, attempt: attempt))
        }
        return attempts.sorted { ($0.operation, $0.attempt.id) < ($1.operation, $1.attempt.id) }
    }

    func events(after: UInt64, limit: Int) throws -> [StoredEvent] {
        guard limit > 0, after < lastEvent else { return [] }
        let first = max(after + 1, firstEvent)
        let select = try statement(
            "SELECT * FROM journal WHERE id >= ? ORDER BY id"
        )
        try select.bind(try firstRow(from: first))
        defer { select.reset() }
        var events: [StoredEvent] = []
        var bytes = 0
        while bytes < StoredEvent.pageBytes, events.count < limit, try select.step() {
            for event in try select.readJournal().events where event.sequence >= first {
                guard bytes < StoredEvent.pageBytes, events.count < limit else { break }
                bytes += event.body.count
                events.append(event)
            }
        }
        return events
    }

    private func isKept(_ operation: OperationID) -> Bool {
        graphs[operation.graph]?.isTombstone == false
    }

    // MARK: - Outcomes

    /// The outcomes of a finished graph, read from its operations.
    func outcomes(of id: GraphID) throws -> OutcomeRuns {
        let select = try statement(
            "\(Self.selectOperations) WHERE id >= ? AND id <= ? ORDER BY id"
        )
        try select.bind(OperationID(graph: id, index: 0).key)
        try select.bind(OperationID(graph: id, index: .max).key)
        defer { select.reset() }
        let ranges = ranges[id] ?? FinishedRanges()
        var outcomes = OutcomeRuns()
        func addRanges(below end: UInt32) {
            while outcomes.count < end, let known = ranges[outcomes.count]?.outcome {
                outcomes.append(known.kind)
            }
        }
        while try select.step() {
            let row = try select.readOperation()
            addRanges(below: row.id.index)
            guard let kind = row.operation.outcome?.kind, row.id.index == outcomes.count else {
                throw RowDamage(what: "operation \(row.id) without an outcome")
            }
            outcomes.append(kind)
        }
        addRanges(below: .max)
        return outcomes
    }

    /// The outcomes that are kept for a dropped graph.
    func buriedOutcomes(of id: GraphID) throws -> OutcomeRuns {
        let select = try statement("SELECT * FROM graphs WHERE id = ?")
        try select.bind(Int64(id.rawValue))
        defer { select.reset() }
        guard try select.step() else { throw RowDamage(what: "no row of graph \(id)") }
        return try select.readGraph().outcomes
    }

    static let selectOperations = """
        SELECT id, outcome, detail, finished_at, round, attempts, retries, workers_lost, crashes, \
        priority, suspended_by, suspended_reason, suspended_until, cancel_reason, retry_at, \
        comes_back, deadline_passed, has_output, sum FROM operations
        """
    static let selectAttempts = "SELECT * FROM attempts"
}

extension StoredOperation {
    /// The operation with an attempt in flight that has this ordinal, which need not be the
    /// highest.
    func tried(_ ordinal: UInt32) -> StoredOperation {
        var operation = self
        operation.attempts = max(attempts, ordinal)
        return operation
    }
}

// MARK: - Rows

extension PreparedStatement {
    struct GraphRow {
        var entry: GraphEntry
        var outcomes: OutcomeRuns
        var tombstone: Int64
    }

    func readNumber<Number: FixedWidthInteger>() throws -> Number {
        guard let number = Number(exactly: try readInteger()) else {
            throw RowDamage(what: "a number out of its range")
        }
        return number
    }

    /// Reads a number that is counted up further. No counter gets beyond half its range by itself.
    func readCount() throws -> UInt32 {
        let count: UInt32 = try readNumber()
        guard count <= UInt32.max / 2 else { throw RowDamage(what: "a count beyond all counting") }
        return count
    }

    /// Reads the number of a row; new rows get numbers after it.
    func readRowNumber() throws -> Int64 {
        let number = try readInteger()
        guard (0...Int64.max / 2).contains(number) else {
            throw RowDamage(what: "a number out of its range")
        }
        return number
    }

    func readFlag() throws -> Bool { try readInteger() != 0 }

    func readTime() throws -> WallTime? {
        try readOptionalInteger().map { WallTime(nanosecondsSince1970: $0) }
    }

    func readSuspension() throws -> Suspension? {
        let by = try readOptionalText()
        let reason = try readOptionalText()
        let until = try readTime()
        guard let by, let reason else { return nil }
        return Suspension(by: by, reason: reason, until: until)
    }

    func readAttemptID() throws -> AttemptID {
        let epoch = Epoch(rawValue: try readNumber())
        return AttemptID(epoch: epoch, number: UInt64(bitPattern: try readInteger()))
    }

    /// A row of `logs`, or one of `cut_logs`.
    func readLog(isWhole: Bool) throws -> (operation: OperationID, log: StoredLog) {
        let operation = OperationID(key: try readInteger())
        let attempt = try readAttemptID()
        var log = KeptLog.empty
        if !isWhole {
            log.head = try readBytes()
            log.missing = UInt64(bitPattern: try readInteger())
        }
        log.tail = try readBytes()
        try readSum()
        return (operation, StoredLog(attempt: attempt, log: log))
    }

    func readGraph() throws -> GraphRow {
        let id = GraphID(rawValue: try readNumber())
        let name = try readText()
        let submittedAt = WallTime(nanosecondsSince1970: try readInteger())
        let finishedAt = try readTime()
        let isOpen = try readFlag()
        let tombstone = try readInteger()
        let suspension = try readSuspension()
        let cancelReason = try readOptionalText()
        var entry = GraphEntry(
            id: id,
            name: name,
            submittedAt: submittedAt,
            isOpen: isOpen,
            operationCount: try readNumber()
        )
        entry.finishedCount = try readNumber()
        guard entry.finishedCount <= entry.operationCount else {
            throw RowDamage(what: "more ends than operations")
        }
        entry.finishedAt = finishedAt
        entry.isTombstone = tombstone != 0
        entry.suspension = suspension
        entry.cancelReason = cancelReason
        entry.needs = try RowText.graphs(try readText())
        guard let outcomes = OutcomeRuns(text: try readText()) else {
            throw RowDamage(what: "outcomes of graph \(id) that cannot be read")
        }
        try readSum()
        return GraphRow(entry: entry, outcomes: outcomes, tombstone: tombstone)
    }

    func readOperation() throws -> (id: OperationID, operation: StoredOperation) {
        let id = OperationID(key: try readInteger())
        var operation = StoredOperation(index: id.index)
        (operation.outcome, operation.isUpToDate) = try readOutcome()
        operation.finishedAt = try readTime()
        operation.round = try readCount()
        operation.attempts = try readCount()
        operation.retries = try readNumber()
        operation.workersLost = try readCount()
        operation.crashes = try readCount()
        operation.priority = try readOptionalInteger().map(readPriority)
        operation.suspension = try readSuspension()
        operation.cancelReason = try readOptionalText()
        operation.retryAt = try readTime()
        operation.comesBack = try readFlag()
        operation.deadlinePassed = try readFlag()
        operation.hasOutput = try readFlag()
        try readSum()
        return (id, operation)
    }

    func readRange() throws -> StoredRange {
        let graph = GraphID(rawValue: try readNumber())
        let first: UInt32 = try readNumber()
        let count: UInt32 = try readNumber()
        let (outcome, _) = try readOutcome()
        let time = WallTime(nanosecondsSince1970: try readInteger())
        try readSum()
        let (end, isOver) = first.addingReportingOverflow(count)
        guard let outcome, count > 0, !isOver else { throw RowDamage(what: "a range that is none") }
        let range = OperationRange(graph: graph, indices: first..<end)
        return StoredRange(range, outcome, finishedAt: time)
    }

    private func readPriority(_ number: Int64) throws -> QueuePriority {
        guard let raw = Int8(exactly: number), let priority = QueuePriority(rawValue: raw) else {
            throw RowDamage(what: "a priority that there is not")
        }
        return priority
    }

    private func readOutcome() throws -> (outcome: Outcome?, isUpToDate: Bool) {
        let kind = try readOptionalInteger()
        let detail = try readOptionalText()
        return (try outcome(kind, detail), kind == 0 && detail == RowText.upToDate)
    }

    private func outcome(_ kind: Int64?, _ detail: String?) throws -> Outcome? {
        switch kind {
        case nil: return nil
        case 0: return .succeeded
        case 1: return .failed(try RowText.error(detail))
        case 2: return .cancelled(reason: detail ?? "")
        case 3:
            let parts = (detail ?? "").split(separator: "/")
            guard parts.count == 2 else { throw RowDamage(what: "a cause that is none") }
            return .skipped(
                cause: OperationID(
                    graph: GraphID(rawValue: try RowText.number(String(parts[0]))),
                    index: try RowText.number(String(parts[1]))
                )
            )
        case _: throw RowDamage(what: "an outcome that there is not")
        }
    }

    func readAttemptStart() throws -> (operation: OperationID, attempt: StoredAttempt) {
        let operation = OperationID(key: try readInteger())
        let id = try readAttemptID()
        let ordinal = try readCount()
        let worker = Incarnation(rawValue: UInt64(bitPattern: try readInteger()))
        let grantedAt = WallTime(nanosecondsSince1970: try readInteger())
        let startedAt = try readTime()
        let attempt = StoredAttempt(
            id: id,
            ordinal: ordinal,
            worker: worker,
            grantedAt: grantedAt,
            startedAt: startedAt
        )
        return (operation, attempt)
    }

    func readAttempt() throws -> (operation: OperationID, attempt: StoredAttempt) {
        var (operation, attempt) = try readAttemptStart()
        attempt.endedAt = try readTime()
        let ending = try readOptionalInteger()
        let error = try readOptionalText()
        switch ending {
        case 0: attempt.ending = .succeeded
        case 1: attempt.ending = .failed(try RowText.error(error))
        case 2: attempt.ending = .cancelled
        case 3: attempt.ending = .returned
        case 4: attempt.ending = .lost
        case 5: attempt.ending = .crashed
        case _: throw RowDamage(what: "an ending that there is not")
        }
        try readSum()
        return (operation, attempt)
    }

    func readQueue() throws -> StoredQueue {
        let name = try readText()
        let maximum = try readOptionalInteger()
        let priority = try readPriority(try readInteger())
        let suspension = try readSuspension()
        let commanded = QueueCommands(rawValue: try readNumber())
        try readSum()
        return StoredQueue(
            name: name,
            maximum: maximum.map { Int($0) },
            priority: priority,
            suspension: suspension,
            commanded: commanded
        )
    }

    func readKey() throws -> StoredKey {
        let name = try readText()
        let limit: Int = try readNumber()
        let isCommanded = try readFlag()
        try readSum()
        return StoredKey(KeySettings(name: name, limit: limit), isCommanded: isCommanded)
    }

    func readRate() throws -> StoredRate {
        let isKey = try readFlag()
        let name = try readText()
        let count: Int = try readNumber()
        let period = Duration.nanoseconds(try readInteger())
        let burst: Int = try readNumber()
        let fullAt = try readOptionalInteger().map { WallTime(nanosecondsSince1970: $0) }
        try readSum()
        let rate = StartRate(count, per: period, burst: burst)
        do throws(Refusal) {
            try rate.check("rate")
        } catch {
            throw RowDamage(what: "a rate that is none")
        }
        return StoredRate(isKey ? .key(name) : .queue(name), rate, fullAt: fullAt)
    }

    func readWorker() throws -> StoredWorker {
        let incarnation = Incarnation(rawValue: UInt64(bitPattern: try readInteger()))
        let name = try readText()
        try readSum()
        return StoredWorker(incarnation, name: name)
    }

    func readJournal() throws -> JournalRow {
        let number = try readRowNumber()
        let epoch = Epoch(rawValue: try readNumber())
        let wall = WallTime(nanosecondsSince1970: try readInteger())
        let first = UInt64(try readRowNumber())
        let last = UInt64(try readRowNumber())
        let records = try readBytes()
        let events = try JournalBytes.decodeEvents(try readBytes(), from: first)
        try readSum()
        guard first + UInt64(events.count) == last + 1 else { throw RowDamage(what: "lost events") }
        return JournalRow(
            number: number,
            epoch: epoch,
            wall: wall,
            records: records,
            events: events,
            lastEvent: last
        )
    }

    /// Reads an event of a store that has no journal yet.
    func readEvent() throws -> StoredEvent {
        let sequence = UInt64(try readRowNumber())
        let body = try readBytes()
        try readSum()
        return StoredEvent(sequence: sequence, body: body)
    }

    func readDependency() throws -> StoreRecord {
        _ = try readInteger()
        let operation = OperationID(key: try readInteger())
        let other = OperationID(key: try readInteger())
        let condition = try readOptionalInteger()
        try readSum()
        guard let condition else { return .dependencyRemoved(operation, on: other) }
        guard let raw = UInt8(exactly: condition), let known = DependencyCondition(rawValue: raw)
        else { throw RowDamage(what: "a condition that there is not") }
        return .dependencyAdded(operation, on: other, known)
    }
}

extension RateScope {
    /// What identifies the row of a rate.
    var row: (isKey: Bool, name: String) {
        switch self {
        case .queue(let name): (false, name)
        case .key(let name): (true, name)
        }
    }
}
