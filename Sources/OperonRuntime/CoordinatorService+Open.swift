import OperonCore
import OperonModel
import OperonPorts
import OperonWire

// What clients change of a graph that was submitted: more operations, other dependencies, another
// round.
extension CoordinatorService {
    /// Adds to an open graph. Dependencies name operations of the addition, else of the graph,
    /// else, as `GRAPH/OPERATION`, of another graph.
    func add(
        _ addition: Submission,
        to graph: GraphID,
        _ caller: String,
        _ limits: Limits
    ) async throws(ClientError) -> GraphView {
        let description = named(addition.graph, in: graph)
        let body: [UInt8]
        do throws(WireError) {
            body = try StoreFormat.encode(description, failFast: false)
        } catch {
            throw ClientError(.tooLarge, error.message)
        }
        // Loaded before: what is added may start in the same step.
        let number = Int(graph.rawValue)
        var outputs = try await outputs(wantedBy: description.operations, of: graph)
        while contents[number].wanted(by: description.operations).contains(where: { index in
            isMissing(index, of: graph) && !outputs.contains { $0.index == index }
        }) {
            outputs = try await self.outputs(wantedBy: description.operations, of: graph)
        }
        try mayChange()
        guard scheduler.isOpen(graph) else {
            throw ClientError(.graphClosed(name: register[graph].name))
        }
        let compiled = try compile(description, to: graph, limits)
        var kept = StoredContents(
            graph: graph,
            name: register[graph].name,
            submitter: caller,
            first: compiled.first,
            operationCount: description.operations.count,
            body: body
        )
        kept.needs = Self.needs(compiled.graph.outer, of: graph)
        do throws(WireError) {
            try contents[number].append(description.operations, body)
        } catch {
            throw ClientError(.invalid, error.message)
        }
        for output in outputs { contents[number].keep(output.payload, of: output.index) }
        keeping?.submitted.append(kept)
        // Checked before: nothing else may be refused.
        if let refusal = handle([.operationsAdded(graph, compiled)]) {
            throw ClientError(refusal)
        }
        try await durable()
        return view(of: graph)
    }

    /// Outputs of finished operations that nobody was known to ask for.
    private func outputs(
        wantedBy operations: [OperationDescription],
        of graph: GraphID
    ) async throws(ClientError) -> [(index: UInt32, payload: Payload)] {
        guard let store else { return [] }
        var outputs: [(index: UInt32, payload: Payload)] = []
        for index in contents[Int(graph.rawValue)].wanted(by: operations)
        where isMissing(index, of: graph) {
            let id = OperationID(graph: graph, index: index)
            do {
                outputs.append((index, try await store.output(of: id) ?? .empty))
            } catch {
                throw ClientError(.unavailable, "\(error)")
            }
        }
        return outputs
    }

    func isMissing(_ index: UInt32, of graph: GraphID) -> Bool {
        let id = OperationID(graph: graph, index: index)
        return scheduler.outcome(of: id) == .succeeded
            && !contents[Int(graph.rawValue)].hasKept(index)
    }

    private func compile(
        _ description: GraphDescription,
        to graph: GraphID,
        _ limits: Limits
    ) throws(ClientError) -> CompiledAddition {
        do throws(Refusal) {
            return try CompiledAddition.compile(
                description,
                to: scheduler.additionBase(of: graph),
                limits: limits
            ) { name in
                resolve(name, in: graph)
            }
        } catch {
            throw ClientError(error)
        }
    }

    /// The operation that a dependency of an operation of this graph names.
    func resolve(_ name: String, in graph: GraphID?) -> OperationID? {
        if let graph, let index = contents[Int(graph.rawValue)].number(of: name) {
            return OperationID(graph: graph, index: index)
        }
        guard let slash = name.firstIndex(of: "/"),
            let other = register.find(String(name[..<slash])), other != graph
        else { return nil }
        let operation = String(name[name.index(after: slash)...])
        let number = Int(other.rawValue)
        if let index = contents[number].number(of: operation) {
            return OperationID(graph: other, index: index)
        }
        guard let index = UInt32(operation), Int(index) < scheduler.operationCount(of: other)
        else { return nil }
        return OperationID(graph: other, index: index)
    }

    /// The same with other graphs by their numbers: their names may be given to newer ones.
    func named(_ description: GraphDescription, in graph: GraphID?) -> GraphDescription {
        let own = Set(description.operations.map(\.name))
        var description = description
        for index in description.operations.indices {
            for place in description.operations[index].dependencies.indices {
                let name = description.operations[index].dependencies[place].name
                guard name.contains("/"), !own.contains(name),
                    let found = resolve(name, in: graph), found.graph != graph
                else { continue }
                let slash = name.firstIndex(of: "/") ?? name.startIndex
                description.operations[index].dependencies[place].name =
                    found.graph.description + name[slash...]
            }
        }
        return description
    }

    static func needs(_ outer: [OuterDependency], of graph: GraphID?) -> [GraphID] {
        Set(outer.map(\.on.operation.graph)).filter { $0 != graph }.sorted()
    }

    /// A graph whose dependencies name operations of other graphs, as `GRAPH/OPERATION`.
    func compileAmongOthers(
        _ description: GraphDescription,
        _ limits: Limits
    ) throws(Refusal) -> (GraphDescription, CompiledGraph) {
        let named = named(description, in: nil)
        let compiled = try CompiledGraph.compile(named, limits: limits) { name in
            resolve(name, in: nil)
        }
        return (named, compiled)
    }

    func close(_ graph: GraphID) async throws(ClientError) -> GraphView {
        try request(.graphClosed(graph))
        try await durable()
        return view(of: graph)
    }

    /// By names, or every operation that failed.
    func retry(
        _ graph: GraphID,
        _ request: RetryRequest
    ) async throws(ClientError) -> CommandView {
        var operations: [UInt32] = []
        for name in request.operations {
            let selector = OperationSelector(graph: graph.description, operation: name)
            operations.append(try find(selector).index)
        }
        let number = Int(graph.rawValue)
        // What the next round asks for may have been dropped when the last one was over. What is
        // decided now is sent after its commit, in another turn of this actor.
        var outputs: [(index: UInt32, payload: Payload)] = []
        var candidates: [UInt32]
        repeat {
            candidates = withoutSuccess(of: graph)
            let wanted = candidates.map { contents[number].operations[Int($0)] }
            let kept = Set(outputs.map(\.index))
            let missing = contents[number].wanted(by: wanted).contains {
                isMissing($0, of: graph) && !kept.contains($0)
            }
            guard missing else { break }
            outputs = try await self.outputs(wantedBy: wanted, of: graph)
        } while true
        let view = try perform(
            .retryRequested(graph, operations: operations, cancelled: request.cancelled)
        )
        for index in candidates
        where scheduler.state(of: OperationID(graph: graph, index: index)) != .finished {
            contents[number].reopened(index)
        }
        for output in outputs { contents[number].keep(output.payload, of: output.index) }
        return view
    }

    private func withoutSuccess(of graph: GraphID) -> [UInt32] {
        (0..<UInt32(scheduler.operationCount(of: graph))).filter { index in
            let outcome = scheduler.outcome(of: OperationID(graph: graph, index: index))
            return outcome != nil && outcome != .succeeded
        }
    }

    func addDependency(
        of operation: OperationID,
        on other: OperationID,
        _ condition: DependencyCondition
    ) throws(ClientError) {
        try request(.dependencyAdded(operation, on: other, condition))
    }

    func removeDependency(
        of operation: OperationID,
        on other: OperationID
    ) throws(ClientError) {
        try request(.dependencyRemoved(operation, on: other))
    }

    func setPriority(
        ofQueue name: String,
        to priority: QueuePriority
    ) throws(ClientError) {
        try request(.queuePrioritySet(queue: name, priority))
    }

    /// Returns when the worker has said that it takes nothing more.
    func drain(worker: String) async throws(ClientError) -> WorkerView {
        guard let found = status(ofWorker: worker) else {
            throw ClientError(.notFound, "There is no worker “\(worker)”.")
        }
        let incarnation = found.identity.incarnation
        guard incarnation != ownWorker else {
            throw ClientError(
                .conflict,
                "“\(found.identity.name)” is a part of the coordinator, and leaves when that ends."
            )
        }
        try request(.drainRequested(incarnation))
        let hasBegun = await wait(within: Self.drainPatience.seconds) {
            $0.hasBegunToDrain(incarnation)
        }
        guard hasBegun, let view = workerViews().first(where: { $0.id == "\(incarnation)" }) else {
            throw ClientError(
                .unavailable,
                "“\(found.identity.name)” is given nothing more, but has not said that it leaves:"
                    + " is it cut off? It is asked again when it is heard."
            )
        }
        return view
    }

    /// Several beats: its answer to the first order, and to those that repeat it.
    private static let drainPatience = Duration.seconds(15)

    /// The worker that is there, by its id or, the latest of them, by its name.
    private func status(ofWorker text: String) -> Scheduler.WorkerStatus? {
        let alive = query { $0.workerStatus(at: SystemClock.now()) }.filter(\.isAlive)
        return alive.first { "\($0.identity.incarnation)" == text }
            ?? alive.last { $0.identity.name == text }
    }
}
