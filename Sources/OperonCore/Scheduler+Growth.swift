package import OperonModel

// Open graphs: adding operations, and when the graphs end.
extension Scheduler {
    /// What an addition to a graph is compiled against.
    ///
    /// - Throws: `graphClosed`, or `invalid` if there is no such graph.
    package func additionBase(of id: GraphID) throws(Refusal) -> CompiledAddition.Base {
        if let refusal = refusalToAdd(to: id) { throw refusal }
        return base(of: id)
    }

    func base(of id: GraphID) -> CompiledAddition.Base {
        CompiledAddition.Base(
            graph: id,
            operationCount: graphs[id].compiled.topology.operationCount,
            edgeCount: edgeCount(of: id)
        )
    }

    /// Whether operations may be added to it.
    package func isOpen(_ graph: GraphID) -> Bool { graphs[graph].isOpen }

    private func refusalToAdd(to id: GraphID) -> Refusal? {
        guard exists(id) else { return noGraph(id) }
        let graph = graphs[id]
        return graph.isOpen ? nil : .graphClosed(name: graph.compiled.name)
    }

    func edgeCount(of id: GraphID) -> Int {
        graphs[id].compiled.topology.edgeCount + graphs[id].outerEdgeCount
            + graphs[id].joinedEdgeCount
    }

    mutating func refuseMissing(_ missing: OuterDependency, into effects: inout Effects) {
        effects.refusals.append(.unknownOperation(missing.on.operation))
    }

    mutating func add(
        _ addition: CompiledAddition,
        to id: GraphID,
        at now: Moment,
        into effects: inout Effects
    ) {
        let closed = refusalToAdd(to: id).map { NumberedRefusal.worded($0) }
        if let refusal = closed ?? refusal(of: addition, to: id) {
            effects.refusals.append(refusal)
            return
        }
        var result = CommandResult()
        result.affected = grow(id, by: addition, at: now, into: &effects)
        effects.results.append(result)
    }

    /// Why an addition does not fit the graph as it is, whoever adds it.
    func refusal(of addition: CompiledAddition, to id: GraphID) -> NumberedRefusal? {
        guard Int(addition.first) == graphs[id].operations.count else {
            let why = "it was added to meanwhile: add again"
            return .worded(.invalid(field: "graph", why: why))
        }
        if let missing = addition.graph.outer.first(where: { !isKnown($0.on.operation) }) {
            return .unknownOperation(missing.on.operation)
        }
        let count = Int(addition.first) + addition.graph.topology.operationCount
        let maximum = configuration.limits.operationsPerGraph
        guard count > maximum else { return refusal(ofDemandsOf: addition, to: id) }
        return .worded(
            .limitExceeded(limit: .operationsPerGraph, value: count, maximum: maximum)
        )
    }

    /// A graph has its limit of demand classes, however many additions name them.
    private func refusal(
        ofDemandsOf addition: CompiledAddition,
        to id: GraphID
    ) -> NumberedRefusal? {
        guard addition.graph.demands.count > 1 else { return nil }
        let known = graphs[id].growth?.demands ?? growth(of: graphs[id]).demands
        let new = addition.graph.demands.count { demand in
            guard !demand.isEmpty else { return false }
            return demands.number(of: demand).map { !known.contains($0) } ?? true
        }
        let count = known.count + new
        let maximum = configuration.limits.demands
        guard count > maximum else { return nil }
        return .worded(.limitExceeded(limit: .demands, value: count, maximum: maximum))
    }

    /// Adds a checked addition of a client or of a running operation. Returns the number of
    /// operations.
    mutating func grow(
        _ id: GraphID,
        by addition: CompiledAddition,
        of held: HeldAttempt? = nil,
        at now: Moment,
        into effects: inout Effects
    ) -> Int {
        let first = addition.first
        let count = Int(first) + addition.graph.topology.operationCount
        effects.operationsAdded(id, first..<UInt32(count), by: held)
        append(addition, to: id)
        defineQueues(of: addition.graph, at: now, into: &effects)
        defineKeys(of: addition.graph, at: now, into: &effects)
        connect(addition.graph.outer, of: id, from: first, isOwnToo: false)
        join(first..<UInt32(count), to: addition.group, of: id)
        armDeadlines(of: id, from: first, at: now)
        for index in first..<UInt32(count) {
            let operation = OperationID(graph: id, index: index)
            countDependencies(of: operation)
            noteDoomed(operation)
        }
        for index in first..<UInt32(count) {
            let operation = OperationID(graph: id, index: index)
            guard graphs[id].operations.state[index] == .pending,
                graphs[id].operations.waiting[index] == 0
            else { continue }
            if let output = addition.carried[index],
                !graphs[flags: operation].contains(.skipDemanded)
            {
                carry(operation, output, at: now, into: &effects)
                continue
            }
            releaseOrSkip(operation, at: now, into: &effects)
            drainWorklist(at: now, into: &effects)
        }
        forgetUnused(addition.graph.queues)
        return count - Int(first)
    }

    /// Ends an operation with what the same one of an earlier form of the graph left. It has an
    /// attempt that nobody ran, because a store keeps an output with its attempt.
    private mutating func carry(
        _ operation: OperationID,
        _ output: Payload,
        at now: Moment,
        into effects: inout Effects
    ) {
        graphs.move(operation, to: .ready)
        graphs[ordinal: operation] += 1
        let attempt = nextAttempt(of: operation)
        effects.granted(attempt, operation, ordinal: graphs[ordinal: operation], to: .nobody)
        effects.started(attempt, operation, at: now.monotonic)
        graphs.move(operation, to: .executing)
        var result = AttemptResult(
            end: .succeeded,
            startedAt: now.monotonic,
            endedAt: now.monotonic,
            output: output
        )
        result.isUpToDate = true
        conclude(
            operation,
            attempt,
            result,
            start: now.monotonic,
            end: now.monotonic,
            at: now,
            into: &effects
        )
    }

    /// Appends pending operations to those of the graph: O(1) for each operation and each edge.
    mutating func append(_ addition: CompiledAddition, to id: GraphID) {
        let added = addition.graph
        let count = added.topology.operationCount
        let rules = rules(of: added)
        let numbers = policyNumbers(of: added, rules, in: id)
        if !added.bytes.isEmpty || !graphs[id].compiled.bytes.isEmpty {
            let missing = Int(addition.first) - graphs[id].compiled.bytes.count
            graphs[id].compiled.bytes.append(contentsOf: repeatElement(0, count: missing))
            graphs[id].compiled.bytes.append(
                contentsOf: added.bytes.isEmpty ? Array(repeating: 0, count: count) : added.bytes
            )
        }
        graphs[id].compiled.policy.append(contentsOf: added.policy.map { numbers[Int($0)] })
        graphs[id].compiled.rank.append(contentsOf: added.rank)
        graphs[id].operations.append(levels: levels(of: added, rules))
        graphs[id].unfinished += count
        countUnfinished(of: added.policy, rules)
        if count > 0 { graphs[id].idleness = nil }
        let (offsets, edges) = edges(of: addition, in: id)
        graphs[id].compiled.topology.append(
            dependencyOffsets: offsets,
            dependencyEdges: edges
        )
    }

    /// The dependencies of an addition on its own graph, with the numbers of that graph.
    private func edges(
        of addition: CompiledAddition,
        in id: GraphID
    ) -> (offsets: [UInt32], edges: [Edge]) {
        let added = addition.graph
        var offsets: [UInt32] = [0]
        var edges: [Edge] = []
        offsets.reserveCapacity(added.topology.operationCount + 1)
        edges.reserveCapacity(added.topology.edgeCount + added.outer.count)
        var outer = added.outer.makeIterator()
        var next = outer.next()
        for index in 0..<UInt32(added.topology.operationCount) {
            for edge in added.topology.dependencies(of: index) {
                edges.append(Edge(addition.first + edge.operation, edge.condition))
            }
            while let one = next, one.of == index {
                if one.on.operation.graph == id {
                    edges.append(Edge(one.on.operation.index, one.on.condition))
                }
                next = outer.next()
            }
            offsets.append(UInt32(edges.count))
        }
        return (offsets, edges)
    }

    /// The graph's number for each policy of an addition. Policies that the graph does not have are
    /// appended.
    private mutating func policyNumbers(
        of added: CompiledGraph,
        _ rules: [PolicyRule],
        in graph: GraphID
    ) -> [UInt32] {
        var growth = graphs[graph].growth.take() ?? self.growth(of: graphs[graph])
        let keys = keyNumbers(of: added, in: graph).map { number in
            if let local = growth.keys[number] { return local }
            let local = UInt32(graphs[graph].keys.count)
            graphs[graph].keys.append(number)
            self.keys[number].users += 1
            growth.keys[number] = local
            return local
        }
        let numbers = zip(added.policies, rules).map { policy, rule in
            var policy = policy
            policy.keys = policy.keys.map { keys[Int($0)] }
            let place = Self.place(policy, rule)
            if let number = growth.policies[place] { return number }
            let number = UInt32(graphs[graph].rules.count)
            graphs[graph].compiled.policies.append(policy)
            graphs[graph].rules.append(rule)
            use(rule)
            growth.policies[place] = number
            if rule.demand > 0 { growth.demands.insert(rule.demand) }
            return number
        }
        graphs[graph].growth = growth
        return numbers
    }

    private func growth(of graph: GraphState) -> GraphGrowth {
        var growth = GraphGrowth()
        growth.demands = Set(graph.rules.map(\.demand).filter { $0 > 0 })
        for (local, number) in graph.keys.enumerated() { growth.keys[number] = UInt32(local) }
        for (number, policy) in graph.compiled.policies.enumerated() {
            growth.policies[Self.place(policy, graph.rules[number])] = UInt32(number)
        }
        return growth
    }

    private static func place(_ policy: OperationPolicy, _ rule: PolicyRule) -> GraphGrowth.Place {
        var policy = policy
        policy.queue = 0
        policy.kind = 0
        policy.demand = 0
        return GraphGrowth.Place(
            policy: policy,
            queue: rule.queue,
            kind: rule.kind,
            demand: rule.demand
        )
    }
}

// MARK: - The end of an open graph

extension Scheduler {
    mutating func closeOnRequest(_ id: GraphID, into effects: inout Effects) {
        if let refusal = refusalToAdd(to: id) {
            effects.refusals.append(.worded(refusal))
            return
        }
        close(id, into: &effects)
        effects.results.append(CommandResult())
    }

    mutating func close(_ id: GraphID, into effects: inout Effects) {
        graphs[id].isOpen = false
        graphs[id].idleness = nil
        effects.records.append(.graphClosed(id))
        if graphs[id].unfinished == 0 { effects.notices.append(.graphFinished(id)) }
    }

    /// Every operation in the graph is finished. So is the graph, unless it is open.
    mutating func hasNothingToDo(
        _ id: GraphID,
        at now: Moment,
        into effects: inout Effects
    ) {
        guard graphs[id].isOpen, configuration.violation != .finishesOpenGraphs
        else {
            effects.notices.append(.graphFinished(id))
            return
        }
        // Nothing more may be added: after a while the graph is closed.
        let end = now.monotonic + configuration.limits.openGraphIdle
        waitIdly(id, Idleness(end: end))
    }

    /// Goes on with an idleness that began in a previous run, for which only the wall clock can
    /// tell how much time has passed. A clock that is behind keeps the graph open for at most the
    /// whole time once more.
    mutating func goOnIdly(_ id: GraphID, since: WallTime, at now: Moment) {
        let idle = configuration.limits.openGraphIdle
        waitIdly(id, Idleness(end: now.monotonic + idle, date: since + idle))
        arm(.idle(id), on: since + idle, at: now)
    }

    private mutating func waitIdly(_ id: GraphID, _ idleness: Idleness) {
        graphs[id].idleness = idleness
        // One timer for each graph, however often it becomes idle before the timer is due.
        guard graphs[id].idleTimer == nil else { return }
        graphs[id].idleTimer = idleness.end
        arm(.idle(id), at: idleness.end)
    }

    mutating func idleDue(_ id: GraphID, at now: Moment, into effects: inout Effects) {
        if let timer = graphs[id].idleTimer, timer <= now.monotonic { graphs[id].idleTimer = nil }
        // benign: operations were added, or the graph was closed, meanwhile.
        guard graphs[id].isOpen, let idleness = graphs[id].idleness else { return }
        guard idleness.isOver(at: now) else {
            // It was busy meanwhile.
            waitIdly(id, idleness)
            return
        }
        effects.notices.append(.graphClosedIdle(id))
        close(id, into: &effects)
    }
}

/// An open graph in which everything is finished waits for additions.
struct Idleness: Sendable {
    /// The graph is closed then at the latest.
    let end: Timestamp
    /// The graph is closed on this date if it became idle in a previous run.
    var date: WallTime?

    func isOver(at now: Moment) -> Bool {
        if let date, date <= now.wall { return true }
        return end <= now.monotonic
    }
}
