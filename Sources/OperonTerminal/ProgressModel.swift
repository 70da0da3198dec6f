package import OperonModel

/// The phase of an operation in progress displays: its state, or its outcome once it has one.
package enum ProgressPhase: UInt8, Hashable, Sendable, CaseIterable {
    case pending
    case ready
    case executing
    case succeeded
    case failed
    case cancelled
    case skipped

    /// A dispatched operation that has not started counts as ready: for a person it still waits.
    package init(_ state: OperationState, _ outcome: OutcomeKind?) {
        switch (state, outcome) {
        case (.pending, _): self = .pending
        case (.ready, _), (.dispatched, _): self = .ready
        case (.executing, _): self = .executing
        case (.finished, .succeeded?): self = .succeeded
        case (.finished, .failed?): self = .failed
        case (.finished, .cancelled?): self = .cancelled
        case (.finished, .skipped?): self = .skipped
        case (.finished, nil):
            preconditionFailure("a finished operation has an outcome: both are set in one event")
        }
    }

    package var isFinished: Bool {
        switch self {
        case .pending, .ready, .executing: false
        case .succeeded, .failed, .cancelled, .skipped: true
        }
    }

    /// The name of the phase in progress and reports.
    package var name: String {
        switch self {
        case .pending: "pending"
        case .ready: "ready"
        case .executing: "running"
        case .succeeded: "succeeded"
        case .failed: "failed"
        case .cancelled: "cancelled"
        case .skipped: "skipped"
        }
    }
}

/// Counts operations by phase, per group (a graph or a queue), and estimates the time left. It has
/// no clock and writes nothing: the caller reports each change and its time.
package struct ProgressModel: Hashable, Sendable {
    /// The groups, in the order in which they were added.
    package private(set) var groups: [ProgressGroup] = []
    /// When counting began.
    package let startedAt: Timestamp

    package init(startedAt: Timestamp) {
        self.startedAt = startedAt
    }

    /// Adds a group without operations and returns its index, which identifies it from then on.
    package mutating func addGroup(name: String) -> Int {
        groups.append(ProgressGroup(name: name, startedAt: startedAt))
        return groups.count - 1
    }

    /// Counts `count` operations that were added in one phase. `work` is the expected work of all
    /// of them together, in any unit that is the same for the whole group.
    package mutating func operationsAdded(
        _ count: Int,
        to group: Int,
        in phase: ProgressPhase = .pending,
        work: Double
    ) {
        precondition(count >= 0 && work >= 0, "what is added is counted, not subtracted")
        groups[group].added(count, in: phase, work: work)
    }

    /// Counts one operation that moved from one phase to another. `work` is the work it was added
    /// with.
    package mutating func operationMoved(
        in group: Int,
        from old: ProgressPhase,
        to new: ProgressPhase,
        work: Double,
        at now: Timestamp
    ) {
        groups[group].moved(from: old, to: new, work: work, at: now)
    }

    /// Counts a group anew, for a caller who knows how many operations are in each phase and not
    /// which of them moved. The work of each operation is 1.
    package mutating func counted(_ counts: StateCounts, in group: Int, at now: Timestamp) {
        groups[group].counted(counts, at: now)
    }

    /// Counts all groups anew, and removes those that are not named.
    package mutating func counted(_ named: [RepeatedProgressView], at now: Timestamp) {
        groups = named.prefix(GraphProgressView.repeatedMax).map { view in
            var group =
                groups.first { $0.name == view.name }
                ?? ProgressGroup(name: view.name, startedAt: startedAt)
            group.counted(view.counts, at: now)
            return group
        }
    }

    /// Whether every operation of every group has its outcome.
    package var isFinished: Bool { groups.allSatisfy { $0.finished == $0.total } }
}

/// The progress of one group, shown as one line.
package struct ProgressGroup: Hashable, Sendable {
    package let name: String
    private var counts: [Int]
    private let startedAt: Timestamp
    private var firstStart: Timestamp?
    private var lastFinish: Timestamp?
    /// When the last operation ran to its end.
    private var lastRun: Timestamp?
    /// The work of operations that ran to their end.
    private var workDone = 0.0
    /// The work of operations that may still run.
    private var workLeft = 0.0

    init(name: String, startedAt: Timestamp) {
        self.name = name
        self.startedAt = startedAt
        counts = Array(repeating: 0, count: ProgressPhase.allCases.count)
    }

    /// The number of operations in one phase.
    package subscript(phase: ProgressPhase) -> Int { counts[Int(phase.rawValue)] }

    /// The number of all operations.
    package var total: Int { counts.reduce(0, +) }

    /// The number of operations with an outcome.
    package var finished: Int {
        self[.succeeded] + self[.failed] + self[.cancelled] + self[.skipped]
    }

    /// Finished operations as a fraction of all, 0…1; 1 for an empty group.
    package var fraction: Double { total == 0 ? 1 : Double(finished) / Double(total) }

    /// From the start to now, or to the last outcome once every operation has one.
    package func elapsed(at now: Timestamp) -> Duration {
        let end = finished == total ? lastFinish ?? startedAt : now
        return max(.zero, end - startedAt)
    }

    /// The time left if work continues as fast as from the first start to the last end: while
    /// nothing ends, it counts down. `nil` before the first operation succeeds or fails, once the
    /// time is over, and once all are finished. Skipped and cancelled operations count neither as
    /// done nor as left, because they took no time.
    package func timeLeft(at now: Timestamp) -> Duration? {
        guard let firstStart, let lastRun, workDone > 0, finished < total else { return nil }
        let estimate = (lastRun - firstStart).seconds * workLeft / workDone
        let seconds = estimate - (now - lastRun).seconds
        // Beyond a year an estimate is meaningless, and a Duration could overflow.
        guard seconds > 0, seconds < 365 * 86_400 else { return nil }
        return .nanoseconds(Int64(seconds * 1e9))
    }

    mutating func added(_ count: Int, in phase: ProgressPhase, work: Double) {
        counts[Int(phase.rawValue)] += count
        if !phase.isFinished { workLeft += work }
    }

    /// The most operations in a phase that are shown. No graph has more, but a count that came over
    /// the network may be any number.
    private static let countMax = Int(UInt32.max)

    mutating func counted(_ new: StateCounts, at now: Timestamp) {
        let isFirst = total == 0
        let (finished, ran) = (finished, self[.succeeded] + self[.failed])
        counts = ProgressPhase.allCases.map { min(max(0, new[$0]), Self.countMax) }
        workLeft = Double(total - self.finished)
        // What ended before the first count tells nothing about the speed.
        guard !isFirst else {
            if new.executing > 0 { firstStart = now }
            return
        }
        let more = self[.succeeded] + self[.failed] - ran
        if firstStart == nil, new.executing > 0 || more > 0 { firstStart = now }
        workDone += Double(max(0, more))
        if more > 0 { lastRun = now }
        if self.finished > finished { lastFinish = now }
    }

    mutating func moved(
        from old: ProgressPhase,
        to new: ProgressPhase,
        work: Double,
        at now: Timestamp
    ) {
        precondition(self[old] > 0, "an operation leaves a phase that it was counted in")
        counts[Int(old.rawValue)] -= 1
        counts[Int(new.rawValue)] += 1
        if new == .executing, firstStart == nil { firstStart = now }
        switch (old.isFinished, new.isFinished) {
        case (false, false), (true, true): break
        case (false, true):
            // Rounding errors in the sum of many small numbers may make it slightly negative.
            workLeft = max(0, workLeft - work)
            if new == .succeeded || new == .failed {
                workDone += work
                lastRun = now
            }
            lastFinish = now
        case (true, false):
            // Reopened by `retry`: the work done before still counts, and the work must be done
            // again.
            workLeft += work
        }
    }
}

extension StateCounts {
    fileprivate subscript(phase: ProgressPhase) -> Int {
        switch phase {
        case .pending: pending
        case .ready: ready.addingReportingOverflow(dispatched).partialValue
        case .executing: executing
        case .succeeded: succeeded
        case .failed: failed
        case .cancelled: cancelled
        case .skipped: skipped
        }
    }
}
