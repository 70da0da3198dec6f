import OperonCore
import OperonModel
import OperonTerminal

/// What the screen knows about each operation and about the workers.
struct ScreenState {
    private(set) var work: [Double]
    private(set) var phases: [ProgressPhase]
    private(set) var runningCount = 0
    /// How many of the running operations an external party completes.
    private(set) var externalCount = 0
    private(set) var unfinishedCount: Int
    /// When an operation last changed state, or a worker joined, left or began to drain.
    private(set) var movedAt: Timestamp?
    /// The names of the workers that are there. Never iterated.
    private(set) var workers: [Incarnation: String] = [:]
    private(set) var drainingWorkers: Set<Incarnation> = []
    private var busyWorkers: Set<Incarnation> = []
    /// Those of which a person has read that they are gone.
    private var goneWorkers: Set<Incarnation> = []
    private var durations: [Duration?]
    /// The last failure of operations that failed and may be tried again, and how many there were.
    private var failures: [UInt32: (count: Int, why: String)] = [:]
    /// The operations that are about to succeed because their files are up to date.
    private var upToDate: Set<UInt32> = []
    private(set) var operations: [OperationDescription]
    private var folding = ElementFolding()
    /// The number of the repeated operation of which each operation is an element.
    private var repeated: [Int?] = []
    private let folds: Bool

    /// - Parameter folds: whether the elements of repeated operations are shown together.
    init(graph: LoadedGraph, folds: Bool) {
        self.folds = folds
        operations = graph.description.operations
        work = operations.map(Self.work)
        phases = Array(repeating: .pending, count: operations.count)
        durations = Array(repeating: nil, count: phases.count)
        unfinishedCount = phases.count
    }

    /// What `findRepeated` found: a repeated operation, or elements of one that it found before.
    enum Found {
        case operation(name: String)
        /// Elements of the repeated operation of this number, and their work together.
        case elements(of: Int, count: Int, work: Double)
    }

    /// Finds the repeated operations among the operations that are new, and their elements. The
    /// numbers of repeated operations count on, from 0.
    mutating func findRepeated() -> [Found] {
        var found: [Found] = []
        for (index, operation) in operations.enumerated().dropFirst(repeated.count) {
            repeated.append(nil)
            guard folds else { continue }
            switch folding.add(operation.name, kind: operation.work.kind) {
            case nil: continue
            case .element(let number):
                repeated[index] = number
                if case .elements(number, let count, let sum) = found.last {
                    found.removeLast()
                    found.append(.elements(of: number, count: count + 1, work: sum + work[index]))
                } else {
                    found.append(.elements(of: number, count: 1, work: work[index]))
                }
            case .group(let number):
                let group = folding.groups[number]
                for index in group.elements { repeated[index] = number }
                found.append(.operation(name: group.title))
                let sum = work[group.elements].reduce(0, +)
                found.append(.elements(of: number, count: group.elements.count, work: sum))
            }
        }
        return found
    }

    /// An unknown duration counts as one second: only the ratio matters.
    private static func work(of operation: OperationDescription) -> Double {
        (operation.rankDuration ?? .seconds(1)).seconds
    }

    /// Adds the operations that are new. Returns their work; there may be none.
    mutating func grow(to more: [OperationDescription]) -> [Double] {
        let new = more.dropFirst(operations.count).map(Self.work)
        operations = more
        work += new
        phases += Array(repeating: .pending, count: new.count)
        durations += Array(repeating: nil, count: new.count)
        unfinishedCount += new.count
        return new
    }

    // MARK: - Workers

    /// Returns whether the worker is back: it had gone without an announcement.
    mutating func joined(_ worker: WorkerIdentity, at now: Timestamp) -> Bool {
        workers[worker.incarnation] = worker.name
        movedAt = now
        return goneWorkers.remove(worker.incarnation) != nil
    }

    mutating func drains(_ worker: WorkerIdentity, at now: Timestamp) {
        drainingWorkers.insert(worker.incarnation)
        movedAt = now
    }

    /// Returns whether the worker had announced that it leaves.
    mutating func lost(_ worker: WorkerIdentity, at now: Timestamp) -> Bool {
        workers[worker.incarnation] = nil
        movedAt = now
        let hasLeft = drainingWorkers.remove(worker.incarnation) != nil
        if !hasLeft { goneWorkers.insert(worker.incarnation) }
        return hasLeft
    }

    /// Whether there are workers and all of them drain.
    var allWorkersDrain: Bool {
        !workers.isEmpty && drainingWorkers.count == workers.count
    }

    /// Returns whether this is new: a busy worker reports it with every beat.
    mutating func isBusy(_ worker: WorkerIdentity) -> Bool {
        busyWorkers.insert(worker.incarnation).inserted
    }

    // MARK: - Operations

    mutating func move(_ notice: Scheduler.Notice, at now: Timestamp) -> ProgressDisplay.Move? {
        switch notice {
        case .ready(let operation): return move(operation, to: .ready, at: now)
        case .started(let operation, _, _), .resumed(let operation, _, _):
            return move(operation, to: .executing, at: now)
        case .attemptEnded(let operation, _, let ending, let start, let end):
            durations[Int(operation.index)] = start.map { end - $0 }
            switch ending {
            case .returned, .lost, .crashed: return move(operation, to: .ready, at: now)
            case .failed(let error):
                failures[operation.index, default: (0, "")].count += 1
                failures[operation.index]?.why = error.description
                return nil
            case .succeeded, .cancelled: return nil
            }
        case .retry(let operation, _): return move(operation, to: .ready, at: now)
        case .finished(let operation, let outcome): return finish(operation, outcome, at: now)
        case .result(let operation, _, let result):
            if result.isUpToDate { upToDate.insert(operation.index) }
            return nil
        case .operationsAdded, .granted, .yielded, .waitEnded, .rangeFinished, .graphFinished,
            .workerJoined, .workerLost, .workerDraining, .workerBusy, .graphClosedIdle,
            .superseded, .eventRefused, .log, .progress, .watched:
            return nil
        }
    }

    /// The next attempt of an operation that failed. `nil`: it did not fail, but cannot do its work
    /// yet.
    func retry(_ operation: OperationID, at time: Timestamp, now: Timestamp) -> NextAttempt? {
        guard let failure = failures[operation.index] else { return nil }
        return NextAttempt(
            number: failure.count + 1,
            of: Int(operations[Int(operation.index)].retry.limit) + 1,
            pause: time - now,
            why: failure.why
        )
    }

    /// Takes over the states that the previous run reached. Operations that have just been added
    /// are ignored: a notice is still to come.
    mutating func restore(
        _ operations: [OperationProgress],
        at now: Timestamp
    ) -> [ProgressDisplay.Move] {
        operations.prefix(phases.count).enumerated().compactMap { index, operation in
            // Later notices are newer than the restored state.
            guard phases[index] == .pending else { return nil }
            let id = OperationID(graph: GraphID(rawValue: 0), index: UInt32(index))
            if operation.isUpToDate { upToDate.insert(id.index) }
            if let outcome = operation.outcome { return finish(id, outcome, at: now) }
            return operation.state == .executing ? move(id, to: .executing, at: now) : nil
        }
    }

    private mutating func finish(
        _ operation: OperationID,
        _ outcome: Outcome,
        at now: Timestamp
    ) -> ProgressDisplay.Move? {
        let isUpToDate = upToDate.remove(operation.index) != nil
        failures[operation.index] = nil
        let duration = isUpToDate ? nil : durations[Int(operation.index)]
        let (phase, detail): (ProgressPhase, String) =
            switch outcome {
            case .succeeded: (.succeeded, isUpToDate ? OperationReport.upToDate : "")
            case .failed(let error): (.failed, error.description)
            case .cancelled(let reason): (.cancelled, reason)
            case .skipped(let cause):
                (.skipped, "because of “\(operations[Int(cause.index)].name)”")
            }
        let shown = phase == .skipped ? nil : duration
        return move(operation, to: phase, at: now, duration: shown, detail: detail)
    }

    private mutating func move(
        _ operation: OperationID,
        to phase: ProgressPhase,
        at now: Timestamp,
        duration: Duration? = nil,
        detail: String = ""
    ) -> ProgressDisplay.Move? {
        let index = Int(operation.index)
        let old = phases[index]
        guard old != phase else { return nil }
        phases[index] = phase
        movedAt = now
        let change = (phase == .executing ? 1 : 0) - (old == .executing ? 1 : 0)
        runningCount += change
        if operations[index].work.isExternal { externalCount += change }
        unfinishedCount += (phase.isFinished ? 0 : 1) - (old.isFinished ? 0 : 1)
        return ProgressDisplay.Move(
            operations[index].name,
            from: old,
            to: phase,
            work: work[index],
            duration: duration,
            detail: detail,
            repeated: repeated[index]
        )
    }
}
