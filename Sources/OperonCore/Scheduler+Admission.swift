import HeapModule
import OperonModel

// Chooses which operation goes to which worker, and when.
extension Scheduler {
    /// Grants ready operations until no worker has room for any of them.
    mutating func admit(at now: Moment, into effects: inout Effects) {
        guard !isLeaving || configuration.violation == .startsWhileLeaving else { return }
        if isConnected { resumeYielded(into: &effects) }
        ready.unlistEmptyExternals()
        // A worker that is kept no longer may be used by others, or kept for them.
        var ended: UInt64
        repeat {
            ended = endedReservations
            admitWhatFits(at: now, into: &effects)
        } while lapseReservations() || endedReservations > ended && mayStartSomething
    }

    /// Takes back the reservations of queues that may start nothing more now, although something
    /// else could: it may use what they kept.
    private mutating func lapseReservations() -> Bool {
        guard !reservations.isEmpty else { return false }
        let kept = reservations.filter { mayKeepReservation($0.operation) }
        guard kept.count < reservations.count else { return false }
        reservations = kept
        return mayStartSomething
    }

    private mutating func admitWhatFits(at now: Moment, into effects: inout Effects) {
        // What has a reservation keeps it, whichever queue is served first.
        let before = reservations.filter { mayKeepReservation($0.operation) }
        reservations = before
        guard mayStartSomething else { return armRatesOfExternals() }
        reservations.removeAll(keepingCapacity: true)
        for kept in before {
            reserve(for: kept.operation, demand(of: kept.operation), keeping: before)
        }
        admissions += 1
        lineUpQueues()
        while let queue = line.first {
            visitCount += 1
            guard let (lane, worker) = bestPlacement(in: queue, keeping: before) else {
                // It may have set operations aside, and belong to another group now.
                lineUpQueues()
                standAside(queue)
                continue
            }
            guard let entry = ready[lane].heap.max else {
                preconditionFailure("bestPlacement found it there")
            }
            ready.removeFirst(of: lane)
            takeTokens(of: entry.operation, at: now, into: &effects)
            if let worker {
                grant(entry.operation, to: worker, at: now, into: &effects)
            } else {
                startExternal(entry.operation, at: now, into: &effects)
            }
            guard mayStartSomething else {
                armRatesOfExternals()
                break
            }
            lineUpQueues()
        }
        endAdmission()
    }

    /// Whether some worker may have room, or some ready operation needs none.
    var mayStartSomething: Bool {
        // A method as an argument would copy the whole scheduler, for each operation.
        if isConnected, workers.indices.contains(where: { mayHaveRoom($0) }) { return true }
        return ready.external.contains { !ready[$0].heap.isEmpty && mayServe(ready[$0].queue) }
    }

    func mayServe(_ queue: Int) -> Bool { hasPlace(queue) && tokenTime(of: queue) == nil }

    /// Whether the queue may start something as soon as it has a token.
    func hasPlace(_ queue: Int) -> Bool {
        ready.count(of: queue) > 0 && !queues[queue].isSuspended
            && (queues[queue].hasRoomForNew || configuration.violation == .ignoresQueueLimit)
    }

    /// When the queue has a token; `nil`: it has one now, or needs none.
    func tokenTime(of queue: Int) -> Timestamp? {
        guard configuration.violation != .ignoresRates else { return nil }
        return queues[queue].bucket?.nextStart(at: lastEventAt)
    }

    /// Whether an operation waits for nothing but room at a worker.
    private func mayKeepReservation(_ operation: OperationID) -> Bool {
        isEnqueued(operation) && !graphs[operation.graph].isSuspended
            && !graphs[flags: operation].contains(.suspended)
            && mayServe(graphs.queue(of: operation))
            && heldKey(of: operation) == nil && hasRoom(forBytesOf: operation)
    }

    /// The lane whose first operation is the most urgent of those that a worker has room for or
    /// that need no room. The first in line that asks for amounts, and that some worker could run,
    /// reserves a worker if none has room.
    private mutating func bestPlacement(
        in queue: Int,
        keeping before: [Reservation]
    ) -> (lane: Int, worker: Int?)? {
        var place = 0
        var mayReserve = true
        let hasFreeSlot =
            demands.usedCount == 0
            || workers.indices.contains { workers[$0].room.freeSlots > 0 && mayHaveRoom($0) }
        while place < ready.lanes(of: queue).count {
            let lane = ready.lanes(of: queue)[place]
            visitCount += 1
            if ready[lane].blockedIn == admissions {
                // It has reserved a worker before, if it could.
                if hasReservation(ready[lane].head?.operation) { mayReserve = false }
                place += 1
                continue
            }
            // What asks for amounts is never read ahead.
            if !mayReserve, !hasFreeSlot, !demands[ready[lane].demand].isBare {
                place += 1
                continue
            }
            let head = ready[lane].head
            guard let entry = firstAdmissible(in: lane), entry == head else {
                // Emptied, or with another entry first: the lanes stand in another order now.
                place = 0
                continue
            }
            place += 1
            if ready[lane].isExternal {
                if mayReserve || !isLastStart(of: queue) { return (lane, nil) }
                continue
            }
            guard isConnected, hasRoom(forBytesOf: entry.operation) else { continue }
            let demand = demand(of: entry.operation)
            if mayReserve || !isLastStart(of: queue),
                let worker = placement(of: entry.operation, demand)
            {
                return (lane, worker)
            }
            ready.block(lane, in: admissions)
            guard mayReserve, !demands[demand.demand].isBare else { continue }
            reserveFirst(entry.operation, demand, in: queue, keeping: before)
            if hasReservation(entry.operation) { mayReserve = false }
        }
        return nil
    }

    private func hasReservation(_ operation: OperationID?) -> Bool {
        reservations.contains { $0.operation == operation }
    }

    /// Whether a queue can start only one operation now: that is for the one with a reservation.
    func isLastStart(of queue: Int) -> Bool {
        queues[queue].placesLeft == 1 || queues[queue].bucket?.hasOneToken(at: lastEventAt) == true
    }

    /// Keeps a worker for the first in line of a queue, and no longer for one behind it.
    private mutating func reserveFirst(
        _ operation: OperationID,
        _ demand: Demand,
        in queue: Int,
        keeping before: [Reservation]
    ) {
        if hasReservation(operation) { return }
        let kept = reservations
        reservations = kept.filter { graphs.queue(of: $0.operation) != queue }
        let count = reservations.count
        reserve(for: operation, demand, keeping: before)
        guard reservations.count > count else {
            reservations = kept
            return
        }
        if count < kept.count { endedReservations += 1 }
    }

    /// Skips entries that are out of date, and sets aside operations that are suspended or parked.
    private mutating func firstAdmissible(in lane: Int) -> ReadyEntry? {
        while let entry = ready[lane].heap.max {
            let operation = entry.operation
            // The urgency differs: the priority was changed, and the new entry is elsewhere in the
            // heap.
            guard isEnqueued(operation),
                entry.urgency == graphs.urgency(of: operation)
            else {
                ready.removeFirst(of: lane)
                continue
            }
            if graphs[operation.graph].isSuspended || graphs[flags: operation].contains(.suspended)
            {
                ready.removeFirst(of: lane)
                leaveLane(operation)
                passKeysOn(of: operation)
                continue
            }
            if let key = heldKey(of: operation) {
                ready.removeFirst(of: lane)
                graphs[flags: operation].insert(.parked)
                park(entry, of: lane, at: key)
                leaveLane(operation)
                passKeysOn(of: operation)
                continue
            }
            return entry
        }
        return nil
    }

    /// Whether the worker of this index could take the shortest possible operation. Asked for each
    /// admission and worker, so it copies no worker.
    func mayHaveRoom(_ worker: Int) -> Bool {
        workers[worker].takesWork && workers[worker].claim?.isOfHello != true
            && workers[worker].room.hasRoom(for: estimateMinimum, readAhead)
            && isWithinReach(
                heardAt: workers[worker].heardAt,
                isReturned: workers[worker].isReturned
            )
    }

    /// Whether a message to the worker will probably arrive. A worker out of reach gets nothing
    /// until it is heard again; only its lease decides about what it holds.
    func isWithinReach(_ worker: WorkerState) -> Bool {
        isWithinReach(heardAt: worker.heardAt, isReturned: worker.isReturned)
    }

    private func isWithinReach(heardAt: Timestamp, isReturned: Bool) -> Bool {
        guard configuration.violation != .placesOnSilent else { return true }
        // A sum: the product is a generic function.
        let reach = configuration.beat + configuration.beat
        return !isReturned && lastEventAt - heardAt <= reach
    }

    /// The broker returned a message to a worker: nothing consumes at that address.
    mutating func setAside(_ address: WorkerAddress) {
        // benign: an earlier connection of a worker that has another connection by now.
        guard let worker = workerNumbers[address.incarnation],
            workers[worker].identity.connection == address.connection
        else { return }
        workers[worker].isReturned = true
    }

    func hasWorkerWithRoom(for operation: OperationID) -> Bool {
        placement(of: operation, demand(of: operation)) != nil
    }

    func demand(of operation: OperationID) -> Demand {
        let rule = graphs.rule(of: operation)
        return Demand(
            queue: rule.queue,
            kind: rule.kind,
            demand: rule.demand,
            estimate: estimate(operation)
        )
    }

    /// A single operation always has room, however large.
    private func hasRoom(forBytesOf operation: OperationID) -> Bool {
        let bytes = byteCount(of: operation)
        return bytes == 0 || dispatchedBytes == 0
            || dispatchedBytes + bytes <= configuration.limits.dispatchedBytes
    }

    func byteCount(of operation: OperationID) -> Int { graphs.byteCount(of: operation) }

    /// The expected run time of an attempt, in nanoseconds. An unknown time counts as long: see
    /// `KindState`.
    func estimate(_ operation: OperationID) -> Int64 {
        let rule = graphs.rule(of: operation)
        let known = rule.estimate ?? kinds[rule.kind].duration
        return max(known ?? Self.unknownEstimate, estimateMinimum)
    }

    /// In nanoseconds. Even `nothing` costs its worker some ten microseconds of message handling.
    private var estimateMinimum: Int64 { 20_000 }
}

// MARK: - Attempts

extension Scheduler {
    mutating func nextAttempt(of operation: OperationID) -> AttemptID {
        guard configuration.violation != .reusesAttempts else {
            return AttemptID(epoch: epoch, number: UInt64(operation.index) + 1)
        }
        defer { nextAttemptNumber += 1 }
        let isNumberedAnew = configuration.violation == .numbersAttemptsAnew
        return AttemptID(
            epoch: isNumberedAnew ? Epoch(rawValue: 0) : epoch,
            number: nextAttemptNumber
        )
    }

    private mutating func grant(
        _ operation: OperationID,
        to worker: Int,
        at now: Moment,
        into effects: inout Effects
    ) {
        let id = nextAttempt(of: operation)
        let queue = graphs.queue(of: operation)
        let expected = estimate(operation)
        leaveLane(operation)
        servings += 1
        queues[queue].servedAt = servings
        graphs.move(operation, to: .dispatched)
        graphs[flags: operation].remove(.comesBack)
        graphs[ordinal: operation] += 1
        let place = store(
            AttemptState(
                id: id,
                operation: operation,
                ordinal: graphs[ordinal: operation],
                worker: worker,
                sequence: 0,
                estimate: expected,
                grantedAt: now.monotonic
            )
        )
        if !reservations.isEmpty {
            if let place = reservations.firstIndex(where: { $0.operation == operation }) {
                reservations.remove(at: place)
                endedReservations += 1
            }
            countAgainstReservation(operation, on: worker)
        }
        effects.granted(
            id,
            operation,
            ordinal: graphs[ordinal: operation],
            to: workers[worker].identity.incarnation
        )
        dispatch(place, into: &effects)
    }

    /// Stores an attempt in the table and in its worker's list, and takes its resources: a place in
    /// its queue, its bytes, its keys.
    ///
    /// - Parameter isForced: The worker has the attempt already, with room or without.
    mutating func store(_ attempt: AttemptState, isForced: Bool = false) -> UInt32 {
        takeRoom(of: attempt, isForced: isForced)
        if graphs.rule(of: attempt.operation).hasKeys { takeKeys(of: attempt.operation) }
        let place = attempts.insert(attempt)
        graphs[attempt: attempt.operation] = place
        return place
    }

    /// An attempt takes a slot and its amounts of its worker, a place in its queue and its bytes.
    ///
    /// - Parameter isForced: There may be no room for it.
    mutating func takeRoom(of attempt: AttemptState, isForced: Bool = false) {
        workers[attempt.worker].room.take(attempt.estimate)
        let demand = graphs.rule(of: attempt.operation).demand
        if demand > 0 {
            let needs = demands[demand].needs
            if isForced, !workers[attempt.worker].room.has(needs) {
                workers[attempt.worker].mayBeOver = true
            }
            workers[attempt.worker].room.take(needs)
        }
        queues[queue(of: attempt)].take()
        dispatchedBytes += byteCount(of: attempt.operation)
    }

    /// Gives back what `takeRoom` took.
    mutating func giveRoom(of attempt: AttemptState) {
        workers[attempt.worker].room.give(attempt.estimate)
        let demand = graphs.rule(of: attempt.operation).demand
        if demand > 0 {
            workers[attempt.worker].room.give(demands[demand].needs)
            if workers[attempt.worker].mayBeOver {
                workers[attempt.worker].mayBeOver = workers[attempt.worker].room.isOver
            }
        }
        queues[queue(of: attempt)].give()
        dispatchedBytes -= byteCount(of: attempt.operation)
    }

    /// Whether an earlier attempt at the operation has failed, was lost, or belonged to an earlier
    /// round.
    private func mayHaveStarted(_ operation: OperationID) -> Bool {
        let graph = graphs[operation.graph]
        return graph.operations.retries[operation.index] > 0
            || graph.losses[operation.index] != nil || graph.rounds[operation.index] != nil
    }

    /// Sends an attempt to its worker, for the first time or again.
    mutating func dispatch(_ place: UInt32, into effects: inout Effects) {
        guard let attempt = attempts[place] else {
            preconditionFailure("only places of attempts in flight are dispatched")
        }
        var grant = Grant(
            held: HeldAttempt(attempt: attempt.id, operation: attempt.operation),
            ordinal: attempt.ordinal,
            priority: QueuePriority(level: graphs[level: attempt.operation]) ?? .normal,
            rank: graphs.rank(of: attempt.operation)
        )
        let rule = graphs.rule(of: attempt.operation)
        if rule.isExclusive { grant.exclusiveLease = configuration.exclusiveLease }
        if !graphs[attempt.operation.graph].losses.isEmpty,
            graphs[attempt.operation.graph].losses[attempt.operation.index] != nil
        {
            grant.isIsolated =
                kinds[rule.kind].canKillWorker && configuration.violation != .neverIsolates
            grant.announcesStart = lostAttempts[attempt.operation] != nil
        }
        // One that was given back has not started, and is no retry.
        grant.isRepeat = attempt.ordinal > 1 && mayHaveStarted(attempt.operation)
        let address = workers[attempt.worker].address
        let joined = effects.messages.last.map {
            $0.destination == .worker(address) && !grant.announcesStart
                && $0.body.hasRoom(forGrantsUpTo: configuration.operationsPerMessage)
        }
        if joined == true {
            effects.messages[effects.messages.count - 1].body.append(grant)
        } else {
            send(
                .dispatch(acknowledged: workers[attempt.worker].handled, [grant]),
                to: attempt.worker,
                into: &effects
            )
        }
        attempts.update(place) { $0.sequence = workers[attempt.worker].sequence }
    }

    mutating func send(
        _ body: Body,
        verdicts: [Verdict] = [],
        to worker: Int,
        into effects: inout Effects
    ) {
        workers[worker].sequence += 1
        workers[worker].unacknowledgedBytes = 0
        effects.messages.append(
            Message(
                destination: .worker(workers[worker].address),
                sequence: workers[worker].sequence,
                body: body,
                verdicts: verdicts
            )
        )
    }

    /// Removes an attempt from the table and from its worker's list, and gives back its place in
    /// the queue and its keys. The caller sets the operation's state.
    mutating func removeAttempt(_ place: UInt32) -> AttemptState {
        endWait(ofAttemptAt: place)
        let attempt = attempts.remove(place)
        graphs[attempt: attempt.operation] = AttemptTable.none
        giveRoom(of: attempt)
        if graphs.rule(of: attempt.operation).hasKeys { freeKeys(of: attempt.operation) }
        return attempt
    }
}
