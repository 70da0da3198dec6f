import OperonModel

/// Gives each name the next number.
struct NameTable {
    private(set) var names: [String] = []
    private var numbers: [String: UInt32] = [:]

    mutating func number(_ name: String) -> UInt32 {
        if let number = numbers[name] { return number }
        let number = UInt32(names.count)
        names.append(name)
        numbers[name] = number
        return number
    }
}

/// Numbers the names in a description, for a graph or for an addition to one.
struct GraphCompiler {
    let limits: Limits
    var queues: [QueueSettings] = []
    var kinds = NameTable()
    var keys = NameTable()
    /// The limits of the keys that stand for groups.
    private(set) var inFlightLimits: [UInt32: Int] = [:]
    /// The first is nothing.
    var demands = [ResourceDemand()]
    var policies: [OperationPolicy] = []
    var policy: [UInt32] = []
    /// Dependencies among the operations of the description.
    var inner = GraphTopology(dependencyOffsets: [0], dependencyEdges: [])
    /// Dependencies on operations that existed before.
    var outer: [OuterDependency] = []
    /// The number of dependencies of the graph that the description is added to.
    private let edgeCountBefore: Int
    private var queueNumbers: [String: UInt32] = [:]
    private var demandNumbers: [ResourceDemand: UInt32] = [:]
    private var policyNumbers: [OperationPolicy: UInt32] = [:]
    /// The number that a policy got last.
    private var lastPolicy: UInt32?
    private var operationNumbers: [String: UInt32] = [:]

    init(limits: Limits, edgeCountBefore: Int = 0) {
        self.limits = limits
        self.edgeCountBefore = edgeCountBefore
    }

    mutating func number(_ graph: GraphDescription) throws(Refusal) {
        for queue in graph.queues {
            guard queueNumbers.updateValue(UInt32(queues.count), forKey: queue.name) == nil else {
                throw .invalid(field: "queue “\(queue.name)”", why: "it is defined twice")
            }
            queues.append(queue)
        }
        operationNumbers.reserveCapacity(graph.operations.count)
        policy.reserveCapacity(graph.operations.count)
        for (index, operation) in graph.operations.enumerated() {
            guard operationNumbers.updateValue(UInt32(index), forKey: operation.name) == nil else {
                throw .duplicateOperation(name: operation.name)
            }
            policy.append(number(policyOf(operation)))
        }
        try LimitName.queues.check(queues.count, limits.queues)
        try LimitName.kinds.check(kinds.names.count, limits.kinds)
        try LimitName.demands.check(demands.count - 1, limits.demands)
    }

    mutating func policyOf(_ operation: OperationDescription) -> OperationPolicy {
        var policy = OperationPolicy()
        policy.queue = number(queue: operation.queue)
        policy.kind = kinds.number(operation.work.kind)
        policy.priority = operation.priority
        policy.retry = operation.retry
        policy.expectedDuration = operation.rankDuration
        policy.delay = operation.delay
        policy.notBefore = operation.notBefore
        policy.deadline = operation.deadline
        policy.demand = demand(of: operation)
        policy.cancelsSiblings = operation.cancelSiblings
        if operation.work.isExternal { policy.timeout = operation.timeout }
        for key in operation.exclusive {
            let number = keys.number(key)
            if !policy.keys.contains(number) { policy.keys.append(number) }
        }
        if let inFlight = operation.inFlight {
            let number = keys.number(CompiledGraph.groupKey(inFlight.group))
            inFlightLimits[number] = inFlight.limit
            policy.keys.append(number)
        }
        return policy
    }

    private mutating func demand(of operation: OperationDescription) -> UInt32 {
        // Most operations need nothing: they are not hashed.
        if operation.resources.isEmpty, operation.workers.isEmpty, !operation.work.needsSecrets {
            return 0
        }
        let demand = ResourceDemand(operation)
        if let number = demandNumbers[demand] { return number }
        let number = UInt32(demands.count)
        demands.append(demand)
        demandNumbers[demand] = number
        return number
    }

    /// Defines queues. Their names must differ.
    mutating func define(_ settings: [QueueSettings]) {
        for queue in settings {
            queueNumbers[queue.name] = UInt32(queues.count)
            queues.append(queue)
        }
    }

    private mutating func number(queue name: String) -> UInt32 {
        if let number = queueNumbers[name] { return number }
        let number = UInt32(queues.count)
        queues.append(QueueSettings(name: name))
        queueNumbers[name] = number
        return number
    }

    mutating func number(_ policy: OperationPolicy) -> UInt32 {
        // Most operations have the policy of the one before: it is not hashed.
        if let last = lastPolicy, policies[Int(last)] == policy { return last }
        let number = policyNumbers[policy] ?? UInt32(policies.count)
        if number == policies.count {
            policies.append(policy)
            policyNumbers[policy] = number
        }
        lastPolicy = number
        return number
    }

    /// The operation that a dependency names, seen from the graph that is compiled.
    private enum Found {
        case inner(UInt32)
        case outer(OperationID)
    }

    /// Finds the operation that each dependency names: first in the description, then with
    /// `resolve`.
    mutating func connect(
        _ graph: GraphDescription,
        resolve: CompiledGraph.Resolver
    ) throws(Refusal) {
        var offsets: [UInt32] = [0]
        offsets.reserveCapacity(graph.operations.count + 1)
        var edges: [Edge] = []
        for (index, operation) in graph.operations.enumerated() {
            let start = edges.count
            let outerStart = outer.count
            for dependency in operation.dependencies {
                switch try find(dependency, of: operation, resolve: resolve) {
                case .inner(let number):
                    guard Int(number) != index else {
                        throw .dependencyCycle(path: [operation.name, operation.name])
                    }
                    edges.append(Edge(number, dependency.condition))
                case .outer(let id):
                    let on = Dependency(operation: id, condition: dependency.condition)
                    outer.append(OuterDependency(of: UInt32(index), on: on))
                }
            }
            try dropRepeated(&edges, from: start, of: operation)
            try dropRepeatedOuter(from: outerStart, of: operation)
            let edgeCount = edgeCountBefore + edges.count + outer.count
            try LimitName.edgesPerGraph.check(edgeCount, limits.edgesPerGraph)
            offsets.append(UInt32(edges.count))
        }
        inner = GraphTopology(dependencyOffsets: offsets, dependencyEdges: edges)
    }

    private func find(
        _ dependency: DependencyDescription,
        of operation: OperationDescription,
        resolve: CompiledGraph.Resolver
    ) throws(Refusal) -> Found {
        if let number = operationNumbers[dependency.name] { return .inner(number) }
        if let id = dependency.resolvedID ?? resolve(dependency.name) { return .outer(id) }
        throw .unknownOperation(name: dependency.name, namedBy: operation.name)
    }

    /// A dependency that is listed twice counts once, as in Foundation. Listing it with different
    /// conditions is an error.
    private func dropRepeated(
        _ edges: inout [Edge],
        from start: Int,
        of operation: OperationDescription
    ) throws(Refusal) {
        guard !areDistinct(edges[start...]) else { return }
        var conditions: [UInt32: DependencyCondition] = [:]
        var end = start
        for position in start..<edges.count {
            let edge = edges[position]
            switch conditions.updateValue(edge.condition, forKey: edge.operation) {
            case nil:
                edges[end] = edge
                end += 1
            case edge.condition: continue
            case .some:
                let name = operation.dependencies.first {
                    operationNumbers[$0.name] == edge.operation
                }
                throw listedTwice(name?.name ?? "", by: operation)
            }
        }
        edges.removeSubrange(end...)
    }

    /// Whether no two edges lead to the same operation. Checked only for a few edges; for many the
    /// answer is false.
    private func areDistinct(_ edges: ArraySlice<Edge>) -> Bool {
        guard edges.count <= 8 else { return false }
        for place in edges.indices {
            for other in edges.startIndex..<place
            where edges[other].operation == edges[place].operation {
                return false
            }
        }
        return true
    }

    private mutating func dropRepeatedOuter(
        from start: Int,
        of operation: OperationDescription
    ) throws(Refusal) {
        guard outer.count - start > 1 else { return }
        var conditions: [OperationID: DependencyCondition] = [:]
        var end = start
        for position in start..<outer.count {
            let one = outer[position]
            switch conditions.updateValue(one.on.condition, forKey: one.on.operation) {
            case nil:
                outer[end] = one
                end += 1
            case one.on.condition: continue
            case .some:
                let named = operation.dependencies.first { $0.resolvedID == one.on.operation }
                let name = named?.name ?? one.on.operation.description
                throw listedTwice(name, by: operation)
            }
        }
        outer.removeSubrange(end...)
    }

    private func listedTwice(_ name: String, by operation: OperationDescription) -> Refusal {
        .invalid(
            field: "dependencies of “\(operation.name)”",
            why: "“\(name)” is listed with two conditions"
        )
    }
}
