package import OperonCore
package import OperonModel
package import OperonPorts
import OperonWire

// The one graph of a run that is kept on a disk.
extension CoordinatorService {
    /// A run has one graph: submitting it again finds the one that is there.
    private static let runKey = "run"

    /// Takes the graph of a run, or goes on with it if the store has it: what failed or was
    /// cancelled, and what was skipped because of that, runs again. What was cancelled and has not
    /// ended is waited for first.
    ///
    /// - Throws: `ClientError.conflict` if the store has another graph than this.
    package func takeUp(
        _ graph: GraphDescription,
        compiled: CompiledGraph,
        traceParent: String
    ) async throws(ClientError) -> (graph: GraphID, operations: [OperationProgress]) {
        var contents = try StoredContents(graph, compiled)
        contents.idempotencyKey = Self.runKey
        contents.traceParent = traceParent
        let isNew = scheduler.graphCount == 0
        let id = try await submitOnce(graph, compiled, contents)
        if !isNew {
            if scheduler.isCancelled(id) { await waitUntilFinished(id) }
            if Task.isCancelled { throw ClientError(.unavailable, "Interrupted.") }
            var again = RetryRequest()
            again.cancelled = true
            _ = try await retry(id, again)
        }
        let progress = isNew ? [] : scheduler.progress(of: id)
        try await durable()
        return (id, progress)
    }
}

extension StoredContents {
    /// What is kept of a graph so that it can be compiled again. Nobody's, without a key.
    ///
    /// - Throws: `ClientError.tooLarge`.
    init(_ graph: GraphDescription, _ compiled: CompiledGraph) throws(ClientError) {
        let body: [UInt8]
        do throws(WireError) {
            body = try StoreFormat.encode(graph, failFast: compiled.failFast)
        } catch {
            throw ClientError(.tooLarge, error.message)
        }
        self.init(
            graph: GraphID(rawValue: 0),
            name: graph.name,
            operationCount: graph.operations.count,
            body: body
        )
    }
}
