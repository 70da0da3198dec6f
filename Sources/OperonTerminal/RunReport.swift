package import OperonModel

/// What a run did, reported at its end: for people, for programs, or not at all.
///
/// A plain value. The times of operations and attempts count from the start of the run.
package struct RunReport: Sendable {
    /// The version of the JSON form. Keys may be added within a version; none changes its meaning.
    package static let version = 1

    package var graph: String
    /// The wall-clock time at the start of the run.
    package var startedAt: WallTime
    /// From the start of the run to the last outcome, or to the end of a run that ended before.
    package var makespan: Duration
    /// The longest path through the graph by measured durations.
    package var criticalPath: Duration
    /// The sum of the measured durations.
    package var work: Duration
    /// The number of operations that could run at once.
    package var slots: Int
    /// The operations in the order of submission: the index here is the index of the operation.
    package var operations: OperationReports
    /// The repeated operations among them.
    package var repeated: [ElementFolding.Group] = []

    package init(
        graph: String,
        startedAt: WallTime,
        makespan: Duration,
        criticalPath: Duration,
        work: Duration,
        slots: Int,
        operations: OperationReports
    ) {
        self.graph = graph
        self.startedAt = startedAt
        self.makespan = makespan
        self.criticalPath = criticalPath
        self.work = work
        self.slots = slots
        self.operations = operations
    }

    /// The shortest possible duration on these slots: max(critical path, work / slots).
    package var lowerBound: Duration {
        slots > 0 ? max(criticalPath, work / slots) : criticalPath
    }

    /// The number of operations by outcome; operations without an outcome are in `unfinished`.
    package var counts: OutcomeCounts { counts(of: [0..<operations.count]) }

    /// The number of these operations by outcome.
    func counts(of ranges: [Range<Int>]) -> OutcomeCounts {
        var counts = OutcomeCounts()
        for operation in ranges.lazy.flatMap({ operations[$0] }) {
            guard let outcome = operation.outcome else {
                counts.unfinished += 1
                continue
            }
            switch outcome {
            case .succeeded:
                counts.succeeded += 1
                if operation.isUpToDate { counts.upToDate += 1 }
            case .failed: counts.failed += 1
            case .cancelled: counts.cancelled += 1
            case .skipped: counts.skipped += 1
            }
        }
        return counts
    }
}

/// The number of operations by outcome.
package struct OutcomeCounts: Hashable, Sendable {
    package var succeeded = 0
    /// How many of those that succeeded were up to date.
    package var upToDate = 0
    package var failed = 0
    package var cancelled = 0
    package var skipped = 0
    /// Operations without an outcome, because the run ended before they had one.
    package var unfinished = 0

    package init() {}

    package var total: Int { succeeded + failed + cancelled + skipped + unfinished }
}

/// What one operation did.
package struct OperationReport: Hashable, Sendable {
    package var name: String
    /// `nil` if the run ended before the operation had one.
    package var outcome: OutcomeKind?
    /// Whether it succeeded without a process, because its files were up to date.
    package var isUpToDate = false
    /// What is said of such an operation.
    package static let upToDate = "up to date"
    /// Why it failed.
    package var error: OperationError?
    /// Why it was cancelled; empty: no reason was given.
    package var reason: String
    /// The start of the last attempt that started.
    package var start: Duration?
    /// When the outcome became known.
    package var end: Duration?
    /// How much of the time between them it waited for other operations.
    package var waited: Duration = .zero
    /// The worker that ran the last attempt.
    package var worker: String?
    /// The attempts in the order of their start.
    package var attempts: [AttemptReport]
    /// Why it was skipped.
    package var cause: SkipCause?
    /// The end of its output, if it failed; otherwise empty.
    package var log: String
    /// How many bytes of output came before `log`.
    package var logBytesBefore: UInt64 = 0

    package init(
        name: String,
        outcome: OutcomeKind?,
        error: OperationError? = nil,
        reason: String = "",
        start: Duration? = nil,
        end: Duration? = nil,
        worker: String? = nil,
        attempts: [AttemptReport] = [],
        cause: SkipCause? = nil,
        log: String = ""
    ) {
        self.name = name
        self.outcome = outcome
        self.error = error
        self.reason = reason
        self.start = start
        self.end = end
        self.worker = worker
        self.attempts = attempts
        self.cause = cause
        self.log = log
    }
}

extension OperationReport {
    /// What a reader of the last lines of `log` is told; `nil`: there are no lines before them.
    ///
    /// - Parameter omitted: How many lines of `log` are before them.
    package func linesBefore(omitted: Int) -> String? {
        // Only the end of a long log is kept, so nobody has counted the lines before it.
        let bytes = logBytesBefore == 1 ? "1 byte" : "\(logBytesBefore) bytes"
        let lines = omitted == 1 ? "1 line" : "\(omitted) lines"
        switch (logBytesBefore > 0, omitted > 0) {
        case (false, false): return nil
        case (true, false): return "… \(bytes) before"
        case (false, true): return "… \(lines) before"
        case (true, true):
            return "… \(lines) before, and \(bytes) before \(omitted == 1 ? "that" : "those")"
        }
    }
}

/// Why an operation was skipped.
package struct SkipCause: Hashable, Sendable {
    /// The direct dependency whose outcome caused the skipping.
    package var dependency: String
    /// The operation at the start of the chain: the first one that was not skipped itself.
    package var root: String
    /// How the root ended.
    package var rootOutcome: OutcomeKind

    package init(dependency: String, root: String, rootOutcome: OutcomeKind) {
        self.dependency = dependency
        self.root = root
        self.rootOutcome = rootOutcome
    }
}

/// One attempt to run an operation.
package struct AttemptReport: Hashable, Sendable {
    /// How an attempt ended.
    package enum End: String, Hashable, Sendable, CaseIterable {
        case succeeded
        case failed
        case cancelled
        /// The worker did not come back with the attempt.
        case lost
        /// The child process that ran the attempt died without a result.
        case crashed
        /// The worker returned the attempt because of a drain or a recall.
        case returned
        /// The run ended before the attempt did.
        case unfinished
    }

    /// The value of `OPERON_ATTEMPT`: counts the attempts of the operation from 1.
    package var number: Int
    package var worker: String
    /// `nil` if the attempt never started.
    package var start: Duration?
    package var end: Duration?
    package var ended: End
    /// Why this attempt failed.
    package var error: OperationError?

    package init(
        number: Int,
        worker: String,
        start: Duration?,
        end: Duration?,
        ended: End,
        error: OperationError? = nil
    ) {
        self.number = number
        self.worker = worker
        self.start = start
        self.end = end
        self.ended = ended
        self.error = error
    }
}

extension OutcomeKind {
    /// The name in JSON output and in sentences. It never changes.
    package var name: String {
        switch self {
        case .succeeded: "succeeded"
        case .failed: "failed"
        case .cancelled: "cancelled"
        case .skipped: "skipped"
        }
    }
}
