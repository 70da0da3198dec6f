/// The outcomes of a dependency that release its dependent. The other outcomes skip it.
public enum DependencyCondition: UInt8, Hashable, Sendable, Codable, CaseIterable {
    /// Success and cancellation release; failure and skipping skip. This is the default, because a
    /// cancelled Foundation operation counts as finished.
    case unlessFailed = 0
    /// Every outcome releases.
    case finished = 1
    /// Only success releases.
    case succeeded = 2
    /// Only failure releases.
    case failed = 3

    /// The name in graph files.
    public var name: String {
        switch self {
        case .unlessFailed: "unlessFailed"
        case .finished: "finished"
        case .succeeded: "succeeded"
        case .failed: "failed"
        }
    }

    /// Returns whether this outcome of the dependency releases the dependent.
    public func isSatisfied(by outcome: OutcomeKind) -> Bool {
        switch (self, outcome) {
        case (.finished, _): true
        case (.unlessFailed, .succeeded), (.unlessFailed, .cancelled): true
        case (.unlessFailed, .failed), (.unlessFailed, .skipped): false
        case (.succeeded, .succeeded): true
        case (.succeeded, .cancelled), (.succeeded, .failed), (.succeeded, .skipped): false
        case (.failed, .failed): true
        case (.failed, .succeeded), (.failed, .cancelled), (.failed, .skipped): false
        }
    }
}
