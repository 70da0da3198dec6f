package import OperonModel

/// The changes that a batch makes, computed before anything is stored. It defines the meaning of
/// each record once for all stores. Several records about one operation become one change.
package struct StoreChanges: Sendable {
    package struct Attempt: Hashable, Sendable {
        package var operation: OperationID
        package var attempt: StoredAttempt
    }

    package struct Log: Hashable, Sendable {
        package var operation: OperationID
        package var log: StoredLog
    }

    package private(set) var graphs: [GraphID: GraphEntry] = [:]
    /// In the order of submission; new graphs and additions.
    package private(set) var contents: [StoredContents] = []
    package private(set) var operations: [OperationID: StoredOperation] = [:]
    package private(set) var attempts: [AttemptID: Attempt] = [:]
    /// The attempt now in flight, for each operation where that changed; `nil`: none.
    package private(set) var open: [OperationID: AttemptID?] = [:]
    package private(set) var queues: [String: StoredQueue] = [:]
    package private(set) var keys: [String: StoredKey] = [:]
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

    private let wall: WallTime
    private let limits: Limits

    /// - Throws: `StoreError` if the batch contradicts the store or itself; any error that `rows`
    ///   throws.
    package init(_ batch: StoreBatch, to rows: some StoreRows, limits: Limits) throws {
        wall = batch.wall
        self.limits = limits
        operations.reserveCapacity(batch.records.count)
        attempts.reserveCapacity(batch.records.count)
        open.reserveCapacity(batch.records.count)
        for record in batch.records { try apply(record, of: batch, rows) }
        guard contents.count == batch.graphs.count else {
            throw StoreError.contradiction("contents that belong to no record")
        }
        for result in batch.results { try keep(result, rows) }
        try trimLogs(rows)
        for id in graphs.keys.sorted() {
            guard var graph = graphs[id] else { continue }
            graph.finishedAt = graph.hasEnded ? graph.finishedAt ?? wall : nil
            graphs[id] = graph
        }
        try append(batch.events, rows)
        workers = batch.workers
    }

    package var isEmpty: Bool {
        graphs.isEmpty && operations.isEmpty && attempts.isEmpty && queues.isEmpty
            && keys.isEmpty && dependencyChanges.isEmpty && outputs.isEmpty && logs.isEmpty
            && events.isEmpty && workers.isEmpty
    }

    private mutating func apply(
        _ record: StoreRecord,
        of batch: StoreBatch,
        _ rows: some StoreRows
    ) throws {
        switch record {
        case .graphAdded(let id): try add(id, of: batch, rows)
        case .operationsAdded(let id, let first, _): try add(to: id, first, of: batch, rows)
        case .graphClosed(let id): try change(id, rows) { $0.isOpen = false }
        case .granted(let attempt, let operation, let ordinal, let worker):
            try grant(attempt, operation, ordinal, worker, rows)
        case .started(let attempt, let operation):
            try changeOpen(attempt, of: operation, rows) { attempt in
                attempt.startedAt = attempt.startedAt ?? batch.wall
            }
        case .resumed(let attempt, let operation): try resume(attempt, operation, rows)
        case .attemptEnded(let attempt, let operation, let ending):
            try end(attempt, operation, ending, rows)
        case .finished(let operation, let outcome): try finish(operation, outcome, rows)
        case .retryScheduled(let operation, let at):
            try change(operation, rows) { operation in
                operation.retryAt = at
                operation.retries += operation.retries < .max ? 1 : 0
            }
        case .cancelled(let target, let reason, _, _): try cancel(target, reason, rows)
        case .suspended(let target, let suspension): try suspend(target, suspension, rows)
        case .delayed(let operation, let until):
            try change(operation, rows) { $0.retryAt = until }
        case .deadlinePassed(let operation):
            try change(operation, rows) { $0.deadlinePassed = true }
        case .queueDefined(let settings): try define(settings, rows)
        case .queueLimit(let queue, let maximum):
            try change(queue, rows) {
                $0.maximum = maximum
                $0.commanded.insert(.limit)
            }
        case .queuePriority(let queue, let priority):
            try change(queue, rows) {
                $0.priority = priority
                $0.commanded.insert(.priority)
            }
        case .priority(let operation, let priority):
            try change(operation, rows) { $0.priority = priority }
        case .keyLimit(let settings, let byCommand):
            let known = try keys[settings.name] ?? rows.key(settings.name)
            let isCommanded = byCommand || known?.isCommanded == true
            keys[settings.name] = StoredKey(settings, isCommanded: isCommanded)
        case .queueReset(let queue): queues[queue] = StoredQueue(name: queue)
        case .keyReset(let key): keys[key] = StoredKey(key)
        case .reopened(let operation): try reopen(operation, rows)
        case .dependencyAdded(let operation, let other, _):
            try change(operation, rows) { _ in }
            try change(operation.graph, rows) { $0.need([other.graph]) }
            dependencyChanges.append(record)
        case .dependencyRemoved(let operation, _):
            try change(operation, rows) { _ in }
            dependencyChanges.append(record)
        }
    }
}

// MARK: - Graphs and queues

extension StoreChanges {
    private mutating func add(
        _ id: GraphID,
        of batch: StoreBatch,
        _ rows: some StoreRows
    ) throws {
        let new = try nextContents(of: batch, for: id)
        guard try graphs[id] == nil && rows.graph(id) == nil, new.first == 0 else {
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
        of batch: StoreBatch,
        _ rows: some StoreRows
    ) throws {
        let new = try nextContents(of: batch, for: id)
        let count = try graph(id, rows).operationCount
        guard new.first == first, first == count, Int(count) + new.operationCount <= UInt32.max
        else { throw StoreError.contradiction("additions to graph \(id) leave a gap") }
        try change(id, rows) { graph in
            graph.operationCount += UInt32(new.operationCount)
            graph.need(new.needs)
        }
        contents.append(new)
    }

    private func nextContents(of batch: StoreBatch, for id: GraphID) throws -> StoredContents {
        guard contents.count < batch.graphs.count, batch.graphs[contents.count].graph == id,
            (0...Int(UInt32.max)).contains(batch.graphs[contents.count].operationCount)
        else { throw StoreError.contradiction("operations of graph \(id) without contents") }
        return batch.graphs[contents.count]
    }

    private func graph(_ id: GraphID, _ rows: some StoreRows) throws -> GraphEntry {
        guard let graph = try graphs[id] ?? rows.graph(id), !graph.isTombstone else {
            throw StoreError.contradiction("there is no graph \(id)")
        }
        return graph
    }

    private mutating func change(
        _ id: GraphID,
        _ rows: some StoreRows,
        _ body: (inout GraphEntry) -> Void
    ) throws {
        if graphs[id] == nil { graphs[id] = try graph(id, rows) }
        if graphs[id] != nil { body(&graphs[id]!) }
    }

    private mutating func change(
        _ name: String,
        _ rows: some StoreRows,
        _ body: (inout StoredQueue) -> Void
    ) throws {
        var queue = try queues[name] ?? rows.queue(name) ?? StoredQueue(name: name)
        body(&queue)
        queues[name] = queue
    }

    private mutating func define(_ settings: QueueSettings, _ rows: some StoreRows) throws {
        try change(settings.name, rows) { queue in
            queue.maximum = settings.maxConcurrentOperationCount
            queue.priority = settings.priority
            queue.suspension =
                settings.isSuspended ? queue.suspension ?? .ofGraphFile : nil
        }
    }

    private mutating func cancel(
        _ target: Target,
        _ reason: String,
        _ rows: some StoreRows
    ) throws {
        switch target {
        case .operation(let operation):
            try change(operation, rows) { operation in
                if operation.outcome == nil, operation.cancelReason == nil {
                    operation.cancelReason = reason
                }
            }
        case .graph(let id):
            try change(id, rows) { $0.cancelReason = $0.cancelReason ?? reason }
        // Running members are cancelled one by one; the queue itself stays active.
        case .queue: break
        }
    }

    private mutating func suspend(
        _ target: Target,
        _ suspension: Suspension?,
        _ rows: some StoreRows
    ) throws {
        switch target {
        case .operation(let operation):
            try change(operation, rows) { $0.suspension = suspension }
        case .graph(let id): try change(id, rows) { $0.suspension = suspension }
        case .queue(let name):
            try change(name, rows) {
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
        _ rows: some StoreRows,
        _ body: (inout StoredOperation) -> Void
    ) throws {
        if operations[id] == nil {
            guard try id.index < graph(id.graph, rows).operationCount else {
                throw StoreError.contradiction("there is no operation \(id)")
            }
            operations[id] = try rows.operation(id) ?? StoredOperation(index: id.index)
        }
        if operations[id] != nil { body(&operations[id]!) }
    }

    private func openAttempt(
        of operation: OperationID,
        _ rows: some StoreRows
    ) throws -> StoredAttempt? {
        if let known = open[operation] { return known.flatMap { attempts[$0]?.attempt } }
        // Changes that this batch has made to the attempt take precedence.
        guard let found = try rows.openAttempt(of: operation) else { return nil }
        return attempts[found.id]?.attempt ?? found
    }

    private mutating func changeOpen(
        _ id: AttemptID,
        of operation: OperationID,
        _ rows: some StoreRows,
        _ body: (inout StoredAttempt) -> Void
    ) throws {
        guard var attempt = try openAttempt(of: operation, rows), attempt.id == id else {
            throw StoreError.contradiction("attempt \(id) of operation \(operation) is not open")
        }
        body(&attempt)
        attempts[id] = Attempt(operation: operation, attempt: attempt)
    }

    private mutating func grant(
        _ id: AttemptID,
        _ operation: OperationID,
        _ ordinal: UInt32,
        _ worker: Incarnation,
        _ rows: some StoreRows
    ) throws {
        guard try openAttempt(of: operation, rows) == nil,
            try attempts[id] == nil && rows.attempt(id, of: operation) == nil
        else { throw StoreError.contradiction("operation \(operation) is granted twice") }
        var isFinished = false
        try change(operation, rows) { operation in
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

    private mutating func resume(
        _ id: AttemptID,
        _ operation: OperationID,
        _ rows: some StoreRows
    ) throws {
        guard try openAttempt(of: operation, rows) == nil,
            var attempt = try attempts[id]?.attempt ?? rows.attempt(id, of: operation)
        else { throw StoreError.contradiction("attempt \(id) cannot go on") }
        attempt.ending = nil
        attempt.endedAt = nil
        attempts[id] = Attempt(operation: operation, attempt: attempt)
        open[operation] = .some(id)
        try change(operation, rows) { _ in }
    }

    private mutating func end(
        _ id: AttemptID,
        _ operation: OperationID,
        _ ending: AttemptEnding,
        _ rows: some StoreRows
    ) throws {
        let wall = wall
        try changeOpen(id, of: operation, rows) { attempt in
            attempt.ending = ending
            attempt.endedAt = wall
        }
        open[operation] = .some(nil)
        try change(operation, rows) { operation in
            operation.comesBack = true
            // `retryScheduled` counts failures that are retried.
            if ending == .lost { operation.workersLost += 1 }
            if ending == .crashed { operation.crashes += 1 }
        }
    }

    private mutating func finish(
        _ id: OperationID,
        _ outcome: Outcome,
        _ rows: some StoreRows
    ) throws {
        let wall = wall
        if let attempt = try openAttempt(of: id, rows) {
            try changeOpen(attempt.id, of: id, rows) { attempt in
                attempt.ending = AttemptEnding(outcome)
                attempt.endedAt = wall
            }
            open[id] = .some(nil)
        }
        var wasFinished = false
        try change(id, rows) { operation in
            wasFinished = operation.outcome != nil
            operation.outcome = outcome
            operation.finishedAt = wall
            operation.retryAt = nil
            operation.comesBack = false
        }
        guard !wasFinished else {
            throw StoreError.contradiction("operation \(id) finishes twice")
        }
        try change(id.graph, rows) { $0.finishedCount += 1 }
    }

    private mutating func reopen(_ id: OperationID, _ rows: some StoreRows) throws {
        var wasFinished = false
        var hadOutput = false
        try change(id, rows) { operation in
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
        }
        guard wasFinished else {
            throw StoreError.contradiction("operation \(id) is reopened, but not finished")
        }
        if hadOutput { outputs[id] = .some(nil) }
        try change(id.graph, rows) { $0.finishedCount -= 1 }
        guard let reason = graphs[id.graph]?.cancelReason else { return }
        try change(id.graph, rows) { $0.cancelReason = nil }
        let known = try rows.openOperations(of: id.graph).filter { open[$0] == nil }
        let new = open.keys.filter { $0.graph == id.graph && open[$0] != .some(nil) }
        for running in (known + new).sorted() {
            try change(running, rows) { $0.cancelReason = $0.cancelReason ?? reason }
        }
    }
}

// MARK: - Results and events

extension StoreChanges {
    private mutating func keep(_ result: StoredResult, _ rows: some StoreRows) throws {
        let id = result.operation
        guard
            var attempt = try attempts[result.attempt]?.attempt
                ?? rows.attempt(result.attempt, of: id)
        else {
            throw StoreError.contradiction("a result of attempt \(result.attempt), which is not")
        }
        attempt.startedAt = result.startedAt ?? attempt.startedAt
        attempt.endedAt = result.endedAt
        attempts[result.attempt] = Attempt(operation: id, attempt: attempt)
        var hadOutput = false
        var isFinished = false
        try change(id, rows) { operation in
            hadOutput = operation.hasOutput
            isFinished = operation.outcome != nil
            operation.hasOutput = isFinished && !result.output.isEmpty
        }
        if isFinished, !result.output.isEmpty {
            outputs[id] = result.output
        } else if hadOutput {
            outputs[id] = .some(nil)
        }
        if !result.logTail.isEmpty {
            let tail = Array(result.logTail.suffix(limits.logBytes))
            logs.append(Log(operation: id, log: StoredLog(attempt: result.attempt, tail: tail)))
        }
    }

    /// Bounds the logs of an operation with many attempts: the logs of its last attempts stay.
    private mutating func trimLogs(_ rows: some StoreRows) throws {
        for new in logs where (operations[new.operation]?.attempts ?? 0) > 1 {
            let old = try rows.logSizes(of: new.operation).filter { old in
                old.attempt != new.log.attempt
            }
            var bytes = old.reduce(new.log.tail.count) { $0 + $1.bytes }
            for entry in old where bytes > limits.logBytes {
                droppedLogs.append((new.operation, entry.attempt))
                bytes -= entry.bytes
            }
        }
    }

    private mutating func append(_ new: [StoredEvent], _ rows: some StoreRows) throws {
        guard !new.isEmpty else { return }
        var last = try rows.lastEvent
        for event in new {
            guard event.sequence == last + 1 else {
                throw StoreError.contradiction("event \(event.sequence) follows \(last)")
            }
            last += 1
        }
        let kept = UInt64(limits.storedEvents)
        // Not one by one, because dropping costs a write as well.
        if try last - rows.firstEvent >= kept + kept / 10 { dropsEventsThrough = last - kept }
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
