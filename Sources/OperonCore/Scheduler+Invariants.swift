import HeapModule
import OperonModel

extension Scheduler {
    /// Recomputes all redundant state and compares: O(operations + edges). The first violation, as
    /// a sentence; `nil` if there is none. The simulator calls this after every event.
    package func violatedInvariant() -> String? {
        for id in graphs.all {
            if let broken = violatedInvariant(of: id) { return broken }
        }
        // One by one: the compiler takes long for a chain of many.
        if let broken = violatedInvariantOfQueues() { return broken }
        if let broken = violatedInvariantOfLine() { return broken }
        if let broken = violatedInvariantOfAttempts() { return broken }
        if let broken = violatedInvariantOfKeys() { return broken }
        if let broken = violatedInvariantOfParked() { return broken }
        if let broken = violatedInvariantOfWaits() { return broken }
        if let broken = violatedInvariantOfTimers() { return broken }
        if let broken = violatedInvariantOfGone() { return broken }
        if let broken = violatedInvariantOfExternals() { return broken }
        if let broken = violatedInvariantOfNames() { return broken }
        return violatedInvariantOfDemands()
    }

    /// Traps if `violatedInvariant` finds a violation.
    package func checkInvariants() {
        if let broken = violatedInvariant() { preconditionFailure(broken) }
    }

    private func violatedInvariant(of id: GraphID) -> String? {
        // Graphs are read in place: a copy counts references to all that one holds.
        var unfinished = 0
        var counts = OutcomeCounts()
        var states = OperationStateCounts()
        for index in graphs.indices(of: id) {
            states[graphs[id].operations.state[index]] += 1
            let operation = OperationID(graph: id, index: index)
            if let broken = violatedInvariant(of: operation) { return broken }
            if let outcome = graphs[outcome: operation] {
                counts[outcome] += 1
            } else {
                unfinished += 1
            }
        }
        guard unfinished == graphs[id].unfinished, counts == graphs[id].counts else {
            return "graph \(id) counts \(graphs[id].unfinished) unfinished and "
                + "\(graphs[id].counts) "
                + "outcomes of \(unfinished) and \(counts)"
        }
        guard states == graphs[id].operations.stateCounts else {
            return "graph \(id) counts \(graphs[id].operations.stateCounts) of \(states)"
        }
        return nil
    }

    private func violatedInvariant(of operation: OperationID) -> String? {
        // A string only where it is read: this is called for every operation after every event.
        var name: String { "operation \(operation)" }
        let state = graphs[state: operation]
        let (waiting, isDemanded, isReopened) = recomputedDemands(on: operation)
        switch state {
        case .pending:
            guard waiting == graphs[waiting: operation] else {
                return "\(name) counts \(graphs[waiting: operation]) unfinished dependencies "
                    + "of \(waiting)"
            }
            if waiting == 0 {
                return "\(name) is pending, but nothing it depends on is unfinished: "
                    + "a lost wake-up"
            }
            guard graphs[flags: operation].contains(.skipDemanded) == isDemanded else {
                return "\(name) is wrong about whether it is to be skipped"
            }
        case .ready:
            guard waiting == 0, !isDemanded else {
                return "\(name) is ready, but its dependencies did not release it"
            }
        case .dispatched, .executing:
            // A dependency that was reopened has released it in an earlier round.
            guard waiting == 0 && !isDemanded || isReopened else {
                return "\(name) is \(state), but its dependencies did not release it"
            }
        case .finished:
            guard let outcome = graphs[outcome: operation] else {
                return "\(name) is finished without an outcome"
            }
            if outcome == .skipped, !isDemanded, !isReopened {
                return "\(name) is skipped, but no dependency demands it"
            }
        }
        guard state == .finished || graphs[outcome: operation] == nil else {
            return "\(name) is \(state) and has an outcome"
        }
        let flags = graphs[flags: operation]
        guard
            !flags.contains(.inLane)
                || state == .ready && flags.isDisjoint(with: [.delayed, .parked])
        else { return "\(name) is in its lane, and \(state) or set aside" }
        guard state == .ready || !flags.contains(.delayed) else {
            return "\(name) is \(state) and delayed"
        }
        let hasAttempt =
            graphs[attempt: operation] != AttemptTable.none || externals[operation] != nil
        guard hasAttempt == (state == .dispatched || state == .executing) else {
            return "\(name) is \(state) with\(hasAttempt ? "" : "out") an attempt"
        }
        return violatedSymmetry(of: operation)
    }

    /// What its dependencies demand, and whether one of them was ever reopened.
    private func recomputedDemands(
        on operation: OperationID
    ) -> (waiting: UInt32, isDemanded: Bool, isReopened: Bool) {
        var waiting: UInt32 = 0
        var isDemanded = false
        var isReopened = false
        forEachDependency(of: operation) { dependency, condition in
            // Whether an operation of a dropped graph was reopened is not known.
            if round(of: dependency) > 0 || isGone(dependency.graph) { isReopened = true }
            guard let outcome = outcomeKind(of: dependency) else {
                waiting += 1
                return
            }
            if !condition.isSatisfied(by: outcome) { isDemanded = true }
        }
        return (waiting, isDemanded, isReopened)
    }

    /// Both ends of a dependency know of it.
    private func violatedSymmetry(of operation: OperationID) -> String? {
        // Tables that were built in one go are consistent by construction.
        guard
            !graphs[operation.graph].outer.isEmpty
                || !graphs[operation.graph].compiled.topology.added.isEmpty
        else { return nil }
        for dependency in dependencies(of: operation) {
            var isKnown = false
            forEachDependent(of: dependency.operation) {
                if $0 == operation, $1 == dependency.condition { isKnown = true }
            }
            // A dropped operation is not told of its dependents.
            guard isKnown || !exists(dependency.operation) else {
                return "\(dependency.operation) does not know that \(operation) depends on it"
            }
        }
        return nil
    }

    /// Exactly the open graphs with nothing to do wait to be closed, and every suspension or delay
    /// with an end has a timer, and every rate that is armed.
    private func violatedInvariantOfTimers() -> String? {
        for id in graphs.all {
            let graph = graphs[id]
            let isIdle = graph.isOpen && graph.unfinished == 0
            guard isIdle == (graph.idleness != nil) else {
                return "graph \(id) is \(isIdle ? "" : "not ")idle and takes itself for that"
            }
            guard !isIdle || graph.idleTimer != nil else {
                return "nothing closes graph \(id), which is idle"
            }
        }
        var awaited: Set<WallTime> = []
        var released: Set<OperationID> = []
        var rates: Set<RateScope> = []
        for kind in deadlines.unordered.map(\.kind) + dates.unordered.map(\.kind) {
            if case .resume(_, let until) = kind { awaited.insert(until) }
            if case .release(let operation) = kind { released.insert(operation) }
            if case .rate(let scope) = kind { rates.insert(scope) }
        }
        for queue in queues where queue.bucket?.isArmed == true {
            guard rates.contains(.queue(queue.name)) else {
                return "nothing tells when queue “\(queue.name)” has a token again"
            }
        }
        for key in keys where key.bucket?.isArmed == true {
            guard rates.contains(.key(key.name)) else {
                return "nothing tells when key “\(key.name)” has a token again"
            }
        }
        let suspensions =
            queues.compactMap(\.suspension)
            + graphs.kept.flatMap { id in
                [graphs[id].suspension].compactMap { $0 } + graphs[id].suspensions.values
            }
        for case let until? in suspensions.map(\.until) where !awaited.contains(until) {
            return "nothing ends a suspension when its time has come"
        }
        for id in graphs.all {
            for index in graphs[id].delays.keys.sorted() {
                let operation = OperationID(graph: id, index: index)
                guard released.contains(operation) else {
                    return "nothing releases \(operation) when its time has come"
                }
            }
        }
        return nil
    }

    private func violatedInvariantOfQueues() -> String? {
        var ready = [Int](repeating: 0, count: queues.count)
        var inLane = [Int](repeating: 0, count: self.ready.indices.count)
        var inFlight = [Int](repeating: 0, count: queues.count)
        var unfinished = [Int](repeating: 0, count: queues.count)
        for id in graphs.all {
            for index in graphs[id].operations.indices {
                let operation = OperationID(graph: id, index: index)
                if graphs[id].operations.outcome[index] == nil {
                    unfinished[graphs[id].queue(index)] += 1
                }
                if isEnqueued(operation) {
                    ready[graphs[id].queue(index)] += 1
                    inLane[graphs.rule(of: operation).lane] += 1
                }
                switch graphs[id].operations.state[index] {
                case .executing where waits[operation] != nil: break
                case .dispatched, .executing: inFlight[graphs[id].queue(index)] += 1
                case .pending, .ready, .finished: break
                }
            }
        }
        for index in queues.indices {
            guard self.ready.count(of: index) == ready[index],
                queues[index].inFlight == inFlight[index]
            else {
                return
                    "queue “\(queues[index].name)” counts \(self.ready.count(of: index)) ready and "
                    + "\(queues[index].inFlight) in flight of \(ready[index]) and "
                    + "\(inFlight[index])"
            }
            guard queues[index].unfinished == unfinished[index] else {
                return "queue “\(queues[index].name)” counts \(queues[index].unfinished) "
                    + "unfinished of \(unfinished[index])"
            }
            let inLanes = self.ready.lanes(of: index)
                .reduce(0) { $0 + self.ready[$1].heap.count }
            guard inLanes >= ready[index] else {
                return "queue “\(queues[index].name)” has ready operations that stand in no lane"
            }
        }
        for lane in self.ready.indices where self.ready[lane].count != inLane[lane] {
            return "lane \(lane) counts \(self.ready[lane].count) ready of \(inLane[lane])"
        }
        return nil
    }

    private func violatedInvariantOfAttempts() -> String? {
        let bytes = attempts.all.filter { !$0.isYielded }.map { byteCount(of: $0.operation) }
            .reduce(0, +)
        guard bytes == dispatchedBytes else {
            return "\(dispatchedBytes) bytes are counted as dispatched of \(bytes)"
        }
        var listed = 0
        for index in workers.indices {
            for (place, attempt) in attempts.owned(by: index) {
                listed += 1
                guard attempt.worker == index else {
                    return "attempt \(attempt.id) is listed by a worker that does not own it"
                }
                guard graphs[attempt: attempt.operation] == place else {
                    return "attempt \(attempt.id) is not that of its operation"
                }
                guard workers[index].isWatched || attempt.isAwaited else {
                    return "worker \(index) is gone and still owns attempt \(attempt.id)"
                }
                guard attempt.isYielded == (waits[attempt.operation] != nil) else {
                    return "attempt \(attempt.id) waits without a slot, or one of both"
                }
            }
            let owned = attempts.owned(by: index).map(\.attempt)
            let counted = WorkerRoom(slots: workers[index].room.slots, of: owned)
            let (held, backlog) = (workers[index].room.held, workers[index].room.backlog)
            guard held == counted.held, backlog == counted.backlog else {
                return "worker \(index) counts \(held) held of \(counted.held)"
            }
            let yielded = workers[index].room.yielded
            guard yielded == counted.yielded else {
                return "worker \(index) counts \(yielded) yielded of \(counted.yielded)"
            }
        }
        guard listed == attempts.count else {
            return "\(attempts.count) attempts in flight, \(listed) owned by workers"
        }
        return nil
    }

    /// Every operation that waits for a key waits for one that is held, or an operation with one of
    /// its keys is in its lane and will pass that key on, or the key at which it waits has a token
    /// again, of which a timer will tell.
    private func violatedInvariantOfParked() -> String? {
        for id in graphs.all {
            for index in graphs[id].operations.indices
            where graphs[id].operations.flags[index].contains(.parked) {
                let operation = OperationID(graph: id, index: index)
                let wanted = keyNumbers(of: operation)
                guard graphs[id].operations.state[index] == .ready, heldKey(of: operation) == nil
                else { continue }
                let lane = graphs[id].rule(index).lane
                let isStoodFor = ready[lane].heap.unordered.contains { entry in
                    isEnqueued(entry.operation)
                        && keyNumbers(of: entry.operation).contains { wanted.contains($0) }
                }
                let isDue = wanted.contains { key in
                    keys[key].bucket?.isArmed == true
                        && keys[key].parked.contains { parked in
                            parked.heap.unordered.contains { $0.operation == operation }
                        }
                }
                guard isStoodFor || isDue else {
                    return "\(operation) waits for keys that are free"
                }
            }
        }
        return nil
    }

    private func keyNumbers(of operation: OperationID) -> [Int] {
        graphs[policy: operation].keys.map { graphs[operation.graph].keys[Int($0)] }
    }

    private func violatedInvariantOfKeys() -> String? {
        var holders: [Set<OperationID>] = Array(repeating: [], count: keys.count)
        for operation in attempts.all.map(\.operation) + externals.keys.sorted() {
            for key in keyNumbers(of: operation) { holders[key].insert(operation) }
        }
        for (number, key) in keys.enumerated() {
            guard key.holders.count == holders[number].count, holders[number] == Set(key.holders)
            else { return "key “\(key.name)” is held by others than those in flight that hold it" }
        }
        return nil
    }
}
