internal import OperonModel
internal import OperonPorts
internal import Synchronization

/// How far the operations of a queue are that one ``OperationQueue`` object added.
public struct OperationQueueProgress: Hashable, Sendable {
    /// How many have their outcomes, whatever those are.
    public let finishedCount: Int
    /// How many were added.
    public let totalCount: Int

    /// So many of so many.
    public init(finishedCount: Int, totalCount: Int) {
        self.finishedCount = finishedCount
        self.totalCount = totalCount
    }

    /// From 0 to 1; 1 while there is nothing to do.
    public var fractionCompleted: Double {
        totalCount == 0 ? 1 : Double(finishedCount) / Double(totalCount)
    }
}

// What is in the queue, and the wait for its end.
extension OperationQueue {
    /// How many operations of the queue have no outcome yet, whoever added them: waiting and
    /// running. It may be another number by the time it is here.
    ///
    /// - Throws: ``OperonError``, if the coordinator cannot be asked.
    public var operationCount: Int {
        get async throws { try await view()?.unfinished ?? 0 }
    }

    /// The operations of the queue that have no outcome yet, whoever added them, in the order of
    /// adding. They may have ended by the time they are here.
    ///
    /// - Throws: ``OperonError``, if the coordinator cannot be asked.
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

    /// Returns when the queue is empty, as far as this program can tell: when everything that was
    /// added, by whomever, has its outcome. What is added meanwhile, by running operations for
    /// example, prolongs it. A suspended queue that is not empty is waited for as long as that
    /// takes.
    ///
    /// - Throws: `CancellationError` if the task is cancelled, ``OperonError`` if the coordinator
    ///   cannot be asked.
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

    /// Returns when what is in the queue now has its outcome, whatever is added meanwhile.
    ///
    /// - Throws: `CancellationError` if the task is cancelled, ``OperonError`` if the coordinator
    ///   cannot be asked.
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

    /// How far what this object added is: first as it is now, then after every change, the last of
    /// several that follow one another closely. Ends never by itself.
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

    /// How many follow ``progress``.
    package var progressObserverCount: Int { state.withLock { $0.observers.count } }

    /// One that this object added has its outcome: it is held no more than its handles are.
    func finished(_ handle: AnyOperationHandle) {
        state.withLock { state in
            state.finishedCount += 1
            if state.last === handle { state.last = nil }
            if state.barrier === handle { state.barrier = nil }
            if state.finishedCount == state.totalCount { state.sinceBarrier = [] }
            state.tellProgress()
        }
    }

    /// Nothing that it added will be heard of again.
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

    /// Under the lock, so that nobody sees it go backwards.
    func tellProgress() {
        guard !observers.isEmpty else { return }
        // They are other tasks, each on its own: their order does not matter.
        for observer in observers.values { observer.yield(current) }
    }
}

/// One line about an operation, as the coordinator saw it.
public struct OperationSummary: Hashable, Sendable {
    /// What it is known by in its cluster.
    public let id: OperationID
    /// What people call it.
    public let name: String
    /// The name of its kind.
    public let kind: String
    /// Where it is in its life.
    public let state: OperationState
    /// Its place among ready operations of its queue.
    public let queuePriority: QueuePriority

    init(_ view: OperationView) {
        id = OperationID(graph: GraphID(rawValue: view.graph), index: view.index)
        name = view.name
        kind = view.kind
        state = view.state
        queuePriority = view.priority
    }
}

/// An operation of whatever type that is there already.
final class UnknownOperationHandle: AnyOperationHandle, @unchecked Sendable {
    override var kind: String { "operation" }
    override func work() throws -> Work { .nothing }
}
