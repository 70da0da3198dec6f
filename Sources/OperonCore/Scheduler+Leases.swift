import OperonModel

// Attempts that end without a result: given back, or lost with their worker.
extension Scheduler {
    /// An attempt ended without a result. The operation goes back to the front of its priority,
    /// unless it was cancelled meanwhile.
    mutating func comeBack(
        _ place: UInt32,
        _ ending: AttemptEnding,
        at now: Moment,
        into effects: inout Effects
    ) {
        let attempt = removeAttempt(place)
        let operation = attempt.operation
        let graph = Int(operation.graph.rawValue)
        let flags = graphs[graph].flags[Int(operation.index)]
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
        graphs[graph].state[Int(operation.index)] = .ready
        graphs[graph].flags[Int(operation.index)].insert(.comesBack)
        if flags.contains(.cancelRequested) || flags.contains(.deadlinePassed)
            || graphs[graph].isCancelled
        {
            // It stands in no lane; `settle` must not count it out of one.
            graphs[graph].flags[Int(operation.index)].insert(.heldBack)
            finish(operation, cancelledOutcome(of: operation), at: now, into: &effects)
        } else {
            enqueue(operation)
        }
    }

    /// One entry per worker, however often its lease is renewed meanwhile.
    mutating func armLease(of worker: Int) {
        guard !workers[worker].isLeaseArmed else { return }
        workers[worker].isLeaseArmed = true
        arm(.lease(worker: worker), at: workers[worker].leaseEnd)
    }

    mutating func leaseDue(_ worker: Int, at now: Moment, into effects: inout Effects) {
        workers[worker].isLeaseArmed = false
        guard workers[worker].isAlive else { return }
        // Deaf: nobody can be heard, so nobody is given up. `transportCameUp` arms it anew.
        guard isConnected else { return }
        guard workers[worker].leaseEnd <= now.monotonic else {
            armLease(of: worker)
            return
        }
        workers[worker].isAlive = false
        workers[worker].claim = nil
        effects.notices.append(.workerLost(workers[worker].identity))
        var places: [UInt32] = []
        var place = workers[worker].firstAttempt
        while place != GraphState.noAttempt {
            places.append(place)
            place = attempts[Int(place)]?.next ?? GraphState.noAttempt
        }
        for place in places.reversed() { comeBack(place, .lost, at: now, into: &effects) }
    }
}
