internal import OperonModel
internal import OperonPorts
internal import Synchronization

// Questions and commands to the coordinator about one operation.
extension AnyOperationHandle {
    // MARK: - State

    /// The state of the operation when the coordinator answered; it may have changed since. An
    /// operation that has not been added is `pending` if it has dependencies, otherwise `ready`.
    ///
    /// - Throws: ``OperonError`` if the request to the coordinator fails or the operation was
    ///   dropped.
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

    /// Whether no dependency holds the operation back. Also true while it runs, after it has
    /// finished, and if it was cancelled.
    public var isReady: Bool {
        get async throws {
            if state.withLock({ $0.isCancelled }) { return true }
            return try await operationState != .pending
        }
    }

    /// Whether the operation is running. It may never become true for an operation that finishes
    /// within a second, unless somebody follows its ``events``.
    public var isExecuting: Bool {
        get async throws { try await operationState == .executing }
    }

    /// Whether the operation has finished: it succeeded, failed, was cancelled or was skipped.
    public var isFinished: Bool {
        get async throws { try await operationState == .finished }
    }

    /// Whether the operation was cancelled before it had finished. Stays true.
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

    /// Cancels the operation: asks it to stop, or not to start.
    ///
    /// An operation that has not started is cancelled when this returns, whatever it waits for and
    /// even if its queue is suspended; its dependents are released. A running operation is asked to
    /// stop (``OperationContext/isCancelled``) and ends when its code ends. A finished operation
    /// stays as it is. An operation that has not been added yet ends without running as soon as it
    /// is added.
    ///
    /// - Parameters:
    ///   - reason: Text for people, of at most 4,096 bytes; becomes a part of the outcome.
    ///   - cascade: Whether its dependents are cancelled, too.
    /// - Throws: ``OperonError`` if the request to the coordinator fails.
    public func cancel(reason: String = "", cascade: Bool = false) async throws {
        // The group before its parts: once all its parts have ended, a group succeeds.
        try await cancelItself(reason: reason, cascade: cascade)
        try await cancelParts(reason: reason)
    }

    private func cancelItself(reason: String, cascade: Bool) async throws {
        var stop: (@Sendable () -> Void)?
        let isAdded = state.withLock { state in
            guard state.phase != .finished else { return false }
            // For an operation that was added, the coordinator decides: it may have finished.
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
            // Adding it was refused, so it counts as not added yet.
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

    /// Waits until the operation is no longer being added.
    func untilAdded() async throws {
        guard state.withLock({ $0.phase == .submitting }), let queue else { return }
        // Additions are sent in order, so this one ends after that of the operation.
        try await queue.cluster.session().enqueue([], in: queue).wait()
    }

    // MARK: - Dependencies

    /// Makes this operation wait for another one. When this returns the dependency exists; if it
    /// throws a `Refusal`, it does not.
    ///
    /// - Parameters:
    ///   - other: An operation of any queue of the same cluster. It must be added before this one,
    ///     or together with it.
    ///   - condition: The outcomes of `other` that release this operation; other outcomes skip it.
    ///     Until this operation is added, adding the same dependency again replaces the condition.
    /// - Throws: `Refusal.dependencyCycle`, `.alreadyStarted` or `.alreadyFinished`;
    ///   ``OperonError`` if the request to the coordinator fails.
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

    /// Removes a dependency. If it was the last one that this operation waited for, the operation
    /// becomes ready. Nothing changes if there is no such dependency; `other` may then be in no
    /// queue or in another cluster.
    ///
    /// - Throws: `Refusal.alreadyStarted` or `.alreadyFinished`; ``OperonError`` if the request to
    ///   the coordinator fails.
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
        // It cannot depend on an operation that its coordinator does not have.
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
            // The coordinator's error names the operation with its graph.
            throw Refusal.alreadyStarted(name: name)
        } catch Refusal.alreadyFinished {
            throw Refusal.alreadyFinished(name: name)
        }
    }

    /// The direct dependencies in the order in which they were added, including finished ones.
    ///
    /// - Throws: ``OperonError`` if the request to the coordinator fails.
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

    /// How long an error waits for the coordinator to name the cause.
    private static let namePatience = Duration.seconds(2)

    /// Why there is no value, with the name of the cause if the coordinator still has it, and
    /// answers soon.
    func skipped(for cause: OperationID) async -> OperationSkipped {
        let name = try? await withThrowingTaskGroup(of: String?.self) { group in
            group.addTask { try await self.dependencies.first { $0.id == cause }?.name }
            group.addTask {
                try await Task.sleep(for: Self.namePatience)
                return nil
            }
            defer { group.cancelAll() }
            return try await group.next() ?? nil
        }
        return OperationSkipped(cause: cause, causeName: name)
    }

    // MARK: - Priority

    /// The priority of the operation among the ready operations of its queue.
    ///
    /// - Throws: ``OperonError`` if the request to the coordinator fails.
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

    /// Changes the priority among the ready operations of its queue.
    ///
    /// - Throws: `Refusal.alreadyStarted` or `.alreadyFinished`; ``OperonError`` if the request to
    ///   the coordinator fails.
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

/// An operation that another one waits for, or has waited for.
public struct OperationDependency: Hashable, Sendable {
    /// `nil` if it has not been added to a queue yet.
    public let id: OperationID?
    /// The name that is shown to people.
    public let name: String
    /// The outcomes that release the dependent.
    public let condition: DependencyCondition
}
