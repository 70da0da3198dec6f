import HeapModule
package import OperonModel

extension Scheduler {
    /// Why an operation is not running: all reasons together. Empty for an operation that is
    /// finished, or that runs and waits for nothing.
    package enum Reason: Hashable, Sendable {
        /// It waits for these dependencies, and `more` beyond the first few.
        case dependencies([OperationID], more: Int)
        case operationSuspended(Suspension)
        case graphSuspended(Suspension)
        case queueSuspended(String, Suspension)
        /// Its queue is at its limit: these operations have its places, and `more` beyond the first
        /// few.
        case queueLimit(String, maximum: Int, [OperationID], more: Int)
        /// As many operations of its queue have started as the rate allows. The next may start
        /// then.
        case queueRate(String, StartRate, Timestamp)
        /// The same for one of its keys.
        case keyRate(String, StartRate, Timestamp)
        /// A pause before its first attempt.
        case notBefore(Due?)
        /// A pause before its next attempt, after a failure.
        case retryAt(Due?)
        /// A pause before its next attempt, because its last attempt returned `notYet`.
        case notYet(Due?)
        /// One of its keys has no room: these operations hold it, and `more` beyond the first few.
        case keyHeld(String, by: [OperationID], more: Int)
        /// As many operations of its group are in flight as `inFlight` allows: these, and `more`
        /// beyond the first few.
        case groupLimit(String, maximum: Int, [OperationID], more: Int)
        /// No live worker knows the kind.
        case noWorkerForKind(String)
        /// No live worker that knows the kind serves the queue.
        case noWorkerForQueue(String)
        /// No live worker that serves its queue and knows its kind offers enough of all resources
        /// and has the labels that it asks for.
        case noWorkerForDemand(ResourceDemand)
        /// Workers with a free slot could run it, but have not enough left: the resources of which
        /// each of the first few has too little, and how many more workers there are.
        case resourcesTaken([Shortage], more: Int)
        /// This worker has enough left, but is kept for an operation that was first in line.
        case reserved(Incarnation, for: OperationID)
        /// Every worker that could run it was silent for more than two beats, or the broker
        /// returned a message to it. Not reported while there is no connection.
        case workersSilent
        /// Every worker that could run it is busy, some of them with operations ahead of it.
        case noFreeSlot
        /// This operation is ahead of it, and waits for room for its own bytes.
        case behind(OperationID)
        /// A worker has it and will start it.
        case dispatched(to: Incarnation)
        /// Its worker was asked to end it, or not to start it, and has not answered yet.
        case cancelRequested(reason: String)
        /// The same, because its graph was cancelled.
        case graphCancelled(reason: String)
        /// Dispatched operations take this many bytes: some of them must finish first.
        case dispatchedBytes(Int, maximum: Int)
        /// It runs and waits for these, and has given back its slot; `more` beyond the first few.
        case awaits([OperationID], more: Int)
        /// Everything that it waited for has ended: it goes on when its worker has a slot for it,
        /// and its queue a place.
        case awaitsSlot(of: Incarnation)
        /// No worker runs it: an external party has to complete this attempt.
        case awaitsCompletion(AttemptID)
        /// The coordinator has no connection to its workers.
        case disconnected
        /// The coordinator is shutting down.
        case leaving
    }

    /// A resource of which a worker has too little left.
    package struct Shortage: Hashable, Sendable {
        package let worker: Incarnation
        package let resource: String
        /// In the base unit of the resource.
        package let needed: Int
        /// In the same unit.
        package let left: Int

        package init(worker: Incarnation, resource: String, needed: Int, left: Int) {
            self.worker = worker
            self.resource = resource
            self.needed = needed
            self.left = left
        }
    }

    /// Operations named in one reason.
    static var namedInReasonMax: Int { 8 }

    package func explain(_ operation: OperationID) -> [Reason] {
        guard exists(operation) else { return [] }
        switch graphs[state: operation] {
        case .finished: return []
        case .executing:
            if let external = externals[operation] { return [.awaitsCompletion(external.id)] }
            return reasonsWhileYielded(operation)
        case .dispatched: return reasonsWhileDispatched(operation)
        case .pending:
            return [unfinishedDependencies(of: operation)] + suspensions(of: operation)
        case .ready:
            return reasonsWhileReady(operation)
        }
    }

    // Each of these names a part of the graph's state in place: a `let` would copy all of it, and
    // clients ask this of every operation of a graph.

    private func reasonsWhileDispatched(_ operation: OperationID) -> [Reason] {
        guard let attempt = attempts[graphs[attempt: operation]] else { return [] }
        var reasons = [Reason.dispatched(to: workers[attempt.worker].identity.incarnation)]
        if graphs[flags: operation].contains(.cancelRequested) {
            if let reason = graphs[operation.graph].reasons[operation.index] {
                reasons.append(.cancelRequested(reason: reason))
            } else {
                reasons.append(.graphCancelled(reason: graphs[operation.graph].cancelReason))
            }
        }
        reasons += suspensions(of: operation)
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

    private func suspensions(of operation: OperationID) -> [Reason] {
        var reasons: [Reason] = []
        if let suspension = suspension(of: .operation(operation)) {
            reasons.append(.operationSuspended(suspension))
        }
        if let suspension = graphs[operation.graph].suspension {
            reasons.append(.graphSuspended(suspension))
        }
        let queue = queues[graphs.queue(of: operation)]
        if let suspension = queue.suspension {
            reasons.append(.queueSuspended(queue.name, suspension))
        }
        return reasons
    }

    private func reasonsWhileReady(_ operation: OperationID) -> [Reason] {
        var reasons = suspensions(of: operation)
        let queue = queues[graphs.queue(of: operation)]
        if graphs[flags: operation].contains(.delayed) {
            let due = graphs[operation.graph].delays[operation.index]?.due
            if graphs[operation.graph].unmet.contains(operation.index) {
                reasons.append(.notYet(due))
            } else {
                reasons.append(graphs[retries: operation] > 0 ? .retryAt(due) : .notBefore(due))
            }
        }
        if let maximum = queue.maximum, !queue.hasRoomForNew {
            let (held, more) = inFlight(ofQueue: graphs.queue(of: operation))
            reasons.append(.queueLimit(queue.name, maximum: maximum, held, more: more))
        }
        if let bucket = queue.bucket, let next = bucket.nextStart(at: lastEventAt) {
            reasons.append(.queueRate(queue.name, bucket.rate, next))
        }
        for local in graphs[policy: operation].keys {
            let key = keys[graphs[operation.graph].keys[Int(local)]]
            if let bucket = key.bucket, let next = bucket.nextStart(at: lastEventAt) {
                reasons.append(.keyRate(key.name, bucket.rate, next))
            }
            guard !key.hasRoom else { continue }
            let named = Array(key.holders.prefix(Self.namedInReasonMax))
            let more = key.holders.count - named.count
            if let group = key.group {
                reasons.append(.groupLimit(group.name, maximum: key.limit, named, more: more))
            } else {
                reasons.append(.keyHeld(key.name, by: named, more: more))
            }
        }
        if isLeaving { reasons.append(.leaving) }
        // It needs no worker: without a reason above, it would have started.
        if graphs.rule(of: operation).isExternal { return reasons }
        let bytesMax = configuration.limits.dispatchedBytes
        let bytes = byteCount(of: operation)
        if bytes > 0, dispatchedBytes > 0, dispatchedBytes + bytes > bytesMax {
            reasons.append(.dispatchedBytes(dispatchedBytes, maximum: bytesMax))
        }
        if !isConnected { reasons.append(.disconnected) }
        if let reason = missingWorker(for: operation) { reasons.append(reason) }
        guard reasons.isEmpty else { return reasons }
        if let first = lastStartKept(from: operation) { return [.behind(first)] }
        if hasWorkerWithRoom(for: operation) { return [behind(operation)] }
        let demand = demand(of: operation)
        if let worker = placement(of: operation, demand, reserved: false),
            let first = reservations.first(where: { $0.worker == worker })
        {
            return [.reserved(workers[worker].identity.incarnation, for: first.operation)]
        }
        return [shortages(of: demand) ?? .noFreeSlot]
    }

    /// The operation for which its queue keeps the only start that it may make now; `nil`: none.
    private func lastStartKept(from operation: OperationID) -> OperationID? {
        let queue = graphs.queue(of: operation)
        guard isLastStart(of: queue) else { return nil }
        return reservations.first {
            $0.operation != operation && graphs.queue(of: $0.operation) == queue
                && graphs.urgency(of: operation) <= graphs.urgency(of: $0.operation)
        }?.operation
    }

    /// What workers with a free slot have too little of; `nil`: there is none with a free slot.
    private func shortages(of demand: Demand) -> Reason? {
        let needs = demands[demand.demand].needs
        guard !needs.isEmpty else { return nil }
        var named: [Shortage] = []
        var more = 0
        for index in workers.indices
        where workers[index].takesWork && workers[index].accepts(demand)
            && workers[index].room.freeSlots > 0
        {
            guard let short = shortage(of: needs, on: index) else { continue }
            guard named.count < Self.namedInReasonMax else {
                more += 1
                continue
            }
            named.append(short)
        }
        return named.isEmpty ? nil : .resourcesTaken(named, more: more)
    }

    /// The first resource of which a worker has too little left; `nil`: it has enough of all.
    func shortage(of needs: [DemandClass.Need], on worker: Int) -> Shortage? {
        let state = workers[worker]
        guard let short = needs.first(where: { state.room.left(of: $0.resource) < $0.amount })
        else { return nil }
        return Shortage(
            worker: state.identity.incarnation,
            resource: demands.resources[short.resource].name,
            needed: short.amount,
            left: max(0, state.room.left(of: short.resource))
        )
    }

    private func missingWorker(for operation: OperationID) -> Reason? {
        let demand = demand(of: operation)
        let missing = missingWorker(
            queue: demand.queue,
            kind: demand.kind,
            demand: demand.demand
        )
        if let missing { return Reason(missing) }
        // Without a connection no worker can be heard.
        guard isConnected else { return nil }
        let isReached = workers.contains {
            $0.takesWork && $0.accepts(demand) && isWithinReach($0)
        }
        return isReached ? nil : .workersSilent
    }

    /// The most urgent operation of its lane: nothing else delays this one.
    private func behind(_ operation: OperationID) -> Reason {
        let lane = ready[graphs.rule(of: operation).lane]
        let first = lane.heap.unordered.filter {
            isEnqueued($0.operation) && $0.urgency == graphs.urgency(of: $0.operation)
        }.max()
        return first.map { .behind($0.operation) } ?? .noFreeSlot
    }

    /// The operations in flight of a queue, in the order of the table of attempts.
    private func inFlight(ofQueue queue: Int) -> (named: [OperationID], more: Int) {
        var named: [OperationID] = []
        for attempt in attempts.all {
            guard named.count < Self.namedInReasonMax else { break }
            guard self.queue(of: attempt) == queue,
                waits[attempt.operation]?.isResuming != false
            else { continue }
            named.append(attempt.operation)
        }
        if queues[queue].external > 0, named.count < Self.namedInReasonMax {
            let others = externals.keys.filter { id in
                graphs.queue(of: id) == queue
            }
            named += others.sorted().prefix(Self.namedInReasonMax - named.count)
        }
        return (named, queues[queue].inFlight + queues[queue].resuming - named.count)
    }
}
