internal import OperonCore
internal import OperonModel
internal import OperonPorts
internal import OperonRuntime
internal import Synchronization

/// Operations that are being sent to the coordinator. All of them are added, or none.
final class Addition: Sendable {
    let handles: [AnyOperationHandle]
    let queue: OperationQueue
    /// The descriptions to send, still without names and dependencies.
    let operations: [OperationDescription]
    /// The dependencies of each operation.
    let dependencies: [DraftDependencies]
    /// For each operation, the operations that its queue makes it wait for, whatever their
    /// outcomes. A refused one is replaced by the operations that it was to wait for.
    let orders: [[AnyOperationHandle]]
    private let undo: @Sendable () -> Void
    private let chosen = Mutex<(graph: GraphID?, names: [String])?>(nil)
    private let firstNumber: UInt32
    private let ended = Latch()
    private let error = Mutex<(any Error)?>(nil)

    /// Takes the handles. Each handle can be added once.
    ///
    /// - Parameter undo: Called if nothing is added.
    /// - Throws: `Refusal.alreadySubmitted`, or `OperonError` for an input that cannot be encoded.
    ///   In these cases the handles are unchanged and `undo` is not called.
    init(
        _ handles: [AnyOperationHandle],
        in queue: OperationQueue,
        firstNumber: UInt32,
        _ session: Session,
        undo: @escaping @Sendable () -> Void
    ) throws {
        var operations: [OperationDescription] = []
        var dependencies: [DraftDependencies] = []
        var orders: [[AnyOperationHandle]] = []
        var registered: ObjectIdentifier?
        operations.reserveCapacity(handles.count)
        dependencies.reserveCapacity(handles.count)
        do {
            for (place, handle) in handles.enumerated() {
                let number = firstNumber &+ UInt32(truncatingIfNeeded: place)
                let draft = try handle.begin(in: queue, number: number)
                // Counts the handles that have begun, in case the next line throws.
                dependencies.append(draft.dependencies)
                orders.append(draft.order)
                let work = try handle.work()
                try Self.check(work)
                var operation = OperationDescription(name: "", work: work)
                operation.queue = queue.name
                operation.cancelSiblings = handle.cancelsSiblings
                draft.options.apply(
                    to: &operation,
                    qualityOfService: queue.qualityOfService
                )
                try session.backend.check(operation, named: handle.name)
                if draft.isCancelled { operation.delay = Self.untilCancelled }
                operations.append(operation)
                if let type = handle.registeredType, type != registered {
                    try session.note(type, as: handle.kind)
                    handle.register { session.backend.register($0) }
                    registered = type
                }
            }
        } catch {
            for handle in handles.prefix(dependencies.count) { handle.undoBegin(because: error) }
            throw error
        }
        self.handles = handles
        self.queue = queue
        self.operations = operations
        self.dependencies = dependencies
        self.orders = orders
        self.undo = undo
        self.firstNumber = firstNumber
    }

    /// Checked here, because a remote coordinator would refuse the whole message, which may contain
    /// valid operations.
    private static func check(_ work: Work) throws(Refusal) {
        try LimitName.payloadBytes.check(work.byteCount, Limits().payloadBytes)
    }

    /// The delay of operations that were cancelled before they were added: they must not become
    /// ready before the coordinator knows of the cancel.
    private static let untilCancelled = Duration.seconds(365 * 86_400)

    func number(at place: Int) -> UInt32 { firstNumber &+ UInt32(truncatingIfNeeded: place) }

    /// Whether `wait()` has a result.
    var isOver: Bool { ended.isOpen }

    /// Ends the addition. If it failed, the handles return to their previous state, unless
    /// `isAdded` says that the operations exist all the same. Only the first call counts.
    func end(with error: (any Error)?, isAdded: Bool = false) {
        guard !ended.isOpen else { return }
        if let error, isAdded {
            self.error.withLock { $0 = error }
        } else if let error {
            self.error.withLock { $0 = error }
            for handle in handles { handle.undoBegin(because: error) }
            undo()
        }
        ended.open()
    }

    /// The names of the operations in a graph, chosen once per graph.
    func names(in graph: GraphID?, choose: () -> [String]) -> [String] {
        if let known = chosen.withLock({ $0 }), known.graph == graph { return known.names }
        let names = choose()
        chosen.withLock { $0 = (graph, names) }
        return names
    }

    /// The names that were chosen.
    var chosenNames: [String] { chosen.withLock { $0?.names } ?? [] }

    /// Waits until the coordinator has stored the operations. If the calling task is cancelled, the
    /// operations are added all the same.
    ///
    /// - Throws: The reason for which nothing was added, or `CancellationError`.
    func wait() async throws {
        await ended.wait()
        if let error = error.withLock({ $0 }) { throw error }
        if !ended.isOpen { throw CancellationError() }
    }
}

// Changes to a handle while it is being added.
extension AnyOperationHandle {
    struct Draft {
        var options: OperationOptions
        var dependencies: DraftDependencies
        var order: [AnyOperationHandle]
        var isCancelled: Bool
    }

    fileprivate func begin(in queue: OperationQueue, number: UInt32) throws -> Draft {
        let draft: Draft? = state.withLock { state in
            guard state.phase == .new else { return nil }
            state.phase = .submitting
            state.number = number
            state.queue = queue
            state.extra?.refusal = nil
            state.isCounted = true
            return Draft(
                options: state.extra?.options ?? OperationOptions(),
                dependencies: state.dependencies,
                order: state.extra?.order ?? [],
                isCancelled: state.isCancelled
            )
        }
        guard let draft else { throw Refusal.alreadySubmitted(name: name) }
        return draft
    }

    /// Restores the state before adding. Waiting tasks are notified.
    fileprivate func undoBegin(because error: any Error) {
        let latch: Latch? = state.withLock { state in
            guard state.phase == .submitting else { return nil }
            state.phase = .new
            state.queue = nil
            guard let extra = state.extra else { return nil }
            // The name that it was given in a graph, if any, is free again.
            if extra.label != nil { extra.label = extra.options?.name }
            defer { extra.latch = nil }
            extra.refusal = extra.latch == nil ? nil : error
            return extra.latch
        }
        latch?.open()
    }

    func submitted(as id: OperationID) {
        state.withLock { state in
            guard state.phase == .submitting else { return }
            state.phase = .submitted
            state.id = id
            // The coordinator has the dependencies now.
            state.dependencies = .none
            let extra = state.extra
            extra?.order = []
            extra?.brought = nil
            extra?.options = nil
            if extra?.isEmpty == true { state.extra = nil }
        }
    }

    /// Sets the operations to wait for to keep an order, in place of those set before.
    func setOrder(_ others: [AnyOperationHandle]) {
        state.withLock { state in
            guard state.phase == .new, !(others.isEmpty && state.extra == nil) else { return }
            let extra = state.extra ?? Extra()
            extra.order = others
            state.extra = extra
        }
    }

    /// The operations to wait for in its place if it was refused; `nil`: it was not refused.
    var substitutes: [AnyOperationHandle]? {
        state.withLock { state in state.phase == .new ? state.extra?.order ?? [] : nil }
    }

    var hasLabel: Bool { state.withLock { $0.extra?.label != nil } }

    func relabel(_ name: String) { state.withLock { $0.extra?.label = name } }

    /// The name by which an operation that is being added depends on this one.
    func nameAsDependency(
        of dependent: String,
        in graph: GraphID?,
        _ cluster: Cluster
    ) throws -> String {
        let (phase, id, queue) = state.withLock { ($0.phase, $0.id, $0.queue) }
        let name = name
        switch phase {
        case .submitting where queue?.cluster === cluster: return name
        case .submitted where queue?.cluster === cluster,
            .finished where queue?.cluster === cluster:
            guard id.graph != graph else { return name }
            // Includes the number, because the coordinator has no names for dropped operations.
            // Leaves out the name if the result would be too long for a name.
            let number = "\(id.graph)/\(id.index)"
            let both = number + "/" + name
            return both.utf8.count > Limits().nameBytes ? number : both
        case .new:
            throw Refusal.unknownOperation(name: name, namedBy: dependent)
        case .submitting, .submitted, .local, .finished:
            let why = "“\(name)” belongs to another cluster, or to none"
            throw Refusal.invalid(field: "dependencies of “\(dependent)”", why: why)
        }
    }

    /// Whether it was cancelled before it was added.
    var wasCancelledEarly: Bool {
        state.withLock { $0.isCancelled && $0.phase == .submitted }
    }

    /// The request that cancels an operation that was cancelled before it was added. An operation
    /// that has finished meanwhile stays as it is.
    var earlyCancel: @Sendable (any CoordinatorClient) async throws -> Void {
        let (id, reason) = state.withLock { ($0.id, $0.extra?.cancelReason ?? "") }
        var request = CancelRequest()
        request.reason = reason
        let sent = request
        return { client in
            do {
                _ = try await client.cancel(.operation(OperationSelector(id)), sent)
            } catch let error as ClientError {
                guard case .alreadyFinished = error.refusal else { throw error }
            }
        }
    }
}
