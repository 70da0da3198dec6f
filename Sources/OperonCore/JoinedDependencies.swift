import OperonModel

/// Operations of its own graph that an operation waits for because running operations added them to
/// its group: eight bytes for each addition, not for each operation.
struct JoinedDependencies: Sendable {
    /// In the order in which they were added.
    private(set) var ranges: [Range<UInt32>] = []
    private(set) var count = 0

    mutating func append(_ range: Range<UInt32>) {
        guard !range.isEmpty else { return }
        count += range.count
        if let last = ranges.last, last.upperBound == range.lowerBound {
            ranges[ranges.count - 1] = last.lowerBound..<range.upperBound
        } else {
            ranges.append(range)
        }
    }

    /// Returns whether it was among them.
    mutating func remove(_ index: UInt32) -> Bool {
        // Numbers only grow, so the ranges are in order.
        var (low, high) = (0, ranges.count)
        while low < high {
            let middle = (low + high) / 2
            if ranges[middle].upperBound <= index { low = middle + 1 } else { high = middle }
        }
        guard low < ranges.count, ranges[low].contains(index) else { return false }
        let place = low
        let range = ranges[place]
        let rest = [range.lowerBound..<index, index + 1..<range.upperBound]
        ranges.replaceSubrange(place...place, with: rest.filter { !$0.isEmpty })
        count -= 1
        return true
    }
}

// The group of operations that a running operation adds: it waits for all of them.
extension Scheduler {
    /// Makes the group of an addition, if it has one, wait for the operations that were appended.
    ///
    /// - Parameter range: The new operations, none of which has an outcome.
    mutating func join(_ range: Range<UInt32>, to group: UInt32?, of id: GraphID) {
        guard let group else { return }
        let edge = Edge(group, .unlessFailed)
        for index in range { graphs[id].compiled.topology.added.append(edge, to: index) }
        graphs[id].joined[group, default: JoinedDependencies()].append(range)
        graphs[id].joinedEdgeCount += range.count
        graphs[id].operations.waiting[group] += UInt32(range.count)
        // If it is to be skipped already, what it would wait for is not needed.
        noteDoomed(OperationID(graph: id, index: group))
    }

    /// Why the operations of an addition cannot become dependencies of its group.
    mutating func refusalToJoin(
        _ addition: CompiledAddition,
        of id: GraphID
    ) -> NumberedRefusal? {
        guard let index = addition.group else { return nil }
        let group = OperationID(graph: id, index: index)
        switch state(of: group) {
        case .pending: break
        case .ready, .dispatched, .executing: return .alreadyStarted(group)
        case .finished: return .alreadyFinished(group)
        }
        let topology = addition.graph.topology
        let new = topology.edgeCount + addition.graph.outer.count + topology.operationCount
        let count = edgeCount(of: id) + new
        let maximum = configuration.limits.edgesPerGraph
        guard count <= maximum else {
            return .worded(.limitExceeded(limit: .edgesPerGraph, value: count, maximum: maximum))
        }
        var seen: Set<OperationID> = []
        let targets = addition.graph.outer.map(\.on.operation).filter { seen.insert($0).inserted }
        return cycle(adding: targets, of: group).map { .dependencyCycle([group] + $0) }
    }

    /// Whether the dependency on an operation that was added to its group was removed.
    mutating func removeJoined(_ dependency: UInt32, of operation: OperationID) -> Bool {
        guard
            graphs[operation.graph].joined[operation.index]?.remove(dependency) == true
        else { return false }
        graphs[operation.graph].joinedEdgeCount -= 1
        graphs[operation.graph].compiled.topology.added.remove(operation.index, of: dependency)
        return true
    }
}
