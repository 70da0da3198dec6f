internal import OperonModel
internal import OperonPorts
internal import Synchronization

// Every call returns when the coordinator has the operations for good.
extension OperationQueue {
    /// Adds an operation.
    ///
    /// - Parameters:
    ///   - operation: What to do.
    ///   - dependencies: What it waits for, of any queue of the cluster.
    ///   - priority: Its place among ready operations; `nil`: as `options` say.
    ///   - options: How it is to be run; `nil`: as the operation itself says.
    /// - Returns: What it can be waited for, cancelled and depended on by.
    /// - Throws: `Refusal` if the coordinator refuses it, ``OperonError`` if it cannot be sent.
    ///   Then nothing was added, except that after `unreachable` and `timedOut` nobody knows.
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
    ///   - operation: What to do.
    ///   - dependencies: What it waits for, of any queue of the cluster.
    ///   - priority: Its place among ready operations; `nil`: as `options` say.
    ///   - options: How it is to be run; `nil`: as the operation itself says.
    /// - Returns: What it can be waited for, cancelled and depended on by.
    /// - Throws: `Refusal` if the coordinator refuses it, ``OperonError`` if it cannot be sent.
    ///   Then nothing was added, except that after `unreachable` and `timedOut` nobody knows.
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

    /// Adds an operation by its handle, once.
    ///
    /// - Throws: `Refusal.alreadySubmitted` for one that is in a queue, or was; another `Refusal`
    ///   if the coordinator refuses it; ``OperonError`` if it cannot be sent. Then nothing was
    ///   added.
    public func addOperation(_ handle: AnyOperationHandle) async throws {
        try await addOperations([handle])
    }

    /// Adds operations, all of them or none. They may depend on one another in any order.
    ///
    /// - Parameters:
    ///   - handles: Each in no queue yet, and once.
    ///   - waitUntilFinished: Returns when all of these have their outcomes.
    /// - Throws: `Refusal` if the coordinator refuses any of them, ``OperonError`` if they cannot
    ///   be sent; then nothing was added, except that after `unreachable` and `timedOut` nobody
    ///   knows.
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

    /// Puts them in line, and behind what they have to stand behind. Under the lock, so that what
    /// is told to wait is in line in that order.
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

    /// They are not in the queue: nobody has to wait for them.
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
    ///   be sent; then nothing was added, except that after `unreachable` and `timedOut` nobody
    ///   knows.
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
    ///   be sent; then nothing was added, except that after `unreachable` and `timedOut` nobody
    ///   knows.
    @_disfavoredOverload
    @discardableResult
    public func addOperations<Op: Operation>(
        _ operations: [Op]
    ) async throws -> [OperationHandle<Op>] where Op.Output == Void {
        let handles = operations.map { OperationHandle(work: $0, options: nil) }
        try await addOperations(handles)
        return handles
    }

    /// Adds operations as a sequence gives them, with only so many in the queue at once: the next
    /// one is asked for when another one has ended. So a sequence may be endless, and nothing piles
    /// up. Returns when the sequence has ended and everything of it has its outcome.
    ///
    /// - Parameters:
    ///   - operations: Asked one by one, in order.
    ///   - inFlight: How many may have been added and not have ended, 1 or more.
    ///   - finished: Called with each as soon as it has its outcome, one at a time, in the order of
    ///     ending, also while the next operation is waited for.
    /// - Throws: What the sequence or `finished` throws, `Refusal`, ``OperonError``, or
    ///   `CancellationError`. What was added by then goes on.
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
                        // In line before the next one is asked for: in the order of the sequence.
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

    /// What happens while a sequence is added.
    private enum Flow<Op: Operation>: Sendable {
        /// The sequence gave it, and asks for leave to go on.
        case added(OperationHandle<Op>, Addition)
        case finished(OperationHandle<Op>, Result<Void, any Error>)
        /// The sequence gives no more.
        case ended(Result<Void, any Error>)
    }

    // MARK: - Barriers

    /// Adds an operation that runs alone among what this object adds: after everything added
    /// before, whatever its outcome, and before everything added later. An ordinary operation
    /// otherwise: it counts, and can be cancelled, and then holds nothing back any more, although
    /// what was added before it may still run. What other programs add to the queue is not
    /// concerned.
    ///
    /// - Throws: as ``addOperation(_:)``.
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

    /// It stands between nothing: what was before it counts again.
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
    /// What came of it.
    fileprivate init(_ body: () async throws -> Success) async {
        do { self = .success(try await body()) } catch { self = .failure(error) }
    }
}

extension OperationQueue.State {
    /// So many more are in the queue, or were not.
    mutating func count(_ more: Int) {
        totalCount += more
        tellProgress()
    }

    /// The next barrier waits for these. What has ended is dropped each time the list has doubled.
    mutating func note(_ handles: [AnyOperationHandle]) {
        sinceBarrier += handles
        guard sinceBarrier.count > sinceBarrierMax else { return }
        sinceBarrier.removeAll { $0.outcomeIfKnown != nil }
        sinceBarrierMax = max(64, 2 * sinceBarrier.count)
    }
}
