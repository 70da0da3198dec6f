internal import OperonModel
internal import OperonPorts
internal import OperonRuntime
internal import Synchronization

/// A block that runs in the program that added it, as a part of the graph: a join, a notification,
/// or a step that needs something that only this program has.
///
/// It waits and is ordered, limited and cancelled like any other operation, but takes no slot of a
/// worker. It runs only while this program does: if the program ends first, the operation keeps its
/// state, and its dependents wait until somebody cancels or completes it. The block runs at most
/// once per attempt. If the operation is cancelled, it has its outcome at once, and the block's
/// task is cancelled. Otherwise any error that the block throws is a failure, even
/// `CancellationError`, unless the block cancelled itself first (``OperationContext/cancel()``).
public final class LocalOperationHandle<Output: Sendable>: AnyOperationHandle, @unchecked Sendable {
    /// The code that the operation runs.
    public typealias Block = @Sendable (OperationContext) async throws -> Output

    private let block: Block
    /// `nil`: the value that the block returns stays in this program.
    private let encode: (@Sendable (Output) throws -> Payload)?
    private let returned = Mutex<Output?>(nil)

    init(
        options: OperationOptions,
        encode: (@Sendable (Output) throws -> Payload)?,
        _ block: @escaping Block
    ) {
        self.block = block
        self.encode = encode
        super.init(options: options)
    }

    /// Creates a handle, in no queue yet, for a block whose value its dependents may read.
    public convenience init(
        options: OperationOptions = OperationOptions(),
        _ block: @escaping Block
    ) where Output: Codable {
        self.init(options: options, encode: { try Payload(encoding: $0) }, block)
    }

    /// Creates a handle, in no queue yet, for a block that returns nothing.
    @_disfavoredOverload
    public convenience init(
        options: OperationOptions = OperationOptions(),
        _ block: @escaping Block
    ) where Output == Void {
        self.init(options: options, encode: nil, block)
    }

    /// `external`: no worker runs it.
    public override var kind: String { Work.externalKind }

    override func work() throws -> Work { .external(input: .empty) }

    override var runsHere: Bool { true }

    override func run(_ context: OperationContext) async -> Completion? {
        do {
            let output = try await block(context)
            let payload = try encode?(output) ?? .empty
            let limit = Limits().payloadBytes
            guard payload.bytes.count <= limit else {
                return .failed(.outputTooLarge(bytes: payload.bytes.count, limit: limit))
            }
            returned.withLock { $0 = output }
            return .succeeded(payload)
        } catch is CancellationError where context.isCancelled {
            // The block cancelled itself: a cancel from elsewhere has already set the outcome.
            return .cancelled(reason: "")
        } catch {
            return .failed(OperationError(thrown: error))
        }
    }

    /// The outcome of the operation. Waits for it.
    ///
    /// - Throws: `CancellationError` if the calling task is cancelled; ``OperonError``: see
    ///   ``AnyOperationHandle/finalOutcome()``.
    public var outcome: OperationOutcome<Output> {
        get async throws {
            switch try await finalOutcome() {
            case .succeeded:
                guard let output = returned.withLock({ $0 }) else {
                    let why = "Somebody else completed “\(name)”: this program has no value of it."
                    throw OperonError(.noOutput, why)
                }
                return .succeeded(output)
            case .failed(let error): return .failed(error)
            case .cancelled(let reason): return .cancelled(reason: reason)
            case .skipped(let cause): return .skipped(cause: cause)
            }
        }
    }

    /// The value that the block returned. Waits for the outcome.
    ///
    /// - Throws: `OperationError`, `CancellationError` or ``OperationSkipped``, by the outcome; the
    ///   errors of ``outcome``.
    public var value: Output {
        get async throws {
            do {
                return try await outcome.get()
            } catch let error as OperationSkipped {
                throw await skipped(for: error.cause)
            }
        }
    }
}

extension AnyOperationHandle {
    /// Starts the block when the coordinator reports that the operation is executing. Calls the
    /// session directly, because it outlives the closing of its cluster for a while.
    func execute(_ attempt: AttemptID?, _ session: Session) {
        guard let id, let queue, takeTurn(attempt) else { return }
        guard session.localRuns.begin() else { return }
        let isCancelled = LocalCancellation()
        // Set if the block cancels itself; its completion is then still reported.
        let hasQuit = LocalCancellation()
        let task = Task { [self] in
            defer { session.localRuns.end() }
            let completion: Completion?
            do {
                let name = queue.name
                let context = try await context(
                    id,
                    name,
                    session,
                    isCancelled: { isCancelled.isCancelled || hasQuit.isCancelled },
                    cancel: { hasQuit.cancel() }
                )
                // A separate task, so that the completion is reported even if the block cancels
                // itself. The block begins when its task can be cancelled, so that its first step
                // can cancel it.
                let canBeCancelled = Latch()
                let running = Task {
                    await canBeCancelled.wait()
                    return await run(context)
                }
                hasQuit.attach { running.cancel() }
                canBeCancelled.open()
                completion = await withTaskCancellationHandler {
                    await running.value
                } onCancel: {
                    running.cancel()
                }
            } catch {
                completion = .failed(OperationError(thrown: error))
            }
            guard let completion, !isCancelled.isCancelled else { return }
            await tell(completion, attempt, of: id, session)
        }
        isCancelled.attach { task.cancel() }
        let stop: @Sendable () -> Void = { isCancelled.cancel() }
        let isOver = state.withLock { state in
            guard state.phase != .finished else { return true }
            let extra = state.extra ?? Extra()
            extra.stop = stop
            state.extra = extra
            return false
        }
        if isOver { stop() }
    }

    /// Returns whether this attempt is reported for the first time. Asks a run of another attempt
    /// to stop.
    private func takeTurn(_ attempt: AttemptID?) -> Bool {
        let (isFirst, stop) = state.withLock { state in
            let extra = state.extra ?? Extra()
            guard runsHere, state.phase != .finished, extra.stop == nil || extra.attempt != attempt
            else { return (false, (@Sendable () -> Void)?.none) }
            let stop = extra.stop
            extra.attempt = attempt
            extra.stop = {}
            state.extra = extra
            return (true, stop)
        }
        stop?()
        return isFirst
    }

    /// A context with the outputs of the dependencies.
    private func context(
        _ id: OperationID,
        _ queueName: String,
        _ session: Session,
        isCancelled: @escaping @Sendable () -> Bool,
        cancel: @escaping @Sendable () -> Void
    ) async throws -> OperationContext {
        let detail = try await session.insist { try await $0.operation(OperationSelector(id)) }
        var inputs: [NamedInput] = []
        for dependency in detail.dependencies {
            let operation = dependency.operation
            let isOwn = operation.graph == id.graph.rawValue
            let name = isOwn ? operation.name : "\(operation.graph)/\(operation.name)"
            var input = NamedInput(name: name, output: nil)
            if dependency.outcome == .succeeded {
                let selector = OperationSelector(
                    OperationID(
                        graph: GraphID(rawValue: operation.graph),
                        index: operation.index
                    )
                )
                do {
                    input.output = try await session.insist {
                        try await $0.output(of: selector)
                    }
                } catch let error as OperonError where error.code == .notFound {
                    // Matters only if the block reads this output.
                    input.isDropped = true
                }
            }
            inputs.append(input)
        }
        return OperationContext.local(
            attempt: max(1, Int(detail.operation.attempts)),
            operationName: detail.operation.name,
            queueName: queueName,
            inputs: inputs,
            isCancelled: isCancelled,
            cancel: cancel
        )
    }

    private func tell(
        _ completion: Completion,
        _ attempt: AttemptID?,
        of id: OperationID,
        _ session: Session
    ) async {
        let complete = { (completion: Completion) in
            _ = try await session.insist {
                try await $0.complete(OperationSelector(id), attempt: attempt, with: completion)
            }
        }
        do {
            do {
                try await complete(completion)
            } catch Refusal.limitExceeded(let limit, let value, let maximum) {
                // The completion was too large, so there is no outcome yet: the refusal becomes it.
                let refusal = Refusal.limitExceeded(limit: limit, value: value, maximum: maximum)
                try await complete(.failed(OperationError(thrown: refusal)))
            }
        } catch let error as OperonError {
            // This program can no longer learn the outcome.
            abandon(error)
        } catch {
            // Cancelled in this program. Or refused: the operation was cancelled or completed
            // elsewhere, or another attempt is current; the coordinator then reports its outcome.
        }
    }
}

extension OperationQueue {
    /// Adds a block that runs in this program: see ``LocalOperationHandle``.
    ///
    /// - Throws: The same errors as ``addOperation(_:)``.
    @discardableResult
    public func addLocal<Output: Codable & Sendable>(
        _ name: String? = nil,
        after dependencies: [AnyOperationHandle] = [],
        _ block: @escaping LocalOperationHandle<Output>.Block
    ) async throws -> LocalOperationHandle<Output> {
        let handle = LocalOperationHandle(options: OperationOptions(name: name), block)
        handle.wait(forAll: dependencies)
        try await addOperations([handle])
        return handle
    }

    /// Adds a block that runs in this program and returns nothing: see ``LocalOperationHandle``.
    ///
    /// - Throws: The same errors as ``addOperation(_:)``.
    @_disfavoredOverload
    @discardableResult
    public func addLocal(
        _ name: String? = nil,
        after dependencies: [AnyOperationHandle] = [],
        _ block: @escaping LocalOperationHandle<Void>.Block
    ) async throws -> LocalOperationHandle<Void> {
        let handle = LocalOperationHandle<Void>(options: OperationOptions(name: name), block)
        handle.wait(forAll: dependencies)
        try await addOperations([handle])
        return handle
    }

    /// Adds a block as a barrier: see ``addBarrier(_:)``.
    ///
    /// - Throws: The same errors as ``addOperation(_:)``.
    @discardableResult
    public func addBarrierBlock(
        _ block: @escaping LocalOperationHandle<Void>.Block
    ) async throws -> LocalOperationHandle<Void> {
        let handle = LocalOperationHandle<Void>(options: OperationOptions(), block)
        try await addBarrier(handle)
        return handle
    }
}

/// Counts the running blocks of this program and waits for their end.
final class LocalRuns: Sendable {
    private struct State {
        var count = 0
        var isClosed = false
        var ended: Latch?
    }

    private let state = Mutex(State())

    /// Returns whether another block may start.
    func begin() -> Bool {
        state.withLock { state in
            if !state.isClosed { state.count += 1 }
            return !state.isClosed
        }
    }

    func end() {
        let ended = state.withLock { state in
            state.count -= 1
            return state.count == 0 ? state.ended : nil
        }
        ended?.open()
    }

    /// Lets no further block start. Returns when all have ended, or at this time.
    func close(by end: ContinuousClock.Instant) async {
        let ended: Latch? = state.withLock { state in
            state.isClosed = true
            guard state.count > 0 else { return nil }
            let ended = state.ended ?? Latch()
            state.ended = ended
            return ended
        }
        let left = end - ContinuousClock.now
        if let ended, left > .zero { await ended.wait(within: left) }
    }
}

/// Whether code that runs in this program should stop.
final class LocalCancellation: Sendable {
    private let state = Mutex((isCancelled: false, stop: (@Sendable () -> Void)?.none))

    var isCancelled: Bool { state.withLock { $0.isCancelled } }

    func cancel() {
        let stop = state.withLock { state in
            state.isCancelled = true
            return state.stop
        }
        stop?()
    }

    /// Sets the closure that stops the code; calls it at once if it was cancelled before.
    func attach(_ stop: @escaping @Sendable () -> Void) {
        let isCancelled = state.withLock { state in
            state.stop = stop
            return state.isCancelled
        }
        if isCancelled { stop() }
    }
}
