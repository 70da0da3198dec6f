package import OperonModel
package import OperonPorts

/// A coordinator for tests of whatever speaks to one. It keeps a small truth, does what commands
/// say to it, and runs nothing by itself: the test drives operations through `world`.
///
/// ```swift
/// let fake = FakeCoordinator()
/// _ = try await fake.submit(Submission(graph: graph))
/// try await fake.world.change { truth throws(ClientError) in
///     try truth.start(OperationSelector(graph: "@latest", operation: "split"))
/// }
/// ```
package struct FakeCoordinator: CoordinatorClient {
    /// Shared by all callers.
    package let world: FakeWorld
    /// The name that is noted with commands; empty: none.
    package var caller: String

    package init(caller: String = "", world: FakeWorld = FakeWorld()) {
        self.caller = caller
        self.world = world
    }

    /// The same coordinator for another caller.
    package func `as`(_ caller: String) -> FakeCoordinator {
        FakeCoordinator(caller: caller, world: world)
    }

    package func submit(_ submission: Submission) async throws(ClientError) -> GraphView {
        await world.keep(submission)
        return try await world.held("submit") { () async throws(ClientError) in
            try await world.answer("submit", caller) { truth throws(ClientError) in
                try truth.submit(submission, by: caller)
            }
        }
    }

    package func add(
        _ addition: Submission,
        to graph: String
    ) async throws(ClientError) -> GraphView {
        await world.keep(addition)
        return try await world.held("add") { () async throws(ClientError) in
            try await world.answer("add", caller) { truth throws(ClientError) in
                try truth.add(addition, to: graph, by: caller)
            }
        }
    }

    package func close(graph: String) async throws(ClientError) -> GraphView {
        try await world.held("close") { () async throws(ClientError) in
            try await world.answer("close", caller) { truth throws(ClientError) in
                try truth.close(graph: graph)
            }
        }
    }

    package func graphs(_ query: GraphQuery) async throws(ClientError) -> GraphPage {
        try await world.answer("graphs", caller) { truth throws(ClientError) in truth.page(query) }
    }

    package func graph(_ graph: String) async throws(ClientError) -> GraphView {
        try await world.answer("graph", caller) { truth throws(ClientError) in
            truth.view(graph: try truth.graphID(graph))
        }
    }

    package func operations(
        of graph: String,
        _ query: OperationQuery
    ) async throws(ClientError) -> OperationPage {
        try await world.answer("operations", caller) { truth throws(ClientError) in
            truth.page(try truth.graphID(graph), query)
        }
    }

    package func operation(
        _ operation: OperationSelector
    ) async throws(ClientError) -> OperationDetail {
        try await world.answer("operation", caller) { truth throws(ClientError) in
            truth.detail(try truth.operationID(operation))
        }
    }

    package func explain(_ operation: OperationSelector) async throws(ClientError) -> Explanation {
        try await world.answer("explain", caller) { truth throws(ClientError) in
            truth.explanation(try truth.operationID(operation))
        }
    }

    package func input(of operation: OperationSelector) async throws(ClientError) -> Payload? {
        try await world.answer("input", caller) { truth throws(ClientError) in
            truth.input(try truth.operationID(operation))
        }
    }

    package func output(of operation: OperationSelector) async throws(ClientError) -> Payload? {
        try await world.answer("output", caller) { truth throws(ClientError) in
            truth[try truth.operationID(operation)].output
        }
    }

    package func log(of operation: OperationSelector) async throws(ClientError) -> [LogView] {
        try await world.answer("log", caller) { truth throws(ClientError) in
            truth[try truth.operationID(operation)].logs
        }
    }

    package func followLog(
        of operation: OperationSelector
    ) async throws(ClientError) -> AsyncThrowingStream<LogView, any Error> {
        let id = try await world.answer("followLog", caller) { truth throws(ClientError) in
            try truth.operationID(operation)
        }
        return await world.followLog(of: id)
    }

    package func cancel(
        _ target: TargetSelector,
        _ request: CancelRequest
    ) async throws(ClientError) -> CommandView {
        let answer = try await world.answer("cancel", caller) { truth throws(ClientError) in
            try truth.cancel(target, request, by: caller)
        }
        if request.wait != nil, answer.running > 0 {
            throw ClientError(.timedOut, "\(answer.running) operations have not stopped in time.")
        }
        return answer
    }

    package func suspend(
        _ target: TargetSelector,
        _ request: SuspendRequest
    ) async throws(ClientError) -> CommandView {
        let suspension = Suspension(reason: request.reason, until: request.until?.time)
        return try await world.answer("suspend", caller) { truth throws(ClientError) in
            try truth.suspend(target, suspension, by: caller)
        }
    }

    package func resume(_ target: TargetSelector) async throws(ClientError) -> CommandView {
        try await world.answer("resume", caller) { truth throws(ClientError) in
            try truth.suspend(target, nil, by: caller)
        }
    }

    package func retry(
        graph: String,
        _ request: RetryRequest
    ) async throws(ClientError) -> CommandView {
        try await world.answer("retry", caller) { truth throws(ClientError) in
            try truth.retry(graph: graph, request, by: caller)
        }
    }

    package func complete(
        _ operation: OperationSelector,
        attempt: AttemptID?,
        with completion: Completion
    ) async throws(ClientError) -> OperationView {
        try await world.answer("complete", caller) { truth throws(ClientError) in
            try truth.complete(operation, attempt: attempt, with: completion)
        }
    }

    package func setPriority(
        of operation: OperationSelector,
        to priority: QueuePriority
    ) async throws(ClientError) -> OperationView {
        try await world.answer("setPriority", caller) { truth throws(ClientError) in
            try truth.setPriority(of: operation, to: priority)
        }
    }

    package func addDependency(
        of operation: OperationSelector,
        on dependency: OperationSelector,
        _ condition: DependencyCondition
    ) async throws(ClientError) -> OperationDetail {
        try await world.answer("addDependency", caller) { truth throws(ClientError) in
            try truth.addDependency(of: operation, on: dependency, condition)
        }
    }

    package func removeDependency(
        of operation: OperationSelector,
        on dependency: OperationSelector
    ) async throws(ClientError) -> OperationDetail {
        try await world.answer("removeDependency", caller) { truth throws(ClientError) in
            try truth.removeDependency(of: operation, on: dependency)
        }
    }

    package func queues() async throws(ClientError) -> [QueueView] {
        try await world.answer("queues", caller) { truth throws(ClientError) in
            truth.queues.keys.sorted().map { truth.view(queue: $0) }
        }
    }

    package func queue(_ name: String) async throws(ClientError) -> QueueView {
        try await world.answer("queue", caller) { truth throws(ClientError) in
            try truth.queue(name)
        }
    }

    package func operations(
        ofQueue name: String,
        _ query: QueueOperationQuery
    ) async throws(ClientError) -> QueuePage {
        try await world.answer("operationsOfQueue", caller) { truth throws(ClientError) in
            _ = try truth.queue(name)
            return truth.page(queue: name, query)
        }
    }

    /// Waits for nothing: the test says what is so by then.
    package func waitUntilEmpty(
        queue name: String,
        within seconds: Double
    ) async throws(ClientError) -> QueueView {
        try await world.answer("waitUntilEmpty", caller) { truth throws(ClientError) in
            try truth.queue(name)
        }
    }

    package func setQueue(
        _ name: String,
        _ change: QueueChange
    ) async throws(ClientError) -> QueueView {
        try await world.answer("setQueue", caller) { truth throws(ClientError) in
            try truth.setQueue(name, change)
        }
    }

    package func resetQueue(_ name: String) async throws(ClientError) -> QueueView {
        try await world.answer("resetQueue", caller) { truth throws(ClientError) in
            try truth.resetQueue(name)
        }
    }

    package func resetKey(_ name: String) async throws(ClientError) -> KeyView {
        try await world.answer("resetKey", caller) { truth throws(ClientError) in
            try truth.resetKey(name)
        }
    }

    package func keys() async throws(ClientError) -> [KeyView] {
        try await world.answer("keys", caller) { truth throws(ClientError) in
            truth.keys.keys.sorted().map { truth.view(key: $0) }
        }
    }

    package func key(_ name: String) async throws(ClientError) -> KeyView {
        try await world.answer("key", caller) { truth throws(ClientError) in
            try truth.key(name)
        }
    }

    package func setKey(_ settings: KeySettings) async throws(ClientError) -> KeyView {
        try await world.answer("setKey", caller) { truth throws(ClientError) in
            try truth.setKey(settings)
        }
    }

    package func workers() async throws(ClientError) -> [WorkerView] {
        try await world.answer("workers", caller) { truth throws(ClientError) in truth.workers }
    }

    package func drain(worker: String) async throws(ClientError) -> WorkerView {
        try await world.answer("drain", caller) { truth throws(ClientError) in
            try truth.drain(worker: worker)
        }
    }

    package func status() async throws(ClientError) -> ClusterView {
        try await world.answer("status", caller) { truth throws(ClientError) in truth.status() }
    }

    package func backup() async throws(ClientError) -> StoreBackup {
        let (bytes, stalls) = try await world.answer("backup", caller) {
            truth throws(ClientError) in (truth.backup, truth.backupStalls)
        }
        let half = bytes.count / 2
        return StoreBackup(
            byteCount: bytes.count,
            pieces: AsyncThrowingStream { continuation in
                continuation.yield(Array(bytes[..<half]))
                guard !stalls else { return }
                continuation.yield(Array(bytes[half...]))
                continuation.finish()
            }
        )
    }

    package func events(
        after sequence: UInt64?,
        graph: String?
    ) async throws(ClientError) -> AsyncThrowingStream<ClientEvent, any Error> {
        let id = try await world.answer("events", caller) { truth throws(ClientError) -> UInt32? in
            guard let graph else { return nil }
            return try truth.graphID(graph)
        }
        return await world.events(after: sequence, graph: id)
    }
}
