import OperonModel

// Attempts that end without a result: given back, lost with their worker, or ended with the child
// process that ran them. Also attempts whose owner comes back in time.
extension Scheduler {
    /// An attempt ended without a result. The operation goes to the front of its priority, unless
    /// it was cancelled meanwhile or has lost too many attempts. If it asked for a pause, it does
    /// not start before the pause is over.
    mutating func requeue(
        _ place: UInt32,
        _ ending: AttemptEnding,
        after pause: Duration = .zero,
        at now: Moment,
        into effects: inout Effects
    ) {
        let attempt = removeAttempt(place)
        let operation = attempt.operation
        effects.attemptEnded(
            attempt.id,
            operation,
            ending,
            start: attempt.startedAt,
            end: now.monotonic
        )
        // Counted whatever follows: the records report the loss, and a restored scheduler counts it
        // too.
        let isTooMuch = countLoss(of: operation, ending)
        if resumeLost(operation, at: now, into: &effects) { return }
        if ending == .lost { lostAttempts[operation] = LostAttempt(attempt: attempt) }
        graphs.move(operation, to: .ready)
        graphs[flags: operation].insert(.comesBack)
        if graphs.rule(of: operation).hasKeys { suspects.append(operation) }
        let flags = graphs[flags: operation]
        let isCancelled =
            flags.contains(.cancelRequested) || flags.contains(.deadlinePassed)
            || graphs[operation.graph].isCancelled
        guard isCancelled || isTooMuch else {
            if pause > .zero {
                effects.records.append(.delayed(operation, until: now.wall + pause))
                self.pause(operation, for: pause, at: now)
                graphs[operation.graph].unmet.insert(operation.index)
                if configuration.violation == .forgetsPauses { enqueue(operation) }
            } else {
                enqueue(operation)
            }
            waitForReopened(operation, at: now, into: &effects)
            return
        }
        let outcome = isCancelled ? cancelledOutcome(of: operation) : .failed(.workerLost)
        finish(operation, outcome, at: now, into: &effects)
    }

    /// A dependency of an operation that came back may have been reopened while a worker had it.
    mutating func waitForReopened(
        _ operation: OperationID,
        at now: Moment,
        into effects: inout Effects
    ) {
        if hasReopened { _ = waitsAgain(operation, at: now, into: &effects) }
    }

    /// Counts a loss. Returns whether the operation may not be tried again. An operation that may
    /// have killed its worker becomes a suspect: from then on it runs in a process of its own, and
    /// only the death of that process counts against it.
    private mutating func countLoss(of operation: OperationID, _ ending: AttemptEnding) -> Bool {
        var losses = graphs[operation.graph].losses[operation.index] ?? Losses()
        switch ending {
        case .lost: losses.workers += 1
        case .crashed: losses.crashes += 1
        case .succeeded, .failed, .cancelled, .returned: return false
        }
        graphs[operation.graph].losses[operation.index] = losses
        if let lostLimit = configuration.lostLimit, losses.workers >= lostLimit { return true }
        // It reads the output of others in the process of its worker and is never isolated, so each
        // death of its worker counts as its own.
        let isUnisolated = kinds[graphs.rule(of: operation).kind].name == Work.forEachKind
        let crashes = losses.crashes + (isUnisolated ? losses.workers : 0)
        return crashes >= configuration.crashLimit
    }
}

// MARK: - Owners that come back

extension Scheduler {
    /// A worker names an attempt that was taken from it. If the next attempt has not started, the
    /// old one goes on: at once if there is no next attempt yet, otherwise when that one is given
    /// back.
    mutating func reclaim(
        _ held: HeldAttempt,
        by worker: Int,
        result: LateResult? = nil,
        at now: Moment,
        into effects: inout Effects
    ) {
        guard ownsLost(held, worker), let lost = lostAttempts[held.operation] else { return }
        let operation = held.operation
        switch graphs[state: operation] {
        case .pending, .executing, .finished: return
        case .ready:
            lostAttempts[operation]?.isBack = true
            lostAttempts[operation]?.result = result
            takeOutOfLane(operation)
            if !resumeLost(operation, at: now, into: &effects) {
                // Its place was given to another operation meanwhile.
                lostAttempts[operation] = nil
                enqueue(operation)
            }
        case .dispatched:
            // An attempt that may not have started could only wait there, and would start beside
            // the next one.
            guard lost.attempt.hasStarted || result != nil else { return }
            let place = graphs[attempt: operation]
            guard attempts[place]?.hasStarted == false else { return }
            if configuration.violation == .resumesWithoutRecall { _ = removeAttempt(place) }
            lostAttempts[operation]?.isBack = true
            if let result { lostAttempts[operation]?.result = result }
            if configuration.violation == .resumesWithoutRecall {
                _ = resumeLost(operation, at: now, into: &effects)
            } else {
                order(.recall, attemptAt: place, into: &effects)
            }
        }
    }

    private func ownsLost(_ held: HeldAttempt, _ worker: Int) -> Bool {
        guard let lost = lostAttempts[held.operation] else { return false }
        return lost.attempt.id == held.attempt && lost.attempt.worker == worker
    }

    /// Whether a lost attempt that a worker still has may go on there.
    func isAwaitedBack(_ held: HeldAttempt, of worker: Int) -> Bool {
        ownsLost(held, worker) && lostAttempts[held.operation]?.isBack == true
    }

    /// The next attempt has started: the old one is lost for good.
    mutating func forgetLost(_ operation: OperationID) {
        if !lostAttempts.isEmpty { lostAttempts[operation] = nil }
    }

    /// Removes an operation from its lane, or from what set it aside. The caller sets its state.
    mutating func takeOutOfLane(_ operation: OperationID) {
        if isEnqueued(operation) {
            leaveLane(operation)
            passKeysOn(of: operation)
        }
        clearAside(operation)
    }

    /// Resumes the lost attempt of an operation that has no other, if its owner is back with it and
    /// there is room for it. Returns whether it did.
    private mutating func resumeLost(
        _ operation: OperationID,
        at now: Moment,
        into effects: inout Effects
    ) -> Bool {
        guard !lostAttempts.isEmpty, let lost = lostAttempts[operation], lost.isBack,
            workers[lost.attempt.worker].isAlive
        else { return false }
        guard queues[graphs.queue(of: operation)].hasRoom, heldKey(of: operation) == nil
        else {
            lostAttempts[operation]?.isBack = false
            return false
        }
        lostAttempts[operation] = nil
        var attempt = lost.attempt
        attempt.sequence = 0
        attempt.recall = .none
        attempt.isAwaited = false
        let place = store(attempt, isForced: true)
        let resumed = attempt.hasStarted ? OperationState.executing : .dispatched
        if state(of: operation) != resumed { graphs.move(operation, to: resumed) }
        effects.resumed(attempt.id, operation, on: workers[attempt.worker].identity.incarnation)
        if let late = lost.result {
            started(place, at: late.start, into: &effects)
            finished(
                place,
                late.result,
                start: late.start,
                end: late.end,
                at: now,
                into: &effects
            )
        } else {
            reorder(place, into: &effects)
        }
        return true
    }

    /// Orders that concern the operation and came meanwhile are sent for the attempt that goes on.
    private mutating func reorder(_ place: UInt32, into effects: inout Effects) {
        guard let operation = attempts[place]?.operation else { return }
        let flags = graphs[flags: operation]
        if flags.contains(.cancelRequested) || flags.contains(.deadlinePassed)
            || graphs[operation.graph].isCancelled
        {
            order(.cancel, attemptAt: place, into: &effects)
        }
    }
}
