import OperonCore
import OperonModel
import OperonPorts

extension CoordinatorService {
    /// What spans say besides the notices of this moment.
    func facts(at now: Timestamp) -> CoordinatorSpans.Facts {
        CoordinatorSpans.Facts(
            scheduler: scheduler,
            catalog: catalog,
            workerNames: workerNames,
            now: now,
            date: time.wall() + (now - time.now())
        )
    }

    /// What a new graph is stored with.
    func traceParent(given: String) -> String {
        guard let spans else { return given }
        return GraphTrace.traceParent(given: given, spans.sink)
    }

    /// Records how long a submission took, once it is on the disk.
    func recordSubmission(of graph: GraphID, at start: WallTime) {
        guard spans != nil else { return }
        Task {
            // A store in trouble took nothing.
            do throws(ClientError) { try await durable() } catch { return }
            spans?.submitted(graph, at: start, facts(at: time.now()))
        }
    }
}
