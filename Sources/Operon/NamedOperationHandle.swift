internal import OperonModel
internal import OperonPorts

/// An operation whose kind is chosen by name while the program runs, with any input.
public final class NamedOperationHandle: AnyOperationHandle, @unchecked Sendable {
    private let name_: String
    /// The input, as JSON.
    let input: Payload

    /// Creates a handle that is in no queue yet.
    ///
    /// - Parameters:
    ///   - kind: The name under which workers know the kind. If no worker knows it, a remote
    ///     cluster keeps the operation ready until one does. In one process, where no worker can
    ///     join, the operation fails at once with `kindUnknown`.
    ///   - input: The input, sent as JSON.
    ///   - version: The version of the input format: see ``Operation/version``.
    ///   - options: How the operation is run.
    /// - Throws: The error from encoding the input.
    public init(
        kind: String,
        input: some Encodable & Sendable,
        version: Int = 1,
        options: OperationOptions = OperationOptions()
    ) throws {
        name_ = kind
        self.input = try Payload(input: input, version: version)
        super.init(options: options)
    }

    /// The name under which workers know the kind.
    public override var kind: String { name_ }

    override func work() throws -> Work { .registered(kind: name_, input: input) }

    /// Returns the value that the operation returned. Waits for the outcome.
    ///
    /// - Throws: `OperationError`, `CancellationError` or ``OperationSkipped``, by the outcome;
    ///   ``OperonError`` with the code `undecodable` if the value is of another type.
    public func value<Value: Decodable & Sendable>(
        as type: Value.Type = Value.self
    ) async throws -> Value {
        switch try await finalOutcome() {
        case .succeeded: break
        case .failed(let error): throw error
        case .cancelled: throw CancellationError()
        case .skipped(let cause): throw await skipped(for: cause)
        }
        let payload = try await outputPayload()
        do throws(PayloadError) {
            return try payload.decoded(output: type)
        } catch {
            let why = "What “\(name)” returned is no \(type): \(error.message)."
            throw OperonError(.undecodable, why)
        }
    }
}

extension OperationQueue {
    /// Adds an operation of a kind that is chosen by name.
    ///
    /// - Parameters:
    ///   - kind: The name under which workers know the kind: the ``Operation/kind`` of a type, or
    ///     the name of a registered block. If no worker knows it, a remote cluster keeps the
    ///     operation ready until one does. In one process, where no worker can join, the operation
    ///     fails at once with `kindUnknown`.
    ///   - input: The input, sent as JSON.
    ///   - dependencies: The operations to wait for.
    ///   - options: How the operation is run.
    /// - Throws: The same errors as ``addOperation(_:)``, and the error from encoding the input.
    @discardableResult
    public func addOperation(
        _ kind: String,
        _ input: some Encodable & Sendable,
        after dependencies: [AnyOperationHandle] = [],
        options: OperationOptions = OperationOptions()
    ) async throws -> NamedOperationHandle {
        let handle = try NamedOperationHandle(kind: kind, input: input, options: options)
        for other in dependencies { try await handle.addDependency(other) }
        try await addOperations([handle])
        return handle
    }
}
