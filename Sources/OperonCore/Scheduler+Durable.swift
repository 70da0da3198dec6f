import HeapModule
import OperonModel

// The state that must be the same before and after a crash. Some state is not compared, because a
// restored scheduler may differ in it without harm:
//
// - `KindState.duration`, `QueueState.servedAt`, the order of queues, keys and lanes: measured and
//   counted anew; they decide which of several equals is first, never whether it may start.
// - `parked` and `inLane`: a restored operation starts in its lane, and admission parks it.
// - `unmet`, of operations that were retried or have a delay of their own: `explain` says less
//   about a pause that began before the crash, and nothing wrong.
// - `lostAttempts`: a worker that was given up before is no longer waited for.
// - `AttemptState.sequence`, `recall`, `isAwaited`, leases: the protocol starts again with a hello,
//   and the welcome repeats open orders.
// - `level`, `deadlinePassed`, reasons and losses of finished operations: `reopen` resets them.
// - since when an open graph has had nothing to do: the store knows when its last operation ended.
// - the order in which the dependents of an operation learn of its outcome, and how many
//   dependencies it had before some were removed.
extension Scheduler {
    /// The first difference between two schedulers of one store in the state that has to survive,
    /// as a sentence; `nil` if there is none. O(operations). The simulator restores a scheduler
    /// from its store now and then, and compares.
    package func durableDifference(from other: Scheduler) -> String? {
        guard graphs.count == other.graphs.count else {
            return "\(graphs.count) graphs became \(other.graphs.count)"
        }
        for id in graphs.all {
            if graphs[id].isGone || other.graphs[id].isGone {
                guard allOutcomes(of: id) == other.allOutcomes(of: id) else {
                    return "graph \(id) finished with other outcomes"
                }
                continue
            }
            let graph = durable(graphs[id])
            let otherGraph = other.durable(other.graphs[id])
            guard graph == otherGraph else {
                return "graph \(id) was \(graph), became \(otherGraph)"
            }
            for index in graphs[id].operations.indices {
                let id = OperationID(graph: id, index: index)
                let operation = durable(id)
                let otherOperation = other.durable(id)
                guard operation == otherOperation else {
                    return "\(id) was \(operation), became \(otherOperation)"
                }
            }
        }
        return queueDifference(from: other) ?? keyDifference(from: other)
    }

    private func allOutcomes(of graph: GraphID) -> [OutcomeKind?] {
        guard graphs.isDropped(graph) else { return graphs[graph].operations.outcome.all }
        return graphs.dropped[graph].all
    }

    private func queueDifference(from other: Scheduler) -> String? {
        // A queue that is missing counts as one with default settings. The first difference by name
        // is reported.
        for name in Set(queueNumbers.keys).union(other.queueNumbers.keys).sorted() {
            let (queue, otherQueue) = (durable(queueNamed: name), other.durable(queueNamed: name))
            guard queue == otherQueue else {
                return "queue “\(name)” was \(queue), became \(otherQueue)"
            }
        }
        return nil
    }

    private func durable(queueNamed name: String) -> DurableQueue {
        durable(queueNumbers[name].map { queues[$0] } ?? QueueState(name: name))
    }

    private func keyDifference(from other: Scheduler) -> String? {
        for key in keys where !key.isFree {
            let same = other.keyNumbers[key.name].map { other.keys[$0] } ?? KeyState(name: key.name)
            guard key.holders.sorted() == same.holders.sorted() else {
                return "key “\(key.name)” changed its holders"
            }
            guard key.bucket?.rate == same.bucket?.rate else {
                return "key “\(key.name)” changed its rate"
            }
            guard key.limit == same.limit, key.isCommanded == same.isCommanded else {
                return "key “\(key.name)” changed its limit from \(key.limit) to \(same.limit)"
            }
        }
        guard dispatchedBytes == other.dispatchedBytes else {
            return "\(dispatchedBytes) bytes dispatched became \(other.dispatchedBytes)"
        }
        return nil
    }

    private func durable(_ graph: GraphState) -> DurableGraph {
        DurableGraph(
            unfinished: graph.unfinished,
            counts: graph.counts,
            submittedAt: graph.submittedAt.wall,
            operationCount: Int(graph.operations.count),
            isOpen: graph.isOpen,
            isIdle: graph.idleness != nil,
            suspension: graph.suspension,
            cancelReason: graph.isCancelled ? graph.cancelReason : nil
        )
    }

    private func durable(_ queue: QueueState) -> DurableQueue {
        // Waits are not stored: after a restart such operations count as running.
        let waiting = waits.keys.count {
            let graph = graphs[$0.graph]
            return queues[graph.queue($0.index)].name == queue.name
        }
        return DurableQueue(
            maximum: queue.maximum,
            suspension: queue.suspension,
            priority: queue.priority,
            commanded: queue.commanded,
            inFlight: queue.inFlight + waiting,
            unfinished: queue.unfinished
        )
    }

    private func durable(_ id: OperationID) -> DurableOperation {
        let graph = graphs[id.graph]
        let index = id.index
        var flags = graph.operations.flags[index].intersection(.suspended)
        var wasted = Losses()
        if graph.operations.state[index] != .finished {
            // These flags survive. The others say where the operation waits, or follow from its
            // dependencies.
            flags.formUnion(
                graph.operations.flags[index].intersection([
                    .cancelRequested, .deadlinePassed, .skipDemanded,
                ])
            )
            if graph.operations.attempt[index] == AttemptTable.none,
                graph.operations.flags[index].contains(.comesBack)
            {
                flags.insert(.comesBack)
            }
            wasted = graph.losses[id.index] ?? wasted
        }
        var attempt: DurableAttempt?
        if graph.operations.attempt[index] != AttemptTable.none,
            let held = attempts[graph.operations.attempt[index]]
        {
            attempt = DurableAttempt(
                id: held.id,
                ordinal: held.ordinal,
                worker: workers[held.worker].identity.incarnation,
                hasStarted: held.hasStarted
            )
        }
        if let held = externals[id] {
            attempt = DurableAttempt(
                id: held.id,
                ordinal: held.ordinal,
                worker: .nobody,
                hasStarted: true
            )
        }
        return DurableOperation(
            state: graph.operations.state[index],
            outcome: outcome(of: id),
            flags: flags.rawValue,
            level: graph.operations.state[index] == .finished ? nil : graph.operations.level[index],
            isPrioritised: graph.prioritised.contains(id.index),
            round: graph.rounds[id.index] ?? 0,
            suspension: suspension(of: .operation(id)),
            policy: durablePolicy(of: id),
            dependencies: dependencies(of: id),
            dependents: durableDependents(of: id),
            waiting: graph.operations.state[index] == .pending
                ? graph.operations.waiting[index] : 0,
            ordinal: graph.operations.ordinal[index],
            retries: graph.operations.retries[index],
            reason: graph.operations.state[index] == .finished ? nil : graph.reasons[id.index],
            workersLost: wasted.workers,
            crashes: wasted.crashes,
            attempt: attempt,
            releasedAt: delay(of: id)?.recorded
        )
    }
}

extension Scheduler {
    private func durableDependents(of id: OperationID) -> [Dependency] {
        var dependents: [Dependency] = []
        forEachDependent(of: id) {
            dependents.append(Dependency(operation: $0, condition: $1))
        }
        return dependents.sorted { $0.operation < $1.operation }
    }

    /// With names instead of numbers, which depend on the order in which the names were first used.
    private func durablePolicy(of id: OperationID) -> DurablePolicy {
        let rule = graphs.rule(of: id)
        var policy = graphs.policy(of: id)
        let held = policy.keys.map { keys[graphs[id.graph].keys[Int($0)]].name }
        (policy.queue, policy.kind, policy.keys) = (0, 0, [])
        return DurablePolicy(
            policy: policy,
            queue: queues[rule.queue].name,
            kind: kinds[rule.kind].name,
            keys: held,
            rank: graphs.rank(of: id),
            bytes: byteCount(of: id)
        )
    }
}

private struct DurablePolicy: Hashable {
    let policy: OperationPolicy
    let queue: String
    let kind: String
    let keys: [String]
    let rank: UInt64
    let bytes: Int
}

private struct DurableGraph: Hashable {
    let unfinished: Int
    let counts: OutcomeCounts
    let submittedAt: WallTime
    let operationCount: Int
    let isOpen: Bool
    let isIdle: Bool
    let suspension: Suspension?
    let cancelReason: String?
}

private struct DurableQueue: Hashable {
    let maximum: Int?
    let suspension: Suspension?
    let priority: QueuePriority
    let commanded: QueueCommands
    let inFlight: Int
    let unfinished: Int
}

private struct DurableAttempt: Hashable {
    let id: AttemptID
    let ordinal: UInt32
    let worker: Incarnation
    let hasStarted: Bool
}

private struct DurableOperation: Hashable {
    let state: OperationState
    let outcome: Outcome?
    let flags: UInt8
    let level: UInt8?
    let isPrioritised: Bool
    let round: UInt32
    let suspension: Suspension?
    let policy: DurablePolicy
    let dependencies: [Dependency]
    let dependents: [Dependency]
    let waiting: UInt32
    let ordinal: UInt32
    let retries: UInt16
    let reason: String?
    let workersLost: Int
    let crashes: Int
    let attempt: DurableAttempt?
    let releasedAt: WallTime?
}

extension OutcomeRuns {
    fileprivate var all: [OutcomeKind?] { (0..<count).map { self[$0] } }
}
