import OperonCore
import OperonModel

/// What happens to the coordinator's process apart from its death, what it cannot send, and what is
/// rare about its cluster.
package struct SimulatedProcess: Hashable, Sendable {
    /// How often it stands still, as a stopped process does, while what is sent to it waits.
    package var freezes = 0
    /// How often it is asked to end, and another one goes on with its store.
    package var shutdowns = 0
    /// Probability that no message can carry an operation.
    package var unsendable = 0.0
    /// Whether the run goes on for a while after the faults, and each worker must live then.
    package var watchesWorkers = false
    /// Whether the first graph is cancelled when one of its operations fails.
    package var failFast = false

    /// Whether all workers but the first lack a kind or a queue.
    package var workersDiffer = false
    /// Whether some operations with the first key need a second one, too.
    package var hasSecondKey = false
    /// How much longer everything takes. So long a run meets what depends on how long an operation
    /// has run.
    package var scale: Int64 = 1

    package init() {}

    /// From a stream of its own, in which the seeds that failed once draw nothing of this.
    static func drawn(from seed: UInt64, _ scenario: SimulatorScenario) -> SimulatedProcess {
        var generator = SeededGenerator(seed: seed ^ 0x7072_6f63_6573_7315)
        var process = SimulatedProcess()
        process.watchesWorkers = generator.next() % 16 == 0
        process.failFast = generator.next() % 8 == 0
        let (unsendable, share) = (generator.next(), generator.fraction())
        if unsendable % 8 == 0 { process.unsendable = 0.05 + share * 0.2 }
        let (freezes, shutdowns) = (generator.next(), generator.next())
        process.workersDiffer = generator.next() % 8 == 0
        process.hasSecondKey = generator.next() % 4 == 0
        if generator.next() % 128 == 0 { process.scale = longScale }
        guard !scenario.isFaultFree else { return process }
        if freezes % 6 == 0 { process.freezes = 1 + Int(freezes / 6 % 3) }
        if scenario.hasStore, shutdowns % 6 == 0 { process.shutdowns = 1 + Int(shutdowns / 6 % 2) }
        return process
    }

    private static let longScale: Int64 = 16
}

extension SimulatorScenario {
    /// Few operations, which run for up to five minutes: a coordinator waits for a silent worker
    /// for a twentieth of the time that an operation has run, if that is more than its lease.
    mutating func makeLong() {
        guard process.scale > 1 else { return }
        operations = min(operations, 6)
        durationMax = 300_000
        hasIntruder = false
    }

    /// What the worker of this index knows. The first one knows everything.
    func kinds(ofWorker index: Int) -> [String] {
        process.workersDiffer && index % 2 == 1
            ? Self.kinds.filter { $0 != Work.waitKind } : Self.kinds
    }

    /// Which queues it serves; empty: all.
    func queues(ofWorker index: Int) -> [String] {
        process.workersDiffer && index % 3 == 2 ? ["a"] : []
    }
}

extension Simulator {
    mutating func planProcess(from start: Timestamp) {
        for _ in 0..<scenario.process.freezes {
            let time = moment(in: &process, from: start, seconds: 40)
            let length = Duration.milliseconds(Int64(process.next() % 18_000))
            at(time, .coordinatorFrozen(until: time + length))
        }
        for _ in 0..<scenario.process.shutdowns {
            let kill = process.next() % 3 == 0
            at(moment(in: &process, from: start, seconds: 50), .shutdown(kill: kill))
        }
    }

    // MARK: - Standing still

    mutating func freezeCoordinator(until end: Timestamp) {
        guard coordinatorFrozenUntil == nil, store?.isAlive != false else { return }
        ledger.met(.coordinatorFrozen)
        coordinatorFrozenUntil = end
        coordinatorFrozenSince = now
        coordinatorThawedAt = end
    }

    /// Whether the step happens later, because the coordinator stands still. The order of what
    /// waits is that in which it came.
    mutating func waits(_ step: Step) -> Bool {
        guard let end = coordinatorFrozenUntil else { return false }
        guard now < end else {
            coordinatorFrozenUntil = nil
            return false
        }
        guard Self.needsCoordinator(step) else { return false }
        at(end, step)
        return true
    }

    /// Whether its process takes part in the step.
    private static func needsCoordinator(_ step: Step) -> Bool {
        switch step {
        case .coordinatorUp, .coordinatorWake, .coordinatorLostLink, .committed, .synced,
            .drainAsked, .toCoordinator, .command, .submit, .prune, .grow, .steer, .completeSome,
            .dateLook, .returned, .shutdown, .leaves, .unsendable, .datesChecked:
            true
        case .coordinatorDown, .coordinatorDies, .coordinatorFrozen, .journalDies,
            .coordinatorStarted, .brokerDown, .brokerUp, .workerBoot, .workerUp, .workerDown,
            .workerKilled, .workerFrozen, .workerDrained, .workerWake, .ended, .asks, .awaits,
            .withdraws, .poisoned, .inputs, .toWorker, .ghost, .intrudes, .clockSet, .heal:
            false
        }
    }

    // MARK: - Leaving

    /// It starts nothing more, and ends when what it decided is kept.
    mutating func shutDown(kill: Bool) {
        guard let generation = store?.generation, store?.isAlive == true, !isHealed else { return }
        ledger.met(.coordinatorAskedToLeave)
        isLeaving = true
        drive(.shutdownRequested(kill: kill))
        let patience = Int64(process.next() % 5_000)
        at(now + .milliseconds(patience), .leaves(generation: generation))
    }

    /// What leaves starts nothing.
    mutating func checkLeaving() {
        guard isLeaving else { return }
        for case .granted(_, let operation, _, _) in effects.records {
            ledger.broken("\(operation) was granted by a coordinator that leaves")
        }
    }

    mutating func leave(generation: Int) {
        guard store?.generation == generation, store?.isAlive == true else { return }
        guard isKept || isHealed else {
            at(now + .milliseconds(10), .leaves(generation: generation))
            return
        }
        die(isPowerCut: false)
        if isHealed { reviveCoordinator() }
    }

    // MARK: - What no message can carry

    /// Whether it is one of those. The same each time that it is tried.
    private func isUnsendable(_ operation: OperationID) -> Bool {
        guard scenario.process.unsendable > 0 else { return false }
        let number = UInt64(operation.graph.rawValue) << 32 | UInt64(operation.index)
        var generator = SeededGenerator(seed: seed ^ 0x746f_6f20_6269_6700 ^ number &* 0x9e37_79b9)
        return generator.fraction() < scenario.process.unsendable
    }

    /// What can be sent of a dispatch. What cannot fails next.
    mutating func sendable(_ grants: [Scheduler.Grant]) -> [Scheduler.Grant] {
        grants.filter { grant in
            guard isUnsendable(grant.held.operation) else { return true }
            ledger.met(.attemptUnsendable)
            ledger.unsendable.insert(grant.held.attempt)
            at(now, .unsendable(grant.held, generation: store?.generation ?? 0))
            return false
        }
    }

    mutating func failUnsendable(_ held: HeldAttempt, generation: Int) {
        guard store?.generation ?? 0 == generation, store?.isAlive != false else { return }
        drive(.attemptUnsendable(held, .inputTooLarge(bytes: 2, limit: 1)))
    }

    // MARK: - Workers

    /// It knows the kind and serves the queue of what it starts.
    mutating func checkFitness(of worker: Int, for operation: OperationID) {
        // What was added later has its kind and its queue by the numbers of its addition.
        guard scenario.process.workersDiffer, scheduler.isKept(operation),
            operation.graph.rawValue == 0, Int(operation.index) < scenario.operations
        else { return }
        let policy = policy(of: operation)
        let compiled = scheduler.compiled(operation.graph)
        let (kinds, queues) = (
            scenario.kinds(ofWorker: worker), scenario.queues(ofWorker: worker)
        )
        let kind = compiled.kinds[Int(policy.kind)]
        if !kinds.contains(kind) {
            ledger.broken("\(operation) was given to a worker that does not know \(kind)")
        }
        let queue = compiled.queues[Int(policy.queue)].name
        if !queues.isEmpty, !queues.contains(queue) {
            ledger.broken("\(operation) was given to a worker that does not serve \(queue)")
        }
    }

    /// How long after the faults each worker must live and be known, or after the last death: some
    /// operations kill their workers.
    private var recoveryBound: Duration { .seconds(45) * Int(scenario.process.scale) }

    /// Whether the run goes on although everything has its outcome.
    var isStillWatched: Bool {
        scenario.process.watchesWorkers && now < max(healedAt, workerEndedAt) + recoveryBound
    }

    /// A slot of the cluster that stays empty is found by nothing else, since others do its work.
    func deadWorker() -> String? {
        guard scenario.process.watchesWorkers else { return nil }
        for (index, worker) in workers.enumerated() {
            guard worker.agent != nil, worker.isUp, worker.wasWelcomed else {
                return "worker \(index) has not come back after the faults"
            }
        }
        let slots = workers.map(\.slots).reduce(0, +)
        guard scheduler.slotCount == slots else {
            return "the coordinator knows \(scheduler.slotCount) of \(slots) slots"
        }
        return nil
    }
}
