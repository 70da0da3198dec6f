package import OperonModel

/// The dependencies of a graph by number, and what follows from them: layers and the critical path.
///
/// Everything here takes time and memory linear in operations and dependencies.
package struct GraphShape: Hashable, Sendable {
    /// `edges[offsets[i]..<offsets[i + 1]]` are the operations that operation `i` depends on, each
    /// once.
    private var offsets: [Int]
    private var edges: [Int]
    /// The operations, each after those that it depends on. Those on a cycle, and behind one, which
    /// no valid graph has, come last.
    package let order: [Int]
    /// For each operation, the number of the layer that it is in, from 0: one more than that of its
    /// last dependency.
    package let layers: [Int]

    package var count: Int { offsets.count - 1 }
    package var edgeCount: Int { edges.count }

    /// Dependencies on operations that the graph does not have are left out.
    package init(_ graph: GraphDescription) {
        var numbers: [String: Int] = [:]
        numbers.reserveCapacity(graph.operations.count)
        for (number, operation) in graph.operations.enumerated()
        where numbers[operation.name] == nil {
            numbers[operation.name] = number
        }
        self.init(
            dependencies: graph.operations.map { operation in
                operation.dependencies.compactMap { numbers[$0.name] }
            }
        )
    }

    /// - Parameter dependencies: For each operation, the numbers of those that it depends on.
    package init(dependencies: [[Int]]) {
        var offsets = [0]
        var edges: [Int] = []
        offsets.reserveCapacity(dependencies.count + 1)
        for (number, own) in dependencies.enumerated() {
            var seen: Set<Int> = [number]
            for other in own
            where dependencies.indices.contains(other) && seen.insert(other).inserted {
                edges.append(other)
            }
            offsets.append(edges.count)
        }
        self.offsets = offsets
        self.edges = edges
        (order, layers) = Self.sorted(offsets, edges)
    }

    /// The operations that an operation depends on.
    package func dependencies(of number: Int) -> ArraySlice<Int> {
        edges[offsets[number]..<offsets[number + 1]]
    }

    /// Visits operations when all that they depend on were visited (Kahn, 1962).
    private static func sorted(_ offsets: [Int], _ edges: [Int]) -> (order: [Int], layers: [Int]) {
        let count = offsets.count - 1
        var waiting = (0..<count).map { offsets[$0 + 1] - offsets[$0] }
        var dependentOffsets = [Int](repeating: 0, count: count + 1)
        for other in edges { dependentOffsets[other + 1] += 1 }
        for number in 0..<count { dependentOffsets[number + 1] += dependentOffsets[number] }
        var places = dependentOffsets
        var dependents = [Int](repeating: 0, count: edges.count)
        for number in 0..<count {
            for other in edges[offsets[number]..<offsets[number + 1]] {
                dependents[places[other]] = number
                places[other] += 1
            }
        }
        var layers = [Int](repeating: 0, count: count)
        var order = (0..<count).filter { waiting[$0] == 0 }
        order.reserveCapacity(count)
        var next = 0
        while next < order.count {
            let number = order[next]
            next += 1
            for dependent in dependents[dependentOffsets[number]..<dependentOffsets[number + 1]] {
                layers[dependent] = max(layers[dependent], layers[number] + 1)
                waiting[dependent] -= 1
                if waiting[dependent] == 0 { order.append(dependent) }
            }
        }
        if order.count < count {
            order += (0..<count).filter { waiting[$0] > 0 }
        }
        return (order, layers)
    }

    /// The operations of the longest path by these durations, first to last; empty if none of them
    /// took any time.
    package func criticalPath(durations: [Duration]) -> [Int] {
        var ends = [Duration](repeating: .zero, count: count)
        var before = [Int?](repeating: nil, count: count)
        var last: Int?
        for number in order {
            var start = Duration.zero
            for other in dependencies(of: number) where ends[other] > start {
                start = ends[other]
                before[number] = other
            }
            ends[number] = start + durations[number]
            if ends[number] > last.map({ ends[$0] }) ?? .zero { last = number }
        }
        var path: [Int] = []
        while let number = last {
            path.append(number)
            last = before[number]
        }
        return path.reversed()
    }

    /// For each operation, when the last of those that it depends on ended; `.infinity`: not yet,
    /// or at an unknown time.
    ///
    /// - Parameter ends: When each operation ended; `.infinity`: not yet, or at an unknown time.
    ///   `nil`: when those that it depends on had ended, because it does nothing itself.
    package func readyTimes(ends: [Double?]) -> [Double] {
        var ready = [Double](repeating: 0, count: count)
        for number in order {
            for other in dependencies(of: number) {
                ready[number] = max(ready[number], ends[other] ?? ready[other])
            }
        }
        return ready
    }
}
