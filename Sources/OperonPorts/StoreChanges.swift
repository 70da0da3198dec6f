package import OperonModel

/// The changes that a batch makes, computed without I/O from the batch and the rows that it wants.
/// It defines the meaning of each record once for all stores. Several records about one operation
/// become one change.
package struct StoreChanges: Sendable {
    package struct Attempt: Hashable, Sendable {
        package var operation: OperationID
        package var attempt: StoredAttempt

        package init(operation: OperationID, attempt: StoredAttempt) {
            self.operation = operation
            self.attempt = attempt
        }
    }

    package struct Log: Hashable, Sendable {
        package var operation: OperationID
        package var log: StoredLog
    }

    package private(set) var graphs: [GraphID: GraphEntry] = [:]
    /// In the order of submission; new graphs and additions.
    package private(set) var contents: [StoredContents] = []
    package private(set) var operations: [OperationID: StoredOperation] = [:]
    /// Operations that finish together and have no rows of their own, before the batch or after it.
    package private(set) var ranges: [GraphID: FinishedRanges] = [:]
    package private(set) var attempts: [AttemptID: Attempt] = [:]
    /// The attempt now in flight, for each operation that the batch grants, starts, resumes or
    /// ends; `nil`: none.
    package private(set) var open: [OperationID: AttemptID?] = [:]
    package private(set) var queues: [String: StoredQueue] = [:]
    package private(set) var keys: [String: StoredKey] = [:]
    /// A rate of `nil`: there is none any more.
    package private(set) var rates: [RateScope: StoredRate] = [:]
    /// In the order of the records.
    package private(set) var triggers: [TriggerRecord] = []
    /// In the order of the records.
    package private(set) var dependencyChanges: [StoreRecord] = []
    /// `nil`: the stored output is dropped.
    package private(set) var outputs: [OperationID: Payload?] = [:]
    package private(set) var logs: [Log] = []
    package private(set) var droppedLogs: [(operation: OperationID, attempt: AttemptID)] = []
    package private(set) var events: [StoredEvent] = []
    package private(set) var workers: [StoredWorker] = []
    /// Events up to this number are dropped; `nil`: none.
    package private(set) var dropsEventsThrough: UInt64?

    /// The triggers that exist after the records so far, of those that the batch names.
    private var existingTriggers: Set<TriggerID> = []

    private let wall: WallTime
    private let limits: Limits
    /// Rows that the batch may leave as they are.
    private let rows: StoreRows

    /// - Parameter rows: those of `StoreWants(batch)`.
    /// - Throws: `StoreError` if the batch contradicts the store or itself.
    package init(
        _ batch: StoreBatch,
        to rows: consuming StoreRows,
        limits: Limits
    ) throws(StoreError) {
        wall = batch.wall
        self.limits = limits
        // Rows that the batch changes are moved, because a copy would be slow.
        swap(&operations, &rows.operations)
        swap(&attempts, &rows.attempts)
        swap(&open, &rows.open)
        swap(&queues, &rows.queues)
        swap(&keys, &rows.keys)
        swap(&rates, &rows.rates)
        swap(&existingTriggers, &rows.triggers)
        self.rows = rows
        for record in batch.records { try apply(record, of: batch) }
        guard contents.count == batch.graphs.count else {
            throw StoreError.contradiction("contents that belong to no record")
        }
        for result in batch.results { try keep(result) }
        trimLogs()
        for id in graphs.keys.sorted() {
            guard var graph = graphs[id] else { continue }
            graph.finishedAt = graph.hasEnded ? graph.finishedAt ?? wall : nil
            graphs[id] = graph
        }
        try append(batch.events)
        workers = batch.workers
    }

    package var isEmpty: Bool {
        graphs.isEmpty && operations.isEmpty && ranges.isEmpty && attempts.isEmpty
            && queues.isEmpty
            && keys.isEmpty && rates.isEmpty && triggers.isEmpty
            && dependencyChanges.isEmpty && outputs.isEmpty
            && logs.isEmpty
            && events.isEmpty && workers.isEmpty
    }

    private mutating func apply(_ record: StoreRecord, of batch: StoreBatch) throws(StoreError) {
        switch record {
        case .graphAdded(let id): try add(id, of: batch)
        case .operationsAdded(let id, let first, _): try add(to: id, first, of: batch)
        case .graphClosed(let id): try change(id) { $0.isOpen = false }
        case .granted(let attempt, let operation, let ordinal, let worker):
            try grant(attempt, operation, ordinal, worker)
        case .started(let attempt, let operation):
            try changeOpen(attempt, of: operation) { attempt in
                attempt.startedAt = attempt.startedAt ?? batch.wall
            }
        case .resumed(let attempt, let operation): try resume(attempt, operation)
        case .attemptEnded(let attempt, let operation, let ending):
            try end(attempt, operation, ending)
        case .finished(let operation, let outcome): try finish(operation, outcome)
        case .rangeFinished(let range, let outcome): try finish(range, outcome)
        case .retryScheduled(let operation, let at):
            try change(operation) { operation in
                operation.retryAt = at
                operation.retries += operation.retries < .max ? 1 : 0
            }
        case .cancelled(let target, let reason, _, _): try cancel(target, reason)
        case .suspended(let target, let suspension): try suspend(target, suspension)
        case .delayed(let operation, let until):
            try change(operation) { $0.retryAt = until }
        case .deadlinePassed(let operation):
            try change(operation) { $0.deadlinePassed = true }
        case .queueDefined(let settings): define(settings)
        case .queueLimit(let queue, let maximum):
            change(queue) {
                $0.maximum = maximum
                $0.commanded.insert(.limit)
            }
        case .queuePriority(let queue, let priority):
            change(queue) {
                $0.priority = priority
                $0.commanded.insert(.priority)
            }
        case .priority(let operation, let priority):
            try change(operation) { $0.priority = priority }
        case .keyLimit(let settings, let byCommand):
            let isCommanded = byCommand || keys[settings.name]?.isCommanded == true
            // The rate has a record and a row of its own.
            let limit = KeySettings(name: settings.name, limit: settings.limit)
            keys[settings.name] = StoredKey(limit, isCommanded: isCommanded)
        case .rateSet(let scope, let rate, let byCommand):
            rates[scope, default: StoredRate(scope)].rate = rate
            if byCommand, case .queue(let name) = scope {
                change(name) { $0.commanded.insert(.rate) }
            }
        case .rateUsed(let scope, let fullAt):
            rates[scope, default: StoredRate(scope)].fullAt = fullAt
        case .queueReset(let queue):
            queues[queue] = StoredQueue(name: queue)
            rates[.queue(queue)] = StoredRate(.queue(queue))
        case .keyReset(let key):
            keys[key] = StoredKey(key)
            rates[.key(key)] = StoredRate(.key(key))
        case .reopened(let operation): try reopen(operation)
        case .dependencyAdded(let operation, let other, _):
            try change(operation) { _ in }
            try change(operation.graph) { $0.need([other.graph]) }
            dependencyChanges.append(record)
        case .dependencyRemoved(let operation, _):
            try change(operation) { _ in }
            dependencyChanges.append(record)
        case .trigger(let record): try keep(record)
        }
    }
}

// MARK: - Triggers

extension StoreChanges {
    /// Every record about a trigger is a row, or removes rows.
    private mutating func keep(_ record: TriggerRecord) throws(StoreError) {
        let exists = existingTriggers.contains(record.trigger)
        if case .added(let trigger, _) = record {
            guard !exists else {
                throw StoreError.contradiction("trigger \(trigger.id) is added twice")
            }
            existingTriggers.insert(trigger.id)
        } else {
            guard exists else {
                throw StoreError.contradiction("there is no trigger \(record.trigger)")
            }
            if case .removed(let id) = record { existingTriggers.remove(id) }
        }
        triggers.append(record)
    }
}

// MARK: - Graphs and queues

extension StoreChanges {
    private mutating func add(_ id: GraphID, of batch: StoreBatch) throws(StoreError) {
        let new = try nextContents(of: batch, for: id)
        guard graphs[id] == nil, rows.graphs[id] == nil, new.first == 0 else {
            throw StoreError.contradiction("graph \(id) is added twice")
        }
        var graph = GraphEntry(
            id: id,
            name: new.name,
            submittedAt: wall,
            isOpen: new.isOpen,
            operationCount: UInt32(new.operationCount)
        )
        graph.need(new.needs)
        graphs[id] = graph
        contents.append(new)
    }

    private mutating func add(
        to id: GraphID,
        _ first: UInt32,
        of batch: StoreBatch
    ) throws(StoreError) {
        let new = try nextContents(of: batch, for: id)
        let count = try graph(id).operationCount
        guard new.first == first, first == count, Int(count) + new.operationCount <= UInt32.max
        else { throw StoreError.contradiction("additions to graph \(id) leave a gap") }
        try change(id) { graph in
            graph.operationCount += UInt32(new.operationCount)
            graph.need(new.needs)
        }
        contents.append(new)
    }

    private func nextContents(
        of batch: StoreBatch,
        for id: GraphID
    ) throws(StoreError) -> StoredContents {
        guard contents.count < batch.graphs.count, batch.graphs[contents.count].graph == id,
            (0...Int(UInt32.max)).contains(batch.graphs[contents.count].operationCount)
        else { throw StoreError.contradiction("operations of graph \(id) without contents") }
        return batch.graphs[contents.count]
    }

    private func graph(_ id: GraphID) throws(StoreError) -> GraphEntry {
        guard let graph = graphs[id] ?? rows.graphs[id], !graph.isTombstone else {
            throw StoreError.contradiction("there is no graph \(id)")
        }
        return graph
    }

    private mutating func change(
        _ id: GraphID,
        _ body: (inout GraphEntry) -> Void
    ) throws(StoreError) {
        // One search of the table for what every record changes.
        guard let place = graphs.index(forKey: id) else {
            var new = try graph(id)
            body(&new)
            graphs[id] = new
            return
        }
        body(&graphs.values[place])
    }

    private mutating func change(_ name: String, _ body: (inout StoredQueue) -> Void) {
        body(&queues[name, default: StoredQueue(name: name)])
    }

    private mutating func define(_ settings: QueueSettings) {
        change(settings.name) { queue in
            queue.maximum = settings.maxConcurrentOperationCount
            queue.priority = settings.priority
            queue.suspension =
                settings.isSuspended ? queue.suspension ?? .ofGraphFile : nil
        }
    }

    private mutating func cancel(_ target: Target, _ reason: String) throws(StoreError) {
        switch target {
        case .operation(let operation):
            try change(operation) { operation in
                if operation.outcome == nil, operation.cancelReason == nil {
                    operation.cancelReason = reason
                }
            }
        case .graph(let id):
            try change(id) { $0.cancelReason = $0.cancelReason ?? reason }
        // Running members are cancelled one by one; the queue itself stays active.
        case .queue: break
        }
    }

    private mutating func suspend(_ target: Target, _ suspension: Suspension?) throws(StoreError) {
        switch target {
        case .operation(let operation):
            try change(operation) { $0.suspension = suspension }
        case .graph(let id): try change(id) { $0.suspension = suspension }
        case .queue(let name):
            change(name) {
                $0.suspension = suspension
                $0.commanded.insert(.suspension)
            }
        }
    }
}

// MARK: - Operations and attempts

extension StoreChanges {
    private mutating func change(
        _ id: OperationID,
        _ body: (inout StoredOperation) -> Void
    ) throws(StoreError) {
        if let place = operations.index(forKey: id) { return body(&operations.values[place]) }
        guard try id.index < graph(id.graph).operationCount else {
            throw StoreError.contradiction("there is no operation \(id)")
        }
        var new = ranges[id.graph]?[id.index] ?? StoredOperation(index: id.index)
        body(&new)
        operations[id] = new
    }

    private mutating func changeOpen(
        _ id: AttemptID,
        of operation: OperationID,
        _ body: (inout StoredAttempt) -> Void
    ) throws(StoreError) {
        guard open[operation] == .some(id), let place = attempts.index(forKey: id) else {
            throw StoreError.contradiction("attempt \(id) of operation \(operation) is not open")
        }
        attempts.values[place].operation = operation
        body(&attempts.values[place].attempt)
    }

    private mutating func grant(
        _ id: AttemptID,
        _ operation: OperationID,
        _ ordinal: UInt32,
        _ worker: Incarnation
    ) throws(StoreError) {
        guard open[operation] ?? nil == nil, attempts.index(forKey: id) == nil else {
            throw StoreError.contradiction("operation \(operation) is granted twice")
        }
        var isFinished = false
        try change(operation) { operation in
            operation.attempts = ordinal
            operation.retryAt = nil
            operation.comesBack = false
            isFinished = operation.outcome != nil
        }
        guard !isFinished else {
            throw StoreError.contradiction("operation \(operation) is granted, but finished")
        }
        let attempt = StoredAttempt(id: id, ordinal: ordinal, worker: worker, grantedAt: wall)
        attempts[id] = Attempt(operation: operation, attempt: attempt)
        open[operation] = .some(id)
    }

    private mutating func resume(_ id: AttemptID, _ operation: OperationID) throws(StoreError) {
        guard open[operation] ?? nil == nil, var attempt = attempts[id]?.attempt else {
            throw StoreError.contradiction("attempt \(id) cannot go on")
        }
        attempt.ending = nil
        attempt.endedAt = nil
        attempts[id] = Attempt(operation: operation, attempt: attempt)
        open[operation] = .some(id)
        try change(operation) { _ in }
    }

    private mutating func end(
        _ id: AttemptID,
        _ operation: OperationID,
        _ ending: AttemptEnding
    ) throws(StoreError) {
        let wall = wall
        try changeOpen(id, of: operation) { attempt in
            attempt.ending = ending
            attempt.endedAt = wall
        }
        open[operation] = .some(nil)
        try change(operation) { operation in
            operation.comesBack = true
            // `retryScheduled` counts failures that are retried.
            if ending == .lost { operation.workersLost += 1 }
            if ending == .crashed { operation.crashes += 1 }
        }
    }

    private mutating func finish(_ id: OperationID, _ outcome: Outcome) throws(StoreError) {
        let wall = wall
        if let attempt = open[id] ?? nil {
            try changeOpen(attempt, of: id) { attempt in
                attempt.ending = AttemptEnding(outcome)
                attempt.endedAt = wall
            }
            open[id] = .some(nil)
        }
        var wasFinished = false
        try change(id) { operation in
            wasFinished = operation.outcome != nil
            operation.outcome = outcome
            operation.finishedAt = wall
            operation.retryAt = nil
            operation.comesBack = false
        }
        guard !wasFinished else {
            throw StoreError.contradiction("operation \(id) finishes twice")
        }
        try change(id.graph) { $0.finishedCount += 1 }
    }

    /// Operations that have rows get their outcome there. For the others there is one row, or one
    /// between each two that have.
    private mutating func finish(
        _ range: OperationRange,
        _ outcome: Outcome
    ) throws(StoreError) {
        let count = try graph(range.graph).operationCount
        guard !range.isEmpty, range.endIndex <= count else {
            throw StoreError.contradiction("there are no operations \(range.indices)")
        }
        // Operations that are in a range of this batch get rows, so that `finish` below notices it.
        if let twice = ranges[range.graph]?.indices(among: range.indices) {
            for index in twice { try change(range[index]) { _ in } }
        }
        var start = range.startIndex
        for id in range where !operations.isEmpty && operations.index(forKey: id) != nil {
            try finishTogether(start..<id.index, of: range.graph, outcome)
            start = id.index + 1
            try finish(id, outcome)
        }
        try finishTogether(start..<range.endIndex, of: range.graph, outcome)
    }

    private mutating func finishTogether(
        _ indices: Range<UInt32>,
        of graph: GraphID,
        _ outcome: Outcome
    ) throws(StoreError) {
        guard !indices.isEmpty else { return }
        let operations = OperationRange(graph: graph, indices: indices)
        let range = StoredRange(operations, outcome, finishedAt: wall)
        ranges[graph, default: FinishedRanges()].insert(range)
        try change(graph) { $0.finishedCount += UInt32(indices.count) }
    }

    private mutating func reopen(_ id: OperationID) throws(StoreError) {
        var wasFinished = false
        var hadOutput = false
        try change(id) { operation in
            wasFinished = operation.outcome != nil
            hadOutput = operation.hasOutput
            operation.outcome = nil
            operation.finishedAt = nil
            operation.round += 1
            operation.retries = 0
            operation.workersLost = 0
            operation.crashes = 0
            operation.cancelReason = nil
            operation.deadlinePassed = false
            operation.hasOutput = false
            operation.isUpToDate = false
        }
        guard wasFinished else {
            throw StoreError.contradiction("operation \(id) is reopened, but not finished")
        }
        if hadOutput { outputs[id] = .some(nil) }
        guard try graph(id.graph).finishedCount > 0 else {
            throw StoreError.contradiction("graph \(id.graph) has no finished operation")
        }
        try change(id.graph) { $0.finishedCount -= 1 }
        guard let reason = graphs[id.graph]?.cancelReason else { return }
        try change(id.graph) { $0.cancelReason = nil }
        let running = rows.running[id.graph] ?? [:]
        let others = running.keys.filter { open[$0] == nil }
        let mentioned = open.keys.filter { $0.graph == id.graph && open[$0] != .some(nil) }
        for id in (others + mentioned).sorted() {
            if operations[id] == nil { operations[id] = running[id] }
            try change(id) { $0.cancelReason = $0.cancelReason ?? reason }
        }
    }
}

// MARK: - Results and events

extension StoreChanges {
    private mutating func keep(_ result: StoredResult) throws(StoreError) {
        let id = result.operation
        guard let place = attempts.index(forKey: result.attempt) else {
            throw StoreError.contradiction("a result of attempt \(result.attempt), which is not")
        }
        attempts.values[place].operation = id
        if let start = result.startedAt { attempts.values[place].attempt.startedAt = start }
        attempts.values[place].attempt.endedAt = result.endedAt
        var hadOutput = false
        var isFinished = false
        try change(id) { operation in
            hadOutput = operation.hasOutput
            isFinished = operation.outcome != nil
            operation.hasOutput = isFinished && !result.output.isEmpty
            operation.isUpToDate = operation.outcome == .succeeded && result.isUpToDate
        }
        if isFinished, !result.output.isEmpty {
            outputs[id] = result.output
        } else if hadOutput {
            outputs[id] = .some(nil)
        }
        if !result.log.isEmpty {
            let log = result.log.bounded(to: limits.logBytes)
            logs.append(Log(operation: id, log: StoredLog(attempt: result.attempt, log: log)))
        }
    }

    /// Bounds the logs of an operation with many attempts: the logs of its last attempts stay.
    private mutating func trimLogs() {
        for new in logs where (operations[new.operation]?.attempts ?? 0) > 1 {
            let old = (rows.logSizes[new.operation] ?? []).filter { old in
                old.attempt != new.log.attempt
            }
            var bytes = old.reduce(new.log.log.count) { $0 + $1.bytes }
            for entry in old where bytes > limits.logBytes {
                droppedLogs.append((new.operation, entry.attempt))
                bytes -= entry.bytes
            }
        }
    }

    private mutating func append(_ new: [StoredEvent]) throws(StoreError) {
        guard !new.isEmpty else { return }
        var last = rows.lastEvent
        for event in new {
            guard event.sequence == last + 1 else {
                throw StoreError.contradiction("event \(event.sequence) follows \(last)")
            }
            last += 1
        }
        let kept = UInt64(limits.storedEvents)
        // Not one by one, because dropping costs a write as well.
        if last - rows.firstEvent >= kept + kept / 10 { dropsEventsThrough = last - kept }
        // Of a very large batch, most events would be dropped in the same transaction.
        events = new
        if let end = dropsEventsThrough {
            events.removeAll { $0.sequence <= end && $0.sequence < last }
        }
    }
}

extension AttemptEnding {
    /// The ending of the attempt whose result finished its operation.
    fileprivate init(_ outcome: Outcome) {
        switch outcome {
        case .succeeded: self = .succeeded
        case .failed(let error): self = .failed(error)
        case .cancelled, .skipped: self = .cancelled
        }
    }
}
