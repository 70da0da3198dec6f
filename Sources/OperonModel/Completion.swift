/// How an external party ends the attempt of an `external` operation.
package enum Completion: Hashable, Sendable, Codable {
    /// The operation succeeded, with this output for its dependents.
    case succeeded(Payload)
    /// The operation failed; its `retry` policy decides whether there is another attempt.
    case failed(OperationError)
    /// The operation was given up, for this reason (empty: none was given).
    case cancelled(reason: String)
}
