package import OperonCore
import OperonModel

/// What one seed is about: a graph, workers, and which faults may happen how often. Each seed
/// enables a random subset, so that rare combinations are met and fault-free runs stay common.
package struct SimulatorScenario: Sendable {
    package var operations = 12
    package var workers = 3
    package var slotsMax = 2
    package var queueLimit: Int?
    /// Probability that a single message is lost.
    package var loss = 0.0
    /// Longest time on the way, in milliseconds.
    package var delayMax: Int64 = 5
    /// How much longer events may take than beats, in milliseconds.
    package var eventLag: Int64 = 0
    /// Faults of each kind in the first phase.
    package var cuts = 0
    package var coordinatorCuts = 0
    package var brokerCrashes = 0
    package var kills = 0
    package var freezes = 0
    /// Workers that are asked to leave; another comes in their place.
    package var drains = 0
    /// Messages of a coordinator that rules no more.
    package var ghosts = 0
    /// Whether a hostile worker and hostile operations are in the cluster.
    package var hasIntruder = false
    package var suspensions = 0
    package var cancels = 0
    package var limitChanges = 0
    package var priorityChanges = 0
    /// Probability that an attempt fails by itself.
    package var failure = 0.0
    package var retryLimit: UInt16 = 0
    /// Longest operation, in milliseconds.
    package var durationMax: Int64 = 50
    package var usesKeys = false
    /// How many may hold the key, and how often somebody changes that.
    package var keyLimit = 1
    package var keyLimitChanges = 0
    /// Whether the last operation kills whatever process runs it.
    package var hasPoison = false
    /// Whether a worker's next life knows that the one before is dead.
    package var hasStateDirectories = false
    /// Outputs are fetched by whoever needs them.
    package var fetchesOutputs = false
    /// Some of them arrive damaged.
    package var isDamaging = false
    /// The coordinator keeps what it decides, and what leaves it waits for that.
    package var hasStore = false
    package var coordinatorDeaths = 0
    /// Crash points of a real store at which the coordinator dies.
    package var journalDeaths = 0
    /// Times at which what has finished is dropped.
    package var prunings = 0
    /// Probability that a transaction leaves nothing behind and is tried again.
    package var commitFailure = 0.0
    /// Some operations wait for a while after their release.
    package var isTimed = false
    /// What happens to graphs while they run.
    package var growth = SimulatedGrowth()
    /// Probability that an operation adds operations while it runs.
    package var addition = 0.0
    /// Probability that an operation waits for others while it runs.
    package var waiting = 0.0
    /// Probability that somebody outside is to complete an operation.
    package var external = 0.0
    /// Probability that an attempt gives its place back, to be tried again after a pause.
    package var notYet = 0.0
    /// Probability that an operation asks for resources or labels.
    package var asking = 0.0
    /// Probability that an operation has a date before which it may not start, and one by which it
    /// must have ended.
    package var dates = 0.0
    /// How often somebody sets the coordinator's wall clock.
    package var clockSteps = 0
    /// After one step in so many, the scheduler's invariants are computed anew. At which steps does
    /// not change what happens in a run.
    package var checkedSteps = 1
    package var process = SimulatedProcess()
    package var violation: PlantedViolation?

    package var isFaultFree: Bool {
        loss == 0 && coordinatorDeaths + journalDeaths == 0
            && cuts + coordinatorCuts + brokerCrashes + kills + freezes + ghosts + drains == 0
    }

    package init() {}

    /// The last one runs in its worker's own process.
    static let kinds = [Work.nothingKind, Work.waitKind, "Poison"]
    /// Those of graphs; the last one no worker knows.
    static let graphKinds = kinds + [Work.externalKind]
    static let externalKind = UInt32(kinds.count)

    /// The swarm: what this seed draws.
    package static func drawn(from generator: inout SeededGenerator) -> SimulatorScenario {
        var scenario = SimulatorScenario()
        func chance(_ probability: Double) -> Bool { generator.fraction() < probability }
        func some(_ range: ClosedRange<Int>, _ probability: Double) -> Int {
            chance(probability) ? Int.random(in: range, using: &generator) : 0
        }
        scenario.operations = Int.random(in: 1...24, using: &generator)
        scenario.workers = Int.random(in: 1...4, using: &generator)
        scenario.slotsMax = Int.random(in: 1...3, using: &generator)
        if chance(0.4) { scenario.queueLimit = Int.random(in: 1...4, using: &generator) }
        scenario.delayMax = [1, 5, 50, 500][Int.random(in: 0...3, using: &generator)]
        scenario.eventLag = [0, 0, 20, 3_000][Int.random(in: 0...3, using: &generator)]
        scenario.durationMax = [1, 50, 2_000, 20_000][Int.random(in: 0...3, using: &generator)]
        if chance(0.3) { scenario.failure = generator.fraction() * 0.5 }
        if chance(0.5) { scenario.retryLimit = UInt16.random(in: 1...3, using: &generator) }
        scenario.usesKeys = chance(0.2)
        scenario.suspensions = some(1...3, 0.3)
        scenario.cancels = some(1...3, 0.3)
        scenario.limitChanges = some(1...4, 0.3)
        scenario.priorityChanges = some(1...3, 0.2)
        guard chance(0.75) else { return scenario }
        if chance(0.5) { scenario.loss = generator.fraction() * 0.3 }
        scenario.cuts = some(1...4, 0.55)
        scenario.coordinatorCuts = some(1...2, 0.25)
        scenario.brokerCrashes = some(1...2, 0.25)
        scenario.kills = some(1...3, 0.4)
        scenario.freezes = some(1...3, 0.3)
        scenario.ghosts = some(1...3, 0.2)
        scenario.drains = some(1...2, 0.15)
        scenario.hasStateDirectories = chance(0.5)
        scenario.hasPoison = chance(0.15)
        return scenario
    }

    /// What a seed draws whose coordinator has a store. One that is free of faults stays so.
    package mutating func drawStore(from generator: inout SeededGenerator) {
        hasStore = true
        isTimed = generator.fraction() < 0.5
        guard !isFaultFree else { return }
        coordinatorDeaths = Int.random(in: 0...5, using: &generator)
        if generator.fraction() < 0.4 { commitFailure = generator.fraction() * 0.4 }
    }

    /// From a stream of its own.
    package mutating func drawKeys(from seed: UInt64) {
        guard usesKeys else { return }
        var generator = SeededGenerator(seed: seed ^ 0x6b65_7973_0000_0000)
        keyLimit = [1, 1, 2, 3][Int(generator.next() % 4)]
        if generator.next() % 2 == 0 { keyLimitChanges = 1 + Int(generator.next() % 4) }
        // Who is given up holds a key for longer than a lease only if it runs for that long.
        guard generator.next() % 4 > 0 else { return }
        durationMax = 20_000
        guard !isFaultFree else { return }
        workers = max(workers, 2)
        freezes += 2
    }

    /// From a stream of its own. The clock is also set where nothing waits for a date.
    package mutating func drawDates(from seed: UInt64) {
        var generator = SeededGenerator(seed: seed ^ 0x6461_7465_7300_0000)
        if generator.next() % 3 == 0 { dates = 0.1 + generator.fraction() * 0.4 }
        if generator.next() % 2 == 0 { clockSteps = 1 + Int(generator.next() % 4) }
    }

    /// The same graph, a part of whose operations have dates.
    func dated(
        _ graph: CompiledGraph,
        from start: WallTime,
        with generator: inout SeededGenerator
    ) -> CompiledGraph {
        changed(graph) { policy in
            if generator.fraction() < dates {
                policy.notBefore = start + .milliseconds(Int64(generator.next() % 40_000))
            }
            if generator.fraction() < dates / 2 {
                policy.deadline = start + .milliseconds(5_000 + Int64(generator.next() % 50_000))
            }
        }
    }

    /// The same graph, a part of whose operations wait after their release.
    func delayed(
        _ graph: CompiledGraph,
        with generator: inout SeededGenerator
    ) -> CompiledGraph {
        changed(graph) { policy in
            if generator.fraction() < 0.3 {
                policy.delay = .milliseconds(Int64(generator.next() % 8_000))
            }
        }
    }

    /// The same graph, a part of whose operations somebody outside completes.
    func completedOutside(
        _ graph: CompiledGraph,
        with generator: inout SeededGenerator
    ) -> CompiledGraph {
        changed(graph) { drawExternal(&$0, from: &generator) }
    }

    func drawExternal(_ policy: inout OperationPolicy, from generator: inout SeededGenerator) {
        // The one that kills workers stays with them.
        guard external > 0, generator.fraction() < external, policy.kind < 2 else { return }
        policy.kind = Self.externalKind
        if generator.next() % 2 == 0 {
            policy.timeout = .milliseconds(100 + Int64(generator.next() % 20_000))
        }
    }

    func changed(
        _ graph: CompiledGraph,
        _ change: (inout OperationPolicy) -> Void
    ) -> CompiledGraph {
        let policies = graph.policies.map { policy in
            var policy = policy
            change(&policy)
            return policy
        }
        var changed = CompiledGraph(
            name: graph.name,
            topology: graph.topology,
            queues: graph.queues,
            kinds: graph.kinds,
            keys: graph.keys,
            policies: policies,
            policy: graph.policy,
            rank: graph.rank
        )
        changed.keyLimits = graph.keyLimits
        if hasGroup { changed.limitInFlight(1, to: Self.groupLimit) }
        changed.demands = graph.demands
        return changed
    }

    /// Whether two thirds of the operations are a group with `inFlight`. In some seeds, and without
    /// a draw, so that all others stay as they are.
    private var hasGroup: Bool { operations % 7 == 3 }
    private static let groupLimit = 2

    /// The graph of this scenario: random shape, priorities, two kinds, sometimes two queues.
    package func graph(from generator: inout GraphGenerator) -> CompiledGraph {
        let topology = generator.scattered(operations: operations, degree: 3)
        var policies: [OperationPolicy] = []
        var policy: [UInt32] = []
        var rank: [UInt64] = []
        for index in 0..<operations {
            var next = OperationPolicy()
            next.queue = UInt32.random(in: 0...1, using: &generator.generator)
            next.kind = UInt32.random(in: 0...1, using: &generator.generator)
            next.priority = QueuePriority.allCases.randomElement(using: &generator.generator)
            next.retry = RetryPolicy(limit: retryLimit, delay: .milliseconds(100))
            if usesKeys, generator.generator.fraction() < 0.4 { next.keys = [0] }
            if hasGroup, index % 3 != 0 { next.keys.append(1) }
            if process.hasSecondKey, !next.keys.isEmpty, index % 2 == 0 { next.keys.append(2) }
            // In some seeds, and without a draw, so that all others stay as they are.
            next.cancelsSiblings = operations % 5 == 0 && index % 2 == 0
            if hasPoison, index == operations - 1 { next.kind = 2 }
            policies.append(next)
            policy.append(UInt32(index))
            rank.append(generator.generator.next() % 4)
        }
        var graph = CompiledGraph(
            name: "simulated",
            topology: topology,
            queues: [
                QueueSettings(name: "a", maxConcurrentOperationCount: queueLimit),
                ratedQueue,
            ],
            kinds: Self.graphKinds,
            keys: ["key", CompiledGraph.groupKey("group"), "other"],
            policies: policies,
            policy: policy,
            rank: rank
        )
        if hasGroup { graph.limitInFlight(1, to: Self.groupLimit) }
        var key = KeySettings(name: "key", limit: keyLimit)
        if operations % 6 == 1 { key.rate = StartRate(3, burst: 1) }
        if key != KeySettings(name: "key") { graph.keyLimits = [key] }
        graph.demands = Self.demands
        return graph
    }

    /// The queue “b”, with a rate in some seeds: without a draw, so that all others stay as they
    /// are.
    var ratedQueue: QueueSettings {
        var queue = QueueSettings(name: "b")
        if operations % 4 == 1 { queue.rate = StartRate(4, burst: 1 + operations % 3) }
        return queue
    }
}
