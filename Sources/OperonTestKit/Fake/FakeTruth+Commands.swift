package import OperonModel
package import OperonPorts

// What commands do to the truth. `caller` is the name of who asks.

extension FakeTruth {
    package mutating func submit(
        _ submission: Submission,
        by caller: String
    ) throws(ClientError) -> GraphView {
        if let known = try answered(submission, target: "") { return view(graph: known.id) }
        var graph = FakeGraph(
            id: UInt32(graphs.count),
            name: submission.graph.name,
            isOpen: submission.isOpen,
            submittedBy: caller,
            submittedAt: now
        )
        graph.traceParent = submission.traceParent
        let before = self
        graphs.append(graph)
        do throws(ClientError) {
            try append(submission.graph, to: graph.id)
        } catch {
            self = before
            throw error
        }
        note("graphSubmitted", graph: graph.id) { $0.by = caller.isEmpty ? nil : caller }
        if graph.operations.isEmpty, self[graph: graph.id].unfinished == 0 {
            finishGraph(graph.id)
        }
        remember(submission, target: "", graph.id)
        return view(graph: graph.id)
    }

    package mutating func add(
        _ addition: Submission,
        to graph: String,
        by caller: String
    ) throws(ClientError) -> GraphView {
        let id = try graphID(graph)
        if let known = try answered(addition, target: String(id)) {
            return view(graph: id, firstAdded: known.first)
        }
        guard self[graph: id].isOpen else {
            throw ClientError(.graphClosed(name: self[graph: id].name))
        }
        let before = self
        let first = UInt32(self[graph: id].operations.count)
        do throws(ClientError) {
            try append(addition.graph, to: id)
        } catch {
            self = before
            throw error
        }
        note("graphAdded", graph: id) { $0.by = caller.isEmpty ? nil : caller }
        remember(addition, target: String(id), id, first: first)
        return view(graph: id, firstAdded: first)
    }

    private func view(graph: UInt32, firstAdded first: UInt32) -> GraphView {
        var view = view(graph: graph)
        view.firstAdded = first
        return view
    }

    private func answered(
        _ submission: Submission,
        target: String
    ) throws(ClientError) -> FakeAnswer? {
        guard let key = submission.idempotencyKey, let known = answered[key] else { return nil }
        guard known.graph == submission.graph, known.target == target else {
            throw ClientError(
                .conflict,
                "The idempotency key “\(key)” was used for another submission: take a new one."
            )
        }
        return known
    }

    private mutating func remember(
        _ submission: Submission,
        target: String,
        _ id: UInt32,
        first: UInt32 = 0
    ) {
        guard let key = submission.idempotencyKey else { return }
        answered[key] = FakeAnswer(graph: submission.graph, target: target, id: id, first: first)
    }

    private mutating func append(
        _ graph: GraphDescription,
        to id: UInt32
    ) throws(ClientError) {
        for settings in graph.queues {
            var queue = queues[settings.name] ?? FakeQueue()
            queue.maxConcurrentOperationCount = settings.maxConcurrentOperationCount
            queue.priority = settings.priority
            if settings.isSuspended { queue.suspension = Suspension() }
            queues[settings.name] = queue
        }
        for settings in graph.keys { keys[settings.name] = settings.limit }
        let first = UInt32(self[graph: id].operations.count)
        for description in graph.operations {
            let index = UInt32(self[graph: id].operations.count)
            if self[graph: id].indices.updateValue(index, forKey: description.name) != nil {
                throw ClientError(.duplicateOperation(name: description.name))
            }
            self[graph: id].operations.append(FakeOperation(description: description))
            if !hasQueue(description.queue) { queues[description.queue] = FakeQueue() }
            for key in description.exclusive where keys[key] == nil { keys[key] = 1 }
        }
        self[graph: id].unfinished += graph.operations.count
        for offset in graph.operations.indices {
            try link(graph.operations[offset], id, first + UInt32(offset))
        }
        if let path = cycle(in: id, from: first) {
            throw ClientError(.dependencyCycle(path: path))
        }
        for offset in graph.operations.indices {
            let operation = OperationID(
                graph: GraphID(rawValue: id),
                index: first + UInt32(offset)
            )
            if let outcome = judge(operation) { end(operation, outcome) }
        }
    }

    private mutating func link(
        _ description: OperationDescription,
        _ graph: UInt32,
        _ index: UInt32
    ) throws(ClientError) {
        let id = OperationID(graph: GraphID(rawValue: graph), index: index)
        for dependency in description.dependencies {
            guard let on = self[graph: graph].indices[dependency.name] else {
                let refusal = Refusal.unknownOperation(
                    name: dependency.name,
                    namedBy: description.name
                )
                throw ClientError(refusal)
            }
            let target = OperationID(graph: GraphID(rawValue: graph), index: on)
            self[id].dependencies.append(FakeEdge(on: target, condition: dependency.condition))
            self[target].dependents.append(id)
        }
    }

    /// The names of a cycle, if what was added from here on closed one.
    private func cycle(in graph: UInt32, from first: UInt32) -> [String]? {
        let operations = self[graph: graph].operations
        var left = operations.map { operation in
            operation.dependencies.count { $0.on.graph.rawValue == graph }
        }
        var free = left.indices.filter { left[$0] == 0 }
        var count = 0
        while let index = free.popLast() {
            count += 1
            for dependent in operations[index].dependents where dependent.graph.rawValue == graph {
                left[Int(dependent.index)] -= 1
                if left[Int(dependent.index)] == 0 { free.append(Int(dependent.index)) }
            }
        }
        guard count < operations.count, var at = left.indices.first(where: { left[$0] > 0 })
        else { return nil }
        var path: [Int] = []
        while !path.contains(at) {
            path.append(at)
            let next = operations[at].dependencies.first { left[Int($0.on.index)] > 0 }
            guard let next else { return nil }
            at = Int(next.on.index)
        }
        let loop = path[(path.firstIndex(of: at) ?? 0)...] + [at]
        return loop.map { operations[$0].description.name }
    }

    package mutating func close(graph: String) throws(ClientError) -> GraphView {
        let id = try graphID(graph)
        if self[graph: id].isOpen {
            self[graph: id].isOpen = false
            note("graphClosed", graph: id)
            if self[graph: id].unfinished == 0 { finishGraph(id) }
        }
        return view(graph: id)
    }

    // MARK: - Cancelling

    package mutating func cancel(
        _ target: TargetSelector,
        _ request: CancelRequest,
        by caller: String
    ) throws(ClientError) -> CommandView {
        var members: [OperationID]
        switch target {
        case .operation(let selector):
            members = [try operationID(selector)]
            if self[members[0]].state == .finished {
                throw ClientError(.alreadyFinished(name: selector.operation))
            }
            if request.cascade { members += followers(of: members[0]) }
        case .graph(let name):
            let id = try graphID(name)
            self[graph: id].cancelReason = request.reason
            note("graphCancelled", graph: id) { event in
                event.by = caller.isEmpty ? nil : caller
                event.reason = request.reason.isEmpty ? nil : request.reason
            }
            members = operations(of: id)
        case .queue(let name):
            guard hasQueue(name) else { throw noQueue(name) }
            members = graphs.flatMap { operations(of: $0.id) }
                .filter { self[$0].description.queue == name }
        }
        members.removeAll { self[$0].state == .finished }
        var answer = CommandView(
            affected: members.count,
            finished: 0,
            running: 0,
            released: 0,
            isEffective: true
        )
        answer.named = members.prefix(10).map(name(of:))
        for id in members where self[id].state != .finished {
            if self[id].state == .executing || self[id].state == .dispatched {
                self[id].isCancelRequested = true
                answer.running += 1
            } else {
                let ready = self[id].dependents.filter { self[$0].state == .ready }.count
                end(id, .cancelled(reason: request.reason))
                answer.released += self[id].dependents.count { self[$0].state == .ready } - ready
                answer.finished += 1
            }
        }
        return answer
    }

    private func operations(of graph: UInt32) -> [OperationID] {
        self[graph: graph].operations.indices.map {
            OperationID(graph: GraphID(rawValue: graph), index: UInt32($0))
        }
    }

    private func followers(of first: OperationID) -> [OperationID] {
        var found: [OperationID] = []
        var seen: Set<OperationID> = [first]
        var waiting = self[first].dependents
        while let id = waiting.popLast() {
            guard seen.insert(id).inserted else { continue }
            found.append(id)
            waiting += self[id].dependents
        }
        return found
    }

    private func noQueue(_ name: String) -> ClientError {
        ClientError(.notFound, "There is no queue “\(name)”.")
    }

    // MARK: - Suspending

    /// `nil`: resumes.
    package mutating func suspend(
        _ target: TargetSelector,
        _ suspension: Suspension?,
        by caller: String
    ) throws(ClientError) -> CommandView {
        var suspension = suspension
        suspension?.by = caller
        let kind = suspension == nil ? "resumed" : "suspended"
        func describe(_ event: inout EventView) {
            event.by = caller.isEmpty ? nil : caller
            if let reason = suspension?.reason, !reason.isEmpty { event.reason = reason }
        }
        var members: [OperationID]
        switch target {
        case .operation(let selector):
            let id = try operationID(selector)
            if self[id].state == .finished {
                throw ClientError(.alreadyFinished(name: selector.operation))
            }
            self[id].suspension = suspension
            note(kind, operation: id, describe)
            members = [id]
        case .graph(let name):
            let id = try graphID(name)
            self[graph: id].suspension = suspension
            note(kind, graph: id, describe)
            members = operations(of: id)
        case .queue(let name):
            guard hasQueue(name) else { throw noQueue(name) }
            queues[name]?.suspension = suspension
            note(kind) { event in
                event.queue = name
                describe(&event)
            }
            members = graphs.flatMap { operations(of: $0.id) }
                .filter { self[$0].description.queue == name }
        }
        members.removeAll { self[$0].state == .finished }
        let running = members.count { self[$0].state == .executing }
        return CommandView(
            affected: members.count,
            finished: 0,
            running: running,
            released: 0,
            isEffective: suspensionsAreEffective
        )
    }
}
