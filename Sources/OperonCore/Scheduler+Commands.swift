package import OperonModel

// Cancelling, suspending, limits and priorities: requests that act on operations that wait, are
// dispatched or run.
extension Scheduler {
    mutating func cancel(
        _ target: Target,
        as record: Record,
        _ reason: String,
        _ cascade: Bool,
        at now: Moment,
        into effects: inout Effects
    ) {
        switch target {
        case .operation(let operation):
            guard exists(operation) else {
                effects.refusals.append(unknown(target))
                return
            }
            let members = cascade ? withDependents(operation) : [operation]
            let affected = members.filter(mayBeCancelled)
            guard !affected.isEmpty else { return }
            effects.records.append(record)
            if cascade { noteRunning(affected, of: record, reason, into: &effects) }
            cancel(affected, reason: reason, at: now, into: &effects)
        case .graph(let id):
            guard Int(id.rawValue) < graphs.count else {
                effects.refusals.append(unknown(target))
                return
            }
            guard graphs[Int(id.rawValue)].unfinished > 0 else { return }
            if !graphs[Int(id.rawValue)].isCancelled {
                effects.records.append(record)
                graphs[Int(id.rawValue)].isCancelled = true
                graphs[Int(id.rawValue)].cancelReason = reason
            }
            let count = UInt32(graphs[Int(id.rawValue)].state.count)
            let members = (0..<count).map { OperationID(graph: id, index: $0) }
            cancel(members.filter(mayBeCancelled), reason: nil, at: now, into: &effects)
        case .queue(let name):
            guard let queue = queueNumbers[name] else {
                effects.refusals.append(unknown(target))
                return
            }
            let affected = members(of: queue).filter(mayBeCancelled)
            guard !affected.isEmpty else { return }
            effects.records.append(record)
            noteRunning(affected, of: record, reason, into: &effects)
            cancel(affected, reason: reason, at: now, into: &effects)
        }
    }

    private func mayBeCancelled(_ operation: OperationID) -> Bool {
        let graph = Int(operation.graph.rawValue)
        let index = Int(operation.index)
        return graphs[graph].state[index] != .finished
            && !graphs[graph].flags[index].contains(.cancelRequested)
    }

    /// Whoever reads the records knows neither dependents nor queues: what gets no outcome with the
    /// request has a record of its own.
    private func noteRunning(
        _ members: [OperationID],
        of record: Record,
        _ reason: String,
        into effects: inout Effects
    ) {
        guard case .cancelled(_, _, _, let client) = record else { return }
        for operation in members {
            switch state(of: operation) {
            case .dispatched, .executing:
                effects.records.append(
                    .cancelled(.operation(operation), reason: reason, cascade: false, by: client)
                )
            case .pending, .ready, .finished: continue
            }
        }
    }

    /// Members finish without releasing one another: all get their outcome before any dependent of
    /// theirs is looked at.
    private mutating func cancel(
        _ members: [OperationID],
        reason: String?,
        at now: Moment,
        into effects: inout Effects
    ) {
        var finished: [OperationID] = []
        for operation in members {
            let graph = Int(operation.graph.rawValue)
            let index = Int(operation.index)
            graphs[graph].flags[index].insert(.cancelRequested)
            if let reason { graphs[graph].reasons[operation.index] = reason }
            switch graphs[graph].state[index] {
            case .pending, .ready: finished.append(operation)
            case .dispatched, .executing:
                order(.cancel, attemptAt: graphs[graph].attempt[index], into: &effects)
            case .finished: break  // `mayBeCancelled` left them out.
            }
        }
        finishCancelled(finished, at: now, into: &effects)
    }

    private func members(of queue: Int) -> [OperationID] {
        var members: [OperationID] = []
        for number in graphs.indices {
            for index in 0..<UInt32(graphs[number].state.count)
            where graphs[number].queue(index) == queue {
                members.append(
                    OperationID(graph: GraphID(rawValue: UInt32(number)), index: index)
                )
            }
        }
        return members
    }

    /// The operation and everything that depends on it, directly or not, each once.
    package func withDependents(_ operation: OperationID) -> [OperationID] {
        let topology = graphs[Int(operation.graph.rawValue)].compiled.topology
        var seen = [Bool](repeating: false, count: topology.operationCount)
        seen[Int(operation.index)] = true
        var members = [operation.index]
        var position = 0
        while position < members.count {
            for edge in topology.dependents(of: members[position])
            where !seen[Int(edge.operation)] {
                seen[Int(edge.operation)] = true
                members.append(edge.operation)
            }
            position += 1
        }
        return members.map { OperationID(graph: operation.graph, index: $0) }
    }

    /// Tells the worker of an attempt to give it back or to stop it. Said again with every answer
    /// to a beat until its word on it arrives.
    mutating func order(
        _ recall: AttemptState.Recall,
        attemptAt place: UInt32,
        into effects: inout Effects
    ) {
        guard place != GraphState.noAttempt, let attempt = attempts[Int(place)] else { return }
        // A cancel may follow a recall, never the other way round.
        guard attempt.recall != recall, attempt.recall != .cancel else { return }
        attempts[Int(place)]?.recall = recall
        let held = HeldAttempt(attempt: attempt.id, operation: attempt.operation)
        let order: Order
        switch recall {
        case .none: return
        case .recall: order = .recall(held)
        case .cancel: order = .cancel(held)
        }
        send(
            .plain(
                .control(
                    Control(
                        acknowledged: workers[attempt.worker].handled,
                        orders: [order]
                    )
                )
            ),
            to: attempt.worker,
            into: &effects
        )
    }

    func exists(_ operation: OperationID) -> Bool {
        Int(operation.graph.rawValue) < graphs.count
            && Int(operation.index) < graphs[Int(operation.graph.rawValue)].state.count
    }

    private func unknown(_ target: Target) -> Refusal {
        switch target {
        case .operation(let id): .unknownOperation(name: id.description, namedBy: "the request")
        case .graph(let id): .invalid(field: "graph", why: "there is no graph \(id)")
        case .queue(let name): .invalid(field: "queue", why: "there is no queue “\(name)”")
        }
    }
}

// MARK: - Suspending

extension Scheduler {
    mutating func setSuspended(
        _ target: Target,
        _ suspension: Suspension?,
        into effects: inout Effects
    ) {
        let suspended = suspension != nil
        switch target {
        case .operation(let operation):
            guard exists(operation) else {
                effects.refusals.append(unknown(target))
                return
            }
            let graph = Int(operation.graph.rawValue)
            if suspended {
                graphs[graph].flags[Int(operation.index)].insert(.suspended)
                order(
                    .recall,
                    unlessStarted: graphs[graph].attempt[Int(operation.index)],
                    into: &effects
                )
            } else {
                graphs[graph].flags[Int(operation.index)].remove(.suspended)
                releaseHeldBack(operation)
            }
        case .graph(let id):
            guard Int(id.rawValue) < graphs.count else {
                effects.refusals.append(unknown(target))
                return
            }
            graphs[Int(id.rawValue)].isSuspended = suspended
            if suspended {
                recall(into: &effects) { _, attempt in attempt.operation.graph == id }
            } else {
                for index in 0..<UInt32(graphs[Int(id.rawValue)].state.count) {
                    releaseHeldBack(OperationID(graph: id, index: index))
                }
            }
        case .queue(let name):
            guard let queue = queueNumbers[name] else {
                effects.refusals.append(unknown(target))
                return
            }
            queues[queue].isSuspended = suspended
            if suspended { recall(into: &effects) { $0.queue(of: $1) == queue } }
        }
        effects.records.append(.suspended(target, suspension))
    }

    /// Puts back what a suspension set aside, unless another suspension still holds it.
    private mutating func releaseHeldBack(_ operation: OperationID) {
        let graph = Int(operation.graph.rawValue)
        let index = Int(operation.index)
        guard graphs[graph].state[index] == .ready,
            graphs[graph].flags[index].contains(.heldBack),
            !graphs[graph].flags[index].contains(.suspended), !graphs[graph].isSuspended
        else { return }
        enqueue(operation)
    }

    func queue(of attempt: AttemptState) -> Int {
        graphs[Int(attempt.operation.graph.rawValue)].queue(attempt.operation.index)
    }

    /// Recalls what was dispatched and has not started, in the order of the table of attempts.
    private mutating func recall(
        into effects: inout Effects,
        where matches: (Scheduler, AttemptState) -> Bool
    ) {
        let recalled = attempts.indices.filter { place in
            attempts[place].map { matches(self, $0) } ?? false
        }
        for place in recalled { order(.recall, unlessStarted: UInt32(place), into: &effects) }
    }

    private mutating func order(
        _ recall: AttemptState.Recall,
        unlessStarted place: UInt32,
        into effects: inout Effects
    ) {
        guard place != GraphState.noAttempt, let attempt = attempts[Int(place)],
            !attempt.hasStarted
        else { return }
        order(recall, attemptAt: place, into: &effects)
    }
}

// MARK: - Limits and priorities

extension Scheduler {
    mutating func setLimit(
        of name: String,
        to maximum: Int?,
        into effects: inout Effects
    ) {
        if let maximum, maximum < 0 {
            effects.refusals.append(
                .invalid(
                    field: "maxConcurrentOperationCount of “\(name)”",
                    why: "\(maximum) is negative"
                )
            )
            return
        }
        guard let queue = queueNumbers[name] else {
            effects.refusals.append(unknown(.queue(name)))
            return
        }
        queues[queue].maximum = maximum
        effects.records.append(.queueLimit(queue: name, maximum: maximum))
        for place in placesBeyondLimit(of: queue) {
            order(.recall, attemptAt: place, into: &effects)
        }
    }

    /// Those that run stay; those that have not started make room, the latest first.
    func placesBeyondLimit(of queue: Int) -> ArraySlice<UInt32> {
        guard let maximum = queues[queue].maximum else { return [] }
        var excess = queues[queue].inFlight - maximum
        var recallable: [(id: AttemptID, place: UInt32)] = []
        for place in attempts.indices {
            guard let attempt = attempts[place], self.queue(of: attempt) == queue,
                !attempt.hasStarted
            else { continue }
            switch attempt.recall {
            case .none: recallable.append((attempt.id, UInt32(place)))
            case .recall, .cancel: excess -= 1  // On its way out already.
            }
        }
        recallable.sort { $0.id > $1.id }
        return recallable.map(\.place).prefix(max(0, excess))
    }

    mutating func setPriority(
        of operation: OperationID,
        to priority: QueuePriority,
        into effects: inout Effects
    ) {
        guard exists(operation) else {
            effects.refusals.append(unknown(.operation(operation)))
            return
        }
        let graph = Int(operation.graph.rawValue)
        let index = Int(operation.index)
        switch graphs[graph].state[index] {
        case .executing:
            effects.refusals.append(.alreadyStarted(name: operation.description))
        case .finished:
            effects.refusals.append(.alreadyFinished(name: operation.description))
        case .pending, .ready, .dispatched:
            effects.records.append(.priority(operation, priority))
            guard graphs[graph].level[index] != priority.level else { return }
            graphs[graph].level[index] = priority.level
            if graphs[graph].flags[index].contains(.parked) {
                // What waits for a key is ordered by urgency as well: it comes up and parks anew.
                enqueue(operation)
                return
            }
            guard isEnqueued(operation) else { return }
            // The old entry stays behind in the heap until it comes up: its urgency tells.
            queues[graphs[graph].queue(operation.index)].ready -= 1
            enqueue(operation)
        }
    }
}

extension Scheduler {
    /// Gives operations that wait their outcome `cancelled`, then looks at their dependents.
    private mutating func finishCancelled(
        _ operations: [OperationID],
        at now: Moment,
        into effects: inout Effects
    ) {
        for operation in operations {
            settle(operation, cancelledOutcome(of: operation), into: &effects)
        }
        for operation in operations {
            release(dependentsOf: operation, outcome: .cancelled, at: now, into: &effects)
            drainWorklist(at: now, into: &effects)
        }
    }
}
