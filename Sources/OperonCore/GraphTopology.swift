package import OperonModel

/// One end of a dependency, in four bytes: the operation at the other end, and the condition.
package struct Edge: Hashable, Sendable {
    private let bits: UInt32

    /// How many of the 32 bits the condition takes.
    private static let conditionBits: UInt32 = 2

    /// The greatest number stands for no operation.
    static let operationCountMax = Int(UInt32.max >> conditionBits)

    /// Stands where a dependency was removed.
    static let removed = Edge(bits: .max)

    package init(_ operation: UInt32, _ condition: DependencyCondition) {
        bits = operation << Self.conditionBits | Self.bits(of: condition)
    }

    /// The raw value of each condition, as long as `conditionBits` are enough for it. A fifth
    /// condition needs a third bit, which halves `operationCountMax`. No other code depends on the
    /// number of bits.
    private static func bits(of condition: DependencyCondition) -> UInt32 {
        switch condition {
        case .unlessFailed, .finished, .succeeded, .failed: UInt32(condition.rawValue)
        }
    }

    private init(bits: UInt32) { self.bits = bits }

    var isRemoved: Bool { bits == .max }

    package var operation: UInt32 { bits >> Self.conditionBits }

    package var condition: DependencyCondition {
        let rawValue = UInt8(bits & (1 << Self.conditionBits - 1))
        guard let condition = DependencyCondition(rawValue: rawValue) else {
            preconditionFailure("an edge is made from a condition")
        }
        return condition
    }
}

/// The dependencies of a graph as flat tables: the dependencies of each operation in the order in
/// which they were listed, and its dependents in the order of the graph.
///
/// Operations may be appended: see `GraphTopology+Growth.swift`. A topology that never grew has
/// neither added dependents nor removed edges.
package struct GraphTopology: Sendable {
    package internal(set) var operationCount: Int
    var dependencyOffsets: [UInt32]
    var dependencyEdges: [Edge]
    /// Only for the operations of the first tables.
    let dependentOffsets: [UInt32]
    var dependentEdges: [Edge]
    var added = AddedDependents()

    package var edgeCount: Int { dependencyEdges.count }

    /// The dependencies of all operations in one array: those of operation `i` are
    /// `edges[offsets[i]..<offsets[i + 1]]`. Every index must be below `offsets.count - 1`.
    package init(dependencyOffsets offsets: [UInt32], dependencyEdges edges: [Edge]) {
        precondition(!offsets.isEmpty, "offsets end with the number of edges")
        precondition(Int(offsets[offsets.count - 1]) == edges.count, "the last offset is the end")
        operationCount = offsets.count - 1
        precondition(operationCount <= Edge.operationCountMax, "an edge holds 30 bits of index")
        dependencyOffsets = offsets
        dependencyEdges = edges
        (dependentOffsets, dependentEdges) = Self.reversed(offsets, edges)
    }

    package func dependencies(of operation: UInt32) -> ArraySlice<Edge> {
        dependencyEdges[
            Int(dependencyOffsets[Int(operation)])..<Int(dependencyOffsets[Int(operation) + 1])
        ]
    }

    /// The dependents of the first tables; `addedDependents` has the others.
    package func dependents(of operation: UInt32) -> ArraySlice<Edge> {
        // An operation that was appended has only added dependents.
        guard Int(operation) + 1 < dependentOffsets.count else { return [] }
        return dependentEdges[
            Int(dependentOffsets[Int(operation)])..<Int(dependentOffsets[Int(operation) + 1])
        ]
    }

    /// A counting sort by the operation that is waited for, so that dependents keep the order of
    /// the graph.
    private static func reversed(
        _ offsets: [UInt32],
        _ edges: [Edge]
    ) -> (offsets: [UInt32], edges: [Edge]) {
        let count = offsets.count - 1
        var ends = [UInt32](repeating: 0, count: count + 1)
        for edge in edges { ends[Int(edge.operation) + 1] += 1 }
        for index in 0..<count { ends[index + 1] += ends[index] }
        let starts = ends
        var reversed = [Edge](repeating: Edge(0, .unlessFailed), count: edges.count)
        for dependent in 0..<count {
            for position in Int(offsets[dependent])..<Int(offsets[dependent + 1]) {
                let edge = edges[position]
                let slot = Int(ends[Int(edge.operation)])
                reversed[slot] = Edge(UInt32(dependent), edge.condition)
                ends[Int(edge.operation)] += 1
            }
        }
        return (starts, reversed)
    }
}

// MARK: - Order

extension GraphTopology {
    /// All operations, each after its dependencies and otherwise in the order of the graph; or one
    /// cycle, in which each operation waits for the next. Iterative, O(operations + edges). Only
    /// for a topology that never grew.
    package func sorted() -> Sorted {
        precondition(added.isEmpty, "a graph is sorted before it is submitted")
        var waiting = [UInt32](repeating: 0, count: operationCount)
        var order: [UInt32] = []
        order.reserveCapacity(operationCount)
        for operation in 0..<UInt32(operationCount) {
            let count = dependencies(of: operation).count
            waiting[Int(operation)] = UInt32(count)
            if count == 0 { order.append(operation) }
        }
        var position = 0
        while position < order.count {
            for edge in dependents(of: order[position]) {
                waiting[Int(edge.operation)] -= 1
                if waiting[Int(edge.operation)] == 0 { order.append(edge.operation) }
            }
            position += 1
        }
        guard order.count < operationCount else { return .order(order) }
        return .cycle(cycle(among: waiting))
    }

    package enum Sorted: Hashable, Sendable {
        case order([UInt32])
        case cycle([UInt32])
    }

    /// Follows unsorted dependencies from the first unsorted operation until one repeats. Each
    /// unsorted operation has an unsorted dependency, so the walk cannot end otherwise.
    private func cycle(among waiting: [UInt32]) -> [UInt32] {
        guard let start = waiting.firstIndex(where: { $0 > 0 }) else { return [] }
        var stepOf = [UInt32](repeating: .max, count: operationCount)
        var path: [UInt32] = []
        var current = UInt32(start)
        while stepOf[Int(current)] == .max {
            stepOf[Int(current)] = UInt32(path.count)
            path.append(current)
            guard
                let next = dependencies(of: current).first(where: {
                    waiting[Int($0.operation)] > 0
                })
            else { break }
            current = next.operation
        }
        return Array(path[Int(stepOf[Int(current)])...])
    }

    /// For each operation the longest sum of durations from its start to the end of the graph, in
    /// the unit of `durations`. `order` comes from `sorted()`.
    package func criticalPaths(durations: [UInt64], order: [UInt32]) -> [UInt64] {
        var paths = [UInt64](repeating: 0, count: operationCount)
        for operation in order.reversed() {
            var longest: UInt64 = 0
            for edge in dependents(of: operation) {
                longest = max(longest, paths[Int(edge.operation)])
            }
            let (sum, overflow) = longest.addingReportingOverflow(durations[Int(operation)])
            paths[Int(operation)] = overflow ? .max : sum
        }
        return paths
    }
}
