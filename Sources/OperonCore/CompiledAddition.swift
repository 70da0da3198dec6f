package import OperonModel

/// What an operation waits for, or, seen from the other end, who waits for it.
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
    /// The number that its dependent has in the description.
    package var of: UInt32
    package var on: Dependency

    package init(of: UInt32, on: Dependency) {
        self.of = of
        self.on = on
    }
}

/// Operations on their way into an open graph, numbered as `CompiledGraph` is; made from a
/// description that was found to fit behind what the graph has.
package struct CompiledAddition: Sendable {
    /// What the graph had when this was compiled: the number that the first operation gets.
    package let first: UInt32
    /// With numbers of its own, and with dependencies on the graph it is added to among `outer`.
    package let graph: CompiledGraph

    package init(first: UInt32, graph: CompiledGraph) {
        self.first = first
        self.graph = graph
    }

    /// An operation that a graph has, and the running operation that added it.
    package struct Known: Sendable {
        package var description: OperationDescription
        /// `nil`: a client did, or it was there from the start.
        package var parent: UInt32?

        package init(description: OperationDescription, parent: UInt32?) {
            self.description = description
            self.parent = parent
        }
    }

    /// Checks what a running operation adds: what of it the graph has not yet is compiled, and
    /// what this operation, as it is described here, has added before is left out.
    ///
    /// - Parameters:
    ///   - parent: the operation that adds.
    ///   - known: finds an operation of the graph by its name.
    ///   - resolve: as for a client's addition.
    /// - Returns: What is new, and how it compiles; `nil`: nothing is.
    /// - Throws: `duplicateOperation` for a name that the graph has for something else, and what
    ///   refuses a client's addition.
    package static func compile(
        _ description: GraphDescription,
        addedBy parent: UInt32,
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
        let compiled = try compile(new, to: base, limits: limits, resolve: resolve)
        return (new, compiled)
    }

    /// What is added to.
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

    /// Checks a description against what is there and numbers it. Nothing is kept of one that is
    /// refused. Ranks are those within the addition: what is there already keeps its own.
    ///
    /// - Parameter resolve: finds an operation of the graph itself or of another one by the name
    ///   that a dependency gives it.
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

    /// The same of what was compiled before and kept: it is not asked again whether it may be, for
    /// the rules may have been others.
    ///
    /// - Throws: as `compile`, of what is damaged.
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
        compiled.keyLimits = description.keys
        compiled.outer = compiler.outer
        compiled.bytes = CompiledGraph.bytes(of: description)
        return CompiledAddition(first: UInt32(base.operationCount), graph: compiled)
    }
}
