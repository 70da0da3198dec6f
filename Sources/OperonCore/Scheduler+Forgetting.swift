import HeapModule
package import OperonModel

// Finished graphs that were kept for long enough: of each only its number and the outcomes of its
// operations stay, for dependencies on them that come later.
extension Scheduler {
    /// Whether nothing is kept of it but the outcomes of its operations.
    package func isGone(_ graph: GraphID) -> Bool {
        exists(graph) && graphs[Int(graph.rawValue)].isGone
    }

    /// O(what waits and what becomes due), for all of them together.
    mutating func forget(_ ids: [GraphID]) {
        var gone: Set<GraphID> = []
        for id in ids where isForgettable(id) {
            disconnect(id)
            let graph = graphs[Int(id.rawValue)]
            var outcomes = OutcomeRuns()
            for case .some(let outcome) in graph.outcome { outcomes.append(outcome) }
            if configuration.violation == .forgetsOutcomes { outcomes = OutcomeRuns() }
            graphs[Int(id.rawValue)] = Self.remains(outcomes)
            gone.insert(id)
        }
        guard !gone.isEmpty else { return }
        // What was left where it did no harm until it came up.
        deadlines = Heap(deadlines.unordered.filter { !$0.kind.isOf(gone) })
        dates = Heap(dates.unordered.filter { !$0.kind.isOf(gone) })
        for lane in lanes.indices {
            lanes[lane].heap = Heap(
                lanes[lane].heap.unordered.filter { !gone.contains($0.operation.graph) }
            )
        }
        for key in keys.indices {
            for place in keys[key].parked.indices {
                let waiting = keys[key].parked[place].heap.unordered
                keys[key].parked[place].heap = Heap(
                    waiting.filter { !gone.contains($0.operation.graph) }
                )
            }
            keys[key].parked.removeAll { $0.heap.isEmpty }
        }
    }

    /// Finished, and needed by nothing that is not: as the store sees it.
    private func isForgettable(_ id: GraphID) -> Bool {
        guard exists(id), !isGone(id), isFinished(id) else { return false }
        // Whether all of them are finished does not depend on their order.
        return graphs[Int(id.rawValue)].outerDependents.values.allSatisfy { dependents in
            dependents.allSatisfy { isFinished($0.operation.graph) }
        }
    }

    /// What it waited for knows of it no more.
    private mutating func disconnect(_ id: GraphID) {
        // Each is taken away by itself: their order does not matter.
        for dependencies in graphs[Int(id.rawValue)].outer.values {
            for dependency in dependencies where dependency.operation.graph != id {
                let other = Int(dependency.operation.graph.rawValue)
                let index = dependency.operation.index
                graphs[other].outerDependents[index]?.removeAll { $0.operation.graph == id }
                if graphs[other].outerDependents[index]?.isEmpty == true {
                    graphs[other].outerDependents[index] = nil
                }
            }
        }
    }

    /// Nothing points into what is gone.
    func violatedInvariantOfGone() -> String? {
        let gone = Set(graphs.indices.filter { graphs[$0].isGone }.map { GraphID($0) })
        guard !gone.isEmpty else { return nil }
        if deadlines.unordered.contains(where: { $0.kind.isOf(gone) })
            || dates.unordered.contains(where: { $0.kind.isOf(gone) })
        {
            return "something becomes due of a graph that is gone"
        }
        let waiting =
            lanes.flatMap(\.heap.unordered)
            + keys.flatMap { $0.parked.flatMap(\.heap.unordered) }
        if let entry = waiting.first(where: { gone.contains($0.operation.graph) }) {
            return "\(entry.operation) waits, and its graph is gone"
        }
        for graph in graphs {
            for dependents in graph.outerDependents.values {
                guard let dependent = dependents.first(where: { gone.contains($0.operation.graph) })
                else { continue }
                return "\(dependent.operation) is told of an outcome, and its graph is gone"
            }
        }
        return nil
    }

    /// What is left of a graph in memory.
    static func remains(_ outcomes: OutcomeRuns) -> GraphState {
        var graph = GraphState(
            compiled: CompiledGraph(
                name: "",
                topology: GraphTopology(dependencyOffsets: [0], dependencyEdges: []),
                queues: [],
                kinds: [],
                keys: [],
                policies: [],
                policy: [],
                rank: []
            ),
            rules: [],
            keys: [],
            submittedAt: Moment(monotonic: .zero, wall: WallTime(nanosecondsSince1970: 0)),
            state: [],
            outcome: [],
            flags: [],
            level: [],
            waiting: [],
            attempt: [],
            ordinal: [],
            retries: [],
            unfinished: 0
        )
        graph.isGone = true
        graph.remains = outcomes
        return graph
    }
}

extension GraphID {
    fileprivate init(_ number: Int) { self.init(rawValue: UInt32(number)) }
}

extension Deadline.Kind {
    fileprivate func isOf(_ graphs: Set<GraphID>) -> Bool {
        switch self {
        case .lease, .probe, .patience: false
        case .release(let operation), .deadline(let operation), .timeout(let operation, _):
            graphs.contains(operation.graph)
        case .resume(.operation(let operation), _): graphs.contains(operation.graph)
        case .resume(.graph(let graph), _), .idle(let graph, _): graphs.contains(graph)
        case .resume(.queue, _): false
        }
    }
}
