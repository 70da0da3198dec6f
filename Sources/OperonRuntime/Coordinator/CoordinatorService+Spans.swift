import OperonCore
import OperonModel
import OperonPorts

extension CoordinatorService {
    /// State that spans need and notices lack.
    func spanState(at now: Timestamp) -> CoordinatorSpans.State {
        CoordinatorSpans.State(
            scheduler: scheduler,
            catalog: catalog,
            workerNames: workerNames,
            now: now,
            date: time.wall() + (now - time.now())
        )
    }

    /// The `traceparent` to store with a new graph.
    func traceParent(given: String) -> String {
        guard let spans else { return given }
        return GraphTrace.traceParent(given: given, spans.sink)
    }

    /// Records how long a submission took, once it is on the disk.
    func recordSubmission(of graph: GraphID, at start: WallTime) {
        guard spans != nil else { return }
        Task {
            guard await untilDurable() else { return }
            spans?.submitted(graph, at: start, spanState(at: time.now()))
        }
    }
}
