import OperonCore
import OperonModel
import OperonPorts

/// Makes the spans of a coordinator: of each graph, its submission and its operations, and of each
/// attempt the wait before it and its dispatch. Workers make the spans of what runs.
///
/// Takes about 150 bytes for each operation that is ready, dispatched or executing.
struct CoordinatorSpans {
    let sink: any SpanSink
    private let reign: Reign
    /// Operations that are recorded and have begun. Only looked up.
    private var begun: [OperationID: Begun] = [:]
    /// `nil`: the graph is not recorded. Only looked up.
    private var traces: [GraphID: GraphTrace?] = [:]
    private var spans: [TraceSpan] = []
    /// A date at a moment of the monotonic clock.
    private var anchor: (date: WallTime, moment: Timestamp)?

    private static let tracesMax = 10_000
    /// Clocks that have drifted apart less are read as one: the spans of one moment then have one
    /// date.
    private static let drift = Duration.milliseconds(1)

    private struct Begun {
        let since: Timestamp
        /// Since when an attempt is due; `nil`: it was granted.
        var waitsSince: Timestamp?
        /// The attempt that has not started.
        var grant: (attempt: AttemptID, worker: Incarnation, at: Timestamp)?
        var attempts = 0
    }

    /// What spans say, and notices do not.
    struct Facts {
        let scheduler: Scheduler
        let catalog: GraphCatalog
        let workerNames: [Incarnation: String]
        let now: Timestamp
        let date: WallTime
    }

    init(_ sink: any SpanSink, _ reign: Reign) {
        self.sink = sink
        self.reign = reign
    }

    // MARK: - Traces

    /// The `traceparent` that an attempt continues.
    mutating func traceParent(
        of operation: OperationID,
        _ scheduler: Scheduler,
        _ catalog: GraphCatalog
    ) -> String? {
        guard let trace = trace(of: operation.graph, catalog) else { return nil }
        let round = scheduler.round(of: operation)
        return trace.operation(operation.index, round: round).traceParent
    }

    private mutating func trace(of graph: GraphID, _ catalog: GraphCatalog) -> GraphTrace? {
        if let known = traces[graph] { return known }
        if traces.count >= Self.tracesMax { traces = [:] }
        let trace = GraphTrace(catalog[graph].traceParent, of: graph, in: reign)
        traces[graph] = .some(trace)
        return trace
    }

    // MARK: - What happens

    /// A graph was stored.
    mutating func submitted(_ graph: GraphID, at start: WallTime, _ facts: Facts) {
        guard let trace = trace(of: graph, facts.catalog) else { return }
        let end = facts.date
        var span = part("submit", .server, of: trace.context, from: start, to: end)
        span.attributes = about(graph, facts)
        sink.take([span])
    }

    mutating func note(_ notices: [Scheduler.Notice], _ facts: Facts) {
        let apart = facts.date - date(of: facts.now)
        if apart > Self.drift || apart < .zero - Self.drift { anchor = (facts.date, facts.now) }
        for notice in notices { note(notice, facts) }
        guard !spans.isEmpty else { return }
        sink.take(spans)
        spans.removeAll(keepingCapacity: true)
    }

    private mutating func note(_ notice: Scheduler.Notice, _ facts: Facts) {
        switch notice {
        case .ready(let operation):
            begin(operation, at: facts.now, facts)
            begun[operation]?.waitsSince = facts.now
        case .granted(let operation, let attempt, let worker):
            begin(operation, at: facts.now, facts)
            granted(operation, attempt, worker, facts)
        case .started(let operation, let attempt, let start):
            begin(operation, at: start, facts)
            started(operation, attempt, at: start, facts)
        case .resumed(let operation, _, _): begun[operation]?.waitsSince = nil
        case .attemptEnded(let operation, let attempt, let ending, let start, let end):
            // An earlier coordinator may have granted it.
            begin(operation, at: start ?? end, facts)
            if let start { started(operation, attempt, at: start, facts) }
            ended(operation, attempt, ending, start: start, end: end, facts)
        case .finished(let operation, let outcome): finish(operation, outcome, facts)
        case .rangeFinished(let operations, let outcome):
            guard !begun.isEmpty else { return }
            for operation in operations { finish(operation, outcome, facts) }
        case .graphFinished(let graph): finish(graph, facts)
        case .operationsAdded, .yielded, .waitEnded, .result, .retry, .graphClosedIdle,
            .workerJoined, .workerLost, .workerDraining, .workerBusy, .superseded, .eventRefused,
            .log, .progress, .watched:
            return
        }
    }

    /// Does nothing for an operation that has begun.
    private mutating func begin(_ operation: OperationID, at time: Timestamp, _ facts: Facts) {
        guard begun[operation] == nil, trace(of: operation.graph, facts.catalog) != nil else {
            return
        }
        begun[operation] = Begun(since: time)
    }

    private mutating func granted(
        _ operation: OperationID,
        _ attempt: AttemptID,
        _ worker: Incarnation,
        _ facts: Facts
    ) {
        guard var entry = begun[operation] else { return }
        let waitsSince = entry.waitsSince
        entry.waitsSince = nil
        entry.grant = (attempt, worker, facts.now)
        entry.attempts += 1
        begun[operation] = entry
        guard let start = waitsSince, let context = context(of: operation, facts) else { return }
        let end = date(of: facts.now)
        spans.append(part("wait", .internal, of: context, from: date(of: start), to: end))
    }

    private mutating func started(
        _ operation: OperationID,
        _ attempt: AttemptID,
        at start: Timestamp,
        _ facts: Facts
    ) {
        guard let grant = begun[operation]?.grant, grant.attempt == attempt,
            let context = context(of: operation, facts)
        else { return }
        begun[operation]?.grant = nil
        // Whoever completes an external operation is no worker.
        guard grant.worker != .nobody else { return }
        var span = part(
            "dispatch",
            .producer,
            of: context,
            from: date(of: grant.at),
            to: date(of: start)
        )
        span.attributes = [worker(grant.worker, facts)]
        spans.append(span)
    }

    private mutating func ended(
        _ operation: OperationID,
        _ attempt: AttemptID,
        _ ending: Scheduler.AttemptEnding,
        start: Timestamp?,
        end: Timestamp,
        _ facts: Facts
    ) {
        guard begun[operation] != nil, let context = context(of: operation, facts) else { return }
        begun[operation]?.waitsSince = end
        if begun[operation]?.grant?.attempt == attempt { begun[operation]?.grant = nil }
        // Otherwise its worker makes the span.
        guard let start, ending == .lost || ending == .crashed else { return }
        var span = part(
            facts.catalog.name(of: operation).name,
            .internal,
            of: context,
            from: date(of: start),
            to: date(of: end)
        )
        span.error = ending == .lost ? "its worker was lost" : "its worker died"
        spans.append(span)
    }

    private mutating func finish(
        _ operation: OperationID,
        _ outcome: Outcome,
        _ facts: Facts
    ) {
        guard let entry = begun.removeValue(forKey: operation),
            let trace = trace(of: operation.graph, facts.catalog),
            let context = context(of: operation, facts)
        else { return }
        var span = TraceSpan(
            .coordinator,
            facts.catalog.name(of: operation).name,
            .internal,
            context,
            parent: trace.context.span,
            from: date(of: entry.since),
            to: date(of: facts.now)
        )
        let queue = facts.catalog[operation.graph].operations.queue(of: Int(operation.index))
        span.attributes = about(operation.graph, facts)
        span.attributes += [
            .init(TraceSpan.Name.operation, .text("\(operation)")),
            .init(TraceSpan.Name.queue, .text(queue)),
            .init(TraceSpan.Name.attempts, .number(Int64(entry.attempts))),
            .init(TraceSpan.Name.outcome, .text("\(outcome.kind)")),
        ]
        if case .failed(let error) = outcome {
            span.error = error.description.prefix(bytes: TraceSpan.errorBytesMax)
        }
        let dependencies = facts.scheduler.dependencies(of: operation)
        for dependency in dependencies.prefix(sink.linksMax) {
            guard let other = self.context(of: dependency.operation, facts) else { continue }
            span.links.append(other)
        }
        span.linksLeftOut = max(0, dependencies.count - sink.linksMax)
        spans.append(span)
    }

    private mutating func finish(_ graph: GraphID, _ facts: Facts) {
        // Operations that are retried begin again; their graph, whose span has ended, does not.
        guard facts.scheduler.retries(of: graph) == 0, let trace = trace(of: graph, facts.catalog)
        else { return }
        var span = TraceSpan(
            .coordinator,
            facts.catalog.name(of: graph),
            .internal,
            trace.context,
            parent: trace.parent,
            from: facts.catalog.submission(of: graph).submittedAt,
            to: date(of: facts.now)
        )
        let counts = facts.scheduler.stateCounts(of: graph)
        span.attributes = about(graph, facts)
        span.attributes += [
            .init("operon.graph.succeeded", .number(Int64(counts.succeeded))),
            .init("operon.graph.failed", .number(Int64(counts.failed))),
            .init("operon.graph.cancelled", .number(Int64(counts.cancelled))),
            .init("operon.graph.skipped", .number(Int64(counts.skipped))),
        ]
        if counts.failed > 0 {
            let what = counts.failed == 1 ? "operation" : "operations"
            span.error = "\(counts.failed) \(what) failed"
        }
        spans.append(span)
    }

    // MARK: - Parts of spans

    private func date(of moment: Timestamp) -> WallTime {
        guard let anchor else { return WallTime(nanosecondsSince1970: 0) }
        return anchor.date + (moment - anchor.moment)
    }

    private mutating func context(of operation: OperationID, _ facts: Facts) -> TraceContext? {
        let round = facts.scheduler.round(of: operation)
        return trace(of: operation.graph, facts.catalog)?.operation(operation.index, round: round)
    }

    /// A span within another one.
    private func part(
        _ name: String,
        _ kind: TraceSpan.Kind,
        of whole: TraceContext,
        from start: WallTime,
        to end: WallTime
    ) -> TraceSpan {
        var random = SystemRandomNumberGenerator()
        let context = whole.with(.random(using: &random))
        return TraceSpan(
            .coordinator,
            name,
            kind,
            context,
            parent: whole.span,
            from: start,
            to: end
        )
    }

    private func about(_ graph: GraphID, _ facts: Facts) -> [TraceSpan.Attribute] {
        [
            .init(TraceSpan.Name.graph, .text(facts.catalog.name(of: graph))),
            .init(TraceSpan.Name.graphID, .number(Int64(graph.rawValue))),
        ]
    }

    private func worker(_ worker: Incarnation, _ facts: Facts) -> TraceSpan.Attribute {
        .init(TraceSpan.Name.worker, .text(facts.workerNames[worker] ?? "\(worker)"))
    }
}
