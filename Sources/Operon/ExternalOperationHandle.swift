internal import OperonModel
internal import OperonPorts

/// An operation that somebody completes who is no worker: a person who approves, a service that
/// calls back.
///
/// It waits as any other. From when it is ready it is executing, until somebody ends it:
/// ``complete(_:)`` here, ``Cluster/complete(_:token:with:)`` in another program, or
/// `operon complete` in a terminal.
public final class ExternalOperationHandle<Output: Codable & Sendable>: AnyOperationHandle,
    @unchecked Sendable
{
    private let input: Payload

    /// One that is in no queue yet.
    ///
    /// - Parameters:
    ///   - output: The type of what it is completed with.
    ///   - input: What whoever completes it may want to read, as JSON.
    ///   - options: How it is to be run.
    /// - Throws: What encoding the input throws.
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

    /// It has succeeded, with this.
    ///
    /// - Throws: `Refusal.alreadyFinished`, another `Refusal` if it is not its turn yet, or
    ///   ``OperonError``.
    public func complete(_ output: Output) async throws {
        try await end(.succeeded(try Payload(encoding: output)))
    }

    /// It has failed, with this error. It is tried again, if its options say so.
    ///
    /// - Throws: as ``complete(_:)``.
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

    /// What whoever completed it gave, once that has been.
    ///
    /// - Throws: `OperationError`, `CancellationError`, ``OperationSkipped``; ``OperonError``.
    public var value: Output {
        get async throws {
            switch try await finalOutcome() {
            case .succeeded: break
            case .failed(let error): throw error
            case .cancelled: throw CancellationError()
            case .skipped(let cause): throw OperationSkipped(cause: cause)
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
    /// How somebody who is no worker ends an operation.
    public enum ExternalResult: Sendable {
        /// It has done what it should, and left this.
        case succeeded(any Encodable & Sendable)
        /// It has not.
        case failed(any Error)
        /// It was given up.
        case cancelled(reason: String)
    }

    /// Ends an operation that waits to be completed from outside, by its id.
    ///
    /// - Parameters:
    ///   - id: ``AnyOperationHandle/id``.
    ///   - token: The attempt that is meant, as events tell it; `nil`: whichever waits now.
    ///   - result: How it ended. Only the first one counts; every other is refused.
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
