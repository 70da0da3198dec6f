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
        _ new: StoredContents,
        for firing: FiringID? = nil
    ) async throws(ClientError) -> GraphID {
        try await once(graph.operations, new) {
            outputs throws(ClientError) in
            // The trigger may have been removed while outputs were loaded.
            if let firing, !triggering.table.isSubmitting(firing) {
                throw ClientError(.conflict, "The firing does not wait for its graph any more.")
            }
            var kept = new
            kept.graph = submit(graph, compiled: compiled, kept: new, outputs: outputs, for: firing)
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
        let description = catalog.resolved(addition.graph, in: graph)
        try checkBounds(of: caller, description)
        var new = try StoredContents(description, failFast: false)
        new.graph = graph
        new.name = catalog.name(of: graph)
        new.submitter = caller
        new.idempotencyKey = addition.idempotencyKey ?? ""
        let use = try await once(description.operations, new, addedTo: graph) {
            outputs throws(ClientError) in
            guard scheduler.isOpen(graph) else {
                throw ClientError(.graphClosed(name: catalog.name(of: graph)))
            }
            let compiled = try compile(description, to: graph)
            var kept = new
            kept.first = compiled.first
            kept.needs = compiled.graph.graphsNeeded(by: graph)
            do throws(WireError) {
                try catalog.append(description.operations, of: kept)
            } catch {
                throw ClientError(.invalid, error.message)
            }
            keeping?.submitted.append(kept)
            catalog.keep(outputs)
            // Checked before: the scheduler has nothing else to refuse.
            if let refusal = handle([.operationsAdded(graph, compiled)], by: caller) {
                throw ClientError(worded(refusal))
            }
            return kept
        }
        return answer(graph, from: use.first)
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
        let outputs = try await outputs { catalog.wanted(by: operations, of: graph) }
        try mayChange()
        let key = new.idempotencyKey
        let hash = key.isEmpty ? nil : ContentHash(of: new.body)
        if let hash, let use = catalog.use(of: key, by: new.submitter, addedTo: graph) {
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
        if let hash, violation != .forgetsSubmissions {
            catalog.keepKey(of: kept, hash, isAddition: graph != nil)
        }
        return (kept.graph, kept.first)
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

    func isMissing(_ operation: OperationID) -> Bool {
        scheduler.outcomeKind(of: operation) == .succeeded
            && !catalog[operation.graph].hasKept(operation.index)
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
                catalog.resolve(name, in: graph)
            }
        } catch {
            throw ClientError(error)
        }
    }

    /// Compiles a graph whose dependencies name operations of other graphs, as `GRAPH/OPERATION`.
    func compileAmongOthers(
        _ description: GraphDescription,
        by submitter: String
    ) throws(ClientError) -> (GraphDescription, CompiledGraph) {
        let found = catalog.resolved(description, in: nil)
        try checkBounds(of: submitter, found)
        do throws(Refusal) {
            return (found, try CompiledGraph.compile(found, limits: limits))
        } catch {
            throw ClientError(error)
        }
    }

    /// - Parameter description: Its dependencies on other graphs are resolved.
    func checkBounds(
        of submitter: String,
        _ description: GraphDescription
    ) throws(ClientError) {
        guard let objection = catalog.objection(to: description, by: submitter) else { return }
        throw ClientError(
            .forbidden,
            "The token of “\(submitter)” does not allow this: \(objection)."
        )
    }

    /// Retries the named operations, or every operation that failed.
    func retry(
        _ graph: GraphID,
        _ request: RetryRequest,
        by caller: String
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
            if keeping?.isRunCancelled == true {
                throw ClientError(.conflict, "The run was cancelled.")
            }
            try check(graph)
            members = try self.members(ofRetry: chosen, of: graph, request)
            var wanted: Set<OperationID> = []
            for member in members {
                let operation = catalog[description: member]
                wanted.formUnion(catalog.wanted(by: [operation], of: member.graph))
            }
            return wanted.sorted()
        }
        try mayChange()
        members = try self.members(ofRetry: chosen, of: graph, request)
        for member in members { catalog.reopened(member) }
        catalog.keep(outputs)
        return try perform(
            .retryRequested(graph, operations: chosen, cancelled: request.cancelled),
            by: caller
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
        _ condition: DependencyCondition,
        by caller: String
    ) throws(ClientError) {
        let known = scheduler.dependencies(of: operation).first { $0.operation == other }
        if let known, known.condition != condition, scheduler.outcome(of: operation) == nil {
            throw ClientError(
                .conflict,
                "“\(selector(operation))” depends on “\(selector(other))” already, with the "
                    + "condition \(known.condition.name): remove that dependency first."
            )
        }
        try request(.dependencyAdded(operation, on: other, condition), by: caller)
    }

    func removeDependency(
        of operation: OperationID,
        on other: OperationID,
        by caller: String
    ) throws(ClientError) {
        guard scheduler.dependencies(of: operation).contains(where: { $0.operation == other })
        else {
            throw ClientError(
                .notFound,
                "“\(selector(operation))” does not depend on “\(selector(other))”."
            )
        }
        try request(.dependencyRemoved(operation, on: other), by: caller)
    }

    /// The selector that a person would write: `3/merge`.
    private func selector(_ operation: OperationID) -> String {
        "\(operation.graph)/\(catalog.name(of: operation).name)"
    }

    /// Returns when the worker has confirmed that it takes no new attempts.
    func drain(worker: String, by caller: String) async throws(ClientError) -> WorkerView {
        guard let found = status(ofWorker: worker) else {
            throw ClientError(.notFound, "There is no worker “\(worker)”.")
        }
        let incarnation = found.identity.incarnation
        guard incarnation != ownWorker else {
            throw ClientError(
                .conflict,
                "“\(found.identity.name)” is part of the coordinator: to stop it, stop the "
                    + "coordinator, which waits for its running operations (--drain-timeout)."
            )
        }
        try request(.drainRequested(incarnation), by: caller)
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
