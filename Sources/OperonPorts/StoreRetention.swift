package import OperonModel

/// Which finished graphs a store drops: decided here for all stores.
package enum StoreRetention {
    /// Within what finished graphs are kept.
    package struct Bounds: Hashable, Sendable {
        /// What finished before is dropped.
        package var finishedBefore: WallTime?
        /// The newest so many are kept.
        package var graphs: Int?
        /// What has so many operations beyond it, or more, is dropped.
        package var operations: Int?
        /// What has so many bytes beyond it, or more, is dropped; of a store that counts them.
        package var bytes: Int?

        package init(finishedBefore: WallTime? = nil, graphs: Int? = nil) {
            self.finishedBefore = finishedBefore
            self.graphs = graphs
        }

        /// At a moment.
        package init(_ retention: Retention, at now: WallTime) {
            finishedBefore = retention.time.map { now + (.zero - $0) }
            graphs = retention.graphs
            operations = retention.operations
            bytes = retention.bytes
        }
    }

    /// Those that finished before `before`, and those beyond the newest `count`, but none that an
    /// unfinished graph needs.
    ///
    /// - Parameters:
    ///   - graphs: all that are known, in any order.
    ///   - bytes: what a graph takes; not asked without a bound.
    /// - Returns: the ids in their order.
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
