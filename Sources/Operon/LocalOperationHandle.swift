internal import OperonModel
internal import OperonPorts
internal import OperonRuntime
internal import Synchronization

/// A block that runs in the program that added it, as a part of the graph: a join, a notification,
/// or a step that needs what only this program has.
///
/// It waits, is ordered, limited and cancelled as any other operation, and takes no slot of a
/// worker. It runs as long as this program does: if the program ends before, it stays as it is,
/// and what depends on it waits, until somebody cancels or completes it. It runs at most once for
/// each attempt. Cancelled, it has its outcome at once, and its task is cancelled; what it throws
/// without that is a failure, `CancellationError` as well, unless it cancelled itself before
/// (``OperationContext/cancel()``).
public final class LocalOperationHandle<Output: Sendable>: AnyOperationHandle, @unchecked Sendable {
    /// What it does.
    public typealias Block = @Sendable (OperationContext) async throws -> Output

    private let block: Block
    /// `nil`: what it returns stays in this program.
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

    /// A block that is in no queue yet, and whose value its dependents may read.
    public convenience init(
        options: OperationOptions = OperationOptions(),
        _ block: @escaping Block
    ) where Output: Codable {
        self.init(options: options, encode: { try Payload(encoding: $0) }, block)
    }

    /// A block that is in no queue yet, and returns nothing.
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
            // By itself: once somebody else cancelled it, it has its outcome.
            return .cancelled(reason: "")
        } catch {
            return .failed(OperationError(thrown: error))
        }
    }

    /// How it ended, once it has.
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

    /// What it returned, once it has.
    ///
    /// - Throws: `OperationError`, `CancellationError`, ``OperationSkipped``, and what ``outcome``
    ///   throws.
    public var value: Output { get async throws { try await outcome.get() } }
}

extension AnyOperationHandle {
    /// The coordinator says that it is this program's turn. Asks the session itself, which goes on
    /// a while after its cluster was closed.
    func execute(_ attempt: AttemptID?, _ session: Session) {
        guard let id, let queue, takeTurn(attempt) else { return }
        guard session.localRuns.begin() else { return }
        let isCancelled = LocalCancellation()
        // By itself: then it has something to say.
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
                // A task of its own: one that quits must still say so.
                let running = Task { await run(context) }
                hasQuit.attach { running.cancel() }
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

    /// Whether it is the first time that this attempt is told of. What runs of another one is asked
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

    /// With what its dependencies left.
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
                    // Whoever only waits for it is not concerned.
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
                // Its outcome is not known to anybody yet: then it is this.
                let refusal = Refusal.limitExceeded(limit: limit, value: value, maximum: maximum)
                try await complete(.failed(OperationError(thrown: refusal)))
            }
        } catch let error as OperonError {
            // Nobody here will hear of it again.
            abandon(error)
        } catch {
            // Cancelled here; or refused, for it was cancelled there, or somebody else was faster,
            // or it is another attempt's turn: then its outcome says so.
        }
    }
}

extension OperationQueue {
    /// Adds a block that runs in this program: see ``LocalOperationHandle``.
    ///
    /// - Throws: as ``addOperation(_:)``.
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
    /// - Throws: as ``addOperation(_:)``.
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
    /// - Throws: as ``addOperation(_:)``.
    @discardableResult
    public func addBarrierBlock(
        _ block: @escaping LocalOperationHandle<Void>.Block
    ) async throws -> LocalOperationHandle<Void> {
        let handle = LocalOperationHandle<Void>(options: OperationOptions(), block)
        try await addBarrier(handle)
        return handle
    }
}

/// The blocks of this program that run, and the wait for their end.
final class LocalRuns: Sendable {
    private struct State {
        var count = 0
        var isClosed = false
        var ended: Latch?
    }

    private let state = Mutex(State())

    /// Whether one may begin.
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

    /// None begins any more. Returns when all have ended, or at this moment.
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

/// Whether somebody wants what runs in this program to stop.
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

    /// Stops it when it is cancelled, or at once.
    func attach(_ stop: @escaping @Sendable () -> Void) {
        let isCancelled = state.withLock { state in
            state.stop = stop
            return state.isCancelled
        }
        if isCancelled { stop() }
    }
}
