import OperonCore
import OperonModel
import OperonPorts

extension CoordinatorService {
    private var notYet: ClientError { ClientError(.unavailable, "Not possible yet.") }
    func add(
        _ addition: Submission,
        to graph: GraphID,
        _ caller: String,
        _ limits: Limits
    ) async throws(ClientError) -> GraphView { throw notYet }
    func close(_ graph: GraphID) async throws(ClientError) -> GraphView { throw notYet }
    func retry(
        _ graph: GraphID,
        _ request: RetryRequest
    ) throws(ClientError) -> CommandView { throw notYet }
    func addDependency(
        of operation: OperationID,
        on other: OperationID,
        _ condition: DependencyCondition
    ) throws(ClientError) { throw notYet }
    func removeDependency(
        of operation: OperationID,
        on other: OperationID
    ) throws(ClientError) { throw notYet }
    func setPriority(
        ofQueue name: String,
        to priority: QueuePriority
    ) throws(ClientError) { throw notYet }
    func drain(worker: String) throws(ClientError) -> WorkerView { throw notYet }
}
