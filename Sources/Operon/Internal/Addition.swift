internal import OperonCore
internal import OperonModel
internal import OperonPorts
internal import OperonRuntime
internal import Synchronization

/// Operations on their way to the coordinator: all of them are added, or none.
final class Addition: Sendable {
    let handles: [AnyOperationHandle]
    let queue: OperationQueue
    /// As they are sent, but for their names and dependencies.
    let operations: [OperationDescription]
    /// Of each.
    let dependencies: [DraftDependencies]
    /// Of each: what it waits for, however that ends, because its queue wants it so. One that was
    /// refused itself is passed over, for what it was to wait for.
    let orders: [[AnyOperationHandle]]
    private let undo: @Sendable () -> Void
    private let chosen = Mutex<(graph: GraphID?, names: [String])?>(nil)
    private let firstNumber: UInt32
    private let ended = Latch()
    private let error = Mutex<(any Error)?>(nil)

    /// Takes the handles: each may be added once.
    ///
    /// - Parameter undo: called if nothing is added.
    /// - Throws: `Refusal.alreadySubmitted`, or `OperonError` for an input that cannot be encoded.
    ///   Then the handles are as they were, and `undo` was not called.
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
                // Counts the ones that have begun, should the next line throw.
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

    /// A coordinator elsewhere refuses the message, which may hold others that are sound.
    private static func check(_ work: Work) throws(Refusal) {
        try LimitName.payloadBytes.check(work.byteCount, Limits().payloadBytes)
    }

    /// What was cancelled before is never ready before the coordinator knows.
    private static let untilCancelled = Duration.seconds(365 * 86_400)

    func number(at place: Int) -> UInt32 { firstNumber &+ UInt32(truncatingIfNeeded: place) }

    /// Whoever waits for it has been told how it went.
    var isOver: Bool { ended.isOpen }

    /// It is done, or not: then the handles are as they were, unless they are added all the same.
    /// Only the first call counts.
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

    /// Their names in a graph: chosen once for each graph.
    func names(in graph: GraphID?, choose: () -> [String]) -> [String] {
        if let known = chosen.withLock({ $0 }), known.graph == graph { return known.names }
        let names = choose()
        chosen.withLock { $0 = (graph, names) }
        return names
    }

    /// Those that were chosen.
    var chosenNames: [String] { chosen.withLock { $0?.names } ?? [] }

    /// Returns when the coordinator has them for good. They are added all the same if the calling
    /// task is cancelled meanwhile.
    ///
    /// - Throws: what was against it, or `CancellationError`.
    func wait() async throws {
        await ended.wait()
        if let error = error.withLock({ $0 }) { throw error }
        if !ended.isOpen { throw CancellationError() }
    }
}

// What happens to a handle on the way.
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

    /// It is as it was before it was to be added. Whoever waits for it already is told.
    fileprivate func undoBegin(because error: any Error) {
        let latch: Latch? = state.withLock { state in
            guard state.phase == .submitting else { return nil }
            state.phase = .new
            state.queue = nil
            guard let extra = state.extra else { return nil }
            // The name that it had in a graph, if it was given one, is nobody's again.
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
            // The coordinator has them now.
            state.dependencies = .none
            let extra = state.extra
            extra?.order = []
            extra?.brought = nil
            extra?.options = nil
            if extra?.isEmpty == true { state.extra = nil }
        }
    }

    /// For the sake of order: replaces what was said before.
    func setOrder(_ others: [AnyOperationHandle]) {
        state.withLock { state in
            guard state.phase == .new, !(others.isEmpty && state.extra == nil) else { return }
            let extra = state.extra ?? Extra()
            extra.order = others
            state.extra = extra
        }
    }

    /// What has to be waited for in the place of one that was refused; `nil`: it was not.
    var substitutes: [AnyOperationHandle]? {
        state.withLock { state in state.phase == .new ? state.extra?.order ?? [] : nil }
    }

    var hasLabel: Bool { state.withLock { $0.extra?.label != nil } }

    func relabel(_ name: String) { state.withLock { $0.extra?.label = name } }

    /// What an operation that is about to be added depends on this one by.
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
            // With its number: of what was dropped the coordinator has no name any more. Without
            // its name where that is almost as long as one may be.
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

    /// Cancelled before it was added.
    var wasCancelledEarly: Bool {
        state.withLock { $0.isCancelled && $0.phase == .submitted }
    }

    /// What the coordinator is told of one that was cancelled before it was added. One that has
    /// ended meanwhile stays as it is.
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
