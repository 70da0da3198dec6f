import HeapModule
package import OperonModel

// What clients can see of a scheduler. Nothing here changes it.
extension Scheduler {
    /// The number of operations of a graph in each state. O(1).
    package func stateCounts(of graph: GraphID) -> StateCounts {
        let remains = graphs.dropped[graph]
        let graph = graphs[graph]
        var counts = StateCounts()
        guard !graph.isGone else {
            counts.succeeded = remains.count(of: .succeeded)
            counts.failed = remains.count(of: .failed)
            counts.cancelled = remains.count(of: .cancelled)
            counts.skipped = remains.count(of: .skipped)
            return counts
        }
        counts.succeeded = graph.counts[.succeeded]
        counts.failed = graph.counts[.failed]
        counts.cancelled = graph.counts[.cancelled]
        counts.skipped = graph.counts[.skipped]
        let unfinished = graph.operations.stateCounts
        counts.pending = unfinished[.pending]
        counts.ready = unfinished[.ready]
        counts.dispatched = unfinished[.dispatched]
        counts.executing = unfinished[.executing]
        return counts
    }

    /// How many external operations of a graph wait for somebody to complete them; `nil`: none.
    package func awaitedCount(of graph: GraphID) -> Int? { awaitedCounts[graph] }

    /// How many operations of a graph succeeded without a process.
    package func upToDateCount(of graph: GraphID) -> Int { graphs[graph].upToDate.count }

    /// The state counts of some of the operations of a graph. O(operations in the range).
    package func stateCounts(of graph: GraphID, in range: Range<UInt32>) -> StateCounts {
        var counts = StateCounts()
        let operations = graphs[graph].operations
        for index in range.clamped(to: operations.indices) {
            switch operations.state[index] {
            case .pending: counts.pending += 1
            case .ready: counts.ready += 1
            case .dispatched: counts.dispatched += 1
            case .executing: counts.executing += 1
            case .finished:
                switch operations.outcome[index] {
                case .succeeded: counts.succeeded += 1
                case .failed: counts.failed += 1
                case .cancelled: counts.cancelled += 1
                case .skipped: counts.skipped += 1
                case nil: continue
                }
            }
        }
        return counts
    }

    /// Adds the states of some operations of a graph to those before them. O(operations in the
    /// range).
    package func appendStates(
        of graph: GraphID,
        in range: Range<UInt32>,
        to runs: inout StateRunsView
    ) {
        let operations = graphs[graph].operations
        for index in range.clamped(to: operations.indices) {
            runs.append(CountedState(operations.state[index], operations.outcome[index]))
        }
    }

    /// The progress of each operation of a graph, in their order.
    package func progress(of graph: GraphID) -> [OperationProgress] {
        (0..<UInt32(operationCount(of: graph))).map { index in
            let operation = OperationID(graph: graph, index: index)
            return OperationProgress(
                state: state(of: operation),
                outcome: outcome(of: operation),
                isUpToDate: isUpToDate(operation)
            )
        }
    }

    /// The operations of a graph that have run longest, the longest first; if there are fewer,
    /// external operations too. Looks at all attempts in flight.
    package func longestRunning(
        in graph: GraphID,
        limit: Int
    ) -> [(operation: OperationID, startedAt: Timestamp)] {
        var longest: [(operation: OperationID, startedAt: Timestamp)] = []
        func add(_ operation: OperationID, _ start: Timestamp) {
            let key = (start, operation)
            let place = longest.firstIndex { key < ($0.startedAt, $0.operation) } ?? longest.count
            guard place < limit else { return }
            longest.insert((operation, start), at: place)
            if longest.count > limit { longest.removeLast() }
        }
        for attempt in attempts.all where attempt.operation.graph == graph {
            guard attempt.hasStarted, let start = attempt.startedAt else { continue }
            add(attempt.operation, start)
        }
        guard longest.count < limit else { return longest }
        let running = longest
        longest = []
        // The order does not matter: each has a place of its own.
        for (operation, attempt) in externals where operation.graph == graph {
            add(operation, attempt.startedAt)
        }
        // They may wait for days, and would hide what runs.
        return running + longest.prefix(limit - running.count)
    }

    package func unfinishedCount(of graph: GraphID) -> Int {
        graphs[graph].unfinished
    }

    package func isCancelled(_ graph: GraphID) -> Bool {
        graphs[graph].isCancelled
    }

    package func cancelReason(of graph: GraphID) -> String {
        graphs[graph].cancelReason
    }

    package func isCancelRequested(_ operation: OperationID) -> Bool {
        graphs[flags: operation]
            .contains(.cancelRequested)
    }

    package func priority(of operation: OperationID) -> QueuePriority {
        let level = graphs[level: operation]
        guard let priority = QueuePriority(level: level) else {
            preconditionFailure("levels come from priorities")
        }
        return priority
    }

    /// Its attempt in flight, and the worker that has it: `nobody` for an external operation.
    package func attempt(
        of operation: OperationID
    ) -> (id: AttemptID, ordinal: UInt32, worker: Incarnation, hasStarted: Bool)? {
        if let external = externals[operation] {
            return (external.id, external.ordinal, .nobody, true)
        }
        let place = graphs[attempt: operation]
        guard let attempt = attempts[place] else { return nil }
        return (
            attempt.id, attempt.ordinal, workers[attempt.worker].identity.incarnation,
            attempt.hasStarted
        )
    }

    /// Every queue with operations or settings of its own, in no particular order.
    package var queueStatus: [QueueStatus] {
        queues.indices.filter { !queues[$0].isFree }.map { status(ofQueue: $0) }
    }

    /// `nil`: there is no such queue.
    package func status(ofQueue name: String) -> QueueStatus? {
        queueNumbers[name].map { status(ofQueue: $0) }
    }

    private func status(ofQueue number: Int) -> QueueStatus {
        let queue = queues[number]
        return QueueStatus(
            name: queue.name,
            maximum: queue.maximum,
            priority: queue.priority,
            isSuspended: queue.isSuspended,
            rate: queue.bucket?.rate,
            ready: ready.count(of: number),
            inFlight: queue.inFlight,
            unfinished: queue.unfinished
        )
    }

    /// The number of operations of a queue without an outcome, in all graphs; `nil`: there is no
    /// such queue.
    package func unfinishedCount(ofQueue name: String) -> Int? {
        queueNumbers[name].map { queues[$0].unfinished }
    }

    /// Visits the finished or the unfinished operations of a queue from `first` on, graph by graph,
    /// while `body` returns true. It looks at the operations of the graphs that have unfinished
    /// operations, or of all graphs if `finished`.
    ///
    /// - Parameter most: How many operations it looks at, those of other queues among them.
    /// - Returns: The first operation that it has not looked at; `nil`: there is none, or `body`
    ///   has returned false.
    package func visit(
        queue name: String,
        from first: OperationID,
        finished: Bool,
        most: Int,
        _ body: (OperationID) -> Bool
    ) -> OperationID? {
        guard let queue = queueNumbers[name], finished || queues[queue].unfinished > 0 else {
            return nil
        }
        var left = most
        for id in graphs.kept
        where id >= first.graph && (finished || graphs[id].unfinished > 0) {
            let count = graphs[id].operations.count
            let start = id == first.graph ? min(first.index, count) : 0
            for index in start..<count {
                let operation = OperationID(graph: id, index: index)
                guard left > 0 else { return operation }
                left -= 1
                guard graphs[id].queue(index) == queue,
                    (graphs[id].operations.state[index] == .finished) == finished
                else { continue }
                guard body(operation) else { return nil }
            }
        }
        return nil
    }

    /// What the live workers offer that serve the queue of an operation and know its kind.
    package func serving(_ operation: OperationID) -> [WorkerOffer] {
        let demand = demand(of: operation)
        return serving(queue: demand.queue, kind: demand.kind)
    }

    func serving(queue: Int, kind: Int) -> [WorkerOffer] {
        workers.filter { $0.takesWork && $0.servesQueue[queue] && $0.knowsKind[kind] }.map(\.offer)
    }

    /// All workers that are alive, or gone and remembered.
    package func workerStatus(at now: Timestamp) -> [WorkerStatus] {
        var executing = [Int](repeating: 0, count: workers.count)
        for attempt in attempts.all where attempt.hasStarted && !attempt.isYielded {
            executing[attempt.worker] += 1
        }
        return workers.enumerated().map { index, worker in
            WorkerStatus(
                identity: worker.identity,
                host: worker.host,
                slots: worker.room.slots,
                executing: executing[index],
                held: worker.room.held,
                ownsAttempts: worker.room.held + worker.room.yielded > 0,
                isAlive: worker.isAlive,
                isDraining: worker.isDraining || worker.isAskedToDrain,
                queues: worker.queueNames,
                kinds: worker.kindNames,
                runsAnyKind: worker.runsAnyKind,
                offer: worker.offer,
                left: resourcesLeft(of: index),
                silence: now - worker.heardAt,
                aliveSince: worker.isAlive ? worker.aliveSince : nil,
                place: index
            )
        }
    }

    /// What a worker runs, the longest first, up to `WorkerStatus.runningMax`. O(n log n) of the
    /// attempts that it has.
    package func running(on worker: WorkerStatus) -> [WorkerStatus.Running] {
        var running = attempts.owned(by: worker.place).compactMap { _, attempt in
            attempt.startedAt.map { WorkerStatus.Running(operation: attempt.operation, since: $0) }
        }
        running.sort { ($0.since, $0.operation) < ($1.since, $1.operation) }
        return Array(running.prefix(WorkerStatus.runningMax))
    }

    /// Whether a graph names the key, or a command has set its limit.
    package func hasKey(_ name: String) -> Bool { userKey(name) != nil }

    /// The number of a key that users know.
    private func userKey(_ name: String) -> Int? {
        keyNumbers[name].flatMap { keys[$0].group == nil ? $0 : nil }
    }

    /// How many operations may hold the key at a time.
    package func limit(ofKey name: String) -> Int {
        userKey(name).map { keys[$0].limit } ?? 1
    }

    /// Every key that a graph names or that has a limit of its own, in no particular order.
    /// O(operations) of the unfinished graphs that name any key.
    package var keyStatus: [KeyStatus] {
        var waiting = [KeyWait](repeating: KeyWait(), count: keys.count)
        for id in graphs.kept { countWaiting(for: &waiting, in: id) }
        return keys.indices.filter { !keys[$0].isFree && keys[$0].group == nil }.map {
            status(ofKey: $0, waiting[$0])
        }
    }

    /// `nil`: there is no such key. O(operations) of the graphs that name it and have not ended.
    package func status(ofKey name: String) -> KeyStatus? {
        guard let key = userKey(name) else { return nil }
        var waiting = [KeyWait](repeating: KeyWait(), count: keys.count)
        for id in graphs.kept where graphs[id].keys.contains(key) {
            countWaiting(for: &waiting, in: id)
        }
        return status(ofKey: key, waiting[key])
    }

    private func status(ofKey key: Int, _ waiting: KeyWait) -> KeyStatus {
        KeyStatus(
            settings: KeySettings(
                name: keys[key].name,
                limit: keys[key].limit,
                rate: keys[key].bucket?.rate
            ),
            holders: keys[key].holders,
            waiting: waiting.count,
            waiters: waiting.first
        )
    }

    /// The ready operations that need a key.
    private struct KeyWait {
        var count = 0
        var first: [OperationID] = []

        mutating func add(_ operation: OperationID) {
            count += 1
            if first.count < KeyStatus.waitersMax { first.append(operation) }
        }
    }

    private func countWaiting(for keys: inout [KeyWait], in id: GraphID) {
        let graph = graphs[id]
        guard graph.unfinished > 0, !graph.keys.isEmpty else { return }
        for index in graph.operations.indices where graph.operations.state[index] == .ready {
            let index = UInt32(index)
            guard graph.rule(index).hasKeys else { continue }
            let operation = OperationID(graph: id, index: index)
            for local in graph.policy(index).keys { keys[graph.keys[Int(local)]].add(operation) }
        }
    }

    package struct KeyStatus: Hashable, Sendable {
        package let settings: KeySettings
        /// In the order in which they got the key.
        package let holders: [OperationID]
        /// Ready operations that need it, whatever else delays them.
        package let waiting: Int
        /// The first of them in the order of graphs and their operations, which is not the order in
        /// which they get the key.
        package let waiters: [OperationID]

        /// The most waiting operations that are listed of one key: a line of the page for each.
        package static let waitersMax = 10
    }

    package var isUp: Bool { isConnected }

    /// The operations that depend on it, in any graph.
    package func dependents(of operation: OperationID) -> [OperationID] {
        var dependents: [OperationID] = []
        forEachDependent(of: operation) { dependent, _ in dependents.append(dependent) }
        return dependents
    }

    /// The unfinished operations that a command acts on.
    package func unfinished(of target: Target) -> [OperationID] {
        switch target {
        case .operation(let id): return outcomeKind(of: id) == nil ? [id] : []
        case .graph(let id): return unfinished(of: id) { _ in true }
        case .queue(let name):
            guard let queue = queueNumbers[name] else { return [] }
            return graphs.kept.flatMap { id in
                unfinished(of: id) { graphs[id].queue($0) == queue }
            }
        }
    }

    private func unfinished(
        of id: GraphID,
        where matches: (UInt32) -> Bool
    ) -> [OperationID] {
        let graph = graphs[id]
        guard graph.unfinished > 0 else { return [] }
        return (graph.operations.indices).compactMap { index in
            guard graph.operations.state[index] != .finished, matches(index) else { return nil }
            return OperationID(graph: id, index: index)
        }
    }

    /// Whether an operation was skipped although it was no failure handler. It is no loss if a
    /// handler for a failure that did not happen is skipped.
    package func skippedMoreThanHandlers(_ id: GraphID) -> Bool {
        let graph = graphs[id]
        guard graph.counts[.skipped] > 0 else { return false }
        for index in graph.operations.indices where graph.operations.outcome[index] == .skipped {
            guard case .skipped(let cause) = graph.outcomes[UInt32(index)] else { continue }
            let operation = OperationID(graph: id, index: UInt32(index))
            let edge = dependencies(of: operation).first { $0.operation == cause }
            if edge?.condition != .failed { return true }
        }
        return false
    }

    package struct QueueStatus: Hashable, Sendable {
        package let name: String
        package let maximum: Int?
        package let priority: QueuePriority
        package let isSuspended: Bool
        package let rate: StartRate?
        package let ready: Int
        package let inFlight: Int
        package let unfinished: Int
    }

    package struct WorkerStatus: Hashable, Sendable {
        package let identity: WorkerIdentity
        package let host: String
        package let slots: Int
        package let executing: Int
        package let held: Int
        /// Whether the worker has any attempts, with a slot or without.
        package let ownsAttempts: Bool
        package let isAlive: Bool
        package let isDraining: Bool
        package let queues: [String]
        package let kinds: [String]
        package let runsAnyKind: Bool
        package let offer: WorkerOffer
        /// What its attempts have left of its resources.
        package let left: ResourceAmounts
        package let silence: Duration
        /// `nil`: it is not alive.
        package let aliveSince: Timestamp?
        fileprivate let place: Int

        /// The most operations that are listed of one worker: a line of the page for each.
        package static let runningMax = 10

        package struct Running: Hashable, Sendable {
            package let operation: OperationID
            package let since: Timestamp
        }
    }
}

/// The progress of an operation.
package struct OperationProgress: Hashable, Sendable {
    package let state: OperationState
    package let outcome: Outcome?
    package let isUpToDate: Bool

    package init(state: OperationState, outcome: Outcome?, isUpToDate: Bool) {
        self.state = state
        self.outcome = outcome
        self.isUpToDate = isUpToDate
    }
}
