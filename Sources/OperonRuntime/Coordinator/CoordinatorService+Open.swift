import OperonCore
import OperonModel
import OperonPorts
import OperonWire

// What clients submit and add, and the dependencies and retries that they change.
extension CoordinatorService {
    /// Submits a graph. The same key with the same graph returns the graph of the first submission.
    func submitOnce(
        _ graph: GraphDescription,
        _ compiled: CompiledGraph,
        _ new: StoredContents
    ) async throws(ClientError) -> GraphID {
        try await once(graph.operations, new) { outputs in
            var kept = new
            kept.graph = submit(graph, compiled: compiled, kept: new, outputs: outputs)
            return kept
        }.graph
    }

    /// Adds to an open graph. A dependency names an operation of the addition, else of the graph,
    /// else, as `GRAPH/OPERATION`, of another graph. The same key with the same operations returns
    /// the result of the first addition.
    func add(
        _ addition: Submission,
        to graph: GraphID,
        _ caller: String
    ) async throws(ClientError) -> GraphView {
        let description = found(addition.graph, in: graph)
        var new = try StoredContents(description, failFast: false)
        new.graph = graph
        new.name = register[graph].name
        new.submitter = caller
        new.idempotencyKey = addition.idempotencyKey ?? ""
        let use = try await once(description.operations, new, addedTo: graph) {
            outputs throws(ClientError) in
            guard scheduler.isOpen(graph) else {
                throw ClientError(.graphClosed(name: register[graph].name))
            }
            let compiled = try compile(description, to: graph)
            var kept = new
            kept.first = compiled.first
            kept.needs = Self.needs(compiled.graph.outer, of: graph)
            do throws(WireError) {
                try keep(description.operations, of: kept)
            } catch {
                throw ClientError(.invalid, error.message)
            }
            keep(outputs)
            // Checked before: the scheduler has nothing else to refuse.
            if let refusal = handle([.operationsAdded(graph, compiled)]) {
                throw ClientError(worded(refusal))
            }
            return kept
        }
        var view = view(of: graph)
        view.firstAdded = use.first
        return view
    }

    /// Takes new operations, unless the client's key says that they were taken before.
    ///
    /// - Parameters:
    ///   - graph: The graph that they are added to; `nil`: they are a graph.
    ///   - take: Gives them to the scheduler, with the outputs that they need, and returns what
    ///     the store keeps of them.
    private func once(
        _ operations: [OperationDescription],
        _ new: StoredContents,
        addedTo graph: GraphID? = nil,
        _ take: ([OperationID: Payload]) throws(ClientError) -> StoredContents
    ) async throws(ClientError) -> (graph: GraphID, first: UInt32) {
        // Loaded first, because an operation may start in the same step.
        let outputs = try await outputs { contents.wanted(by: operations, of: graph) }
        try mayChange()
        let key = new.idempotencyKey
        let owned = GraphRegister.owned(key, by: new.submitter)
        let hash = key.isEmpty ? nil : ContentHash(of: new.body)
        if let hash, let use = register.use(of: owned, addedTo: graph) {
            guard use.hash == hash else {
                let other =
                    graph == nil
                    ? "a different graph, \(use.graph)"
                    : "other operations, added to graph \(use.graph) from number \(use.first) on"
                throw ClientError(
                    .conflict,
                    "The idempotency key “\(key)” was used for \(other).",
                    refusal: .alreadySubmitted(name: key)
                )
            }
            return (use.graph, use.first)
        }
        let kept = try take(outputs)
        if let hash, graph == nil {
            register.keepUse(of: owned, GraphRegister.Use(graph: kept.graph, hash: hash))
        } else if let hash {
            register.keepAddition(of: kept, hash, maximum: limits.additionKeys)
        }
        return (kept.graph, kept.first)
    }

    /// Keeps added operations, in memory and for the store.
    func keep(
        _ operations: [OperationDescription],
        of kept: StoredContents,
        by parent: UInt32? = nil
    ) throws(WireError) {
        let number = Int(kept.graph.rawValue)
        let first = contents[number].operations.count
        try contents[number].append(operations, kept.body, by: parent)
        contents.began(kept.graph, from: first)
        keeping?.submitted.append(kept)
    }

    /// Loads, from the store, outputs of finished operations that no dependent was known to need.
    /// `wanted` is asked again after each wait for the store, because the answer may change
    /// meanwhile, and may end the load by throwing. Nothing else runs between the last call of
    /// `wanted` and the return.
    func outputs(
        wanted: () throws(ClientError) -> [OperationID]
    ) async throws(ClientError) -> [OperationID: Payload] {
        guard let store else { return [:] }
        var outputs: [OperationID: Payload] = [:]
        while true {
            let missing = try wanted().filter { outputs[$0] == nil && isMissing($0) }
            guard !missing.isEmpty else { return outputs }
            // Waits for the latest decisions, so that they are read as well.
            try await durable()
            for operation in missing {
                do {
                    outputs[operation] = try await store.output(of: operation) ?? .empty
                } catch {
                    throw ClientError(.unavailable, "\(error)")
                }
            }
        }
    }

    /// Keeps outputs that operations will ask for.
    func keep(_ outputs: [OperationID: Payload]) {
        // The order does not matter: each output is kept on its own.
        for (operation, output) in outputs {
            contents[Int(operation.graph.rawValue)].keep(output, of: operation.index)
        }
    }

    func isMissing(_ operation: OperationID) -> Bool {
        scheduler.outcomeKind(of: operation) == .succeeded
            && !contents[Int(operation.graph.rawValue)].hasKept(operation.index)
    }

    private func compile(
        _ description: GraphDescription,
        to graph: GraphID
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

    /// The operation that is named by a dependency of an operation of this graph.
    func resolve(_ name: String, in graph: GraphID?) -> OperationID? {
        if let graph, let index = contents[Int(graph.rawValue)].number(of: name) {
            return OperationID(graph: graph, index: index)
        }
        guard let slash = name.firstIndex(of: "/"),
            let other = register.find(String(name[..<slash])), other != graph
        else { return nil }
        let operation = String(name[name.index(after: slash)...])
        let number = Int(other.rawValue)
        if let numbered = Self.numbered(operation) {
            let id = OperationID(graph: other, index: numbered.index)
            // Looks up one name, not all. A dropped graph has no names to compare.
            if scheduler.isKnown(id),
                !scheduler.isKept(id)
                    || contents[number].operations.name(of: Int(id.index)) == numbered.name
            {
                return id
            }
        }
        if let index = contents[number].number(of: operation) {
            return OperationID(graph: other, index: index)
        }
        guard let index = UInt32(operation) else { return nil }
        let id = OperationID(graph: other, index: index)
        return scheduler.isKnown(id) ? id : nil
    }

    /// Splits `7/merge`: number 7 finds the operation even after its graph was dropped; the name is
    /// there for human readers.
    private static func numbered(_ operation: String) -> (index: UInt32, name: Substring)? {
        guard let slash = operation.firstIndex(of: "/"), let index = UInt32(operation[..<slash])
        else { return nil }
        return (index, operation[operation.index(after: slash)...])
    }

    /// Resolves the dependencies on other graphs to numbers, because newer graphs may take over the
    /// names of the others. A number before an operation name is removed once it has been resolved.
    func found(_ description: GraphDescription, in graph: GraphID?) -> GraphDescription {
        let own = Set(description.operations.map(\.name))
        var description = description
        for index in description.operations.indices {
            for place in description.operations[index].dependencies.indices {
                let name = description.operations[index].dependencies[place].name
                guard name.contains("/"), !own.contains(name),
                    let found = resolve(name, in: graph), found.graph != graph
                else { continue }
                description.operations[index].dependencies[place].elsewhere = found
                let graph = name.prefix { $0 != "/" }
                let operation = String(name.dropFirst(graph.count + 1))
                guard let numbered = Self.numbered(operation), numbered.index == found.index,
                    self.name(of: found).name != operation
                else { continue }
                description.operations[index].dependencies[place].name =
                    "\(graph)/\(numbered.name)"
            }
        }
        return description
    }

    static func needs(_ outer: [OuterDependency], of graph: GraphID?) -> [GraphID] {
        Set(outer.map(\.on.operation.graph)).filter { $0 != graph }.sorted()
    }

    /// Compiles a graph whose dependencies name operations of other graphs, as `GRAPH/OPERATION`.
    func compileAmongOthers(
        _ description: GraphDescription
    ) throws(ClientError) -> (GraphDescription, CompiledGraph) {
        let found = found(description, in: nil)
        do throws(Refusal) {
            return (found, try CompiledGraph.compile(found, limits: limits))
        } catch {
            throw ClientError(error)
        }
    }

    /// Retries the named operations, or every operation that failed.
    func retry(
        _ graph: GraphID,
        _ request: RetryRequest
    ) async throws(ClientError) -> CommandView {
        var operations: [UInt32] = []
        for name in request.operations {
            let selector = OperationSelector(graph: graph.description, operation: name)
            operations.append(try find(selector).index)
        }
        let chosen = operations
        var members: [OperationID] = []
        // Outputs that the next round needs may have been dropped when the last round ended.
        let outputs = try await outputs { () throws(ClientError) in
            members = try self.members(ofRetry: chosen, of: graph, request)
            var wanted: Set<OperationID> = []
            for member in members {
                let number = Int(member.graph.rawValue)
                let operation = contents[number].operations[Int(member.index)]
                wanted.formUnion(contents.wanted(by: [operation], of: member.graph))
            }
            return wanted.sorted()
        }
        try mayChange()
        members = try self.members(ofRetry: chosen, of: graph, request)
        for member in members { contents.reopened(member) }
        keep(outputs)
        return try perform(
            .retryRequested(graph, operations: chosen, cancelled: request.cancelled)
        )
    }

    /// The operations, of any graph, that a retry would reopen.
    private func members(
        ofRetry operations: [UInt32],
        of graph: GraphID,
        _ request: RetryRequest
    ) throws(ClientError) -> [OperationID] {
        do throws(NumberedRefusal) {
            return try scheduler.members(
                ofRetry: operations,
                of: graph,
                cancelled: request.cancelled
            )
        } catch {
            throw ClientError(worded(error))
        }
    }

    func addDependency(
        of operation: OperationID,
        on other: OperationID,
        _ condition: DependencyCondition
    ) throws(ClientError) {
        let known = scheduler.dependencies(of: operation).first { $0.operation == other }
        if let known, known.condition != condition, scheduler.outcome(of: operation) == nil {
            throw ClientError(
                .conflict,
                "“\(selector(operation))” depends on “\(selector(other))” already, with the "
                    + "condition \(known.condition.name): remove that dependency first."
            )
        }
        try request(.dependencyAdded(operation, on: other, condition))
    }

    func removeDependency(
        of operation: OperationID,
        on other: OperationID
    ) throws(ClientError) {
        guard scheduler.dependencies(of: operation).contains(where: { $0.operation == other })
        else {
            throw ClientError(
                .notFound,
                "“\(selector(operation))” does not depend on “\(selector(other))”."
            )
        }
        try request(.dependencyRemoved(operation, on: other))
    }

    /// The selector that a person would write: `3/merge`.
    private func selector(_ operation: OperationID) -> String {
        "\(operation.graph)/\(name(of: operation).name)"
    }

    /// Returns when the worker has confirmed that it takes no new attempts.
    func drain(worker: String) async throws(ClientError) -> WorkerView {
        guard let found = status(ofWorker: worker) else {
            throw ClientError(.notFound, "There is no worker “\(worker)”.")
        }
        let incarnation = found.identity.incarnation
        guard incarnation != ownWorker else {
            throw ClientError(
                .conflict,
                "“\(found.identity.name)” is part of the coordinator: to stop it, stop the "
                    + "coordinator."
            )
        }
        try request(.drainRequested(incarnation))
        let hasBegun = await wait(within: Self.drainPatience.seconds) {
            $0.hasBegunToDrain(incarnation)
        }
        guard hasBegun, let view = workerViews().first(where: { $0.id == "\(incarnation)" }) else {
            throw ClientError(
                .unavailable,
                "“\(found.identity.name)” gets no more operations, but has not confirmed the drain;"
                    + " it may be cut off. It is asked again when it is back."
            )
        }
        return view
    }

    /// Several beats: enough for the worker to answer the first request or a repetition of it.
    private static let drainPatience = Duration.seconds(15)

    /// The live worker with this id or, if there is none, the latest one with this name.
    private func status(ofWorker text: String) -> Scheduler.WorkerStatus? {
        let now = time.now()
        let alive = query { $0.workerStatus(at: now) }.filter(\.isAlive)
        return alive.first { "\($0.identity.incarnation)" == text }
            ?? alive.last { $0.identity.name == text }
    }
}
