package import OperonModel

extension Scheduler {
    /// Everything that can happen to a scheduler.
    package enum Event: Sendable {
        /// A client submitted a graph. Its id is the number of graphs before it. Operations can be
        /// added to an open graph.
        case graphSubmitted(CompiledGraph, isOpen: Bool = false)
        /// A client added operations to an open graph: either all of them are added, or none.
        case operationsAdded(GraphID, CompiledAddition)
        /// A client closed an open graph: nothing more will be added.
        case graphClosed(GraphID)
        /// A client set the limit of a queue. `nil`: no limit besides the number of slots. A queue
        /// that does not exist yet is created.
        case queueLimitSet(queue: String, maximum: Int?)
        /// `nil` removes the rate.
        case queueRateSet(queue: String, StartRate?)
        /// A client set the priority of operations that name none. Waiting operations follow it,
        /// unless a command gave them a priority of their own.
        case queuePrioritySet(queue: String, QueuePriority)
        /// A client set how many operations may hold a key. The present holders keep it.
        case keyLimitSet(KeySettings)
        /// A client reset the settings of a queue: what graphs and commands set no longer counts.
        /// The queue is forgotten with the last graph that names it.
        case queueReset(String)
        /// The same for the limit of a key.
        case keyReset(String)
        /// A client suspends the target, or, with `nil`, resumes it.
        case suspensionRequested(Target, Suspension?)
        /// A client cancels the target, and with `cascade` everything that depends on it.
        case cancelRequested(Target, reason: String, cascade: Bool)
        /// A client changed the priority of an operation that has not started.
        case priorityRequested(OperationID, QueuePriority)
        /// A client makes an operation wait for another one as well. The request is carried out or
        /// refused: with `alreadyStarted` if a worker has the operation, whether or not it has
        /// begun.
        case dependencyAdded(OperationID, on: OperationID, DependencyCondition)
        /// A client removes a dependency of an operation. The request is carried out or refused
        /// likewise.
        case dependencyRemoved(OperationID, on: OperationID)
        /// A client starts the next round of finished operations: of those named, or, if none is
        /// named, of all that failed, and with `cancelled` of those that were cancelled too.
        /// Operations that were skipped because of them follow. Operations that succeeded stay as
        /// they are.
        case retryRequested(GraphID, operations: [UInt32], cancelled: Bool)
        /// An external party ends the attempt of an external operation: the attempt named, or else
        /// the one that is executing. The request is carried out or refused.
        case completionRequested(OperationID, attempt: AttemptID?, Completion)
        /// A client drains a worker: it takes nothing more, and leaves when it has finished what it
        /// has. The request is done when the worker confirms it (`hasBegunToDrain`). It is not
        /// stored, so the client gets its answer only then.
        case drainRequested(Incarnation)
        /// The shell drops finished graphs from its store. Of graphs on which nothing unfinished
        /// depends, only the outcomes stay. `isGone` tells which graphs were dropped.
        case graphsForgotten([GraphID])
        /// A worker's message arrived.
        case workerMessage(WorkerEnvelope)
        /// The transport is connected, bound and consuming.
        case transportUp
        /// The transport lost its connection.
        case transportDown
        /// The broker returned a message: nobody consumes at this address.
        case addressReturned(WorkerAddress)
        /// An attempt that was just granted is larger than a message may be.
        case attemptUnsendable(HeldAttempt, OperationError)
        /// The coordinator shuts down: grant nothing more, and send every worker the last word on
        /// what it reported. With `kill`, end the running operations.
        case shutdownRequested(kill: Bool)
        /// A requested wake-up time has come, on either clock.
        case timeReached
    }

    package typealias Target = OperonModel.Target
}
