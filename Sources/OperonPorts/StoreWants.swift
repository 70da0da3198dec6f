package import OperonModel

/// The rows that `StoreChanges` needs to compute the changes of a batch. The batch alone determines
/// them, so a store can fetch all of them in one round trip. A row may be named more than once.
///
/// The batch changes every row that is named here, except for those of graphs, of running
/// operations and of logs.
package struct StoreWants: Sendable {
    package private(set) var graphs: [GraphID] = []
    package private(set) var operations: [OperationID] = []
    /// Ranges of which all operations are wanted that have changed since their submission, and
    /// their attempts in flight.
    package private(set) var ranges: [OperationRange] = []
    /// Operations whose attempt in flight is wanted.
    package private(set) var open: [OperationID] = []
    /// Attempts by number, whether or not they are in flight.
    package private(set) var attempts: [(id: AttemptID, operation: OperationID)] = []
    package private(set) var queues: [String] = []
    package private(set) var keys: [String] = []
    package private(set) var rates: [RateScope] = []
    package private(set) var triggers: [TriggerID] = []
    /// Graphs of which operations are reopened. If the graph is cancelled, its operations in flight
    /// are wanted, because they are cancelled instead of the graph.
    package private(set) var reopened: [GraphID] = []
    /// Graphs that the batch itself cancels.
    package private(set) var cancelled: Set<GraphID> = []
    /// Operations of which the sizes of earlier logs are wanted.
    package private(set) var logs: [OperationID] = []

    package init(_ batch: StoreBatch) {
        operations.reserveCapacity(batch.records.count)
        open.reserveCapacity(batch.records.count)
        for record in batch.records { add(record) }
        for result in batch.results {
            add(result.operation)
            attempts.append((result.attempt, result.operation))
            if !result.log.isEmpty { logs.append(result.operation) }
        }
    }

    private mutating func add(_ record: StoreRecord) {
        switch record {
        case .graphAdded(let id), .operationsAdded(let id, _, _), .graphClosed(let id),
            .suspended(.graph(let id), _):
            add(id)
        case .cancelled(.graph(let id), _, _, _):
            add(id)
            cancelled.insert(id)
        case .granted(let attempt, let id, _, _), .resumed(let attempt, let id):
            add(id)
            open.append(id)
            attempts.append((attempt, id))
        case .started(_, let id): open.append(id)
        case .attemptEnded(_, let id, _), .finished(let id, _):
            add(id)
            open.append(id)
        case .rangeFinished(let range, _):
            add(range.graph)
            ranges.append(range)
        case .retryScheduled(let id, _), .delayed(let id, _), .deadlinePassed(let id),
            .cancelled(.operation(let id), _, _, _), .suspended(.operation(let id), _),
            .priority(let id, _), .dependencyAdded(let id, _, _), .dependencyRemoved(let id, _):
            add(id)
        case .reopened(let id):
            add(id)
            if reopened.last != id.graph { reopened.append(id.graph) }
        case .queueDefined(let settings): queues.append(settings.name)
        case .queueLimit(let name, _), .queuePriority(let name, _), .suspended(.queue(let name), _):
            queues.append(name)
        case .keyLimit(let settings, _): keys.append(settings.name)
        case .rateSet(let scope, _, let byCommand):
            rates.append(scope)
            if byCommand, case .queue(let name) = scope { queues.append(name) }
        case .rateUsed(let scope, _): if rates.last != scope { rates.append(scope) }
        case .trigger(let record): triggers.append(record.trigger)
        case .cancelled(.queue, _, _, _), .queueReset, .keyReset: break
        }
    }

    private mutating func add(_ id: GraphID) {
        if graphs.last != id { graphs.append(id) }
    }

    private mutating func add(_ id: OperationID) {
        add(id.graph)
        if operations.last != id { operations.append(id) }
    }
}
