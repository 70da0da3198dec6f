package import OperonModel
package import OperonPorts

// What the truth looks like to clients.

extension FakeTruth {
    package func view(graph id: UInt32) -> GraphView {
        let graph = self[graph: id]
        var counts = StateCounts()
        for operation in graph.operations { counts.count(operation) }
        var view = GraphView(
            id: id,
            name: graph.name,
            status: status(of: graph, counts),
            isOpen: graph.isOpen,
            submittedAt: TimeText(graph.submittedAt),
            counts: counts
        )
        view.suspension = graph.suspension.map(SuspensionView.init)
        view.cancelReason = graph.cancelReason
        view.submittedBy = graph.submittedBy.isEmpty ? nil : graph.submittedBy
        view.finishedAt = graph.finishedAt.map(TimeText.init)
        if counts.unfinished == 0, !graph.isOpen {
            view.exitCode =
                counts.failed > 0 ? 1 : counts.cancelled > 0 ? 3 : counts.skipped > 0 ? 7 : 0
        }
        return view
    }

    private func status(of graph: FakeGraph, _ counts: StateCounts) -> GraphStatus {
        if counts.unfinished == 0 { return graph.isOpen ? .idle : .finished }
        if graph.cancelReason != nil { return .cancelling }
        return graph.suspension == nil ? .running : .suspended
    }

    package func view(_ id: OperationID) -> OperationView {
        let operation = self[id]
        var view = OperationView(
            graph: id.graph.rawValue,
            index: id.index,
            name: operation.description.name,
            kind: operation.description.work.kind,
            queue: operation.description.queue,
            priority: operation.description.priority
                ?? queues[operation.description.queue]?.priority ?? .normal,
            state: operation.state
        )
        view.outcome = operation.outcome?.kind
        switch operation.outcome {
        case .failed(let error): view.error = ErrorView(error)
        case .cancelled(let reason): view.reason = reason.isEmpty ? nil : reason
        case .skipped(let cause): view.skippedFor = name(of: cause)
        case .succeeded, nil: break
        }
        view.isCancelRequested = operation.isCancelRequested
        view.attempts = UInt32(operation.attempts.count)
        view.round = operation.round
        view.finishedAt = operation.finishedAt.map(TimeText.init)
        return view
    }

    package func detail(_ id: OperationID) -> OperationDetail {
        let operation = self[id]
        var detail = OperationDetail(
            operation: view(id),
            graphName: self[graph: id.graph.rawValue].name
        )
        detail.summary = operation.description.summary.isEmpty ? nil : operation.description.summary
        detail.timeout = operation.description.timeout.map { $0 / .seconds(1) }
        detail.dependencies = operation.dependencies.map { edge in
            DependencyView(
                operation: name(of: edge.on),
                condition: edge.condition,
                state: self[edge.on].state,
                outcome: self[edge.on].outcome?.kind
            )
        }
        let shown = 100
        detail.dependents = operation.dependents.prefix(shown).map(name(of:))
        detail.moreDependents = max(0, operation.dependents.count - shown)
        detail.attempts = operation.attempts
        detail.reasons = reasons(id)
        return detail
    }

    package func explanation(_ id: OperationID) -> Explanation {
        var explanation = Explanation(operation: view(id), reasons: reasons(id))
        var current = id
        while let next = cause(of: current) {
            explanation.chain.append(view(next))
            current = next
        }
        let reasons = current == id ? [] : reasons(current)
        if !reasons.isEmpty { explanation.rootReasons = reasons }
        return explanation
    }

    private func cause(of id: OperationID) -> OperationID? {
        if case .skipped(let cause)? = self[id].outcome { return cause }
        guard self[id].state == .pending else { return nil }
        return self[id].dependencies.first { self[$0.on].outcome == nil }?.on
    }

    private func reasons(_ id: OperationID) -> [ReasonView] {
        let operation = self[id]
        var reasons: [ReasonView] = []
        guard operation.state == .pending || operation.state == .ready else { return reasons }
        let waiting = operation.dependencies.filter { self[$0.on].outcome == nil }
        if !waiting.isEmpty {
            let names = waiting.map { "“\(name(of: $0.on).name)”" }
            let text = "It waits for \(names.joined(separator: " and "))."
            var reason = ReasonView(code: "dependencies", text: text)
            reason.operations = waiting.map { name(of: $0.on) }
            reasons.append(reason)
        }
        func suspended(_ what: String, _ code: String, _ suspension: Suspension?) {
            guard let suspension else { return }
            var text = "\(what) suspended"
            if !suspension.by.isEmpty { text += " by \(suspension.by)" }
            if let until = suspension.until { text += " until \(TimeText(until))" }
            if !suspension.reason.isEmpty { text += ": \(suspension.reason)" }
            var reason = ReasonView(code: code, text: text + ".")
            reason.until = suspension.until.map(TimeText.init)
            reasons.append(reason)
        }
        suspended("It is", "operationSuspended", operation.suspension)
        suspended("Its graph is", "graphSuspended", self[graph: id.graph.rawValue].suspension)
        let queue = queues[operation.description.queue]
        let queueName = operation.description.queue
        suspended("Queue “\(queueName)” is", "queueSuspended", queue?.suspension)
        for key in operation.description.exclusive where operation.state == .ready {
            let key = view(key: key)
            guard key.held >= key.limit else { continue }
            let holders = key.holders.map { "“\($0.name)”" }.joined(separator: " and ")
            let text = "It needs the key “\(key.name)”, held by \(holders) (limit \(key.limit))."
            var reason = ReasonView(code: "keyHeld", text: text)
            reason.operations = key.holders
            reasons.append(reason)
        }
        if reasons.isEmpty {
            reasons.append(ReasonView(code: "noFreeSlot", text: Self.busy))
        }
        return reasons
    }

    private static let busy = "Every worker that can run it is busy."

    package func view(queue name: String) -> QueueView {
        let queue = queues[name] ?? FakeQueue()
        var ready = 0
        var inFlight = 0
        var unfinished = 0
        for graph in graphs {
            for operation in graph.operations where operation.description.queue == name {
                unfinished += operation.state == .finished ? 0 : 1
                ready += operation.state == .ready ? 1 : 0
                let runs = operation.state == .dispatched || operation.state == .executing
                inFlight += runs ? 1 : 0
            }
        }
        var view = QueueView(
            name: name,
            maxConcurrentOperationCount: queue.maxConcurrentOperationCount,
            priority: queue.priority,
            isSuspended: queue.suspension != nil,
            ready: ready,
            inFlight: inFlight,
            unfinished: unfinished
        )
        view.suspension = queue.suspension.map(SuspensionView.init)
        return view
    }

    package func view(key name: String) -> KeyView {
        var view = KeyView(name: name, limit: keys[name] ?? 1, held: 0, waiting: 0)
        for graph in graphs {
            for (index, operation) in graph.operations.enumerated()
            where operation.description.exclusive.contains(name) {
                view.waiting += operation.state == .ready ? 1 : 0
                guard operation.state == .dispatched || operation.state == .executing else {
                    continue
                }
                let id = OperationID(graph: GraphID(rawValue: graph.id), index: UInt32(index))
                view.held += 1
                view.holders.append(self.name(of: id))
            }
        }
        return view
    }

    package func status() -> ClusterView {
        var counts = StateCounts()
        for graph in graphs {
            for operation in graph.operations { counts.count(operation) }
        }
        var view = ClusterView(
            version: "0.0.0",
            reign: "00000000000000fa",
            epoch: 1,
            startedAt: TimeText(WallTime(nanosecondsSince1970: 1_767_225_600_000_000_000)),
            now: TimeText(now),
            broker: broker,
            store: store,
            workers: workers.count,
            slots: workers.reduce(0) { $0 + $1.slots },
            busySlots: workers.reduce(0) { $0 + $1.busySlots },
            openGraphs: graphs.count { $0.isOpen || $0.unfinished > 0 },
            counts: counts
        )
        view.lastEvent = lastSequence
        return view
    }

    package func page(_ query: GraphQuery) -> GraphPage {
        var found: [GraphView] = []
        for graph in graphs.reversed() {
            if let after = query.after, graph.id >= after { continue }
            if let name = query.name, graph.name != name { continue }
            let view = view(graph: graph.id)
            if let status = query.status, view.status != status { continue }
            if found.count == query.limit {
                return GraphPage(graphs: found, next: found.last?.id)
            }
            found.append(view)
        }
        return GraphPage(graphs: found, next: nil)
    }

    package func page(_ graph: UInt32, _ query: OperationQuery) -> OperationPage {
        var found: [OperationView] = []
        let id = GraphID(rawValue: graph)
        let first = query.after.map { Int($0) + 1 } ?? 0
        let operations = self[graph: graph].operations
        guard first < operations.count else { return OperationPage(operations: [], next: nil) }
        for index in first..<operations.count {
            let operation = operations[index]
            if let state = query.state, operation.state != state { continue }
            if let outcome = query.outcome, operation.outcome?.kind != outcome { continue }
            if let queue = query.queue, operation.description.queue != queue { continue }
            if found.count == query.limit {
                return OperationPage(operations: found, next: found.last?.index)
            }
            found.append(view(OperationID(graph: id, index: UInt32(index))))
        }
        return OperationPage(operations: found, next: nil)
    }
}

extension FakeTruth {
    package func page(queue name: String, _ query: QueueOperationQuery) -> QueuePage {
        var found: [OperationView] = []
        let start = query.after.flatMap { OperationID($0) }
        for graph in graphs {
            for (index, operation) in graph.operations.enumerated()
            where operation.description.queue == name {
                let id = OperationID(graph: GraphID(rawValue: graph.id), index: UInt32(index))
                if let start, id < start { continue }
                guard (operation.state == .finished) == query.wantsFinished else { continue }
                if let state = query.state, operation.state != state { continue }
                if let outcome = query.outcome, operation.outcome?.kind != outcome { continue }
                guard found.count < query.limit else {
                    return QueuePage(operations: found, next: id.description)
                }
                found.append(view(id))
            }
        }
        return QueuePage(operations: found, next: nil)
    }

    /// What it was given as its own.
    package func input(_ id: OperationID) -> Payload? {
        switch self[id].description.work {
        case .registered(_, let input), .external(let input): input.isEmpty ? nil : input
        case .nothing, .wait, .command: nil
        }
    }
}

extension SuspensionView {
    init(_ suspension: Suspension) {
        self.init(
            by: suspension.by.isEmpty ? nil : suspension.by,
            reason: suspension.reason.isEmpty ? nil : suspension.reason,
            until: suspension.until.map(TimeText.init)
        )
    }
}

extension StateCounts {
    mutating func count(_ operation: FakeOperation) {
        switch (operation.state, operation.outcome?.kind) {
        case (.pending, _): pending += 1
        case (.ready, _): ready += 1
        case (.dispatched, _): dispatched += 1
        case (.executing, _): executing += 1
        case (.finished, .succeeded), (.finished, nil): succeeded += 1
        case (.finished, .failed): failed += 1
        case (.finished, .cancelled): cancelled += 1
        case (.finished, .skipped): skipped += 1
        }
    }
}
