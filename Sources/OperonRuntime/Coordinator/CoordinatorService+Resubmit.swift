import OperonCore
import OperonModel
import OperonPorts

// Edited forms of graphs that have finished.
extension CoordinatorService {
    /// Submits an edited form of a finished graph.
    ///
    /// - Throws: `ClientError.conflict` if the graph has not finished.
    func resubmit(
        _ edited: GraphDescription,
        failFast: Bool,
        of graph: GraphID,
        _ submission: Submission,
        by caller: String,
        isDryRun: Bool
    ) async throws(ClientError) -> ContinuationView {
        guard !catalog.isDropped(graph) else { throw .dropped(graph) }
        guard scheduler.isFinished(graph) else {
            throw ClientError(
                .conflict,
                "Graph \(graph) “\(catalog.name(of: graph))” has not finished: wait for its end, "
                    + "or cancel it first."
            )
        }
        let continuation = catalog.continuation(of: [graph], in: edited, scheduler)
        var view = continuation.view(of: edited)
        guard !isDryRun else { return view }
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
}
