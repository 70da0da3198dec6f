import HeapModule
import OperonModel

extension Scheduler {
    /// Checks that everything that waits has a reason, and that every reason is true, recomputed
    /// from the primary state rather than from counters. The first violation, as a sentence; `nil`
    /// if there is none. For tests: O(operations × attempts in flight).
    package func violatedExplanation() -> String? {
        for id in graphs.kept {
            for index in graphs[id].operations.indices {
                let operation = OperationID(graph: id, index: index)
                let reasons = explain(operation)
                switch state(of: operation) {
                case .finished:
                    guard reasons.isEmpty else { return "\(operation) has ended and is explained" }
                case .executing:
                    let waits = waits[operation] != nil || externals[operation] != nil
                    guard reasons.isEmpty != waits else {
                        return "\(operation) runs and waits for others, or one of both"
                    }
                case .pending, .ready, .dispatched:
                    guard !reasons.isEmpty else { return "\(operation) waits without a reason" }
                }
                for reason in reasons where !isTrue(reason, of: operation) {
                    return "\(operation) waits because of \(reason), which is not true"
                }
            }
        }
        return nil
    }

    private func isTrue(_ reason: Reason, of operation: OperationID) -> Bool {
        let graph = graphs[operation.graph]
        let index = operation.index
        let queue = queues[graph.queue(operation.index)]
        switch reason {
        case .dependencies(let named, let more):
            let unfinished = dependencies(of: operation).map(\.operation)
                .filter { outcome(of: $0) == nil }
            return state(of: operation) == .pending && !unfinished.isEmpty
                && unfinished.prefix(named.count) == named[...]
                && unfinished.count == named.count + more
        case .operationSuspended(let suspension):
            return suspension == self.suspension(of: .operation(operation))
        case .graphSuspended(let suspension): return suspension == graph.suspension
        case .queueSuspended(let name, let suspension):
            return name == queue.name && suspension == queue.suspension
        case .queueLimit(let name, let maximum, let named, let more):
            let holders = inFlightByState(in: graph.queue(operation.index))
            return name == queue.name && maximum == queue.maximum && holders.count >= maximum
                && holders.isSuperset(of: named) && holders.count == named.count + more
        case .queueRate, .keyRate: return isRate(reason, of: operation)
        case .notBefore(let due):
            return graph.operations.retries[index] == 0 && isAwaited(operation, due)
        case .retryAt(let due):
            return graph.operations.retries[index] > 0 && isAwaited(operation, due)
        case .notYet(let due):
            return graph.operations.ordinal[index] > 0 && isAwaited(operation, due)
        case .keyHeld(let name, let named, let more):
            return isHeld(name, named, more, for: operation)
        case .groupLimit(let name, let maximum, let named, let more):
            return isFull(name, maximum, named, more, for: operation)
        case .noWorkerForKind(let kind):
            return kind == kinds[graph.kind(operation.index)].name
                && !candidates.contains { $0.runsAnyKind || $0.kindNames.contains(kind) }
        case .noWorkerForQueue(let name):
            return name == queue.name && servers(of: operation).isEmpty
        case .noWorkerForDemand, .resourcesTaken, .reserved:
            return isTrueOfDemand(reason, of: operation)
        case .noFreeSlot: return hasNoFreeSlot(operation)
        case .workersSilent:
            let able = able(operation)
            return !able.isEmpty && !able.contains(where: isWithinReach)
        case .behind(let first):
            return first != operation && state(of: first) == .ready
                && graphs.queue(of: first)
                    == graph.queue(operation.index)
        case .dispatched(let worker):
            return attempts.all.contains {
                $0.operation == operation && workers[$0.worker].identity.incarnation == worker
            }
        case .cancelRequested, .graphCancelled:
            return graph.operations.flags[index].contains(.cancelRequested)
        case .dispatchedBytes(let bytes, let maximum):
            let inFlight = attempts.all.filter { !$0.isYielded }
                .map { byteCount(of: $0.operation) }
            return bytes == inFlight.reduce(0, +) && bytes + byteCount(of: operation) > maximum
        case .awaits(let named, let more): return isAwaiting(operation, named, more)
        case .awaitsSlot(let worker): return wantsToGoOn(operation, at: worker)
        case .awaitsCompletion(let attempt): return externals[operation]?.id == attempt
        case .disconnected: return !isConnected
        case .leaving: return isLeaving
        }
    }

    private func isRate(_ reason: Reason, of operation: OperationID) -> Bool {
        switch reason {
        case .queueRate(let name, _, let next):
            name == queues[graphs.queue(of: operation)].name
                && isRateArmed(.queue(name), at: next, for: operation)
        case .keyRate(let name, _, let next):
            keyNames(of: operation).contains(name) && next > lastEventAt
        case _: false
        }
    }

    /// Nothing is armed while no worker has room, or the queue may start nothing anyway: the next
    /// operation that ends wakes the scheduler.
    private func isRateArmed(
        _ scope: RateScope,
        at next: Timestamp,
        for operation: OperationID
    ) -> Bool {
        let armed = deadlines.unordered.contains {
            if case .rate(scope) = $0.kind { $0.time == next } else { false }
        }
        let queue = graphs.queue(of: operation)
        let isNext = if case .queue = scope { hasPlace(queue) } else { true }
        let isNeeded =
            isConnected && workers.indices.contains(where: mayHaveRoom)
            || graphs.rule(of: operation).isExternal
        // What is not in its lane is looked at again when it comes back there.
        return next > lastEventAt
            && (armed || !isNeeded || !isNext || isLeaving || !isEnqueued(operation))
    }

    private func isTrueOfDemand(_ reason: Reason, of operation: OperationID) -> Bool {
        switch reason {
        case .noWorkerForDemand(let demand):
            return demand == demandClass(of: operation).demand && !demand.isEmpty
                && !servers(of: operation).contains { demand.isMet(by: $0.offer) }
        case .resourcesTaken(let shortages, _):
            return !shortages.isEmpty && shortages.allSatisfy { isTrue($0, of: operation) }
        case .reserved(let worker, let first):
            return first != operation && state(of: first) == .ready
                && able(operation).contains { $0.identity.incarnation == worker }
                && able(first).contains { $0.identity.incarnation == worker }
                && !fitsNow(first, on: worker)
        case _: return false
        }
    }

    private func hasNoFreeSlot(_ operation: OperationID) -> Bool {
        able(operation).allSatisfy { worker in
            let held = attempts.all.count {
                workers[$0.worker].address == worker.address && !$0.isYielded
            }
            return held >= worker.room.slots || worker.claim != nil || !isWithinReach(worker)
                || worker.room.resumingWithNeeds > 0
                    && !demandClass(of: operation).isBare
        }
    }

    private func isAwaiting(_ operation: OperationID, _ named: [OperationID], _ more: Int) -> Bool {
        guard let wait = waits[operation] else { return false }
        let left = Set(wait.awaited.filter { outcomeKind(of: $0) == nil })
        return !named.isEmpty && left.isSuperset(of: named)
            && named.count + more <= wait.awaited.count
    }

    private func wantsToGoOn(_ operation: OperationID, at incarnation: Incarnation) -> Bool {
        let owner = attempts.all.first { $0.operation == operation }?.worker
        return waits[operation]?.outcomes.contains(nil) == false
            && owner.map { workers[$0].identity.incarnation } == incarnation
    }

    private var candidates: [WorkerState] { workers.filter(\.takesWork) }

    private func able(_ operation: OperationID) -> [WorkerState] {
        let demand = demandClass(of: operation).demand
        return servers(of: operation).filter { demand.isMet(by: $0.offer) }
    }

    /// What a worker has left of a resource, counted by the attempts that it owns.
    private func recomputedLeft(_ resource: String, of worker: Incarnation) -> Int {
        guard let state = workers.first(where: { $0.identity.incarnation == worker }) else {
            return 0
        }
        let used = attempts.all.reduce(0) { sum, attempt in
            guard workers[attempt.worker].identity.incarnation == worker,
                !attempt.isYielded
            else { return sum }
            let demand = demandClass(of: attempt.operation).demand
            return sum + (demand.resources[resource] ?? 0)
        }
        return (state.offer.resources[resource] ?? 0) - used
    }

    private func isTrue(_ shortage: Shortage, of operation: OperationID) -> Bool {
        let left = recomputedLeft(shortage.resource, of: shortage.worker)
        return shortage.needed == demandClass(of: operation).demand.resources[shortage.resource]
            && shortage.left == max(0, left) && left < shortage.needed
            && able(operation).contains { $0.identity.incarnation == shortage.worker }
    }

    private func fitsNow(_ operation: OperationID, on worker: Incarnation) -> Bool {
        guard let index = workerNumbers[worker], workers[index].room.resumingWithNeeds == 0
        else { return false }
        let held = attempts.all.count { $0.worker == index && !$0.isYielded }
        return held < workers[index].room.slots
            && demandClass(of: operation).demand.resources.all.allSatisfy {
                recomputedLeft($0.name, of: worker) >= $0.amount
            }
    }

    private func servers(of operation: OperationID) -> [WorkerState] {
        let graph = graphs[operation.graph]
        let queue = queues[graph.queue(operation.index)].name
        let kind = kinds[graph.kind(operation.index)].name
        return candidates.filter {
            ($0.runsAnyKind || $0.kindNames.contains(kind))
                && ($0.queueNames.isEmpty || $0.queueNames.contains(queue))
        }
    }

    private func inFlightByState(in queue: Int) -> Set<OperationID> {
        Set(
            members(of: queue).filter {
                state(of: $0) == .dispatched
                    || state(of: $0) == .executing && waits[$0]?.isResuming != false
            }
        )
    }

    /// Whether a timer is due then.
    private func isAwaited(_ operation: OperationID, _ due: Due?) -> Bool {
        switch due {
        case .time(let time):
            deadlines.unordered.contains {
                if case .release(operation) = $0.kind { $0.time == time } else { false }
            }
        case .date(let date):
            dates.unordered.contains {
                if case .release(operation) = $0.kind { $0.date <= date } else { false }
            }
        case nil: false
        }
    }

    private func key(ofGroup name: String, of operation: OperationID) -> Int? {
        graphs.policy(of: operation).keys.map { graphs[operation.graph].keys[Int($0)] }
            .first { keys[$0].group?.name == name }
    }

    private func isHeld(
        _ name: String,
        _ named: [OperationID],
        _ more: Int,
        for operation: OperationID
    ) -> Bool {
        let holders = Set(
            (attempts.all.map(\.operation) + externals.keys)
                .filter { keyNames(of: $0).contains(name) }
        )
        return keyNames(of: operation).contains(name) && holders.isSuperset(of: named)
            && holders.count == named.count + more && holders.count >= limit(ofKey: name)
    }

    private func isFull(
        _ group: String,
        _ maximum: Int,
        _ named: [OperationID],
        _ more: Int,
        for operation: OperationID
    ) -> Bool {
        let holders = inFlight(ofGroup: group, of: operation)
        return key(ofGroup: group, of: operation).map { keys[$0].limit } == maximum
            && holders.count >= maximum && holders.isSuperset(of: named)
            && holders.count == named.count + more
    }

    /// The operations in flight that share a group with an operation.
    private func inFlight(ofGroup name: String, of operation: OperationID) -> Set<OperationID> {
        guard let key = key(ofGroup: name, of: operation) else { return [] }
        return Set(
            (attempts.all.map(\.operation) + externals.keys).filter { other in
                let others = graphs.policy(of: other).keys
                return others.contains { graphs[other.graph].keys[Int($0)] == key }
            }
        )
    }

    private func keyNames(of operation: OperationID) -> [String] {
        let graph = graphs[operation.graph]
        return graph.policy(operation.index).keys.map { keys[graph.keys[Int($0)]].name }
    }
}

extension Scheduler.Reason {
    /// The cases of `Reason`, so that a test can check that it met them all.
    package enum Kind: String, Hashable, Sendable, CaseIterable {
        case dependencies
        case operationSuspended
        case graphSuspended
        case queueSuspended
        case queueLimit
        case queueRate
        case keyRate
        case notBefore
        case retryAt
        case notYet
        case keyHeld
        case groupLimit
        case noWorkerForKind
        case noWorkerForQueue
        case noWorkerForDemand
        case resourcesTaken
        case reserved
        case workersSilent
        case noFreeSlot
        case behind
        case dispatched
        case cancelRequested
        case graphCancelled
        case dispatchedBytes
        case awaits
        case awaitsSlot
        case awaitsCompletion
        case disconnected
        case leaving
    }

    package var kind: Kind {
        switch self {
        case .dependencies: .dependencies
        case .operationSuspended: .operationSuspended
        case .graphSuspended: .graphSuspended
        case .queueSuspended: .queueSuspended
        case .queueLimit: .queueLimit
        case .queueRate: .queueRate
        case .keyRate: .keyRate
        case .notBefore: .notBefore
        case .retryAt: .retryAt
        case .notYet: .notYet
        case .keyHeld: .keyHeld
        case .groupLimit: .groupLimit
        case .noWorkerForKind: .noWorkerForKind
        case .noWorkerForQueue: .noWorkerForQueue
        case .noWorkerForDemand: .noWorkerForDemand
        case .resourcesTaken: .resourcesTaken
        case .reserved: .reserved
        case .workersSilent: .workersSilent
        case .noFreeSlot: .noFreeSlot
        case .behind: .behind
        case .dispatched: .dispatched
        case .cancelRequested: .cancelRequested
        case .graphCancelled: .graphCancelled
        case .dispatchedBytes: .dispatchedBytes
        case .awaits: .awaits
        case .awaitsSlot: .awaitsSlot
        case .awaitsCompletion: .awaitsCompletion
        case .disconnected: .disconnected
        case .leaving: .leaving
        }
    }
}

extension Scheduler {
    /// The kinds of reasons for which any operation waits in this state.
    package var reasonKinds: Set<Reason.Kind> {
        var kinds: Set<Reason.Kind> = []
        for id in graphs.kept {
            for index in graphs[id].operations.indices {
                let operation = OperationID(graph: id, index: index)
                for reason in explain(operation) { kinds.insert(reason.kind) }
            }
        }
        return kinds
    }
}
