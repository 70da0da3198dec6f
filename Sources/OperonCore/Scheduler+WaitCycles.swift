import DequeModule
package import OperonModel

// Cycles of operations that wait for each other: by their dependencies, by what they wait for as
// they run, or by the holders of keys that they need.
extension Scheduler {
    /// How one of some operations cannot finish before another one does: a path on which each
    /// operation waits for the next, both ends included; `nil`: there is none. Iterative,
    /// O(operations + edges) of the smaller of two sides: what they wait for, and what waits for
    /// the other.
    ///
    /// Every holder of a key counts, whether or not the key has room for another, so that a holder
    /// never waits for an operation that needs the key. Only an operation that begins to wait
    /// closes a cycle, or a dependency that is added; an operation that takes a key does not wait
    /// for anything yet.
    package func waitPath(from starts: [OperationID], to end: OperationID) -> [OperationID]? {
        path(from: starts, to: end, along: .waits).path
    }

    /// How one operation waits for another one by dependencies alone.
    func path(from start: OperationID, to end: OperationID) -> [OperationID]? {
        path(from: [start], to: end, along: .dependencies).path
    }

    private func path(
        from starts: [OperationID],
        to end: OperationID,
        along edges: WaitSearch.Edges
    ) -> (path: [OperationID]?, visits: Int) {
        var search = WaitSearch(from: starts, to: end, along: edges)
        guard case .path(let path) = search.run(in: self, visitsMax: .max) else {
            return (nil, search.visitCount)
        }
        return (path, search.visitCount)
    }

    /// The cycle that adding the dependency would close.
    mutating func cycle(adding dependency: OperationID, of operation: OperationID) -> [OperationID]?
    {
        cycle(adding: [dependency], of: operation)
    }

    /// The cycle that adding dependencies, or operations that depend on these, would close.
    mutating func cycle(
        adding dependencies: [OperationID],
        of operation: OperationID
    ) -> [OperationID]? {
        guard !dependencies.isEmpty else { return nil }
        var (found, visits) = path(from: dependencies, to: operation, along: .dependencies)
        visitCount += visits
        // Nor by what running operations wait for.
        guard found == nil, !waits.isEmpty else { return found }
        (found, visits) = path(from: dependencies, to: operation, along: .waits)
        visitCount += visits
        return found
    }

    // MARK: - New waits

    /// Continues a search for the visits of one event, and returns its result.
    mutating func lead(_ search: inout WaitSearch) -> WaitSearch.Result {
        let before = search.visitCount
        let result = search.run(in: self, visitsMax: configuration.searchVisitsMax)
        visitCount += search.visitCount - before
        return result
    }

    /// Continues the oldest search that was undecided when its operation began to wait. An
    /// operation that is found in a cycle is refused its wait, and goes on.
    mutating func continueSearches(into effects: inout Effects) {
        guard var search = searches.popFirst() else { return }
        switch lead(&search) {
        case .undecided: searches.prepend(search)
        case .none: break
        case .path(let path):
            guard isCurrent(path, for: search.end) else {
                // The path was found in part in an earlier event, and no longer exists.
                let wait = waits[search.end]
                let awaited = (wait?.awaited ?? []).filter { outcomeKind(of: $0) == nil }
                searches.append(WaitSearch(from: awaited, to: search.end, along: .waits))
                return
            }
            refuse(search.end, path, into: &effects)
        }
    }

    /// Whether the path still exists. Operations on it may have finished since they were found. A
    /// wait also ends, with both operations unfinished, when a key is given back or a dependency is
    /// removed.
    private func isCurrent(_ path: [OperationID], for operation: OperationID) -> Bool {
        guard let first = path.first, waits[operation]?.unfinished.contains(first) == true,
            path.allSatisfy({ outcomeKind(of: $0) == nil })
        else { return false }
        return zip(path, path.dropFirst()).allSatisfy { waiting, blocking in
            var isBlocked = false
            forEachBlocker(of: waiting, .waits) { if $0 == blocking { isBlocked = true } }
            return isBlocked
        }
    }

    private mutating func refuse(
        _ operation: OperationID,
        _ path: [OperationID],
        into effects: inout Effects
    ) {
        answerWait(
            operation,
            with: .refused(.waitCycle(operation, path)),
            hasRoom: false,
            into: &effects
        )
    }

    // MARK: - Cycles that could not be refused

    /// Reopening an operation may close a cycle that could not be refused beforehand. So may
    /// lowering the limit of a key, and an operation that returns to its lane. Every such cycle
    /// leads through one of the operations in `suspects`. Of the operations in the cycle that wait
    /// while running, the one with the lowest number is refused its wait and goes on. A key with
    /// room blocks nothing.
    mutating func breakCycles(into effects: inout Effects) {
        guard !suspects.isEmpty else { return }
        let suspected = suspects
        suspects.removeAll(keepingCapacity: true)
        guard !waits.isEmpty, configuration.violation != .allowsWaitCycles else { return }
        while let cycle = cycle(through: suspected) {
            let waiting = cycle.indices.filter { waits[cycle[$0]] != nil }
            // Dependencies alone close a cycle only where a rule was broken on purpose.
            guard let place = waiting.min(by: { cycle[$0] < cycle[$1] }) else { return }
            let path = Array(cycle[(place + 1)...] + cycle[...place])
            refuse(cycle[place], path, into: &effects)
        }
    }

    /// Operations that can be reached from these and wait for each other in a cycle, each for the
    /// next; `nil`: there are none. Iterative, O(operations + edges) of what these wait for.
    private mutating func cycle(through suspected: [OperationID]) -> [OperationID]? {
        var done: Set<OperationID> = []
        var place: [OperationID: Int] = [:]
        var path: [(operation: OperationID, blockers: [OperationID])] = []
        func blockers(of operation: OperationID) -> [OperationID] {
            var blockers: [OperationID] = []
            forEachBlocker(of: operation, .waits, onlyFull: true) { blocker in
                if outcomeKind(of: blocker) == nil { blockers.append(blocker) }
            }
            return blockers
        }
        for start in suspected where outcomeKind(of: start) == nil && !done.contains(start) {
            path.append((start, blockers(of: start)))
            place[start] = 0
            while let last = path.last {
                guard let next = path[path.count - 1].blockers.popLast() else {
                    place[last.operation] = nil
                    done.insert(last.operation)
                    path.removeLast()
                    continue
                }
                visitCount += 1
                if let first = place[next] { return path[first...].map(\.operation) }
                guard !done.contains(next) else { continue }
                place[next] = path.count
                path.append((next, blockers(of: next)))
            }
        }
        return nil
    }
}
