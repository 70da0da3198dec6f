/// How an operation ended, with what it returned.
public enum OperationOutcome<Output: Sendable>: Sendable {
    /// It returned this.
    case succeeded(Output)
    /// For good: no attempt is left.
    case failed(OperationError)
    /// It was asked to stop, or never to start. The reason is empty if none was given.
    case cancelled(reason: String)
    /// It was never tried: this one, which it depended on, ended as it should not have.
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

    /// What it returned.
    ///
    /// - Throws: the `OperationError` of one that failed, `CancellationError`, or
    ///   ``OperationSkipped``.
    public func get() throws -> Output {
        switch self {
        case .succeeded(let output): return output
        case .failed(let error): throw error
        case .cancelled: throw CancellationError()
        case .skipped(let cause): throw OperationSkipped(cause: cause)
        }
    }
}

extension OperationOutcome: Equatable where Output: Equatable {}
extension OperationOutcome: Hashable where Output: Hashable {}

/// There is no value: the operation was never tried, because another one ended as it should not
/// have.
public struct OperationSkipped: Error, Hashable, Sendable, CustomStringConvertible {
    /// What it depended on directly; itself, if that is not kept any more.
    public let cause: OperationID

    /// One sentence for a person.
    public var description: String { "It was skipped, because of how operation \(cause) ended." }
}
