package import OperonModel

extension Scheduler {
    /// Every interval and limit of a scheduler.
    package struct Configuration: Hashable, Sendable {
        /// How often a worker says what it holds.
        package var beat: Duration = .seconds(2)
        /// Silence after which a worker counts as gone: three beats, so that one lost beat and a
        /// late one cost nobody an attempt.
        package var lease: Duration = .seconds(6)
        /// Which part of its run time a silent worker's attempt is waited for, if that is longer
        /// than the lease: the longer it ran, the more its owner's return is worth.
        package var patienceDivisor: Int64 = 20
        package var patienceMax: Duration = .seconds(300)
        /// How long after the last word of its worker an operation that holds keys keeps them.
        package var exclusiveLease: Duration = .seconds(60)
        /// Deaths of its own child process after which an operation fails: `workerLost`. Five, as
        /// HyperQueue counts: a crash may have other causes once or twice.
        package var crashLimit = 5
        /// Workers lost under it after which an operation fails; `nil`: however many.
        package var lostLimit: Int?
        /// Workers that are gone and kept in mind, in case they come back: every message walks the
        /// table, and a worker that dies again and again adds an entry each time.
        package var goneWorkersMax = 256
        /// Dependencies and waits that one event looks at to find whether an operation may wait:
        /// some three milliseconds. What is behind them is looked at in later events.
        package var searchVisitsMax = 4_096
        /// Kinds that no graph names any more and whose run times are remembered: programs have
        /// dozens of kinds, and a client may name as many as it likes.
        package var unusedKindsMax = 1_000
        /// Bytes of events that a worker may have in flight.
        package var eventWindow: UInt32 = 1 << 20
        /// How long a worker stays true to a silent reign that keeps nothing on disk.
        package var orphanAfter: Duration = .seconds(60)
        /// Work that a worker may hold beyond its slots: enough to cover a round trip (measured
        /// 0.4 ms on loopback), too little to matter for a schedule.
        package var readAhead: Duration = .milliseconds(4)
        /// Operations that a worker may hold beyond its slots, however short they are.
        package var readAheadCountMax = 64
        /// Operations in one message.
        package var operationsPerMessage = 1
        package var limits = Limits()
        /// Seeds the jitter of retries.
        package var seed: UInt64 = 0
        /// A rule broken on purpose: the simulator must notice. Never set outside its tests.
        package var violation: PlantedViolation?

        package init() {}
    }
}

/// Rules of the conversation, each of which a simulator that is worth its name must see broken.
package enum PlantedViolation: String, Hashable, Sendable, CaseIterable {
    // The coordinator's.
    /// Acknowledges events behind a gap.
    case acknowledgesBeyondGap
    /// Judges a beat before the events it names.
    case judgesBeatEarly
    /// Sends again what may still be on its way.
    case repeatsWhatIsInFlight
    /// Never sends again what was lost.
    case neverRepeats
    /// Moves a lost attempt to another worker under its old number.
    case reusesAttempts
    /// Accepts a result of an attempt that is not the sender's any more.
    case acceptsStaleResults
    /// Sends an attempt again although it was recalled.
    case repeatsRecalled
    /// Dispatches beyond the limit of the queue.
    case ignoresQueueLimit
    /// Gives a key to more than may hold it.
    case ignoresKeyLimits
    /// Releases at the first dependency.
    case releasesEarly
    /// Accepts messages from an old connection.
    case acceptsOldConnections
    /// Believes what was said to the coordinator before it.
    case believesOldEpochs
    /// Lets a lost attempt go on while the next one may start.
    case resumesWithoutRecall
    /// Runs a suspect beside others again.
    case neverIsolates
    /// Gives keys on while their holder still has its right to them.
    case forgetsExclusiveLease
    // The coordinator's, after the death of the one before.
    /// Sends what rests on records that are not committed.
    case tellsBeforeCommit
    /// Acknowledges what a power cut may undo.
    case acknowledgesBeforeSync
    /// Numbers attempts as the one before it did.
    case numbersAttemptsAnew
    /// Takes attempts in flight for what was never granted.
    case forgetsInFlight
    /// Forgets what was suspended.
    case forgetsSuspensions
    /// Forgets what workers and children died of.
    case forgetsBlame
    /// Publishes what its owner holds, to somebody else.
    case restartsWhatRuns
    /// Forgets what was added last to a graph.
    case forgetsAdditions
    /// Forgets dependencies that were added or taken away since the submission.
    case forgetsChangedDependencies
    /// Forgets what a graph waits for in other graphs.
    case forgetsOtherGraphs
    /// Forgets that anything was reopened.
    case forgetsRounds
    /// Forgets which settings of a queue a command made.
    case forgetsCommands
    /// Forgets how the operations of a graph ended that is kept no longer.
    case forgetsOutcomes
    /// Forgets how many may hold a key.
    case forgetsKeyLimits
    /// Adds dependencies that close a cycle.
    case allowsCycles
    /// Leaves a suspension in force when its time has passed.
    case forgetsUntil
    /// Does not wait for dependencies of other graphs.
    case ignoresOtherGraphs
    /// Adds a dependency to what a worker has.
    case changesDispatched
    /// Does not count what is reopened as unfinished in its queue.
    case miscountsQueue
    /// Lets what waits be, when what it waits for is reopened.
    case forgetsReopened
    /// Counts retries and losses on into the next round, which the records say begins at none.
    case keepsOldRound
    /// Takes additions of an attempt that is not the sender's any more.
    case acceptsStaleAdditions
    /// Takes what the next attempt adds again for something new.
    case addsAgain
    /// Handles what a worker said behind an addition before the addition.
    case addsLate
    /// Tells nobody who waits for an operation that it has ended.
    case forgetsWaiters
    /// Counts a slot and a place for what waits for others.
    case keepsSlotOfWaiting
    /// Lets go on what waits as soon as the first that it waits for has ended.
    case resumesEarly
    /// Lets go on what waited, whether or not its queue has a place for it.
    case resumesBeyondLimit
    /// Lets an operation wait for what waits for it.
    case allowsWaitCycles
    /// Finishes an open graph as soon as it has nothing to do.
    case finishesOpenGraphs
    /// Gives attempts to a worker that is silent, or to whom a message came back.
    case placesOnSilent
    /// Waits for dates by the monotonic clock.
    case keepsDatesAsIntervals
    /// Tells a worker to drain once, whether or not it heard.
    case asksToDrainOnce
    /// Takes what somebody outside is to complete for what was never granted, after a death.
    case forgetsExternals
    /// Counts no place for what somebody outside is to complete.
    case countsNoExternals
    /// Takes whatever completes an operation for its last attempt.
    case acceptsStaleCompletions
    /// Completes what is finished again.
    case completesTwice
    /// Never ends what nobody completes in time, after a death.
    case forgetsTimeouts
    /// Starts at once what asked not to be started before a time.
    case forgetsPauses
    // The worker's.
    /// Starts without an unexpired answer.
    case startsWithoutLease
    /// Starts between its hello and the welcome.
    case startsBeforeWelcome
    /// Runs a copy of an attempt that it holds.
    case runsCopies
    /// Forgets a result when it is sent, not when it is acknowledged.
    case forgetsOnSend
    /// Forgets to hand back what it was asked to return.
    case ignoresRecalls
    /// Accepts dispatches of a lower epoch.
    case acceptsLowerEpochs
    /// Lists in its beats only what runs.
    case hidesWaiting
    /// Lists no requests in its beats.
    case hidesRequests
    /// Lists no requests of running operations in its beats.
    case hidesOpenRequests
    /// Lets go on what waited before there is a slot for it.
    case resumesWithoutSlot
}
