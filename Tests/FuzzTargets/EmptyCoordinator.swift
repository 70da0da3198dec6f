import OperonModel
import OperonPorts

/// A coordinator that has nothing: it reads requests, and what they name is not there.
struct EmptyCoordinator: CoordinatorClient {
    private func refuse<Answer>() throws(ClientError) -> Answer {
        throw ClientError(.notFound, "There is no such object.")
    }

    func submit(_ submission: Submission) async throws(ClientError) -> GraphView {
        try refuse()
    }

    func add(_ addition: Submission, to graph: String) async throws(ClientError) -> GraphView {
        try refuse()
    }

    func resubmit(
        _ submission: Submission,
        of graph: String,
        _ options: ResubmitOptions
    ) async throws(ClientError) -> ContinuationView {
        try refuse()
    }

    func rerun(
        graph: String,
        _ request: RerunRequest
    ) async throws(ClientError) -> ContinuationView {
        try refuse()
    }

    func close(graph: String) async throws(ClientError) -> GraphView {
        try refuse()
    }

    func graphs(_ query: GraphQuery) async throws(ClientError) -> GraphPage {
        GraphPage(graphs: [], next: nil)
    }

    func graph(_ graph: String) async throws(ClientError) -> GraphView {
        try refuse()
    }

    func progress(of graph: String) async throws(ClientError) -> ProgressUpdates {
        try refuse()
    }

    func operations(
        of graph: String,
        _ query: OperationQuery
    ) async throws(ClientError) -> OperationPage {
        try refuse()
    }

    func records(
        of graph: String,
        after: UInt32?,
        limit: Int
    ) async throws(ClientError) -> RecordPage {
        try refuse()
    }

    func states(of graph: String) async throws(ClientError) -> StateRunsView {
        try refuse()
    }

    func operation(_ operation: OperationSelector) async throws(ClientError) -> OperationDetail {
        try refuse()
    }

    func explain(_ operation: OperationSelector) async throws(ClientError) -> Explanation {
        try refuse()
    }

    func input(of operation: OperationSelector) async throws(ClientError) -> Payload? {
        nil
    }

    func output(of operation: OperationSelector) async throws(ClientError) -> Payload? {
        nil
    }

    func log(
        of selector: LogSelector,
        _ query: LogQuery
    ) async throws(ClientError) -> AsyncThrowingStream<LogView, any Error> {
        try refuse()
    }

    func cancel(
        _ target: TargetSelector,
        _ request: CancelRequest
    ) async throws(ClientError) -> CommandView {
        CommandView(affected: 0, finished: 0, running: 0, released: 0, isEffective: true)
    }

    func suspend(
        _ target: TargetSelector,
        _ request: SuspendRequest
    ) async throws(ClientError) -> CommandView {
        CommandView(affected: 0, finished: 0, running: 0, released: 0, isEffective: true)
    }

    func resume(_ target: TargetSelector) async throws(ClientError) -> CommandView {
        CommandView(affected: 0, finished: 0, running: 0, released: 0, isEffective: true)
    }

    func retry(
        graph: String,
        _ request: RetryRequest
    ) async throws(ClientError) -> CommandView {
        CommandView(affected: 0, finished: 0, running: 0, released: 0, isEffective: true)
    }

    func complete(
        _ operation: OperationSelector,
        attempt: AttemptID?,
        with completion: Completion
    ) async throws(ClientError) -> OperationView {
        try refuse()
    }

    func setPriority(
        of operation: OperationSelector,
        to priority: QueuePriority
    ) async throws(ClientError) -> OperationView {
        try refuse()
    }

    func addDependency(
        of operation: OperationSelector,
        on dependency: OperationSelector,
        _ condition: DependencyCondition
    ) async throws(ClientError) -> OperationDetail {
        try refuse()
    }

    func removeDependency(
        of operation: OperationSelector,
        on dependency: OperationSelector
    ) async throws(ClientError) -> OperationDetail {
        try refuse()
    }

    func queues() async throws(ClientError) -> [QueueView] {
        []
    }

    func queue(_ name: String) async throws(ClientError) -> QueueView {
        try refuse()
    }

    func operations(
        ofQueue name: String,
        _ query: QueueOperationQuery
    ) async throws(ClientError) -> QueuePage {
        try refuse()
    }

    func waitUntilEmpty(
        queue name: String,
        within seconds: Double
    ) async throws(ClientError) -> QueueView {
        try refuse()
    }

    func setQueue(_ name: String, _ change: QueueChange) async throws(ClientError) -> QueueView {
        try refuse()
    }

    func resetQueue(_ name: String) async throws(ClientError) -> QueueView {
        try refuse()
    }

    func keys() async throws(ClientError) -> [KeyView] {
        []
    }

    func key(_ name: String) async throws(ClientError) -> KeyView {
        try refuse()
    }

    func setKey(_ settings: KeySettings) async throws(ClientError) -> KeyView {
        try refuse()
    }

    func resetKey(_ name: String) async throws(ClientError) -> KeyView {
        try refuse()
    }

    func workers() async throws(ClientError) -> [WorkerView] {
        []
    }

    func drain(worker: String) async throws(ClientError) -> WorkerView {
        try refuse()
    }

    func status() async throws(ClientError) -> ClusterView {
        try refuse()
    }

    func statusUpdates() async throws(ClientError) -> StatusUpdates {
        try refuse()
    }

    func sessionCode() async throws(ClientError) -> SessionCodeView? {
        nil
    }

    func backup() async throws(ClientError) -> StoreBackup {
        try refuse()
    }

    func triggers() async throws(ClientError) -> [TriggerView] {
        []
    }

    func trigger(_ name: String) async throws(ClientError) -> TriggerView {
        try refuse()
    }

    func addTrigger(
        _ body: [UInt8],
        contentType: String,
        replace: Bool
    ) async throws(ClientError) -> TriggerView {
        try refuse()
    }

    func removeTrigger(_ name: String) async throws(ClientError) -> TriggerView {
        try refuse()
    }

    func fireTrigger(
        _ name: String,
        data: [UInt8],
        idempotencyKey: String?
    ) async throws(ClientError) -> FiringView {
        try refuse()
    }

    func suspendTrigger(
        _ name: String,
        _ request: SuspendRequest
    ) async throws(ClientError) -> TriggerView {
        try refuse()
    }

    func resumeTrigger(_ name: String) async throws(ClientError) -> TriggerView {
        try refuse()
    }

    func firings(ofTrigger name: String, limit: Int) async throws(ClientError) -> [FiringView] {
        try refuse()
    }

    func nextTicks(ofTrigger name: String, count: Int) async throws(ClientError) -> [TickView] {
        try refuse()
    }

    func explain(trigger name: String) async throws(ClientError) -> TriggerExplanation {
        try refuse()
    }

    func deliver(
        _ delivery: WebhookDelivery,
        toTrigger name: String
    ) async throws(ClientError) -> FiringView {
        try refuse()
    }

    func events(_ query: EventQuery) async throws(ClientError) -> EventBatches {
        try refuse()
    }
}
