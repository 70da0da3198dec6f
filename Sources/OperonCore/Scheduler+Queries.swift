package import OperonModel

// What is known of graphs and operations by their ids.
extension Scheduler {
    func exists(_ graph: GraphID) -> Bool { Int(graph.rawValue) < graphs.count }

    func exists(_ operation: OperationID) -> Bool {
        Int(operation.graph.rawValue) < graphs.count
            && Int(operation.index) < graphs[operation.graph].operations.count
    }

    /// A dropped operation counts as finished.
    package func state(of operation: OperationID) -> OperationState {
        guard exists(operation) else { return .finished }
        return graphs[state: operation]
    }

    /// `nil`: it has no outcome, or only the kind of its outcome is kept.
    package func outcome(of operation: OperationID) -> Outcome? {
        // In place: a method of the graph's state would be called with a copy of it.
        guard exists(operation), let kind = graphs[outcome: operation] else { return nil }
        return kind == .succeeded
            ? .succeeded : graphs[operation.graph].outcomes[operation.index]
    }

    /// Whether it succeeded without a process, because its files were up to date.
    package func isUpToDate(_ operation: OperationID) -> Bool {
        exists(operation) && graphs[operation.graph].upToDate.contains(operation.index)
    }

    /// The operations that succeeded without a process according to these records. One call for all
    /// of them: a call from an actor that has the scheduler may copy it.
    package func upToDate(in records: [StoreRecord]) -> Set<OperationID> {
        var found: Set<OperationID> = []
        for case .finished(let operation, .succeeded) in records where isUpToDate(operation) {
            found.insert(operation)
        }
        return found
    }

    /// Whether more than its outcome is kept.
    package func isKept(_ operation: OperationID) -> Bool { exists(operation) }

    /// The outcomes of a dropped graph's operations; empty for any other graph.
    package func droppedOutcomes(of graph: GraphID) -> OutcomeRuns {
        graphs.dropped[graph]
    }

    package func attemptCount(of operation: OperationID) -> Int {
        Int(graphs[ordinal: operation])
    }

    /// Whether every operation in it has an outcome, and nothing can be added.
    package func isFinished(_ graph: GraphID) -> Bool {
        graphs[graph].unfinished == 0 && !graphs[graph].isOpen
    }

    /// What operations of a graph have in common. Tests read it here, not in `graphs`: if another
    /// module copies a large part out of a `_read` accessor, Swift 6.3.1 without optimization
    /// destroys the copy where it was read from, after the access has ended.
    func policies(of graph: GraphID) -> [OperationPolicy] { graphs[graph].compiled.policies }

    /// A graph without its operations: its name, its settings, and whether the first failure
    /// cancels everything that is left.
    package func settings(of graph: GraphID) -> (description: GraphDescription, failFast: Bool) {
        let compiled = graphs[graph].compiled
        var description = GraphDescription(name: compiled.name)
        description.queues = Array(compiled.queues.prefix(compiled.definedQueueCount))
        description.keys = compiled.keyLimits
        // Where the order is that of the submission, nothing has a rank; and where nothing has one,
        // the order is that of the submission.
        if compiled.rank.allSatisfy({ $0 == 0 }) { description.order = .submission }
        return (description, compiled.failFast)
    }

    /// Whether its deadline has passed and a record says so.
    package func isPastDeadline(_ operation: OperationID) -> Bool {
        exists(operation)
            && graphs[flags: operation]
                .contains(.deadlinePassed)
    }

    /// The number of finished operations with this outcome.
    package func count(of graph: GraphID, _ outcome: OutcomeKind) -> Int {
        graphs[graph].counts[outcome]
    }

    /// Whether an attempt was granted and has neither ended nor been given up. O(in flight).
    package func isInFlight(_ attempt: AttemptID) -> Bool {
        attempts.all.contains { $0.id == attempt } || externals.values.contains { $0.id == attempt }
    }

    package var graphCount: Int { graphs.count }

    package func operationCount(of graph: GraphID) -> Int {
        Int(graphs[graph].operations.count)
    }

    package func compiled(_ graph: GraphID) -> CompiledGraph {
        graphs[graph].compiled
    }

    package func policy(of operation: OperationID) -> OperationPolicy {
        graphs.policy(of: operation)
    }

    /// The slots of all workers that are alive and not draining.
    package var slotCount: Int {
        workers.reduce(0) { $0 + ($1.takesWork ? $1.room.slots : 0) }
    }

    /// The number of workers that are alive, or gone and remembered.
    package var knownWorkerCount: Int { workers.count }

    package func queueMembersInFlight(_ name: String) -> Int {
        queueNumbers[name].map { queues[$0].inFlight } ?? 0
    }

    /// `nil`: the operation has not finished, or no operation has this number.
    package func outcomeKind(of operation: OperationID) -> OutcomeKind? {
        guard exists(operation.graph) else { return nil }
        guard Int(operation.index) < graphs[operation.graph].operations.count else {
            return graphs.dropped.outcome(of: operation)
        }
        return graphs[outcome: operation]
    }

    /// Whether the operation exists, or was dropped and its outcome is kept.
    package func isKnown(_ operation: OperationID) -> Bool {
        exists(operation) || graphs.dropped.outcome(of: operation) != nil
    }
}
