package import OperonModel

// Dependencies, in one graph and across graphs, and how they change while an operation waits.
extension Scheduler {
    /// The dependencies in the order in which they were listed. Operations that were added to a
    /// group, dependencies on other graphs, and those that were added one by one, come after the
    /// others.
    package func dependencies(of operation: OperationID) -> [Dependency] {
        var dependencies: [Dependency] = []
        forEachDependency(of: operation) {
            dependencies.append(Dependency(operation: $0, condition: $1))
        }
        return dependencies
    }

    /// The first of its dependencies, in the same order, and how many more there are.
    package func dependencies(
        of operation: OperationID,
        atMost maximum: Int
    ) -> (dependencies: [Dependency], more: Int) {
        var dependencies: [Dependency] = []
        var more = 0
        forEachDependency(of: operation) {
            if dependencies.count < maximum {
                dependencies.append(Dependency(operation: $0, condition: $1))
            } else {
                more += 1
            }
        }
        return (dependencies, more)
    }

    @inline(__always)
    func forEachDependency(
        of operation: OperationID,
        _ body: (OperationID, DependencyCondition) -> Void
    ) {
        // Of a dropped operation nothing but its outcome is known.
        guard Int(operation.index) < graphs[operation.graph].compiled.topology.operationCount else {
            return
        }
        for edge in graphs[operation.graph].compiled.topology.dependencies(of: operation.index)
        where !edge.isRemoved {
            body(OperationID(graph: operation.graph, index: edge.operation), edge.condition)
        }
        if !graphs[operation.graph].joined.isEmpty {
            for range in graphs[operation.graph].joined[operation.index]?.ranges ?? [] {
                for index in range {
                    body(OperationID(graph: operation.graph, index: index), .unlessFailed)
                }
            }
        }
        guard !graphs[operation.graph].outer.isEmpty else { return }
        for dependency in graphs[operation.graph].outer[operation.index] ?? [] {
            body(dependency.operation, dependency.condition)
        }
    }

    @inline(__always)
    func forEachDependent(
        of operation: OperationID,
        _ body: (OperationID, DependencyCondition) -> Void
    ) {
        for edge in graphs[operation.graph].compiled.topology.dependents(of: operation.index)
        where !edge.isRemoved {
            body(OperationID(graph: operation.graph, index: edge.operation), edge.condition)
        }
        if !graphs[operation.graph].compiled.topology.added.isEmpty {
            for edge in graphs[operation.graph].compiled.topology.addedDependents(
                of: operation.index
            )
            where !edge.isRemoved {
                body(OperationID(graph: operation.graph, index: edge.operation), edge.condition)
            }
        }
        guard !graphs[operation.graph].outerDependents.isEmpty else { return }
        for dependent in graphs[operation.graph].outerDependents[operation.index]?.all ?? []
        where !isGone(dependent.operation.graph) {
            body(dependent.operation, dependent.condition)
        }
    }

    /// Connects dependencies on other graphs; with `isOwnToo`, also those on the same graph.
    mutating func connect(
        _ outer: [OuterDependency],
        of id: GraphID,
        from first: UInt32,
        isOwnToo: Bool = true
    ) {
        for one in outer where isOwnToo || one.on.operation.graph != id {
            connect(OperationID(graph: id, index: first + one.of), one.on)
        }
        guard isOwnToo else { return }
        // Counts after all are connected, because an operation may have more than one of them.
        var last: UInt32?
        for one in outer where last != one.of {
            let operation = OperationID(graph: id, index: first + one.of)
            countDependencies(of: operation)
            noteDoomed(operation)
            last = one.of
        }
    }

    mutating func connect(_ operation: OperationID, _ dependency: Dependency) {
        graphs[operation.graph].outer[operation.index, default: []]
            .append(dependency)
        graphs[operation.graph].outerEdgeCount += 1
        let on = dependency.operation
        // A dropped graph has no list of dependents any more.
        guard !isGone(on.graph) else { return }
        graphs[on.graph].outerDependents[on.index, default: OuterDependents()]
            .append(Dependency(operation: operation, condition: dependency.condition))
    }

    /// Recounts the dependencies that an operation waits for, and whether one of them skips it.
    mutating func countDependencies(of operation: OperationID) {
        let (waiting, isSkipDemanded) = demands(on: operation)
        graphs[waiting: operation] = waiting
        if isSkipDemanded {
            graphs[flags: operation].insert(.skipDemanded)
        } else {
            graphs[flags: operation].remove(.skipDemanded)
        }
    }

    /// The number of dependencies without an outcome, and whether one with an outcome skips the
    /// operation.
    func demands(on operation: OperationID) -> (waiting: UInt32, isSkipDemanded: Bool) {
        var waiting: UInt32 = 0
        var isSkipDemanded = false
        forEachDependency(of: operation) { dependency, condition in
            if configuration.violation == .ignoresOtherGraphs,
                dependency.graph != operation.graph
            {
                return
            }
            guard let outcome = outcomeKind(of: dependency) else {
                waiting += 1
                return
            }
            if !condition.isSatisfied(by: outcome) { isSkipDemanded = true }
        }
        return (waiting, isSkipDemanded)
    }
}

// MARK: - Changing

extension Scheduler {
    mutating func addDependency(
        of operation: OperationID,
        _ dependency: Dependency,
        at now: Moment,
        into effects: inout Effects
    ) {
        if let refusal = refusalToAdd(dependency, of: operation) {
            effects.refusals.append(refusal)
            return
        }
        var known: DependencyCondition?
        forEachDependency(of: operation) {
            if $0 == dependency.operation { known = $1 }
        }
        if let known {
            guard known == dependency.condition else {
                effects.refusals.append(.otherCondition(operation, on: dependency.operation))
                return
            }
            // Adding the same dependency twice is the same as adding it once.
            effects.results.append(result(of: [operation]))
            return
        }
        connect(operation, dependency)
        effects.records.append(
            .dependencyAdded(operation, on: dependency.operation, dependency.condition)
        )
        reconsider(operation, at: now, into: &effects)
        noteDoomed(operation)
        effects.results.append(result(of: [operation]))
    }

    private mutating func refusalToAdd(_ dependency: Dependency, of operation: OperationID)
        -> NumberedRefusal?
    {
        if let refusal = refusalToChange(operation) { return refusal }
        guard isKnown(dependency.operation) else {
            return .unknownOperation(dependency.operation, namedBy: operation)
        }
        let count = edgeCount(of: operation.graph) + 1
        let maximum = configuration.limits.edgesPerGraph
        guard count <= maximum else {
            return .worded(
                .limitExceeded(limit: .edgesPerGraph, value: count, maximum: maximum)
            )
        }
        guard configuration.violation != .allowsCycles else { return nil }
        guard let path = cycle(adding: dependency.operation, of: operation) else { return nil }
        return .dependencyCycle([operation] + path)
    }

    /// Refuses changes to operations that a worker has or that are finished.
    private func refusalToChange(_ operation: OperationID) -> NumberedRefusal? {
        guard exists(operation) else { return unknown(.operation(operation)) }
        switch state(of: operation) {
        case .pending, .ready: return nil
        case .dispatched where configuration.violation == .changesDispatched: return nil
        case .dispatched, .executing: return .alreadyStarted(operation)
        case .finished: return .alreadyFinished(operation)
        }
    }

    mutating func removeDependency(
        of operation: OperationID,
        on dependency: OperationID,
        at now: Moment,
        into effects: inout Effects
    ) {
        if let refusal = refusalToChange(operation) {
            effects.refusals.append(refusal)
            return
        }
        guard disconnect(operation, from: dependency) else {
            effects.refusals.append(.noDependency(operation, on: dependency))
            return
        }
        effects.records.append(.dependencyRemoved(operation, on: dependency))
        reconsider(operation, at: now, into: &effects)
        effects.results.append(result(of: [operation]))
    }

    /// Returns whether the dependency existed.
    @discardableResult
    mutating func disconnect(
        _ operation: OperationID,
        from dependency: OperationID
    ) -> Bool {
        if let place = graphs[operation.graph].outer[operation.index]?.firstIndex(where: {
            $0.operation == dependency
        }) {
            graphs[operation.graph].outer[operation.index]?.remove(at: place)
            graphs[operation.graph].outerEdgeCount -= 1
            if graphs[operation.graph].outer[operation.index]?.isEmpty == true {
                graphs[operation.graph].outer[operation.index] = nil
            }
            let other = dependency.graph
            graphs[other].outerDependents[dependency.index]?.remove(operation)
            if graphs[other].outerDependents[dependency.index]?.isEmpty == true {
                graphs[other].outerDependents[dependency.index] = nil
            }
            return true
        }
        guard operation.graph == dependency.graph else { return false }
        if removeJoined(dependency.index, of: operation) { return true }
        return graphs[operation.graph].compiled.topology.remove(
            dependency.index,
            of: operation.index
        )
    }

    /// The dependencies of an operation changed while no worker has it: it waits, goes on, or is
    /// skipped.
    mutating func reconsider(
        _ operation: OperationID,
        at now: Moment,
        into effects: inout Effects
    ) {
        if waitsAgain(operation, at: now, into: &effects) { return }
        guard state(of: operation) == .pending else { return }
        countDependencies(of: operation)
        guard graphs[waiting: operation] == 0 else { return }
        releaseOrSkip(operation, at: now, into: &effects)
        drainWorklist(at: now, into: &effects)
    }

    /// Whether a ready operation may not run after all because of its present dependencies. It is
    /// then pending again, or skipped.
    mutating func waitsAgain(
        _ operation: OperationID,
        at now: Moment,
        into effects: inout Effects
    ) -> Bool {
        guard state(of: operation) == .ready else { return false }
        let (waiting, isSkipDemanded) = demands(on: operation)
        guard waiting > 0 || isSkipDemanded else { return false }
        if graphs[flags: operation].contains(.delayed) {
            // It waits for a dependency now. Its delay starts again when that is over.
            effects.records.append(.delayed(operation, until: nil))
        }
        takeOutOfLane(operation)
        // A dependency was reopened, and this operation has come back from its worker.
        suspects.append(operation)
        graphs.move(operation, to: .pending)
        countDependencies(of: operation)
        if waiting == 0 {
            releaseOrSkip(operation, at: now, into: &effects)
            drainWorklist(at: now, into: &effects)
        }
        return true
    }
}
