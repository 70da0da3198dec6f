package import OperonModel

/// Why a scheduler cannot be rebuilt: the store's state and the graphs do not fit together.
package struct RestoreError: Error, Hashable, Sendable, CustomStringConvertible {
    package let description: String

    init(_ description: String) { self.description = description }
}

// Rebuilding a scheduler from its store: the one path for a start, a takeover, and a crash at any
// instant. This is where each field comes from:
//
// | field | from |
// |---|---|
// | `compiled`, `rules`, `keys` | the stored contents, compiled again |
// | `submittedAt` | `StoredGraph` |
// | `state` | outcome: finished; in flight: dispatched, or executing once it has started; |
// | | else pending or ready, by the outcomes of its dependencies |
// | `outcome`, `outcomes`, `counts`, `unfinished` | `StoredOperation.outcome` |
// | `waiting`, `skipDemanded` | counted again from the outcomes |
// | `attempt`, the table of attempts, `KeyState.holders` | `StoredState.inFlight` |
// | `externals` | `StoredState.inFlight`, of operations whose kind no worker runs |
// | `awaitedCounts` | counted from `externals` |
// | `ordinal`, `retries`, `losses` | `StoredOperation` |
// | `level` | `StoredOperation.priority`, else its policy's, else its queue's |
// | `cancelRequested`, `reasons` | `StoredOperation.cancelReason`, or its graph's |
// | `suspended`, `comesBack`, `deadlinePassed` | `StoredOperation` |
// | `delayed` | `StoredOperation.retryAt`, as a date. The first `timeReached` ends pauses |
// | | that are over, so that the end has a record |
// | `isOpen`, `suspension`, `isCancelled`, `cancelReason` | `StoredGraph` |
// | `rounds`, `prioritised`, `suspensions`, `upToDate` | `StoredOperation` |
// | `outer`, and dependencies taken away | the contents, and the changes since |
// | `parked`, `inLane`, `ready` | each ready operation starts in its lane, and admission parks it |
// | `QueueState` | `StoredQueue`, `StoredRate`; `inFlight` is counted, `servedAt` begins anew |
// | `KeyState` | `StoredKey`, `StoredRate` |
// | `AttemptState.recall` | cancelled, past its deadline, suspended and not started, or beyond |
// | | the limit of its queue |
// | deadlines, pauses | armed again |
// | leases | run from the moment at which the transport is up |
// | workers | their hellos; until then those with attempts in flight are expected |
// | `KindState.duration` | measured anew |
// | `demands`, `WorkerRoom`, `reservations` | the graphs; counted; made by the next admission |
// | `lostAttempts` | not stored: a worker that was given up before is no longer waited for |
// | `nextAttemptNumber` | 1, of the new epoch |
extension Scheduler {
    /// A scheduler that resumes where the previous one stopped, under the new epoch of `state`.
    ///
    /// - Parameters:
    ///   - graphs: the contents of `state.graphs`, in their order; `nil` for a dropped graph, and
    ///     for a finished graph that will not be read again.
    ///   - additions: the additions to each graph, in order; empty: no graph has any.
    /// - Throws: `RestoreError`, if the state and the graphs do not fit together.
    package init(
        configuration: Configuration,
        restoring state: StoredState,
        graphs compiled: [CompiledGraph?],
        additions: [[CompiledAddition]] = [],
        at now: Moment
    ) throws(RestoreError) {
        self.init(configuration: configuration, reign: state.reign, epoch: state.epoch)
        guard compiled.count == state.graphs.count,
            additions.isEmpty || additions.count == compiled.count
        else {
            throw RestoreError("\(state.graphs.count) graphs are stored, \(compiled.count) given")
        }
        for queue in state.queues { restore(queue) }
        for key in state.keys
        where configuration.violation != .forgetsKeyLimits && !key.hasNoSettings {
            let number = keyNumber(key.settings.name)
            keys[number].limit = key.settings.limit
            keys[number].isCommanded = key.isCommanded
        }
        for rate in state.rates { restore(rate, at: now) }
        for (place, stored) in state.graphs.enumerated() {
            let compiled = compiled[place]
            guard Int(stored.id.rawValue) >= graphs.count else {
                throw RestoreError("graph \(stored.id) is stored twice, or out of order")
            }
            // The numbers of dropped graphs stay taken.
            while graphs.count < Int(stored.id.rawValue) {
                graphs.append(dropped: OutcomeRuns())
            }
            if let compiled {
                let added = additions.isEmpty ? [] : additions[place]
                let forgets = configuration.violation == .forgetsAdditions
                try restore(stored, compiled, forgets ? added.dropLast() : added, at: now)
            } else {
                try restoreDropped(of: stored)
            }
        }
        for (place, stored) in state.graphs.enumerated() {
            guard let compiled = compiled[place] else { continue }
            let added = additions.isEmpty ? [] : additions[place]
            try reconnect(stored, compiled, added)
        }
        for attempt in state.inFlight { try restore(attempt, at: now) }
        for stored in state.graphs { resume(stored, at: now) }
        for (place, stored) in state.graphs.enumerated() where compiled[place] != nil {
            armTimes(of: stored, at: now)
        }
        for queue in queues.indices {
            guard let suspension = queues[queue].suspension else { continue }
            arm(.queue(queue), suspension, at: now)
        }
        countUnfinished()
        restoreRecalls()
        forgetUnused(queues.map(\.settings))
    }

    // MARK: - Queues

    /// Counts unfinished operations again: counts made while graphs were only partly restored are
    /// wrong.
    private mutating func countUnfinished() {
        for queue in queues.indices { queues[queue].unfinished = 0 }
        for id in graphs.kept where graphs[id].unfinished > 0 {
            for index in graphs.indices(of: id) {
                let operation = OperationID(graph: id, index: index)
                guard graphs[state: operation] != .finished else { continue }
                queues[graphs.queue(of: operation)].unfinished += 1
            }
        }
    }

    private mutating func restore(_ stored: StoredQueue) {
        // A queue without settings is created when something names it. Older versions stored such
        // queues as well.
        guard queueNumbers[stored.name] == nil, !stored.hasNoSettings else { return }
        let queue = makeQueue(stored.name)
        queues[queue].maximum = stored.maximum
        queues[queue].priority = stored.priority
        if configuration.violation != .forgetsSuspensions {
            queues[queue].suspension = stored.suspension
        }
        if configuration.violation != .forgetsCommands {
            queues[queue].commanded = stored.commanded
        }
    }

    // MARK: - Graphs

    private mutating func restore(
        _ stored: StoredGraph,
        _ compiled: CompiledGraph,
        _ additions: [CompiledAddition],
        at now: Moment
    ) throws(RestoreError) {
        var count = compiled.topology.operationCount
        var compiled = compiled
        var rules = rules(of: compiled)
        parts.share(&compiled, &rules)
        var graph = GraphState(
            compiled: compiled,
            rules: rules,
            keys: keyNumbers(of: compiled, in: stored.id),
            submittedAt: Moment(
                monotonic: now.monotonic - max(.zero, now.wall - stored.submittedAt),
                wall: stored.submittedAt
            ),
            operations: OperationTable(levels: levels(of: compiled, rules)),
            unfinished: count
        )
        graph.isOpen = stored.isOpen
        useNames(of: graph)
        if !additions.isEmpty {
            graphs.append(graph)
            for addition in additions {
                guard Int(addition.first) == count else {
                    throw RestoreError("an addition to graph \(stored.id) is missing")
                }
                append(addition, to: stored.id)
                count += addition.graph.topology.operationCount
            }
            graph = graphs.removeLast()
        }
        if configuration.violation != .forgetsSuspensions { graph.suspension = stored.suspension }
        graph.isCancelled = stored.cancelReason != nil
        graph.cancelReason = stored.cancelReason ?? ""
        for operation in stored.operations {
            guard operation.index < UInt32(count) else {
                throw RestoreError("graph \(stored.id) has no operation \(operation.index)")
            }
            restore(operation, in: &graph)
        }
        graph.countDependencies()
        graphs.append(graph)
    }

    private func restore(_ stored: StoredOperation, in graph: inout GraphState) {
        let index = stored.index
        if let outcome = stored.outcome { graph.keep(outcome, of: stored.index) }
        if stored.isUpToDate { graph.upToDate.insert(stored.index) }
        graph.operations.ordinal[index] = stored.attempts
        graph.operations.retries[index] = stored.retries
        if let priority = stored.priority {
            graph.operations.level[index] = priority.level
            graph.prioritised.insert(stored.index)
        }
        if stored.round > 0, configuration.violation != .forgetsRounds {
            graph.rounds[stored.index] = stored.round
        }
        if stored.workersLost > 0 || stored.crashes > 0,
            configuration.violation != .forgetsBlame
        {
            graph.losses[stored.index] = Losses(
                workers: Int(stored.workersLost),
                crashes: Int(stored.crashes)
            )
        }
        if let reason = stored.cancelReason {
            graph.operations.flags[index].insert(.cancelRequested)
            graph.reasons[stored.index] = reason
        }
        if let suspension = stored.suspension, configuration.violation != .forgetsSuspensions {
            graph.operations.flags[index].insert(.suspended)
            if suspension != Suspension() { graph.suspensions[stored.index] = suspension }
        }
        if stored.comesBack { graph.operations.flags[index].insert(.comesBack) }
        if stored.deadlinePassed { graph.operations.flags[index].insert(.deadlinePassed) }
        // The first `timeReached` ends pauses that are over by now, so that the end has a record.
        if stored.retryAt != nil, stored.outcome == nil {
            graph.operations.flags[index].insert(.delayed)
            // Its last attempt did not fail, and its policy has no delay, so the attempt returned
            // `notYet`.
            let policy = graph.policy(stored.index)
            if stored.comesBack, stored.retries == 0, policy.delay == nil, policy.notBefore == nil {
                graph.unmet.insert(stored.index)
            }
        }
    }

    /// Restores dependencies on other graphs, and changes to dependencies, once every graph exists.
    private mutating func reconnect(
        _ stored: StoredGraph,
        _ compiled: CompiledGraph,
        _ additions: [CompiledAddition]
    ) throws(RestoreError) {
        if !graphs[stored.id].rounds.isEmpty { hasReopened = true }
        let outer = compiled.outer + additions.flatMap(\.graph.outer)
        let hasGroups = additions.contains { $0.group != nil }
        guard !outer.isEmpty || hasGroups || !stored.dependencyChanges.isEmpty else { return }
        if let missing = outer.first(where: { !isKnown($0.on.operation) }) {
            throw RestoreError("\(missing.on.operation), which is depended on, is missing")
        }
        if configuration.violation != .forgetsOtherGraphs {
            connect(compiled.outer, of: stored.id, from: 0)
        }
        for addition in additions {
            connect(addition.graph.outer, of: stored.id, from: addition.first, isOwnToo: false)
            let end = addition.first + UInt32(addition.graph.topology.operationCount)
            join(addition.first..<end, to: addition.group, of: stored.id)
        }
        let forgets = configuration.violation == .forgetsChangedDependencies
        for change in forgets ? [] : stored.dependencyChanges {
            switch change {
            case .dependencyAdded(let operation, let other, let condition):
                guard exists(operation), isKnown(other) else {
                    throw RestoreError("\(operation) or \(other) is missing")
                }
                connect(operation, Dependency(operation: other, condition: condition))
            case .dependencyRemoved(let operation, let other):
                guard exists(operation), exists(other.graph) else {
                    throw RestoreError("\(operation) or \(other) is missing")
                }
                disconnect(operation, from: other)
            case _: throw RestoreError("\(change) changes no dependency")
            }
        }
        for index in graphs.indices(of: stored.id) {
            countDependencies(of: OperationID(graph: stored.id, index: index))
        }
    }

    /// Arms the times at which suspensions end and idle graphs are closed, as they were before.
    private mutating func armTimes(of stored: StoredGraph, at now: Moment) {
        if let suspension = graphs[stored.id].suspension {
            arm(.graph(stored.id), suspension, at: now)
        }
        for operation in stored.operations {
            guard let suspension = graphs[stored.id].suspensions[operation.index] else { continue }
            let id = OperationID(graph: stored.id, index: operation.index)
            arm(.operation(id), suspension, at: now)
        }
        if graphs[stored.id].isOpen, graphs[stored.id].unfinished == 0 {
            let since = stored.operations.compactMap(\.finishedAt).max() ?? stored.submittedAt
            goOnIdly(stored.id, since: since, at: now)
        }
    }

    /// Restores a dropped graph: its number, and the outcomes of its operations.
    private mutating func restoreDropped(of stored: StoredGraph) throws(RestoreError) {
        var outcomes = stored.outcomes
        if !stored.isTombstone {
            guard stored.finishedAt != nil else {
                throw RestoreError("graph \(stored.id) is unfinished, and its contents are missing")
            }
            for operation in stored.operations {
                guard let outcome = operation.outcome, operation.index == outcomes.count else {
                    throw RestoreError(
                        "graph \(stored.id) is finished with an operation that is not"
                    )
                }
                outcomes.append(outcome.kind)
            }
        }
        graphs.append(dropped: outcomes)
    }

    // MARK: - Attempts in flight

    private mutating func restore(
        _ stored: StoredInFlight,
        at now: Moment
    ) throws(RestoreError) {
        let operation = stored.operation
        guard exists(operation) else {
            throw RestoreError("attempt \(stored.attempt) is of \(operation), which is unknown")
        }
        guard graphs[state: operation] != .finished,
            graphs[attempt: operation] == AttemptTable.none, externals[operation] == nil
        else {
            throw RestoreError("\(operation) is finished or in flight, and in flight again")
        }
        if configuration.violation == .forgetsInFlight { return }
        guard !graphs.rule(of: operation).isExternal else {
            restoreExternal(stored, at: now)
            return
        }
        guard stored.worker != .nobody else {
            throw RestoreError("attempt \(stored.attempt) of \(operation) is nobody's")
        }
        var attempt = AttemptState(
            id: stored.attempt,
            operation: operation,
            ordinal: stored.ordinal,
            worker: expect(stored.worker, at: now),
            sequence: 0,
            estimate: estimate(operation),
            grantedAt: now.monotonic
        )
        attempt.hasStarted = stored.hasStarted
        if stored.hasStarted {
            let ran = max(.zero, now.wall - (stored.startedAt ?? now.wall))
            attempt.startedAt = now.monotonic - ran
        }
        _ = store(attempt, isForced: true)
        graphs[operation.graph].operations.restore(
            operation.index,
            as: stored.hasStarted ? .executing : .dispatched
        )
        // It was released when the attempt was granted, whatever happened to its dependencies
        // since.
        graphs[flags: operation].remove(.skipDemanded)
    }

    /// The index of a worker that owns attempts and has not sent a hello yet.
    private mutating func expect(_ incarnation: Incarnation, at now: Moment) -> Int {
        if let known = workerNumbers[incarnation] { return known }
        let index = workers.count
        var worker = WorkerState(
            identity: WorkerIdentity(name: "", incarnation: incarnation, connection: 0),
            host: "",
            room: WorkerRoom(slots: 0),
            queueNames: [],
            kindNames: [],
            leaseEnd: now.monotonic,
            heardAt: now.monotonic,
            workerID: ""
        )
        worker.isExpected = true
        workers.append(worker)
        workerNumbers[incarnation] = index
        learnNames(of: index)
        return index
    }

    /// Restores recalls for what clients asked meanwhile. The owner gets them with its welcome.
    private mutating func restoreRecalls() {
        for place in attempts.places {
            guard let attempt = attempts[place] else { continue }
            let flags = graphs[flags: attempt.operation]
            if flags.contains(.cancelRequested) || flags.contains(.deadlinePassed)
                || graphs[attempt.operation.graph].isCancelled
            {
                attempts.update(place) { $0.recall = .cancel }
            } else if !attempt.hasStarted,
                flags.contains(.suspended) || graphs[attempt.operation.graph].isSuspended
                    || queues[queue(of: attempt)].isSuspended
            {
                attempts.update(place) { $0.recall = .recall }
            }
        }
        for queue in queues.indices {
            for place in placesBeyondLimit(of: queue) {
                attempts.update(place) { $0.recall = .recall }
            }
        }
    }

    // MARK: - Waiting operations

    /// Any operation that is neither finished nor in flight is ready or waits for others.
    private mutating func resume(_ stored: StoredGraph, at now: Moment) {
        guard graphs[stored.id].unfinished > 0 else { return }
        armDeadlines(of: stored.id, from: 0, at: now)
        for index in graphs.indices(of: stored.id) {
            let operation = OperationID(graph: stored.id, index: index)
            let state = graphs[state: operation]
            guard state != .finished else { continue }
            if graphs[stored.id].isCancelled {
                graphs[flags: operation].insert(.cancelRequested)
            }
            guard state == .pending, graphs[waiting: operation] == 0 else { continue }
            graphs.move(operation, to: .ready)
            if !graphs[flags: operation].contains(.delayed) { enqueue(operation) }
        }
        for operation in stored.operations {
            guard let time = operation.retryAt,
                graphs[stored.id].operations.flags[operation.index].contains(.delayed)
            else { continue }
            let id = OperationID(graph: stored.id, index: operation.index)
            let latest = longestPause(of: id, operation).map { now.monotonic + $0 }
            delay(id, Delay(recorded: time, date: time, latest: latest), at: now)
        }
    }
}

extension GraphState {
    /// Sets an outcome that was stored.
    fileprivate mutating func keep(_ outcome: Outcome, of index: UInt32) {
        guard operations.outcome[index] == nil else { return }
        operations.restore(index, as: .finished)
        operations.outcome[index] = outcome.kind
        if outcome.kind != .succeeded { outcomes.append(outcome, of: index) }
        counts[outcome.kind] += 1
        unfinished -= 1
    }

    /// Counts the dependencies that each operation waits for, by the outcomes so far.
    fileprivate mutating func countDependencies() {
        for index in operations.indices {
            var waiting: UInt32 = 0
            for edge in compiled.topology.dependencies(of: index) {
                guard let outcome = operations.outcome[edge.operation] else {
                    waiting += 1
                    continue
                }
                if !edge.condition.isSatisfied(by: outcome) {
                    operations.flags[index].insert(.skipDemanded)
                }
            }
            operations.waiting[index] = waiting
        }
    }
}
