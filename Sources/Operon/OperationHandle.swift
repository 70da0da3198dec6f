internal import OperonPorts
internal import Synchronization

/// An operation of a known type that was added to a queue, or will be.
///
/// ```swift
/// let thumbnail = OperationHandle(Resize(file: "a.png", width: 200))
/// try await thumbnail.addDependency(download)
/// try await queue.addOperation(thumbnail)
/// print(try await thumbnail.value)
/// ```
public final class OperationHandle<Op: Operation>: AnyOperationHandle, @unchecked Sendable {
    /// What was added, or will be.
    public let operation: Op

    init(work operation: Op, options: OperationOptions?) {
        self.operation = operation
        super.init(options: options ?? operation.options)
    }

    /// Of an operation that a coordinator has.
    init(_ operation: Op, _ id: OperationID, name: String, in queue: OperationQueue) {
        self.operation = operation
        super.init(id, name: name, in: queue)
    }

    /// A handle for an operation that is in no queue yet.
    ///
    /// - Parameters:
    ///   - operation: What to do.
    ///   - options: How it is to be run; `nil`: as the operation itself says.
    public convenience init(
        _ operation: Op,
        options: OperationOptions? = nil
    ) where Op.Output: Codable {
        self.init(work: operation, options: options)
    }

    /// A handle for an operation that returns nothing and is in no queue yet.
    @_disfavoredOverload
    public convenience init(
        _ operation: Op,
        options: OperationOptions? = nil
    ) where Op.Output == Void {
        self.init(work: operation, options: options)
    }

    /// The name of its kind.
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

    /// What its conditions bring comes first: made once, however often it is tried to be added.
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

    /// How it ended, once it has.
    ///
    /// - Throws: `CancellationError` if the calling task is cancelled; ``OperonError``: see
    ///   ``AnyOperationHandle/finalOutcome()``, and `unreachable`, `notFound` (it is not kept any
    ///   more) or `undecodable` for what it returned.
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

    /// What it returned, once it has.
    ///
    /// - Throws: What it threw, if that is of one of its ``Operation/errors``, else an
    ///   `OperationError`; `CancellationError` if it was cancelled, or the calling task was;
    ///   ``OperationSkipped``; and what ``outcome`` throws.
    public var value: Op.Output {
        get async throws {
            do {
                return try await outcome.get()
            } catch let error as OperationError {
                throw Op.thrown(by: error) ?? error
            }
        }
    }

    /// What it returned, if that is known here; `nil`: it has not succeeded, as far as is known, or
    /// what it returned was not asked for yet. Never asks anybody.
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
    /// What it left, once it has succeeded: asked for once.
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
    /// The error of one of its own types that stands behind this one.
    static func thrown(by error: OperationError) -> (any Error)? {
        for type in errors {
            if let error = error.thrown(as: type) { return error }
        }
        return nil
    }
}
