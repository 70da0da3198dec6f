package import OperonCore
package import OperonModel
package import OperonPorts
import OperonWire

// The single graph of a run whose state is kept on a disk.
extension CoordinatorService {
    /// The idempotency key of a run's graph: submitting the graph again finds the existing one.
    private static let runKey = "run"

    /// Submits the graph of a run. If the store has it already, resumes it: operations that failed
    /// or were cancelled, and those that were skipped because of them, run again. Cancelled
    /// operations that still run are awaited first.
    ///
    /// - Throws: `ClientError.conflict` if the store has a different graph.
    package func takeUp(
        _ graph: GraphDescription,
        compiled: CompiledGraph,
        traceParent: String
    ) async throws(ClientError) -> (graph: GraphID, operations: [OperationProgress]) {
        var contents = try StoredContents(graph, failFast: compiled.failFast)
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
    /// The stored form of a graph, from which it can be compiled again. It has no submitter and no
    /// key yet.
    ///
    /// - Throws: `ClientError.tooLarge`.
    init(_ graph: GraphDescription, failFast: Bool) throws(ClientError) {
        let body: [UInt8]
        do throws(WireError) {
            body = try StoreFormat.encode(graph, failFast: failFast)
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
