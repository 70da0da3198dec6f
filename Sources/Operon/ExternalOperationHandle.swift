internal import OperonModel
internal import OperonPorts

/// An operation that an external party completes instead of a worker: a person who approves, or a
/// service that calls back.
///
/// It waits like any other operation. Once it is ready it counts as executing, until somebody
/// completes it: with ``complete(_:)`` here, with ``Cluster/complete(_:token:with:)`` in another
/// program, or with `operon complete` in a terminal.
public final class ExternalOperationHandle<Output: Codable & Sendable>: AnyOperationHandle,
    @unchecked Sendable
{
    private let input: Payload

    /// Creates a handle that is in no queue yet.
    ///
    /// - Parameters:
    ///   - output: The type of the value it is completed with.
    ///   - input: Information for the party that completes it, sent as JSON.
    ///   - options: How the operation is run.
    /// - Throws: The error from encoding the input.
    public init(
        _ output: Output.Type = Output.self,
        input: (any Encodable & Sendable)? = nil,
        options: OperationOptions = OperationOptions()
    ) throws {
        self.input = try input.map { try Payload(encoding: $0) } ?? .empty
        super.init(options: options)
    }

    /// `external`: no worker runs it.
    public override var kind: String { Work.externalKind }

    override func work() throws -> Work { .external(input: input) }

    /// Completes the operation as succeeded, with this value.
    ///
    /// - Throws: `Refusal.alreadyFinished`, another `Refusal` if the operation is not executing
    ///   yet, or ``OperonError``.
    public func complete(_ output: Output) async throws {
        try await end(.succeeded(try Payload(encoding: output)))
    }

    /// Completes the attempt as failed, with this error. The operation is retried if its options
    /// allow it.
    ///
    /// - Throws: The same errors as ``complete(_:)``.
    public func fail(_ error: any Error) async throws {
        try await end(.failed(OperationError(thrown: error)))
    }

    private func end(_ completion: Completion) async throws {
        try await untilAdded()
        guard let id, let queue else {
            throw OperonError(.invalid, "“\(name)” was not added to a queue.")
        }
        try await queue.cluster.complete(id, nil, completion)
    }

    /// The value that the operation was completed with. Waits for the outcome.
    ///
    /// - Throws: `OperationError`, `CancellationError` or ``OperationSkipped``, by the outcome;
    ///   ``OperonError``.
    public var value: Output {
        get async throws {
            switch try await finalOutcome() {
            case .succeeded: break
            case .failed(let error): throw error
            case .cancelled: throw CancellationError()
            case .skipped(let cause): throw await skipped(for: cause)
            }
            let payload = try await outputPayload()
            do throws(PayloadError) {
                return try payload.decoded(output: Output.self)
            } catch {
                let why = "What “\(name)” was given is no \(Output.self): \(error.message)."
                throw OperonError(.undecodable, why)
            }
        }
    }
}

extension Cluster {
    /// How an external party completes an operation.
    public enum ExternalResult: Sendable {
        /// The operation succeeded, with this value.
        case succeeded(any Encodable & Sendable)
        /// The attempt failed, with this error.
        case failed(any Error)
        /// The operation was cancelled. The reason has at most 4,096 bytes.
        case cancelled(reason: String)
    }

    /// Completes an external operation, by its id.
    ///
    /// - Parameters:
    ///   - id: The operation's ``AnyOperationHandle/id``.
    ///   - token: The attempt to complete, as events report it; `nil`: the current one.
    ///   - result: How it ended. Only the first result counts; all later ones are refused.
    /// - Throws: `Refusal` or ``OperonError``.
    public func complete(
        _ id: OperationID,
        token: String? = nil,
        with result: ExternalResult
    ) async throws {
        let completion: Completion =
            switch result {
            case .succeeded(let output): .succeeded(try Payload(encoding: output))
            case .failed(let error): .failed(OperationError(thrown: error))
            case .cancelled(let reason): .cancelled(reason: reason)
            }
        try await complete(id, token, completion)
    }

    fileprivate func complete(
        _ id: OperationID,
        _ token: String?,
        _ completion: Completion
    ) async throws {
        var attempt: AttemptID?
        if let token {
            attempt = AttemptID(token)
            guard attempt != nil else {
                throw OperonError(.invalid, "“\(token)” is no attempt: they look like 1.17.")
            }
        }
        let meant = attempt
        _ = try await ask {
            try await $0.complete(OperationSelector(id), attempt: meant, with: completion)
        }
    }
}
