/// What a command acts on.
package enum Target: Hashable, Sendable, Codable {
    case operation(OperationID)
    case graph(GraphID)
    case queue(String)
}

/// Who suspended something, why, and until when.
package struct Suspension: Hashable, Sendable, Codable {
    /// The name of the client; empty: it has none.
    package var by: String
    /// Empty: none was given.
    package var reason: String
    /// `nil`: until it is resumed.
    package var until: WallTime?

    package init(by: String = "", reason: String = "", until: WallTime? = nil) {
        self.by = by
        self.reason = reason
        self.until = until
    }

    /// Of a queue that the graph that names it suspends.
    package static let ofGraphFile = Suspension(reason: "the graph file suspends it")
}

/// How an attempt ended, from the coordinator's point of view.
package enum AttemptEnding: Hashable, Sendable, Codable {
    case succeeded
    case failed(OperationError)
    case cancelled
    /// Its worker gave it back.
    case returned
    /// Its worker's lease ran out, or its worker is known to be dead.
    case lost
    /// The child process that ran it died without a result.
    case crashed
}

/// What a store keeps of what the scheduler decided: together, in their order, they are enough to
/// rebuild it. Records of one batch are kept in one transaction.
package enum StoreRecord: Hashable, Sendable, Codable {
    /// What it is made of travels beside it: see `StoreBatch.graphs`.
    case graphAdded(GraphID)
    /// Further operations of a graph, from this index on, of a client or of a running operation of
    /// the graph; what they are made of travels in `StoreBatch.graphs`.
    case operationsAdded(GraphID, first: UInt32, by: HeldAttempt? = nil)
    case graphClosed(GraphID)
    /// To `nobody`: it is for somebody outside to complete.
    case granted(AttemptID, OperationID, ordinal: UInt32, to: Incarnation)
    case started(AttemptID, OperationID)
    /// An attempt that was taken for lost goes on: its worker came back in time.
    case resumed(AttemptID, OperationID)
    /// The attempt ended, but gave its operation no result that counts: given back, lost with
    /// its worker, never sent because it could not be, or failed and to be tried again. What
    /// ends with the operation's own result is told by `finished` alone.
    case attemptEnded(AttemptID, OperationID, AttemptEnding)
    case finished(OperationID, Outcome)
    /// Ready again at this time of the calendar.
    case retryScheduled(OperationID, at: WallTime)
    /// Ready, but not before this time of the calendar: its delay counts from its release, or a
    /// date was named. `nil`: whatever it waited for in this way (a pause before a retry, too) is
    /// over, and stays so when the clock is set back.
    case delayed(OperationID, until: WallTime?)
    /// Its deadline has passed: however it ends after this, it has failed.
    case deadlinePassed(OperationID)
    /// What waits gets its outcome in the same batch, each by a record of its own. A store knows
    /// neither the dependents of an operation nor the members of a queue: what of them runs, and
    /// is asked to stop, is told by one of these for each.
    case cancelled(Target, reason: String, cascade: Bool, by: String)
    /// `nil`: resumed.
    case suspended(Target, Suspension?)
    /// A queue as it is now that a graph has named it, for the first time or with other settings.
    /// If it is suspended and was not before, its graph did that.
    case queueDefined(QueueSettings)
    case queueLimit(queue: String, maximum: Int?)
    case queuePriority(queue: String, QueuePriority)
    case priority(OperationID, QueuePriority)
    /// How many may hold a key, as a graph says or, from then on whatever graphs say, a command.
    case keyLimit(KeySettings, byCommand: Bool)
    /// A queue, or a key, has no settings any more.
    case queueReset(String)
    case keyReset(String)
    /// It has its next round before it: neither outcome nor attempts of that yet, and nobody asked
    /// to cancel it. If its graph was cancelled it is so no more; what of the graph runs still
    /// stays asked to stop.
    case reopened(OperationID)
    case dependencyAdded(OperationID, on: OperationID, DependencyCondition)
    case dependencyRemoved(OperationID, on: OperationID)
}
