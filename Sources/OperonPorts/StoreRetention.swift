package import OperonModel

/// Which finished graphs a store drops: decided here for all stores.
package enum StoreRetention {
    /// Those that finished before `before`, and those beyond the newest `count`, but none that an
    /// unfinished graph needs.
    ///
    /// - Parameter graphs: all that are known, in any order.
    /// - Returns: the ids in their order.
    package static func dropped(
        _ graphs: [GraphEntry],
        finishedBefore before: WallTime?,
        keeping count: Int?
    ) -> [GraphID] {
        var needed: Set<GraphID> = []
        var finished: [(at: WallTime, id: GraphID)] = []
        for graph in graphs where !graph.isTombstone {
            if let at = graph.finishedAt {
                finished.append((at, graph.id))
            } else {
                needed.formUnion(graph.needs)
            }
        }
        finished.sort { ($0.at, $0.id) > ($1.at, $1.id) }
        var dropped: [GraphID] = []
        for (place, graph) in finished.enumerated() where !needed.contains(graph.id) {
            let isOld = before.map { graph.at < $0 } ?? false
            let isBeyond = count.map { place >= $0 } ?? false
            if isOld || isBeyond { dropped.append(graph.id) }
        }
        return dropped.sorted()
    }
}
