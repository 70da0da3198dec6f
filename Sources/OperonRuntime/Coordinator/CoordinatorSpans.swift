import OperonCore
import OperonModel
import OperonPorts

/// Makes the spans of a coordinator: of each graph, its submission and its operations, and of each
/// attempt the wait before it and its dispatch. Workers make the spans of what runs.
///
/// Takes about 250 bytes for each operation that is ready, dispatched or executing.
struct CoordinatorSpans {
    let sink: any SpanSink
    private let reign: Reign
    private let startedAt: Timestamp
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
        let context: TraceContext
        let since: Timestamp
        /// Since when an attempt is due; `nil`: it was granted.
        var waitsSince: Timestamp?
        /// The attempt that has not started.
        var grant: (attempt: AttemptID, worker: Incarnation, at: Timestamp)?
        /// The number of the last attempt, and its worker.
        var ordinal: Int
        var worker = Incarnation.nobody
        /// The span of an attempt that was lost. Its worker may come back, and makes the span then.
        var lost: TraceSpan?
    }

    /// State that spans need and notices lack.
    struct State {
        let scheduler: Scheduler
        let catalog: GraphCatalog
        let workerNames: [Incarnation: String]
        let now: Timestamp
        let date: WallTime
    }

    init(_ sink: any SpanSink, _ reign: Reign, startedAt: Timestamp) {
        self.sink = sink
        self.reign = reign
        self.startedAt = startedAt
    }

    // MARK: - Traces

    /// The `traceparent` that an attempt continues; `nil`: its graph is not recorded.
    ///
    /// - Parameter traceParent: That of its graph.
    mutating func traceParent(
        of operation: OperationID,
        round: UInt32,
        in traceParent: String
    ) -> String? {
        trace(of: operation.graph, traceParent)?
            .operation(operation.index, round: round).traceParent
    }

    private mutating func trace(
        of graph: GraphID,
        _ traceParent: @autoclosure () -> String
    ) -> GraphTrace? {
        if let known = traces[graph] { return known }
        if traces.count >= Self.tracesMax { traces = [:] }
        let trace = GraphTrace(traceParent(), of: graph, in: reign)
        traces[graph] = .some(trace)
        return trace
    }

    private mutating func trace(of graph: GraphID, _ state: State) -> GraphTrace? {
        trace(of: graph, state.catalog[graph].traceParent)
    }

    // MARK: - What happens

    /// A graph was stored.
    mutating func submitted(_ graph: GraphID, at start: WallTime, _ state: State) {
        guard let trace = trace(of: graph, state) else { return }
        var random = SystemRandomNumberGenerator()
        var span = TraceSpan(
            .coordinator,
            "submit",
            .server,
            trace.context.with(.random(using: &random)),
            parent: trace.context.span,
            from: start,
            to: state.date
        )
        span.attributes = about(graph, state)
        span.isOfGraph = true
        sink.take([span])
    }

    mutating func note(_ notices: [Scheduler.Notice], _ state: State) {
        let apart = state.date - date(of: state.now)
        if apart > Self.drift || apart < .zero - Self.drift { anchor = (state.date, state.now) }
        for notice in notices { note(notice, state) }
        guard !spans.isEmpty else { return }
        sink.take(spans)
        spans.removeAll(keepingCapacity: true)
    }

    private mutating func note(_ notice: Scheduler.Notice, _ state: State) {
        switch notice {
        case .ready(let operation):
            begin(operation, at: state.now, state)
            begun[operation]?.waitsSince = state.now
        case .granted(let operation, let attempt, let worker):
            // Otherwise it was ready when this coordinator started.
            if begun[operation] == nil { begin(operation, at: startedAt, isDue: true, state) }
            granted(operation, attempt, worker, state)
        case .started(let operation, let attempt, let start):
            begin(operation, at: start, state)
            started(operation, attempt, at: start, state)
        case .resumed(let operation, _, _):
            begun[operation]?.waitsSince = nil
            begun[operation]?.lost = nil
        case .attemptEnded(let operation, let attempt, let ending, let start, let end):
            // An earlier coordinator may have granted it.
            begin(operation, at: start ?? end, state)
            if let start { started(operation, attempt, at: start, state) }
            ended(operation, attempt, ending, start: start, end: end, state)
        case .finished(let operation, let outcome): finish(operation, outcome, state)
        case .rangeFinished(let operations, let outcome):
            guard !begun.isEmpty else { return }
            for operation in operations { finish(operation, outcome, state) }
        case .graphFinished(let graph): finish(graph, state)
        case .operationsAdded, .yielded, .waitEnded, .result, .retry, .graphClosedIdle,
            .workerJoined, .workerLost, .workerDraining, .workerBusy, .superseded, .eventRefused,
            .log, .progress, .watched:
            return
        }
    }

    /// Does nothing for an operation that has begun.
    private mutating func begin(
        _ operation: OperationID,
        at time: Timestamp,
        isDue: Bool = false,
        _ state: State
    ) {
        guard begun[operation] == nil, let context = context(of: operation, state) else { return }
        begun[operation] = Begun(
            context: context,
            since: time,
            waitsSince: isDue ? time : nil,
            ordinal: state.scheduler.attemptCount(of: operation)
        )
    }

    private mutating func granted(
        _ operation: OperationID,
        _ attempt: AttemptID,
        _ worker: Incarnation,
        _ state: State
    ) {
        guard var entry = begun[operation] else { return }
        let waitsSince = entry.waitsSince
        entry.waitsSince = nil
        entry.ordinal = state.scheduler.attemptCount(of: operation)
        entry.worker = worker
        entry.grant = (attempt, worker, state.now)
        begun[operation] = entry
        guard let waitsSince else { return }
        var span = part("wait", .internal, of: entry.context, from: waitsSince, to: state.now)
        span.attributes = about(operation, state)
        spans.append(span)
    }

    private mutating func started(
        _ operation: OperationID,
        _ attempt: AttemptID,
        at start: Timestamp,
        _ state: State
    ) {
        guard let entry = begun[operation], let grant = entry.grant, grant.attempt == attempt
        else { return }
        begun[operation]?.grant = nil
        begun[operation]?.lost = nil
        if let lost = entry.lost { spans.append(lost) }
        // An external operation has no worker, so it has no dispatch.
        guard grant.worker != .nobody else { return }
        var span = part("dispatch", .producer, of: entry.context, from: grant.at, to: start)
        span.attributes = about(operation, state) + [worker(grant.worker, state)]
        spans.append(span)
    }

    private mutating func ended(
        _ operation: OperationID,
        _ attempt: AttemptID,
        _ ending: Scheduler.AttemptEnding,
        start: Timestamp?,
        end: Timestamp,
        _ state: State
    ) {
        guard let entry = begun[operation] else { return }
        begun[operation]?.waitsSince = end
        if entry.grant?.attempt == attempt { begun[operation]?.grant = nil }
        // Otherwise its worker makes the span.
        guard let start, ending == .lost || ending == .crashed else { return }
        let name = state.catalog.name(of: operation).name
        var span = part(name, .consumer, of: entry.context, from: start, to: end)
        span.attributes = about(operation, state)
        span.attributes.append(.init(TraceSpan.Name.attempt, .number(Int64(entry.ordinal))))
        if entry.worker != .nobody { span.attributes.append(worker(entry.worker, state)) }
        span.error = ending == .lost ? "its worker was lost" : "its worker died"
        begun[operation]?.lost = span
    }

    private mutating func finish(
        _ operation: OperationID,
        _ outcome: Outcome,
        _ state: State
    ) {
        guard let entry = begun.removeValue(forKey: operation),
            let trace = trace(of: operation.graph, state)
        else { return }
        if let lost = entry.lost { spans.append(lost) }
        var span = TraceSpan(
            .coordinator,
            state.catalog.name(of: operation).name,
            .internal,
            entry.context,
            parent: trace.context.span,
            from: date(of: entry.since),
            to: date(of: state.now)
        )
        let queue = state.catalog.queue(of: operation) ?? ""
        span.attributes = about(operation, state)
        span.attributes += [
            .init(TraceSpan.Name.queue, .text(queue)),
            .init(TraceSpan.Name.attempts, .number(Int64(entry.ordinal))),
            .init(TraceSpan.Name.outcome, .text("\(outcome.kind)")),
        ]
        if case .failed(let error) = outcome {
            span.error = error.description.prefix(bytes: TraceSpan.errorBytesMax)
        }
        let first = state.scheduler.dependencies(of: operation, atMost: sink.linksMax)
        for dependency in first.dependencies {
            guard let other = context(of: dependency.operation, state) else { continue }
            span.links.append(other)
        }
        span.linksDropped = first.more
        spans.append(span)
    }

    private mutating func finish(_ graph: GraphID, _ state: State) {
        let submission = state.catalog.submission(of: graph)
        // After a retry its operations begin again, and its span has ended.
        guard !submission.hadFinished, let trace = trace(of: graph, state) else { return }
        var span = TraceSpan(
            .coordinator,
            state.catalog.name(of: graph),
            .internal,
            trace.context,
            parent: trace.parent,
            from: submission.submittedAt,
            to: date(of: state.now)
        )
        let counts = state.scheduler.stateCounts(of: graph)
        span.attributes = about(graph, state)
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
        span.isOfGraph = true
        spans.append(span)
    }

    // MARK: - Parts of spans

    private func date(of moment: Timestamp) -> WallTime {
        guard let anchor else { return WallTime(nanosecondsSince1970: 0) }
        return anchor.date + (moment - anchor.moment)
    }

    private mutating func context(of operation: OperationID, _ state: State) -> TraceContext? {
        let round = state.scheduler.round(of: operation)
        return trace(of: operation.graph, state)?.operation(operation.index, round: round)
    }

    /// A span within another one.
    private func part(
        _ name: String,
        _ kind: TraceSpan.Kind,
        of whole: TraceContext,
        from start: Timestamp,
        to end: Timestamp
    ) -> TraceSpan {
        var random = SystemRandomNumberGenerator()
        return TraceSpan(
            .coordinator,
            name,
            kind,
            whole.with(.random(using: &random)),
            parent: whole.span,
            from: date(of: start),
            to: date(of: end)
        )
    }

    private func about(_ graph: GraphID, _ state: State) -> [TraceSpan.Attribute] {
        [
            .init(TraceSpan.Name.graph, .text(state.catalog.name(of: graph))),
            .init(TraceSpan.Name.graphID, .number(Int64(graph.rawValue))),
        ]
    }

    private func about(_ operation: OperationID, _ state: State) -> [TraceSpan.Attribute] {
        about(operation.graph, state) + [
            .init(TraceSpan.Name.operation, .text("\(operation)"))
        ]
    }

    private func worker(_ worker: Incarnation, _ state: State) -> TraceSpan.Attribute {
        .init(TraceSpan.Name.worker, .text(state.workerNames[worker] ?? "\(worker)"))
    }
}
