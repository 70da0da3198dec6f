package import OperonModel

/// One end of a dependency: an operation that another waits for, or, seen from the other end, one
/// that waits for it.
package struct Dependency: Hashable, Sendable {
    package var operation: OperationID
    package var condition: DependencyCondition

    package init(operation: OperationID, condition: DependencyCondition) {
        self.operation = operation
        self.condition = condition
    }
}

/// A dependency on an operation that is not in the same description.
package struct OuterDependency: Hashable, Sendable {
    /// The dependent's number in the description.
    package var of: UInt32
    package var on: Dependency

    package init(of: UInt32, on: Dependency) {
        self.of = of
        self.on = on
    }
}

/// Operations to be added to an open graph, numbered as in `CompiledGraph`. Made from a description
/// that fits after the operations that the graph has.
package struct CompiledAddition: Sendable {
    /// The number of operations that the graph had when this was compiled, which is the number of
    /// the first new operation.
    package let first: UInt32
    /// With numbers of its own. Its dependencies on the graph that it is added to are in `outer`.
    package let graph: CompiledGraph
    /// The operation of the graph that is added to that waits for all of them; `nil`: none.
    package var group: UInt32?
    /// The operations that do not run, with their outputs: an earlier form of the graph has run the
    /// same ones. By their numbers in the graph that is added to.
    package var carried: [UInt32: Payload] = [:]

    package init(first: UInt32, graph: CompiledGraph, group: UInt32? = nil) {
        self.first = first
        self.graph = graph
        self.group = group
    }

    /// An operation that a graph has, and the running operation that added it.
    package struct Known: Sendable {
        package var description: OperationDescription
        /// `nil`: a client added it, or it was submitted with the graph.
        package var parent: UInt32?

        package init(description: OperationDescription, parent: UInt32?) {
            self.description = description
            self.parent = parent
        }
    }

    /// Checks an addition of a running operation. Operations that the graph does not have yet are
    /// compiled; those that this running operation has added before, with the same description, are
    /// left out.
    ///
    /// - Parameters:
    ///   - parent: the operation that adds.
    ///   - group: the operation that waits for all that it adds; `nil`: none.
    ///   - known: finds an operation of the graph by its name.
    ///   - resolve: as for a client's addition.
    /// - Returns: The new operations, and the compiled addition of them; `nil`: nothing is new.
    /// - Throws: `duplicateOperation` for a name that the graph uses for something else, and
    ///   whatever refuses a client's addition.
    package static func compile(
        _ description: GraphDescription,
        addedBy parent: UInt32,
        group: UInt32? = nil,
        to base: Base,
        limits: Limits = Limits(),
        violation: PlantedViolation? = nil,
        known: (String) -> Known?,
        resolve: CompiledGraph.Resolver
    ) throws(Refusal) -> (description: GraphDescription, addition: CompiledAddition)? {
        var new = description
        new.operations = []
        for operation in description.operations {
            guard let found = known(operation.name), violation != .addsAgain else {
                new.operations.append(operation)
                continue
            }
            guard found.parent == parent, found.description == operation else {
                throw .duplicateOperation(name: operation.name)
            }
        }
        guard !new.operations.isEmpty else { return nil }
        var compiled = try compile(new, to: base, limits: limits, resolve: resolve)
        compiled.group = group
        return (new, compiled)
    }

    /// The graph that is added to, as far as an addition needs it.
    package struct Base: Hashable, Sendable {
        package var graph: GraphID
        package var operationCount: Int
        package var edgeCount: Int

        package init(graph: GraphID, operationCount: Int, edgeCount: Int) {
            self.graph = graph
            self.operationCount = operationCount
            self.edgeCount = edgeCount
        }
    }

    /// Checks a description against the graph and numbers it. Nothing is kept of a description that
    /// is refused. Ranks are computed within the addition; operations that exist keep theirs.
    ///
    /// - Parameter resolve: finds an operation of the graph itself or of another graph by the name
    ///   that a dependency uses.
    /// - Throws: `duplicateOperation`, `unknownOperation`, `dependencyCycle`, `invalid` or
    ///   `limitExceeded`.
    package static func compile(
        _ description: GraphDescription,
        to base: Base,
        limits: Limits = Limits(),
        resolve: CompiledGraph.Resolver
    ) throws(Refusal) -> CompiledAddition {
        let count = base.operationCount + description.operations.count
        try LimitName.operationsPerGraph.check(count, limits.operationsPerGraph)
        try CompiledGraph.check(description, limits: limits)
        return try recompile(description, to: base, limits: limits, resolve: resolve)
    }

    /// The same for an addition that was compiled before and stored. It is not checked again
    /// whether it is allowed, because the rules may have been different.
    ///
    /// - Throws: as `compile`, if the description is damaged.
    package static func recompile(
        _ description: GraphDescription,
        to base: Base,
        limits: Limits = Limits(),
        resolve: CompiledGraph.Resolver
    ) throws(Refusal) -> CompiledAddition {
        for operation in description.operations {
            guard resolve(operation.name)?.graph != base.graph else {
                throw .duplicateOperation(name: operation.name)
            }
        }
        var compiler = GraphCompiler(limits: limits, edgeCountBefore: base.edgeCount)
        try compiler.number(description)
        try compiler.connect(description, resolve: resolve)
        var compiled = CompiledGraph(
            name: description.name,
            topology: compiler.inner,
            queues: compiler.queues,
            kinds: compiler.kinds.names,
            keys: compiler.keys.names,
            policies: compiler.policies,
            policy: compiler.policy,
            rank: try CompiledGraph.rank(description, compiler.inner)
        )
        compiled.definedQueueCount = description.queues.count
        compiled.demands = compiler.demands
        compiled.keyLimits = description.keys
        compiled.inFlightLimits = compiler.inFlightLimits
        compiled.outer = compiler.outer
        compiled.bytes = CompiledGraph.bytes(of: description)
        return CompiledAddition(first: UInt32(base.operationCount), graph: compiled)
    }
}
