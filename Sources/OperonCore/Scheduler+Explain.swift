import HeapModule
package import OperonModel

extension Scheduler {
    /// Why an operation is not running: every reason at once. Empty for one that runs or finished.
    package enum Reason: Hashable, Sendable {
        /// It waits for these, `more` beyond the first few.
        case dependencies([OperationID], more: Int)
        case operationSuspended
        case graphSuspended
        case queueSuspended(String)
        /// Its queue runs as many as it may.
        case queueLimit(String, maximum: Int)
        /// A pause before its first attempt, or between two.
        case notBefore(Timestamp?)
        case keyHeld(String, by: OperationID)
        /// No live worker knows the kind.
        case noWorkerForKind(String)
        /// No live worker that knows the kind serves the queue.
        case noWorkerForQueue(String)
        /// Every worker that could run it is busy; operations before it in its queue.
        case noFreeSlot
        /// A worker has it and will start it.
        case dispatched(to: Incarnation)
        /// What is dispatched already takes this many bytes: it must finish first.
        case dispatchedBytes(Int, maximum: Int)
        /// The coordinator has no connection to its workers.
        case disconnected
    }

    /// Operations named in one reason.
    private static var dependenciesNamedMax: Int { 8 }

    package func explain(_ operation: OperationID) -> [Reason] {
        guard exists(operation) else { return [] }
        let graph = graphs[Int(operation.graph.rawValue)]
        switch graph.state[Int(operation.index)] {
        case .executing, .finished: return []
        case .dispatched:
            guard let attempt = attempts[Int(graph.attempt[Int(operation.index)])] else {
                return []
            }
            let worker = workers[attempt.worker].identity.incarnation
            return isConnected
                ? [.dispatched(to: worker)] : [.dispatched(to: worker), .disconnected]
        case .pending:
            return [unfinishedDependencies(of: operation, in: graph)]
                + suspensions(of: operation, in: graph)
        case .ready:
            return reasonsWhileReady(operation, in: graph)
        }
    }

    private func unfinishedDependencies(
        of operation: OperationID,
        in graph: GraphState
    ) -> Reason {
        var unfinished: [OperationID] = []
        var more = 0
        for edge in graph.compiled.topology.dependencies(of: operation.index)
        where graph.outcome[Int(edge.operation)] == nil {
            if unfinished.count < Self.dependenciesNamedMax {
                unfinished.append(OperationID(graph: operation.graph, index: edge.operation))
            } else {
                more += 1
            }
        }
        return .dependencies(unfinished, more: more)
    }

    private func suspensions(of operation: OperationID, in graph: GraphState) -> [Reason] {
        var reasons: [Reason] = []
        if graph.flags[Int(operation.index)].contains(.suspended) {
            reasons.append(.operationSuspended)
        }
        if graph.isSuspended { reasons.append(.graphSuspended) }
        let queue = queues[graph.queue(operation.index)]
        if queue.isSuspended { reasons.append(.queueSuspended(queue.name)) }
        return reasons
    }

    private func reasonsWhileReady(_ operation: OperationID, in graph: GraphState) -> [Reason] {
        var reasons = suspensions(of: operation, in: graph)
        let flags = graph.flags[Int(operation.index)]
        let queue = queues[graph.queue(operation.index)]
        let queueNumber = graph.queue(operation.index)
        let kind = graph.kind(operation.index)
        if flags.contains(.delayed) { reasons.append(.notBefore(dueTime(of: operation))) }
        if let maximum = queue.maximum, queue.inFlight >= maximum {
            reasons.append(.queueLimit(queue.name, maximum: maximum))
        }
        for local in graph.policy(operation.index).keys {
            let key = keys[graph.keys[Int(local)]]
            if let holder = key.holder { reasons.append(.keyHeld(key.name, by: holder)) }
        }
        let bytesMax = configuration.limits.dispatchedBytes
        let bytes = byteCount(of: operation)
        if bytes > 0, dispatchedBytes > 0, dispatchedBytes + bytes > bytesMax {
            reasons.append(.dispatchedBytes(dispatchedBytes, maximum: bytesMax))
        }
        if !isConnected { reasons.append(.disconnected) }
        let alive = workers.filter { $0.isAlive && !$0.isDraining }
        if !alive.contains(where: { $0.knowsKind[kind] }) {
            reasons.append(.noWorkerForKind(kinds[kind].name))
        } else if !alive.contains(where: { $0.servesQueue[queueNumber] && $0.knowsKind[kind] }) {
            reasons.append(.noWorkerForQueue(queue.name))
        }
        return reasons.isEmpty ? [.noFreeSlot] : reasons
    }

    private func dueTime(of operation: OperationID) -> Timestamp? {
        var earliest: Timestamp?
        for deadline in deadlines.unordered {
            guard case .release(operation) = deadline.kind else { continue }
            earliest = min(earliest ?? deadline.time, deadline.time)
        }
        return earliest
    }
}

// MARK: - What can be asked

extension Scheduler {
    package func state(of operation: OperationID) -> OperationState {
        graphs[Int(operation.graph.rawValue)].state[Int(operation.index)]
    }

    package func outcome(of operation: OperationID) -> Outcome? {
        graphs[Int(operation.graph.rawValue)].finalOutcome(operation.index)
    }

    package func attemptCount(of operation: OperationID) -> Int {
        Int(graphs[Int(operation.graph.rawValue)].ordinal[Int(operation.index)])
    }

    package func isFinished(_ graph: GraphID) -> Bool {
        graphs[Int(graph.rawValue)].unfinished == 0
    }

    /// Finished operations by outcome.
    package func count(of graph: GraphID, _ outcome: OutcomeKind) -> Int {
        graphs[Int(graph.rawValue)].counts[Int(outcome.rawValue)]
    }

    /// Whether an attempt was granted and has neither ended nor been given up. O(in flight).
    package func isInFlight(_ attempt: AttemptID) -> Bool {
        attempts.contains { $0?.id == attempt }
    }

    package var graphCount: Int { graphs.count }

    package func operationCount(of graph: GraphID) -> Int {
        graphs[Int(graph.rawValue)].state.count
    }

    package func compiled(_ graph: GraphID) -> CompiledGraph {
        graphs[Int(graph.rawValue)].compiled
    }

    /// Slots of all workers that are alive and not draining.
    package var slotCount: Int {
        workers.reduce(0) { $0 + ($1.isAlive && !$1.isDraining ? $1.slots : 0) }
    }

    /// Workers that are alive, or gone and remembered.
    package var knownWorkerCount: Int { workers.count }

    package func queueMembersInFlight(_ name: String) -> Int {
        queueNumbers[name].map { queues[$0].inFlight } ?? 0
    }
}
