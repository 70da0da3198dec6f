package import OperonModel
package import OperonPorts

/// A small truth in memory: what a fake coordinator answers from. A value: nothing happens in it by
/// itself, time included, which goes on by a second with everything that happens.
package struct FakeTruth: Sendable {
    package var graphs: [FakeGraph] = []
    package var queues: [String: FakeQueue] = [:]
    /// How many may hold a key.
    package var keys: [String: Int] = [:]
    package var workers: [WorkerView] = []
    /// From the first that is kept.
    package internal(set) var events: [EventView] = []
    /// Of the last event; 0: there was none.
    package internal(set) var lastSequence: UInt64 = 0
    /// 2026-01-01T00:00:00Z at first.
    package var now = WallTime(nanosecondsSince1970: 1_767_225_600_000_000_000)
    /// What a copy of the store consists of.
    package var backup = [UInt8](repeating: 7, count: 4_096)
    /// Whether nothing starts any more when a suspension is answered.
    package var suspensionsAreEffective = true
    /// Whether a copy stops in its middle, and never ends.
    package var backupStalls = false
    package var broker = "ok"
    package var store = "ok"
    /// By key: what was submitted with it, and what it became.
    var answered: [String: FakeAnswer] = [:]
    /// What was printed since the streams were fed last.
    var printed: [LogView] = []
    var attemptCount: UInt64 = 0
    /// How operations were completed from outside, in order.
    package internal(set) var completions: [FakeCompletion] = []

    package init() {}
}

package struct FakeCompletion: Hashable, Sendable {
    package let attempt: AttemptID?
    package let completion: Completion
}

package struct FakeQueue: Hashable, Sendable {
    package var maxConcurrentOperationCount: Int?
    package var priority = QueuePriority.normal
    package var suspension: Suspension?

    package init() {}
}

package struct FakeGraph: Sendable {
    package let id: UInt32
    package var name: String
    package var isOpen: Bool
    package var operations: [FakeOperation] = []
    package var suspension: Suspension?
    package var cancelReason: String?
    package var submittedBy: String
    package var submittedAt: WallTime
    package var finishedAt: WallTime?
    package var traceParent: String?
    var indices: [String: UInt32] = [:]
    var unfinished = 0
}

package struct FakeEdge: Hashable, Sendable {
    package var on: OperationID
    package var condition: DependencyCondition
}

package struct FakeOperation: Sendable {
    package var description: OperationDescription
    package var state = OperationState.pending
    package var outcome: Outcome?
    package var output: Payload?
    package var logs: [LogView] = []
    package var attempts: [AttemptView] = []
    package var dependencies: [FakeEdge] = []
    package var dependents: [OperationID] = []
    package var suspension: Suspension?
    package var isCancelRequested = false
    package var round: UInt32 = 0
    package var finishedAt: WallTime?
}

// MARK: - Finding

extension FakeTruth {
    // Changed in place: a copy of a large graph for each change would take minutes.

    subscript(id: OperationID) -> FakeOperation {
        get { graphs[Int(id.graph.rawValue)].operations[Int(id.index)] }
        _modify { yield &graphs[Int(id.graph.rawValue)].operations[Int(id.index)] }
    }

    subscript(graph id: UInt32) -> FakeGraph {
        get { graphs[Int(id)] }
        _modify { yield &graphs[Int(id)] }
    }

    /// By number, by name (the newest of it) or `@latest`.
    package func graphID(_ text: String) throws(ClientError) -> UInt32 {
        if text == "@latest", let last = graphs.last { return last.id }
        if let found = graphs.last(where: { $0.name == text }) { return found.id }
        if let number = UInt32(text), number < graphs.count { return number }
        throw ClientError(.notFound, "There is no graph “\(text)”.")
    }

    /// As `@7` by number; by name, or by number where no operation has that name.
    package func operationID(_ selector: OperationSelector) throws(ClientError) -> OperationID {
        let graph = self[graph: try graphID(selector.graph)]
        let id = GraphID(rawValue: graph.id)
        if let index = selector.number, index < graph.operations.count {
            return OperationID(graph: id, index: index)
        }
        if let index = graph.indices[selector.operation] {
            return OperationID(graph: id, index: index)
        }
        if let index = UInt32(selector.operation), index < graph.operations.count {
            return OperationID(graph: id, index: index)
        }
        let message = "There is no operation “\(selector.operation)” in graph “\(graph.name)”."
        throw ClientError(.notFound, message)
    }

    package func name(of id: OperationID) -> OperationName {
        OperationName(
            graph: id.graph.rawValue,
            index: id.index,
            name: self[id].description.name
        )
    }

    func hasQueue(_ name: String) -> Bool { queues[name] != nil }
}

// MARK: - What happens

extension FakeTruth {
    /// A second later.
    @discardableResult
    package mutating func tick() -> WallTime {
        now = now + .seconds(1)
        return now
    }

    /// Notes that something happened.
    package mutating func note(
        _ kind: String,
        graph: UInt32? = nil,
        operation: OperationID? = nil,
        _ change: (inout EventView) -> Void = { _ in }
    ) {
        lastSequence += 1
        var event = EventView(sequence: lastSequence, at: TimeText(tick()), kind: kind)
        event.graph = operation?.graph.rawValue ?? graph
        event.graphName = event.graph.map { self[graph: $0].name }
        event.operation = operation.map(name(of:))
        change(&event)
        events.append(event)
    }

    /// Events up to this number are not kept any more.
    package mutating func forgetEvents(through sequence: UInt64) {
        events.removeAll { $0.sequence <= sequence }
    }

    /// An attempt at a ready operation starts on a worker.
    package mutating func start(
        _ selector: OperationSelector,
        on worker: String = "worker-1"
    ) throws(ClientError) {
        let id = try operationID(selector)
        guard self[id].state == .ready else {
            throw ClientError(.conflict, "“\(selector.operation)” is not ready to start.")
        }
        attemptCount += 1
        var attempt = AttemptView(
            id: "1.\(attemptCount)",
            number: UInt32(self[id].attempts.count + 1),
            worker: self[id].description.work.isExternal ? "" : worker,
            grantedAt: TimeText(now)
        )
        attempt.startedAt = TimeText(now)
        self[id].attempts.append(attempt)
        self[id].state = .executing
        note("started", operation: id) { event in
            event.attempt = attempt.id
            event.worker = attempt.worker.isEmpty ? nil : worker
        }
    }

    /// An operation that executes prints.
    package mutating func print(_ selector: OperationSelector, _ text: String) throws(ClientError) {
        let id = try operationID(selector)
        guard self[id].state == .executing, let attempt = self[id].attempts.last else {
            throw ClientError(.conflict, "“\(selector.operation)” does not execute.")
        }
        let view = LogView(operation: name(of: id), attempt: attempt.id, text: text, isTail: false)
        printed.append(view)
        if let last = self[id].logs.indices.last, self[id].logs[last].attempt == attempt.id {
            self[id].logs[last].text += text
        } else {
            self[id].logs.append(view)
        }
    }

    /// An operation gets its outcome, whatever its state; its dependents are released or skipped.
    package mutating func finish(
        _ selector: OperationSelector,
        _ outcome: Outcome = .succeeded,
        output: Payload? = nil
    ) throws(ClientError) {
        let id = try operationID(selector)
        guard self[id].state != .finished else {
            throw ClientError(.conflict, "“\(selector.operation)” has finished already.")
        }
        self[id].output = output
        end(id, outcome)
    }

    /// Everything of a graph that can start does, and succeeds.
    package mutating func run(_ graph: String) throws(ClientError) {
        let graphID = GraphID(rawValue: try self.graphID(graph))
        let count = UInt32(self[graph: graphID.rawValue].operations.count)
        var waiting = (0..<count).reversed().map { OperationID(graph: graphID, index: $0) }
        while let id = waiting.popLast() {
            let index = String(id.index)
            let selector = OperationSelector(graph: graphID.description, operation: index)
            if self[id].state == .ready { try start(selector) }
            guard self[id].state == .executing else { continue }
            try finish(selector)
            waiting += self[id].dependents.reversed()
        }
    }

    mutating func end(_ first: OperationID, _ outcome: Outcome) {
        var ending: [(OperationID, Outcome)] = [(first, outcome)]
        while let (id, outcome) = ending.popLast() {
            guard self[id].state != .finished else { continue }
            finishOne(id, outcome)
            for dependent in self[id].dependents where self[dependent].state == .pending {
                if let skipped = judge(dependent) { ending.append((dependent, skipped)) }
            }
        }
    }

    private mutating func finishOne(_ id: OperationID, _ outcome: Outcome) {
        let ending = AttemptText.ending(outcome)
        if self[id].state == .executing, let last = self[id].attempts.indices.last {
            self[id].attempts[last].endedAt = TimeText(now)
            self[id].attempts[last].ending = ending
            if case .failed(let error) = outcome {
                self[id].attempts[last].error = ErrorView(error)
            }
        }
        self[id].state = .finished
        self[id].outcome = outcome
        self[id].finishedAt = now
        let graph = id.graph.rawValue
        self[graph: graph].unfinished -= 1
        note("finished", operation: id) { event in
            event.outcome = outcome.kind
            if case .failed(let error) = outcome { event.error = ErrorView(error) }
            if case .cancelled(let reason) = outcome, !reason.isEmpty { event.reason = reason }
        }
        if self[graph: graph].unfinished == 0 { finishGraph(graph) }
    }

    mutating func finishGraph(_ graph: UInt32) {
        guard !self[graph: graph].isOpen else { return }
        self[graph: graph].finishedAt = now
        note("graphFinished", graph: graph)
    }

    /// Makes a pending operation ready if its dependencies allow it.
    /// - Returns: the outcome it must get if they forbid it.
    mutating func judge(_ id: OperationID) -> Outcome? {
        guard self[id].state == .pending else { return nil }
        var cause: OperationID?
        for edge in self[id].dependencies {
            guard let outcome = self[edge.on].outcome else { return nil }
            if !edge.condition.isSatisfied(by: outcome.kind), cause == nil { cause = edge.on }
        }
        guard let cause else {
            self[id].state = .ready
            return nil
        }
        return .skipped(cause: cause)
    }
}

enum AttemptText {
    /// As `AttemptView.ending` spells it.
    static func ending(_ outcome: Outcome) -> String? {
        switch outcome {
        case .succeeded: "succeeded"
        case .failed: "failed"
        case .cancelled: "cancelled"
        case .skipped: nil
        }
    }
}

/// What a key was used for.
struct FakeAnswer: Sendable {
    let graph: GraphDescription
    let target: String
    let id: UInt32
    /// Of an addition: the number of its first operation.
    let first: UInt32
}
