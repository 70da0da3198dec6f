internal import OperonModel
internal import OperonPorts
internal import Synchronization

/// The progress of the operations that one ``OperationQueue`` object added to its queue.
public struct OperationQueueProgress: Hashable, Sendable {
    /// How many have finished, whatever their outcomes.
    public let finishedCount: Int
    /// How many were added.
    public let totalCount: Int

    /// Creates a progress value.
    public init(finishedCount: Int, totalCount: Int) {
        self.finishedCount = finishedCount
        self.totalCount = totalCount
    }

    /// The finished fraction, from 0 to 1; 1 while there is nothing to do.
    public var fractionCompleted: Double {
        totalCount == 0 ? 1 : Double(finishedCount) / Double(totalCount)
    }
}

// Contents of the queue, and waiting until it is empty.
extension OperationQueue {
    /// How many operations of the queue are unfinished, waiting or running, including those that
    /// other programs added. The number may be out of date when it arrives.
    ///
    /// - Throws: ``OperonError`` if the request to the coordinator fails.
    public var operationCount: Int {
        get async throws { try await view()?.unfinished ?? 0 }
    }

    /// The unfinished operations of the queue, including those that other programs added, in the
    /// order in which they were added. Some may have finished when the list arrives.
    ///
    /// - Throws: ``OperonError`` if the request to the coordinator fails.
    public var operations: [OperationSummary] {
        get async throws {
            var operations: [OperationSummary] = []
            var query = QueueOperationQuery()
            query.limit = 1_000
            do {
                repeat {
                    let asked = query
                    let page = try await cluster.ask { [name] in
                        try await $0.operations(ofQueue: name, asked)
                    }
                    operations += page.operations.map(OperationSummary.init)
                    query.after = page.next
                } while query.after != nil
            } catch let error as OperonError where error.code == .notFound {
                return []  // Nobody has used it yet.
            }
            return operations
        }
    }

    /// Waits until the queue is empty, as far as this program can tell: until all operations,
    /// including those that other programs added, have finished. Operations that are added
    /// meanwhile, by running operations for example, prolong the wait. If the queue is suspended
    /// and not empty, the call waits for as long as that lasts.
    ///
    /// - Throws: `CancellationError` if the task is cancelled, ``OperonError`` if the request to
    ///   the coordinator fails.
    public func waitUntilAllOperationsAreFinished() async throws {
        try await cluster.session().enqueue([], in: self).wait()
        while true {
            try Task.checkCancellation()
            do {
                let view = try await cluster.ask { [name] in
                    try await $0.waitUntilEmpty(queue: name, within: 30)
                }
                if view.unfinished == 0 { return }
            } catch let error as OperonError where error.code == .notFound {
                return
            }
        }
    }

    /// Waits until the operations that are in the queue now have finished, whatever is added
    /// meanwhile.
    ///
    /// - Throws: `CancellationError` if the task is cancelled, ``OperonError`` if the request to
    ///   the coordinator fails.
    public func waitUntilPresentOperationsAreFinished() async throws {
        try await cluster.session().enqueue([], in: self).wait()
        for operation in try await operations {
            let handle = UnknownOperationHandle(operation.id, name: operation.name, in: self)
            do {
                try await cluster.follow(handle, operation.id)
            } catch let error as OperonError where error.code == .notFound {
                continue  // It has ended, and is not kept any more.
            }
            try await handle.waitUntilFinished()
        }
    }

    // MARK: - Progress

    /// The progress of the operations that this object added: first the current value, then a value
    /// after every change; of several changes in quick succession, only the last. The stream never
    /// ends by itself.
    public var progress: AsyncStream<OperationQueueProgress> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: OperationQueueProgress.self,
            bufferingPolicy: .bufferingNewest(1)
        )
        let id = state.withLock { state in
            state.lastObserver += 1
            state.observers[state.lastObserver] = continuation
            continuation.yield(state.current)
            return state.lastObserver
        }
        continuation.onTermination = { [weak self] _ in
            self?.state.withLock { $0.observers[id] = nil }
        }
        return stream
    }

    /// How many streams follow ``progress``.
    package var progressObserverCount: Int { state.withLock { $0.observers.count } }

    /// Called when an operation that this object added has finished. Releases the queue's
    /// references to its handle.
    func finished(_ handle: AnyOperationHandle) {
        state.withLock { state in
            state.finishedCount += 1
            if state.last === handle { state.last = nil }
            if state.barrier === handle { state.barrier = nil }
            if state.finishedCount == state.totalCount { state.sinceBarrier = [] }
            state.tellProgress()
        }
    }

    /// Releases handles whose outcomes will never be known.
    func forget() {
        state.withLock { state in
            state.last = nil
            state.barrier = nil
            state.sinceBarrier = []
        }
    }
}

extension OperationQueue.State {
    var current: OperationQueueProgress {
        OperationQueueProgress(finishedCount: finishedCount, totalCount: totalCount)
    }

    /// Runs under the lock, so that nobody sees the progress go backwards.
    func tellProgress() {
        guard !observers.isEmpty else { return }
        // Each observer is an independent task, so their order does not matter.
        for observer in observers.values { observer.yield(current) }
    }
}

/// A summary of one operation, as the coordinator saw it.
public struct OperationSummary: Hashable, Sendable {
    /// Identifies the operation in its cluster.
    public let id: OperationID
    /// The name that is shown to people.
    public let name: String
    /// The kind of the operation.
    public let kind: String
    /// The state of the operation.
    public let state: OperationState
    /// The priority among the ready operations of its queue.
    public let queuePriority: QueuePriority

    init(_ view: OperationView) {
        id = OperationID(graph: GraphID(rawValue: view.graph), index: view.index)
        name = view.name
        kind = view.kind
        state = view.state
        queuePriority = view.priority
    }
}

/// A handle for an existing operation of unknown type.
final class UnknownOperationHandle: AnyOperationHandle, @unchecked Sendable {
    override var kind: String { "operation" }
    override func work() throws -> Work { .nothing }
}
