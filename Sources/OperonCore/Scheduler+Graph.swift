import HeapModule
import OperonModel

// Submitting, releasing, finishing.
extension Scheduler {
    mutating func submit(
        _ compiled: CompiledGraph,
        at now: Moment,
        into effects: inout Effects
    ) {
        let count = compiled.topology.operationCount
        let id = GraphID(rawValue: UInt32(graphs.count))
        let knownQueues = queues.count
        let rules = rules(of: compiled)
        var graph = GraphState(
            compiled: compiled,
            rules: rules,
            keys: compiled.keys.map { keyNumber($0) },
            submittedAt: now,
            state: Array(repeating: .pending, count: count),
            outcome: Array(repeating: nil, count: count),
            flags: Array(repeating: [], count: count),
            level: Array(repeating: 0, count: count),
            waiting: Array(repeating: 0, count: count),
            attempt: Array(repeating: GraphState.noAttempt, count: count),
            ordinal: Array(repeating: 0, count: count),
            retries: Array(repeating: 0, count: count),
            unfinished: count
        )
        let levels = zip(compiled.policies, rules).map { policy, rule in
            (policy.priority ?? queues[rule.queue].priority).level
        }
        for index in 0..<count {
            graph.level[index] = levels[Int(compiled.policy[index])]
            graph.waiting[index] = UInt32(
                compiled.topology.dependencies(of: UInt32(index)).count
            )
        }
        graphs.append(graph)
        effects.records.append(.graphAdded(id))
        for queue in queues[knownQueues...] {
            effects.records.append(.queueDefined(queue.settings))
        }
        armDeadlines(of: id, at: now)
        for index in 0..<UInt32(count) where graphs[Int(id.rawValue)].waiting[Int(index)] == 0 {
            becomeReady(OperationID(graph: id, index: index), at: now, into: &effects)
        }
        if count == 0 { effects.notices.append(.graphFinished(id)) }
    }

    mutating func armDeadlines(of id: GraphID, at now: Moment) {
        let graph = graphs[Int(id.rawValue)]
        guard graph.compiled.policies.contains(where: { $0.deadline != nil }) else { return }
        for index in 0..<UInt32(graph.state.count) {
            guard let deadline = graph.policy(index).deadline else { continue }
            arm(
                .deadline(OperationID(graph: id, index: index)),
                at: now.monotonic + max(.zero, deadline - now.wall)
            )
        }
    }

    mutating func rules(of compiled: CompiledGraph) -> [PolicyRule] {
        let queueNumbers = compiled.queues.map { queueNumber($0) }
        let kindNumbers = compiled.kinds.map { kindNumber($0) }
        for index in workers.indices { learnNames(of: index) }
        return compiled.policies.map { policy in
            let queue = queueNumbers[Int(policy.queue)]
            let kind = kindNumbers[Int(policy.kind)]
            return PolicyRule(
                queue: queue,
                kind: kind,
                lane: laneNumber(queue: queue, kind: kind),
                estimate: policy.expectedDuration?.nanoseconds,
                hasKeys: !policy.keys.isEmpty
            )
        }
    }

    private mutating func queueNumber(_ settings: QueueSettings) -> Int {
        if let number = queueNumbers[settings.name] {
            return number
        }
        let number = queues.count
        queues.append(
            QueueState(
                name: settings.name,
                maximum: settings.maxConcurrentOperationCount,
                isSuspended: settings.isSuspended,
                priority: settings.priority
            )
        )
        queueNumbers[settings.name] = number
        return number
    }

    private mutating func kindNumber(_ name: String) -> Int {
        if let number = kindNumbers[name] { return number }
        let number = kinds.count
        kinds.append(KindState(name: name, canKillWorker: !Work.builtInKinds.contains(name)))
        kindNumbers[name] = number
        return number
    }

    mutating func keyNumber(_ name: String) -> Int {
        if let number = keyNumbers[name] { return number }
        let number = keys.count
        keys.append(KeyState(name: name))
        keyNumbers[name] = number
        return number
    }
}

// MARK: - Becoming ready

extension Scheduler {
    /// All its dependencies have released it.
    private mutating func becomeReady(
        _ operation: OperationID,
        at now: Moment,
        into effects: inout Effects
    ) {
        let graph = Int(operation.graph.rawValue)
        graphs[graph].state[Int(operation.index)] = .ready
        effects.notices.append(.ready(operation))
        let policy = graphs[graph].policy(operation.index)
        var pause = policy.delay ?? .zero
        if let notBefore = policy.notBefore { pause = max(pause, notBefore - now.wall) }
        if pause > .zero {
            graphs[graph].flags[Int(operation.index)].insert(.delayed)
            // The delay counts from here, whatever becomes of this process.
            effects.records.append(.delayed(operation, until: now.wall + pause))
            arm(.release(operation), at: now.monotonic + pause)
        } else {
            enqueue(operation)
        }
    }

    /// Puts a ready operation into its lane.
    mutating func enqueue(_ operation: OperationID) {
        let graph = Int(operation.graph.rawValue)
        let index = Int(operation.index)
        graphs[graph].flags[index].subtract([.delayed, .parked, .heldBack])
        let rule = graphs[graph].rule(operation.index)
        lanes[rule.lane].heap.insert(
            ReadyEntry(
                urgency: graphs[graph].urgency(index),
                rank: graphs[graph].compiled.rank[index],
                graph: operation.graph.rawValue,
                index: operation.index
            )
        )
        queues[rule.queue].ready += 1
    }

    private mutating func laneNumber(queue: Int, kind: Int) -> Int {
        let place = LanePlace(queue: queue, kind: kind)
        if let lane = laneNumbers[place] { return lane }
        let lane = lanes.count
        lanes.append(Lane(queue: queue, kind: kind))
        queues[queue].lanes.append(lane)
        laneNumbers[place] = lane
        return lane
    }

    /// Whether it stands in a lane and may be taken from it.
    func isEnqueued(_ operation: OperationID) -> Bool {
        let graph = Int(operation.graph.rawValue)
        let index = Int(operation.index)
        return graphs[graph].state[index] == .ready
            && graphs[graph].flags[index].isDisjoint(with: [.delayed, .parked, .heldBack])
    }

    mutating func releaseDue(
        _ operation: OperationID,
        at now: Moment,
        into effects: inout Effects
    ) {
        let graph = Int(operation.graph.rawValue)
        let index = Int(operation.index)
        guard graphs[graph].state[index] == .ready,
            graphs[graph].flags[index].contains(.delayed)
        else { return }
        // The wall clock may have been set back since the timer was armed.
        if let notBefore = graphs[graph].policy(operation.index).notBefore,
            notBefore > now.wall, graphs[graph].ordinal[index] == 0
        {
            arm(.release(operation), at: now.monotonic + (notBefore - now.wall))
            return
        }
        effects.records.append(.delayed(operation, until: nil))
        enqueue(operation)
    }

    mutating func deadlineDue(
        _ operation: OperationID,
        at now: Moment,
        into effects: inout Effects
    ) {
        let graph = Int(operation.graph.rawValue)
        let index = Int(operation.index)
        guard graphs[graph].state[index] != .finished,
            let deadline = graphs[graph].policy(operation.index).deadline
        else { return }
        guard deadline <= now.wall else {
            arm(.deadline(operation), at: now.monotonic + (deadline - now.wall))
            return
        }
        graphs[graph].flags[index].insert(.deadlinePassed)
        effects.records.append(.deadlinePassed(operation))
        switch graphs[graph].state[index] {
        case .pending, .ready:
            finish(operation, .failed(.deadline), at: now, into: &effects)
        case .dispatched, .executing:
            order(.cancel, attemptAt: graphs[graph].attempt[index], into: &effects)
        case .finished: break  // Excluded above.
        }
    }
}

// MARK: - Finishing

extension Scheduler {
    /// Gives an operation its outcome, and whatever follows from it to its dependents:
    /// O(out-degree), plus that of what is skipped. A list, not recursion: a chain of a million may
    /// be skipped.
    mutating func finish(
        _ operation: OperationID,
        _ outcome: Outcome,
        at now: Moment,
        into effects: inout Effects
    ) {
        worklist.append((operation, outcome))
        drainWorklist(at: now, into: &effects)
        let graph = Int(operation.graph.rawValue)
        if outcome.kind == .failed, graphs[graph].compiled.failFast, !graphs[graph].isCancelled {
            let reason = "an operation failed"
            let target = Target.graph(operation.graph)
            let record = Record.cancelled(target, reason: reason, cascade: false, by: "")
            cancel(target, as: record, reason, false, at: now, into: &effects)
        }
    }

    mutating func drainWorklist(at now: Moment, into effects: inout Effects) {
        while let (operation, outcome) = worklist.popLast() {
            settle(operation, outcome, into: &effects)
            release(dependentsOf: operation, outcome: outcome.kind, at: now, into: &effects)
        }
    }

    /// Records an outcome, without looking at dependents.
    mutating func settle(
        _ operation: OperationID,
        _ outcome: Outcome,
        into effects: inout Effects
    ) {
        let graph = Int(operation.graph.rawValue)
        let index = Int(operation.index)
        precondition(
            graphs[graph].state[index] != .finished,
            "an outcome is final: every caller looks at the state first"
        )
        let wasEnqueued = isEnqueued(operation)
        if wasEnqueued { queues[graphs[graph].queue(operation.index)].ready -= 1 }
        if !lostAttempts.isEmpty { lostAttempts[operation] = nil }
        graphs[graph].state[index] = .finished
        graphs[graph].outcome[index] = outcome.kind
        if outcome.kind != .succeeded { graphs[graph].outcomes[operation.index] = outcome }
        graphs[graph].counts[Int(outcome.kind.rawValue)] += 1
        graphs[graph].unfinished -= 1
        effects.records.append(.finished(operation, outcome))
        effects.notices.append(.finished(operation, outcome))
        if graphs[graph].unfinished == 0 {
            effects.notices.append(.graphFinished(operation.graph))
        }
        if wasEnqueued { passKeysOn(of: operation) }
    }

    mutating func release(
        dependentsOf operation: OperationID,
        outcome: OutcomeKind,
        at now: Moment,
        into effects: inout Effects
    ) {
        let graph = Int(operation.graph.rawValue)
        let edges = graphs[graph].compiled.topology.dependents(of: operation.index)
        for edge in edges {
            let index = Int(edge.operation)
            graphs[graph].waiting[index] -= 1
            // Cancelled, or past its deadline, while it waited: nothing can release it any more.
            guard graphs[graph].state[index] == .pending else { continue }
            if !edge.condition.isSatisfied(by: outcome) {
                graphs[graph].flags[index].insert(.skipDemanded)
            }
            guard
                graphs[graph].waiting[index] == 0
                    || configuration.violation == .releasesEarly
            else { continue }
            let dependent = OperationID(graph: operation.graph, index: edge.operation)
            if graphs[graph].flags[index].contains(.skipDemanded) {
                worklist.append((dependent, .skipped(cause: cause(ofSkipping: dependent))))
            } else {
                becomeReady(dependent, at: now, into: &effects)
            }
        }
    }

    /// The first listed dependency whose outcome demands it.
    private func cause(ofSkipping operation: OperationID) -> OperationID {
        let graph = graphs[Int(operation.graph.rawValue)]
        for edge in graph.compiled.topology.dependencies(of: operation.index) {
            guard let outcome = graph.outcome[Int(edge.operation)] else { continue }
            guard edge.condition.isSatisfied(by: outcome) else {
                return OperationID(graph: operation.graph, index: edge.operation)
            }
        }
        preconditionFailure("skipDemanded is set only by a dependency that is not satisfied")
    }
}
