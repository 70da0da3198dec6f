import OperonCore
import OperonModel

/// What really happened in a simulated world, kept apart from what the scheduler believes, and the
/// rules that both must keep.
package struct SimulatorLedger {
    var topology: GraphTopology?
    var now = Timestamp.zero
    /// What the coordinator's calendar says.
    var wall = WallTime(nanosecondsSince1970: 0)
    /// The first rule that was broken.
    package private(set) var violation: String?
    /// Attempts sent to a worker that had them, or had finished them.
    package private(set) var copies = 0
    package private(set) var starts = 0
    package private(set) var hash: UInt64 = 0xcbf2_9ce4_8422_2325

    /// Which edges the operations went along.
    package private(set) var coverage = SimulatorCoverage()
    /// What the coordinator has committed.
    var kept = Kept()
    /// Every attempt that was ever granted, and those whose grant, or whose return to its owner, a
    /// power cut took back: whoever got one may run it until he is told.
    private var numbers: Set<AttemptID> = []
    private var forgotten: Set<AttemptID> = []
    /// Operations that had ended when a power cut took that back. Who was told before is right to
    /// go on: the broker still has what ended them.
    private(set) var forgottenEnds: Set<OperationID> = []
    private var started: Set<AttemptID> = []
    private var ended: Set<AttemptID> = []
    /// The graph that is cancelled when one of its operations fails.
    var failsFast: GraphID?
    /// Attempts that no message could carry.
    var unsendable: Set<AttemptID> = []
    /// On which connections of their workers.
    private var recalled: [AttemptID: UInt32] = [:]
    private var recallDelivered: Set<AttemptID> = []
    /// Attempts that were given the key: how many may hold it with them, in the order in which they
    /// got it.
    private var keyed: [AttemptID: (order: Int, limit: Int)] = [:]
    /// Submissions and additions whose records are not kept yet.
    var expected: [GrownLedger.Piece] = []
    /// Who went on without a place in the step that is recorded, or gave it back after it went on.
    /// These are the effects of several events, so a place may have been taken before. Only
    /// counted.
    private var resumedBeyondLimit: Set<OperationID> = []
    /// Who gave its place back after it went on, in the step that is recorded.
    private var yieldedSince: [OperationID] = []
    /// Pauses that were over when they were recorded. Only looked up.
    var emptyPauses: Set<EmptyPause> = []
    /// What running operations were told that they have added.
    var promises: [OperationID: [String]] = [:]
    private var sentTo: [AttemptID: Int] = [:]
    var clocks = Clocks()
    /// Attempts of operations that hold the key and run somewhere.
    private var keyHolders: Set<AttemptID> = []

    /// What a store has, of what the rules look at.
    struct Kept {
        var states: [OperationID: OperationState] = [:]
        var granted: [AttemptID: Incarnation] = [:]
        /// The attempt that an operation has.
        var open: [OperationID: AttemptID] = [:]
        var finished: [OperationID: Outcome] = [:]
        var inFlight: Set<OperationID> = []
        /// Those of a limited queue that wait for others, and have no place in it.
        var yielded: Set<OperationID> = []
        /// Those that had an outcome at some time.
        var ended: Set<OperationID> = []
        /// The limit in force.
        var limit: Int?
        /// How many may hold the key, and who has it.
        var keyLimit = 1
        var keyed: Set<OperationID> = []
        var rated = Rated()
        /// When attempts began that somebody outside is to complete, and those that are over.
        var outsideSince: [AttemptID: Moment] = [:]
        var outsideOver: [HeldAttempt] = []
        /// What may not be granted before a time, until it is said that the time has come.
        var pauses: [OperationID: WallTime] = [:]
        /// Graphs that were cancelled, and of which nothing was opened again.
        var stopped: Set<GraphID> = []
        /// Every operation, and what waits for what by now.
        var grown = GrownLedger()
        /// What was added from inside, by whom.
        var children: [OperationID: [OperationID: String]] = [:]
    }

    struct EmptyPause: Hashable {
        let operation: OperationID
        let until: WallTime
    }

    mutating func met(_ fault: SimulatorCoverage.Fault) { coverage.hit(fault) }

    private mutating func follow(
        _ operation: OperationID,
        to state: OperationState,
        _ cause: SimulatorCoverage.Cause
    ) {
        let old = kept.states.updateValue(state, forKey: operation) ?? .pending
        if old != state { coverage.changed(from: old, to: state, cause) }
    }

    /// The states that an event's records and notices tell of.
    private mutating func follow(_ effects: Scheduler.Effects) {
        for notice in effects.notices {
            if case .ready(let operation) = notice, kept.states[operation] == nil {
                follow(operation, to: .ready, .none)
            }
        }
        for record in effects.records {
            switch record {
            case .granted(_, _, _, .nobody): continue
            case .granted(_, let operation, _, _): follow(operation, to: .dispatched, .none)
            case .started(let attempt, let operation):
                let isOutside = kept.granted[attempt] == .nobody
                follow(operation, to: .executing, isOutside ? .outside : .none)
            case .resumed(_, let operation): follow(operation, to: .executing, .resumed)
            case .attemptEnded(_, let operation, .lost):
                ends(operation, .lost, in: effects)
            case .attemptEnded(_, let operation, .returned):
                ends(operation, .returned, in: effects)
            case .attemptEnded(_, let operation, .crashed):
                ends(operation, .crashed, in: effects)
            case .attemptEnded(_, let operation, _): follow(operation, to: .ready, .retried)
            case .finished(let operation, let outcome):
                follow(operation, to: .finished, .outcome(outcome.kind))
            case .rangeFinished(let operations, let outcome):
                for operation in operations {
                    follow(operation, to: .finished, .outcome(outcome.kind))
                }
            case .graphAdded, .operationsAdded, .graphClosed, .retryScheduled, .delayed,
                .deadlinePassed, .cancelled, .suspended, .queueDefined, .queueLimit,
                .queuePriority, .priority, .keyLimit, .rateSet, .rateUsed, .queueReset, .keyReset,
                .dependencyAdded,
                .dependencyRemoved, .trigger:
                continue
            case .reopened(let operation): follow(operation, to: .pending, .none)
            }
        }
    }

    /// Takes a place in its queue.
    mutating func takePlace(_ operation: OperationID) {
        guard isLimited(operation) else { return }
        kept.inFlight.insert(operation)
        let count = kept.inFlight.subtracting(resumedBeyondLimit).count
        if let limit = kept.limit, count > limit {
            broken("\(count) in flight in a queue of \(limit)")
        }
    }

    /// Takes the key.
    private mutating func takeKey(_ operation: OperationID, _ attempt: AttemptID) {
        guard isKeyed(operation) else { return }
        keyed[attempt] = (keyed.values.map(\.order).max() ?? 0, kept.keyLimit)
        keyed[attempt]?.order += 1
        kept.keyed.insert(operation)
        if kept.keyed.count > kept.keyLimit {
            broken("\(kept.keyed.count) were given a key that \(kept.keyLimit) may hold")
        }
    }

    /// An attempt that ends without a result ends its operation, if that was cancelled meanwhile.
    private mutating func ends(
        _ operation: OperationID,
        _ cause: SimulatorCoverage.Cause,
        in effects: Scheduler.Effects
    ) {
        let isOver = effects.records.contains { record in
            if case .finished(operation, _) = record { true } else { false }
        }
        if !isOver { follow(operation, to: .ready, cause) }
    }

    mutating func broken(_ rule: String) {
        if violation == nil { violation = rule }
    }

    /// Part of the fingerprint of the run (FNV-1a): the same seed must give the same.
    mutating func fold(_ value: Int64) {
        hash = (hash ^ UInt64(bitPattern: value)) &* 0x100_0000_01b3
    }

    // MARK: What the scheduler did

    mutating func record(_ effects: Scheduler.Effects, of scheduler: Scheduler) {
        fold(Int64(effects.messages.count) << 20 + Int64(effects.records.count))
        // Before the records, among which may be who took the places.
        followPlaces(effects.notices)
        for record in effects.records {
            grow(by: record)
            checkPause(record)
            checkRate(record)
            checkStopped(record)
            switch record {
            case .granted(let attempt, let operation, _, let incarnation):
                takePlace(operation)
                takeKey(operation, attempt)
                kept.granted[attempt] = incarnation
                beganOutside(operation, attempt, by: incarnation)
                if !numbers.insert(attempt).inserted {
                    broken("attempt \(attempt) was granted twice")
                }
                if let other = kept.open.updateValue(attempt, forKey: operation) {
                    broken("\(operation) was granted again while it had attempt \(other)")
                }
            case .resumed(let attempt, let operation):
                takePlace(operation)
                takeKey(operation, attempt)
                kept.open[operation] = attempt
                // What was asked before it was lost is withdrawn.
                recalled[attempt] = nil
                recallDelivered.remove(attempt)
            case .attemptEnded(let attempt, let operation, _):
                endedOutside(HeldAttempt(attempt: attempt, operation: operation))
                kept.inFlight.remove(operation)
                kept.yielded.remove(operation)
                kept.keyed.remove(operation)
                kept.open[operation] = nil
            case .queueLimit("a", let maximum): kept.limit = maximum
            case .queueReset("a"): kept.limit = nil
            case .queueDefined(let settings) where settings.name == "a":
                kept.limit = settings.maxConcurrentOperationCount
            case .finished(let operation, let outcome): finished(operation, outcome)
            case .rangeFinished(let operations, let outcome):
                met(.cancelledTogether)
                for operation in operations {
                    if let attempt = kept.open[operation] {
                        broken("\(operation) finished in a range, with attempt \(attempt)")
                    }
                    finished(operation, outcome)
                }
            case .graphAdded, .operationsAdded, .graphClosed, .started, .retryScheduled,
                .delayed, .deadlinePassed, .cancelled, .suspended, .queueDefined, .queueLimit,
                .queuePriority, .priority, .rateSet, .rateUsed, .queueReset, .dependencyAdded,
                .dependencyRemoved, .trigger:
                continue
            case .keyLimit(let settings, _): kept.keyLimit = settings.limit
            case .keyReset: kept.keyLimit = 1
            case .reopened(let operation):
                kept.grown.reopened.insert(operation)
                switch kept.finished.removeValue(forKey: operation) {
                case .failed, .cancelled, .skipped: continue
                case .succeeded, nil: broken("\(operation) was reopened and had not failed")
                }
            }
        }
        for operation in yieldedSince { gavePlaceBack(operation) }
        follow(effects)
        for notice in effects.notices { record(notice) }
    }

    private mutating func finished(_ operation: OperationID, _ outcome: Outcome) {
        if let attempt = kept.open[operation] {
            endedOutside(HeldAttempt(attempt: attempt, operation: operation))
        }
        kept.inFlight.remove(operation)
        kept.yielded.remove(operation)
        kept.keyed.remove(operation)
        kept.open[operation] = nil
        kept.ended.insert(operation)
        if let before = kept.finished.updateValue(outcome, forKey: operation) {
            broken("\(operation) finished twice: \(before), then \(outcome)")
        }
    }

    /// What goes on for want of a wait may wait anew.
    private mutating func followPlaces(_ notices: [Scheduler.Notice]) {
        resumedBeyondLimit = []
        yieldedSince = []
        var resumed: Set<OperationID> = []
        for notice in notices {
            switch notice {
            case .resumed(let operation, _, _): resumed.insert(operation)
            case .yielded(let operation, _):
                gavePlaceBack(operation)
                guard resumed.contains(operation) else { continue }
                yieldedSince.append(operation)
                resumedBeyondLimit.insert(operation)
            case .waitEnded(let operation, _, hasRoom: false):
                waitEnded(operation, hasRoom: false)
                yieldedSince.removeAll { $0 == operation }
                resumedBeyondLimit.insert(operation)
            default: continue
            }
        }
    }

    private mutating func record(_ notice: Scheduler.Notice) {
        if case .graphFinished(let graph) = notice, kept.grown.open.contains(graph) {
            broken("graph \(graph) finished and is open")
        }
        if case .waitEnded(let operation, _, hasRoom: true) = notice {
            waitEnded(operation, hasRoom: true)
        }
        guard case .attemptEnded(let operation, let attempt, let ending, _, _) = notice else {
            return
        }
        switch ending {
        // An input arrived damaged again and again: it never started.
        case .failed(.undecodable) where !started.contains(attempt): return
        case .failed(.inputTooLarge) where unsendable.contains(attempt): return
        // Nobody completed it in time.
        case .failed(.timeout) where kept.granted[attempt] == .nobody: met(.outsideTimedOut)
        // Nor before its date.
        case .failed(.deadline) where kept.granted[attempt] == .nobody: return
        case .succeeded, .failed:
            if !ended.contains(attempt) {
                broken("\(operation): a result of attempt \(attempt), which has not ended")
            }
        case .cancelled, .returned, .lost, .crashed: return
        }
    }

    /// It leaves.
    mutating func record(_ message: Scheduler.Message) {
        switch message.body {
        case .dispatch(_, let grants):
            for grant in grants {
                let attempt = grant.held.attempt
                // What waits for the disk may leave for a connection that is gone by now.
                if let connection = recalled[attempt], connection <= message.connection {
                    broken("attempt \(attempt) was sent again after it was recalled")
                }
                sentTo[attempt, default: 0] += 1
            }
        case .plain(.control(let control)): ordered(control.orders, on: message.connection)
        case .plain(.welcome(let welcome)): ordered(welcome.orders, on: message.connection)
        case .plain: return
        }
    }

    private mutating func ordered(_ orders: [Order], on connection: UInt32) {
        for order in orders {
            switch order {
            case .recall(let held), .cancel(let held): recalled[held.attempt] = connection
            case .stop, .drain: continue
            }
        }
    }

    // MARK: What became of the coordinator

    /// What was asked before is forgotten with who asked it.
    mutating func died() {
        kept.forgetWaits()
        recalled = [:]
        expected = []
    }

    /// A power cut took back what was not on the disk.
    mutating func rollBack(to durable: Kept) {
        forgotten.formUnion(Set(kept.granted.keys).subtracting(durable.granted.keys))
        // Those that were resumed since.
        forgotten.formUnion(Set(kept.open.values).subtracting(durable.open.values))
        forgottenEnds.formUnion(kept.ended.subtracting(durable.ended))
        kept = durable
        kept.forgetWaits()
        checkPromises()
    }

    func owner(of attempt: AttemptID) -> Incarnation? { kept.granted[attempt] }

    func isOpen(_ held: HeldAttempt) -> Bool { kept.open[held.operation] == held.attempt }

    /// At the end every operation has its outcome in the store.
    func missingOutcome(of count: Int) -> String? {
        for index in 0..<UInt32(count) {
            let operation = OperationID(graph: GraphID(rawValue: 0), index: index)
            if kept.finished[operation] == nil {
                return "\(operation) has no outcome that was kept"
            }
        }
        for operation in kept.grown.members.keys.sorted() where kept.finished[operation] == nil {
            return "\(operation) has no outcome that was kept"
        }
        return nil
    }

    // MARK: What the workers did

    mutating func delivered(_ order: Order) {
        switch order {
        case .recall(let held), .cancel(let held): recallDelivered.insert(held.attempt)
        case .stop, .drain: return
        }
    }

    mutating func copied() { copies += 1 }

    mutating func started(
        _ held: HeldAttempt,
        by incarnation: Incarnation,
        wasWelcomed: Bool,
        isInFlight: Bool
    ) {
        starts += 1
        let attempt = held.attempt
        fold(Int64(bitPattern: attempt.number))
        if !wasWelcomed { broken("attempt \(attempt) started between a hello and its welcome") }
        if !started.insert(attempt).inserted { broken("attempt \(attempt) started twice") }
        if keyed[attempt] != nil {
            keyHolders.insert(attempt)
            // By the limit at the latest of their grants: none was taken back when it was lowered.
            let latest = keyHolders.compactMap { keyed[$0] }.max { $0.order < $1.order }
            if keyHolders.count > latest?.limit ?? 0 {
                broken("\(held.operation) started while others held its key")
            }
        }
        // Who started it could not know, and is told to stop.
        if forgotten.contains(attempt) { return }
        if kept.granted[attempt] != incarnation {
            broken("attempt \(attempt) was started by a worker that it was not granted to")
        }
        if !isInFlight {
            broken("attempt \(attempt) of \(held.operation) started although it was given up")
        }
        if recallDelivered.contains(attempt) {
            broken("attempt \(attempt) started after its recall arrived")
        }
        // What was reopened since had released it when it was granted.
        for dependency in dependencies(of: held.operation)
        where !kept.grown.reopened.contains(dependency.operation) {
            checkReleased(held.operation, by: dependency, "started")
        }
    }

    mutating func ended(_ held: HeldAttempt) { ended.insert(held.attempt) }

    /// It runs no more, whatever came of it.
    mutating func stopped(_ attempt: AttemptID) { keyHolders.remove(attempt) }
}

extension Scheduler.Message {
    /// Which connection of its worker it is for; 0 if it is for all workers.
    fileprivate var connection: UInt32 {
        switch destination {
        case .worker(let address): address.connection
        case .everyWorker: 0
        }
    }
}
