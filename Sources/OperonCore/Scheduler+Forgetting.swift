import HeapModule
package import OperonModel

// Dropping finished graphs at the end of their retention: of each only its number and the outcomes
// of its operations stay, for dependencies on them that are added later.
extension Scheduler {
    /// Whether the graph was dropped: only the outcomes of its operations are kept.
    package func isGone(_ graph: GraphID) -> Bool {
        exists(graph) && graphs.isDropped(graph)
    }

    /// How many graphs there is room for: the most that were kept at any one time.
    package var graphPlaceCount: Int { graphs.placeCount }

    /// The number of timers and of entries in lanes, including entries of dropped graphs.
    package var lineCount: Int { entryCount }

    /// O(operations and dependencies of these graphs), on average.
    mutating func forget(_ ids: [GraphID]) {
        var hasForgotten = false
        for id in ids where isForgettable(id) {
            let graph = graphs[id]
            var outcomes = OutcomeRuns()
            for case .some(let outcome) in graph.operations.outcome.all { outcomes.append(outcome) }
            if configuration.violation == .forgetsOutcomes { outcomes = OutcomeRuns() }
            graphs.drop(id, outcomes)
            disconnect(graph, id)
            releaseNames(of: graph)
            goneSinceSweep += Int(graph.operations.count) + 1
            visitCount += Int(graph.operations.count)
            hasForgotten = true
        }
        guard hasForgotten, goneSinceSweep > sweepAfter else { return }
        sweepAfter = countedEntries()
        if goneSinceSweep > sweepAfter { sweep() }
    }

    /// Whether a graph is finished and no unfinished graph depends on it. The store decides
    /// likewise.
    private mutating func isForgettable(_ id: GraphID) -> Bool {
        guard exists(id), !isGone(id), isFinished(id) else { return false }
        let lists = graphs[id].outerDependents
        visitCount += lists.values.reduce(0) { $0 + $1.all.count }
        // The order does not affect whether all of them are finished.
        return lists.values.allSatisfy { dependents in
            dependents.all.allSatisfy { isFinished($0.operation.graph) }
        }
    }

    /// Removes a dropped graph from the lists of dependents of other graphs.
    private mutating func disconnect(_ gone: GraphState, _ id: GraphID) {
        // All entries of a list at once, because compacting a list removes all of them.
        var counts: [OperationID: Int] = [:]
        for dependencies in gone.outer.values {
            for dependency in dependencies where dependency.operation.graph != id {
                counts[dependency.operation, default: 0] += 1
            }
        }
        for operation in counts.keys.sorted() {
            let count = counts[operation] ?? 0
            let other = operation.graph
            // Removed from the table meanwhile, so that the list is changed in place.
            guard
                var dependents = graphs[other].outerDependents.removeValue(forKey: operation.index)
            else { continue }
            visitCount += dependents.lose(count) { isGone($0) }
            if !dependents.isEmpty { graphs[other].outerDependents[operation.index] = dependents }
        }
    }

    // MARK: - Leftover entries

    /// The number of timers and of entries in lanes, of every graph.
    private var entryCount: Int {
        deadlines.count + dates.count + ready.entryCount
            + keys.reduce(0) { $0 + $1.parked.reduce(0) { $0 + $1.heap.count } }
    }

    private mutating func countedEntries() -> Int {
        visitCount += ready.indices.count + keys.count
        return entryCount
    }

    /// Removes timers and lane entries of dropped graphs, which are otherwise skipped when they
    /// come up. It runs when as many operations were dropped as there are entries, so it takes a
    /// constant number of steps for each dropped operation.
    private mutating func sweep() {
        visitCount += entryCount
        goneSinceSweep = 0
        sweepAfter = 0
        deadlines = Heap(deadlines.unordered.filter { !isGone($0.kind) })
        dates = Heap(dates.unordered.filter { !isGone($0.kind) })
        let graphs = graphs
        ready.removeEntries { graphs.isDropped($0.graph) }
        for key in keys.indices where !keys[key].parked.isEmpty {
            for place in keys[key].parked.indices {
                let waiting = keys[key].parked[place].heap.unordered
                keys[key].parked[place].heap = Heap(waiting.filter { !isGone($0.operation.graph) })
            }
            keys[key].parked.removeAll { $0.heap.isEmpty }
        }
    }

    /// Whether the timer belongs to a dropped graph.
    func isGone(_ kind: Deadline.Kind) -> Bool {
        switch kind {
        case .lease, .probe, .patience, .rate: false
        case .release(let operation), .deadline(let operation), .timeout(let operation, _):
            isGone(operation.graph)
        case .resume(.operation(let operation), _): isGone(operation.graph)
        case .resume(.graph(let graph), _), .idle(let graph): isGone(graph)
        case .resume(.queue, _): false
        }
    }

    /// Checks that each list of dependents counts its entries of dropped graphs correctly.
    func violatedInvariantOfGone() -> String? {
        for id in graphs.kept {
            for dependents in graphs[id].outerDependents.values {
                let gone = dependents.all.count { isGone($0.operation.graph) }
                guard gone == dependents.goneCount else {
                    return "graph \(id) counts \(dependents.goneCount) dependents of dropped "
                        + "graphs of \(gone)"
                }
            }
        }
        return nil
    }
}
