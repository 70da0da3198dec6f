import HeapModule
package import OperonModel

extension Scheduler {
    /// Why an operation is not running: every reason at once. Empty for one that finished, or that
    /// runs and waits for nothing.
    package enum Reason: Hashable, Sendable {
        /// It waits for these, `more` beyond the first few.
        case dependencies([OperationID], more: Int)
        case operationSuspended(Suspension)
        case graphSuspended(Suspension)
        case queueSuspended(String, Suspension)
        /// Its queue runs as many as it may: these, and `more` beyond the first few.
        case queueLimit(String, maximum: Int, [OperationID], more: Int)
        /// A pause before its first attempt.
        case notBefore(Due?)
        /// A pause before a further attempt, after a failure.
        case retryAt(Due?)
        /// Its last attempt said that what it needs does not hold yet: a pause before the next.
        case notYet(Due?)
        /// As many hold one of its keys as may: these, and `more` beyond the first few.
        case keyHeld(String, by: [OperationID], more: Int)
        /// No live worker knows the kind.
        case noWorkerForKind(String)
        /// No live worker that knows the kind serves the queue.
        case noWorkerForQueue(String)
        /// Every worker that could run it was silent for more than two beats, or the broker
        /// returned what was sent to it. Not told while there is no connection.
        case workersSilent
        /// Every worker that could run it is busy, some of them with operations before it.
        case noFreeSlot
        /// This one is before it, and waits for room for what it is made of.
        case behind(OperationID)
        /// A worker has it and will start it.
        case dispatched(to: Incarnation)
        /// Its worker was asked to end it, or never to start it, and has not answered yet.
        case cancelRequested(reason: String)
        /// The same, because of its graph.
        case graphCancelled(reason: String)
        /// What is dispatched already takes this many bytes: it must finish first.
        case dispatchedBytes(Int, maximum: Int)
        /// It runs, and waits for these, its slot given back; `more` beyond the first few.
        case awaits([OperationID], more: Int)
        /// All that it waited for has ended: it goes on when its worker has a slot for it, and its
        /// queue a place.
        case awaitsSlot(of: Incarnation)
        /// It runs nowhere: somebody outside has to complete this attempt.
        case awaitsCompletion(AttemptID)
        /// The coordinator has no connection to its workers.
        case disconnected
        /// The coordinator is shutting down.
        case leaving
    }

    /// Operations named in one reason.
    static var namedInReasonMax: Int { 8 }

    package func explain(_ operation: OperationID) -> [Reason] {
        guard exists(operation) else { return [] }
        let graph = graphs[Int(operation.graph.rawValue)]
        switch graph.state[Int(operation.index)] {
        case .finished: return []
        case .executing:
            if let external = externals[operation] { return [.awaitsCompletion(external.id)] }
            return reasonsWhileYielded(operation)
        case .dispatched: return reasonsWhileDispatched(operation, in: graph)
        case .pending:
            return [unfinishedDependencies(of: operation)]
                + suspensions(of: operation, in: graph)
        case .ready:
            return reasonsWhileReady(operation, in: graph)
        }
    }

    private func reasonsWhileDispatched(
        _ operation: OperationID,
        in graph: GraphState
    ) -> [Reason] {
        guard let attempt = attempts[Int(graph.attempt[Int(operation.index)])] else { return [] }
        var reasons = [Reason.dispatched(to: workers[attempt.worker].identity.incarnation)]
        if graph.flags[Int(operation.index)].contains(.cancelRequested) {
            if let reason = graph.reasons[operation.index] {
                reasons.append(.cancelRequested(reason: reason))
            } else {
                reasons.append(.graphCancelled(reason: graph.cancelReason))
            }
        }
        reasons += suspensions(of: operation, in: graph)
        if !isConnected { reasons.append(.disconnected) }
        return reasons
    }

    private func unfinishedDependencies(of operation: OperationID) -> Reason {
        var unfinished: [OperationID] = []
        var more = 0
        forEachDependency(of: operation) { dependency, _ in
            guard outcomeKind(of: dependency) == nil else { return }
            if unfinished.count < Self.namedInReasonMax {
                unfinished.append(dependency)
            } else {
                more += 1
            }
        }
        return .dependencies(unfinished, more: more)
    }

    private func suspensions(of operation: OperationID, in graph: GraphState) -> [Reason] {
        var reasons: [Reason] = []
        if let suspension = suspension(of: .operation(operation)) {
            reasons.append(.operationSuspended(suspension))
        }
        if let suspension = graph.suspension { reasons.append(.graphSuspended(suspension)) }
        let queue = queues[graph.queue(operation.index)]
        if let suspension = queue.suspension {
            reasons.append(.queueSuspended(queue.name, suspension))
        }
        return reasons
    }

    private func reasonsWhileReady(_ operation: OperationID, in graph: GraphState) -> [Reason] {
        var reasons = suspensions(of: operation, in: graph)
        let flags = graph.flags[Int(operation.index)]
        let queue = queues[graph.queue(operation.index)]
        if flags.contains(.delayed) {
            let due = graph.delays[operation.index]?.due
            let isRetry = graph.retries[Int(operation.index)] > 0
            if graph.unmet.contains(operation.index) {
                reasons.append(.notYet(due))
            } else {
                reasons.append(isRetry ? .retryAt(due) : .notBefore(due))
            }
        }
        if let maximum = queue.maximum, !queue.hasRoomForNew {
            let (held, more) = inFlight(ofQueue: graph.queue(operation.index))
            reasons.append(.queueLimit(queue.name, maximum: maximum, held, more: more))
        }
        for local in graph.policy(operation.index).keys {
            let key = keys[graph.keys[Int(local)]]
            guard !key.hasRoom else { continue }
            let named = Array(key.holders.prefix(Self.namedInReasonMax))
            let more = key.holders.count - named.count
            reasons.append(.keyHeld(key.name, by: named, more: more))
        }
        if isLeaving { reasons.append(.leaving) }
        // It needs no worker: without another reason it would have been started.
        if graph.rule(operation.index).isExternal { return reasons }
        let bytesMax = configuration.limits.dispatchedBytes
        let bytes = byteCount(of: operation)
        if bytes > 0, dispatchedBytes > 0, dispatchedBytes + bytes > bytesMax {
            reasons.append(.dispatchedBytes(dispatchedBytes, maximum: bytesMax))
        }
        if !isConnected { reasons.append(.disconnected) }
        if let reason = missingWorker(for: operation, in: graph) { reasons.append(reason) }
        guard reasons.isEmpty else { return reasons }
        return [hasWorkerWithRoom(for: operation) ? behind(operation, in: graph) : .noFreeSlot]
    }

    private func missingWorker(for operation: OperationID, in graph: GraphState) -> Reason? {
        let queue = graph.queue(operation.index)
        let kind = graph.kind(operation.index)
        let alive = workers.filter(\.takesWork)
        if !alive.contains(where: { $0.knowsKind[kind] }) {
            return .noWorkerForKind(kinds[kind].name)
        }
        if !alive.contains(where: { $0.servesQueue[queue] && $0.knowsKind[kind] }) {
            return .noWorkerForQueue(queues[queue].name)
        }
        let able = alive.filter { $0.servesQueue[queue] && $0.knowsKind[kind] }
        // Without a connection nobody is heard.
        return !isConnected || able.contains(where: isWithinReach) ? nil : .workersSilent
    }

    /// The most urgent of its lane: nothing else keeps it.
    private func behind(_ operation: OperationID, in graph: GraphState) -> Reason {
        let lane = lanes[graph.rule(operation.index).lane]
        let first = lane.heap.unordered.filter {
            isEnqueued($0.operation)
                && $0.urgency == graphs[Int($0.graph)].urgency(Int($0.index))
        }.max()
        return first.map { .behind($0.operation) } ?? .noFreeSlot
    }

    /// In the order of the table of attempts.
    private func inFlight(ofQueue queue: Int) -> (named: [OperationID], more: Int) {
        var named: [OperationID] = []
        for attempt in attempts {
            guard named.count < Self.namedInReasonMax else { break }
            guard let attempt, self.queue(of: attempt) == queue,
                waits[attempt.operation]?.isResuming != false
            else { continue }
            named.append(attempt.operation)
        }
        if queues[queue].external > 0, named.count < Self.namedInReasonMax {
            let others = externals.keys.filter { id in
                graphs[Int(id.graph.rawValue)].queue(id.index) == queue
            }
            named += others.sorted().prefix(Self.namedInReasonMax - named.count)
        }
        return (named, queues[queue].inFlight + queues[queue].resuming - named.count)
    }
}

// MARK: - What can be asked

extension Scheduler {
    /// What is kept by its outcome alone has finished.
    package func state(of operation: OperationID) -> OperationState {
        guard exists(operation) else { return .finished }
        return graphs[Int(operation.graph.rawValue)].state[Int(operation.index)]
    }

    /// `nil`: it has none, or no more than its kind is kept.
    package func outcome(of operation: OperationID) -> Outcome? {
        guard exists(operation) else { return nil }
        return graphs[Int(operation.graph.rawValue)].finalOutcome(operation.index)
    }

    /// Whether more than its outcome is kept.
    package func isKept(_ operation: OperationID) -> Bool { exists(operation) }

    /// How the operations of a graph ended of which nothing else is kept; empty for any other.
    package func remains(of graph: GraphID) -> OutcomeRuns {
        graphs.dropped[graph]
    }

    package func attemptCount(of operation: OperationID) -> Int {
        Int(graphs[Int(operation.graph.rawValue)].ordinal[Int(operation.index)])
    }

    /// Everything in it has its outcome, and nothing can be added.
    package func isFinished(_ graph: GraphID) -> Bool {
        graphs[Int(graph.rawValue)].unfinished == 0 && !graphs[Int(graph.rawValue)].isOpen
    }

    /// Its deadline has passed, and that is a record.
    package func isPastDeadline(_ operation: OperationID) -> Bool {
        exists(operation)
            && graphs[Int(operation.graph.rawValue)].flags[Int(operation.index)]
                .contains(.deadlinePassed)
    }

    /// Finished operations by outcome.
    package func count(of graph: GraphID, _ outcome: OutcomeKind) -> Int {
        graphs[Int(graph.rawValue)].counts[Int(outcome.rawValue)]
    }

    /// Whether an attempt was granted and has neither ended nor been given up. O(in flight).
    package func isInFlight(_ attempt: AttemptID) -> Bool {
        attempts.contains { $0?.id == attempt } || externals.values.contains { $0.id == attempt }
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
        workers.reduce(0) { $0 + ($1.takesWork ? $1.slots : 0) }
    }

    /// Workers that are alive, or gone and remembered.
    package var knownWorkerCount: Int { workers.count }

    package func queueMembersInFlight(_ name: String) -> Int {
        queueNumbers[name].map { queues[$0].inFlight } ?? 0
    }
}
