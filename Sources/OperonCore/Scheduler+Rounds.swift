package import OperonModel

// `retry`: finished operations get their next round. Outcomes are forgotten; attempts continue
// their count.
extension Scheduler {
    /// How often an operation was reopened.
    /// How often operations of the graph were retried by a command, all together.
    package func retries(of graph: GraphID) -> UInt32 {
        // A sum: the order does not matter.
        graphs[graph].rounds.values.reduce(0) { $0 &+ $1 }
    }

    package func round(of operation: OperationID) -> UInt32 {
        graphs[operation.graph].rounds[operation.index] ?? 0
    }

    mutating func reopen(
        _ indices: [UInt32],
        of id: GraphID,
        cancelled: Bool,
        at now: Moment,
        into effects: inout Effects
    ) {
        let members: [OperationID]
        do throws(NumberedRefusal) {
            members = try self.members(ofRetry: indices, of: id, cancelled: cancelled)
        } catch {
            effects.refusals.append(error)
            return
        }
        let readyBefore = effects.notices.count
        for operation in members { reopen(operation, at: now, into: &effects) }
        let forgets = configuration.violation == .forgetsReopened
        if !members.isEmpty, !forgets { hasReopened = true }
        suspects += members
        for operation in members { countDependencies(of: operation) }
        for operation in members where !forgets {
            holdDependents(of: operation, at: now, into: &effects)
        }
        for operation in members {
            guard graphs[state: operation] == .pending,
                graphs[waiting: operation] == 0
            else { continue }
            releaseOrSkip(operation, at: now, into: &effects)
            drainWorklist(at: now, into: &effects)
        }
        var result = CommandResult()
        result.affected = members.count
        result.released = effects.notices[readyBefore...].count { notice in
            if case .ready = notice { true } else { false }
        }
        effects.results.append(result)
    }

    /// What `retryRequested` would reopen: the chosen operations, and those that were skipped
    /// because of them, in any graph. A chosen operation that was skipped stands for those that
    /// failed or were cancelled before it.
    package func members(
        ofRetry indices: [UInt32],
        of id: GraphID,
        cancelled: Bool
    ) throws(NumberedRefusal) -> [OperationID] {
        withSkipped(try choose(indices, of: id, cancelled: cancelled))
    }

    /// What runs when a run of this graph goes on: what has no outcome yet, what failed or was
    /// cancelled, and what was skipped because of it.
    package func resumed(in id: GraphID) -> Set<OperationID> {
        var unfinished: [OperationID] = []
        var again: [OperationID] = []
        for index in graphs[id].operations.indices {
            let operation = OperationID(graph: id, index: index)
            switch graphs[outcome: operation] {
            case nil: unfinished.append(operation)
            case .failed, .cancelled: again.append(operation)
            case .succeeded, .skipped: continue
            }
        }
        return Set(unfinished).union(again.isEmpty ? [] : withSkipped(again))
    }

    private func choose(
        _ indices: [UInt32],
        of id: GraphID,
        cancelled: Bool
    ) throws(NumberedRefusal) -> [OperationID] {
        guard exists(id) else { throw unknown(.graph(id)) }
        let graph = graphs[id]
        // Otherwise the record of the graph's cancel, which concerns all its unfinished operations,
        // would concern these as well.
        guard !graph.isCancelled || graph.unfinished == 0 else {
            let left = "\(graph.unfinished) of its operations have not finished"
            let why = "it was cancelled, and \(left)"
            throw .worded(.invalid(field: "graph", why: why))
        }
        guard !graph.isGone else {
            let why = "it was dropped, and only its outcomes are kept"
            throw .worded(.invalid(field: "graph", why: why))
        }
        if indices.isEmpty {
            return (graph.operations.indices).filter { index in
                switch graph.operations.outcome[index] {
                case .failed: true
                case .cancelled: cancelled
                case .succeeded, .skipped, nil: false
                }
            }.map { OperationID(graph: id, index: $0) }
        }
        var seen: Set<UInt32> = []
        var chosen: [OperationID] = []
        var search = CauseSearch()
        for index in indices where seen.insert(index).inserted {
            let operation = OperationID(graph: id, index: index)
            guard exists(operation) else { throw unknown(.operation(operation)) }
            switch outcome(of: operation) {
            case .failed, .cancelled: chosen.append(operation)
            case .skipped(let cause):
                guard findCauses(of: operation, &search) else {
                    throw .notRetriedAlone(operation, skippedFor: cause)
                }
                for cause in search.takeCauses() where seen.insert(cause.index).inserted {
                    chosen.append(cause)
                }
            case nil: throw .notRetried(operation, why: "it has not finished")
            case .succeeded: throw .notRetried(operation, why: "it succeeded, and is not run again")
            }
        }
        return chosen
    }

    /// Finds the operations of the same graph that failed or were cancelled, and because of which
    /// an operation was skipped, directly or not. One search serves all operations of a request, so
    /// that each dependency is followed twice at most.
    /// - Returns: Whether there are any, those of earlier searches included.
    private func findCauses(of skipped: OperationID, _ search: inout CauseSearch) -> Bool {
        var rest = [skipped]
        while let next = rest.last {
            switch search.findings[next] {
            case nil:
                search.findings[next] = .visiting
                forEachUnsatisfied(of: next) { dependency, outcome in
                    guard search.findings[dependency] == nil else { return }
                    if outcome == .skipped {
                        rest.append(dependency)
                    } else {
                        search.findings[dependency] = .cause
                        search.causes.append(dependency)
                    }
                }
            case .visiting:
                var finding = CauseSearch.Finding.noCause
                forEachUnsatisfied(of: next) { dependency, _ in
                    if search.findings[dependency] == .cause { finding = .cause }
                }
                search.findings[next] = finding
                rest.removeLast()
            case .cause, .noCause: rest.removeLast()
            }
        }
        return search.findings[skipped] == .cause
    }

    /// The dependencies in the same graph that did not succeed and that skip the operation.
    private func forEachUnsatisfied(
        of operation: OperationID,
        _ body: (OperationID, OutcomeKind) -> Void
    ) {
        forEachDependency(of: operation) { dependency, condition in
            guard dependency.graph == operation.graph,
                let outcome = outcome(of: dependency)?.kind, outcome != .succeeded,
                !condition.isSatisfied(by: outcome)
            else { return }
            body(dependency, outcome)
        }
    }

    /// These, and what was skipped because of them, directly or not, in any graph that is not
    /// cancelled.
    private func withSkipped(_ chosen: [OperationID]) -> [OperationID] {
        var members = chosen
        var seen = Set(chosen)
        var position = 0
        while position < members.count {
            let cause = members[position]
            forEachDependent(of: cause) { dependent, _ in
                guard outcome(of: dependent) == .skipped(cause: cause),
                    dependent.graph == chosen[0].graph || !graphs[dependent.graph].isCancelled,
                    seen.insert(dependent).inserted
                else { return }
                members.append(dependent)
            }
            position += 1
        }
        return members
    }

    /// Forgets an operation's outcome. The operation is pending until its dependencies are counted.
    private mutating func reopen(
        _ operation: OperationID,
        at now: Moment,
        into effects: inout Effects
    ) {
        guard let outcome = graphs[outcome: operation] else {
            preconditionFailure("only what is finished was chosen")
        }
        graphs[operation.graph].counts[outcome] -= 1
        graphs[operation.graph].unfinished += 1
        if configuration.violation != .miscountsQueue {
            queues[graphs.queue(of: operation)].unfinished += 1
        }
        graphs[operation.graph].idleness = nil
        graphs[operation.graph].isCancelled = false
        graphs.move(operation, to: .pending)
        graphs[outcome: operation] = nil
        graphs[operation.graph].outcomes[operation.index] = nil
        graphs[operation.graph].reasons[operation.index] = nil
        if configuration.violation != .keepsOldRound {
            graphs[operation.graph].losses[operation.index] = nil
            graphs[retries: operation] = 0
        }
        if followsQueue(operation) {
            graphs[level: operation] = queues[graphs.queue(of: operation)].priority.level
        }
        graphs[flags: operation].formIntersection(.suspended)
        graphs[operation.graph].rounds[operation.index, default: 0] += 1
        armDeadline(of: operation, at: now)
        effects.records.append(.reopened(operation))
    }

    /// Dependents that no worker has wait for the new outcome. Those that run, or have finished,
    /// keep to the old one.
    private mutating func holdDependents(
        of operation: OperationID,
        at now: Moment,
        into effects: inout Effects
    ) {
        for dependent in dependents(of: operation) {
            switch state(of: dependent) {
            case .pending: countDependencies(of: dependent)
            case .ready: _ = waitsAgain(dependent, at: now, into: &effects)
            case .dispatched, .executing, .finished: continue
            }
        }
    }
}

/// What a request to retry several skipped operations has found so far.
private struct CauseSearch {
    enum Finding {
        /// The operations that it waited for are searched first.
        case visiting
        /// It failed or was cancelled, or was skipped because of one that did.
        case cause
        case noCause
    }

    /// The operations that were visited. Only looked up.
    var findings: [OperationID: Finding] = [:]
    var causes: [OperationID] = []

    mutating func takeCauses() -> [OperationID] {
        defer { causes = [] }
        return causes
    }
}
