/// What a command applies to.
package enum Target: Hashable, Sendable, Codable {
    case operation(OperationID)
    case graph(GraphID)
    case queue(String)
}

/// Who suspended something, why, and until when.
package struct Suspension: Hashable, Sendable, Codable {
    /// The name of the client; empty: it has none.
    package var by: String
    /// The reason; empty: none was given.
    package var reason: String
    /// When the suspension ends; `nil`: it lasts until it is resumed.
    package var until: WallTime?

    package init(by: String = "", reason: String = "", until: WallTime? = nil) {
        self.by = by
        self.reason = reason
        self.until = until
    }

    /// The suspension of a queue by the graph that names it.
    package static let ofGraphFile = Suspension(reason: "the graph file suspends it")
}

/// How an attempt ended, from the coordinator's point of view.
package enum AttemptEnding: Hashable, Sendable, Codable {
    case succeeded
    case failed(OperationError)
    case cancelled
    /// The worker returned the attempt.
    case returned
    /// Its worker's lease ran out, or its worker is known to be dead.
    case lost
    /// The child process that ran it died without a result.
    case crashed
}

/// What a store keeps of the scheduler's decisions. All records, in order, are enough to rebuild
/// the scheduler. The records of one batch are kept in one transaction.
///
/// A store may keep records in the form that `Codable` makes of them, and every later version must
/// read these names: see `JournalFormatTests`. Decoding must not require a new property.
package enum StoreRecord: Hashable, Sendable, Codable {
    /// The contents of the graph are stored beside the record: see `StoreBatch.graphs`.
    case graphAdded(GraphID)
    /// More operations of a graph, from this index on, added by a client or by a running operation
    /// of the graph. Their contents are in `StoreBatch.graphs`.
    case operationsAdded(GraphID, first: UInt32, by: HeldAttempt? = nil)
    case graphClosed(GraphID)
    /// An incarnation of `nobody` means that an external party completes the operation.
    case granted(AttemptID, OperationID, ordinal: UInt32, to: Incarnation)
    case started(AttemptID, OperationID)
    /// An attempt that was considered lost continues: its worker came back in time.
    case resumed(AttemptID, OperationID)
    /// The attempt ended without a result that counts for its operation: it was returned, was lost
    /// with its worker, could not be sent, or failed and will be retried. If an attempt ends with
    /// the result of its operation, only `finished` is recorded.
    case attemptEnded(AttemptID, OperationID, AttemptEnding)
    case finished(OperationID, Outcome)
    /// Operations without an attempt in flight finish together. One record stands for all of them,
    /// because a client may cancel a million at once.
    case rangeFinished(OperationRange, Outcome)
    /// The operation becomes ready again at this wall-clock time.
    case retryScheduled(OperationID, at: WallTime)
    /// The operation is ready, but does not start before this wall-clock time, because of its delay
    /// after its release or because of a date. `nil`: this wait (or a pause before a retry) is
    /// over, and stays over if the clock is set back.
    case delayed(OperationID, until: WallTime?)
    /// The deadline has passed: however its attempt ends after this, the operation fails.
    case deadlinePassed(OperationID)
    /// Waiting operations get their outcomes in the same batch, by records of their own. A store
    /// does not know the dependents of an operation or the members of a queue. Each of them that
    /// runs and is asked to stop therefore gets its own `cancelled` record.
    case cancelled(Target, reason: String, cascade: Bool, by: String)
    /// `nil` means that it was resumed.
    case suspended(Target, Suspension?)
    /// The settings of a queue after a graph has named it, for the first time or with other
    /// settings. If the queue is suspended now and was not before, the graph suspended it.
    case queueDefined(QueueSettings)
    case queueLimit(queue: String, maximum: Int?)
    case queuePriority(queue: String, QueuePriority)
    case priority(OperationID, QueuePriority)
    /// How many operations may hold a key. A graph sets this, or a command, which overrides all
    /// later graphs.
    case keyLimit(KeySettings, byCommand: Bool)
    /// How often operations of a queue, or those that hold a key, may start; `nil`: as often as
    /// there is room. A graph sets this, or a command, which overrides all later graphs.
    case rateSet(RateScope, StartRate?, byCommand: Bool)
    /// An operation started. The bucket of the rate is full again at this time.
    case rateUsed(RateScope, fullAt: WallTime)
    /// The queue or the key has no settings any more.
    case queueReset(String)
    case keyReset(String)
    /// The operation starts its next round: it has no outcome and no attempts in this round, and
    /// nobody has asked to cancel it. If its graph was cancelled, it no longer is; operations of
    /// the graph that still run remain asked to stop.
    case reopened(OperationID)
    case dependencyAdded(OperationID, on: OperationID, DependencyCondition)
    case dependencyRemoved(OperationID, on: OperationID)
    /// A decision about a trigger or one of its firings.
    case trigger(TriggerRecord)
}
