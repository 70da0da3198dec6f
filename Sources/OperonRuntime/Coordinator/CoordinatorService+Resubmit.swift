import OperonCore
import OperonModel
import OperonPorts

// Edited forms of graphs that have finished.
extension CoordinatorService {
    /// Submits an edited form of a finished graph.
    ///
    /// - Throws: `ClientError.conflict` if the graph has not finished; `notFound` if an operation
    ///   that is to run again is not in the edited form.
    func resubmit(
        _ edited: GraphDescription,
        failFast: Bool,
        of graph: GraphID,
        _ submission: Submission,
        by caller: String,
        _ options: ResubmitOptions
    ) async throws(ClientError) -> ContinuationView {
        try mayContinue(graph)
        let again = Set(options.again)
        let unknown = again.subtracting(edited.operations.lazy.map(\.name))
        if let name = options.again.first(where: { unknown.contains($0) }) {
            throw refusal(toRun: name, of: graph)
        }
        let continuation = catalog.continuation(of: [graph], in: edited, again: again, scheduler)
        var view = continuation.view(of: edited)
        guard !options.isDryRun else { return view }
        let description = continuation.graph(from: edited)
        try checkBounds(of: caller, description)
        var compiled: CompiledGraph
        do throws(Refusal) {
            compiled = try CompiledGraph.compile(description, limits: limits)
        } catch {
            throw ClientError(error)
        }
        compiled.failFast = failFast
        var contents = try StoredContents(description, failFast: failFast)
        contents.submitter = caller
        contents.idempotencyKey = submission.idempotencyKey ?? ""
        contents.traceParent = submission.traceParent ?? ""
        contents.needs = compiled.graphsNeeded(by: nil)
        view.graph = answer(try await submitOnce(description, compiled, contents))
        return view
    }

    /// The operation whose output counts as that of this one. An operation that stayed in an edit
    /// stands for one of an earlier graph.
    func leavingOutput(of operation: OperationID) -> OperationID {
        let count = catalog[operation.graph].operations.count
        guard Int(operation.index) < count else { return operation }
        return Continuation.original(of: catalog[description: operation]) ?? operation
    }

    /// Why an operation that an edited form does not have cannot run again.
    private func refusal(toRun name: String, of graph: GraphID) -> ClientError {
        var first = catalog[graph].number(of: name)
        while let number = first, let parent = catalog[graph].parent(of: number) { first = parent }
        if let first {
            let parent = catalog.name(of: OperationID(graph: graph, index: first)).name
            if parent != name {
                return ClientError(
                    .conflict,
                    "“\(name)” was added by “\(parent)” while that ran: run “\(parent)” again."
                )
            }
        }
        return ClientError(
            .notFound,
            "Graph “\(catalog.name(of: graph))” has no operation “\(name)” that could run again."
        )
    }

    /// Runs operations of a finished graph again, and what depends on them, in a new graph.
    func rerun(
        _ graph: GraphID,
        by caller: String,
        _ request: RerunRequest
    ) async throws(ClientError) -> ContinuationView {
        guard !request.operations.isEmpty else {
            throw ClientError(.invalid, "Name the operations that shall run again.")
        }
        try mayContinue(graph)
        if let lost = catalog.withoutOriginal(in: graph, scheduler) {
            throw ClientError(
                .conflict,
                "“\(lost.name)” ran in graph \(lost.of), which was dropped, and nobody knows any "
                    + "more what it did: submit the file of the graph again."
            )
        }
        let (settings, failFast) = scheduler.settings(of: graph)
        var description = settings
        description.operations = catalog.previous(of: graph, scheduler).map(\.description)
        // A group does not fail: it is skipped if an element does.
        for operation in description.operations {
            let failed = operation.dependencies.first {
                $0.takesElements && $0.condition == .failed
            }
            guard let failed else { continue }
            throw ClientError(
                .conflict,
                "“\(operation.name)” runs if an element of “\(failed.name)” fails, and a new graph "
                    + "would add these elements again: submit the file of the graph again with "
                    + "operon resubmit."
            )
        }
        // After an edit, a dependency that stayed is an operation of an earlier graph.
        let own = Set(description.operations.lazy.map(\.name))
        for place in description.operations.indices {
            for index in description.operations[place].dependencies.indices
            where own.contains(description.operations[place].dependencies[index].name) {
                description.operations[place].dependencies[index].resolvedID = nil
            }
        }
        var submission = Submission(graph: description)
        submission.idempotencyKey = request.idempotencyKey
        submission.traceParent = request.traceParent
        var options = ResubmitOptions()
        options.again = request.operations
        options.isDryRun = request.isDryRun
        return try await resubmit(
            description,
            failFast: failFast,
            of: graph,
            submission,
            by: caller,
            options
        )
    }

    private func mayContinue(_ graph: GraphID) throws(ClientError) {
        guard !catalog.isDropped(graph) else { throw .dropped(graph) }
        guard scheduler.isFinished(graph) else {
            throw ClientError(
                .conflict,
                "Graph \(graph) “\(catalog.name(of: graph))” has not finished: wait for its end, "
                    + "or cancel it first."
            )
        }
    }
}
