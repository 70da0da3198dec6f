import OperonModel

// Which worker gets an operation, and which worker is kept for one that finds no room.
extension Scheduler {
    /// The worker that is to run an operation now; `nil`: none has room.
    ///
    /// - Parameter reserved: Whether reservations for other operations count.
    func placement(
        of operation: OperationID,
        _ demand: Demand,
        reserved: Bool = true
    ) -> Int? {
        if demands[demand.demand].isBare {
            return placement(ofBare: operation, demand, reserved: reserved)
        }
        return bestFit(operation, demand, reserved: reserved)
    }

    /// The worker with the most room, or `nil` if none has any. Among equals it is the worker that
    /// was heard last, because a worker that has died unnoticed is no longer heard.
    private func placement(
        ofBare operation: OperationID,
        _ demand: Demand,
        reserved: Bool
    ) -> Int? {
        var best: Int?
        var mostRoom = Int.min
        for index in workers.indices where mayHaveRoom(index) {
            let room = workers[index].room.freeSlots
            guard room >= mostRoom, workers[index].accepts(demand),
                workers[index].room.hasRoom(for: demand.estimate, readAhead),
                !reserved || reservations.isEmpty || isLet(operation, demand, to: index)
            else { continue }
            if let best, room == mostRoom, workers[index].heardAt <= workers[best].heardAt {
                continue
            }
            best = index
            mostRoom = room
        }
        return best
    }

    /// The worker on which the least is left over, so that large rooms stay for large operations.
    /// Amounts are never read ahead: only a worker that has all of them now is given the operation.
    private func bestFit(_ operation: OperationID, _ demand: Demand, reserved: Bool) -> Int? {
        let needs = demands[demand.demand].needs
        var best: (worker: Int, waste: (foreign: Int, left: Int))?
        for index in workers.indices {
            guard fits(needs, on: index), workers[index].accepts(demand),
                mayHaveRoom(index),
                !reserved || reservations.isEmpty || isLet(operation, demand, to: index)
            else { continue }
            let waste = waste(of: needs, on: index)
            if let best {
                if waste > best.waste { continue }
                if waste == best.waste, workers[index].heardAt <= workers[best.worker].heardAt {
                    continue
                }
            }
            best = (index, waste)
        }
        return best?.worker
    }

    /// How badly it fits: the smaller of two comes first. First it counts the resources that the
    /// worker offers and the class does not need: a worker with GPUs is the last for an operation
    /// that needs none, whether or not others are known to need them. Then what is left over.
    private func waste(
        of needs: [DemandClass.Need],
        on worker: Int
    ) -> (foreign: Int, left: Int) {
        let foreign = workers[worker].offer.resources.all.count - needs.count
        return (foreign, workers[worker].room.rest(needs))
    }

    /// Whether a worker has a slot and these amounts left now. An operation there that wants to go
    /// on and needs amounts is served first.
    func fits(_ needs: [DemandClass.Need], on worker: Int) -> Bool {
        let room = workers[worker].room
        guard room.freeSlots > 0, room.resumingWithNeeds == 0 else { return false }
        return room.has(needs) || configuration.violation == .overbooksResources
    }

    // MARK: - Reservations

    /// Whether an operation may use a worker that may be reserved for another one.
    func isLet(_ operation: OperationID, _ demand: Demand, to worker: Int) -> Bool {
        for reservation in reservations where reservation.worker == worker {
            if reservation.operation == operation { return true }
            // Read ahead, it would take a slot that is not free.
            guard workers[worker].room.freeSlots > 0 else { return false }
            return reservation.lets(demands[demand.demand].needs, endingAt: end(of: demand))
        }
        return true
    }

    /// When an operation that starts now is expected to have ended; `nil`: that is not known.
    private func end(of demand: Demand) -> Timestamp? {
        guard demand.estimate < Self.unknownEstimate else { return nil }
        return lastEventAt + .nanoseconds(demand.estimate)
    }

    /// Counts a new attempt against the reservation of its worker.
    mutating func countAgainstReservation(_ operation: OperationID, on worker: Int) {
        guard
            let place = reservations.firstIndex(where: {
                $0.worker == worker && $0.operation != operation
            })
        else { return }
        let demand = demand(of: operation)
        reservations[place].take(demands[demand.demand].needs, endingAt: end(of: demand))
    }

    /// Keeps a worker for an operation that finds no room. An operation keeps the worker that it
    /// had before, so that a reservation that is not kept in time does not move on for ever.
    ///
    /// - Parameter before: The reservations of the previous admission.
    mutating func reserve(
        for operation: OperationID,
        _ demand: Demand,
        keeping before: [Reservation]
    ) {
        guard configuration.violation != .reservesNothing else { return }
        if let kept = before.first(where: { $0.operation == operation })?.worker,
            let reservation = reservation(of: kept, for: operation, demand)
        {
            reservations.append(reservation.made)
            return
        }
        var best: (made: Reservation, ends: Int)?
        for index in workers.indices {
            guard let next = reservation(of: index, for: operation, demand) else { continue }
            if let best, (best.made.time, best.ends) <= (next.made.time, next.ends) { continue }
            best = next
        }
        if let best { reservations.append(best.made) }
    }

    /// A reservation of a worker, and how many attempts have to end before it is due; `nil`: the
    /// worker never has room for it, or is reserved.
    private func reservation(
        of worker: Int,
        for operation: OperationID,
        _ demand: Demand
    ) -> (made: Reservation, ends: Int)? {
        let state = workers[worker]
        guard state.takesWork, isWithinReach(state), state.accepts(demand), state.room.slots > 0,
            !reservations.contains(where: { $0.worker == worker })
        else { return nil }
        let needs = demands[demand.demand].needs
        var left = demands.resources.indices.map { state.room.left(of: $0) }
        var slots = state.room.freeSlots
        func isEnough() -> Bool {
            slots > 0 && needs.allSatisfy { left[$0.resource] >= $0.amount }
        }
        var time = lastEventAt
        var ends = 0
        let running = attempts.owned(by: worker).map(\.attempt).filter { !$0.isYielded }
            .map { (end: expectedEnd(of: $0), attempt: $0) }
            .sorted { ($0.end, $0.attempt.id) < ($1.end, $1.attempt.id) }
        for (end, attempt) in running {
            // Whatever ends by then leaves its part to others, too.
            if isEnough(), end > time { break }
            time = end
            ends += 1
            slots += 1
            for need in demandClass(of: attempt.operation).needs {
                left[need.resource] += need.amount
            }
        }
        // A worker that has taken on too much, or is short of slots.
        guard isEnough() else { return nil }
        for need in needs { left[need.resource] -= need.amount }
        let made = Reservation(
            operation: operation,
            worker: worker,
            time: time,
            slots: slots - 1,
            left: left
        )
        return (made, ends)
    }

    /// An operation that waits only for amounts must keep a worker, if one can be kept: that this
    /// is not so, as a sentence.
    func violatedInvariantOfReservations() -> String? {
        guard isConnected, !isLeaving, mayStartSomething else { return nil }
        for queue in ready.queues where mayServe(queue) {
            // Those that no worker had room for in the last admission, the most urgent first.
            for lane in ready.lanes(of: queue) where ready[lane].blockedIn == admissions {
                guard let operation = ready[lane].head?.operation else { continue }
                if reservations.contains(where: { $0.operation == operation }) { break }
                let demand = demand(of: operation)
                guard !demands[demand.demand].isBare,
                    workers.indices.contains(where: {
                        reservation(of: $0, for: operation, demand) != nil
                    })
                else { continue }
                return "\(operation) is first in line and keeps no worker"
            }
        }
        return nil
    }

    private func expectedEnd(of attempt: AttemptState) -> Timestamp {
        guard attempt.estimate < Self.unknownEstimate else { return lastEventAt }
        let start = attempt.startedAt ?? attempt.grantedAt
        return max(lastEventAt, start + .nanoseconds(attempt.estimate))
    }

    /// What `estimate` gives for a run time of which nothing is known, in nanoseconds.
    static var unknownEstimate: Int64 { .max / 4 }
}
