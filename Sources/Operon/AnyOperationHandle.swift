internal import OperonPorts
internal import OperonRuntime
internal import Synchronization

/// The identity and state of an operation that was added to a queue, or will be, whatever its type.
/// ``OperationHandle`` knows the type as well.
///
/// The work of an operation is a value; its handle is used to cancel it, wait for it and depend on
/// it. A handle stands for one operation and is added once. Releasing a handle does not stop its
/// operation.
///
/// `@unchecked Sendable`: the compiler cannot check classes that others inherit from. Subclasses
/// add only constants, and everything that varies is behind a lock.
public class AnyOperationHandle: @unchecked Sendable {
    let state: Mutex<State>

    struct State {
        var phase = Phase.new
        var isCancelled = false
        /// Whether the queue object counts it: true if it was added through that object.
        var isCounted = false
        /// Distinguishes unlabelled operations of one kind.
        var number: UInt32 = 0
        /// Valid once the operation is submitted.
        var id = OperationID(graph: GraphID(rawValue: 0), index: 0)
        /// `nil`: no outcome yet, or a success without output.
        var ending: Ending?
        /// Allocated only if something has to be stored in it, so that a million waiting operations
        /// take little memory.
        var extra: Extra?
        var dependencies = DraftDependencies.none
        var queue: OperationQueue?
    }

    enum Phase: UInt8 {
        /// In no queue.
        case new
        /// Being sent to the coordinator.
        case submitting
        /// The coordinator has it.
        case submitted
        /// Runs, or has run, outside of any queue.
        case local
        case finished
    }

    /// Values that most operations do not need.
    final class Extra {
        var options: OperationOptions?
        var label: String?
        /// Earlier operations that its queue makes it wait for, to keep an order: see `Addition`.
        var order: [AnyOperationHandle] = []
        /// Operations that its conditions add.
        var brought: [AnyOperationHandle]?
        var cancelReason = ""
        var latch: Latch?
        /// Why its outcome can no longer be learned.
        var abandoned: OperonError?
        /// Why adding it failed, for tasks that were already waiting for it.
        var refusal: (any Error)?
        var completion: CompletionBlock?
        /// Asks the operation to stop, if it runs in this program.
        var stop: (@Sendable () -> Void)?
        /// The attempt that `stop` belongs to.
        var attempt: AttemptID?

        var isEmpty: Bool {
            options == nil && label == nil && latch == nil && completion == nil && stop == nil
                && cancelReason.isEmpty && order.isEmpty && brought == nil
                && abandoned == nil && refusal == nil
        }
    }

    /// How the operation ended, if there is more to store than a success without output.
    final class Ending: Sendable {
        let outcome: Outcome
        /// `nil`: has to be fetched from the coordinator.
        let output: Payload?

        init(_ outcome: Outcome, output: Payload?) {
            self.outcome = outcome
            self.output = output
        }
    }

    /// Called with the outcome of the operation.
    public typealias CompletionBlock = @Sendable (Outcome) -> Void

    init(options: OperationOptions) {
        var state = State()
        if !options.isPlain {
            let extra = Extra()
            extra.options = options
            extra.label = options.name
            state.extra = extra
        }
        self.state = Mutex(state)
    }

    /// A handle for an operation that a coordinator already has.
    init(_ id: OperationID, name: String, in queue: OperationQueue) {
        var state = State()
        state.phase = .submitted
        state.id = id
        state.queue = queue
        let extra = Extra()
        extra.label = name
        state.extra = extra
        self.state = Mutex(state)
    }

    deinit {
        // Releases a chain of handles in a loop: handles that depend on one another and were never
        // added would otherwise be deinitialized recursively, as deep as the chain is long.
        var rest = takeDependencies()
        while var handle = rest.popLast() {
            if isKnownUniquelyReferenced(&handle) { rest += handle.takeDependencies() }
        }
    }

    private func takeDependencies() -> [AnyOperationHandle] {
        state.withLock { state in
            var handles = state.dependencies.all.map(\.handle)
            state.dependencies = .none
            if let extra = state.extra {
                handles += extra.order
                extra.order = []
            }
            return handles
        }
    }

    // MARK: - What subclasses know

    /// The kind of the operation.
    public var kind: String { preconditionFailure("a subclass knows its kind") }

    /// The work to be done.
    func work() throws -> Work { preconditionFailure("a subclass knows its work") }

    /// The type that a worker in this process must know to run it; `nil`: none.
    var registeredType: ObjectIdentifier? { nil }

    /// Registers that type.
    func register(_ register: (OperationKind) -> Void) {}

    /// The operations that are added with it, itself included. Read only when it is being added.
    var members: [AnyOperationHandle] { [self] }

    /// Whether its remaining dependencies are cancelled once it is certain to be skipped.
    var cancelsSiblings: Bool { false }

    /// Whether this program runs it, instead of a worker.
    var runsHere: Bool { false }

    /// Runs it in this program; `nil`: it does not run in this program.
    func run(_ context: OperationContext) async -> Completion? { nil }

    /// Cancels the operations that belong to it.
    func cancelParts(reason: String) async throws {}

    /// Its dependencies before it is added.
    final var draftDependencies: [DraftDependencies.Element] {
        state.withLock { state in state.phase == .new ? state.dependencies.all : [] }
    }

    /// Adds a dependency, unless there is one already or the handle has been added.
    final func wait(for other: AnyOperationHandle, _ condition: DependencyCondition) {
        guard other !== self else { return }
        state.withLock { state in
            guard state.phase == .new, !state.dependencies.contains(other) else { return }
            state.dependencies.append(other, condition)
        }
    }

    /// Adds dependencies on all of these, except for those it already has. Takes linear time.
    final func wait(
        forAll others: [AnyOperationHandle],
        _ condition: DependencyCondition = .unlessFailed
    ) {
        state.withLock { state in
            guard state.phase == .new else { return }
            state.dependencies.append(new: others.filter { $0 !== self }, condition)
        }
    }

    // MARK: - Identity

    /// The name that is shown to people: the name it was given, or its kind and a number that is
    /// chosen when it is added.
    public var name: String {
        let kind = kind
        return state.withLock { state in
            if let label = state.extra?.label { return label }
            return state.phase == .new ? kind : "\(kind)~\(state.number)"
        }
    }

    /// Identifies the operation in its cluster, for any program; `nil` until it has been added.
    public var id: OperationID? {
        state.withLock { state in
            switch state.phase {
            case .submitted: state.id
            case .finished: state.queue == nil ? nil : state.id
            case .new, .submitting, .local: nil
            }
        }
    }

    /// The queue it was added to; `nil` until then.
    public var queue: OperationQueue? { state.withLock { $0.queue } }

    /// How the operation is run. Changes have an effect only until it is added.
    public var options: OperationOptions {
        get { state.withLock { $0.extra?.options ?? OperationOptions() } }
        set {
            state.withLock { state in
                guard state.phase == .new else { return }
                let extra = state.extra ?? Extra()
                extra.options = newValue
                extra.label = newValue.name
                state.extra = extra
            }
        }
    }

    // MARK: - Completion

    /// Called once with the outcome of the operation, whatever it is; called at once if the
    /// operation has finished already.
    ///
    /// It exists for code that comes from Foundation, and is lost when this program ends. Work that
    /// must happen belongs in an operation that depends on this one. No order is promised among the
    /// completion block, waiting tasks and dependents. Only the block that was set last is called.
    public var completionBlock: CompletionBlock? {
        get { state.withLock { $0.extra?.completion } }
        set {
            let outcome: Outcome? = state.withLock { state in
                if state.phase == .finished { return state.ending?.outcome ?? .succeeded }
                if newValue == nil, state.extra == nil { return nil }
                let extra = state.extra ?? Extra()
                extra.completion = newValue
                state.extra = extra
                return nil
            }
            if let outcome { newValue?(outcome) }
        }
    }

    /// Sets the outcome. A second call has no effect.
    func finish(_ outcome: Outcome, output: Payload?) {
        typealias Ended = (
            latch: Latch?, block: CompletionBlock?, stop: (@Sendable () -> Void)?,
            queue: OperationQueue?, isCounted: Bool
        )
        let ended: Ended? =
            state.withLock { state in
                guard state.phase != .finished else { return nil }
                state.phase = .finished
                if case .cancelled = outcome { state.isCancelled = true }
                if outcome != .succeeded || output?.isEmpty != true {
                    state.ending = Ending(outcome, output: output)
                }
                let extra = state.extra
                let ended = (
                    extra?.latch, extra?.completion, extra?.stop, state.queue, state.isCounted
                )
                extra?.completion = nil
                extra?.latch = nil
                extra?.options = nil
                extra?.stop = nil
                if extra?.isEmpty == true { state.extra = nil }
                return ended
            }
        guard let ended else { return }
        ended.latch?.open()
        ended.stop?()
        ended.block?(outcome)
        if ended.isCounted { ended.queue?.finished(self) }
    }

    /// The outcome, if this program knows it. Never asks the coordinator.
    public var outcomeIfKnown: Outcome? {
        state.withLock { state in
            state.phase == .finished ? state.ending?.outcome ?? .succeeded : nil
        }
    }

    /// Waits until the operation has finished and returns its outcome.
    ///
    /// - Throws: `CancellationError` if the calling task is cancelled. ``OperonError`` with the
    ///   code `closed` if the cluster was closed first, `notFound` if the operation finished
    ///   without this program learning of it and was dropped since, or `invalid` if it was never
    ///   added to a queue. If adding it failed, the error it failed with.
    @discardableResult
    public func finalOutcome() async throws -> Outcome {
        let first: Latch? = try state.withLock { state in
            switch state.phase {
            case .finished: return nil
            case .new:
                throw OperonError(.invalid, "“\(kind)” was not added to a queue.")
            case .submitting, .submitted, .local: return state.endLatch
            }
        }
        var next = first
        while let latch = next {
            await latch.wait()
            if let outcome = outcomeIfKnown { return outcome }
            try Task.checkCancellation()
            let name = name
            next = try state.withLock { state in
                switch state.phase {
                case .finished: return nil
                // It was refused and is being added again.
                case .submitting: return state.endLatch
                case .new, .submitted, .local:
                    if let error = state.extra?.refusal ?? state.extra?.abandoned { throw error }
                    let why = "The cluster was closed before “\(name)” had ended."
                    throw OperonError(.closed, why)
                }
            }
        }
        return outcomeIfKnown ?? .succeeded
    }

    /// Tells present and future waiting tasks that the outcome will never be known, and asks a run
    /// in this program to stop.
    ///
    /// - Parameter why: The error thrown to waiting tasks; `nil`: the cluster was closed.
    func abandon(_ why: OperonError?) {
        let (latch, stop) = state.withLock { state in
            guard state.phase != .finished else {
                return (Latch?.none, (@Sendable () -> Void)?.none)
            }
            // The open latch stays there, so that later waiting tasks return at once.
            let latch = state.endLatch
            state.extra?.abandoned = why
            return (latch, state.extra?.stop)
        }
        latch?.open()
        stop?()
    }

    /// Waits until the operation has finished, whatever its outcome: ``finalOutcome()`` returns it.
    public func waitUntilFinished() async throws { _ = try await finalOutcome() }
}

extension AnyOperationHandle.State {
    /// Opens when the operation has finished, or when its outcome can no longer be learned.
    fileprivate var endLatch: Latch {
        mutating get {
            let extra = extra ?? AnyOperationHandle.Extra()
            let latch = extra.latch ?? Latch()
            extra.latch = latch
            self.extra = extra
            return latch
        }
    }
}
