package import OperonModel
package import OperonPorts

// Commands that change one thing.

extension FakeTruth {
    package mutating func retry(
        graph: String,
        _ request: RetryRequest,
        by caller: String
    ) throws(ClientError) -> CommandView {
        let graphID = try graphID(graph)
        var chosen: [OperationID] = []
        if request.operations.isEmpty {
            for (index, operation) in self[graph: graphID].operations.enumerated() {
                let id = OperationID(graph: GraphID(rawValue: graphID), index: UInt32(index))
                let isCancelled = operation.outcome?.kind == .cancelled && request.cancelled
                if operation.outcome?.kind == .failed || isCancelled { chosen.append(id) }
            }
        } else {
            for name in request.operations {
                let id = try operationID(OperationSelector(graph: graph, operation: name))
                guard self[id].state == .finished else {
                    throw ClientError(.conflict, "“\(name)” has not finished.")
                }
                chosen.append(id)
            }
        }
        var waiting = chosen
        var reopened: [OperationID] = []
        while let id = waiting.popLast() {
            guard self[id].state == .finished else { continue }
            reopen(id)
            reopened.append(id)
            waiting += self[id].dependents.filter { self[$0].outcome?.kind == .skipped }
        }
        for id in reopened {
            if let outcome = judge(id) { end(id, outcome) }
        }
        return CommandView(
            affected: reopened.count,
            finished: 0,
            running: 0,
            released: 0,
            isEffective: true
        )
    }

    private mutating func reopen(_ id: OperationID) {
        self[id].state = .pending
        self[id].outcome = nil
        self[id].finishedAt = nil
        self[id].isCancelRequested = false
        self[id].round += 1
        self[graph: id.graph.rawValue].unfinished += 1
        self[graph: id.graph.rawValue].finishedAt = nil
        note("reopened", operation: id)
    }

    package mutating func complete(
        _ selector: OperationSelector,
        attempt: AttemptID?,
        with completion: Completion
    ) throws(ClientError) -> OperationView {
        let id = try operationID(selector)
        let field = "completion of “\(shown(id))”"
        guard self[id].description.work.isExternal else {
            let why = "it is not external: only its worker can complete it"
            throw ClientError(.invalid(field: field, why: why))
        }
        guard self[id].state != .finished else {
            throw ClientError(.alreadyFinished(name: shown(id)))
        }
        guard self[id].state == .executing, let last = self[id].attempts.last else {
            throw ClientError(.invalid(field: field, why: "it has not started"))
        }
        if let attempt, attempt.description != last.id {
            let name = "\(shown(id)) (attempt \(attempt))"
            throw ClientError(.alreadyFinished(name: name))
        }
        completions.append(FakeCompletion(attempt: attempt, completion: completion))
        switch completion {
        case .succeeded(let output):
            self[id].output = output.isEmpty ? nil : output
            end(id, .succeeded)
        case .failed(let error): end(id, .failed(error))
        case .cancelled(let reason): end(id, .cancelled(reason: reason))
        }
        return view(id)
    }

    package mutating func setPriority(
        of selector: OperationSelector,
        to priority: QueuePriority
    ) throws(ClientError) -> OperationView {
        let id = try operationID(selector)
        try refuseStarted(id, shown(id))
        self[id].description.priority = priority
        note("priority", operation: id)
        return view(id)
    }

    private func refuseStarted(_ id: OperationID, _ name: String) throws(ClientError) {
        switch self[id].state {
        case .pending, .ready: return
        case .dispatched, .executing: throw ClientError(.alreadyStarted(name: name))
        case .finished: throw ClientError(.alreadyFinished(name: name))
        }
    }

    package mutating func addDependency(
        of selector: OperationSelector,
        on dependency: OperationSelector,
        _ condition: DependencyCondition
    ) throws(ClientError) -> OperationDetail {
        let id = try operationID(selector)
        let on = try operationID(dependency)
        try refuseStarted(id, shown(id))
        if let path = path(from: on, to: id) {
            throw ClientError(.dependencyCycle(path: [shown(id)] + path))
        }
        if let known = self[id].dependencies.first(where: { $0.on == on }) {
            guard known.condition == condition else {
                throw ClientError(
                    .conflict,
                    "“\(shown(id))” depends on “\(shown(on))” already, with the condition "
                        + "\(known.condition.name): remove that dependency first."
                )
            }
            return detail(id)
        }
        self[id].dependencies.append(FakeEdge(on: on, condition: condition))
        if !self[on].dependents.contains(id) { self[on].dependents.append(id) }
        self[id].state = .pending
        note("dependencyAdded", operation: id)
        if let outcome = judge(id) { end(id, outcome) }
        return detail(id)
    }

    /// The names from one operation along its dependencies to another.
    private func path(from first: OperationID, to last: OperationID) -> [String]? {
        var seen: Set<OperationID> = []
        var paths = [[first]]
        while let path = paths.popLast(), let id = path.last {
            if id == last { return path.map { shown($0) } }
            guard seen.insert(id).inserted else { continue }
            paths += self[id].dependencies.map { path + [$0.on] }
        }
        return nil
    }

    package mutating func removeDependency(
        of selector: OperationSelector,
        on dependency: OperationSelector
    ) throws(ClientError) -> OperationDetail {
        let id = try operationID(selector)
        let on = try operationID(dependency)
        try refuseStarted(id, shown(id))
        guard self[id].dependencies.contains(where: { $0.on == on }) else {
            throw ClientError(
                .notFound,
                "“\(shown(id))” does not depend on “\(shown(on))”."
            )
        }
        self[id].dependencies.removeAll { $0.on == on }
        self[on].dependents.removeAll { $0 == id }
        note("dependencyRemoved", operation: id)
        if let outcome = judge(id) { end(id, outcome) }
        return detail(id)
    }

    /// As a person names it: `3/merge`.
    private func shown(_ id: OperationID) -> String { "\(id.graph)/\(name(of: id).name)" }

    package func queue(_ name: String) throws(ClientError) -> QueueView {
        guard hasQueue(name) else {
            throw ClientError(.notFound, "There is no queue “\(name)”.")
        }
        return view(queue: name)
    }

    package mutating func setQueue(
        _ name: String,
        _ change: QueueChange
    ) throws(ClientError) -> QueueView {
        do throws(Refusal) {
            let maximum = change.maxConcurrentOperationCount
            try QueueSettings(name: name, maxConcurrentOperationCount: maximum).check(Limits())
        } catch {
            throw ClientError(error)
        }
        if change.isUnlimited == true, change.maxConcurrentOperationCount != nil {
            let why = "not together with maxConcurrentOperationCount"
            throw ClientError(.invalid(field: "isUnlimited", why: why))
        }
        var queue = queues[name] ?? FakeQueue()
        if let count = change.maxConcurrentOperationCount {
            queue.maxConcurrentOperationCount = count
        }
        if change.isUnlimited == true { queue.maxConcurrentOperationCount = nil }
        if let priority = change.priority { queue.priority = priority }
        queues[name] = queue
        note("queueSet") { $0.queue = name }
        return view(queue: name)
    }

    package mutating func resetQueue(_ name: String) throws(ClientError) -> QueueView {
        _ = try queue(name)
        queues[name] = FakeQueue()
        note("queueSet") { $0.queue = name }
        return view(queue: name)
    }

    package mutating func resetKey(_ name: String) throws(ClientError) -> KeyView {
        _ = try key(name)
        keys[name] = 1
        note("keySet") { $0.key = name }
        return view(key: name)
    }

    package func key(_ name: String) throws(ClientError) -> KeyView {
        guard keys[name] != nil else {
            throw ClientError(.notFound, "There is no key “\(name)”.")
        }
        return view(key: name)
    }

    package mutating func setKey(_ settings: KeySettings) throws(ClientError) -> KeyView {
        do throws(Refusal) { try settings.check(Limits()) } catch { throw ClientError(error) }
        keys[settings.name] = settings.limit
        note("keySet") { $0.key = settings.name }
        return view(key: settings.name)
    }

    package mutating func drain(worker: String) throws(ClientError) -> WorkerView {
        guard let index = workers.firstIndex(where: { $0.name == worker || $0.id == worker }) else {
            throw ClientError(.notFound, "There is no worker “\(worker)”.")
        }
        workers[index].status = "draining"
        note("workerDraining") { $0.worker = worker }
        return workers[index]
    }
}
