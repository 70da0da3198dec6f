package import OperonModel

extension Scheduler {
    /// Every fact that can happen to a scheduler.
    package enum Event: Sendable {
        /// A client submitted a graph. Its id is the number of graphs before it. One that is open
        /// may be added to.
        case graphSubmitted(CompiledGraph, isOpen: Bool = false)
        /// A client added operations to an open graph: all of them, or none.
        case operationsAdded(GraphID, CompiledAddition)
        /// A client will add no more to an open graph.
        case graphClosed(GraphID)
        /// A client set the limit of a queue; `nil`: as many as there are slots. A queue that is
        /// not there yet is made.
        case queueLimitSet(queue: String, maximum: Int?)
        /// A client set the priority of operations that name none. Those that wait follow, unless a
        /// command gave them one of their own.
        case queuePrioritySet(queue: String, QueuePriority)
        /// A client set how many operations may hold a key. Those that have it keep it.
        case keyLimitSet(KeySettings)
        /// A client took the settings of a queue back: what graphs and commands said of it counts
        /// no more. It is forgotten with the last graph that names it.
        case queueReset(String)
        /// The same for the limit of a key.
        case keyReset(String)
        /// A client wants it suspended, or, with `nil`, to go on.
        case suspensionRequested(Target, Suspension?)
        /// A client wants it cancelled; with `cascade` whatever depends on it too.
        case cancelRequested(Target, reason: String, cascade: Bool, by: String = "")
        /// A client changed the priority of an operation that has not started.
        case priorityRequested(OperationID, QueuePriority)
        /// A client wants an operation to wait for another one as well. Done, or refused: with
        /// `alreadyStarted` if a worker has it, whether or not it has begun.
        case dependencyAdded(OperationID, on: OperationID, DependencyCondition)
        /// A client wants an operation to wait for another one no more; done or refused alike.
        case dependencyRemoved(OperationID, on: OperationID)
        /// A client wants finished operations to have another round: these, or, if none is named,
        /// all that failed, and with `cancelled` those that were cancelled too. What was skipped
        /// because of them follows; what succeeded stays.
        case retryRequested(GraphID, operations: [UInt32], cancelled: Bool)
        /// Somebody outside ends the attempt of an external operation: this one, or whichever is
        /// executing. Done, or refused.
        case completionRequested(OperationID, attempt: AttemptID?, Completion)
        /// A client wants a worker to take nothing more, and to leave when it has finished what it
        /// has. Done when the worker says so (`hasBegunToDrain`), and not kept: whoever asked is
        /// told only then.
        case drainRequested(Incarnation)
        /// The shell drops finished graphs from its store: of those that nothing unfinished depends
        /// on only the outcomes stay. `isGone` tells of which.
        case graphsForgotten([GraphID])
        /// A worker's message arrived.
        case workerMessage(WorkerEnvelope)
        /// Whether an addition fits that was ordered to be compiled: to be given back before
        /// anything else is handled.
        case additionJudged(AdditionOrder, AdditionJudgement)
        /// What a running operation waits for, in the scheduler's numbers: likewise.
        case waitJudged(WaitOrder, WaitJudgement)
        /// What an operation has left that a running one asks for: likewise.
        case readJudged(ReadOrder, ReadJudgement)
        /// The transport is connected, bound and consuming.
        case transportUp
        /// The transport lost its connection.
        case transportDown
        /// The broker returned a message: nobody consumes at this address.
        case addressReturned(WorkerAddress)
        /// An attempt that was just granted is larger than a message may be.
        case attemptUnsendable(HeldAttempt, OperationError)
        /// The coordinator leaves: grant nothing more, and give every worker the last word on what
        /// it reported; with `kill` end what runs.
        case shutdownRequested(kill: Bool)
        /// The time of a wake-up that was asked for has come, by either clock.
        case timeReached
    }

    package typealias Target = OperonModel.Target
}
