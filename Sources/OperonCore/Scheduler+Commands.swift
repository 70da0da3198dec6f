package import OperonModel

// Cancelling waiting, dispatched and running operations. Suspensions, limits and priorities have
// files of their own.
extension Scheduler {
    mutating func cancel(
        _ target: Target,
        as record: Record,
        _ reason: String,
        _ cascade: Bool,
        at now: Moment,
        into effects: inout Effects
    ) {
        var members: [OperationID]
        var stated: String? = reason
        switch target {
        case .operation(let operation):
            guard exists(operation) else {
                effects.refusals.append(unknown(target))
                return
            }
            members = cascade ? withDependents(operation) : [operation]
            members.removeAll { !mayBeCancelled($0) }
            guard !members.isEmpty else { break }
            // If the operation has ended already, only its dependents are cancelled. Each has its
            // own record.
            if members.first == operation { effects.records.append(record) }
            if cascade { noteRunning(members, of: record, reason, into: &effects) }
        case .graph(let id):
            guard exists(id) else {
                effects.refusals.append(unknown(target))
                return
            }
            members = admitNoMore(to: id, as: record, reason, into: &effects)
                .filter(mayBeCancelled)
            stated = nil
        case .queue(let name):
            guard let queue = queueNumbers[name] else {
                effects.refusals.append(unknown(target))
                return
            }
            members = self.members(of: queue).filter(mayBeCancelled)
            guard !members.isEmpty else { break }
            effects.records.append(record)
            noteRunning(members, of: record, reason, into: &effects)
        }
        cancel(members, reason: stated, at: now, into: &effects)
        var result = result(of: members)
        result.released = waitingDependents(of: members)
        effects.results.append(result)
    }

    /// Cancels operations that no client named.
    mutating func cancel(
        each operations: [OperationID],
        reason: String,
        at now: Moment,
        into effects: inout Effects
    ) {
        let members = operations.filter(mayBeCancelled)
        guard let first = members.first else { return }
        let record = Record.cancelled(.operation(first), reason: reason, cascade: false, by: "")
        noteRunning(members, of: record, reason, into: &effects)
        cancel(members, reason: reason, at: now, into: &effects)
    }

    private func mayBeCancelled(_ operation: OperationID) -> Bool {
        graphs[state: operation] != .finished
            && !graphs[flags: operation].contains(.cancelRequested)
    }

    /// Records the cancel of each operation that gets no outcome with the request. A reader of the
    /// records knows neither dependents nor queues, so each such operation needs its own record.
    private func noteRunning(
        _ members: [OperationID],
        of record: Record,
        _ reason: String,
        into effects: inout Effects
    ) {
        guard case .cancelled(_, _, _, let client) = record else { return }
        // An external operation ends with the request.
        for operation in members where externals[operation] == nil {
            switch state(of: operation) {
            case .dispatched, .executing:
                effects.records.append(
                    .cancelled(.operation(operation), reason: reason, cascade: false, by: client)
                )
            case .pending, .ready, .finished: continue
            }
        }
    }

    /// Cancels a graph as a whole, without visiting its members, which it returns.
    private mutating func admitNoMore(
        to id: GraphID,
        as record: Record,
        _ reason: String,
        into effects: inout Effects
    ) -> [OperationID] {
        // If the graph has nothing to do, nothing is cancelled, but it is closed to additions.
        let hasMembers = graphs[id].unfinished > 0
        if hasMembers, !graphs[id].isCancelled {
            effects.records.append(record)
            graphs[id].isCancelled = true
            graphs[id].cancelReason = reason
        }
        if graphs[id].isOpen { close(id, into: &effects) }
        guard hasMembers else { return [] }
        return graphs.indices(of: id).map { OperationID(graph: id, index: $0) }
    }

    /// The members do not release one another when they finish: all get their outcomes before any
    /// of their dependents is visited.
    private mutating func cancel(
        _ members: [OperationID],
        reason: String?,
        at now: Moment,
        into effects: inout Effects
    ) {
        var waiting: [OperationID] = []
        var stopped: [OperationID] = []
        var isInOrder = true
        waiting.reserveCapacity(members.count)
        for operation in members {
            graphs[flags: operation].insert(.cancelRequested)
            switch graphs[state: operation] {
            case .pending, .ready:
                if let last = waiting.last, operation < last { isInOrder = false }
                waiting.append(operation)
            case .dispatched, .executing:
                if let reason { graphs[operation.graph].reasons[operation.index] = reason }
                if stopExternal(operation, .cancelled, at: now, into: &effects) {
                    stopped.append(operation)
                } else {
                    order(.cancel, attemptAt: graphs[attempt: operation], into: &effects)
                }
            case .finished: break  // `mayBeCancelled` left them out.
            }
        }
        // Dependents are listed breadth first. All others are in order already.
        if !isInOrder { waiting.sort() }
        settle(waiting, cancelledFor: reason, at: now, into: &effects)
        for operation in stopped {
            settle(operation, cancelledOutcome(of: operation), at: now, into: &effects)
        }
        waiting += stopped
        for operation in waiting {
            release(dependentsOf: operation, outcome: .cancelled, at: now, into: &effects)
            drainWorklist(at: now, into: &effects)
        }
    }

    func members(of queue: Int) -> [OperationID] {
        var members: [OperationID] = []
        guard queues[queue].users > 0 else { return members }
        for id in graphs.kept where graphs[id].unfinished > 0 {
            for index in graphs[id].operations.indices
            where graphs[id].queue(index) == queue {
                members.append(OperationID(graph: id, index: index))
            }
        }
        return members
    }

    /// The operation and everything that depends on it, directly or not, in any graph, each once.
    package func withDependents(_ operation: OperationID) -> [OperationID] {
        var seen: Set<OperationID> = [operation]
        var members = [operation]
        var position = 0
        while position < members.count {
            forEachDependent(of: members[position]) { dependent, _ in
                if seen.insert(dependent).inserted { members.append(dependent) }
            }
            position += 1
        }
        return members
    }

    /// Orders the worker of an attempt to give it back or to stop it. Every answer to a beat
    /// repeats the order until the worker has reported the attempt's end.
    mutating func order(
        _ recall: AttemptState.Recall,
        attemptAt place: UInt32,
        into effects: inout Effects
    ) {
        guard let attempt = attempts[place] else { return }
        // A cancel may replace a recall, but never the reverse.
        guard attempt.recall != recall, attempt.recall != .cancel else { return }
        attempts.update(place) { $0.recall = recall }
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

    func unknown(_ target: Target) -> NumberedRefusal {
        switch target {
        case .operation(let id): .unknownOperation(id)
        case .graph(let id): .worded(noGraph(id))
        case .queue(let name):
            .worded(.invalid(field: "queue", why: "there is no queue “\(name)”"))
        }
    }

    func noGraph(_ id: GraphID) -> Refusal {
        .invalid(field: "graph", why: "there is no graph \(id)")
    }
}

extension Scheduler {
    /// Records the outcomes of waiting operations, each once.
    ///
    /// - Parameter reason: `nil`: that of their graph.
    private mutating func settle(
        _ operations: [OperationID],
        cancelledFor reason: String?,
        at now: Moment,
        into effects: inout Effects
    ) {
        var start = 0
        while start < operations.count {
            let first = operations[start]
            // In one queue, because the event of a range names the queue.
            let queue = graphs.queue(of: first)
            var end = start + 1
            while end < operations.count, operations[end].graph == first.graph,
                operations[end].index == operations[end - 1].index + 1,
                graphs.queue(of: operations[end]) == queue
            { end += 1 }
            let reason = reason ?? graphs[first.graph].cancelReason
            let outcome = Outcome.cancelled(reason: reason)
            if end - start >= configuration.rangeMin {
                let indices = first.index..<first.index + UInt32(end - start)
                let range = OperationRange(graph: first.graph, indices: indices)
                settle(range, outcome, at: now, into: &effects)
            } else {
                for operation in operations[start..<end] {
                    settle(operation, outcome, at: now, into: &effects)
                }
            }
            start = end
        }
    }
}
