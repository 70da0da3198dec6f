import OperonCore
package import OperonModel
package import OperonPorts
import OperonWire

/// A coordinator in this process, as one client sees it. The HTTP server serves it, and programs
/// that are their own coordinator use it.
package struct LocalCoordinator: CoordinatorClient {
    let answers: DurableAnswers
    let limits: Limits
    /// The name that is stored with this client's requests; empty: it has none.
    let caller: String
    /// The version of this program.
    private let version: String

    package init(service: CoordinatorService, caller: String, version: String) {
        answers = DurableAnswers(of: service)
        limits = service.limits
        self.caller = caller
        self.version = version
    }

    // MARK: - Graphs

    package func submit(_ submission: Submission) async throws(ClientError) -> GraphView {
        let (graph, compiled) = try await compiled(submission.graph)
        var contents = try StoredContents(graph, failFast: compiled.failFast)
        contents.submitter = caller
        contents.isOpen = submission.isOpen
        contents.idempotencyKey = submission.idempotencyKey ?? ""
        contents.traceParent = submission.traceParent ?? ""
        contents.needs = compiled.graphsNeeded(by: nil)
        let kept = contents
        return try await answers.change { service async throws(ClientError) in
            service.answer(try await service.submitOnce(graph, compiled, kept))
        }
    }

    package func resubmit(
        _ submission: Submission,
        of graph: String,
        _ options: ResubmitOptions
    ) async throws(ClientError) -> ContinuationView {
        let (edited, compiled) = try await compiled(submission.graph)
        return try await answers.change { service async throws(ClientError) in
            try await service.resubmit(
                edited,
                failFast: compiled.failFast,
                of: try service.find(graph),
                submission,
                by: caller,
                options
            )
        }
    }

    package func rerun(
        graph: String,
        _ request: RerunRequest
    ) async throws(ClientError) -> ContinuationView {
        try await answers.change { service async throws(ClientError) in
            try await service.rerun(try service.find(graph), by: caller, request)
        }
    }

    private func compiled(
        _ graph: GraphDescription
    ) async throws(ClientError) -> (GraphDescription, CompiledGraph) {
        do throws(Refusal) {
            guard graph.mayNameOthers else {
                return (graph, try CompiledGraph.compile(graph, limits: limits))
            }
        } catch {
            throw ClientError(error)
        }
        return try await answers.live { service throws(ClientError) in
            try service.compileAmongOthers(graph, by: caller)
        }
    }

    package func add(
        _ addition: Submission,
        to graph: String
    ) async throws(ClientError) -> GraphView {
        try await answers.change { service async throws(ClientError) in
            try await service.add(addition, to: try service.find(graph), caller)
        }
    }

    package func close(graph: String) async throws(ClientError) -> GraphView {
        try await answers.change { service throws(ClientError) in
            let id = try service.findKept(graph)
            try service.request(.graphClosed(id), by: caller)
            return service.view(of: id)
        }
    }

    package func graphs(_ query: GraphQuery) async throws(ClientError) -> GraphPage {
        try await answers.read { $0.page(query) }
    }

    package func graph(_ graph: String) async throws(ClientError) -> GraphView {
        try await answers.read { service throws(ClientError) in
            service.view(of: try service.find(graph))
        }
    }

    /// The reader gets only counts that are on the disk.
    package func progress(of graph: String) async throws(ClientError) -> ProgressUpdates {
        try await answers.live { service throws(ClientError) in
            guard service.store != nil else {
                throw ClientError(.unavailable, "This coordinator keeps no events.")
            }
            return try service.watchProgress(of: try service.find(graph))
        }
    }

    // MARK: - Operations

    package func operations(
        of graph: String,
        _ query: OperationQuery
    ) async throws(ClientError) -> OperationPage {
        let id = try await answers.live { service throws(ClientError) in
            try service.find(graph)
        }
        // The first number that is not before the page.
        let start = query.after.map { after in
            query.numbers.map { $0.firstIndex { $0 >= after } ?? $0.count } ?? Int(after)
        }
        var search = PageSearch(from: start ?? 0, limit: query.limit)
        while search.place != nil {
            let before = search
            search = try await answers.live { service throws(ClientError) in
                try service.search(id, query, before)
            }
        }
        let next = search.next.map { query.numbers?[$0] ?? UInt32($0) }
        let page = OperationPage(operations: search.views, next: next)
        return try await answers.read { _ in page }
    }

    package func records(
        of graph: String,
        after: UInt32?,
        limit: Int
    ) async throws(ClientError) -> RecordPage {
        let slice = try await answers.read { service throws(ClientError) in
            try service.recordSlice(of: try service.find(graph), after: after, limit: limit)
        }
        let attempts = try await answers.live { service async throws(ClientError) in
            try await service.stored { try await $0.attempts(of: slice.graph, in: slice.range) }
        }
        let workers = Set((attempts ?? []).map(\.attempt.worker)).subtracting([.nobody])
            .sorted { $0.rawValue < $1.rawValue }
        let names = try await answers.live { $0.names(of: workers) }
        return RecordPage(slice, attempts: attempts ?? [], workers: workers, names: names)
    }

    package func states(of graph: String) async throws(ClientError) -> StateRunsView {
        let id = try await answers.read { service throws(ClientError) in
            try service.find(graph)
        }
        // In slices, between which the service decides.
        let slice = UInt32(ProgressFeed.sliceOperations)
        var runs = StateRunsView()
        var first: UInt32 = 0
        while true {
            let range = first..<first + slice
            let before = runs
            let found = try await answers.live { service throws(ClientError) in
                try service.addStates(of: id, in: range, to: before)
            }
            runs = found.runs
            guard found.hasMore else { break }
            first += slice
        }
        let all = runs
        return try await answers.read { _ in all }
    }

    package func operation(
        _ operation: OperationSelector
    ) async throws(ClientError) -> OperationDetail {
        try await answers.read { service async throws(ClientError) in
            try await service.detail(of: try service.find(operation), isChanged: false)
        }
    }

    package func explain(
        _ operation: OperationSelector
    ) async throws(ClientError) -> Explanation {
        try await answers.read { service throws(ClientError) in
            try service.explanation(of: try service.find(operation))
        }
    }

    package func input(
        of operation: OperationSelector
    ) async throws(ClientError) -> Payload? {
        try await answers.read { service throws(ClientError) in
            try service.input(of: try service.find(operation))
        }
    }

    package func output(
        of operation: OperationSelector
    ) async throws(ClientError) -> Payload? {
        try await answers.read { service async throws(ClientError) in
            let id = service.leavingOutput(of: try service.find(operation))
            let output = try await service.stored { try await $0.output(of: id) }
            // If the graph was dropped meanwhile, the missing output must not look as if there were
            // none.
            try service.check(id)
            return output.flatMap { $0 }
        }
    }

    package func log(
        of selector: LogSelector,
        _ query: LogQuery
    ) async throws(ClientError) -> AsyncThrowingStream<LogView, any Error> {
        let reader = try await answers.live { service throws(ClientError) in
            LogReader(service, service.listen(to: try service.scope(of: selector)), query)
        }
        return AsyncThrowingStream { try await reader.next() }
    }

    // MARK: - Commands

    package func cancel(
        _ target: TargetSelector,
        _ request: CancelRequest
    ) async throws(ClientError) -> CommandView {
        try Self.check(reason: request.reason)
        let (target, view) = try await answers.change { service throws(ClientError) in
            let target = try service.findKnown(target)
            let event = Scheduler.Event.cancelRequested(
                target,
                reason: request.reason,
                cascade: request.cascade
            )
            return (target, try service.perform(event, by: caller))
        }
        return try await settled(
            view,
            within: request.wait,
            "The cancel is accepted, but not all of its operations have ended"
        ) { $0.unfinished(of: target).isEmpty }
    }

    package func suspend(
        _ target: TargetSelector,
        _ request: SuspendRequest
    ) async throws(ClientError) -> CommandView {
        try Self.check(reason: request.reason)
        let (target, view) = try await answers.change { service throws(ClientError) in
            let target = try service.find(target)
            let suspension = Suspension(
                by: caller,
                reason: request.reason,
                until: request.until?.time
            )
            let event = Scheduler.Event.suspensionRequested(target, suspension)
            return (target, try service.perform(event, by: caller))
        }
        return try await settled(
            view,
            within: request.wait,
            "The suspension is accepted, but a worker has not given back operations that it holds"
        ) { $0.isEffective(target) }
    }

    /// The most bytes of a reason, because each operation that it concerns keeps it.
    static let reasonBytesMax = 4_096

    static func check(reason: String) throws(ClientError) {
        guard reason.utf8.count > reasonBytesMax else { return }
        throw ClientError(
            .invalid,
            "A reason has at most \(reasonBytesMax) bytes; this one has \(reason.utf8.count)."
        )
    }

    /// The answer to a command, once the condition holds.
    ///
    /// - Parameters:
    ///   - seconds: How long the client waits; `nil`: it does not wait.
    ///   - late: What is the case if the condition does not hold by then.
    /// - Throws: `ClientError.timedOut` in that case; the command is accepted all the same.
    private func settled(
        _ view: CommandView,
        within seconds: Double?,
        _ late: String,
        until isTrue: @escaping @Sendable (Scheduler) -> Bool
    ) async throws(ClientError) -> CommandView {
        guard let seconds else { return view }
        var view = view
        view.isEffective = try await answers.live { await $0.wait(within: seconds, until: isTrue) }
        guard view.isEffective else {
            // The wait also ends when the coordinator does.
            try await answers.live { service throws(ClientError) in try service.goesOn() }
            throw ClientError(.timedOut, "\(late) in the time that was given.")
        }
        return view
    }

    package func resume(_ target: TargetSelector) async throws(ClientError) -> CommandView {
        try await answers.change { service throws(ClientError) in
            let target = try service.findKnown(target)
            return try service.perform(.suspensionRequested(target, nil), by: caller)
        }
    }

    package func retry(
        graph: String,
        _ request: RetryRequest
    ) async throws(ClientError) -> CommandView {
        try await answers.change { service async throws(ClientError) in
            try await service.retry(try service.findKept(graph), request, by: caller)
        }
    }

    package func complete(
        _ operation: OperationSelector,
        attempt: AttemptID?,
        with completion: Completion
    ) async throws(ClientError) -> OperationView {
        if case .cancelled(let reason) = completion { try Self.check(reason: reason) }
        return try await answers.change { service throws(ClientError) in
            let id = try service.find(operation)
            let event = Scheduler.Event.completionRequested(id, attempt: attempt, completion)
            try service.request(event, by: caller)
            return service.view(of: id)
        }
    }

    package func setPriority(
        of operation: OperationSelector,
        to priority: QueuePriority
    ) async throws(ClientError) -> OperationView {
        try await answers.change { service throws(ClientError) in
            let id = try service.find(operation)
            try service.request(.priorityRequested(id, priority), by: caller)
            return service.view(of: id)
        }
    }

    package func addDependency(
        of operation: OperationSelector,
        on dependency: OperationSelector,
        _ condition: DependencyCondition
    ) async throws(ClientError) -> OperationDetail {
        try await answers.change { service async throws(ClientError) in
            let id = try service.find(operation)
            let other = try service.findOutcome(dependency)
            try service.addDependency(of: id, on: other, condition, by: caller)
            return try await service.detail(of: id, isChanged: true)
        }
    }

    package func removeDependency(
        of operation: OperationSelector,
        on dependency: OperationSelector
    ) async throws(ClientError) -> OperationDetail {
        try await answers.change { service async throws(ClientError) in
            let id = try service.find(operation)
            let other = try service.findOutcome(dependency)
            try service.removeDependency(of: id, on: other, by: caller)
            return try await service.detail(of: id, isChanged: true)
        }
    }

    // MARK: - Queues and workers

    package func queues() async throws(ClientError) -> [QueueView] {
        try await answers.read { $0.queueViews() }
    }

    package func queue(_ name: String) async throws(ClientError) -> QueueView {
        try await answers.read { service throws(ClientError) in
            try service.view(ofQueue: name)
        }
    }

    package func operations(
        ofQueue name: String,
        _ query: QueueOperationQuery
    ) async throws(ClientError) -> QueuePage {
        var start = OperationID(graph: GraphID(rawValue: 0), index: 0)
        if let after = query.after {
            guard let place = OperationID(after) else {
                throw ClientError(.invalid, "“\(after)” is not the `next` of a page.")
            }
            start = place
        }
        var search = PageSearch(from: start, limit: query.limit)
        while search.place != nil {
            let before = search
            search = try await answers.live { service throws(ClientError) in
                try service.search(queue: name, query, before)
            }
        }
        let page = QueuePage(operations: search.views, next: search.next?.description)
        return try await answers.read { _ in page }
    }

    package func waitUntilEmpty(
        queue name: String,
        within seconds: Double
    ) async throws(ClientError) -> QueueView {
        try await answers.read { service async throws(ClientError) in
            // A queue that does not exist must not be waited for.
            _ = try service.view(ofQueue: name)
            let isEmpty = await service.wait(within: seconds) {
                // A queue that nothing names any more has been forgotten.
                $0.unfinishedCount(ofQueue: name) ?? 0 == 0
            }
            // A client that repeats its call until the queue is empty would otherwise never stop.
            if !isEmpty { try service.goesOn() }
            return try service.view(ofQueue: name)
        }
    }

    package func setQueue(
        _ name: String,
        _ change: QueueChange
    ) async throws(ClientError) -> QueueView {
        guard change.isUnlimited != true || change.maxConcurrentOperationCount == nil else {
            throw ClientError(.invalid, "Give a limit, or remove the limit: not both.")
        }
        let rate = try change.newRate
        return try await answers.change { service throws(ClientError) in
            let maximum = change.maxConcurrentOperationCount
            if change.isUnlimited == true || maximum != nil {
                try service.request(.queueLimitSet(queue: name, maximum: maximum), by: caller)
            }
            if let rate {
                try service.request(.queueRateSet(queue: name, rate.value), by: caller)
            }
            // Creates a queue, so that it can be suspended before it has operations.
            let isMade =
                change == QueueChange()
                && service.scheduler.unfinishedCount(ofQueue: name) == nil
            if let priority = change.priority ?? (isMade ? .normal : nil) {
                try service.request(.queuePrioritySet(queue: name, priority), by: caller)
            }
            return try service.view(ofQueue: name)
        }
    }

    package func resetQueue(_ name: String) async throws(ClientError) -> QueueView {
        try await answers.change { service throws(ClientError) in
            try service.resetQueue(name, by: caller)
        }
    }

    package func keys() async throws(ClientError) -> [KeyView] {
        try await answers.read { $0.keyViews() }
    }

    package func key(_ name: String) async throws(ClientError) -> KeyView {
        try await answers.read { service throws(ClientError) in try service.view(ofKey: name) }
    }

    package func setKey(_ settings: KeySettings) async throws(ClientError) -> KeyView {
        try await answers.change { service throws(ClientError) in
            try service.request(.keyLimitSet(settings), by: caller)
            return try service.view(ofKey: settings.name)
        }
    }

    package func resetKey(_ name: String) async throws(ClientError) -> KeyView {
        try await answers.change { service throws(ClientError) in
            try service.resetKey(name, by: caller)
        }
    }

    package func workers() async throws(ClientError) -> [WorkerView] {
        try await answers.live { $0.workerViews() }
    }

    package func drain(worker: String) async throws(ClientError) -> WorkerView {
        try await answers.live { service async throws(ClientError) in
            try await service.drain(worker: worker, by: caller)
        }
    }

    package func status() async throws(ClientError) -> ClusterView {
        try await answers.live { $0.fullClusterView(version: version) }
    }

    /// The reader gets only what is on the disk.
    package func statusUpdates() async throws(ClientError) -> StatusUpdates {
        try await answers.live { service throws(ClientError) in
            guard service.store != nil else {
                throw ClientError(.unavailable, "This coordinator keeps no events.")
            }
            return service.watchStatus(version: version)
        }
    }

    package func sessionCode() -> SessionCodeView? { nil }

    package func backup() async throws(ClientError) -> StoreBackup {
        // `stored` waits for the disk before the copy. The copy itself may fill it.
        try await answers.live { service async throws(ClientError) in
            let copied = try await service.stored { try await $0.backup() }
            guard let backup = copied.flatMap({ $0 }) else {
                throw ClientError(
                    .conflict,
                    "This coordinator keeps its graphs in memory: there is no store to copy."
                )
            }
            return backup
        }
    }

    // MARK: - Events

    /// The reader gets only events that are on the disk.
    package func events(_ query: EventQuery) async throws(ClientError) -> EventBatches {
        try await answers.live { service throws(ClientError) in
            guard let store = service.store else {
                throw ClientError(.unavailable, "This coordinator keeps no events.")
            }
            var only: GraphID?
            if let graph = query.graph { only = try service.find(graph) }
            let start = query.after ?? service.lastEvent
            service.startReading()
            let reader = EventReader(
                service: service,
                store: store,
                filter: EventFilter(
                    graph: only,
                    kinds: query.kinds,
                    outcomes: query.outcomes
                ),
                after: start
            )
            return AsyncThrowingStream { try await reader.next() }
        }
    }
}

extension GraphDescription {
    /// Whether a dependency may have the form `GRAPH/OPERATION`.
    fileprivate var mayNameOthers: Bool {
        operations.contains { $0.dependencies.contains { $0.name.contains("/") } }
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

extension QueueChange {
    /// The new rate; its value is `nil` if the rate is removed. `nil`: the rate stays as it is.
    fileprivate var newRate: (value: StartRate?, Void)? {
        get throws(ClientError) {
            guard let rate else {
                if burst != nil { throw ClientError(.invalid, "A burst needs a rate.") }
                return hasNoRate == true ? (nil, ()) : nil
            }
            guard hasNoRate != true else {
                throw ClientError(.invalid, "Give a rate, or remove the rate: not both.")
            }
            return (try StartRate.read(rate, burst: burst), ())
        }
    }
}
