internal import OperonPorts
internal import Synchronization

/// A handle for an operation of a known type that was added to a queue, or will be.
///
/// ```swift
/// let thumbnail = OperationHandle(Resize(file: "a.png", width: 200))
/// try await thumbnail.addDependency(download)
/// try await queue.addOperation(thumbnail)
/// print(try await thumbnail.value)
/// ```
public final class OperationHandle<Op: Operation>: AnyOperationHandle, @unchecked Sendable {
    /// The operation value.
    public let operation: Op

    init(work operation: Op, options: OperationOptions?) {
        self.operation = operation
        super.init(options: options ?? operation.options)
    }

    /// A handle for an operation that a coordinator already has.
    init(_ operation: Op, _ id: OperationID, name: String, in queue: OperationQueue) {
        self.operation = operation
        super.init(id, name: name, in: queue)
    }

    /// Creates a handle for an operation that is in no queue yet.
    ///
    /// - Parameters:
    ///   - operation: The operation to run.
    ///   - options: How it is run; `nil`: the operation's own options.
    public convenience init(
        _ operation: Op,
        options: OperationOptions? = nil
    ) where Op.Output: Codable {
        self.init(work: operation, options: options)
    }

    /// Creates a handle for an operation that returns nothing and is in no queue yet.
    @_disfavoredOverload
    public convenience init(
        _ operation: Op,
        options: OperationOptions? = nil
    ) where Op.Output == Void {
        self.init(work: operation, options: options)
    }

    /// The kind of the operation.
    public override var kind: String { Op.kind }

    override func work() throws -> Work {
        do {
            return .registered(kind: Op.kind, input: try Payload(operation: operation))
        } catch {
            throw OperonError(.invalid, "The input of “\(name)” cannot be encoded: \(error)")
        }
    }

    override var registeredType: ObjectIdentifier? { ObjectIdentifier(Op.self) }

    override func register(_ register: (OperationKind) -> Void) {
        register(OperationKind(any: Op.self))
    }

    /// The operations of its conditions come first. They are created once, even if adding is tried
    /// again.
    override var members: [AnyOperationHandle] {
        let conditions = operation.conditions
        guard !conditions.isEmpty else { return [self] }
        let known = state.withLock { $0.extra?.brought }
        let brought = known ?? conditions.compactMap { $0.dependency() }
        state.withLock { state in
            guard state.phase == .new, !brought.isEmpty else { return }
            let extra = state.extra ?? Extra()
            extra.brought = brought
            state.extra = extra
        }
        for handle in brought { wait(for: handle, .unlessFailed) }
        return brought.flatMap(\.members) + [self]
    }

    // MARK: - Outcome

    /// The outcome of the operation. Waits for it.
    ///
    /// - Throws: `CancellationError` if the calling task is cancelled; ``OperonError``: see
    ///   ``AnyOperationHandle/finalOutcome()``, and `unreachable`, `notFound` (it was dropped) or
    ///   `undecodable` for the value that the operation returned.
    public var outcome: OperationOutcome<Op.Output> {
        get async throws {
            switch try await finalOutcome() {
            case .succeeded: .succeeded(try await output())
            case .failed(let error): .failed(error)
            case .cancelled(let reason): .cancelled(reason: reason)
            case .skipped(let cause): .skipped(cause: cause)
            }
        }
    }

    /// The value that the operation returned. Waits for the outcome.
    ///
    /// - Throws: The error that the operation threw, if its type is in ``Operation/errors``,
    ///   otherwise an `OperationError`; `CancellationError` if the operation or the calling task
    ///   was cancelled; ``OperationSkipped``; and the errors of ``outcome``.
    public var value: Op.Output {
        get async throws {
            do {
                return try await outcome.get()
            } catch let error as OperationError {
                throw Op.thrown(by: error) ?? error
            } catch let error as OperationSkipped {
                throw await skipped(for: error.cause)
            }
        }
    }

    /// The value that the operation returned, if this program has it. `nil` if the operation is not
    /// known to have succeeded, or its value has not been fetched yet. Never asks the coordinator.
    public var valueIfKnown: Op.Output? {
        let output: Payload? = state.withLock { state in
            guard state.phase == .finished else { return nil }
            guard let ending = state.ending else { return .empty }
            return ending.outcome == .succeeded ? ending.output : nil
        }
        return output.flatMap { try? $0.decoded(output: Op.Output.self) }
    }

    private func output() async throws -> Op.Output {
        let payload = Op.Output.self == Void.self ? .empty : try await outputPayload()
        do throws(PayloadError) {
            return try payload.decoded(output: Op.Output.self)
        } catch {
            throw OperonError(
                .undecodable,
                "What “\(name)” returned is no \(Op.Output.self): \(error.message)."
            )
        }
    }
}

extension AnyOperationHandle {
    /// The output of an operation that has succeeded, fetched at most once.
    func outputPayload() async throws -> Payload {
        let known = state.withLock { state in state.ending == nil ? .empty : state.ending?.output }
        if let known { return known }
        guard let queue, let id else { return .empty }
        let selector = OperationSelector(id)
        let payload = try await queue.cluster.ask { try await $0.output(of: selector) } ?? .empty
        state.withLock { $0.ending = Ending(.succeeded, output: payload) }
        return payload
    }
}

extension Operation {
    /// The original error, if its type is one of the operation's error types.
    static func thrown(by error: OperationError) -> (any Error)? {
        for type in errors {
            if let error = error.thrown(as: type) { return error }
        }
        return nil
    }
}
