/// Rules of the protocol and of the scheduler. The simulator must notice when one of them is
/// broken.
package enum PlantedViolation: String, Hashable, Sendable, CaseIterable {
    // The coordinator's rules.
    /// Acknowledges events after a gap.
    case acknowledgesBeyondGap
    /// Evaluates a beat before the events that it names.
    case judgesBeatEarly
    /// Sends again a message that may still be on its way.
    case repeatsWhatIsInFlight
    /// Never resends a lost message.
    case neverRepeats
    /// Moves a lost attempt to another worker under its old number.
    case reusesAttempts
    /// Accepts what a worker says of an attempt that belongs to another one.
    case believesStrangers
    /// Adds operations for an attempt that belongs to another worker.
    case addsForStrangers
    /// Sends outputs to a worker that has no attempt that needs them.
    case servesStrangers
    /// Accepts a result of an attempt that no longer belongs to the sender.
    case acceptsStaleResults
    /// Sends an attempt again although it was recalled.
    case repeatsRecalled
    /// Dispatches beyond the limit of the queue.
    case ignoresQueueLimit
    /// Leaves a queue out of line whose limit, suspension or operations in flight have changed.
    case leavesQueuesOut
    /// Gives a worker more operations than it has resources for.
    case overbooksResources
    /// Lets small operations pass a large one for ever.
    case reservesNothing
    /// Gives a key to more operations than may hold it.
    case ignoresKeyLimits
    /// Starts operations of a queue without a token.
    case ignoresRates
    /// Begins with full buckets after a restart.
    case forgetsRates
    /// Releases an operation at its first dependency.
    case releasesEarly
    /// Accepts messages from an old connection.
    case acceptsOldConnections
    /// Accepts messages that were meant for a previous coordinator.
    case believesOldEpochs
    /// Lets a lost attempt go on while the next one may start.
    case resumesWithoutRecall
    /// Runs a suspect operation in the worker's own process again.
    case neverIsolates
    /// Passes keys on while their holder still has a right to them.
    case forgetsExclusiveLease
    // The coordinator's rules after the previous coordinator died.
    /// Sends messages that depend on records that are not committed.
    case tellsBeforeCommit
    /// Acknowledges results that a power cut may undo.
    case acknowledgesBeforeSync
    /// Reuses the attempt numbers of the previous coordinator.
    case numbersAttemptsAnew
    /// Treats attempts in flight as if they had never been granted.
    case forgetsInFlight
    /// Forgets suspensions.
    case forgetsSuspensions
    /// Forgets which operations workers and child processes died of.
    case forgetsBlame
    /// Sends an attempt that its owner still holds to another worker.
    case restartsWhatRuns
    /// Forgets the last addition to a graph.
    case forgetsAdditions
    /// Forgets dependencies that were added or removed since the submission.
    case forgetsChangedDependencies
    /// Forgets dependencies on operations of other graphs.
    case forgetsOtherGraphs
    /// Forgets that operations were reopened.
    case forgetsRounds
    /// Forgets which settings of a queue were set by a command.
    case forgetsCommands
    /// Forgets the outcomes of the operations of a dropped graph.
    case forgetsOutcomes
    /// Forgets the limits of keys.
    case forgetsKeyLimits
    /// Accepts dependencies that close a cycle.
    case allowsCycles
    /// Keeps a suspension in force after its time has passed.
    case forgetsUntil
    /// Does not wait for dependencies in other graphs.
    case ignoresOtherGraphs
    /// Adds a dependency to an operation that a worker has.
    case changesDispatched
    /// Does not count reopened operations as unfinished in their queue.
    case miscountsQueue
    /// Does not hold waiting operations back when their dependency is reopened.
    case forgetsReopened
    /// Keeps counting retries and losses in the next round, although by the records each round
    /// starts at zero.
    case keepsOldRound
    /// Accepts additions of an attempt that no longer belongs to the sender.
    case acceptsStaleAdditions
    /// Takes an addition that the next attempt repeats for a new one.
    case addsAgain
    /// Handles an addition after everything else that came in the same message.
    case addsLate
    /// Does not tell waiting operations that the awaited operation has ended.
    case forgetsWaiters
    /// Counts a slot and a place for an operation that waits for others.
    case keepsSlotOfWaiting
    /// Resumes a waiting operation as soon as the first operation that it waits for has ended.
    case resumesEarly
    /// Resumes a waiting operation even if its queue has no place for it.
    case resumesBeyondLimit
    /// Lets operations wait for one another in a cycle.
    case allowsWaitCycles
    /// Finishes an open graph as soon as it has nothing to do.
    case finishesOpenGraphs
    /// Gives attempts to a worker that is silent, or whose messages the broker returned.
    case placesOnSilent
    /// Measures dates with the monotonic clock.
    case keepsDatesAsIntervals
    /// Asks a worker to drain only once, even if the worker did not receive it.
    case asksToDrainOnce
    /// After a restart, treats attempts of external operations as if they had never been granted.
    case forgetsExternals
    /// Counts no place in the queue for external operations.
    case countsNoExternals
    /// Accepts a completion that names an older attempt.
    case acceptsStaleCompletions
    /// Completes a finished operation again.
    case completesTwice
    /// Does not say which client asked for a change.
    case forgetsClients
    /// After a restart, never ends an external operation that is not completed in time.
    case forgetsTimeouts
    /// Starts operations while the coordinator leaves.
    case startsWhileLeaving
    /// Goes on with a graph that is to be cancelled at the first failure.
    case ignoresFailFast
    /// Sends an attempt again and again that no message can carry.
    case keepsUnsendable
    /// Starts an operation at once that asked not to be started before a time.
    case forgetsPauses
    // The worker's rules.
    /// Starts an operation without an unexpired lease.
    case startsWithoutLease
    /// Starts between its hello and the welcome.
    case startsBeforeWelcome
    /// Runs a second copy of an attempt that it holds.
    case runsCopies
    /// Forgets a result when it is sent instead of when it is acknowledged.
    case forgetsOnSend
    /// Does not hand back an attempt that was recalled.
    case ignoresRecalls
    /// Accepts dispatches of a lower epoch.
    case acceptsLowerEpochs
    /// Lists only running attempts in its beats.
    case hidesWaiting
    /// Lists no requests for outputs in its beats.
    case hidesRequests
    /// Lists no requests of running operations in its beats.
    case hidesOpenRequests
    /// Resumes a waiting operation before there is a slot for it.
    case resumesWithoutSlot
}
