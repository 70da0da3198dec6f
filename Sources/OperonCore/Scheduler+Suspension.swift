package import OperonModel

// Suspending and resuming. Operations that were held back return to their lanes when the last
// suspension that concerns them ends: by a command, or when its time has come.
extension Scheduler {
    mutating func setSuspended(
        _ target: Target,
        _ suspension: Suspension?,
        at now: Moment,
        into effects: inout Effects
    ) {
        if let until = suspension?.until, until <= now.wall {
            let past = Refusal.invalid(field: "until", why: "it has passed already")
            effects.refusals.append(.worded(past))
            return
        }
        switch target {
        case .operation(let operation):
            guard exists(operation) else {
                effects.refusals.append(unknown(target))
                return
            }
            setSuspended(operation, suspension, at: now, into: &effects)
        case .graph(let id):
            guard exists(id), !isGone(id) else {
                effects.refusals.append(unknown(target))
                return
            }
            setSuspended(id, suspension, at: now, into: &effects)
        case .queue(let name):
            guard let queue = madeQueue(name, into: &effects) else { return }
            queues[queue].commanded.insert(.suspension)
            setSuspended(queue: queue, suspension, at: now, into: &effects)
        }
        effects.records.append(.suspended(target, suspension))
        effects.results.append(result(of: target))
    }

    private mutating func setSuspended(
        _ operation: OperationID,
        _ suspension: Suspension?,
        at now: Moment,
        into effects: inout Effects
    ) {
        guard let suspension else {
            graphs[flags: operation].remove(.suspended)
            if !graphs[operation.graph].suspensions.isEmpty {
                graphs[operation.graph].suspensions[operation.index] = nil
            }
            releaseHeldBack(operation)
            return
        }
        graphs[flags: operation].insert(.suspended)
        let isPlain = suspension == Suspension()
        if !isPlain || !graphs[operation.graph].suspensions.isEmpty {
            graphs[operation.graph].suspensions[operation.index] = isPlain ? nil : suspension
        }
        arm(.operation(operation), suspension, at: now)
        order(.recall, unlessStarted: graphs[attempt: operation], into: &effects)
    }

    private mutating func setSuspended(
        _ id: GraphID,
        _ suspension: Suspension?,
        at now: Moment,
        into effects: inout Effects
    ) {
        graphs[id].suspension = suspension
        guard let suspension else {
            for index in graphs.indices(of: id) {
                releaseHeldBack(OperationID(graph: id, index: index))
            }
            return
        }
        arm(.graph(id), suspension, at: now)
        recall(into: &effects) { _, attempt in attempt.operation.graph == id }
    }

    mutating func setSuspended(
        queue: Int,
        _ suspension: Suspension?,
        at now: Moment,
        into effects: inout Effects
    ) {
        queues[queue].suspension = suspension
        guard let suspension else { return }
        arm(.queue(queue), suspension, at: now)
        recall(into: &effects) { $0.queue(of: $1) == queue }
    }

    mutating func arm(
        _ suspended: Deadline.Suspended,
        _ suspension: Suspension,
        at now: Moment
    ) {
        guard let until = suspension.until, configuration.violation != .forgetsUntil else { return }
        arm(.resume(suspended, until: until), on: until, at: now)
    }

    /// The end of a suspension may have come. It ends by a record, so that setting the clock back
    /// does not bring it back.
    mutating func resumeDue(
        _ suspended: Deadline.Suspended,
        until: WallTime,
        at now: Moment,
        into effects: inout Effects
    ) {
        let target = target(of: suspended)
        // benign: it was resumed, or suspended again with another end, meanwhile.
        guard suspension(of: target)?.until == until else { return }
        switch suspended {
        case .operation(let operation):
            setSuspended(operation, nil, at: now, into: &effects)
        case .graph(let graph): setSuspended(graph, nil, at: now, into: &effects)
        case .queue(let queue): setSuspended(queue: queue, nil, at: now, into: &effects)
        }
        effects.records.append(.suspended(target, nil))
    }

    /// Who suspended the target, why and until when; `nil` if it is not suspended. This is only
    /// about the target itself: the graph and the queue of an operation may be suspended too.
    package func suspension(of target: Target) -> Suspension? {
        switch target {
        case .operation(let operation):
            guard exists(operation) else { return nil }
            guard graphs[flags: operation].contains(.suspended) else { return nil }
            return graphs[operation.graph].suspensions[operation.index] ?? Suspension()
        case .graph(let graph):
            return exists(graph) ? graphs[graph].suspension : nil
        case .queue(let name): return queueNumbers[name].flatMap { queues[$0].suspension }
        }
    }

    /// Returns a held-back operation to its lane, unless another suspension still concerns it.
    private mutating func releaseHeldBack(_ operation: OperationID) {
        guard graphs[state: operation] == .ready,
            graphs[flags: operation].isDisjoint(with: [.inLane, .delayed, .parked, .suspended]),
            !graphs[operation.graph].isSuspended
        else { return }
        enqueue(operation)
    }

    func queue(of attempt: AttemptState) -> Int {
        graphs.queue(of: attempt.operation)
    }

    /// Recalls dispatched operations that have not started, in the order of the table of attempts.
    private mutating func recall(
        into effects: inout Effects,
        where matches: (Scheduler, AttemptState) -> Bool
    ) {
        let recalled = attempts.places.filter { place in
            attempts[place].map { matches(self, $0) } ?? false
        }
        for place in recalled { order(.recall, unlessStarted: place, into: &effects) }
    }

    mutating func order(
        _ recall: AttemptState.Recall,
        unlessStarted place: UInt32,
        into effects: inout Effects
    ) {
        guard let attempt = attempts[place],
            !attempt.hasStarted
        else { return }
        order(recall, attemptAt: place, into: &effects)
    }
}
