package import OperonCore
package import OperonModel

/// Random graphs of the shapes that matter: layered, chains, joins, scattered.
package struct GraphGenerator: Sendable {
    package var generator: SeededGenerator

    package init(seed: UInt64) { generator = SeededGenerator(seed: seed) }

    /// Operations in layers of `width`, each with two or three dependencies on the layer before.
    package mutating func layered(operations count: Int, width: Int) -> GraphTopology {
        var offsets: [UInt32] = [0]
        var edges: [Edge] = []
        offsets.reserveCapacity(count + 1)
        edges.reserveCapacity(count * 5 / 2)
        for index in 0..<count {
            let layer = index / width
            if layer > 0 {
                let first = UInt32((layer - 1) * width)
                var targets: [UInt32] = []
                let wanted = 2 + Int(generator.next() & 1)
                for _ in 0..<wanted {
                    let target = first + UInt32(generator.next() % UInt64(width))
                    if !targets.contains(target) { targets.append(target) }
                }
                for target in targets { edges.append(Edge(target, .unlessFailed)) }
            }
            offsets.append(UInt32(edges.count))
        }
        return GraphTopology(dependencyOffsets: offsets, dependencyEdges: edges)
    }

    /// Any acyclic graph: each operation depends on up to `degree` of those before it, by any
    /// condition.
    package mutating func scattered(operations count: Int, degree: Int) -> GraphTopology {
        var offsets: [UInt32] = [0]
        var edges: [Edge] = []
        for index in 0..<count {
            if index > 0 {
                let wanted = Int.random(in: 0...min(degree, index), using: &generator)
                var targets: [UInt32] = []
                for _ in 0..<wanted {
                    let target = UInt32.random(in: 0..<UInt32(index), using: &generator)
                    if !targets.contains(target) { targets.append(target) }
                }
                for target in targets {
                    edges.append(Edge(target, condition()))
                }
            }
            offsets.append(UInt32(edges.count))
        }
        return GraphTopology(dependencyOffsets: offsets, dependencyEdges: edges)
    }

    private mutating func condition() -> DependencyCondition {
        // Mostly the default: a graph of exotic conditions skips nearly everything.
        let draw = generator.next() % 10
        return switch draw {
        case 0: .finished
        case 1: .succeeded
        case 2: .failed
        case _: .unlessFailed
        }
    }

    package mutating func shuffled(_ count: Int) -> [Int] {
        var order = Array(0..<count)
        order.shuffle(using: &generator)
        return order
    }
}

extension CompiledGraph {
    /// A graph of equal operations of one kind in one queue.
    package static func uniform(
        name: String = "graph",
        topology: GraphTopology,
        kind: String = Work.nothingKind,
        queue: QueueSettings = QueueSettings(name: QueueSettings.defaultName),
        policy: OperationPolicy = OperationPolicy()
    ) -> CompiledGraph {
        let count = topology.operationCount
        return CompiledGraph(
            name: name,
            topology: topology,
            queues: [queue],
            kinds: [kind],
            keys: [],
            policies: [policy],
            policy: Array(repeating: 0, count: count),
            rank: Array(repeating: 0, count: count)
        )
    }
}
