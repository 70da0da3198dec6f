package import OperonModel

/// What a run did, told when it is over: for people, for programs, or for nobody.
///
/// A plain value. The durations of an operation and its attempts count from the start of the run.
package struct RunReport: Sendable {
    /// The version of the JSON form. Keys may be added within a version; none changes its meaning.
    package static let version = 1

    package var graph: String
    /// Wall clock at the start of the run.
    package var startedAt: WallTime
    /// From the start of the run to the last outcome.
    package var makespan: Duration
    /// The longest path through the graph by measured durations.
    package var criticalPath: Duration
    /// The sum of the measured durations.
    package var work: Duration
    /// How many operations could run at once.
    package var slots: Int
    /// In the order of submission: an index into these is an operation's index.
    package var operations: OperationReports

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

    /// No schedule on these slots is shorter: max(critical path, work / slots).
    package var lowerBound: Duration {
        slots > 0 ? max(criticalPath, work / slots) : criticalPath
    }

    /// How many operations ended each way; those without an outcome are in none.
    package var counts: OutcomeCounts {
        var counts = OutcomeCounts()
        for operation in operations {
            guard let outcome = operation.outcome else {
                counts.unfinished += 1
                continue
            }
            switch outcome {
            case .succeeded: counts.succeeded += 1
            case .failed: counts.failed += 1
            case .cancelled: counts.cancelled += 1
            case .skipped: counts.skipped += 1
            }
        }
        return counts
    }
}

/// How many operations ended each way.
package struct OutcomeCounts: Hashable, Sendable {
    package var succeeded = 0
    package var failed = 0
    package var cancelled = 0
    package var skipped = 0
    /// Without an outcome: the run was ended before they had one.
    package var unfinished = 0

    package init() {}

    package var total: Int { succeeded + failed + cancelled + skipped + unfinished }
}

/// What one operation did.
package struct OperationReport: Hashable, Sendable {
    package var name: String
    /// `nil` if the run was ended before it had one.
    package var outcome: OutcomeKind?
    /// Why it failed.
    package var error: OperationError?
    /// Why it was cancelled; empty: no reason was given.
    package var reason: String
    /// Start of its last attempt that started.
    package var start: Duration?
    /// When its outcome was known.
    package var end: Duration?
    /// Who ran its last attempt.
    package var worker: String?
    /// In the order of their start.
    package var attempts: [AttemptReport]
    /// Why it was skipped.
    package var cause: SkipCause?
    /// The end of its output, if it failed; otherwise empty.
    package var log: String

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

/// Why an operation was skipped.
package struct SkipCause: Hashable, Sendable {
    /// The direct dependency whose outcome forbade it.
    package var dependency: String
    /// The operation at the start of the chain: the first that was not itself skipped.
    package var root: String
    /// How the root ended.
    package var rootOutcome: OutcomeKind

    package init(dependency: String, root: String, rootOutcome: OutcomeKind) {
        self.dependency = dependency
        self.root = root
        self.rootOutcome = rootOutcome
    }
}

/// One try at an operation.
package struct AttemptReport: Hashable, Sendable {
    /// How a try ended.
    package enum End: String, Hashable, Sendable, CaseIterable {
        case succeeded
        case failed
        case cancelled
        /// Its worker did not come back with it.
        case lost
        /// The child process that ran it died without a result.
        case crashed
        /// Its worker gave it back: a drain, a recall.
        case returned
        /// The run was ended before it was.
        case unfinished
    }

    /// What the operation saw as `OPERON_ATTEMPT`: counts its attempts from 1.
    package var number: Int
    package var worker: String
    /// `nil` if it never started.
    package var start: Duration?
    package var end: Duration?
    package var ended: End
    /// Why this try failed.
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
    /// The name in JSON output and in sentences; stable.
    package var name: String {
        switch self {
        case .succeeded: "succeeded"
        case .failed: "failed"
        case .cancelled: "cancelled"
        case .skipped: "skipped"
        }
    }
}
