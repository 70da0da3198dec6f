import HeapModule
package import OperonModel

// What must be the same after a death as it was before.
extension Scheduler {
    /// The first thing of what has to survive that differs between two schedulers of one store, as
    /// a sentence; `nil` if nothing does. O(operations). The simulator restores one from its store
    /// now and then, and compares.
    package func durableDifference(from other: Scheduler, at now: Timestamp) -> String? {
        guard graphs.count == other.graphs.count else {
            return "\(graphs.count) graphs became \(other.graphs.count)"
        }
        let times = releaseTimes(after: now)
        let otherTimes = other.releaseTimes(after: now)
        for number in graphs.indices {
            if other.graphs[number].remains.count > 0 {
                guard graphs[number].outcome == other.graphs[number].remains.all else {
                    return "graph \(number) finished with other outcomes"
                }
                continue
            }
            let graph = durable(graphs[number])
            let otherGraph = other.durable(other.graphs[number])
            guard graph == otherGraph else {
                return "graph \(number) was \(graph), became \(otherGraph)"
            }
            for index in 0..<UInt32(graphs[number].state.count) {
                let id = OperationID(graph: GraphID(rawValue: UInt32(number)), index: index)
                let operation = durable(id, releasedAt: times[id])
                let otherOperation = other.durable(id, releasedAt: otherTimes[id])
                guard operation == otherOperation else {
                    return "\(id) was \(operation), became \(otherOperation)"
                }
            }
        }
        return queueDifference(from: other) ?? keyDifference(from: other)
    }

    private func queueDifference(from other: Scheduler) -> String? {
        for queue in queues {
            guard let number = other.queueNumbers[queue.name] else {
                return "queue “\(queue.name)” is gone"
            }
            guard durable(queue) == durable(other.queues[number]) else {
                return
                    "queue “\(queue.name)” was \(durable(queue)), "
                    + "became \(durable(other.queues[number]))"
            }
        }
        return nil
    }

    private func keyDifference(from other: Scheduler) -> String? {
        for key in keys {
            let holder = other.keyNumbers[key.name].flatMap { other.keys[$0].holder }
            guard key.holder == holder else { return "key “\(key.name)” changed its holder" }
        }
        guard dispatchedBytes == other.dispatchedBytes else {
            return "\(dispatchedBytes) bytes dispatched became \(other.dispatchedBytes)"
        }
        return nil
    }

    /// When what waits for a time is released; what is due is as good as released.
    private func releaseTimes(after now: Timestamp) -> [OperationID: Timestamp] {
        var times: [OperationID: Timestamp] = [:]
        for deadline in deadlines.unordered {
            guard case .release(let id) = deadline.kind, deadline.time > now, exists(id),
                graphs[Int(id.graph.rawValue)].flags[Int(id.index)].contains(.delayed)
            else { continue }
            // What an earlier pause left behind releases nobody later than this one does.
            times[id] = max(times[id] ?? deadline.time, deadline.time)
        }
        return times
    }

    private func durable(_ graph: GraphState) -> DurableGraph {
        DurableGraph(
            unfinished: graph.unfinished,
            counts: graph.counts,
            isSuspended: graph.isSuspended,
            cancelReason: graph.isCancelled ? graph.cancelReason : nil
        )
    }

    private func durable(_ queue: QueueState) -> DurableQueue {
        DurableQueue(
            maximum: queue.maximum,
            isSuspended: queue.isSuspended,
            priority: queue.priority,
            inFlight: queue.inFlight
        )
    }

    private func durable(_ id: OperationID, releasedAt: Timestamp?) -> DurableOperation {
        let graph = graphs[Int(id.graph.rawValue)]
        let index = Int(id.index)
        var flags: OperationFlags = []
        var wasted = Losses()
        if graph.state[index] != .finished {
            // Those that stay; the others say where it waits, or follow from its dependencies.
            flags = graph.flags[index].intersection([
                .cancelRequested, .suspended, .deadlinePassed, .skipDemanded,
            ])
            if graph.state[index] == .ready, graph.flags[index].contains(.comesBack) {
                flags.insert(.comesBack)
            }
            wasted = graph.losses[id.index] ?? wasted
        }
        var attempt: DurableAttempt?
        if graph.attempt[index] != GraphState.noAttempt,
            let held = attempts[Int(graph.attempt[index])]
        {
            attempt = DurableAttempt(
                id: held.id,
                ordinal: held.ordinal,
                worker: workers[held.worker].identity.incarnation,
                hasStarted: held.hasStarted
            )
        }
        return DurableOperation(
            state: graph.state[index],
            outcome: graph.finalOutcome(id.index),
            flags: flags.rawValue,
            level: graph.level[index],
            waiting: graph.state[index] == .pending ? graph.waiting[index] : 0,
            ordinal: graph.ordinal[index],
            retries: graph.retries[index],
            reason: graph.state[index] == .finished ? nil : graph.reasons[id.index],
            workersLost: wasted.workers,
            crashes: wasted.crashes,
            attempt: attempt,
            releasedAt: graph.state[index] == .ready ? releasedAt : nil
        )
    }
}

private struct DurableGraph: Hashable {
    let unfinished: Int
    let counts: [Int]
    let isSuspended: Bool
    let cancelReason: String?
}

private struct DurableQueue: Hashable {
    let maximum: Int?
    let isSuspended: Bool
    let priority: QueuePriority
    let inFlight: Int
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
    let level: UInt8
    let waiting: UInt32
    let ordinal: UInt32
    let retries: UInt16
    let reason: String?
    let workersLost: Int
    let crashes: Int
    let attempt: DurableAttempt?
    let releasedAt: Timestamp?
}

extension OutcomeRuns {
    fileprivate var all: [OutcomeKind?] { (0..<count).map { self[$0] } }
}
