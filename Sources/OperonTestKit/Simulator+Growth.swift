import OperonCore
import OperonModel
import OperonPorts

/// What happens to graphs while they run: additions, further graphs, changed dependencies, further
/// rounds, suspensions that end by themselves.
package struct SimulatedGrowth: Hashable, Sendable {
    /// The first graph may be added to.
    package var isOpen = false
    /// Things of this kind that somebody asks for.
    package var requests = 0
    /// What somebody asks for of queues, priorities and suspensions, beside that.
    package var settings = 0

    package init() {}

    /// Of every second seed, from a stream of its own.
    static func drawn(from seed: UInt64) -> SimulatedGrowth {
        var generator = SeededGenerator(seed: seed ^ 0x6772_6f77_7468_0000)
        var growth = SimulatedGrowth()
        guard generator.next() % 2 == 0 else { return growth }
        growth.isOpen = generator.next() % 4 != 0
        growth.requests = Int.random(in: 1...24, using: &generator)
        if generator.next() % 2 == 0 {
            growth.settings = Int.random(in: 1...12, using: &generator)
        }
        return growth
    }
}

extension Simulator {
    /// When somebody asks for the next thing.
    mutating func planGrowth(from start: Timestamp) {
        for _ in 0..<scenario.growth.requests {
            let delay = Duration.milliseconds(Int64(growth.next() % 50_000))
            at(start + .seconds(1) + delay, .grow)
        }
        for _ in 0..<scenario.growth.settings {
            let delay = Duration.milliseconds(Int64(steering.next() % 50_000))
            at(start + .seconds(1) + delay, .steer)
        }
    }

    /// The first graph, if it is not there.
    mutating func submit() {
        guard let graph, scheduler.graphCount == 0 || store?.isAlive == false else { return }
        if store?.isAlive == false {
            at(now + .milliseconds(200), .submit)
        } else {
            drive(.graphSubmitted(graph, isOpen: scenario.growth.isOpen && !isHealed))
        }
    }

    /// Somebody asks for something. It may be refused.
    mutating func grow() {
        guard !isHealed, isAnswered(.grow), scheduler.graphCount > 0 else { return }
        switch growth.next() % 20 {
        case 0...3: addOperations()
        case 4...6: submitAnother()
        case 7...12: changeDependency()
        case 13...15: retrySome()
        case 16...17: suspendForAWhile()
        case 18: drive(.graphClosed(someGraph()))
        case _: cancelSome()
        }
    }

    /// Whether somebody is there to be asked; else it is asked later.
    private mutating func isAnswered(_ step: Step) -> Bool {
        guard store?.isAlive == false else { return true }
        at(now + .milliseconds(200), step)
        return false
    }

    private mutating func someGraph() -> GraphID {
        GraphID(rawValue: UInt32(growth.next() % UInt64(scheduler.graphCount)))
    }

    private mutating func someOperation() -> OperationID? {
        let graph = someGraph()
        let count = scheduler.operationCount(of: graph)
        guard count > 0 else { return nil }
        return OperationID(graph: graph, index: UInt32(growth.next() % UInt64(count)))
    }

    private mutating func addOperations() {
        let id = someGraph()
        guard let base = try? scheduler.additionBase(of: id) else { return }
        let first = UInt32(base.operationCount)
        let graph = piece()
        drive(.operationsAdded(id, CompiledAddition(first: first, graph: graph)))
        if effects.refusals.isEmpty { ledger.met(.graphAddedTo) }
    }

    private mutating func submitAnother() {
        let graph = piece()
        let isOpen = growth.next() % 2 == 0
        drive(.graphSubmitted(graph, isOpen: isOpen))
        ledger.met(.graphSubmittedBeside)
    }

    private mutating func changeDependency() {
        // What waits is seldom drawn by chance: the first that does of a few.
        var drawn = (0..<6).compactMap { _ in someOperation() }
        let waiting = drawn.firstIndex { scheduler.state(of: $0) != .finished } ?? 0
        guard !drawn.isEmpty, let other = someOperation() else { return }
        let operation = drawn.remove(at: waiting)
        let known = scheduler.dependencies(of: operation)
        if growth.next() % 2 == 0, !known.isEmpty {
            let place = Int(growth.next() % UInt64(known.count))
            drive(.dependencyRemoved(operation, on: known[place].operation))
            if effects.refusals.isEmpty { ledger.met(.dependencyRemoved) }
        } else {
            drive(.dependencyAdded(operation, on: other, condition()))
            if effects.refusals.isEmpty { ledger.met(.dependencyAdded) }
        }
    }

    private mutating func condition() -> DependencyCondition {
        growth.next() % 2 == 0
            ? .unlessFailed : DependencyCondition.allCases[Int(growth.next() % 4)]
    }

    private mutating func retrySome() {
        let cancelled = growth.next() % 2 == 0
        drive(.retryRequested(someGraph(), operations: [], cancelled: cancelled))
        if effects.results.contains(where: { $0.affected > 0 }) { ledger.met(.roundOpened) }
    }

    private mutating func suspendForAWhile() {
        let until = moment.wall + .milliseconds(1 + Int64(growth.next() % 20_000))
        let target: Scheduler.Target =
            switch growth.next() % 3 {
            case 0: .queue("a")
            case 1: .graph(someGraph())
            case _: someOperation().map { .operation($0) } ?? .queue("b")
            }
        drive(.suspensionRequested(target, Suspension(by: "test", until: until)))
        ledger.met(.suspendedUntil)
    }

    private mutating func cancelSome() {
        drive(.cancelRequested(.graph(someGraph()), reason: "test", cascade: false))
        ledger.met(.graphCancelled)
    }

    /// One to three operations that wait for one another and for what is there.
    private mutating func piece() -> CompiledGraph {
        var generator = GraphGenerator(seed: growth.next())
        let count = 1 + Int(growth.next() % 3)
        let topology = generator.scattered(operations: count, degree: 1)
        var policies: [OperationPolicy] = []
        var outer: [OuterDependency] = []
        for index in 0..<UInt32(count) {
            var policy = OperationPolicy()
            policy.queue = UInt32(growth.next() % 2)
            policy.kind = UInt32(growth.next() % 2)
            policy.retry = RetryPolicy(limit: scenario.retryLimit, delay: .milliseconds(100))
            if scenario.usesKeys, growth.next() % 4 == 0 { policy.keys = [0] }
            scenario.drawExternal(&policy, from: &outside)
            scenario.drawDemand(&policy, from: &demands)
            policies.append(policy)
            var others: Set<OperationID> = []
            for _ in 0..<[0, 1, 1, 2, 3][Int(growth.next() % 5)] {
                guard let other = someOperation(), others.insert(other).inserted else { continue }
                let on = Dependency(operation: other, condition: condition())
                outer.append(OuterDependency(of: index, on: on))
            }
        }
        var graph = CompiledGraph(
            name: "simulated",
            topology: topology,
            queues: [QueueSettings(name: "a"), QueueSettings(name: "b")],
            kinds: SimulatorScenario.graphKinds,
            keys: ["key"],
            policies: policies,
            policy: (0..<UInt32(count)).map { $0 },
            rank: Array(repeating: 0, count: count)
        )
        graph.outer = outer
        graph.demands = SimulatorScenario.demands
        return graph
    }

    /// Tells the ledger what is there once its record is kept.
    mutating func expect(_ contents: [StoredContents], of event: Scheduler.Event) {
        guard let contents = contents.first else { return }
        switch event {
        case .graphSubmitted(let graph, _): ledger.expect(graph, contents)
        case .operationsAdded(_, let addition): ledger.expect(addition.graph, contents)
        case _: return
        }
    }

    /// Nobody adds anything any more, and everything that anybody suspended goes on.
    mutating func healGrowth() {
        if scenario.growth.settings > 0 {
            drive(.queueLimitSet(queue: "b", maximum: nil))
        }
        for number in 0..<UInt32(scheduler.graphCount) {
            let graph = GraphID(rawValue: number)
            if scheduler.isOpen(graph) { drive(.graphClosed(graph)) }
            drive(.suspensionRequested(.graph(graph), nil))
            for index in 0..<UInt32(scheduler.operationCount(of: graph)) {
                let operation = OperationID(graph: graph, index: index)
                drive(.suspensionRequested(.operation(operation), nil))
            }
        }
    }
}

/// What the ledger knows of graphs that grew, apart from what the scheduler keeps.
struct GrownLedger {
    struct Member {
        var isLimited = false
        var isKeyed = false
        var isExternal = false
        var timeout: Duration?
        var dependencies: [Dependency] = []
    }

    /// Operations that came together.
    struct Piece {
        let graph: GraphID
        let first: UInt32
        let isOpen: Bool
        /// Of what was added from inside.
        var names: [String] = []
        /// What waits for all of it.
        var group: UInt32?
        var members: [Member] = []
    }

    var members: [OperationID: Member] = [:]
    var open: Set<GraphID> = []
    /// Operations that had another round.
    var reopened: Set<OperationID> = []

    /// Of a dropped graph nobody knows the dependencies any more, and nothing runs in it again.
    mutating func drop(_ graph: GraphID) {
        // The order does not matter: each is changed on its own.
        for operation in Array(members.keys) where operation.graph == graph {
            members[operation]?.dependencies = []
        }
    }

    /// Whether the first waits for the second, directly or not.
    func waits(_ first: OperationID, for second: OperationID) -> Bool {
        var seen: Set<OperationID> = [first]
        var frontier = [first]
        while let next = frontier.popLast() {
            if next == second { return true }
            for dependency in members[next]?.dependencies ?? []
            where seen.insert(dependency.operation).inserted {
                frontier.append(dependency.operation)
            }
        }
        return false
    }
}

extension SimulatorLedger {
    /// What a submission or an addition is made of.
    mutating func expect(
        _ graph: CompiledGraph,
        _ contents: StoredContents,
        named names: [String] = [],
        group: UInt32? = nil
    ) {
        let id = contents.graph
        let first = contents.first
        var piece = GrownLedger.Piece(graph: id, first: first, isOpen: contents.isOpen)
        piece.names = names
        piece.group = group
        for index in 0..<UInt32(graph.topology.operationCount) {
            let policy = graph.policies[Int(graph.policy[Int(index)])]
            var member = GrownLedger.Member()
            member.isLimited = policy.queue == 0
            member.isKeyed = policy.keys.contains { graph.keys[Int($0)] == "key" }
            member.isExternal = graph.kinds[Int(policy.kind)] == Work.externalKind
            member.timeout = policy.timeout
            member.dependencies = graph.topology.dependencies(of: index).map {
                Dependency(
                    operation: OperationID(graph: id, index: first + $0.operation),
                    condition: $0.condition
                )
            }
            member.dependencies += graph.outer.filter { $0.of == index }.map(\.on)
            piece.members.append(member)
        }
        expected.append(piece)
    }

    /// It is kept that this is there.
    private mutating func arrived(
        _ graph: GraphID,
        from first: UInt32,
        by held: HeldAttempt? = nil
    ) {
        guard let piece = expected.first, piece.graph == graph, piece.first == first else {
            return broken("graph \(graph) has operations from \(first) that nobody submitted")
        }
        expected.removeFirst()
        for (index, member) in piece.members.enumerated() {
            let operation = OperationID(graph: graph, index: first + UInt32(index))
            kept.grown.members[operation] = member
        }
        if let group = piece.group { join(piece, to: OperationID(graph: graph, index: group)) }
        if piece.isOpen { kept.grown.open.insert(graph) }
        if let held { adopted(piece, by: held) }
    }

    /// A group waits for all that was added to it.
    private mutating func join(_ piece: GrownLedger.Piece, to group: OperationID) {
        for index in piece.members.indices {
            let operation = OperationID(graph: piece.graph, index: piece.first + UInt32(index))
            if kept.grown.waits(operation, for: group) {
                broken("\(group) waits for \(operation), which waits for it")
            }
            kept.grown.members[group]?.dependencies.append(
                Dependency(operation: operation, condition: .unlessFailed)
            )
        }
        met(.joined)
    }

    func dependencies(of operation: OperationID) -> [Dependency] {
        kept.grown.members[operation]?.dependencies ?? []
    }

    func isLimited(_ operation: OperationID) -> Bool {
        kept.grown.members[operation]?.isLimited ?? false
    }

    func isKeyed(_ operation: OperationID) -> Bool {
        kept.grown.members[operation]?.isKeyed ?? false
    }

    /// Follows what changes graphs.
    mutating func grow(by record: StoreRecord) {
        switch record {
        case .graphAdded(let graph): arrived(graph, from: 0)
        case .operationsAdded(let graph, let first, let held):
            arrived(graph, from: first, by: held)
        case .graphClosed(let graph): kept.grown.open.remove(graph)
        case .dependencyAdded(let operation, let other, let condition):
            if kept.grown.waits(other, for: operation) {
                broken("\(operation) waits for \(other), which waits for it")
            }
            kept.grown.members[operation]?.dependencies.append(
                Dependency(operation: other, condition: condition)
            )
        case .dependencyRemoved(let operation, let other):
            kept.grown.members[operation]?.dependencies.removeAll { $0.operation == other }
        case .granted(_, let operation, _, _):
            // Whoever is granted has been released by what the latest rounds left.
            for dependency in dependencies(of: operation) {
                checkReleased(operation, by: dependency, "was granted")
            }
        case .started, .resumed, .attemptEnded, .finished, .rangeFinished, .retryScheduled,
            .delayed, .deadlinePassed, .cancelled, .suspended, .queueDefined,
            .queueLimit, .queuePriority, .priority, .keyLimit, .rateSet, .rateUsed, .queueReset,
            .keyReset, .reopened, .trigger:
            return
        }
    }

    mutating func checkReleased(
        _ operation: OperationID,
        by dependency: Dependency,
        _ what: String
    ) {
        guard let outcome = kept.finished[dependency.operation] else {
            broken("\(operation) \(what) before \(dependency.operation) finished")
            return
        }
        if !dependency.condition.isSatisfied(by: outcome.kind) {
            broken("\(operation) \(what) although \(dependency.operation) \(outcome)")
        }
    }
}
