package import OperonModel
package import OperonPorts

/// A coordinator as a client sees it, whose calls are recorded, and fail or wait when a test says
/// so.
package struct TappedClient: CoordinatorClient {
    private let inner: any CoordinatorClient
    private let caller: String
    private let tap: ClientTap

    /// - Parameter caller: The name that is recorded with the calls.
    package init(_ inner: any CoordinatorClient, caller: String = "", _ tap: ClientTap) {
        self.inner = inner
        self.caller = caller
        self.tap = tap
    }

    private func call<Answer: Sendable>(
        _ name: String,
        _ body: @Sendable (any CoordinatorClient) async throws -> Answer
    ) async throws(ClientError) -> Answer {
        let result: Result<Answer, ClientError>
        do {
            try await tap.begin(ClientCall(name: name, caller: caller))
            result = .success(try await tap.rewritten(body(inner)))
        } catch let error as ClientError {
            result = .failure(error)
        } catch {
            result = .failure(ClientError(.internal, "\(error)"))
        }
        await tap.end(name)
        return try result.get()
    }

    package func submit(_ submission: Submission) async throws(ClientError) -> GraphView {
        await tap.keep(submission)
        return try await call("submit") { try await $0.submit(submission) }
    }

    package func add(
        _ addition: Submission,
        to graph: String
    ) async throws(ClientError) -> GraphView {
        await tap.keep(addition)
        return try await call("add") { try await $0.add(addition, to: graph) }
    }

    package func resubmit(
        _ submission: Submission,
        of graph: String,
        _ options: ResubmitOptions
    ) async throws(ClientError) -> ContinuationView {
        await tap.keep(submission)
        return try await call("resubmit") {
            try await $0.resubmit(submission, of: graph, options)
        }
    }

    package func rerun(
        graph: String,
        _ request: RerunRequest
    ) async throws(ClientError) -> ContinuationView {
        try await call("rerun") { try await $0.rerun(graph: graph, request) }
    }

    package func close(graph: String) async throws(ClientError) -> GraphView {
        try await call("close") { try await $0.close(graph: graph) }
    }

    package func graphs(_ query: GraphQuery) async throws(ClientError) -> GraphPage {
        try await call("graphs") { try await $0.graphs(query) }
    }

    package func graph(_ graph: String) async throws(ClientError) -> GraphView {
        try await call("graph") { try await $0.graph(graph) }
    }

    package func progress(of graph: String) async throws(ClientError) -> ProgressUpdates {
        let updates = try await call("progress") { try await $0.progress(of: graph) }
        return await tap.tapped(updates, isFollower: false)
    }

    package func operations(
        of graph: String,
        _ query: OperationQuery
    ) async throws(ClientError) -> OperationPage {
        try await call("operations") { try await $0.operations(of: graph, query) }
    }

    package func records(
        of graph: String,
        after: UInt32?,
        limit: Int
    ) async throws(ClientError) -> RecordPage {
        try await call("records") { try await $0.records(of: graph, after: after, limit: limit) }
    }

    package func sessionCode() async throws(ClientError) -> SessionCodeView? {
        try await call("sessionCode") { try await $0.sessionCode() }
    }

    package func states(of graph: String) async throws(ClientError) -> StateRunsView {
        try await call("states") { try await $0.states(of: graph) }
    }

    package func operation(
        _ operation: OperationSelector
    ) async throws(ClientError) -> OperationDetail {
        try await call("operation") { try await $0.operation(operation) }
    }

    package func explain(_ operation: OperationSelector) async throws(ClientError) -> Explanation {
        try await call("explain") { try await $0.explain(operation) }
    }

    package func input(of operation: OperationSelector) async throws(ClientError) -> Payload? {
        try await call("input") { try await $0.input(of: operation) }
    }

    package func output(of operation: OperationSelector) async throws(ClientError) -> Payload? {
        try await call("output") { try await $0.output(of: operation) }
    }

    package func log(
        of selector: LogSelector,
        _ query: LogQuery
    ) async throws(ClientError) -> AsyncThrowingStream<LogView, any Error> {
        let stream = try await call("log") { try await $0.log(of: selector, query) }
        return query.follow ? await tap.tapped(stream, isFollower: true) : stream
    }

    package func cancel(
        _ target: TargetSelector,
        _ request: CancelRequest
    ) async throws(ClientError) -> CommandView {
        try await call("cancel") { try await $0.cancel(target, request) }
    }

    package func suspend(
        _ target: TargetSelector,
        _ request: SuspendRequest
    ) async throws(ClientError) -> CommandView {
        try await call("suspend") { try await $0.suspend(target, request) }
    }

    package func resume(_ target: TargetSelector) async throws(ClientError) -> CommandView {
        try await call("resume") { try await $0.resume(target) }
    }

    package func retry(
        graph: String,
        _ request: RetryRequest
    ) async throws(ClientError) -> CommandView {
        try await call("retry") { try await $0.retry(graph: graph, request) }
    }

    package func complete(
        _ operation: OperationSelector,
        attempt: AttemptID?,
        with completion: Completion
    ) async throws(ClientError) -> OperationView {
        try await call("complete") { client in
            let view = try await client.complete(operation, attempt: attempt, with: completion)
            await tap.keep(ClientCompletion(attempt: attempt, completion: completion))
            return view
        }
    }

    package func setPriority(
        of operation: OperationSelector,
        to priority: QueuePriority
    ) async throws(ClientError) -> OperationView {
        try await call("setPriority") { try await $0.setPriority(of: operation, to: priority) }
    }

    package func addDependency(
        of operation: OperationSelector,
        on dependency: OperationSelector,
        _ condition: DependencyCondition
    ) async throws(ClientError) -> OperationDetail {
        try await call("addDependency") {
            try await $0.addDependency(of: operation, on: dependency, condition)
        }
    }

    package func removeDependency(
        of operation: OperationSelector,
        on dependency: OperationSelector
    ) async throws(ClientError) -> OperationDetail {
        try await call("removeDependency") {
            try await $0.removeDependency(of: operation, on: dependency)
        }
    }

    package func triggers() async throws(ClientError) -> [TriggerView] {
        try await call("triggers") { try await $0.triggers() }
    }

    package func trigger(_ name: String) async throws(ClientError) -> TriggerView {
        try await call("trigger") { try await $0.trigger(name) }
    }

    package func addTrigger(
        _ body: [UInt8],
        contentType: String,
        replace: Bool
    ) async throws(ClientError) -> TriggerView {
        try await call("addTrigger") {
            try await $0.addTrigger(body, contentType: contentType, replace: replace)
        }
    }

    package func removeTrigger(_ name: String) async throws(ClientError) -> TriggerView {
        try await call("removeTrigger") { try await $0.removeTrigger(name) }
    }

    package func fireTrigger(
        _ name: String,
        data: [UInt8],
        idempotencyKey: String?
    ) async throws(ClientError) -> FiringView {
        try await call("fireTrigger") {
            try await $0.fireTrigger(name, data: data, idempotencyKey: idempotencyKey)
        }
    }

    package func suspendTrigger(
        _ name: String,
        _ request: SuspendRequest
    ) async throws(ClientError) -> TriggerView {
        try await call("suspendTrigger") { try await $0.suspendTrigger(name, request) }
    }

    package func resumeTrigger(_ name: String) async throws(ClientError) -> TriggerView {
        try await call("resumeTrigger") { try await $0.resumeTrigger(name) }
    }

    package func firings(
        ofTrigger name: String,
        limit: Int
    ) async throws(ClientError) -> [FiringView] {
        try await call("firings") { try await $0.firings(ofTrigger: name, limit: limit) }
    }

    package func nextTicks(
        ofTrigger name: String,
        count: Int
    ) async throws(ClientError) -> [TickView] {
        try await call("nextTicks") { try await $0.nextTicks(ofTrigger: name, count: count) }
    }

    package func explain(trigger name: String) async throws(ClientError) -> TriggerExplanation {
        try await call("explainTrigger") { try await $0.explain(trigger: name) }
    }

    package func deliver(
        _ delivery: WebhookDelivery,
        toTrigger name: String
    ) async throws(ClientError) -> FiringView {
        try await call("deliver") { try await $0.deliver(delivery, toTrigger: name) }
    }

    package func queues() async throws(ClientError) -> [QueueView] {
        try await call("queues") { try await $0.queues() }
    }

    package func queue(_ name: String) async throws(ClientError) -> QueueView {
        try await call("queue") { try await $0.queue(name) }
    }

    package func operations(
        ofQueue name: String,
        _ query: QueueOperationQuery
    ) async throws(ClientError) -> QueuePage {
        try await call("operationsOfQueue") { try await $0.operations(ofQueue: name, query) }
    }

    package func waitUntilEmpty(
        queue name: String,
        within seconds: Double
    ) async throws(ClientError) -> QueueView {
        try await call("waitUntilEmpty") {
            try await $0.waitUntilEmpty(queue: name, within: seconds)
        }
    }

    package func setQueue(
        _ name: String,
        _ change: QueueChange
    ) async throws(ClientError) -> QueueView {
        try await call("setQueue") { try await $0.setQueue(name, change) }
    }

    package func resetQueue(_ name: String) async throws(ClientError) -> QueueView {
        try await call("resetQueue") { try await $0.resetQueue(name) }
    }

    package func resetKey(_ name: String) async throws(ClientError) -> KeyView {
        try await call("resetKey") { try await $0.resetKey(name) }
    }

    package func keys() async throws(ClientError) -> [KeyView] {
        try await call("keys") { try await $0.keys() }
    }

    package func key(_ name: String) async throws(ClientError) -> KeyView {
        try await call("key") { try await $0.key(name) }
    }

    package func setKey(_ settings: KeySettings) async throws(ClientError) -> KeyView {
        try await call("setKey") { try await $0.setKey(settings) }
    }

    package func workers() async throws(ClientError) -> [WorkerView] {
        try await call("workers") { try await $0.workers() }
    }

    package func drain(worker: String) async throws(ClientError) -> WorkerView {
        try await call("drain") { try await $0.drain(worker: worker) }
    }

    package func status() async throws(ClientError) -> ClusterView {
        try await call("status") { try await $0.status() }
    }

    package func statusUpdates() async throws(ClientError) -> StatusUpdates {
        let updates = try await call("statusUpdates") { try await $0.statusUpdates() }
        return await tap.tapped(updates, isFollower: false)
    }

    package func backup() async throws(ClientError) -> StoreBackup {
        try await call("backup") { client in
            if let backup = await tap.backup { return backup }
            return try await client.backup()
        }
    }

    package func events(_ query: EventQuery) async throws(ClientError) -> EventBatches {
        let stream = try await call("events") { try await $0.events(query) }
        return await tap.tapped(stream, isFollower: false)
    }
}
