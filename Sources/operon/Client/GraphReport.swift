import OperonModel
import OperonPorts
import OperonReport
import OperonRuntime
import OperonTerminal

/// Makes the report of a graph from what its coordinator knows.
struct GraphReport: Sendable {
    private let graph: GraphView
    private let cluster: ClusterView
    private var records: [OperationRecord] = []
    /// The names of the workers of the attempts. Numbers of workers in `records` are indices here.
    private var workers: [String] = []
    private var submittedAt = WallTime(nanosecondsSince1970: 0)
    private var now = Duration.zero
    /// What ended otherwise than by success. Only looked up.
    private var ended: [Int: OperationView] = [:]
    /// The ends of what failed operations have printed. Only looked up.
    private var logs: [Int: String] = [:]
    /// How many bytes were printed before `logs`. Only looked up.
    private var logBytesBefore: [Int: UInt64] = [:]

    /// The number of operations that are asked for at a time.
    private static let pageOperations = 4_096

    private init(_ graph: GraphView, _ cluster: ClusterView) {
        self.graph = graph
        self.cluster = cluster
    }

    static func read(
        _ graph: GraphView,
        _ client: any CoordinatorClient
    ) async throws -> GraphReport {
        var report = GraphReport(graph, try await client.status())
        let name = String(graph.id)
        var after: UInt32?
        repeat {
            let page = try await client.records(of: name, after: after, limit: pageOperations)
            report.add(page)
            after = page.next
        } while after != nil
        for outcome in [OutcomeKind.failed, .cancelled, .skipped] {
            var query = OperationQuery()
            query.outcome = outcome
            query.limit = pageOperations
            repeat {
                let page = try await client.operations(of: name, query)
                for view in page.operations { report.ended[Int(view.index)] = view }
                query.after = page.next
            } while query.after != nil
        }
        try await report.readLogs(client)
        return report
    }

    private mutating func add(_ page: RecordPage) {
        submittedAt = page.submittedAt.time
        now = page.now.time - page.submittedAt.time
        let first = workers.count
        workers += page.workers
        for var record in page.records {
            for index in record.attempts?.indices ?? 0..<0 {
                // What the page does not name is nobody.
                let own = record.attempts?[index].worker
                record.attempts?[index].worker = own.flatMap { number in
                    page.workers.indices.contains(number) ? first + number : nil
                }
            }
            records.append(record)
        }
    }

    private mutating func readLogs(_ client: any CoordinatorClient) async throws {
        let failed = records.indices.filter { records[$0].state == .failed }
        for index in failed.prefix(ReportPage.failuresMax) {
            let selector = OperationSelector(graph: String(graph.id), operation: "@\(index)")
            var text = ""
            var (kept, end): (UInt64, UInt64) = (0, 0)
            for try await log in try await client.log(
                of: .operation(selector),
                LogQuery(
                    tail: ReportPage.logLinesMax,
                    attempt: records[index].attempts?.last?.number
                )
            ) {
                // What follows a gap is the end.
                if log.missedBytes > 0 { (text, kept) = ("", 0) }
                text += log.text
                kept += UInt64(log.bytes.count)
                end = max(end, log.offset.addingCapped(UInt64(log.bytes.count)))
            }
            logBytesBefore[index] = end > kept ? end - kept : 0
            logs[index] = text
        }
    }

    // MARK: - The report

    func page() -> ReportPage {
        let shape = GraphShape(dependencies: records.map { $0.dependencies.map(Int.init) })
        let reports = records.indices.map(operation)
        let durations = reports.map(\.duration)
        let path = shape.criticalPath(durations: durations)
        let isFinished = graph.counts.unfinished == 0
        let lastEnd = reports.lazy.compactMap(\.end).max() ?? .zero
        var folding = ElementFolding()
        for record in records {
            _ = folding.add(record.name, kind: record.isNothing == true ? Work.nothingKind : "")
        }
        var report = RunReport(
            graph: graph.name,
            startedAt: submittedAt,
            makespan: isFinished ? lastEnd : now,
            criticalPath: path.reduce(.zero) { $0 + durations[$1] },
            work: durations.reduce(.zero, +),
            slots: Self.busySlots(reports, end: now),
            operations: OperationReports(reports)
        )
        report.repeated = folding.groups
        let names = Set(workers).sorted()
        let shown = names.prefix(8).joined(separator: ", ")
        let more = names.count > 8 ? " and \(names.count - 8) more" : ""
        return ReportPage(
            report,
            shape: shape,
            facts: [
                ("coordinator", "\(cluster.version), \(cluster.reign)"), ("graph", "\(graph.id)"),
                ("submitted by", graph.submittedBy ?? ""), ("workers", shown + more),
                ("written by", "operon \(Version.full)"),
            ].filter { !$0.1.isEmpty },
            isRunning: !isFinished
        )
    }

    /// The slots of all workers that were busy at some time, at most: those that there are now say
    /// nothing of what there was.
    private static func busySlots(_ reports: [OperationReport], end: Duration) -> Int {
        let attempts = reports.flatMap(\.attempts).filter { $0.start != nil }
            .sorted { ($0.start ?? .zero) < ($1.start ?? .zero) }
        var free: [String: FreeSlots<Duration>] = [:]
        var counts: [String: Int] = [:]
        for attempt in attempts where !attempt.worker.isEmpty {
            let start = attempt.start ?? .zero
            let slot = free[attempt.worker, default: FreeSlots()]
                .take(start, max(start, attempt.end ?? end))
            counts[attempt.worker] = max(counts[attempt.worker, default: 0], slot + 1)
        }
        return counts.values.reduce(0, +)
    }

    private func operation(_ index: Int) -> OperationReport {
        let record = records[index]
        let view = ended[index]
        let attempts = record.attempts ?? []
        let last = attempts.last { $0.startedAt != nil }
        var report = OperationReport(
            name: record.name,
            outcome: Self.outcome(record.state),
            error: view?.error.map { OperationError($0) },
            reason: view?.reason ?? "",
            start: last?.startedAt.map { .seconds($0) },
            end: last?.endedAt.map { .seconds($0) },
            worker: last?.worker.map { workers[$0] },
            attempts: attempts.map(attempt),
            log: logs[index] ?? ""
        )
        report.logBytesBefore = logBytesBefore[index] ?? 0
        if report.end == nil, let finishedAt = view?.finishedAt {
            report.end = finishedAt.time - submittedAt
        }
        if record.state == .skipped, let cause = view?.skippedFor {
            report.cause = self.cause(cause)
        }
        return report
    }

    private func attempt(_ attempt: AttemptRecord) -> AttemptReport {
        AttemptReport(
            number: Int(attempt.number),
            worker: attempt.worker.map { workers[$0] } ?? "",
            start: attempt.startedAt.map { .seconds($0) },
            end: attempt.endedAt.map { .seconds($0) },
            ended: attempt.ending.flatMap { AttemptReport.End(rawValue: $0) } ?? .unfinished
        )
    }

    /// The operation because of which another one was skipped, and the first of the chain.
    private func cause(_ name: OperationName) -> SkipCause {
        var root = name
        // A chain has no cycle; the bound is for what the coordinator says.
        for _ in records.indices {
            guard root.graph == graph.id, let next = ended[Int(root.index)]?.skippedFor else {
                break
            }
            root = next
        }
        let place = Int(root.index)
        let isKnown = root.graph == graph.id && records.indices.contains(place)
        return SkipCause(
            dependency: name.name,
            root: root.name,
            rootOutcome: (isKnown ? Self.outcome(records[place].state) : nil) ?? .skipped
        )
    }

    private static func outcome(_ state: CountedState) -> OutcomeKind? {
        switch state {
        case .pending, .ready, .dispatched, .executing: nil
        case .succeeded: .succeeded
        case .failed: .failed
        case .cancelled: .cancelled
        case .skipped: .skipped
        }
    }
}
