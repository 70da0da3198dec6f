import HeapModule
import OperonModel

// External operations. They wait as others do, and take a place in their queue and their keys; but
// no worker has them, so they need no slot, no lease and no message.
extension Scheduler {
    /// Gives an operation that nothing delays any more an attempt, and starts it.
    mutating func startExternal(
        _ operation: OperationID,
        at now: Moment,
        into effects: inout Effects
    ) {
        leaveLane(operation)
        graphs[flags: operation].remove(.comesBack)
        graphs[ordinal: operation] += 1
        let attempt = ExternalAttempt(
            id: nextAttempt(of: operation),
            ordinal: graphs[ordinal: operation],
            startedAt: now.monotonic
        )
        effects.granted(attempt.id, operation, ordinal: attempt.ordinal, to: .nobody)
        effects.started(attempt.id, operation, at: now.monotonic)
        graphs.move(operation, to: .executing)
        store(attempt, of: operation)
        armTimeout(of: operation)
    }

    /// Stores an attempt: it takes a place in its queue and its keys.
    private mutating func store(_ attempt: ExternalAttempt, of operation: OperationID) {
        let rule = graphs.rule(of: operation)
        externals[operation] = attempt
        awaitedCounts[operation.graph, default: 0] += 1
        if configuration.violation != .countsNoExternals { queues[rule.queue].take() }
        queues[rule.queue].countExternal(1)
        if rule.hasKeys { takeKeys(of: operation) }
    }

    /// Removes an attempt and gives back what it took. The caller sets the operation's state.
    private mutating func removeExternal(_ operation: OperationID) -> ExternalAttempt? {
        guard !externals.isEmpty, let attempt = externals.removeValue(forKey: operation) else {
            return nil
        }
        let others = (awaitedCounts[operation.graph] ?? 1) - 1
        awaitedCounts[operation.graph] = others > 0 ? others : nil
        let rule = graphs.rule(of: operation)
        if configuration.violation != .countsNoExternals { queues[rule.queue].give() }
        queues[rule.queue].countExternal(-1)
        if rule.hasKeys { freeKeys(of: operation) }
        return attempt
    }

    /// Ends the attempt of an operation that is cancelled or past its deadline. The coordinator
    /// does this by itself, because no worker runs the attempt. Returns whether there was one.
    mutating func stopExternal(
        _ operation: OperationID,
        _ ending: AttemptEnding,
        at now: Moment,
        into effects: inout Effects
    ) -> Bool {
        guard let attempt = removeExternal(operation) else { return false }
        effects.notices.append(
            .attemptEnded(
                operation,
                attempt.id,
                ending,
                start: attempt.startedAt,
                end: now.monotonic
            )
        )
        return true
    }

    // MARK: - Completing

    mutating func complete(
        _ operation: OperationID,
        attempt named: AttemptID?,
        _ completion: Completion,
        at now: Moment,
        into effects: inout Effects
    ) {
        do throws(NumberedRefusal) {
            try checkCompletion(of: operation, attempt: named, completion)
        } catch {
            effects.refusals.append(error)
            return
        }
        guard let attempt = removeExternal(operation) else {
            // Reached only with a planted violation.
            effects.records.append(.finished(operation, .succeeded))
            return
        }
        var result = AttemptResult(
            end: .succeeded,
            startedAt: attempt.startedAt,
            endedAt: now.monotonic
        )
        switch completion {
        case .succeeded(let output): result.output = output
        case .failed(let error): result.end = .failed(error)
        case .cancelled(let reason):
            result.end = .cancelled
            graphs[operation.graph].reasons[operation.index] = reason
        }
        conclude(operation, attempt, result, at: now, into: &effects)
        var summary = CommandResult()
        summary.affected = 1
        summary.finished = state(of: operation) == .finished ? 1 : 0
        effects.results.append(summary)
    }

    private mutating func conclude(
        _ operation: OperationID,
        _ attempt: ExternalAttempt,
        _ result: AttemptResult,
        at now: Moment,
        into effects: inout Effects
    ) {
        conclude(
            operation,
            attempt.id,
            result,
            start: attempt.startedAt,
            end: now.monotonic,
            at: now,
            into: &effects
        )
    }

    private func checkCompletion(
        of operation: OperationID,
        attempt named: AttemptID?,
        _ completion: Completion
    ) throws(NumberedRefusal) {
        guard exists(operation) else { throw unknown(.operation(operation)) }
        let graph = graphs[operation.graph]
        guard graph.rule(operation.index).isExternal else {
            let why = "it is not external, so only its worker ends it"
            throw .notCompleted(operation, why: why)
        }
        try checkSize(of: completion, operation)
        if graph.operations.state[operation.index] == .finished {
            if configuration.violation == .completesTwice { return }
            throw .alreadyFinished(operation)
        }
        guard let attempt = externals[operation] else {
            if let named { throw .alreadyFinished(operation, attempt: named) }
            throw .notCompleted(operation, why: "it has not started")
        }
        if let named, named != attempt.id, configuration.violation != .acceptsStaleCompletions {
            throw .alreadyFinished(operation, attempt: named)
        }
    }

    private func checkSize(
        of completion: Completion,
        _ operation: OperationID
    ) throws(NumberedRefusal) {
        let bytes: Int
        switch completion {
        case .succeeded(let output):
            let typeBytes = output.contentType.utf8.count
            let nameBytes = configuration.limits.nameBytes
            guard typeBytes <= nameBytes else {
                throw .worded(
                    .limitExceeded(limit: .nameBytes, value: typeBytes, maximum: nameBytes)
                )
            }
            bytes = output.bytes.count
        case .failed(.deadline), .failed(.workerLost):
            throw .notCompleted(operation, why: "only the coordinator fails it in this way")
        case .failed(let error): bytes = error.byteCount
        case .cancelled(let reason): bytes = reason.utf8.count
        }
        let maximum = configuration.limits.payloadBytes
        guard bytes <= maximum else {
            throw .worded(.limitExceeded(limit: .payloadBytes, value: bytes, maximum: maximum))
        }
    }

    // MARK: - Time

    private mutating func armTimeout(of operation: OperationID) {
        guard let attempt = externals[operation],
            let timeout = graphs.policy(of: operation).timeout
        else { return }
        arm(
            .timeout(operation, ordinal: attempt.ordinal),
            at: attempt.startedAt + timeout
        )
    }

    /// Rearms a timeout that began in a previous run, for which only the wall clock can tell how
    /// much time has passed. If that clock is behind, the attempt gets no more than its whole
    /// timeout once more.
    private mutating func resumeTimeout(
        of operation: OperationID,
        since start: WallTime,
        at now: Moment
    ) {
        guard let attempt = externals[operation],
            let timeout = graphs.policy(of: operation).timeout
        else { return }
        let kind = Deadline.Kind.timeout(operation, ordinal: attempt.ordinal)
        arm(kind, on: start + timeout, at: now)
        arm(kind, at: now.monotonic + timeout)
    }

    mutating func timeoutDue(
        _ operation: OperationID,
        ordinal: UInt32,
        at now: Moment,
        into effects: inout Effects
    ) {
        // benign: the timer of an attempt that ended in time.
        guard externals[operation]?.ordinal == ordinal, let attempt = removeExternal(operation)
        else { return }
        let result = AttemptResult(
            end: .failed(.timeout),
            startedAt: attempt.startedAt,
            endedAt: now.monotonic
        )
        conclude(operation, attempt, result, at: now, into: &effects)
    }

    // MARK: - Restoring

    /// It is still executing, with its place and its keys. Its timeout counts from its start.
    mutating func restoreExternal(_ stored: StoredInFlight, at now: Moment) {
        guard configuration.violation != .forgetsExternals else { return }
        let operation = stored.operation
        let attempt = ExternalAttempt(
            id: stored.attempt,
            ordinal: stored.ordinal,
            startedAt: now.monotonic - max(.zero, now.wall - (stored.startedAt ?? now.wall))
        )
        graphs[operation.graph].operations.restore(operation.index, as: .executing)
        store(attempt, of: operation)
        // It was released when the attempt was granted, whatever happened to its dependencies
        // since.
        graphs[flags: operation].remove(.skipDemanded)
        if configuration.violation != .forgetsTimeouts {
            resumeTimeout(of: operation, since: stored.startedAt ?? now.wall, at: now)
        }
    }

    func violatedInvariantOfExternals() -> String? {
        var counts = [Int](repeating: 0, count: queues.count)
        var timers: Set<OperationID> = []
        for kind in deadlines.unordered.map(\.kind) + dates.unordered.map(\.kind) {
            guard case .timeout(let operation, let ordinal) = kind,
                externals[operation]?.ordinal == ordinal
            else { continue }
            timers.insert(operation)
        }
        var awaited: [GraphID: Int] = [:]
        for operation in externals.keys.sorted() {
            awaited[operation.graph, default: 0] += 1
            let graph = graphs[operation.graph]
            let rule = graph.rule(operation.index)
            guard rule.isExternal, graph.operations.state[operation.index] == .executing,
                graph.operations.attempt[operation.index] == AttemptTable.none
            else { return "\(operation) is nobody's, and not so, or a worker's as well" }
            counts[rule.queue] += 1
            guard graph.policy(operation.index).timeout == nil || timers.contains(operation)
            else { return "nothing ends \(operation) if nobody completes it in time" }
        }
        for queue in queues.indices where queues[queue].external != counts[queue] {
            return "queue “\(queues[queue].name)” counts \(queues[queue].external) that are "
                + "nobody's of \(counts[queue])"
        }
        guard awaited == awaitedCounts
        else { return "a graph miscounts its operations that are nobody's" }
        return nil
    }
}
