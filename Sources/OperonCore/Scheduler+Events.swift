package import OperonModel

// The events that workers report, and their consequences.
extension Scheduler {
    mutating func receive(
        _ batch: EventBatch,
        from worker: Int,
        at now: Moment,
        resolving resolver: inout some RequestResolver,
        into effects: inout Effects
    ) {
        var number = batch.firstNumber
        var late: [(event: WorkerEvent, number: UInt64)] = []
        for event in batch.events {
            // Wrapping addition, because the numbers come from outside.
            defer { number &+= 1 }
            // benign: the event was resent before its acknowledgement had arrived.
            if number <= workers[worker].handled { continue }
            guard
                number &- 1 <= workers[worker].handled
                    || configuration.violation == .acknowledgesBeyondGap
            else { break }
            // A claim says what the worker held when it had sent so many events. What it has
            // started since is no part of it.
            if workers[worker].claim != nil { judgeClaim(of: worker, at: now, into: &effects) }
            // Events after a gap are not handled. The next beat shows the gap, and its answer asks
            // for a resend.
            workers[worker].handled = max(workers[worker].handled, number)
            workers[worker].unacknowledgedBytes += event.byteCount
            switch event {
            case .added, .yielded, .read:
                guard mayAsk(event, from: worker) else {
                    effects.notices.append(.eventRefused(event.held.attempt))
                    continue
                }
                if case .added = event, configuration.violation == .addsLate {
                    late.append((event, number))
                    continue
                }
                answer(
                    event,
                    number,
                    from: worker,
                    at: now,
                    resolving: &resolver,
                    into: &effects
                )
            case .started, .finished, .returned:
                handle(event, sentAt: batch.sentAt, from: worker, at: now, into: &effects)
            }
        }
        for (event, number) in late {
            answer(event, number, from: worker, at: now, resolving: &resolver, into: &effects)
        }
        judgeClaim(of: worker, at: now, into: &effects)
        if workers[worker].unacknowledgedBytes >= Int(workers[worker].eventWindow) / 2 {
            send(
                .plain(.control(Control(acknowledged: workers[worker].handled))),
                to: worker,
                into: &effects
            )
        }
    }

    /// Handles an event that is no request.
    private mutating func handle(
        _ event: WorkerEvent,
        sentAt: Timestamp,
        from worker: Int,
        at now: Moment,
        into effects: inout Effects
    ) {
        guard let place = placeOfEvent(event, from: worker) else {
            // The event is refused but counts as handled, so the worker may forget it. The
            // exception is the end of an attempt that was given up as lost and may still count.
            if case .finished(let held, let result) = event {
                let late = LateResult(
                    result: result.bounded(by: configuration.limits),
                    start: now.monotonic - (sentAt - result.startedAt),
                    end: now.monotonic - (sentAt - result.endedAt)
                )
                reclaim(held, by: worker, result: late, at: now, into: &effects)
            }
            effects.notices.append(.eventRefused(event.held.attempt))
            return
        }
        switch event {
        case .started(_, let at):
            started(place, at: now.monotonic - (sentAt - at), into: &effects)
        case .finished(_, let said):
            let result = said.bounded(by: configuration.limits)
            let start = now.monotonic - (sentAt - result.startedAt)
            let end = now.monotonic - (sentAt - result.endedAt)
            started(place, at: start, into: &effects)
            finished(place, result, start: start, end: end, at: now, into: &effects)
        case .returned:
            requeue(place, .returned, at: now, into: &effects)
        case .added, .yielded, .read: preconditionFailure("`receive` answers requests itself")
        }
    }

    /// The place of the attempt that an event is about, if the attempt is in flight and belongs to
    /// the sender.
    private func placeOfEvent(_ event: WorkerEvent, from worker: Int) -> UInt32? {
        let held = event.held
        if configuration.violation == .acceptsStaleResults, exists(held.operation) {
            let place = graphs[attempt: held.operation]
            return place == AttemptTable.none ? nil : place
        }
        if configuration.violation == .believesStrangers { return attemptPlace(of: held) }
        return attemptPlace(of: held, ownedBy: worker)
    }

    mutating func started(
        _ place: UInt32,
        at start: Timestamp,
        into effects: inout Effects
    ) {
        guard let attempt = attempts[place], !attempt.hasStarted else { return }
        attempts.update(place) { $0.hasStarted = true }
        attempts.update(place) { $0.startedAt = start }
        let operation = attempt.operation
        forgetLost(operation)
        graphs.move(operation, to: .executing)
        effects.started(attempt.id, operation, at: start)
    }

    mutating func finished(
        _ place: UInt32,
        _ result: AttemptResult,
        start: Timestamp,
        end: Timestamp,
        at now: Moment,
        into effects: inout Effects
    ) {
        if result.end == .crashed {
            requeue(place, .crashed, at: now, into: &effects)
            return
        }
        if case .notYet(let pause) = result.end {
            requeue(place, .returned, after: pause, at: now, into: &effects)
            return
        }
        let attempt = removeAttempt(place)
        let operation = attempt.operation
        // The time in which nothing was done says nothing about others of the kind.
        if !result.isUpToDate {
            kinds[graphs.kind(of: operation)].measured((end - start).nanoseconds)
        }
        conclude(operation, attempt.id, result, start: start, end: end, at: now, into: &effects)
    }

    /// Applies an attempt's own result to its operation, which no longer has an attempt.
    mutating func conclude(
        _ operation: OperationID,
        _ attempt: AttemptID,
        _ result: AttemptResult,
        start: Timestamp,
        end: Timestamp,
        at now: Moment,
        into effects: inout Effects
    ) {
        let flags = graphs[flags: operation]
        let ending: AttemptEnding
        switch result.end {
        case .succeeded: ending = .succeeded
        case .failed(let error): ending = .failed(error)
        case .cancelled: ending = .cancelled
        case .crashed: ending = .crashed
        case .notYet: ending = .returned
        }
        effects.notices.append(.result(operation, attempt, result))
        effects.notices.append(.attemptEnded(operation, attempt, ending, start: start, end: end))
        switch ending {
        case .succeeded:
            if result.isUpToDate { graphs[operation.graph].upToDate.insert(operation.index) }
            finish(operation, .succeeded, at: now, into: &effects)
        case .failed(let error):
            if error.isRetryable, flags.isDisjoint(with: [.cancelRequested, .deadlinePassed]),
                !graphs[operation.graph].isCancelled,
                graphs[retries: operation]
                    < graphs.policy(of: operation).retry.limit
            {
                effects.records.append(.attemptEnded(attempt, operation, ending))
                retry(operation, at: now, into: &effects)
            } else {
                finish(operation, .failed(error), at: now, into: &effects)
            }
        case .cancelled:
            finish(operation, cancelledOutcome(of: operation), at: now, into: &effects)
        case .returned, .lost, .crashed:
            preconditionFailure("a result has neither ending")
        }
    }

    /// The outcome of an operation that stopped on request.
    func cancelledOutcome(of operation: OperationID) -> Outcome {
        if graphs[flags: operation].contains(.deadlinePassed) { return .failed(.deadline) }
        return .cancelled(
            reason: graphs[operation.graph].reasons[operation.index]
                ?? graphs[operation.graph].cancelReason
        )
    }

    mutating func retry(
        _ operation: OperationID,
        at now: Moment,
        into effects: inout Effects
    ) {
        graphs[retries: operation] += 1
        let pause = graphs.policy(of: operation).retry.pause(
            before: Int(graphs[retries: operation]),
            randomness: generator.fraction()
        )
        graphs.move(operation, to: .ready)
        graphs[flags: operation].insert(.comesBack)
        if graphs.rule(of: operation).hasKeys { suspects.append(operation) }
        effects.retryScheduled(operation, after: pause, now)
        if pause > .zero {
            self.pause(operation, for: pause, at: now)
        } else {
            enqueue(operation)
        }
        waitForReopened(operation, at: now, into: &effects)
    }
}

extension WorkerEvent {
    /// About how many bytes it takes in a message.
    package var byteCount: Int {
        let fixed = 48
        if case .added(_, let request) = self { return fixed + request.operations.count }
        if case .yielded(_, let request) = self {
            return request.names.reduce(fixed) { $0 + 4 + $1.utf8.count }
        }
        if case .read(_, let request) = self { return fixed + request.name.utf8.count }
        guard case .finished(_, let result) = self else { return fixed }
        var bytes = fixed + result.output.bytes.count + result.output.contentType.utf8.count
        bytes += result.log.count
        if case .failed(let error) = result.end { bytes += error.byteCount }
        return bytes
    }
}
