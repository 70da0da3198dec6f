/// How somebody outside ends the attempt of an `external` operation.
package enum Completion: Hashable, Sendable, Codable {
    /// It did what it should, and left this for its dependents.
    case succeeded(Payload)
    /// It did not; `retry` decides whether there is a further attempt.
    case failed(OperationError)
    /// It was given up, for this reason (empty: none was given).
    case cancelled(reason: String)
}
