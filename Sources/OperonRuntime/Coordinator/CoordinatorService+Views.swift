import OperonCore
import OperonModel
import OperonPorts

// What clients are shown: names and sentences in place of the scheduler's numbers.
extension CoordinatorService {
    var store: (any OperationStore)? { keeping?.store }

    var lastEvent: UInt64 { keeping?.syncedEvent ?? 0 }

    // MARK: - Finding

    func find(_ selector: String) throws(ClientError) -> GraphID {
        guard let graph = catalog.find(selector) else { throw .noGraph(selector) }
        return graph
    }

    /// Like `find`, but for what a dropped graph cannot do.
    func findKept(_ selector: String) throws(ClientError) -> GraphID {
        let graph = try find(selector)
        try check(graph)
        return graph
    }

    /// Finds an operation by number if written `@7`, else by name, else by a number alone.
    func find(_ selector: OperationSelector) throws(ClientError) -> OperationID {
        let graph = try find(selector.graph)
        let count = catalog[graph].operations.count
        if let index = selector.number, index < count {
            return OperationID(graph: graph, index: index)
        }
        if let index = catalog[graph].number(of: selector.operation) {
            return OperationID(graph: graph, index: index)
        }
        if let index = UInt32(selector.operation), index < count {
            return OperationID(graph: graph, index: index)
        }
        if catalog.isDropped(graph) { throw .dropped(graph) }
        throw ClientError(
            .notFound,
            "There is no operation “\(selector.operation)” in graph “\(catalog.name(of: graph))”."
        )
    }

    /// Finds an operation that is to be depended on. In a dropped graph its outcome is enough;
    /// there the selector must contain the number, alone or before the name (`7/merge`).
    func findOutcome(_ selector: OperationSelector) throws(ClientError) -> OperationID {
        let graph = try find(selector.graph)
        if catalog.isDropped(graph),
            let index = selector.number ?? Self.number(in: selector.operation)
        {
            let id = OperationID(graph: graph, index: index)
            if scheduler.isKnown(id) { return id }
        }
        return try find(selector)
    }

    /// The number in `7/merge`, or in `7`.
    private static func number(in operation: String) -> UInt32? {
        UInt32(operation.prefix { $0 != "/" })
    }

    /// Throws if only the outcome is left: the graph may be dropped between two requests.
    func check(_ graph: GraphID) throws(ClientError) {
        guard !catalog.isDropped(graph) else { throw .dropped(graph) }
    }

    /// The same for one of its operations.
    func check(_ operation: OperationID) throws(ClientError) {
        guard scheduler.isKept(operation) else { throw .dropped(operation.graph) }
    }

    func find(_ selector: TargetSelector) throws(ClientError) -> Target {
        switch selector {
        case .operation(let operation): .operation(try find(operation))
        case .graph(let graph): .graph(try findKept(graph))
        case .queue(let name): .queue(name)
        }
    }

    /// Like `find`, but a queue that nothing has named does not exist.
    func findKnown(_ selector: TargetSelector) throws(ClientError) -> Target {
        if case .queue(let name) = selector, scheduler.unfinishedCount(ofQueue: name) == nil {
            throw .noQueue(name)
        }
        return try find(selector)
    }

    // MARK: - Names

    func name(of operation: OperationID) -> OperationName { catalog.name(of: operation) }

    func name(of worker: Incarnation) -> String { workerNames[worker] ?? worker.description }

    // MARK: - Graphs

    func view(of graph: GraphID) -> GraphView {
        let submission = catalog.submission(of: graph)
        let counts = scheduler.stateCounts(of: graph)
        var view = GraphView(
            id: graph.rawValue,
            name: catalog.name(of: graph),
            status: status(of: graph, counts),
            isOpen: scheduler.isOpen(graph),
            submittedAt: TimeText(submission.submittedAt),
            counts: counts
        )
        view.submittedBy = submission.submitter.isEmpty ? nil : submission.submitter
        if counts.unfinished == 0 { view.finishedAt = submission.finishedAt.map { TimeText($0) } }
        if scheduler.isCancelled(graph) { view.cancelReason = scheduler.cancelReason(of: graph) }
        view.suspension = scheduler.suspension(of: .graph(graph)).map { SuspensionView($0) }
        view.awaitingCompletion = scheduler.awaitedCount(of: graph)
        let upToDate = scheduler.upToDateCount(of: graph)
        view.upToDate = upToDate > 0 ? upToDate : nil
        if counts.unfinished == 0, !view.isOpen {
            view.exitCode =
                counts.failed > 0
                ? 1 : counts.cancelled > 0 ? 3 : scheduler.skippedMoreThanHandlers(graph) ? 7 : 0
        }
        return view
    }

    private func status(of graph: GraphID, _ counts: StateCounts) -> GraphStatus {
        guard counts.unfinished > 0 else {
            if scheduler.isOpen(graph) { return .idle }
            if counts.failed > 0 { return .failed }
            return counts.cancelled > 0 ? .cancelled : .finished
        }
        if scheduler.isCancelled(graph) { return .cancelling }
        return scheduler.suspension(of: .graph(graph)) == nil ? .running : .suspended
    }

    func page(_ query: GraphQuery) -> GraphPage {
        var views: [GraphView] = []
        for graph in catalog.keptGraphs.reversed() {
            if let after = query.after, graph.rawValue >= after { continue }
            if let name = query.name, catalog.name(of: graph) != name { continue }
            // A view takes time, and most graphs have finished.
            if let status = query.status, !status.isFinished, scheduler.isFinished(graph) {
                continue
            }
            let view = view(of: graph)
            // Everything that has ended is finished, however it ended.
            let ended: GraphStatus = view.status.isFinished ? .finished : view.status
            if let status = query.status, view.status != status, ended != status { continue }
            guard views.count < query.limit else {
                return GraphPage(graphs: views, next: graph.rawValue + 1)
            }
            views.append(view)
        }
        return GraphPage(graphs: views, next: nil)
    }

    // MARK: - Operations

    func view(of operation: OperationID) -> OperationView {
        let description = catalog[description: operation]
        var view = OperationView(
            graph: operation.graph.rawValue,
            index: operation.index,
            name: description.name,
            kind: description.work.kind,
            queue: description.queue,
            priority: scheduler.priority(of: operation),
            state: scheduler.state(of: operation)
        )
        view.attempts = UInt32(scheduler.attemptCount(of: operation))
        view.round = scheduler.round(of: operation)
        view.isCancelRequested = scheduler.isCancelRequested(operation)
        view.progress = progress[operation]?.progress
        guard let outcome = scheduler.outcome(of: operation) else { return view }
        view.outcome = outcome.kind
        let finishedAt = catalog[operation.graph].finishTime(of: operation.index)
        view.finishedAt = finishedAt.map { TimeText($0) }
        switch outcome {
        case .succeeded: view.isUpToDate = scheduler.isUpToDate(operation) ? true : nil
        case .failed(let error): view.error = ErrorView(error)
        case .cancelled(let reason): view.reason = reason.isEmpty ? nil : reason
        case .skipped(let cause): view.skippedFor = name(of: cause)
        }
        return view
    }

    /// The operation's own input; `nil`: it has none.
    func input(of operation: OperationID) throws(ClientError) -> Payload? {
        try check(operation)
        switch catalog[description: operation].work {
        case .registered(_, let input), .external(let input): return input.isEmpty ? nil : input
        case .nothing, .wait, .command: return nil
        }
    }

    /// The most bytes of an input in one answer.
    private static let inputBytesShown = 4_096
    /// The most dependents that one answer names.
    private static let dependentsMax = 100

    func detail(of operation: OperationID) throws(ClientError) -> OperationDetail {
        try check(operation)
        let description = catalog[description: operation]
        var detail = OperationDetail(
            operation: view(of: operation),
            graphName: catalog.name(of: operation.graph)
        )
        detail.summary = description.summary.isEmpty ? nil : description.summary
        detail.timeout = description.timeout?.seconds
        if description.qualityOfService != .default {
            detail.qualityOfService = description.qualityOfService.name
        }
        if case .command(let command) = description.work { detail.command = CommandDetail(command) }
        if description.retry.limit > 0 { detail.retry = RetryDetail(description.retry) }
        detail.input = try input(of: operation).flatMap { input in
            // What a person reads of it; `input` has all of it.
            let text = String(decoding: input.bytes.prefix(Self.inputBytesShown), as: UTF8.self)
            return input.bytes.contains(0) ? nil : text
        }
        detail.dependencies = scheduler.dependencies(of: operation).map { edge in
            DependencyView(
                operation: name(of: edge.operation, in: description),
                condition: edge.condition,
                state: scheduler.state(of: edge.operation),
                outcome: scheduler.outcomeKind(of: edge.operation)
            )
        }
        let dependents = scheduler.dependents(of: operation)
        detail.dependents = dependents.prefix(Self.dependentsMax).map { name(of: $0) }
        detail.moreDependents = max(0, dependents.count - Self.dependentsMax)
        detail.reasons = scheduler.explain(operation).map { view(of: $0, for: operation) }
        return detail
    }

    /// The details with the attempts, which only the store has.
    ///
    /// - Parameter isChanged: Whether the caller has changed the operation.
    func detail(
        of operation: OperationID,
        isChanged: Bool
    ) async throws(ClientError) -> OperationDetail {
        var detail = try detail(of: operation)
        let attempts = try await stored(isChanged: isChanged) {
            try await $0.attempts(of: operation)
        }
        detail.attempts = views(of: attempts ?? [])
        // No other attempt follows one that succeeded.
        if detail.operation.isUpToDate == true, let last = detail.attempts.indices.last {
            detail.attempts[last].isUpToDate = true
        }
        return detail
    }

    /// The name of a dependency. If its graph was dropped, only the dependent still has the name.
    private func name(
        of operation: OperationID,
        in dependent: OperationDescription
    ) -> OperationName {
        var name = name(of: operation)
        guard !scheduler.isKept(operation),
            let known = dependent.dependencies.first(where: { $0.resolvedID == operation })?.name
        else { return name }
        name.name = String(known.drop { $0 != "/" }.dropFirst())
        return name
    }

    func views(of attempts: [StoredAttempt]) -> [AttemptView] {
        attempts.map { attempt in
            var view = AttemptView(
                id: attempt.id.description,
                number: attempt.ordinal,
                worker: attempt.worker == .nobody ? "" : name(of: attempt.worker),
                grantedAt: TimeText(attempt.grantedAt)
            )
            view.startedAt = attempt.startedAt.map { TimeText($0) }
            view.endedAt = attempt.endedAt.map { TimeText($0) }
            view.ending = attempt.ending?.kind.name
            view.error = attempt.ending?.error.map { ErrorView($0) }
            return view
        }
    }

    func explanation(of operation: OperationID) throws(ClientError) -> Explanation {
        try check(operation)
        var explanation = Explanation(
            operation: view(of: operation),
            reasons: scheduler.explain(operation).map { view(of: $0, for: operation) }
        )
        var current = operation
        var length = 0
        while length < Self.chainMax, let next = cause(of: current), scheduler.isKept(next) {
            if length < Self.chainShown { explanation.chain.append(view(of: next)) }
            current = next
            length += 1
        }
        if length > Self.chainShown {
            explanation.chain.append(view(of: current))
            if length > Self.chainShown + 1 {
                explanation.leftOut = length - Self.chainShown - 1
            }
        }
        let reasons = length == 0 ? [] : scheduler.explain(current)
        if !reasons.isEmpty {
            explanation.rootReasons = reasons.map { view(of: $0, for: current) }
        }
        return explanation
    }

    /// The links of a chain that are named, in addition to the last.
    private static let chainShown = 8
    /// The most links of a chain that are followed, so that the request does not take too long.
    private static let chainMax = 100_000

    /// The operation because of which this one was skipped, or the first dependency it waits for.
    private func cause(of operation: OperationID) -> OperationID? {
        if case .skipped(let cause) = scheduler.outcome(of: operation) { return cause }
        guard scheduler.state(of: operation) == .pending else { return nil }
        return scheduler.dependencies(of: operation).first {
            scheduler.outcomeKind(of: $0.operation) == nil
        }?.operation
    }

    // MARK: - Queues and workers

    func queueViews() -> [QueueView] {
        scheduler.queueStatus.map { view($0) }.sorted { $0.name < $1.name }
    }

    func view(ofQueue name: String) throws(ClientError) -> QueueView {
        guard let status = scheduler.status(ofQueue: name) else { throw .noQueue(name) }
        return view(status)
    }

    private func view(_ queue: Scheduler.QueueStatus) -> QueueView {
        var view = QueueView(
            name: queue.name,
            maxConcurrentOperationCount: queue.maximum,
            priority: queue.priority,
            isSuspended: queue.isSuspended,
            ready: queue.ready,
            inFlight: queue.inFlight,
            unfinished: queue.unfinished
        )
        view.suspension = scheduler.suspension(of: .queue(queue.name)).map { SuspensionView($0) }
        view.rate = queue.rate?.text
        view.burst = queue.rate?.burst
        return view
    }

    /// Resets a queue; returns its state afterwards, even if the queue is gone.
    func resetQueue(_ name: String, by caller: String) throws(ClientError) -> QueueView {
        guard scheduler.unfinishedCount(ofQueue: name) != nil else { throw .noQueue(name) }
        try request(.queueReset(name), by: caller)
        return scheduler.status(ofQueue: name).map { view($0) }
            ?? QueueView(
                name: name,
                maxConcurrentOperationCount: nil,
                priority: .normal,
                isSuspended: false,
                ready: 0,
                inFlight: 0,
                unfinished: 0
            )
    }

    /// Resets a key; returns its state afterwards, even if the key is gone.
    func resetKey(_ name: String, by caller: String) throws(ClientError) -> KeyView {
        guard scheduler.hasKey(name) else { throw .noKey(name) }
        try request(.keyReset(name), by: caller)
        return scheduler.status(ofKey: name).map { view($0) }
            ?? KeyView(name: name, limit: StoredKey(name).settings.limit, held: 0, waiting: 0)
    }

    func keyViews() -> [KeyView] {
        scheduler.keyStatus.map { view($0) }.sorted { $0.name < $1.name }
    }

    func view(ofKey name: String) throws(ClientError) -> KeyView {
        guard let status = scheduler.status(ofKey: name) else { throw .noKey(name) }
        return view(status)
    }

    private func view(_ key: Scheduler.KeyStatus) -> KeyView {
        var view = KeyView(
            name: key.settings.name,
            limit: key.settings.limit,
            held: key.holders.count,
            waiting: key.waiting
        )
        view.rate = key.settings.rate?.text
        view.burst = key.settings.rate?.burst
        view.holders = key.holders.prefix(KeyView.holdersMax).map { name(of: $0) }
        if !key.waiters.isEmpty { view.waiters = key.waiters.map { name(of: $0) } }
        return view
    }

    func clusterView(version: String) -> ClusterView {
        var counts = StateCounts()
        var openGraphs = 0
        for graph in catalog.keptGraphs {
            counts.add(scheduler.stateCounts(of: graph))
            if !scheduler.isFinished(graph) { openGraphs += 1 }
        }
        let alive = scheduler.workerStatus(at: time.now()).filter(\.isAlive)
        var view = ClusterView(
            version: version,
            reign: scheduler.reign.description,
            epoch: scheduler.epoch.rawValue,
            startedAt: TimeText(startedAt),
            now: TimeText(time.wall()),
            broker: transport.isWithinProcess
                ? ClusterView.noBroker
                : scheduler.isUp ? ClusterView.well : "There is no connection to the broker.",
            store: keeping?.trouble?.message ?? ClusterView.well,
            workers: alive.count,
            slots: alive.reduce(0) { $0 + ($1.isDraining ? 0 : $1.slots) },
            busySlots: alive.reduce(0) { $0 + min($1.executing, $1.slots) },
            openGraphs: openGraphs,
            counts: counts
        )
        view.lastEvent = lastEvent
        if meters != nil { view.latency = latency.view }
        return view
    }

    // MARK: - Events

    /// The queue of the operation that the event is about, as long as it is known.
    private func queue(of event: ClusterEvent) -> String? {
        event.operation.flatMap { catalog.queue(of: $0) }
    }

    func views(of events: [(sequence: UInt64, event: ClusterEvent)]) -> [EventView] {
        events.map { view(of: $0.event, $0.sequence) }
    }

    private func view(of event: ClusterEvent, _ sequence: UInt64) -> EventView {
        var view = EventView(
            sequence: sequence,
            at: TimeText(event.at),
            kind: EventKind(event.kind)
        )
        if let graph = event.graph, catalog.contains(graph) {
            view.graph = graph.rawValue
            view.graphName = catalog.name(of: graph)
        }
        view.operation = event.operation.map { name(of: $0) }
        view.count = event.count
        view.outcome = event.outcome
        view.isUpToDate = event.isUpToDate ? true : nil
        view.attempt = event.attempt?.description
        view.ending = event.ending?.name
        view.error = event.error.map { ErrorView($0) }
        if !event.workerName.isEmpty {
            view.worker = event.workerName
        } else {
            view.worker = event.worker.map { name(of: $0) }
        }
        view.queue = event.queue.isEmpty ? queue(of: event) : event.queue
        view.key = event.key.isEmpty ? nil : event.key
        view.trigger = event.trigger.isEmpty ? nil : event.trigger
        view.firing = event.firing
        view.by = event.by.isEmpty ? nil : event.by
        view.reason = event.reason.isEmpty ? nil : event.reason
        return view
    }
}

extension SuspensionView {
    init(_ suspension: Suspension) {
        self.init(
            by: suspension.by.isEmpty ? nil : suspension.by,
            reason: suspension.reason.isEmpty ? nil : suspension.reason,
            until: suspension.until.map { TimeText($0) }
        )
    }
}

extension StateCounts {
    mutating func add(_ other: StateCounts) {
        pending += other.pending
        ready += other.ready
        dispatched += other.dispatched
        executing += other.executing
        succeeded += other.succeeded
        failed += other.failed
        cancelled += other.cancelled
        skipped += other.skipped
    }
}
