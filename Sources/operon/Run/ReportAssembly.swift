import OperonArguments
import OperonCore
import OperonModel
import OperonRuntime
import OperonTerminal

/// Turns the record of a run into a report and an exit code.
struct ReportAssembly: Sendable {
    let graph: LoadedGraph
    let record: RunRecord
    let slots: Int
    private let origin: Timestamp
    private let now: Timestamp
    /// For each operation, the root of its chain of skipped operations: the first one that was not
    /// skipped.
    private let roots: [UInt32]

    init(graph: LoadedGraph, record: RunRecord, slots: Int, now: Timestamp) {
        self.graph = graph
        self.record = record
        self.slots = slots
        origin = record.startedAt ?? now
        self.now = now
        roots = Self.roots(of: graph, record)
    }

    /// Visits each operation after its dependencies, so that the cost is linear even for a chain of
    /// a million operations.
    private static func roots(of graph: LoadedGraph, _ record: RunRecord) -> [UInt32] {
        var roots = (0..<UInt32(record.operations.count)).map { $0 }
        guard case .order(let order) = graph.compiled.topology.sorted() else { return roots }
        for index in order {
            guard case .skipped(let cause) = record.operations[Int(index)].outcome else { continue }
            roots[Int(index)] = roots[Int(cause.index)]
        }
        return roots
    }

    var report: RunReport {
        let operations = graph.description.operations
        let durations = record.operations.enumerated().map { index, operation in
            // What somebody else does takes no slot, and could take no time.
            if operations[index].work.isExternal { return UInt64(0) }
            return UInt64(max(0, Self.duration(operation).nanoseconds))
        }
        var criticalPath: UInt64 = 0
        if case .order(let order) = graph.compiled.topology.sorted() {
            let paths = graph.compiled.topology.criticalPaths(durations: durations, order: order)
            criticalPath = paths.max() ?? 0
        }
        let work = durations.reduce(UInt64(0)) { $0.addingReportingOverflow($1).partialValue }
        var report = RunReport(
            graph: graph.description.name,
            startedAt: record.startedAtWall ?? SystemClock.wall(),
            makespan: max(.zero, end - origin),
            criticalPath: .nanoseconds(Int64(clamping: criticalPath)),
            work: .nanoseconds(Int64(clamping: work)),
            slots: slots,
            operations: OperationReports(count: record.operations.count) { operation($0) }
        )
        report.repeated = ElementFolding(graph.description.operations).groups
        return report
    }

    /// The end of the run: now, if it ended before all of its operations.
    private var end: Timestamp {
        let isWhole = record.operations.allSatisfy { $0.outcome != nil }
        return isWhole ? record.finishedAt ?? origin : now
    }

    /// The duration of the attempt that counts.
    private static func duration(_ operation: RunRecord.Operation) -> Duration {
        guard let last = operation.lastAttempt, let start = last.start, let end = last.end else {
            return .zero
        }
        // Time in which it waited for other operations is excluded: it counts for those.
        return end - start - last.waited
    }

    private func operation(_ index: Int) -> OperationReport {
        let operation = record.operations[index]
        let last = operation.lastAttempt
        var report = OperationReport(
            name: graph.description.operations[index].name,
            outcome: operation.outcome?.kind
        )
        report.start = last?.start.map { $0 - origin }
        report.end = (last?.end ?? operation.finishedAt).map { $0 - origin }
        report.waited = last?.waited ?? .zero
        report.worker = last.flatMap { $0.worker == .nobody ? nil : name(of: $0.worker) }
        // What was taken over from an earlier form of the graph, nobody ran.
        let ran = operation.attempts.filter { !operation.isUpToDate || $0.worker != .nobody }
        report.attempts = ran.enumerated().map { attempt($1, number: $0 + 1) }
        switch operation.outcome {
        case nil: break
        case .succeeded: report.isUpToDate = operation.isUpToDate
        case .failed(let error):
            report.error = error
            report.log = String(decoding: operation.logTail, as: UTF8.self)
            report.logBytesBefore = operation.logBytesBefore
        case .cancelled(let reason): report.reason = reason
        case .skipped(let cause): report.cause = skipCause(cause)
        }
        return report
    }

    private func attempt(_ attempt: RunRecord.Attempt, number: Int) -> AttemptReport {
        var report = AttemptReport(
            number: number,
            worker: name(of: attempt.worker),
            start: attempt.start.map { $0 - origin },
            end: attempt.end.map { $0 - origin },
            ended: .unfinished
        )
        switch attempt.ending {
        case nil: break
        case .succeeded: report.ended = .succeeded
        case .failed(let error):
            report.ended = .failed
            report.error = error
        case .cancelled: report.ended = .cancelled
        case .returned: report.ended = .returned
        case .lost: report.ended = .lost
        case .crashed: report.ended = .crashed
        }
        return report
    }

    /// The name of a worker; empty for an operation that an external party completes.
    private func name(of worker: Incarnation) -> String {
        if worker == .nobody { return "" }
        return record.workerNames[worker] ?? worker.description
    }

    private func skipCause(_ dependency: OperationID) -> SkipCause {
        let operations = graph.description.operations
        let root = Int(roots[Int(dependency.index)])
        return SkipCause(
            dependency: operations[Int(dependency.index)].name,
            root: operations[root].name,
            rootOutcome: record.operations[root].outcome?.kind ?? .skipped
        )
    }

    // MARK: - Exit code

    /// The first of these codes that applies: 130 or 143, 1, 3, 7, 0.
    func exitCode(signal: Int32?) -> Int32 {
        if let signal { return signal }
        var isCancelled = false
        var isSkipped = false
        for (index, operation) in record.operations.enumerated() {
            switch operation.outcome {
            case .succeeded: continue
            case .failed: return ExitStatus.failed
            case .cancelled, nil: isCancelled = true
            case .skipped(let cause): isSkipped = isSkipped || wantsSuccess(index, of: cause)
            }
        }
        return isCancelled ? ExitStatus.cancelled : isSkipped ? ExitStatus.skipped : 0
    }

    /// Whether an operation was skipped for lack of a success. A failure handler that was not
    /// needed does not count.
    private func wantsSuccess(_ index: Int, of cause: OperationID) -> Bool {
        let edge = graph.compiled.topology.dependencies(of: UInt32(index))
            .first { $0.operation == cause.index }
        return edge?.condition != .failed
    }
}
