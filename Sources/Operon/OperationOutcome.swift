internal import OperonModel

/// How an operation ended.
public enum OperationOutcome: String, Hashable, Sendable, CaseIterable {
    case succeeded
    /// For good: no attempt is left.
    case failed
    case cancelled
    /// Something that it depended on ended as it should not have.
    case skipped

    init(_ kind: OutcomeKind) {
        switch kind {
        case .succeeded: self = .succeeded
        case .failed: self = .failed
        case .cancelled: self = .cancelled
        case .skipped: self = .skipped
        }
    }
}
