/// The outcome of an operation, with the value it returned.
public enum OperationOutcome<Output: Sendable>: Sendable {
    /// The operation succeeded and returned this value.
    case succeeded(Output)
    /// The operation failed, and no retry is left.
    case failed(OperationError)
    /// The operation was cancelled. The reason is empty if none was given.
    case cancelled(reason: String)
    /// The operation never ran, because the outcome of this dependency did not allow it.
    case skipped(cause: OperationID)

    /// The kind of the outcome, without its value, error or reason.
    public var kind: OutcomeKind {
        switch self {
        case .succeeded: .succeeded
        case .failed: .failed
        case .cancelled: .cancelled
        case .skipped: .skipped
        }
    }

    /// Returns the value.
    ///
    /// - Throws: The `OperationError` of an operation that failed, `CancellationError`, or
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

/// There is no value: the operation never ran, because the outcome of a dependency did not allow
/// it.
public struct OperationSkipped: Error, Hashable, Sendable, CustomStringConvertible {
    /// The direct dependency that caused it; the operation itself, if the cause has been dropped.
    public let cause: OperationID
    /// The name of that dependency; `nil`: it is not known here.
    public let causeName: String?

    init(cause: OperationID, causeName: String? = nil) {
        self.cause = cause
        self.causeName = causeName
    }

    /// Two are equal if they have the same cause, with or without its name.
    public static func == (one: Self, other: Self) -> Bool { one.cause == other.cause }

    public func hash(into hasher: inout Hasher) { hasher.combine(cause) }

    /// One sentence for a person.
    public var description: String {
        let name = causeName.map { "“\($0)”" } ?? "operation \(cause)"
        return "The operation was skipped because of how \(name) ended."
    }
}
