package import OperonModel

extension Scheduler {
    /// Every fact that can happen to a scheduler.
    package enum Event: Sendable {
        /// A client submitted a graph. Its id is the number of graphs before it.
        case graphSubmitted(CompiledGraph)
        /// A client set the limit of a queue; `nil`: as many as there are slots.
        case queueLimitSet(queue: String, maximum: Int?)
        /// A client wants it suspended, or, with `nil`, to go on.
        case suspensionRequested(Target, Suspension?)
        /// A client wants it cancelled; with `cascade` whatever depends on it too.
        case cancelRequested(Target, reason: String, cascade: Bool, by: String = "")
        /// A client changed the priority of an operation that has not started.
        case priorityRequested(OperationID, QueuePriority)
        /// A worker's message arrived.
        case workerMessage(WorkerEnvelope)
        /// The transport is connected, bound and consuming.
        case transportUp
        /// The transport lost its connection.
        case transportDown
        /// A message for this address found nobody.
        case addressReturned(WorkerAddress)
        /// An attempt that was just granted is larger than a message may be.
        case attemptUnsendable(HeldAttempt, OperationError)
        /// The coordinator leaves: grant nothing more, and give every worker the last word on what
        /// it reported; with `kill` end what runs.
        case shutdownRequested(kill: Bool)
        /// The time of the last wake-up that was asked for has come.
        case timeReached
    }

    package typealias Target = OperonModel.Target
}
