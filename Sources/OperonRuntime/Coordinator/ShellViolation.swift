/// Rules of the coordinator's service. The simulator must notice when one of them is broken.
package enum ShellViolation: String, Sendable, CaseIterable {
    /// Tells clients what is not synced.
    case answersBeforeSync
    /// Sends what depends on records that are not committed.
    case sendsBeforeCommit
    /// Goes on without a batch that a full disk did not take.
    case skipsRefusedBatches
    /// Goes on after a sync that failed.
    case ignoresFailedSyncs
    /// Shows events that are not synced.
    case showsUnsyncedEvents
    /// Drops the outputs that operations will ask for.
    case forgetsOutputs
    /// Drops the outputs that were stored before the last start.
    case forgetsStoredOutputs
    /// Gives an operation the output of one dependency as that of another.
    case mixesUpInputs
    /// Forgets which submissions it has answered.
    case forgetsSubmissions
    /// Does not store what running operations add.
    case storesNoAdditions
    /// Sends the messages that wait in the wrong order.
    case sendsOutOfOrder
    /// Does not store which firing of a trigger has submitted a graph.
    case forgetsFirings
    /// Does not tell those who wait for the end of a graph.
    case forgetsWaiters
}
