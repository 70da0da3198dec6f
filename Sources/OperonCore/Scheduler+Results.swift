import OperonModel

// The results of commands, and whether what they forbid can still happen.
extension Scheduler {
    /// Whether nothing in a target that was cancelled or suspended can start any more: no worker
    /// has an attempt in it whose start it has not reported. O(attempts in flight).
    package func isEffective(_ target: Target, cascade: Bool = false) -> Bool {
        !inFlight(of: target, cascade: cascade).contains { !$0.hasStarted }
    }

    private func inFlight(of target: Target, cascade: Bool) -> [AttemptState] {
        var followers: Set<OperationID> = []
        if cascade, case .operation(let operation) = target, exists(operation) {
            followers = Set(withDependents(operation))
        }
        return attempts.all.filter { attempt in
            isMember(attempt.operation, of: target) || followers.contains(attempt.operation)
        }
    }

    private func isMember(_ operation: OperationID, of target: Target) -> Bool {
        switch target {
        case .operation(let id): operation == id
        case .graph(let graph): operation.graph == graph
        case .queue(let name):
            queueNumbers[name] == graphs.queue(of: operation)
        }
    }

    /// The result of a command on all unfinished operations of a target.
    func result(of target: Target) -> CommandResult {
        var result = CommandResult()
        switch target {
        case .operation(let operation): return self.result(of: [operation])
        case .graph(let graph): result.affected = graphs[graph].unfinished
        case .queue(let name):
            guard let queue = queueNumbers[name] else { return result }
            result.affected = members(of: queue).count { state(of: $0) != .finished }
        }
        for attempt in inFlight(of: target, cascade: false) { count(attempt, in: &result) }
        for operation in externals.keys.sorted() where isMember(operation, of: target) {
            countExternal(operation, in: &result)
        }
        return result
    }

    func result(of members: [OperationID]) -> CommandResult {
        var result = CommandResult()
        result.affected = members.count
        for operation in members {
            // Does not copy the graph's state, because there may be a million operations.
            if graphs[state: operation] == .finished { result.finished += 1 }
            if externals[operation] != nil { countExternal(operation, in: &result) }
            let place = graphs[attempt: operation]
            guard let attempt = attempts[place] else { continue }
            count(attempt, in: &result)
        }
        return result
    }

    private func countExternal(_ operation: OperationID, in result: inout CommandResult) {
        result.running += 1
        if result.named.count < CommandResult.namedMax { result.named.append(operation) }
    }

    private func count(_ attempt: AttemptState, in result: inout CommandResult) {
        result.running += 1
        if !attempt.hasStarted { result.isEffective = false }
        if result.named.count < CommandResult.namedMax { result.named.append(attempt.operation) }
    }

    /// The number of unfinished operations that depend on these and are none of them, each counted
    /// once.
    func waitingDependents(of members: [OperationID]) -> Int {
        var seen: Set<OperationID> = []
        for operation in members {
            forEachDependent(of: operation) { dependent, _ in
                guard graphs[state: dependent] != .finished,
                    !graphs[flags: dependent].contains(.cancelRequested)
                else { return }
                seen.insert(dependent)
            }
        }
        return seen.count
    }
}
