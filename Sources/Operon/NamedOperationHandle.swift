internal import OperonModel
internal import OperonPorts

/// An operation whose kind was chosen while the program ran: by name, with whatever input.
public final class NamedOperationHandle: AnyOperationHandle, @unchecked Sendable {
    private let name_: String
    /// What it was given, as JSON.
    let input: Payload

    /// One that is in no queue yet.
    ///
    /// - Parameters:
    ///   - kind: What workers know it by. If no worker knows it, a cluster keeps the operation
    ///     ready until one does; in one process, where no worker can join, it fails at once with
    ///     `kindUnknown`.
    ///   - input: Sent as JSON.
    ///   - version: Which form the input has: ``Operation/version``.
    ///   - options: How it is to be run.
    /// - Throws: What encoding the input throws.
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

    /// What workers know it by.
    public override var kind: String { name_ }

    override func work() throws -> Work { .registered(kind: name_, input: input) }

    /// What it returned, once it has.
    ///
    /// - Throws: `OperationError`, `CancellationError`, ``OperationSkipped``; ``OperonError`` with
    ///   the code `undecodable` if it is something else.
    public func value<Value: Decodable & Sendable>(
        as type: Value.Type = Value.self
    ) async throws -> Value {
        switch try await finalOutcome() {
        case .succeeded: break
        case .failed(let error): throw error
        case .cancelled: throw CancellationError()
        case .skipped(let cause): throw OperationSkipped(cause: cause)
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
    /// Adds an operation of a kind that is chosen now, by name.
    ///
    /// - Parameters:
    ///   - kind: What workers know it by: the ``Operation/kind`` of a type, or the name of a
    ///     registered block. If no worker knows it, a cluster keeps the operation ready until one
    ///     does; in one process, where no worker can join, it fails at once with `kindUnknown`.
    ///   - input: Sent as JSON.
    ///   - dependencies: What it waits for.
    ///   - options: How it is to be run.
    /// - Throws: as ``addOperation(_:)``, and what encoding the input throws.
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
