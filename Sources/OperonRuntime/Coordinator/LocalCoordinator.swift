import OperonCore
package import OperonModel
package import OperonPorts
import OperonWire

/// A coordinator in this process, as one client sees it. The HTTP server serves it, and programs
/// that are their own coordinator use it.
package struct LocalCoordinator: CoordinatorClient {
    let service: CoordinatorService
    /// The name that is stored with this client's requests; empty: it has none.
    let caller: String
    /// The version of this program.
    let version: String
    var limits: Limits { service.limits }

    package init(service: CoordinatorService, caller: String, version: String) {
        self.service = service
        self.caller = caller
        self.version = version
    }

    // MARK: - Graphs

    package func submit(_ submission: Submission) async throws(ClientError) -> GraphView {
        var graph = submission.graph
        let compiled: CompiledGraph
        do throws(Refusal) {
            if graph.mayNameOthers {
                (graph, compiled) = try await service.compileAmongOthers(graph, limits)
            } else {
                compiled = try CompiledGraph.compile(graph, limits: limits)
            }
        } catch {
            throw ClientError(error)
        }
        var contents = try StoredContents(graph, compiled)
        contents.submitter = caller
        contents.isOpen = submission.isOpen
        contents.idempotencyKey = submission.idempotencyKey ?? ""
        contents.traceParent = submission.traceParent ?? ""
        contents.needs = CoordinatorService.needs(compiled.outer, of: nil)
        let id = try await asked { service async throws(ClientError) in
            try await service.submitOnce(graph, compiled, contents)
        }
        // Takes the view now and returns it once the submission is synced.
        let view = await service.view(of: id)
        try await service.kept()
        return view
    }

    package func add(
        _ addition: Submission,
        to graph: String
    ) async throws(ClientError) -> GraphView {
        let id = try await service.find(graph)
        return try await asked { service async throws(ClientError) in
            try await service.add(addition, to: id, caller, limits)
        }
    }

    package func close(graph: String) async throws(ClientError) -> GraphView {
        let id = try await service.find(graph)
        return try await asked { service async throws(ClientError) in
            try await service.close(id)
        }
    }

    package func graphs(_ query: GraphQuery) async throws(ClientError) -> GraphPage {
        let page = await service.page(query)
        try await service.durable()
        return page
    }

    package func graph(_ graph: String) async throws(ClientError) -> GraphView {
        let id = try await service.find(graph)
        let view = await service.view(of: id)
        try await service.durable()
        return view
    }

    // MARK: - Operations

    package func operations(
        of graph: String,
        _ query: OperationQuery
    ) async throws(ClientError) -> OperationPage {
        let id = try await service.find(graph)
        let page = try await service.page(of: id, query)
        try await service.durable()
        return page
    }

    package func operation(
        _ operation: OperationSelector
    ) async throws(ClientError) -> OperationDetail {
        try await detail(of: try await service.find(operation), isChanged: false)
    }

    private func detail(
        of id: OperationID,
        isChanged: Bool
    ) async throws(ClientError) -> OperationDetail {
        var detail = try await service.detail(of: id)
        // Before the store is read, so that its attempts are as recent as the rest.
        if isChanged { try await service.kept() } else { try await service.durable() }
        let attempts = try await stored { try await $0.attempts(of: id) } ?? []
        detail.attempts = await service.views(of: attempts)
        try await whatWasRead(isChanged: isChanged)
        return detail
    }

    package func explain(
        _ operation: OperationSelector
    ) async throws(ClientError) -> Explanation {
        let id = try await service.find(operation)
        let explanation = try await service.explanation(of: id)
        try await service.durable()
        return explanation
    }

    package func input(
        of operation: OperationSelector
    ) async throws(ClientError) -> Payload? {
        let id = try await service.find(operation)
        let input = try await service.input(of: id)
        try await service.durable()
        return input
    }

    package func output(
        of operation: OperationSelector
    ) async throws(ClientError) -> Payload? {
        let id = try await service.find(operation)
        try await service.durable()
        let output = try await stored { try await $0.output(of: id) }
        try await whatWasRead()
        // If the graph was dropped meanwhile, the missing output must not look as if there were
        // none.
        try await service.check(id)
        return output.flatMap { $0 }
    }

    package func log(of operation: OperationSelector) async throws(ClientError) -> [LogView] {
        let id = try await service.find(operation)
        try await service.durable()
        let logs = try await stored { try await $0.log(of: id) } ?? []
        try await whatWasRead()
        let name = await service.name(of: id)
        return logs.map { log in
            LogView(
                operation: name,
                attempt: log.attempt.description,
                text: String(decoding: log.tail, as: UTF8.self),
                isTail: log.tail.count >= limits.logBytes
            )
        }
    }

    package func followLog(
        of operation: OperationSelector
    ) async throws(ClientError) -> AsyncThrowingStream<LogView, any Error> {
        let id = try await service.find(operation)
        // Listens first: output that is printed meanwhile is delivered twice rather than lost.
        let listener = await service.listen(to: id)
        let earlier: [LogView]
        do throws(ClientError) {
            earlier = try await log(of: operation)
        } catch {
            await service.stopListening(listener.id)
            throw error
        }
        let name = await service.name(of: id)
        let isFinished = await service.query { $0.state(of: id) == .finished }
        if isFinished { await service.stopListening(listener.id) }
        let reader = LogReader(service, listener, name: name, earlier: earlier)
        return AsyncThrowingStream { await reader.next() }
    }

    /// The store returns committed data; waits until it is synced, before it is shown.
    private func whatWasRead(isChanged: Bool = false) async throws(ClientError) {
        if isChanged { try await service.kept() } else { try await service.durable() }
    }

    /// `nil`: there is no store.
    private func stored<Value: Sendable>(
        _ ask: @Sendable (any OperationStore) async throws -> Value
    ) async throws(ClientError) -> Value? {
        guard let store = await service.store else { return nil }
        do {
            return try await ask(store)
        } catch {
            throw ClientError(.unavailable, "\(error)")
        }
    }

    // MARK: - Commands

    /// A refusal may state a fact, such as that an operation has ended, so it is synced before the
    /// client is told.
    private func asked<Value: Sendable>(
        _ ask: (CoordinatorService) async throws(ClientError) -> Value
    ) async throws(ClientError) -> Value {
        do throws(ClientError) {
            return try await ask(service)
        } catch {
            if error.refusal != nil { try await service.durable() }
            throw error
        }
    }

    package func cancel(
        _ target: TargetSelector,
        _ request: CancelRequest
    ) async throws(ClientError) -> CommandView {
        let target = try await service.findKnown(target)
        let event = Scheduler.Event.cancelRequested(
            target,
            reason: request.reason,
            cascade: request.cascade,
            by: caller
        )
        var view = try await asked { service async throws(ClientError) in
            try await service.perform(event)
        }
        try await service.kept()
        if let wait = request.wait {
            view.isEffective = try await service.waitUntilEnded(target, within: wait)
        }
        return view
    }

    package func suspend(
        _ target: TargetSelector,
        _ request: SuspendRequest
    ) async throws(ClientError) -> CommandView {
        let target = try await service.find(target)
        let suspension = Suspension(
            by: caller,
            reason: request.reason,
            until: request.until?.time
        )
        let event = Scheduler.Event.suspensionRequested(target, suspension)
        var view = try await asked { service async throws(ClientError) in
            try await service.perform(event)
        }
        try await service.kept()
        if let wait = request.wait {
            view.isEffective = try await service.waitUntilEffective(target, within: wait)
        }
        return view
    }

    package func resume(_ target: TargetSelector) async throws(ClientError) -> CommandView {
        let target = try await service.findKnown(target)
        let event = Scheduler.Event.suspensionRequested(target, nil)
        let view = try await asked { service async throws(ClientError) in
            try await service.perform(event)
        }
        try await service.kept()
        return view
    }

    package func retry(
        graph: String,
        _ request: RetryRequest
    ) async throws(ClientError) -> CommandView {
        let id = try await service.find(graph)
        let view = try await asked { service async throws(ClientError) in
            try await service.retry(id, request)
        }
        try await service.kept()
        return view
    }

    package func complete(
        _ operation: OperationSelector,
        attempt: AttemptID?,
        with completion: Completion
    ) async throws(ClientError) -> OperationView {
        let id = try await service.find(operation)
        let event = Scheduler.Event.completionRequested(id, attempt: attempt, completion)
        try await asked { service async throws(ClientError) in
            try await service.request(event)
        }
        let view = try await service.current(id)
        try await service.kept()
        return view
    }

    package func setPriority(
        of operation: OperationSelector,
        to priority: QueuePriority
    ) async throws(ClientError) -> OperationView {
        let id = try await service.find(operation)
        try await asked { service async throws(ClientError) in
            try await service.request(.priorityRequested(id, priority))
        }
        let view = try await service.current(id)
        try await service.kept()
        return view
    }

    package func addDependency(
        of operation: OperationSelector,
        on dependency: OperationSelector,
        _ condition: DependencyCondition
    ) async throws(ClientError) -> OperationDetail {
        let id = try await service.find(operation)
        let other = try await service.findOutcome(dependency)
        try await asked { service async throws(ClientError) in
            try await service.addDependency(of: id, on: other, condition)
        }
        return try await detail(of: id, isChanged: true)
    }

    package func removeDependency(
        of operation: OperationSelector,
        on dependency: OperationSelector
    ) async throws(ClientError) -> OperationDetail {
        let id = try await service.find(operation)
        let other = try await service.findOutcome(dependency)
        try await asked { service async throws(ClientError) in
            try await service.removeDependency(of: id, on: other)
        }
        return try await detail(of: id, isChanged: true)
    }

    // MARK: - Queues and workers

    package func queues() async throws(ClientError) -> [QueueView] {
        let views = await service.queueViews()
        try await service.durable()
        return views
    }

    package func queue(_ name: String) async throws(ClientError) -> QueueView {
        let view = try await service.view(ofQueue: name)
        try await service.durable()
        return view
    }

    package func operations(
        ofQueue name: String,
        _ query: QueueOperationQuery
    ) async throws(ClientError) -> QueuePage {
        let page = try await service.page(ofQueue: name, query)
        try await service.durable()
        return page
    }

    package func waitUntilEmpty(
        queue name: String,
        within seconds: Double
    ) async throws(ClientError) -> QueueView {
        // A queue that does not exist must not be waited for.
        _ = try await queue(name)
        let isEmpty = await service.wait(within: seconds) {
            // A queue that nothing names any more has been forgotten.
            $0.unfinishedCount(ofQueue: name) ?? 0 == 0
        }
        // A client that repeats its call until the queue is empty would otherwise never stop.
        if !isEmpty { try await service.goesOn() }
        return try await queue(name)
    }

    package func setQueue(
        _ name: String,
        _ change: QueueChange
    ) async throws(ClientError) -> QueueView {
        guard change.isUnlimited != true || change.maxConcurrentOperationCount == nil else {
            throw ClientError(.invalid, "Give a limit, or remove the limit: not both.")
        }
        if change.isUnlimited == true {
            try await service.request(.queueLimitSet(queue: name, maximum: nil))
        } else if let maximum = change.maxConcurrentOperationCount {
            try await service.request(.queueLimitSet(queue: name, maximum: maximum))
        }
        if let priority = change.priority {
            try await service.setPriority(ofQueue: name, to: priority)
        }
        if change == QueueChange(),
            await service.query({ $0.unfinishedCount(ofQueue: name) == nil })
        {
            // Creates the queue, so that it can be suspended before it has operations.
            try await service.setPriority(ofQueue: name, to: .normal)
        }
        let view = try await service.view(ofQueue: name)
        try await service.kept()
        return view
    }

    package func resetQueue(_ name: String) async throws(ClientError) -> QueueView {
        let view = try await service.resetQueue(name)
        try await service.kept()
        return view
    }

    package func keys() async throws(ClientError) -> [KeyView] {
        let views = await service.keyViews()
        try await service.durable()
        return views
    }

    package func key(_ name: String) async throws(ClientError) -> KeyView {
        let view = try await service.view(ofKey: name)
        try await service.durable()
        return view
    }

    package func setKey(_ settings: KeySettings) async throws(ClientError) -> KeyView {
        try await service.request(.keyLimitSet(settings))
        let view = try await service.view(ofKey: settings.name)
        try await service.kept()
        return view
    }

    package func resetKey(_ name: String) async throws(ClientError) -> KeyView {
        let view = try await service.resetKey(name)
        try await service.kept()
        return view
    }

    package func workers() async throws(ClientError) -> [WorkerView] {
        await service.workerViews()
    }

    package func drain(worker: String) async throws(ClientError) -> WorkerView {
        try await service.drain(worker: worker)
    }

    package func status() async throws(ClientError) -> ClusterView {
        await service.clusterView(version: version)
    }

    package func backup() async throws(ClientError) -> StoreBackup {
        // Everything that was reported to others is synced; pending changes shall be in the copy,
        // too.
        try await service.durable()
        guard let backup = try await stored({ try await $0.backup() }) else {
            throw ClientError(.unavailable, "This coordinator has no store to copy.")
        }
        return backup
    }

    // MARK: - Events

    package func events(
        after sequence: UInt64?,
        graph: String?
    ) async throws(ClientError) -> AsyncThrowingStream<ClientEvent, any Error> {
        guard let store = await service.store else {
            throw ClientError(.unavailable, "This coordinator keeps no events.")
        }
        var only: GraphID?
        if let graph { only = try await service.find(graph) }
        let start: UInt64
        if let sequence { start = sequence } else { start = await service.lastEvent }
        let reader = EventReader(service: service, store: store, graph: only, after: start)
        return AsyncThrowingStream { try await reader.next() }
    }
}

extension GraphDescription {
    /// Whether a dependency may have the form `GRAPH/OPERATION`.
    fileprivate var mayNameOthers: Bool {
        operations.contains { $0.dependencies.contains { $0.name.contains("/") } }
    }
}

/// Reads events from the store one after the other, so that nothing piles up for a slow reader.
private actor EventReader {
    private let service: CoordinatorService
    private let store: any OperationStore
    private let graph: GraphID?
    private var last: UInt64
    private var page: [StoredEvent] = []
    private static let pageSize = 256

    init(service: CoordinatorService, store: any OperationStore, graph: GraphID?, after: UInt64) {
        self.service = service
        self.store = store
        self.graph = graph
        last = after
    }

    /// Returns `nil` if the coordinator has ended.
    func next() async throws -> ClientEvent? {
        while !Task.isCancelled {
            if page.isEmpty {
                let known = await service.lastEvent
                if last > known {
                    // The store is older than the reader's position: it is a copy, or a power
                    // failure cut it. Nothing the reader saw counts then, and other events get the
                    // same numbers.
                    last = known
                    return .gap(min(1, known), known)
                }
                let newest = await service.waitForEvents(after: last)
                guard newest > last else { return nil }
                // Events that are not synced are held back: a power cut would undo them.
                page = try await store.events(after: last, limit: Self.pageSize)
                    .filter { $0.sequence <= newest }.reversed()
                guard let first = page.last else {
                    defer { last = newest }
                    return .gap(last + 1, newest)
                }
                if first.sequence > last + 1 {
                    defer { last = first.sequence - 1 }
                    return .gap(last + 1, first.sequence - 1)
                }
            }
            guard let event = page.popLast() else { continue }
            last = event.sequence
            let happening = try StoreFormat.decodeHappening(event.body)
            if let graph, happening.graph != graph { continue }
            return .event(await service.view(of: happening, event.sequence))
        }
        return nil
    }
}

extension ClientError {
    /// The graph was dropped: only the outcomes of its operations are left.
    static func dropped(_ graph: GraphID) -> ClientError {
        ClientError(
            .notFound,
            "Graph \(graph) was dropped: only its name and its outcomes are kept."
        )
    }

    static func noGraph(_ selector: String) -> ClientError {
        ClientError(
            .notFound,
            "There is no graph “\(selector)”."
        )
    }

    static func noQueue(_ name: String) -> ClientError {
        ClientError(
            .notFound,
            "There is no queue “\(name)”."
        )
    }

    static func noKey(_ name: String) -> ClientError {
        ClientError(.notFound, "There is no key “\(name)”.")
    }
}
