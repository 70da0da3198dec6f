internal import OperonModel
internal import OperonPorts
internal import Synchronization

// What the coordinator is asked about an operation, or told.
extension AnyOperationHandle {
    // MARK: - State

    /// Where it is in its life, by the coordinator's word: true when it was said. One that was not
    /// added is `pending` if it depends on others, else `ready`.
    ///
    /// - Throws: ``OperonError``, if the coordinator cannot be asked or has forgotten it.
    public var operationState: OperationState {
        get async throws {
            let known: OperationState? = state.withLock { state in
                switch state.phase {
                case .new, .submitting:
                    state.dependencies.isEmpty ? .ready : .pending
                case .local: .executing
                case .finished: .finished
                case .submitted: nil
                }
            }
            if let known { return known }
            return try await detail().operation.state
        }
    }

    /// Whether nothing that it depends on is in its way: true of one that runs or has ended, too,
    /// and of one that was cancelled.
    public var isReady: Bool {
        get async throws {
            if state.withLock({ $0.isCancelled }) { return true }
            return try await operationState != .pending
        }
    }

    /// Whether it runs. Of one that ends within a second the coordinator may never say so, unless
    /// somebody follows its ``events``.
    public var isExecuting: Bool {
        get async throws { try await operationState == .executing }
    }

    /// Whether it has its outcome: it succeeded, failed, was cancelled or skipped.
    public var isFinished: Bool {
        get async throws { try await operationState == .finished }
    }

    /// Whether it was asked to stop, or never to start, before it had ended; stays true.
    public var isCancelled: Bool {
        get async throws {
            let (phase, isCancelled) = state.withLock { ($0.phase, $0.isCancelled) }
            if isCancelled || phase != .submitted && phase != .finished { return isCancelled }
            if state.withLock({ $0.queue }) == nil { return false }
            let operation = try await detail().operation
            return operation.isCancelRequested || operation.outcome == .cancelled
        }
    }

    func detail() async throws -> OperationDetail {
        guard let queue, let id else {
            throw OperonError(.invalid, "“\(name)” was not added to a queue.")
        }
        let selector = OperationSelector(id)
        return try await queue.cluster.ask { try await $0.operation(selector) }
    }

    // MARK: - Cancelling

    /// Asks it to stop, or never to start.
    ///
    /// What waits is cancelled when this returns, whatever it waits for, in a suspended queue too,
    /// and lets its dependents go on. What runs is asked to stop and ends when it ends:
    /// ``OperationContext/isCancelled``. What has ended stays as it is. One that was not added yet
    /// ends as soon as it is, without having run.
    ///
    /// - Parameters:
    ///   - reason: For people; a part of the outcome.
    ///   - cascade: Cancels what depends on it, too.
    /// - Throws: ``OperonError``, if the coordinator cannot be asked.
    public func cancel(reason: String = "", cascade: Bool = false) async throws {
        // Itself first: a group whose parts have all ended has succeeded.
        try await cancelItself(reason: reason, cascade: cascade)
        try await cancelParts(reason: reason)
    }

    private func cancelItself(reason: String, cascade: Bool) async throws {
        var stop: (@Sendable () -> Void)?
        let isAdded = state.withLock { state in
            guard state.phase != .finished else { return false }
            // Of one that was added, what the coordinator says counts: it may have ended.
            guard state.phase == .new || state.phase == .local else { return true }
            guard !state.isCancelled else { return false }
            state.isCancelled = true
            if !reason.isEmpty {
                let extra = state.extra ?? Extra()
                extra.cancelReason = reason
                state.extra = extra
            }
            stop = state.extra?.stop
            return false
        }
        stop?()
        guard isAdded else { return }
        try await untilAdded()
        guard let queue, let id else {
            // It was refused: then it is as one that was not added yet.
            return try await cancelItself(reason: reason, cascade: cascade)
        }
        var request = CancelRequest()
        request.reason = reason
        request.cascade = cascade
        let sent = request
        do {
            _ = try await queue.cluster.ask {
                try await $0.cancel(.operation(OperationSelector(id)), sent)
            }
        } catch Refusal.alreadyFinished {
            return
        }
        state.withLock { state in
            if state.phase == .submitted { state.isCancelled = true }
        }
    }

    /// Returns when it is not on its way any more.
    func untilAdded() async throws {
        guard state.withLock({ $0.phase == .submitting }), let queue else { return }
        // What is added later is there later.
        try await queue.cluster.session().enqueue([], in: queue).wait()
    }

    // MARK: - Dependencies

    /// It waits for another one. Done, or refused: never “maybe”.
    ///
    /// - Parameters:
    ///   - other: An operation of the same cluster, of any queue. It has to be added before this
    ///     one, or together with it.
    ///   - condition: By which of its outcomes it lets this one go; by others it skips it. Asked
    ///     for again with another condition, the later counts for one that was not added yet.
    /// - Throws: `Refusal.dependencyCycle`, `.alreadyStarted`, `.alreadyFinished`; ``OperonError``,
    ///   if the coordinator cannot be asked.
    public func addDependency(
        _ other: AnyOperationHandle,
        when condition: DependencyCondition = .unlessFailed
    ) async throws {
        guard other !== self else { throw Refusal.dependencyCycle(path: [name, name]) }
        let isNew = state.withLock { state in
            guard state.phase == .new else { return false }
            state.dependencies.remove(other)
            state.dependencies.append(other, condition)
            return true
        }
        if isNew { return }
        try await untilAdded()
        let (id, otherID) = try pair(other)
        _ = try await asked {
            try await $0.addDependency(
                of: OperationSelector(id),
                on: OperationSelector(otherID),
                condition
            )
        }
    }

    /// It waits for another one no more; if that was the last it waited for, it is ready. Nothing
    /// changes if it did not wait for the other one, which may be in no queue or in another
    /// cluster.
    ///
    /// - Throws: `Refusal.alreadyStarted`, `.alreadyFinished`; ``OperonError``, if the coordinator
    ///   cannot be asked.
    public func removeDependency(_ other: AnyOperationHandle) async throws {
        let isNew = state.withLock { state in
            guard state.phase == .new else { return false }
            state.dependencies.remove(other)
            return true
        }
        if isNew { return }
        try await untilAdded()
        guard let id, let queue else {
            throw OperonError(.invalid, "“\(name)” belongs to no queue.")
        }
        // It cannot wait for what its coordinator does not have.
        guard let otherID = other.id, other.queue?.cluster === queue.cluster else { return }
        do {
            _ = try await asked {
                try await $0.removeDependency(
                    of: OperationSelector(id),
                    on: OperationSelector(otherID)
                )
            }
        } catch let error as OperonError where error.code == .notFound {
            return
        }
    }

    private func pair(_ other: AnyOperationHandle) throws -> (OperationID, OperationID) {
        guard let id, let queue else {
            throw OperonError(.invalid, "“\(name)” belongs to no queue.")
        }
        guard let otherID = other.id, other.queue?.cluster === queue.cluster else {
            throw Refusal.unknownOperation(name: other.name, namedBy: name)
        }
        return (id, otherID)
    }

    private func asked<Answer: Sendable>(
        _ question: (any CoordinatorClient) async throws -> Answer
    ) async throws -> Answer {
        guard let queue else { throw OperonError(.invalid, "“\(name)” belongs to no queue.") }
        do {
            return try await queue.cluster.ask(question)
        } catch Refusal.alreadyStarted {
            // The coordinator names it with its graph.
            throw Refusal.alreadyStarted(name: name)
        } catch Refusal.alreadyFinished {
            throw Refusal.alreadyFinished(name: name)
        }
    }

    /// What it depends on directly, in the order of adding, whether or not that has ended.
    ///
    /// - Throws: ``OperonError``, if the coordinator cannot be asked.
    public var dependencies: [OperationDependency] {
        get async throws {
            let known: [DraftDependencies.Element]? = state.withLock { state in
                switch state.phase {
                case .new, .submitting, .local: state.dependencies.all
                case .submitted: nil
                case .finished: state.queue == nil ? [] : nil
                }
            }
            if let known {
                return known.map {
                    OperationDependency(
                        id: $0.handle.id,
                        name: $0.handle.name,
                        condition: $0.condition
                    )
                }
            }
            return try await detail().dependencies.map { dependency in
                let operation = dependency.operation
                let graph = GraphID(rawValue: operation.graph)
                return OperationDependency(
                    id: OperationID(graph: graph, index: operation.index),
                    name: operation.name,
                    condition: dependency.condition
                )
            }
        }
    }

    // MARK: - Priority

    /// The order in which it starts among ready operations of its queue.
    ///
    /// - Throws: ``OperonError``, if the coordinator cannot be asked.
    public var queuePriority: QueuePriority {
        get async throws {
            let known: QueuePriority? = state.withLock { state in
                guard state.phase == .new || state.phase == .local else { return nil }
                return state.extra?.options?.queuePriority ?? .normal
            }
            if let known { return known }
            try await untilAdded()
            guard id != nil else { return .normal }
            return try await detail().operation.priority
        }
    }

    /// Another place among ready operations of its queue. Without effect on what runs.
    ///
    /// - Throws: `Refusal.alreadyStarted` or `.alreadyFinished`; ``OperonError``, if the
    ///   coordinator cannot be asked.
    public func setQueuePriority(_ priority: QueuePriority) async throws {
        let isNew = state.withLock { state in
            guard state.phase == .new else { return false }
            let extra = state.extra ?? Extra()
            var options = extra.options ?? OperationOptions()
            options.queuePriority = priority
            extra.options = options
            state.extra = extra
            return true
        }
        if isNew { return }
        try await untilAdded()
        guard let id else { return }
        _ = try await asked {
            try await $0.setPriority(of: OperationSelector(id), to: priority)
        }
    }
}

/// What an operation waits for, or has waited for.
public struct OperationDependency: Hashable, Sendable {
    /// `nil`: it was not added to a queue yet.
    public let id: OperationID?
    /// What people call it.
    public let name: String
    /// By which of its outcomes it lets the other one go.
    public let condition: DependencyCondition
}
