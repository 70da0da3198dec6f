/// Where an operation is in its life. `docs/STATES.md` draws the edges.
public enum OperationState: UInt8, Hashable, Sendable, Codable, CaseIterable {
    /// Waits for its dependencies.
    case pending
    /// Could run: waits for a slot, its queue's limit, the end of a suspension or a delay. Entered
    /// from `pending`, and again when an attempt was recalled, lost or is retried.
    case ready
    /// An attempt was stored and given to a worker that has not said that it started.
    case dispatched
    /// Its worker has started it.
    case executing
    /// Has its outcome. Final within a round.
    case finished
}

/// The kind of an outcome, without what belongs to it.
public enum OutcomeKind: UInt8, Hashable, Sendable, Codable, CaseIterable {
    case succeeded
    case failed
    case cancelled
    case skipped
}

/// How an operation finished.
public enum Outcome: Hashable, Sendable, Codable {
    /// It did what it should; its output is kept apart.
    case succeeded
    /// It did not, for this reason, in its last attempt.
    case failed(OperationError)
    /// It was asked to stop, or never to start, for this reason (empty: none was given).
    case cancelled(reason: String)
    /// It was never tried, because this direct dependency had an outcome that forbids it.
    case skipped(cause: OperationID)

    /// Without what belongs to it.
    public var kind: OutcomeKind {
        switch self {
        case .succeeded: .succeeded
        case .failed: .failed
        case .cancelled: .cancelled
        case .skipped: .skipped
        }
    }
}
