package import OperonModel

/// Decides, for all stores, which finished graphs are dropped.
package enum StoreRetention {
    /// The bounds within which finished graphs are kept.
    package struct Bounds: Hashable, Sendable {
        /// Graphs that finished before this time are dropped.
        package var finishedBefore: WallTime?
        /// The number of newest graphs that are kept.
        package var graphs: Int?
        /// A graph is dropped if the newer finished ones have this many operations or more.
        package var operations: Int?
        /// A graph is dropped if the newer finished ones take this many bytes or more. Only for
        /// stores that count bytes.
        package var bytes: Int?

        package init(finishedBefore: WallTime? = nil, graphs: Int? = nil) {
            self.finishedBefore = finishedBefore
            self.graphs = graphs
        }

        /// The bounds of a retention at the time `now`.
        package init(_ retention: Retention, at now: WallTime) {
            finishedBefore = retention.time.map { now + (.zero - $0) }
            graphs = retention.graphs
            operations = retention.operations
            bytes = retention.bytes
        }
    }

    /// The finished graphs that exceed any of the bounds, except those that an unfinished graph
    /// needs.
    ///
    /// - Parameters:
    ///   - graphs: all known graphs, in any order.
    ///   - bytes: the size of a graph; not called if `bounds` has no limit of bytes.
    /// - Returns: the ids in ascending order.
    package static func dropped(
        _ graphs: [GraphEntry],
        beyond bounds: Bounds,
        bytes: (GraphID) -> Int = { _ in 0 }
    ) -> [GraphID] {
        var needed: Set<GraphID> = []
        var finished: [(at: WallTime, id: GraphID, operations: Int)] = []
        for graph in graphs where !graph.isTombstone {
            if let at = graph.finishedAt {
                finished.append((at, graph.id, Int(graph.operationCount)))
            } else {
                needed.formUnion(graph.needs)
            }
        }
        finished.sort { ($0.at, $0.id) > ($1.at, $1.id) }
        var dropped: [GraphID] = []
        var newer = (operations: 0, bytes: 0)
        for (place, graph) in finished.enumerated() {
            let isOld = bounds.finishedBefore.map { graph.at < $0 } ?? false
            let isBeyond =
                bounds.graphs.map { place >= $0 } ?? false
                || bounds.operations.map { newer.operations >= $0 } ?? false
                || bounds.bytes.map { newer.bytes >= $0 } ?? false
            newer.operations += graph.operations
            if bounds.bytes != nil, !isBeyond { newer.bytes += bytes(graph.id) }
            if isOld || isBeyond, !needed.contains(graph.id) { dropped.append(graph.id) }
        }
        return dropped.sorted()
    }
}
