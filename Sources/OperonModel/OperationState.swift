/// Where an operation is in its life. `docs/STATES.md` draws the edges.
public enum OperationState: UInt8, Hashable, Sendable, Codable, CaseIterable {
    /// Waits for its dependencies.
    case pending = 0
    /// Could run: waits for a slot, its queue's limit, the end of a suspension or a delay. Entered
    /// from `pending`, and again when an attempt was recalled, lost or is retried.
    case ready = 1
    /// An attempt was stored and given to a worker that has not said that it started.
    case dispatched = 2
    /// Its worker has started it.
    case executing = 3
    /// Has its outcome. Final within a round.
    case finished = 4
}

/// The kind of an outcome, without what belongs to it.
public enum OutcomeKind: UInt8, Hashable, Sendable, Codable, CaseIterable {
    case succeeded = 0
    case failed = 1
    case cancelled = 2
    case skipped = 3
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
