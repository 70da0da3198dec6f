package import OperonModel

/// Builds a compiled graph from one operation after the other, without holding all of them at once.
/// For graphs that were compiled before and are known to be valid.
package struct GraphAssembly {
    private let name: String
    private let definedQueueCount: Int
    private let keys: [KeySettings]
    private let order: OperationOrder
    private var compiler: GraphCompiler
    private var offsets: [UInt32] = [0]
    private var edges: [Edge] = []
    private var bytes: [UInt32] = []
    private var hasManyBytes = false
    /// By operation: one more than the number of the operation that named it last.
    private var namedBy: [UInt32]
    /// Operations of other graphs that the last operation depends on. Never iterated.
    private var outer: Set<OperationID> = []

    /// Up to this size the exact number of bytes of an operation does not matter.
    package static let littleBytes = CompiledGraph.littleBytes

    /// - Parameter operationCount: how many there will be.
    package init(
        name: String,
        queues: [QueueSettings],
        keys: [KeySettings] = [],
        order: OperationOrder = .criticalPath,
        operationCount: Int
    ) {
        self.name = name
        self.order = order
        self.keys = keys
        definedQueueCount = queues.count
        compiler = GraphCompiler(limits: Limits())
        compiler.define(queues)
        compiler.policy.reserveCapacity(operationCount)
        offsets.reserveCapacity(operationCount + 1)
        namedBy = Array(repeating: 0, count: operationCount)
    }

    /// The number of the policy that an operation like this one has.
    package mutating func policy(of operation: OperationDescription) -> UInt32 {
        compiler.number(compiler.policyOf(operation))
    }

    /// Appends the next operation.
    ///
    /// - Parameter byteCount: the bytes of its work in a message.
    package mutating func append(policy: UInt32, byteCount: Int) {
        compiler.policy.append(policy)
        offsets.append(UInt32(edges.count))
        bytes.append(CompiledGraph.countedBytes(byteCount))
        hasManyBytes = hasManyBytes || byteCount > CompiledGraph.littleBytes
        outer.removeAll(keepingCapacity: true)
    }

    /// The last operation depends on this one, which may be appended later but must be one of the
    /// graph's. Listed again, it counts once.
    ///
    /// - Returns: Whether it was not listed before.
    package mutating func depend(on number: UInt32, _ condition: DependencyCondition) -> Bool {
        let last = offsets.count - 1
        guard namedBy[Int(number)] != UInt32(last) else { return false }
        namedBy[Int(number)] = UInt32(last)
        edges.append(Edge(number, condition))
        offsets[last] = UInt32(edges.count)
        return true
    }

    /// The last operation depends on an operation of another graph.
    package mutating func depend(on id: OperationID, _ condition: DependencyCondition) {
        guard outer.insert(id).inserted else { return }
        let on = Dependency(operation: id, condition: condition)
        compiler.outer.append(OuterDependency(of: UInt32(compiler.policy.count - 1), on: on))
    }

    /// - Throws: `dependencyCycle` with numbers.
    package consuming func finish() throws(Refusal) -> CompiledGraph {
        precondition(compiler.policy.count == namedBy.count, "as many as were announced")
        let topology = GraphTopology(dependencyOffsets: offsets, dependencyEdges: edges)
        let sorted: [UInt32]
        switch topology.sorted() {
        case .order(let order): sorted = order
        case .cycle(let cycle): throw .dependencyCycle(path: cycle.map { "\($0)" })
        }
        let rank: [UInt64]
        switch order {
        case .submission: rank = [UInt64](repeating: 0, count: compiler.policy.count)
        case .criticalPath:
            let durations = compiler.policies.map { $0.expectedDuration.rankNanoseconds }
            rank = topology.criticalPaths(
                durations: compiler.policy.map { durations[Int($0)] },
                order: sorted
            )
        }
        var compiled = CompiledGraph(
            name: name,
            topology: topology,
            queues: compiler.queues,
            kinds: compiler.kinds.names,
            keys: compiler.keys.names,
            policies: compiler.policies,
            policy: compiler.policy,
            rank: rank
        )
        compiled.definedQueueCount = definedQueueCount
        compiled.outer = compiler.outer
        compiled.demands = compiler.demands
        compiled.keyLimits = keys
        compiled.inFlightLimits = compiler.inFlightLimits
        if hasManyBytes { compiled.bytes = bytes }
        return compiled
    }
}
