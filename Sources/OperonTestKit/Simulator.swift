import HeapModule
package import OperonCore
import OperonModel

/// A whole cluster on one thread, from a seed: one `Scheduler`, several `WorkerAgent`s, and a model
/// of the transport that loses, delays and cuts. It checks what must hold after every event, then
/// heals everything and demands that the graph finishes.
package struct Simulator {
    package let seed: UInt64
    package let scenario: SimulatorScenario

    var now = Timestamp(nanoseconds: 1_000_000_000)
    var agenda = Heap<Entry>()
    var entries: UInt64 = 0
    /// Streams of chance, so that one more message does not reshuffle the faults.
    var network: SeededGenerator
    var work: SeededGenerator
    var disk: SeededGenerator
    var growth: SeededGenerator
    var steering: SeededGenerator
    var clients: SeededGenerator
    var inside: SeededGenerator
    var outside: SeededGenerator
    var clocks: SeededGenerator
    var demands: SeededGenerator
    var returns: SeededGenerator
    var journalFaults: SeededGenerator
    var process: SeededGenerator

    /// What the coordinator keeps; `nil`: it never dies, and needs nothing.
    var store: SimulatedStore?
    /// What is submitted, once it is drawn.
    var graph: CompiledGraph?
    /// What graphs and additions are made of.
    var pieces = CompiledPieces()
    var resolver: SimulatedResolver
    var scheduler: Scheduler
    var effects = Scheduler.Effects()
    /// The coordinator's, for outputs that workers fetch.
    var outputServer: OutputServer
    var coordinatorIsUp = false
    var coordinatorUpSince = Timestamp.zero
    /// Counts the coordinator's connections: what was sent to an old one is lost.
    var coordinatorConnection = 0
    var coordinatorWake: Timestamp?
    var coordinatorAliveSince = Timestamp.zero
    /// It stands still until then.
    var coordinatorFrozenUntil: Timestamp?
    /// When it stood still last.
    var coordinatorFrozenSince = Timestamp.distantFuture
    /// When it went on, or will, after it stood still.
    var coordinatorThawedAt = Timestamp.zero
    /// It was asked to end, and starts nothing.
    var isLeaving = false
    /// How far the wall clock is ahead of the monotonic one, and when it was set last.
    var clockOffset = Duration.zero
    /// The latest date that the coordinator has seen.
    var latestWall = WallTime(nanosecondsSince1970: 0)
    var clockSetAt = Timestamp.zero
    /// The date that the scheduler named last, and the number of the look at it.
    var nextDate: WallTime?
    var dateLook = 0
    /// Only looked up.
    var pauses: [OperationID: SimulatedPause] = [:]
    /// Those that were let go since they were delayed. Only looked up.
    var released: Set<OperationID> = []
    /// Those that had an attempt: their date has passed. Only looked up.
    var attempted: Set<OperationID> = []
    /// A deadline that passed earlier is looked for again. Only looked up.
    var reopenedAt: [OperationID: Timestamp] = [:]
    /// Only looked up.
    var heard: [Incarnation: SimulatedHearing] = [:]
    /// Who asked this coordinator to drain a worker. Only looked up.
    var drains: [Incarnation: String] = [:]
    var brokerIsUp = true
    var workers: [SimulatedWorker] = []
    /// `nil`: nobody is hostile.
    var intruder: SimulatedIntruder?
    var isHealed = false
    var healedAt = Timestamp.zero
    /// When a process of a worker ended last.
    var workerEndedAt = Timestamp.zero
    /// When a lane may deliver next: order is kept within it.
    var laneFree: [Lane: Timestamp] = [:]

    package var ledger = SimulatorLedger()
    package var coverage: SimulatorCoverage { ledger.coverage }
    /// Is given each step with its time in seconds, to read how a seed failed.
    package var trace: ((String) -> Void)?
    /// Looks at the scheduler after each step: what is wrong, or `nil`.
    package var inspector: ((Scheduler) -> String?)?

    package init(seed: UInt64, scenario: SimulatorScenario) {
        self.seed = seed
        self.scenario = scenario
        network = SeededGenerator(seed: seed ^ 0x6e65_7477_6f72_6b00)
        work = SeededGenerator(seed: seed ^ 0x776f_726b_0000_0000)
        disk = SeededGenerator(seed: seed ^ 0x6469_736b_0000_0000)
        growth = SeededGenerator(seed: seed ^ 0x6164_6469_7469_6f6e)
        inside = SeededGenerator(seed: seed ^ 0x7769_7468_696e_0000)
        outside = SeededGenerator(seed: seed ^ 0x6f75_7473_6964_6500)
        demands = SeededGenerator(seed: seed ^ 0x6465_6d61_6e64_7300)
        clocks = SeededGenerator(seed: seed ^ 0x636c_6f63_6b73_0000)
        returns = SeededGenerator(seed: seed ^ 0x7265_7475_726e_7300)
        journalFaults = SeededGenerator(seed: seed ^ 0x6a6f_7572_6e61_6c00)
        process = SeededGenerator(seed: seed ^ 0x7374_616e_6473_0000)
        steering = SeededGenerator(seed: seed ^ 0x7374_6565_7269_6e67)
        clients = SeededGenerator(seed: seed ^ 0x636c_6965_6e74_7300)
        var configuration = Scheduler.Configuration()
        configuration.seed = seed
        configuration.violation = scenario.violation
        // Small enough that names are forgotten and searches are led on in later events.
        configuration.unusedKindsMax = 1
        if seed % 3 == 0 { configuration.searchVisitsMax = 2 }
        if seed % 2 == 1 { configuration.rangeMin = 2 }
        outputServer = OutputServer(limits: Self.smallPieces(configuration.limits))
        scheduler = Scheduler(
            configuration: configuration,
            reign: Reign(rawValue: 7),
            epoch: Epoch(rawValue: 2)
        )
        resolver = SimulatedResolver(violation: scenario.violation)
        if scenario.hasStore { store = SimulatedStore(reign: scheduler.reign) }
    }

    /// A seed's own swarm draw.
    ///
    /// - Parameter checkedSteps: see `SimulatorScenario.checkedSteps`.
    package init(seed: UInt64, violation: PlantedViolation? = nil, checkedSteps: Int = 1) {
        var scenario = Self.scenario(of: seed, hasStore: seed % 4 < 2)
        scenario.violation = violation
        scenario.checkedSteps = checkedSteps
        self.init(seed: seed, scenario: scenario)
    }

    static func scenario(of seed: UInt64, hasStore: Bool) -> SimulatorScenario {
        var generator = SeededGenerator(seed: seed)
        var scenario = SimulatorScenario.drawn(from: &generator)
        scenario.fetchesOutputs = seed % 2 == 0
        scenario.isDamaging = !scenario.isFaultFree
        // A stream of its own: seeds without a store are what they were before there was one.
        if hasStore {
            var disk = SeededGenerator(seed: seed ^ 0x6372_6173_6800_0000)
            scenario.drawStore(from: &disk)
        }
        scenario.growth = .drawn(from: seed)
        var inside = SeededGenerator(seed: seed ^ 0x6164_6473_0000_0000)
        if inside.next() % 3 == 0 { scenario.addition = 0.1 + inside.fraction() * 0.4 }
        var waiting = SeededGenerator(seed: seed ^ 0x6177_6169_7400_0000)
        if waiting.next() % 3 == 0 { scenario.waiting = 0.1 + waiting.fraction() * 0.5 }
        scenario.drawKeys(from: seed)
        scenario.drawResources(from: seed)
        var outside = SeededGenerator(seed: seed ^ 0x6170_7072_6f76_616c)
        if outside.next() % 3 == 0 { scenario.external = 0.1 + outside.fraction() * 0.4 }
        var pausing = SeededGenerator(seed: seed ^ 0x6e6f_7420_7965_7400)
        if pausing.next() % 3 == 0 { scenario.notYet = 0.1 + pausing.fraction() * 0.4 }
        scenario.drawDates(from: seed)
        var hostility = SeededGenerator(seed: seed ^ 0x696e_7472_7564_6572)
        scenario.hasIntruder = hostility.next() % 4 == 0
        if scenario.hasStore {
            var pruning = SeededGenerator(seed: seed ^ 0x7072_756e_6500_0000)
            scenario.prunings = Int(pruning.next() % 4)
        }
        scenario.process = .drawn(from: seed, scenario)
        scenario.makeLong()
        return scenario
    }

    enum Lane: Hashable {
        case toWorker(Incarnation, UInt32)
        case outputs(Incarnation, UInt32)
        case events(Incarnation, UInt32)
        case beats(Incarnation, UInt32)
        case tick(Tick.Way)
    }

    /// Large cases are boxed, as entries are moved within the agenda.
    enum Step {
        case coordinatorUp
        case coordinatorDown
        case coordinatorWake
        case coordinatorLostLink
        case coordinatorFrozen(until: Timestamp)
        case coordinatorDies(SimulatedStore.Crash)
        case journalDies(draw: UInt64, isPowerCut: Bool)
        case coordinatorStarted(generation: Int)
        case committed(generation: Int)
        case synced(generation: Int)
        case brokerDown
        case brokerUp
        case workerBoot(Int)
        case workerUp(Int, incarnation: Incarnation)
        case workerDown(Int)
        case workerKilled(Int)
        case workerFrozen(Int, until: Timestamp)
        case workerDrained(Int, deadline: Timestamp)
        /// The coordinator asks it to leave.
        case drainAsked(Int)
        case workerWake(Int, incarnation: Incarnation)
        case ended(Int, incarnation: Incarnation, HeldAttempt)
        case asks(Int, incarnation: Incarnation, HeldAttempt, waits: Bool)
        case awaits(Int, incarnation: Incarnation, HeldAttempt, [String])
        case withdraws(Int, incarnation: Incarnation, UInt64)
        case poisoned(Int, incarnation: Incarnation, HeldAttempt)
        indirect case inputs(Int, incarnation: Incarnation, WorkerAgent.InputProgress)
        indirect case toWorker(Int, WorkerAddress, CoordinatorEnvelope)
        indirect case toCoordinator(connection: Int, WorkerEnvelope)
        indirect case command(Scheduler.Event)
        /// The first graph comes in, again if it was lost with a power cut.
        case submit
        case prune
        case shutdown(kill: Bool)
        case leaves(generation: Int)
        case unsendable(HeldAttempt, generation: Int)
        case grow
        case steer
        case completeSome
        case ghost(Int)
        case intrudes
        /// Somebody sets the coordinator's wall clock.
        case clockSet(by: Duration)
        case dateLook(Int)
        case datesChecked
        /// The broker returns a message for an address where nobody is.
        case returned(connection: Int, WorkerAddress)
        case heal
    }

    struct Entry: Comparable {
        let time: Timestamp
        let order: UInt64
        let step: Step

        static func < (left: Entry, right: Entry) -> Bool {
            left.time == right.time ? left.order < right.order : left.time < right.time
        }

        static func == (left: Entry, right: Entry) -> Bool { left.order == right.order }
    }

    /// Faults happen in the first minute of virtual time; then everything is healed, and half an
    /// hour must do for whatever is left.
    static let faultPhase = Duration.seconds(60)
    static let drainBound = Duration.seconds(1_800)
    /// More steps than any healthy run needs: a livelock.
    static let stepsMax = 200_000

    /// Runs to the end. The first thing that did not hold, or `nil`.
    package mutating func run() -> String? {
        prepare()
        var count = 0
        let scale = Int(scenario.process.scale)
        let end = now + (Self.faultPhase + Self.drainBound) * scale
        while let entry = agenda.popMin() {
            now = max(now, entry.time)
            count += 1
            guard count <= Self.stepsMax else { return "livelock: \(count) steps" }
            guard now <= end else { return notDrained() }
            if let trace { trace("\(now.nanoseconds / 1_000) µs \(entry.step)") }
            ledger.now = now
            ledger.wall = moment.wall
            perform(entry.step)
            ledger.fold(now.nanoseconds)
            if let broken = ledger.violation { return broken }
            if isChecked(count), let broken = scheduler.violatedInvariant() { return broken }
            if let broken = inspector?(scheduler) { return broken }
            if isHealed, isKept, isDrained, !isStillWatched {
                return finalCheck() ?? checkJournal()
            }
        }
        return notDrained()
    }

    /// Whether the scheduler's invariants are computed anew after this step. Seeds begin at
    /// different steps, so that together they look at all.
    private func isChecked(_ step: Int) -> Bool {
        (UInt64(step) &+ seed).isMultiple(of: UInt64(scenario.checkedSteps))
    }

    private var isDrained: Bool {
        scheduler.graphCount > 0 && !scheduler.areDrainsOpen
            && (0..<UInt32(scheduler.graphCount)).allSatisfy {
                scheduler.isFinished(GraphID(rawValue: $0))
            }
    }

    private func notDrained() -> String {
        guard scheduler.graphCount > 0 else { return "the graph was never submitted" }
        for number in 0..<UInt32(scheduler.graphCount) {
            let graph = GraphID(rawValue: number)
            for index in 0..<UInt32(scheduler.operationCount(of: graph)) {
                let operation = OperationID(graph: graph, index: index)
                guard scheduler.outcome(of: operation) == nil else { continue }
                return "not drained: \(operation) is \(scheduler.state(of: operation)): "
                    + "\(scheduler.explain(operation))"
            }
        }
        return "a worker that was asked to leave never heard of it"
    }

    private func finalCheck() -> String? {
        for operation in ledger.kept.grown.members.keys.sorted() {
            guard ledger.kept.finished[operation] == .failed(.workerLost) else { continue }
            if !isPoison(operation) { return "\(operation) was blamed for what another did" }
        }
        if let broken = ledger.missingOutcome(of: scenario.operations) { return broken }
        guard ledger.kept.grown.open.isEmpty else { return "a graph is open for ever" }
        if let dead = deadWorker() { return dead }
        if scenario.isFaultFree, ledger.copies > 0 {
            return "\(ledger.copies) copies were sent over a transport that lost nothing"
        }
        return nil
    }

    mutating func at(_ time: Timestamp, _ step: Step) {
        agenda.insert(Entry(time: time, order: entries, step: step))
        entries += 1
    }
}

// MARK: - The schedule

extension Simulator {
    private mutating func prepare() {
        var faults = SeededGenerator(seed: seed ^ 0x6661_756c_7473_0000)
        var graphs = GraphGenerator(seed: seed ^ 0x6772_6170_6800_0000)
        var graph = scenario.graph(from: &graphs)
        if scenario.isTimed { graph = scenario.delayed(graph, with: &disk) }
        if scenario.dates > 0 { graph = scenario.dated(graph, from: moment.wall, with: &clocks) }
        planClocks(from: now)
        if scenario.external > 0 {
            graph = scenario.completedOutside(graph, with: &outside)
            at(now + .seconds(1), .completeSome)
        }
        if scenario.asking > 0 { graph = scenario.demanding(graph, with: &demands) }
        graph.failFast = scenario.process.failFast
        self.graph = graph
        ledger.topology = graph.topology
        if graph.failFast { ledger.failsFast = GraphID(rawValue: 0) }
        ledger.kept.limit = scenario.queueLimit
        store?.durableLedger = ledger.kept
        if store?.journal != nil { startJournal() }
        let start = now
        for index in 0..<scenario.workers {
            var worker = SimulatedWorker(
                slots: 1 + Int(faults.next() % UInt64(scenario.slotsMax))
            )
            worker.hasStateDirectory = scenario.hasStateDirectories
            workers.append(worker)
            at(start + .nanoseconds(Int64(faults.next() % 1_000_000_000)), .workerBoot(index))
        }
        at(start + .nanoseconds(Int64(faults.next() % 1_000_000_000)), .coordinatorUp)
        at(start + .nanoseconds(Int64(faults.next() % 1_000_000_000)), .submit)
        planGrowth(from: start)
        if scenario.hasIntruder {
            intruder = SimulatedIntruder(seed: seed ^ 0x6869_7373_6573_0000)
            at(start + .seconds(1), .intrudes)
        }
        plan(faults: &faults, from: start + .seconds(1))
        planProcess(from: start + .seconds(1))
        planJournalDeaths(from: start + .seconds(1))
        at(start + Self.faultPhase * Int(scenario.process.scale), .heal)
    }

    /// What goes wrong and what somebody asks for, each at its moment.
    private mutating func plan(faults: inout SeededGenerator, from start: Timestamp) {
        func some() -> Timestamp { moment(in: &faults, from: start, seconds: 50) }
        func worker() -> Int { Int(faults.next() % UInt64(scenario.workers)) }
        func operation() -> OperationID {
            OperationID(
                graph: GraphID(rawValue: 0),
                index: UInt32(faults.next() % UInt64(scenario.operations))
            )
        }
        for _ in 0..<scenario.cuts { at(some(), .workerDown(worker())) }
        for _ in 0..<scenario.coordinatorCuts { at(some(), .coordinatorDown) }
        for _ in 0..<scenario.brokerCrashes { at(some(), .brokerDown) }
        for _ in 0..<scenario.kills { at(some(), .workerKilled(worker())) }
        for _ in 0..<scenario.freezes {
            let time = some()
            let length = Duration.milliseconds(Int64(faults.next() % 20_000))
            at(time, .workerFrozen(worker(), until: time + length))
        }
        for _ in 0..<scenario.ghosts { at(some(), .ghost(worker())) }
        for _ in 0..<scenario.suspensions {
            let targets: [Scheduler.Target] = [
                .queue("a"), .graph(GraphID(rawValue: 0)), .operation(operation()),
            ]
            let target = targets[Int(faults.next() % 3)]
            let time = some()
            at(time, .command(.suspensionRequested(target, Suspension())))
            at(
                time + .milliseconds(Int64(faults.next() % 10_000)),
                .command(.suspensionRequested(target, nil))
            )
        }
        for _ in 0..<scenario.cancels {
            let target: Scheduler.Target =
                faults.next() % 8 == 0 ? .queue("b") : .operation(operation())
            let cascade = faults.next() % 2 == 0
            at(some(), .command(.cancelRequested(target, reason: "test", cascade: cascade)))
        }
        for _ in 0..<scenario.limitChanges {
            let maximum = Int(faults.next() % 4)
            at(some(), .command(.queueLimitSet(queue: "a", maximum: maximum)))
        }
        for _ in 0..<scenario.coordinatorDeaths {
            let crash = SimulatedStore.Crash(
                point: CrashMoment.allCases[Int(disk.next() % UInt64(CrashMoment.allCases.count))],
                isPowerCut: disk.fraction() < 0.3
            )
            at(moment(in: &disk, from: start, seconds: 50), .coordinatorDies(crash))
        }
        for _ in 0..<scenario.prunings {
            at(moment(in: &steering, from: start, seconds: 59), .prune)
        }
        for _ in 0..<scenario.keyLimitChanges {
            let settings = KeySettings(name: "key", limit: 1 + Int(steering.next() % 4))
            at(moment(in: &steering, from: start, seconds: 50), .command(.keyLimitSet(settings)))
        }
        for _ in 0..<scenario.priorityChanges {
            let priority = QueuePriority.allCases[Int(faults.next() % 5)]
            at(some(), .command(.priorityRequested(operation(), priority)))
        }
        for _ in 0..<scenario.drains {
            let time = some()
            let patience = Duration.milliseconds(Int64(faults.next() % 10_000))
            let index = worker()
            let drain = Step.workerDrained(index, deadline: time + patience)
            at(time, faults.next() % 2 == 0 ? .drainAsked(index) : drain)
        }
    }

    func moment(
        in generator: inout SeededGenerator,
        from start: Timestamp,
        seconds: Int64
    ) -> Timestamp {
        let span = UInt64(seconds * scenario.process.scale * 1_000_000_000)
        return start + .nanoseconds(Int64(generator.next() % span))
    }

    mutating func heal() {
        isHealed = true
        healedAt = now
        store?.journal?.cancelDeath()
        reviveCoordinator()
        if !brokerIsUp { perform(.brokerUp) }
        drive(.queueLimitSet(queue: "a", maximum: 2))
        for name in ["a", "b"] { drive(.suspensionRequested(.queue(name), nil)) }
        healGrowth()
    }
}
