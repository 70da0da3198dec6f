internal import OperonPorts
internal import OperonRuntime
internal import Synchronization

/// An operation that was added to a queue, or will be: its identity and its state, whatever its
/// type. ``OperationHandle`` knows the type as well.
///
/// What an operation does is a value; the handle is what can be cancelled, waited for and depended
/// on. A handle stands for one operation and is added once. It may be let go: what was added runs
/// on.
///
/// `@unchecked Sendable`: classes that others inherit from cannot be checked; the only subclass
/// adds a constant, and everything that varies is behind a lock.
public class AnyOperationHandle: @unchecked Sendable {
    let state: Mutex<State>

    struct State {
        var phase = Phase.new
        var isCancelled = false
        /// Its queue counts it: it was added by it.
        var isCounted = false
        /// Where there is no label, what tells it from others of its kind.
        var number: UInt32 = 0
        /// Once it is submitted.
        var id = OperationID(graph: GraphID(rawValue: 0), index: 0)
        /// `nil`: none yet, or a plain success.
        var ending: Ending?
        /// Only while there is something to keep there, so that a million waiting operations take
        /// little.
        var extra: Extra?
        var dependencies = DraftDependencies.none
        var queue: OperationQueue?
    }

    enum Phase: UInt8 {
        /// In no queue.
        case new
        /// On its way to the coordinator.
        case submitting
        /// The coordinator has it.
        case submitted
        /// It runs, or has run, outside of any queue.
        case local
        case finished
    }

    /// What is kept of one beside the commonest.
    final class Extra {
        var options: OperationOptions?
        var label: String?
        /// What its queue lets it wait for, for the sake of order: see `Addition`.
        var order: [AnyOperationHandle] = []
        /// What its conditions brought.
        var brought: [AnyOperationHandle]?
        var cancelReason = ""
        var latch: Latch?
        /// Why nothing will be heard of it any more.
        var abandoned: OperonError?
        /// Why it was not added, for those who waited for it meanwhile.
        var refusal: (any Error)?
        var completion: CompletionBlock?
        /// Asks it to stop, if it runs in this program.
        var stop: (@Sendable () -> Void)?
        /// Which of its attempts that is.
        var attempt: AttemptID?

        var isEmpty: Bool {
            options == nil && label == nil && latch == nil && completion == nil && stop == nil
                && cancelReason.isEmpty && order.isEmpty && brought == nil
                && abandoned == nil && refusal == nil
        }
    }

    /// How it ended, where that is more than “succeeded”.
    final class Ending: Sendable {
        let outcome: Outcome
        /// `nil`: to be asked for.
        let output: Payload?

        init(_ outcome: Outcome, output: Payload?) {
            self.outcome = outcome
            self.output = output
        }
    }

    /// Told how the operation ended.
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

    /// Of an operation that a coordinator has.
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
        // Handles that wait for one another and were never added would let each other go one
        // inside the other, as deep as their chain is long.
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

    /// The name of its kind.
    public var kind: String { preconditionFailure("a subclass knows its kind") }

    /// What is to be done.
    func work() throws -> Work { preconditionFailure("a subclass knows its work") }

    /// The type that a worker in this process needs to know to run it; `nil`: none.
    var registeredType: ObjectIdentifier? { nil }

    /// That type, made known.
    func register(_ register: (OperationKind) -> Void) {}

    /// What is added with it, itself included. Not asked before it is to be added.
    var members: [AnyOperationHandle] { [self] }

    /// Whether what it waits for is cancelled once it will be skipped.
    var cancelsSiblings: Bool { false }

    /// Whether this program runs it, and no worker.
    var runsHere: Bool { false }

    /// Runs it in this program; `nil`: that is not where it belongs.
    func run(_ context: OperationContext) async -> Completion? { nil }

    /// What belongs to it, when it is cancelled.
    func cancelParts(reason: String) async throws {}

    /// What it waits for, before it is added.
    final var draftDependencies: [DraftDependencies.Element] {
        state.withLock { state in state.phase == .new ? state.dependencies.all : [] }
    }

    /// It waits for another one, unless it does or was added before.
    final func wait(for other: AnyOperationHandle, _ condition: DependencyCondition) {
        guard other !== self else { return }
        state.withLock { state in
            guard state.phase == .new, !state.dependencies.contains(other) else { return }
            state.dependencies.append(other, condition)
        }
    }

    /// It waits for all of these, those apart that it waits for already. Linear, however many.
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

    /// What people call it: the name it was given, else its kind and a number that is chosen when
    /// it is added.
    public var name: String {
        let kind = kind
        return state.withLock { state in
            if let label = state.extra?.label { return label }
            return state.phase == .new ? kind : "\(kind)~\(state.number)"
        }
    }

    /// What it is known by in its cluster, from any program; `nil` until it was added.
    public var id: OperationID? {
        state.withLock { state in
            switch state.phase {
            case .submitted: state.id
            case .finished: state.queue == nil ? nil : state.id
            case .new, .submitting, .local: nil
            }
        }
    }

    /// The queue it was added to; `nil`: none yet.
    public var queue: OperationQueue? { state.withLock { $0.queue } }

    /// How it is to be run. Changes count until it is added.
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

    /// Called once when the operation has its outcome, whatever that is; at once if it has.
    ///
    /// It is kept for code that comes from Foundation: it is lost with this program. What must
    /// happen is an operation that depends on this one. No order is promised among it, those that
    /// wait and dependents. Set again, only the last one counts.
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

    /// It has its outcome. A second one changes nothing.
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

    /// How it ended, if that is known here; never asks anybody.
    public var outcomeIfKnown: Outcome? {
        state.withLock { state in
            state.phase == .finished ? state.ending?.outcome ?? .succeeded : nil
        }
    }

    /// Returns when the operation has its outcome.
    ///
    /// - Throws: `CancellationError` if the calling task is cancelled, ``OperonError`` with the
    ///   code `closed` if the cluster was closed before, `notFound` if it ended unheard and is not
    ///   kept any more, or `invalid` for an operation that is in no queue: it would be waited for
    ///   in vain; what was against its being added, if it was on its way.
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
                // It was refused, and is on its way again.
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

    /// Whoever waits for it waits in vain, now and later; what runs of it here is asked to stop.
    ///
    /// - Parameter why: What those are told; `nil`: the cluster was closed.
    func abandon(_ why: OperonError?) {
        let (latch, stop) = state.withLock { state in
            guard state.phase != .finished else {
                return (Latch?.none, (@Sendable () -> Void)?.none)
            }
            // Left there, open: it says so to those who come later.
            let latch = state.endLatch
            state.extra?.abandoned = why
            return (latch, state.extra?.stop)
        }
        latch?.open()
        stop?()
    }

    /// Returns when the operation has its outcome, whatever that is: ``finalOutcome()`` says which.
    public func waitUntilFinished() async throws { _ = try await finalOutcome() }
}

extension AnyOperationHandle.State {
    /// Opens when it has its outcome, or will have none that is heard of.
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
