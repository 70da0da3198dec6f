import AsyncHTTPClient
import NIOCore
import NIOHTTP1
package import OperonModel
package import OperonPorts

// Every method of the client as a request.

extension HTTPCoordinatorClient {
    package func submit(_ submission: Submission) async throws(ClientError) -> GraphView {
        try await send(submission, Ask(.POST, "graphs"))
    }

    package func add(
        _ addition: Submission,
        to graph: String
    ) async throws(ClientError) -> GraphView {
        try await send(addition, Ask(.POST, "graphs", graph, "operations"))
    }

    package func resubmit(
        _ submission: Submission,
        of graph: String,
        _ options: ResubmitOptions
    ) async throws(ClientError) -> ContinuationView {
        var ask = Ask(.POST, "graphs", graph, "resubmit")
        if !options.again.isEmpty { ask = try ask.with("again", json: options.again) }
        return try await send(submission, ask.with("dryRun", options.isDryRun ? true : nil))
    }

    package func rerun(
        graph: String,
        _ request: RerunRequest
    ) async throws(ClientError) -> ContinuationView {
        try await value(
            Ask(.POST, "graphs", graph, "rerun").with(json: request)
                .with(key: request.idempotencyKey, traceParent: request.traceParent)
                .within(configuration.submitTime)
        )
    }

    private func send<Answer: Decodable>(
        _ submission: Submission,
        _ ask: Ask
    ) async throws(ClientError) -> Answer {
        var ask = ask.within(configuration.submitTime)
        // Check here, with the same error as the coordinator's: a file cannot even hold such a
        // graph.
        do throws(Refusal) {
            try submission.graph.check(Limits())
        } catch {
            throw ClientError(error)
        }
        if submission.isOpen { ask = ask.with("open", true) }
        do {
            ask.body = .stream(
                GraphPieces(pieces: try codec.encode(submission.graph)),
                length: .unknown
            )
        } catch let refusal as Refusal {
            throw ClientError(refusal)
        } catch {
            throw ClientError(.invalid, "\(error)")
        }
        ask.headers.add(name: "Content-Type", value: "application/jsonl")
        return try await value(
            ask.with(key: submission.idempotencyKey, traceParent: submission.traceParent)
        )
    }

    package func close(graph: String) async throws(ClientError) -> GraphView {
        try await value(Ask(.POST, "graphs", graph, "close"))
    }

    package func graphs(_ query: GraphQuery) async throws(ClientError) -> GraphPage {
        try await value(
            Ask(.GET, "graphs").with("status", query.status?.rawValue).with("name", query.name)
                .with("after", query.after).with("limit", query.limit)
        )
    }

    package func graph(_ graph: String) async throws(ClientError) -> GraphView {
        try await value(Ask(.GET, "graphs", graph))
    }

    package func operations(
        of graph: String,
        _ query: OperationQuery
    ) async throws(ClientError) -> OperationPage {
        try await value(
            Ask(.GET, "graphs", graph, "operations").with("state", query.state?.name)
                .with("outcome", query.outcome?.name).with("queue", query.queue)
                .with("namePrefix", query.namePrefix)
                .with("numbers", query.numbers?.map(String.init).joined(separator: ","))
                .with("after", query.after).with("limit", query.limit)
        )
    }

    package func records(
        of graph: String,
        after: UInt32?,
        limit: Int
    ) async throws(ClientError) -> RecordPage {
        try await value(
            Ask(.GET, "graphs", graph, "records").with("after", after).with("limit", limit)
        )
    }

    package func sessionCode() async throws(ClientError) -> SessionCodeView? {
        do throws(ClientError) {
            return try await value(Ask(.POST, "session", "codes"))
        } catch {
            guard error.code == .conflict else { throw error }
            return nil
        }
    }

    package func states(of graph: String) async throws(ClientError) -> StateRunsView {
        try await value(Ask(.GET, "graphs", graph, "states"))
    }

    package func operation(
        _ operation: OperationSelector
    ) async throws(ClientError) -> OperationDetail {
        try await value(Ask(.GET, operation))
    }

    package func explain(_ operation: OperationSelector) async throws(ClientError) -> Explanation {
        try await value(Ask(.GET, operation, "explain"))
    }

    package func input(of operation: OperationSelector) async throws(ClientError) -> Payload? {
        try await payload(Ask(.GET, operation, "input"))
    }

    package func output(of operation: OperationSelector) async throws(ClientError) -> Payload? {
        try await payload(Ask(.GET, operation, "output"))
    }

    private func payload(_ ask: Ask) async throws(ClientError) -> Payload? {
        var ask = ask
        ask.headers.add(name: "Accept", value: "*/*")
        let response = try await response(to: ask)
        let bytes = try await bytes(of: response)
        guard response.status != .noContent else { return nil }
        let type = response.headers.first(name: "Content-Type") ?? "application/octet-stream"
        return Payload(contentType: type, bytes: bytes)
    }

    package func cancel(
        _ target: TargetSelector,
        _ request: CancelRequest
    ) async throws(ClientError) -> CommandView {
        let time = time(over: request.wait)
        return try await value(Ask(.POST, target, "cancel").with(json: request).within(time))
    }

    /// The time limit for an answer that may take this many seconds more. The coordinator refuses
    /// values beyond its limits; here the value only has to be a duration.
    private func time(over wait: Double?) -> Duration {
        let longest = 366.0 * 86_400
        guard let wait, wait > 0 else { return configuration.answerTime }
        return configuration.answerTime + .seconds(min(wait, longest))
    }

    package func suspend(
        _ target: TargetSelector,
        _ request: SuspendRequest
    ) async throws(ClientError) -> CommandView {
        let time = time(over: request.wait)
        return try await value(Ask(.POST, target, "suspend").with(json: request).within(time))
    }

    package func resume(_ target: TargetSelector) async throws(ClientError) -> CommandView {
        try await value(Ask(.POST, target, "resume"))
    }

    package func retry(
        graph: String,
        _ request: RetryRequest
    ) async throws(ClientError) -> CommandView {
        try await value(Ask(.POST, "graphs", graph, "retry").with(json: request))
    }

    package func complete(
        _ operation: OperationSelector,
        attempt: AttemptID?,
        with completion: Completion
    ) async throws(ClientError) -> OperationView {
        let body = CompletionBody(completion, attempt: attempt)
        return try await value(Ask(.POST, operation, "complete").with(json: body))
    }

    package func setPriority(
        of operation: OperationSelector,
        to priority: QueuePriority
    ) async throws(ClientError) -> OperationView {
        try await value(Ask(.PUT, operation, "priority").with(json: ["priority": priority]))
    }

    package func addDependency(
        of operation: OperationSelector,
        on dependency: OperationSelector,
        _ condition: DependencyCondition
    ) async throws(ClientError) -> OperationDetail {
        let names = (dependency.graph, dependency.operation)
        return try await value(
            Ask(.PUT, operation, "dependencies", names.0, names.1)
                .with("condition", condition.name)
        )
    }

    package func removeDependency(
        of operation: OperationSelector,
        on dependency: OperationSelector
    ) async throws(ClientError) -> OperationDetail {
        let names = (dependency.graph, dependency.operation)
        return try await value(Ask(.DELETE, operation, "dependencies", names.0, names.1))
    }

    package func queues() async throws(ClientError) -> [QueueView] {
        try await value(Ask(.GET, "queues"), QueuesBody.self).queues
    }

    package func queue(_ name: String) async throws(ClientError) -> QueueView {
        try await value(Ask(.GET, "queues", name))
    }

    package func operations(
        ofQueue name: String,
        _ query: QueueOperationQuery
    ) async throws(ClientError) -> QueuePage {
        try await value(
            Ask(.GET, "queues", name, "operations").with("state", query.state?.name)
                .with("outcome", query.outcome?.name).with("namePrefix", query.namePrefix)
                .with("after", query.after).with("limit", query.limit)
        )
    }

    package func waitUntilEmpty(
        queue name: String,
        within seconds: Double
    ) async throws(ClientError) -> QueueView {
        let time = time(over: seconds)
        return try await value(Ask(.GET, "queues", name).with("wait", seconds).within(time))
    }

    package func setQueue(
        _ name: String,
        _ change: QueueChange
    ) async throws(ClientError) -> QueueView {
        try await value(Ask(.PATCH, "queues", name).with(json: change))
    }

    package func resetQueue(_ name: String) async throws(ClientError) -> QueueView {
        try await value(Ask(.POST, "queues", name, "reset"))
    }

    package func keys() async throws(ClientError) -> [KeyView] {
        try await value(Ask(.GET, "keys"), KeysBody.self).keys
    }

    package func key(_ name: String) async throws(ClientError) -> KeyView {
        try await value(Ask(.GET, "keys", name))
    }

    package func setKey(_ settings: KeySettings) async throws(ClientError) -> KeyView {
        try await value(Ask(.PUT, "keys", settings.name).with(json: KeyBody(settings)))
    }

    package func resetKey(_ name: String) async throws(ClientError) -> KeyView {
        try await value(Ask(.POST, "keys", name, "reset"))
    }

    package func workers() async throws(ClientError) -> [WorkerView] {
        try await value(Ask(.GET, "workers"), WorkersBody.self).workers
    }

    package func drain(worker: String) async throws(ClientError) -> WorkerView {
        try await value(Ask(.POST, "workers", worker, "drain"))
    }

    package func status() async throws(ClientError) -> ClusterView {
        try await value(Ask(.GET, "status"))
    }

    package func backup() async throws(ClientError) -> StoreBackup {
        var ask = Ask(.POST, "backup").within(configuration.backupTime)
        ask.headers.add(name: "Accept", value: "*/*")
        let response = try await response(to: ask)
        guard let length = response.headers.first(name: "Content-Length").flatMap({ Int($0) }),
            length >= 0
        else {
            throw ClientError(
                .internal,
                "\(configuration.url) did not send the size of the copy: it may not be a "
                    + "coordinator."
            )
        }
        let reader = BodyReader(self, response.body)
        return StoreBackup(
            byteCount: length,
            pieces: AsyncThrowingStream { try await reader.next() }
        )
    }
}

/// Reads the body of an answer piece by piece.
private actor BodyReader {
    private let client: HTTPCoordinatorClient
    private var body: HTTPClientResponse.Body.AsyncIterator?

    init(_ client: HTTPCoordinatorClient, _ body: HTTPClientResponse.Body) {
        self.client = client
        self.body = body.makeAsyncIterator()
    }

    /// The next piece; `nil` at the end.
    func next() async throws -> [UInt8]? {
        guard var iterator = body else { return nil }
        defer { body = iterator }
        do {
            return try await iterator.next(isolation: self).map { Array($0.readableBytesView) }
        } catch {
            throw client.sentence(error)
        }
    }
}

/// Sends a graph piece by piece, as fast as the connection takes it.
private struct GraphPieces: AsyncSequence, Sendable {
    typealias Element = ByteBuffer

    let pieces: any Sequence<[UInt8]> & Sendable

    func makeAsyncIterator() -> Iterator { Iterator(base: pieces.makeIterator()) }

    struct Iterator: AsyncIteratorProtocol {
        var base: any IteratorProtocol<[UInt8]>

        mutating func next() async -> ByteBuffer? { base.next().map { ByteBuffer(bytes: $0) } }
    }
}
