import HeapModule
import OperonModel

// Submitting, releasing and finishing.
extension Scheduler {
    mutating func submit(
        _ compiled: CompiledGraph,
        isOpen: Bool,
        at now: Moment,
        into effects: inout Effects
    ) {
        if let missing = compiled.outer.first(where: { !isKnown($0.on.operation) }) {
            refuseMissing(missing, into: &effects)
            return
        }
        let count = compiled.topology.operationCount
        let id = GraphID(rawValue: UInt32(graphs.count))
        effects.records.append(.graphAdded(id))
        var compiled = compiled
        var rules = rules(of: compiled)
        parts.share(&compiled, &rules)
        defineQueues(of: compiled, at: now, into: &effects)
        defineKeys(of: compiled, at: now, into: &effects)
        var graph = GraphState(
            compiled: compiled,
            rules: rules,
            keys: keyNumbers(of: compiled, in: id),
            submittedAt: now,
            operations: OperationTable(levels: levels(of: compiled, rules)),
            unfinished: count,
            isOpen: isOpen
        )
        for index in graph.operations.indices {
            let count = compiled.topology.dependencies(of: index).count
            graph.operations.waiting[index] = UInt32(count)
        }
        useNames(of: graph)
        graphs.append(graph)
        countUnfinished(of: compiled.policy, rules)
        armDeadlines(of: id, from: 0, at: now)
        if !compiled.outer.isEmpty { connect(compiled.outer, of: id, from: 0) }
        for index in 0..<UInt32(count) where graphs[id].operations.waiting[index] == 0 {
            let operation = OperationID(graph: id, index: index)
            // A skip of another operation may have finished it already.
            guard state(of: operation) == .pending else { continue }
            releaseOrSkip(operation, at: now, into: &effects)
            drainWorklist(at: now, into: &effects)
        }
        if count == 0 { hasNothingToDo(id, at: now, into: &effects) }
        forgetUnused(compiled.queues)
    }

    /// Counts new operations of these policies.
    mutating func countUnfinished(of policies: [UInt32], _ rules: [PolicyRule]) {
        for policy in policies { queues[rules[Int(policy)].queue].unfinished += 1 }
    }

    /// The level of each operation.
    func levels(of compiled: CompiledGraph, _ rules: [PolicyRule]) -> [UInt8] {
        let levels = zip(compiled.policies, rules).map { policy, rule in
            (policy.priority ?? queues[rule.queue].priority).level
        }
        return compiled.policy.map { levels[Int($0)] }
    }

    /// Arms the deadlines of the operations from `first` on.
    mutating func armDeadlines(of id: GraphID, from first: UInt32, at now: Moment) {
        let graph = graphs[id]
        guard graph.compiled.policies.contains(where: { $0.deadline != nil }) else { return }
        for index in first..<graph.operations.count {
            armDeadline(of: OperationID(graph: id, index: index), at: now)
        }
    }

    mutating func armDeadline(of operation: OperationID, at now: Moment) {
        let policy = graphs.policy(of: operation)
        guard let deadline = policy.deadline else { return }
        arm(.deadline(operation), on: deadline, at: now)
    }

    mutating func rules(of compiled: CompiledGraph) -> [PolicyRule] {
        let queueNumbers = compiled.queues.map {
            self.queueNumbers[$0.name] ?? makeQueue($0.name)
        }
        let kindNumbers = compiled.kinds.map { kindNumber($0) }
        let demandNumbers = compiled.demands.map { demandNumber($0) }
        return compiled.policies.map { policy in
            let queue = queueNumbers[Int(policy.queue)]
            let kind = kindNumbers[Int(policy.kind)]
            let demand = demandNumbers[Int(policy.demand)]
            return PolicyRule(
                queue: queue,
                kind: kind,
                demand: demand,
                lane: ready.number(
                    queue: queue,
                    kind: kind,
                    demand: demand,
                    isExternal: kinds[kind].isExternal
                ),
                estimate: policy.expectedDuration?.nanoseconds,
                hasKeys: !policy.keys.isEmpty,
                isExclusive: policy.keys.contains { compiled.inFlightLimits[$0] == nil },
                isExternal: kinds[kind].isExternal
            )
        }
    }

}

// MARK: - Becoming ready

extension Scheduler {
    /// All its dependencies have released it.
    mutating func becomeReady(
        _ operation: OperationID,
        at now: Moment,
        into effects: inout Effects
    ) {
        graphs.move(operation, to: .ready)
        effects.notices.append(.ready(operation))
        guard let delay = delay(ofRelease: operation, at: now) else { return enqueue(operation) }
        // The delay counts from here, even across restarts of the coordinator.
        effects.records.append(.delayed(operation, until: delay.recorded))
        self.delay(operation, delay, at: now)
    }

    /// The delay of an operation that its dependencies have released; `nil`: none.
    private func delay(ofRelease operation: OperationID, at now: Moment) -> Delay? {
        // Each use reads one property in place: a local graph or policy would be a copy.
        let pause = graphs[policy: operation].delay ?? .zero
        // An operation that had an attempt has waited for its date. A date that has passed stays
        // passed.
        var date = graphs[ordinal: operation] == 0 ? graphs[policy: operation].notBefore : nil
        if let notBefore = date, notBefore <= now.wall { date = nil }
        guard pause > .zero || date != nil else { return nil }
        let end = now.wall + pause
        return Delay(
            recorded: date.map { max(end, $0) } ?? end,
            time: pause > .zero ? now.monotonic + pause : nil,
            date: date
        )
    }

    /// Puts a ready operation into its lane.
    mutating func enqueue(_ operation: OperationID) {
        clearAside(operation)
        let rule = graphs.rule(of: operation)
        graphs[flags: operation].insert(.inLane)
        ready.insert(
            ReadyEntry(
                urgency: graphs.urgency(of: operation),
                rank: graphs.rank(of: operation),
                graph: operation.graph.rawValue,
                index: operation.index
            ),
            into: rule.lane
        )
    }

    /// The operation is not in its lane any more. Its entry may be: see `ReadyLanes`.
    mutating func leaveLane(_ operation: OperationID) {
        graphs[flags: operation].remove(.inLane)
        ready.countOut(of: graphs.rule(of: operation).lane)
    }

    /// The operation is no longer set aside, whatever the reason was.
    mutating func clearAside(_ operation: OperationID) {
        if graphs[flags: operation].contains(.delayed) {
            graphs[operation.graph].delays[operation.index] = nil
            graphs[operation.graph].unmet.remove(operation.index)
        }
        graphs[flags: operation].subtract([.delayed, .parked])
    }

    /// Whether the operation is in a lane and may be taken from it. An operation of a dropped graph
    /// may not.
    func isEnqueued(_ operation: OperationID) -> Bool {
        exists(operation) && graphs[flags: operation].contains(.inLane)
    }

    mutating func deadlineDue(
        _ operation: OperationID,
        at now: Moment,
        into effects: inout Effects
    ) {
        // benign: the second timer of an operation that was reopened.
        guard graphs[state: operation] != .finished,
            graphs[flags: operation].insert(.deadlinePassed).inserted
        else { return }
        effects.records.append(.deadlinePassed(operation))
        switch graphs[state: operation] {
        case .pending, .ready:
            finish(operation, .failed(.deadline), at: now, into: &effects)
        case .dispatched, .executing:
            if stopExternal(operation, .failed(.deadline), at: now, into: &effects) {
                finish(operation, .failed(.deadline), at: now, into: &effects)
            } else {
                order(.cancel, attemptAt: graphs[attempt: operation], into: &effects)
            }
        case .finished: break  // Excluded above.
        }
    }
}

// MARK: - Finishing

extension Scheduler {
    /// Gives an operation its outcome, and applies the consequences to its dependents:
    /// O(out-degree), plus that of skipped operations. It uses a list instead of recursion, because
    /// a chain of a million operations may be skipped.
    mutating func finish(
        _ operation: OperationID,
        _ outcome: Outcome,
        at now: Moment,
        into effects: inout Effects
    ) {
        worklist.append((operation, outcome))
        drainWorklist(at: now, into: &effects)
        if outcome.kind == .failed, graphs[operation.graph].compiled.failFast,
            !graphs[operation.graph].isCancelled, configuration.violation != .ignoresFailFast
        {
            let reason = "an operation failed"
            let target = Target.graph(operation.graph)
            let record = Record.cancelled(target, reason: reason, cascade: false, by: "")
            cancel(target, as: record, reason, false, at: now, into: &effects)
        }
    }

    mutating func drainWorklist(at now: Moment, into effects: inout Effects) {
        while let (operation, outcome) = worklist.popLast() {
            settle(operation, outcome, at: now, into: &effects)
            release(dependentsOf: operation, outcome: outcome.kind, at: now, into: &effects)
        }
    }

    /// Records an outcome, without visiting dependents.
    mutating func settle(
        _ operation: OperationID,
        _ outcome: Outcome,
        at now: Moment,
        into effects: inout Effects
    ) {
        let wasEnqueued = leaveLists(operation)
        let indices = operation.index..<operation.index + 1
        let only = OperationRange(graph: operation.graph, indices: indices)
        moveToFinished(only, outcome.kind)
        if outcome.kind != .succeeded {
            graphs[operation.graph].outcomes[operation.index] = outcome
        }
        effects.finished(operation, outcome)
        if graphs[operation.graph].unfinished == 0 {
            hasNothingToDo(operation.graph, at: now, into: &effects)
        }
        if wasEnqueued { passKeysOn(of: operation) }
        tellWaiters(of: operation, outcome.kind)
    }

    /// The same for operations of one queue with no attempt in flight, with one record.
    mutating func settle(
        _ operations: OperationRange,
        _ outcome: Outcome,
        at now: Moment,
        into effects: inout Effects
    ) {
        var enqueued: [OperationID] = []
        for operation in operations {
            let wasEnqueued = leaveLists(operation)
            if wasEnqueued, graphs.rule(of: operation).hasKeys { enqueued.append(operation) }
        }
        moveToFinished(operations, outcome.kind)
        graphs[operations.graph].outcomes.set(operations.indices, to: outcome)
        effects.finished(operations, outcome)
        if graphs[operations.graph].unfinished == 0 {
            hasNothingToDo(operations.graph, at: now, into: &effects)
        }
        for operation in enqueued { passKeysOn(of: operation) }
        guard !waiters.isEmpty else { return }
        for operation in operations { tellWaiters(of: operation, outcome.kind) }
    }

    /// Takes an operation that is about to finish out of the lists of those that have not. Returns
    /// whether it was in its lane.
    private mutating func leaveLists(_ operation: OperationID) -> Bool {
        precondition(
            graphs[state: operation] != .finished,
            "an outcome is final: every caller looks at the state first"
        )
        let wasEnqueued = isEnqueued(operation)
        if wasEnqueued { leaveLane(operation) }
        if !lostAttempts.isEmpty { lostAttempts[operation] = nil }
        if graphs[flags: operation].contains(.delayed) { clearAside(operation) }
        return wasEnqueued
    }

    /// Moves operations of one queue to the finished ones. The counts change once for all of them.
    private mutating func moveToFinished(_ operations: OperationRange, _ outcome: OutcomeKind) {
        guard let first = operations.first else { return }
        graphs[first.graph].finish(operations.indices, outcome)
        queues[graphs.queue(of: first)].unfinished -= operations.count
    }

    mutating func release(
        dependentsOf operation: OperationID,
        outcome: OutcomeKind,
        at now: Moment,
        into effects: inout Effects
    ) {
        for edge in graphs.dependents(of: operation) where !edge.isRemoved {
            let dependent = OperationID(graph: operation.graph, index: edge.operation)
            release(dependent, edge.condition, outcome, at: now, into: &effects)
        }
        if !graphs[operation.graph].compiled.topology.added.isEmpty {
            for edge in graphs.addedDependents(of: operation) where !edge.isRemoved {
                let dependent = OperationID(graph: operation.graph, index: edge.operation)
                release(dependent, edge.condition, outcome, at: now, into: &effects)
            }
        }
        if !graphs[operation.graph].outerDependents.isEmpty,
            let outer = graphs[operation.graph].outerDependents[operation.index]
        {
            for dependent in outer.all where !isGone(dependent.operation.graph) {
                release(
                    dependent.operation,
                    dependent.condition,
                    outcome,
                    at: now,
                    into: &effects
                )
            }
        }
    }

    @inline(__always)
    private mutating func release(
        _ dependent: OperationID,
        _ condition: DependencyCondition,
        _ outcome: OutcomeKind,
        at now: Moment,
        into effects: inout Effects
    ) {
        // It was cancelled, or its deadline passed, while it waited: nothing can release it any
        // more. Or the dependency released it in an earlier round.
        guard graphs[state: dependent] == .pending else { return }
        graphs[waiting: dependent] -= 1
        if !condition.isSatisfied(by: outcome),
            graphs[flags: dependent].insert(.skipDemanded).inserted
        {
            noteDoomed(dependent)
        }
        guard
            graphs[waiting: dependent] == 0 || configuration.violation == .releasesEarly
        else { return }
        releaseOrSkip(dependent, at: now, into: &effects)
    }

    /// Nothing holds a pending operation back any more: it becomes ready, or is added to the list
    /// of operations to skip, which `drainWorklist` processes.
    mutating func releaseOrSkip(
        _ operation: OperationID,
        at now: Moment,
        into effects: inout Effects
    ) {
        let flags = graphs[flags: operation]
        if flags.contains(.skipDemanded) {
            worklist.append((operation, .skipped(cause: cause(ofSkipping: operation))))
        } else {
            becomeReady(operation, at: now, into: &effects)
        }
    }

    /// The first listed dependency whose outcome skips the operation.
    func cause(ofSkipping operation: OperationID) -> OperationID {
        var cause: OperationID?
        forEachDependency(of: operation) { dependency, condition in
            guard cause == nil, let outcome = outcomeKind(of: dependency),
                !condition.isSatisfied(by: outcome)
            else { return }
            cause = dependency
        }
        guard let cause else {
            preconditionFailure("skipDemanded is set only by a dependency that is not satisfied")
        }
        return cause
    }
}
