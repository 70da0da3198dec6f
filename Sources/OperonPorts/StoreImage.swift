package import OperonModel

/// The content of a store as a value. Every store is compared with this model, and simulations use
/// it as their store.
package struct StoreImage: Sendable {
    private struct Graph: Sendable {
        var entry: GraphEntry
        var contents: [StoredContents] = []
        var operations: [UInt32: OperationRow] = [:]
        var ranges = FinishedRanges()
        var attempts: [UInt32: [StoredAttempt]] = [:]
        var outputs: [UInt32: Payload] = [:]
        var logs: [UInt32: [StoredLog]] = [:]
        var dependencyChanges: [StoreRecord] = []
        /// Bytes of inputs, outputs and logs; set by `weigh()` once the graph has ended.
        var weight: Int?

        var bytes: Int {
            // Sums: the order of the dictionaries does not matter.
            contents.reduce(0) { $0 + $1.body.count }
                + outputs.values.reduce(0) { $0 + $1.bytes.count }
                + logs.values.reduce(0) { $0 + $1.reduce(0) { $0 + $1.log.count } }
        }
    }

    /// An operation that has changed since its submission. Most operations only have attempts and
    /// then succeed: their rows take a tenth of the memory of a `StoredOperation`.
    private struct OperationRow: Sendable {
        private let attempts: UInt32
        private let hasSucceeded: Bool
        private let hasOutput: Bool
        private let finishedAt: WallTime?
        /// The whole operation; `nil`: the other fields are all that has changed.
        private var whole: Whole?

        private final class Whole: Sendable {
            let operation: StoredOperation

            init(_ operation: StoredOperation) { self.operation = operation }
        }

        init(_ operation: StoredOperation) {
            attempts = operation.attempts
            hasSucceeded = operation.outcome == .succeeded
            hasOutput = operation.hasOutput
            finishedAt = operation.finishedAt
            if self[operation.index] != operation { whole = Whole(operation) }
        }

        /// Whether nothing has changed.
        var isNew: Bool {
            whole == nil && attempts == 0 && !hasSucceeded && !hasOutput && finishedAt == nil
        }

        var outcome: OutcomeKind? {
            whole.map { $0.operation.outcome?.kind } ?? (hasSucceeded ? .succeeded : nil)
        }

        /// The operation, whose number the row itself does not keep.
        subscript(index: UInt32) -> StoredOperation {
            if let whole { return whole.operation }
            var operation = StoredOperation(index: index)
            operation.attempts = attempts
            operation.outcome = hasSucceeded ? .succeeded : nil
            operation.hasOutput = hasOutput
            operation.finishedAt = finishedAt
            return operation
        }
    }

    /// What remains of a dropped graph, besides its outcomes.
    private struct Tombstone: Sendable {
        let name: String
        let submittedAt: WallTime
        let finishedAt: WallTime?
        let operationCount: UInt32

        func entry(_ id: GraphID) -> GraphEntry {
            var entry = GraphEntry(
                id: id,
                name: name,
                submittedAt: submittedAt,
                isOpen: false,
                operationCount: operationCount
            )
            entry.finishedAt = finishedAt
            entry.finishedCount = operationCount
            return entry.tombstone
        }
    }

    private struct Trigger: Sendable {
        var trigger: StoredTrigger
        var state: TriggerState
        var firings: [UInt64: StoredFiring] = [:]
    }

    package let reign: Reign
    /// 0 until the store is opened for the first time.
    package private(set) var epoch = Epoch(rawValue: 0)
    private var graphs: [GraphID: Graph] = [:]
    private var tombstones: [GraphID: Tombstone] = [:]
    private var outcomes = DroppedGraphs()
    private var open: [OperationID: AttemptID] = [:]
    private var queues: [String: StoredQueue] = [:]
    private var keys: [String: StoredKey] = [:]
    private var rates: [RateScope: StoredRate] = [:]
    private var triggers: [TriggerID: Trigger] = [:]
    private var workers: [Incarnation: String] = [:]
    private var kept: [StoredEvent] = []
    package private(set) var lastEvent: UInt64 = 0
    private let limits: Limits

    package init(reign: Reign, limits: Limits = Limits()) {
        self.reign = reign
        self.limits = limits
    }

    /// Raises the epoch for the coordinator that opens the store.
    package mutating func raiseEpoch() { epoch = Epoch(rawValue: epoch.rawValue + 1) }

    /// Stores all of a batch, or nothing.
    ///
    /// - Throws: `StoreError` (`failed`) if the batch contradicts the store or itself.
    package mutating func apply(_ batch: StoreBatch) throws(StoreError) {
        guard !batch.isEmpty else { return }
        let changes: StoreChanges
        do {
            changes = try StoreChanges(batch, to: rows(for: StoreWants(batch)), limits: limits)
        } catch let error as StoreError {
            throw error
        } catch {
            throw StoreError(.failed, "\(error)")
        }
        keep(changes)
    }

    private mutating func keep(_ changes: StoreChanges) {
        for id in changes.graphs.keys.sorted() {
            guard let entry = changes.graphs[id] else { continue }
            graphs[id, default: Graph(entry: entry)].entry = entry
        }
        for contents in changes.contents { graphs[contents.graph]?.contents.append(contents) }
        // Operations are independent, and so are attempts, which `keep` puts in order. So the order
        // of these dictionaries does not matter.
        for (id, operation) in changes.operations {
            guard let place = graphs.index(forKey: id.graph) else { continue }
            let row = OperationRow(operation)
            graphs.values[place].operations[id.index] = row.isNew ? nil : row
        }
        for (id, ranges) in changes.ranges { graphs[id]?.ranges.insert(ranges) }
        for (_, change) in changes.attempts {
            keep(change.attempt, of: change.operation)
        }
        for (id, attempt) in changes.open { open[id] = attempt }
        for queue in changes.queues.values {
            queues[queue.name] = queue.hasNoSettings ? nil : queue
        }
        for key in changes.keys.values { keys[key.settings.name] = key.hasNoSettings ? nil : key }
        for rate in changes.rates.values { rates[rate.scope] = rate.rate == nil ? nil : rate }
        for worker in changes.workers { workers[worker.incarnation] = worker.name }
        for record in changes.triggers { keep(record) }
        for record in changes.dependencyChanges {
            guard let id = record.changedDependent else { continue }
            graphs[id.graph]?.dependencyChanges.append(record)
        }
        for (id, output) in changes.outputs {
            guard let place = graphs.index(forKey: id.graph) else { continue }
            graphs.values[place].outputs[id.index] = output
        }
        for (id, attempt) in changes.droppedLogs {
            graphs[id.graph]?.logs[id.index]?.removeAll { $0.attempt == attempt }
        }
        for change in changes.logs { keep(change.log, of: change.operation) }
        kept += changes.events
        lastEvent = kept.last?.sequence ?? lastEvent
        if let last = changes.dropsEventsThrough {
            kept.removeFirst(kept.firstIndex { $0.sequence > last } ?? kept.count)
        }
    }

    private mutating func keep(_ record: TriggerRecord) {
        switch record {
        case .added(let trigger, let state):
            triggers[trigger.id] = Trigger(trigger: trigger, state: state)
        case .replaced(let trigger, let state):
            triggers[trigger.id]?.trigger = trigger
            triggers[trigger.id]?.state = state
        case .changed(let id, let state): triggers[id]?.state = state
        case .removed(let id): triggers[id] = nil
        case .firing(let firing): triggers[firing.id.trigger]?.firings[firing.id.number] = firing
        case .firingForgotten(let id): triggers[id.trigger]?.firings[id.number] = nil
        }
    }

    private mutating func keep(_ attempt: StoredAttempt, of id: OperationID) {
        guard let place = graphs.index(forKey: id.graph) else { return }
        graphs.values[place].attempts[id.index, default: []].keep(attempt)
    }

    private mutating func keep(_ log: StoredLog, of id: OperationID) {
        var logs = graphs[id.graph]?.logs[id.index] ?? []
        logs.removeAll { $0.attempt == log.attempt }
        logs.append(log)
        logs.sort { $0.attempt < $1.attempt }
        graphs[id.graph]?.logs[id.index] = logs
    }

    /// The finished graphs that exceed these bounds.
    package func prunable(beyond bounds: StoreRetention.Bounds) -> [GraphID] {
        StoreRetention.dropped(graphs.values.map(\.entry), beyond: bounds) { id in
            graphs[id].map { $0.weight ?? $0.bytes } ?? 0
        }
    }

    /// Computes the size of each finished graph once, for callers that ask often.
    package mutating func weigh() {
        // The graphs are independent, so their order does not matter.
        for id in Array(graphs.keys) {
            guard let graph = graphs[id] else { continue }
            if !graph.entry.hasEnded {
                // A graph that was reopened changes its size.
                graphs[id]?.weight = nil
            } else if graph.weight == nil {
                graphs[id]?.weight = graph.bytes
            }
        }
    }

    /// Rows of operations, attempts, outputs and logs.
    package var rowCount: Int {
        graphs.values.reduce(0) { sum, graph in
            sum + graph.operations.count + graph.ranges.all.count + graph.attempts.count
                + graph.outputs.count
                + graph.logs.count
        }
    }

    /// Removes the names of those of these workers that no attempt refers to, and returns those
    /// workers.
    package mutating func forget(workers gone: [Incarnation]) -> [Incarnation] {
        var used: Set<Incarnation> = []
        for graph in graphs.values {
            for attempts in graph.attempts.values { used.formUnion(attempts.map(\.worker)) }
        }
        let unused = gone.filter { !used.contains($0) }
        for worker in unused { workers[worker] = nil }
        return unused
    }

    /// Drops finished graphs; only their entries and outcomes remain.
    package mutating func drop(_ dropped: [GraphID]) {
        for id in dropped {
            guard let old = graphs[id], old.entry.hasEnded else { continue }
            var outcomes = OutcomeRuns()
            for index in 0..<old.entry.operationCount {
                let row = old.operations[index]
                if let kind = row.map({ $0.outcome }) ?? old.ranges[index]?.outcome?.kind {
                    outcomes.append(kind)
                }
            }
            self.outcomes.insert(id, outcomes)
            tombstones[id] = Tombstone(
                name: old.entry.name,
                submittedAt: old.entry.submittedAt,
                finishedAt: old.entry.finishedAt,
                operationCount: old.entry.operationCount
            )
            graphs[id] = nil
        }
    }
}

// MARK: - Reading

extension StoreImage {
    /// The state that a coordinator needs to resume.
    package var state: StoredState {
        var state = StoredState(reign: reign, epoch: epoch)
        state.lastEvent = lastEvent
        let ids = Array(graphs.keys) + Array(tombstones.keys)
        state.graphs = ids.sorted().compactMap { id in
            graphs[id].map(stored) ?? tombstones[id].map { stored($0.entry(id)) }
        }
        state.queues = queues.keys.sorted().compactMap { queues[$0] }
        state.keys = keys.keys.sorted().compactMap { keys[$0] }
        state.rates = rates.keys.sorted().compactMap { rates[$0] }
        state.triggers = triggers.keys.sorted().compactMap { id in
            triggers[id].map { stored in
                RestoredTrigger(
                    trigger: stored.trigger,
                    state: stored.state,
                    firings: stored.firings.keys.sorted().compactMap { stored.firings[$0] }
                )
            }
        }
        for id in workers.keys.sorted(by: { $0.rawValue < $1.rawValue }) {
            if let name = workers[id] { state.workers.append(StoredWorker(id, name: name)) }
        }
        for id in open.keys.sorted() {
            guard let number = open[id], let attempt = attempt(number, of: id) else { continue }
            state.inFlight.append(StoredInFlight(attempt, of: id))
        }
        state.inFlight.sort { $0.attempt < $1.attempt }
        return state
    }

    private func stored(_ graph: Graph) -> StoredGraph {
        var stored = StoredGraph(graph.entry, contents: graph.contents)
        let rows = graph.operations.keys.sorted().compactMap { graph.operations[$0]?[$0] }
        stored.operations = graph.ranges.merged(with: rows)
        stored.dependencyChanges = graph.dependencyChanges
        return stored
    }

    private func stored(_ tombstone: GraphEntry) -> StoredGraph {
        var stored = StoredGraph(tombstone, contents: [])
        stored.outcomes = outcomes[tombstone.id]
        return stored
    }

    package func output(of operation: OperationID) -> Payload? {
        graphs[operation.graph]?.outputs[operation.index]
    }

    package func log(of operation: OperationID) -> [StoredLog] {
        graphs[operation.graph]?.logs[operation.index] ?? []
    }

    package func loggedOperations(of graph: GraphID) -> [UInt32] {
        graphs[graph]?.logs.filter { !$1.isEmpty }.keys.sorted() ?? []
    }

    package func attempts(of operation: OperationID) -> [StoredAttempt] {
        graphs[operation.graph]?.attempts[operation.index] ?? []
    }

    package func attempts(
        of graph: GraphID,
        in operations: Range<UInt32>
    ) -> [StoreChanges.Attempt] {
        guard let kept = graphs[graph]?.attempts else { return [] }
        return operations.flatMap { index in
            (kept[index] ?? []).map { attempt in
                StoreChanges.Attempt(
                    operation: OperationID(graph: graph, index: index),
                    attempt: attempt
                )
            }
        }
    }

    package func events(after: UInt64, limit: Int) -> [StoredEvent] {
        // Event numbers have no gaps.
        guard let first = kept.first?.sequence, after < lastEvent else { return [] }
        let start = after < first ? 0 : Int(after - first) + 1
        var events: [StoredEvent] = []
        var bytes = 0
        for event in kept[start...].prefix(max(0, limit)) where bytes < StoredEvent.pageBytes {
            bytes += event.body.count
            events.append(event)
        }
        return events
    }
}

extension StoreImage: StoreLookup {
    package func graph(_ id: GraphID) -> GraphEntry? {
        graphs[id]?.entry ?? tombstones[id]?.entry(id)
    }

    package func operation(_ id: OperationID) -> StoredOperation? {
        guard let place = graphs.index(forKey: id.graph) else { return nil }
        return graphs.values[place].operations[id.index]?[id.index]
            ?? graphs.values[place].ranges[id.index]
    }

    package func changedOperations(in range: OperationRange) -> [OperationID] {
        guard let place = graphs.index(forKey: range.graph) else { return [] }
        var changed = Set(graphs.values[place].ranges.indices(among: range.indices))
        let rows = graphs.values[place].operations
        if rows.count < range.count {
            changed.formUnion(rows.keys.filter { range.indices.contains($0) })
        } else {
            changed.formUnion(range.indices.filter { rows[$0] != nil })
        }
        return changed.map { range[$0] }
    }

    package func openAttempt(of operation: OperationID) -> StoredAttempt? {
        open[operation].flatMap { attempt($0, of: operation) }
    }

    package func openOperations(of graph: GraphID) -> [OperationID] {
        open.keys.filter { $0.graph == graph }.sorted()
    }

    package func attempt(_ id: AttemptID, of operation: OperationID) -> StoredAttempt? {
        attempts(of: operation).first { $0.id == id }
    }

    package func queue(_ name: String) -> StoredQueue? { queues[name] }

    package func key(_ name: String) -> StoredKey? { keys[name] }

    package func rate(_ scope: RateScope) -> StoredRate? { rates[scope] }
    package func hasTrigger(_ id: TriggerID) -> Bool { triggers[id] != nil }

    package func logSizes(of operation: OperationID) -> [(attempt: AttemptID, bytes: Int)] {
        log(of: operation).map { ($0.attempt, $0.log.count) }
    }

    package var firstEvent: UInt64 { kept.first?.sequence ?? lastEvent + 1 }
}

extension [StoredAttempt] {
    /// Keeps the attempts in the order of their numbers, each once. The new attempt is nearly
    /// always the last one.
    fileprivate mutating func keep(_ attempt: StoredAttempt) {
        guard let last, attempt.id <= last.id else { return append(attempt) }
        if last.id == attempt.id {
            self[count - 1] = attempt
            return
        }
        removeAll { $0.id == attempt.id }
        append(attempt)
        sort { $0.id < $1.id }
    }
}

extension StoredGraph {
    /// Makes a graph from its entry; the caller sets operations, outcomes and changes.
    package init(_ entry: GraphEntry, contents: [StoredContents]) {
        self.init(
            id: entry.id,
            contents: contents,
            submittedAt: entry.submittedAt,
            isOpen: entry.isOpen
        )
        name = entry.name
        finishedAt = entry.finishedAt
        isTombstone = entry.isTombstone
        suspension = entry.suspension
        cancelReason = entry.cancelReason
    }
}

extension StoredInFlight {
    package init(_ attempt: StoredAttempt, of operation: OperationID) {
        self.init(
            attempt: attempt.id,
            operation: operation,
            ordinal: attempt.ordinal,
            worker: attempt.worker,
            hasStarted: attempt.startedAt != nil,
            startedAt: attempt.startedAt
        )
    }
}

extension StoreRecord {
    /// The operation whose dependencies the record changes; `nil` for other records.
    package var changedDependent: OperationID? {
        switch self {
        case .dependencyAdded(let operation, _, _), .dependencyRemoved(let operation, _): operation
        case .graphAdded, .operationsAdded, .graphClosed, .granted, .started, .resumed,
            .attemptEnded, .finished, .rangeFinished, .retryScheduled, .cancelled, .suspended,
            .queueLimit,
            .queuePriority, .priority, .keyLimit, .rateSet, .rateUsed, .reopened, .delayed,
            .deadlinePassed,
            .queueDefined, .queueReset, .keyReset, .trigger:
            nil
        }
    }
}
