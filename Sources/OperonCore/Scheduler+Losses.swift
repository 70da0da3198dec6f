import OperonModel

// Attempts that end without a result of their own: given back, lost with their worker, or ended
// with the child process that ran them. And those whose owner comes back in time.
extension Scheduler {
    /// An attempt ended without a result. The operation goes back to the front of its priority,
    /// unless it was cancelled meanwhile, or this happened too often; and is not started again
    /// before a pause is over, if it asked for one.
    mutating func comeBack(
        _ place: UInt32,
        _ ending: AttemptEnding,
        after pause: Duration = .zero,
        at now: Moment,
        into effects: inout Effects
    ) {
        let attempt = removeAttempt(place)
        let operation = attempt.operation
        let graph = Int(operation.graph.rawValue)
        let index = Int(operation.index)
        effects.records.append(.attemptEnded(attempt.id, operation, ending))
        effects.notices.append(
            .attemptEnded(
                operation,
                attempt.id,
                ending,
                start: attempt.startedAt,
                end: now.monotonic
            )
        )
        // Whatever becomes of it: the records tell of the loss, and a restored scheduler counts it.
        let isTooMuch = countLoss(of: operation, ending)
        if resumeLost(operation, at: now, into: &effects) { return }
        if ending == .lost { lostAttempts[operation] = LostAttempt(attempt: attempt) }
        graphs[graph].state[index] = .ready
        graphs[graph].flags[index].insert(.comesBack)
        if graphs[graph].rule(operation.index).hasKeys { suspects.append(operation) }
        let flags = graphs[graph].flags[index]
        let isCancelled =
            flags.contains(.cancelRequested) || flags.contains(.deadlinePassed)
            || graphs[graph].isCancelled
        guard isCancelled || isTooMuch else {
            if pause > .zero {
                effects.records.append(.delayed(operation, until: now.wall + pause))
                self.pause(operation, for: pause, at: now)
                graphs[graph].unmet.insert(operation.index)
                if configuration.violation == .forgetsPauses { enqueue(operation) }
            } else {
                enqueue(operation)
            }
            waitForReopened(operation, at: now, into: &effects)
            return
        }
        // It stands in no lane; `settle` must not count it out of one.
        graphs[graph].flags[index].insert(.heldBack)
        let outcome = isCancelled ? cancelledOutcome(of: operation) : .failed(.workerLost)
        finish(operation, outcome, at: now, into: &effects)
    }

    /// A dependency of what came back may have been reopened while a worker had it.
    mutating func waitForReopened(
        _ operation: OperationID,
        at now: Moment,
        into effects: inout Effects
    ) {
        if hasReopened { _ = waitsAgain(operation, at: now, into: &effects) }
    }

    /// Whether it is to be tried no more. A lost worker makes an operation that could have been the
    /// cause a suspect, which runs in a process of its own from then on, and is not blamed: only
    /// the death of that process counts against it.
    private mutating func countLoss(of operation: OperationID, _ ending: AttemptEnding) -> Bool {
        let graph = Int(operation.graph.rawValue)
        var losses = graphs[graph].losses[operation.index] ?? Losses()
        switch ending {
        case .lost: losses.workers += 1
        case .crashed: losses.crashes += 1
        case .succeeded, .failed, .cancelled, .returned: return false
        }
        graphs[graph].losses[operation.index] = losses
        if let lostLimit = configuration.lostLimit, losses.workers >= lostLimit { return true }
        return losses.crashes >= configuration.crashLimit
    }
}

// MARK: - A late owner

extension Scheduler {
    /// A worker names an attempt that was taken from it. If the next one has not started, the old
    /// one goes on: at once if there is none yet, else when that one was given back.
    mutating func reclaim(
        _ held: HeldAttempt,
        by worker: Int,
        result: LateResult? = nil,
        at now: Moment,
        into effects: inout Effects
    ) {
        guard ownsLost(held, worker), let lost = lostAttempts[held.operation] else { return }
        let operation = held.operation
        let graph = Int(operation.graph.rawValue)
        let index = Int(operation.index)
        switch graphs[graph].state[index] {
        case .pending, .executing, .finished: return
        case .ready:
            lostAttempts[operation]?.isBack = true
            lostAttempts[operation]?.result = result
            takeOutOfLane(operation)
            if !resumeLost(operation, at: now, into: &effects) {
                // Its place was given to another meanwhile.
                lostAttempts[operation] = nil
                graphs[graph].flags[index].insert(.heldBack)
                enqueue(operation)
            }
        case .dispatched:
            // One that is not known to run may only wait there, and would start beside the next.
            guard lost.attempt.hasStarted || result != nil else { return }
            let place = graphs[graph].attempt[index]
            guard attempts[Int(place)]?.hasStarted == false else { return }
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

    /// Whether an attempt that a worker still has may yet go on there.
    func isAwaitedBack(_ held: HeldAttempt, of worker: Int) -> Bool {
        ownsLost(held, worker) && lostAttempts[held.operation]?.isBack == true
    }

    /// The next attempt has started: the lost one is lost for good.
    mutating func forgetLost(_ operation: OperationID) {
        if !lostAttempts.isEmpty { lostAttempts[operation] = nil }
    }

    /// Neither waiting in its lane nor set aside; its state is for the caller to set.
    mutating func takeOutOfLane(_ operation: OperationID) {
        let graph = Int(operation.graph.rawValue)
        if isEnqueued(operation) {
            countReady(-1, in: graphs[graph].queue(operation.index))
            graphs[graph].flags[Int(operation.index)].insert(.heldBack)
            passKeysOn(of: operation)
        }
        clearAside(operation)
    }

    /// Lets the lost attempt of an operation that has no other go on, if its owner is back with it
    /// and there is room for it: whether it did.
    private mutating func resumeLost(
        _ operation: OperationID,
        at now: Moment,
        into effects: inout Effects
    ) -> Bool {
        guard !lostAttempts.isEmpty, let lost = lostAttempts[operation], lost.isBack,
            workers[lost.attempt.worker].isAlive
        else { return false }
        let graph = Int(operation.graph.rawValue)
        guard queues[graphs[graph].queue(operation.index)].hasRoom, heldKey(of: operation) == nil
        else {
            lostAttempts[operation]?.isBack = false
            return false
        }
        lostAttempts[operation] = nil
        var attempt = lost.attempt
        attempt.sequence = 0
        attempt.recall = .none
        attempt.isAwaited = false
        attempt.next = GraphState.noAttempt
        attempt.previous = GraphState.noAttempt
        let place = store(attempt)
        graphs[graph].state[Int(operation.index)] = attempt.hasStarted ? .executing : .dispatched
        effects.records.append(.resumed(attempt.id, operation))
        effects.notices.append(
            .resumed(
                operation,
                attempt.id,
                worker: workers[attempt.worker].identity.incarnation
            )
        )
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

    /// What was asked of the operation meanwhile is asked of the attempt that goes on.
    private mutating func reorder(_ place: UInt32, into effects: inout Effects) {
        guard let operation = attempts[Int(place)]?.operation else { return }
        let graph = Int(operation.graph.rawValue)
        let flags = graphs[graph].flags[Int(operation.index)]
        if flags.contains(.cancelRequested) || flags.contains(.deadlinePassed)
            || graphs[graph].isCancelled
        {
            order(.cancel, attemptAt: place, into: &effects)
        }
    }
}
