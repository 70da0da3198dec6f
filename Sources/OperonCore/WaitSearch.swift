import OperonModel

/// A search for how one of some operations waits for another one. It starts from both ends and
/// always continues at the cheaper one, so it costs no more than the smaller side: an operation
/// that nothing waits for is found at once to be in no cycle, however much it waits for. The search
/// can be interrupted after any step and continued in a later event.
///
/// An operation in a cycle waits until the cycle is broken, so a search that is continued does not
/// miss the cycle. Operations that begin to wait meanwhile, and may close a cycle with it, get
/// their own searches. A path that was found over more than one event may no longer exist: check
/// it.
struct WaitSearch: Sendable {
    enum Edges: Sendable {
        /// Dependencies, whether or not they are finished.
        case dependencies
        /// Dependencies of operations that are not in flight, what running operations wait for, and
        /// holders of keys, as far as they have not finished.
        case waits
    }

    enum Result: Sendable {
        case undecided
        case none
        /// Each waits for the next, both ends included.
        case path([OperationID])
    }

    /// What is known from one end.
    private struct Side: Sendable {
        /// Operations that were found and not visited yet.
        var open: [OperationID] = []
        /// From which operation each was reached. Never iterated.
        var reachedFrom: [OperationID: OperationID] = [:]
        var visitCount = 0

        mutating func begin(at operation: OperationID) {
            guard reachedFrom.updateValue(operation, forKey: operation) == nil else { return }
            open.append(operation)
        }

        /// Notes an operation. Returns whether it was not found before.
        mutating func find(_ operation: OperationID, from other: OperationID) -> Bool {
            visitCount += 1
            guard reachedFrom[operation] == nil else { return false }
            reachedFrom[operation] = other
            open.append(operation)
            return true
        }

        /// The path from an operation back to the start of this side, both included.
        func trace(_ operation: OperationID) -> [OperationID] {
            var path = [operation]
            while let last = path.last, let before = reachedFrom[last], before != last {
                path.append(before)
            }
            return path
        }
    }

    let edges: Edges
    let end: OperationID
    private let starts: Set<OperationID>
    /// What the starts wait for.
    private var ahead = Side()
    /// What waits for the end; `nil`: not all of it can be found.
    private var behind: Side? = Side()

    init(from operations: [OperationID], to end: OperationID, along edges: Edges) {
        self.edges = edges
        self.end = end
        starts = Set(operations)
        for operation in operations { ahead.begin(at: operation) }
        behind?.begin(at: end)
    }

    /// The number of elements visited so far.
    var visitCount: Int { ahead.visitCount + (behind?.visitCount ?? 0) }

    /// Continues until this many more elements are visited, and finishes the operation it is at.
    mutating func run(in scheduler: Scheduler, visitsMax: Int) -> Result {
        if starts.contains(end) { return .path([end]) }
        let (last, overflow) = visitCount.addingReportingOverflow(visitsMax)
        while overflow || visitCount < last {
            guard let next = ahead.open.last else { return .none }
            guard let other = behind.map(\.open.last) else {
                if let path = lookAhead(of: next, in: scheduler) { return .path(path) }
                continue
            }
            guard let other else { return .none }
            let costAhead = ahead.visitCount + scheduler.blockerCount(of: next, edges)
            // Not bound to a name: a second reference would make each step copy the side.
            let costBehind =
                (behind?.visitCount ?? 0) + scheduler.blockedCount(by: other, edges)
            let path =
                costBehind <= costAhead
                ? lookBehind(other, in: scheduler) : lookAhead(of: next, in: scheduler)
            if let path { return .path(path) }
        }
        return .undecided
    }

    private mutating func lookAhead(
        of operation: OperationID,
        in scheduler: Scheduler
    ) -> [OperationID]? {
        ahead.open.removeLast()
        guard scheduler.counts(operation, edges) else { return nil }
        var isFound = false
        scheduler.forEachBlocker(of: operation, edges) { blocker in
            guard scheduler.counts(blocker, edges), ahead.find(blocker, from: operation) else {
                return
            }
            if blocker == end { isFound = true }
        }
        return isFound ? ahead.trace(end).reversed() : nil
    }

    private mutating func lookBehind(
        _ operation: OperationID,
        in scheduler: Scheduler
    ) -> [OperationID]? {
        guard var side = behind.take() else { return nil }
        side.open.removeLast()
        guard scheduler.counts(operation, edges) else {
            behind = side
            return nil
        }
        var found: OperationID?
        let isWhole = scheduler.forEachBlocked(by: operation, edges) { blocked in
            guard scheduler.counts(blocked, edges), side.find(blocked, from: operation) else {
                return
            }
            if starts.contains(blocked) { found = found ?? blocked }
        }
        if let found { return side.trace(found) }
        if isWhole { behind = side } else { ahead.visitCount += side.visitCount }
        return nil
    }
}

extension Scheduler {
    /// Whether an operation can be part of a path.
    fileprivate func counts(_ operation: OperationID, _ edges: WaitSearch.Edges) -> Bool {
        switch edges {
        case .dependencies: true
        case .waits: outcomeKind(of: operation) == nil
        }
    }

    /// Whether a worker has it or it is an external attempt: it waits only for what it asked for
    /// itself.
    private func isInFlight(_ operation: OperationID) -> Bool {
        graphs[attempt: operation] != AttemptTable.none || externals[operation] != nil
    }

    func forEachBlocker(
        of operation: OperationID,
        _ edges: WaitSearch.Edges,
        onlyFull: Bool = false,
        _ body: (OperationID) -> Void
    ) {
        // Of a dropped operation nothing but its outcome is known.
        guard exists(operation) else { return }
        switch edges {
        case .dependencies: forEachDependency(of: operation) { dependency, _ in body(dependency) }
        case .waits:
            if let wait = waits[operation] {
                for (awaited, outcome) in zip(wait.awaited, wait.outcomes) where outcome == nil {
                    body(awaited)
                }
            }
            guard !isInFlight(operation) else { return }
            forEachDependency(of: operation) { dependency, _ in body(dependency) }
            guard graphs.rule(of: operation).hasKeys else { return }
            for local in graphs.policy(of: operation).keys {
                let key = keys[graphs[operation.graph].keys[Int(local)]]
                guard !onlyFull || !key.hasRoom else { continue }
                for holder in key.holders { body(holder) }
            }
        }
    }

    /// Visits what waits for an operation. Returns whether that is everything: the holder of a key
    /// does not know which operations wait for the key.
    fileprivate func forEachBlocked(
        by operation: OperationID,
        _ edges: WaitSearch.Edges,
        _ body: (OperationID) -> Void
    ) -> Bool {
        guard exists(operation) else { return true }
        switch edges {
        case .dependencies:
            forEachDependent(of: operation) { dependent, _ in body(dependent) }
            return true
        case .waits:
            let holdsKeys =
                isInFlight(operation) && graphs.rule(of: operation).hasKeys
            guard !holdsKeys else { return false }
            for waiter in waiters[operation] ?? [] { body(waiter.operation) }
            forEachDependent(of: operation) { dependent, _ in
                if !isInFlight(dependent) { body(dependent) }
            }
            return true
        }
    }

    /// About how many elements `forEachBlocker` visits.
    fileprivate func blockerCount(of operation: OperationID, _ edges: WaitSearch.Edges) -> Int {
        guard exists(operation) else { return 0 }
        return graphs[operation.graph].compiled.topology.dependencies(of: operation.index).count
            + (graphs[operation.graph].outer[operation.index]?.count ?? 0)
            + (graphs[operation.graph].joined[operation.index]?.count ?? 0)
            + (waits.isEmpty ? 0 : waits[operation]?.awaited.count ?? 0)
    }

    /// About how many elements `forEachBlocked` visits.
    fileprivate func blockedCount(by operation: OperationID, _ edges: WaitSearch.Edges) -> Int {
        guard exists(operation) else { return 0 }
        return graphs[operation.graph].compiled.topology.dependents(of: operation.index).count
            + (graphs[operation.graph].outerDependents[operation.index]?.all.count ?? 0)
            + (waiters.isEmpty ? 0 : waiters[operation]?.count ?? 0)
    }
}
