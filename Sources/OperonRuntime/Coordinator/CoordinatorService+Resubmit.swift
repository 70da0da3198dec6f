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
            throw ClientError(
                .notFound,
                "Graph “\(edited.name)” has no operation “\(name)” that could run again."
            )
        }
        let continuation = catalog.continuation(of: [graph], in: edited, again: again, scheduler)
        var view = continuation.view(of: edited)
        guard !options.isDryRun else { return view }
        let description = continuation.graph(from: edited)
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

    /// Runs operations of a finished graph again, and what depends on them, in a new graph.
    func rerun(
        _ graph: GraphID,
        by caller: String,
        _ options: ResubmitOptions
    ) async throws(ClientError) -> ContinuationView {
        try mayContinue(graph)
        let (settings, failFast) = scheduler.settings(of: graph)
        var description = settings
        description.operations = catalog.previous(of: graph, scheduler).map(\.description)
        // After an edit, a dependency that stayed is an operation of an earlier graph.
        let own = Set(description.operations.lazy.map(\.name))
        for place in description.operations.indices {
            for index in description.operations[place].dependencies.indices
            where own.contains(description.operations[place].dependencies[index].name) {
                description.operations[place].dependencies[index].resolvedID = nil
            }
        }
        return try await resubmit(
            description,
            failFast: failFast,
            of: graph,
            Submission(graph: description),
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
