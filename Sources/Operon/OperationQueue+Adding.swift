internal import OperonModel
internal import OperonPorts
internal import Synchronization

// Every call returns when the coordinator has stored the operations.
extension OperationQueue {
    /// Adds an operation.
    ///
    /// - Parameters:
    ///   - operation: The operation to run.
    ///   - dependencies: The operations to wait for, from any queue of the cluster.
    ///   - priority: The priority among ready operations; `nil`: the priority in `options`.
    ///   - options: How the operation is run; `nil`: its own options.
    /// - Returns: A handle for awaiting, cancelling or depending on the operation.
    /// - Throws: `Refusal` if the coordinator refuses it, ``OperonError`` if it cannot be sent. In
    ///   these cases nothing was added, except that after `unreachable` and `timedOut` the result
    ///   is unknown.
    @discardableResult
    public func addOperation<Op: Operation>(
        _ operation: Op,
        priority: QueuePriority? = nil,
        after dependencies: [AnyOperationHandle] = [],
        options: OperationOptions? = nil
    ) async throws -> OperationHandle<Op> where Op.Output: Codable {
        let handle = OperationHandle(work: operation, options: options)
        try await add(handle, priority, dependencies)
        return handle
    }

    /// Adds an operation that returns nothing.
    ///
    /// - Parameters:
    ///   - operation: The operation to run.
    ///   - dependencies: The operations to wait for, from any queue of the cluster.
    ///   - priority: The priority among ready operations; `nil`: the priority in `options`.
    ///   - options: How the operation is run; `nil`: its own options.
    /// - Returns: A handle for awaiting, cancelling or depending on the operation.
    /// - Throws: `Refusal` if the coordinator refuses it, ``OperonError`` if it cannot be sent. In
    ///   these cases nothing was added, except that after `unreachable` and `timedOut` the result
    ///   is unknown.
    @_disfavoredOverload
    @discardableResult
    public func addOperation<Op: Operation>(
        _ operation: Op,
        priority: QueuePriority? = nil,
        after dependencies: [AnyOperationHandle] = [],
        options: OperationOptions? = nil
    ) async throws -> OperationHandle<Op> where Op.Output == Void {
        let handle = OperationHandle(work: operation, options: options)
        try await add(handle, priority, dependencies)
        return handle
    }

    private func add(
        _ handle: AnyOperationHandle,
        _ priority: QueuePriority?,
        _ dependencies: [AnyOperationHandle]
    ) async throws {
        if let priority { handle.options.queuePriority = priority }
        for other in dependencies { try await handle.addDependency(other) }
        try await addOperations([handle])
    }

    /// Adds the operation of a handle. A handle can be added once.
    ///
    /// - Throws: `Refusal.alreadySubmitted` if it is or was in a queue; another `Refusal` if the
    ///   coordinator refuses it; ``OperonError`` if it cannot be sent. In these cases nothing was
    ///   added, except that after `unreachable` and `timedOut` the result is unknown.
    public func addOperation(_ handle: AnyOperationHandle) async throws {
        try await addOperations([handle])
    }

    /// Adds operations, all of them or none. They may depend on one another in any order.
    ///
    /// - Parameters:
    ///   - handles: The handles to add. Each must be in no queue yet, and appear once.
    ///   - waitUntilFinished: Whether to return only when all of them have finished.
    /// - Throws: `Refusal` if the coordinator refuses any of them, ``OperonError`` if they cannot
    ///   be sent. In these cases nothing was added, except that after `unreachable` and `timedOut`
    ///   the result is unknown.
    public func addOperations(
        _ handles: [AnyOperationHandle],
        waitUntilFinished: Bool = false
    ) async throws {
        guard !handles.isEmpty else { return }
        let session = try await cluster.session()
        try await prepare()
        try await enqueue(handles, session).wait()
        guard waitUntilFinished else { return }
        for handle in handles { try await handle.waitUntilFinished() }
    }

    /// Queues the handles for sending, and makes them wait for the barrier or the previous
    /// operation. Runs under the lock, so that handles are sent in the order in which they must
    /// run.
    private func enqueue(
        _ handles: [AnyOperationHandle],
        _ session: Session
    ) throws -> Addition {
        let handles = handles.flatMap(\.members)
        return try state.withLock { state in
            var last = state.last
            let barrier = state.barrier
            for handle in handles {
                if isSerial {
                    handle.setOrder([last ?? barrier].compactMap { $0 })
                    last = handle
                } else {
                    handle.setOrder([barrier].compactMap { $0 })
                }
            }
            state.count(handles.count)
            let addition: Addition
            do {
                addition = try session.enqueue(handles, in: self) { [weak self] in
                    self?.refused(handles)
                }
            } catch {
                state.count(-handles.count)
                throw error
            }
            state.last = isSerial ? last : nil
            state.note(handles)
            return addition
        }
    }

    /// The handles were refused and are not in the queue: no other operation has to wait for them.
    private func refused(_ handles: [AnyOperationHandle]) {
        let refused = Set(handles.map(ObjectIdentifier.init))
        state.withLock { state in
            state.count(-handles.count)
            state.sinceBarrier.removeAll { refused.contains(ObjectIdentifier($0)) }
        }
    }

    /// Adds operations of one type, all of them or none.
    ///
    /// - Throws: `Refusal` if the coordinator refuses any of them, ``OperonError`` if they cannot
    ///   be sent. In these cases nothing was added, except that after `unreachable` and `timedOut`
    ///   the result is unknown.
    @discardableResult
    public func addOperations<Op: Operation>(
        _ operations: [Op]
    ) async throws -> [OperationHandle<Op>] where Op.Output: Codable {
        let handles = operations.map { OperationHandle(work: $0, options: nil) }
        try await addOperations(handles)
        return handles
    }

    /// Adds operations of one type that return nothing, all of them or none.
    ///
    /// - Throws: `Refusal` if the coordinator refuses any of them, ``OperonError`` if they cannot
    ///   be sent. In these cases nothing was added, except that after `unreachable` and `timedOut`
    ///   the result is unknown.
    @_disfavoredOverload
    @discardableResult
    public func addOperations<Op: Operation>(
        _ operations: [Op]
    ) async throws -> [OperationHandle<Op>] where Op.Output == Void {
        let handles = operations.map { OperationHandle(work: $0, options: nil) }
        try await addOperations(handles)
        return handles
    }

    /// Adds the operations of a sequence, with a limited number of them in the queue at once: the
    /// next one is requested when another one has finished. The sequence may be endless, because
    /// operations do not pile up. Returns when the sequence has ended and all its operations have
    /// finished.
    ///
    /// - Parameters:
    ///   - operations: The sequence. Its elements are requested one by one, in order.
    ///   - inFlight: How many operations may be added and unfinished at once, 1 or more.
    ///   - finished: Called with each handle as soon as its operation has finished: one call at a
    ///     time, in the order of finishing, also while the next operation is being requested.
    /// - Throws: The error that the sequence or `finished` throws, `Refusal`, ``OperonError``, or
    ///   `CancellationError`. Operations added before the error go on.
    public func addOperations<Op: Operation, Source: AsyncSequence & Sendable>(
        from operations: Source,
        inFlight: Int,
        finished: (OperationHandle<Op>) async throws -> Void = { _ in }
    ) async throws where Source.Element == Op {
        guard inFlight > 0 else {
            throw OperonError(.invalid, "\(inFlight) operations cannot be in flight.")
        }
        let session = try await cluster.session()
        try await prepare()
        let (flow, news) = AsyncStream.makeStream(of: Flow<Op>.self)
        let (demands, demand) = AsyncStream.makeStream(of: Void.self)
        try await withThrowingDiscardingTaskGroup { group in
            group.addTask { [self] in
                let end = await Result { () async throws in
                    var demands = demands.makeAsyncIterator()
                    for try await operation in operations {
                        let handle = OperationHandle(work: operation, options: nil)
                        // Queued before the next one is requested, to keep the order of the
                        // sequence.
                        news.yield(.added(handle, try enqueue([handle], session)))
                        guard await demands.next() != nil else { return }
                    }
                }
                news.yield(.ended(end))
            }
            var count = 0
            var isOver = false
            for await event in flow {
                switch event {
                case .added(let handle, let addition):
                    count += 1
                    group.addTask {
                        let end = await Result { () async throws in
                            try await addition.wait()
                            try await handle.waitUntilFinished()
                        }
                        news.yield(.finished(handle, end))
                    }
                    if count < inFlight { demand.yield() }
                case .finished(let handle, let end):
                    try end.get()
                    try await finished(handle)
                    if count == inFlight { demand.yield() }
                    count -= 1
                case .ended(let end):
                    try end.get()
                    isOver = true
                }
                if isOver, count == 0 { return }
            }
            try Task.checkCancellation()
        }
    }

    /// The events while a sequence is being added.
    private enum Flow<Op: Operation>: Sendable {
        /// The sequence returned an operation and waits for permission to continue.
        case added(OperationHandle<Op>, Addition)
        case finished(OperationHandle<Op>, Result<Void, any Error>)
        /// The sequence has ended.
        case ended(Result<Void, any Error>)
    }

    // MARK: - Barriers

    /// Adds an operation as a barrier among the operations that this object adds: it runs after all
    /// operations added before it, whatever their outcomes, and before all operations added later.
    /// Otherwise it is an ordinary operation: it is counted and can be cancelled. A cancelled
    /// barrier no longer holds anything back, although operations added before it may still be
    /// running. Operations that other programs add to the queue are unaffected.
    ///
    /// - Throws: The same errors as ``addOperation(_:)``.
    public func addBarrier(_ barrier: AnyOperationHandle) async throws {
        let session = try await cluster.session()
        try await prepare()
        let handles = barrier.members
        let addition = try state.withLock { state in
            let known = (barrier: state.barrier, since: state.sinceBarrier)
            let before = ((known.barrier.map { [$0] } ?? []) + known.since)
                .filter { $0.outcomeIfKnown == nil }
            for handle in handles { handle.setOrder(before) }
            state.count(handles.count)
            let addition: Addition
            do {
                addition = try session.enqueue(handles, in: self) { [weak self] in
                    self?.refused(barrier: barrier, handles.count, before: known)
                }
            } catch {
                state.count(-handles.count)
                throw error
            }
            state.barrier = barrier
            if isSerial { state.last = barrier }
            state.sinceBarrier = []
            return addition
        }
        try await addition.wait()
    }

    /// The barrier was refused: restores the previous barrier and the operations since then.
    private func refused(
        barrier: AnyOperationHandle,
        _ count: Int,
        before: (barrier: AnyOperationHandle?, since: [AnyOperationHandle])
    ) {
        state.withLock { state in
            state.count(-count)
            guard state.barrier === barrier else { return }
            state.barrier = before.barrier
            state.sinceBarrier = before.since + state.sinceBarrier
        }
    }
}

extension Result where Failure == any Error {
    /// Stores the value that the body returns, or the error that it throws.
    fileprivate init(_ body: () async throws -> Success) async {
        do { self = .success(try await body()) } catch { self = .failure(error) }
    }
}

extension OperationQueue.State {
    /// Changes the number of operations that were added; negative if an addition was refused.
    mutating func count(_ more: Int) {
        totalCount += more
        tellProgress()
    }

    /// Records handles for the next barrier, which waits for them. Finished ones are removed each
    /// time the list has doubled.
    mutating func note(_ handles: [AnyOperationHandle]) {
        sinceBarrier += handles
        guard sinceBarrier.count > sinceBarrierMax else { return }
        sinceBarrier.removeAll { $0.outcomeIfKnown != nil }
        sinceBarrierMax = max(64, 2 * sinceBarrier.count)
    }
}
