import OperonModel

// Facts that a store keeps and that observers are told. Each is said in one call, so that the
// record and the notice of it agree.
extension Scheduler.Effects {
    mutating func operationsAdded(
        _ graph: GraphID,
        _ operations: Range<UInt32>,
        by held: HeldAttempt?
    ) {
        let first = operations.lowerBound
        records.append(.operationsAdded(graph, first: first, by: held))
        notices.append(.operationsAdded(graph, first: first, count: UInt32(operations.count)))
    }

    /// - Parameter worker: `nobody`: an external party completes the operation.
    mutating func granted(
        _ attempt: AttemptID,
        _ operation: OperationID,
        ordinal: UInt32,
        to worker: Incarnation
    ) {
        records.append(.granted(attempt, operation, ordinal: ordinal, to: worker))
        notices.append(.granted(operation, attempt, worker: worker))
    }

    mutating func started(_ attempt: AttemptID, _ operation: OperationID, at start: Timestamp) {
        records.append(.started(attempt, operation))
        notices.append(.started(operation, attempt, at: start))
    }

    mutating func resumed(_ attempt: AttemptID, _ operation: OperationID, on worker: Incarnation) {
        records.append(.resumed(attempt, operation))
        notices.append(.resumed(operation, attempt, worker: worker))
    }

    /// The attempt ended without a result that counts for its operation.
    mutating func attemptEnded(
        _ attempt: AttemptID,
        _ operation: OperationID,
        _ ending: AttemptEnding,
        start: Timestamp?,
        end: Timestamp
    ) {
        records.append(.attemptEnded(attempt, operation, ending))
        notices.append(.attemptEnded(operation, attempt, ending, start: start, end: end))
    }

    mutating func finished(_ operation: OperationID, _ outcome: Outcome) {
        records.append(.finished(operation, outcome))
        notices.append(.finished(operation, outcome))
    }

    mutating func finished(_ operations: OperationRange, _ outcome: Outcome) {
        records.append(.rangeFinished(operations, outcome))
        notices.append(.rangeFinished(operations, outcome))
    }

    mutating func retryScheduled(_ operation: OperationID, after pause: Duration, _ now: Moment) {
        records.append(.retryScheduled(operation, at: now.wall + pause))
        notices.append(.retry(operation, at: now.monotonic + pause))
    }
}
