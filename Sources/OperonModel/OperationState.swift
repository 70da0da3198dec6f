/// The state of an operation. `docs/STATES.md` shows the transitions.
public enum OperationState: UInt8, Hashable, Sendable, Codable, CaseIterable {
    /// The operation waits for its dependencies.
    case pending = 0
    /// The operation could run, but waits for a slot, for its queue's limit, or for the end of a
    /// suspension or a delay. Entered from `pending`, and again when an attempt was recalled, lost
    /// or is retried.
    case ready = 1
    /// An attempt was stored and sent to a worker, which has not reported its start.
    case dispatched = 2
    /// The worker has started the attempt.
    case executing = 3
    /// The operation has its outcome, which is final within a round.
    case finished = 4
}

/// The kind of an outcome, without its error, reason or cause.
public enum OutcomeKind: UInt8, Hashable, Sendable, Codable, CaseIterable {
    case succeeded = 0
    case failed = 1
    case cancelled = 2
    case skipped = 3
}

/// The outcome of an operation.
public enum Outcome: Hashable, Sendable, Codable {
    /// The operation succeeded; its output is stored separately.
    case succeeded
    /// The operation failed; this is the error of its last attempt.
    case failed(OperationError)
    /// The operation was cancelled, for this reason (empty if none was given).
    case cancelled(reason: String)
    /// The operation never ran, because the outcome of this direct dependency did not allow it.
    case skipped(cause: OperationID)

    /// The kind of the outcome, without its error, reason or cause.
    public var kind: OutcomeKind {
        switch self {
        case .succeeded: .succeeded
        case .failed: .failed
        case .cancelled: .cancelled
        case .skipped: .skipped
        }
    }
}
