package import OperonCore
package import OperonModel
import Synchronization

/// Records the progress of one graph's operations for the report at its end. Takes 56 bytes per
/// operation and about 130 per attempt.
package struct RunRecord: Sendable {
    /// One attempt at an operation.
    package struct Attempt: Sendable {
        package let id: AttemptID
        package let worker: Incarnation
        package var start: Timestamp?
        /// How long it waited for others without a slot, not counting a wait that has not ended.
        package var waited = Duration.zero
        fileprivate var yieldedAt: Timestamp?
        package var end: Timestamp?
        /// `nil`: it has not ended.
        package var ending: Scheduler.AttemptEnding?

        fileprivate mutating func resume(at now: Timestamp) {
            guard let yieldedAt else { return }
            waited = waited + max(.zero, now - yieldedAt)
            self.yieldedAt = nil
        }
    }

    package struct Operation: Sendable {
        package var attempts: [Attempt] = []
        package var outcome: Outcome?
        package var finishedAt: Timestamp?
        /// Whether it succeeded without a process, because its files were up to date.
        package var isUpToDate = false
        /// The last bytes that its last attempt printed, if that attempt failed.
        package var logTail: [UInt8] = []
        /// How many bytes that attempt printed before them.
        package var logBytesBefore: UInt64 = 0

        /// The attempt that counts: the last that ran. An attempt may resume after its worker
        /// reconnects; its replacement, which comes after it in the list, is then given back.
        package var lastAttempt: Attempt? {
            attempts.last { $0.ending != .returned } ?? attempts.last
        }
    }

    package private(set) var operations: [Operation]
    /// Names of the workers that joined, by incarnation. Only looked up.
    package private(set) var workerNames: [Incarnation: String] = [:]
    /// When the first attempt was granted.
    package private(set) var startedAt: Timestamp?
    package private(set) var startedAtWall: WallTime?
    /// When the last outcome was decided.
    package private(set) var finishedAt: Timestamp?
    /// The largest number of slots at one time.
    package private(set) var slotsMax = 0
    private var slots: [Incarnation: Int] = [:]
    private var logBytes = 0

    package init(operationCount: Int) {
        operations = Array(repeating: Operation(), count: operationCount)
    }

    private subscript(operation: OperationID) -> Operation {
        _read { yield operations[Int(operation.index)] }
        _modify { yield &operations[Int(operation.index)] }
    }

    package mutating func note(_ notice: Scheduler.Notice, at now: Timestamp) {
        switch notice {
        case .operationsAdded(_, _, let count):
            operations.append(contentsOf: repeatElement(Operation(), count: Int(count)))
        case .granted(let operation, let attempt, let worker):
            if startedAt == nil {
                startedAt = now
                startedAtWall = SystemClock.wall()
            }
            self[operation].attempts.append(Attempt(id: attempt, worker: worker))
        case .started(let operation, let attempt, let start):
            change(attempt, of: operation) { $0.start = start }
        case .resumed(let operation, let attempt, _):
            change(attempt, of: operation) { entry in
                entry.end = nil
                entry.ending = nil
            }
        case .attemptEnded(let operation, let attempt, let ending, let start, let end):
            change(attempt, of: operation) { entry in
                entry.start = start ?? entry.start
                entry.resume(at: end)
                entry.end = end
                entry.ending = ending
            }
        case .result(let operation, _, let result):
            self[operation].isUpToDate = result.isUpToDate
            keepLog(of: result, operation)
        case .finished(let operation, let outcome): finish(operation, outcome, at: now)
        case .rangeFinished(let operations, let outcome):
            for operation in operations { finish(operation, outcome, at: now) }
        case .workerJoined(let worker, _, let count):
            workerNames[worker.incarnation] = worker.name
            slots[worker.incarnation] = count
            slotsMax = max(slotsMax, slots.values.reduce(0, +))
        case .workerLost(let worker), .workerDraining(let worker, _):
            slots[worker.incarnation] = nil
        case .yielded(let operation, let attempt):
            change(attempt, of: operation) { $0.yieldedAt = now }
        case .waitEnded(let operation, let attempt, _):
            change(attempt, of: operation) { $0.resume(at: now) }
        case .ready, .retry, .graphFinished, .workerBusy, .graphClosedIdle, .superseded,
            .eventRefused, .log, .progress, .watched:
            break
        }
    }

    private mutating func finish(
        _ operation: OperationID,
        _ outcome: Outcome,
        at now: Timestamp
    ) {
        self[operation].outcome = outcome
        self[operation].finishedAt = now
        finishedAt = now
    }

    /// Takes over outcomes from before this run.
    ///
    /// - Parameters:
    ///   - operations: Those beyond the operations of the record are ignored: they have just been
    ///     added, and a notice is still to come.
    ///   - isResumed: Whether it is a stored run that goes on. An operation without an outcome runs
    ///     again then, whatever became of it before.
    package mutating func restore(_ operations: [OperationProgress], isResumed: Bool) {
        for (index, operation) in operations.prefix(self.operations.count).enumerated()
        where isResumed || operation.outcome != nil {
            self.operations[index].outcome = operation.outcome
            self.operations[index].isUpToDate = operation.isUpToDate
            if operation.outcome == nil { self.operations[index].finishedAt = nil }
        }
    }

    /// The bytes kept of one log: enough for the last lines, which people read.
    private static let logBytesMax = 64 << 10
    /// The bytes kept of all logs: many failures usually share one cause.
    private static let logBytesInAllMax = 64 << 20

    private mutating func keepLog(of result: AttemptResult, _ operation: OperationID) {
        logBytes -= self[operation].logTail.count
        self[operation].logTail = []
        self[operation].logBytesBefore = 0
        guard case .failed = result.end else { return }
        if logBytes < Self.logBytesInAllMax {
            self[operation].logTail = Array(result.log.tail.suffix(Self.logBytesMax))
        }
        self[operation].logBytesBefore = result.log.end - UInt64(self[operation].logTail.count)
        logBytes += self[operation].logTail.count
    }

    private mutating func change(
        _ attempt: AttemptID,
        of operation: OperationID,
        _ change: (inout Attempt) -> Void
    ) {
        // Nearly always the last one.
        guard let place = self[operation].attempts.lastIndex(where: { $0.id == attempt })
        else { return }
        change(&self[operation].attempts[place])
    }
}

/// A record that the service writes and another task reads.
package final class RunRecorder: Sendable {
    private let record: Mutex<RunRecord>

    package init(operationCount: Int) {
        record = Mutex(RunRecord(operationCount: operationCount))
    }

    package func note(_ notices: [Scheduler.Notice], at now: Timestamp) {
        record.withLock { record in
            for notice in notices { record.note(notice, at: now) }
        }
    }

    package func restore(_ operations: [OperationProgress], isResumed: Bool) {
        record.withLock { $0.restore(operations, isResumed: isResumed) }
    }

    package var current: RunRecord { record.withLock { $0 } }
}
