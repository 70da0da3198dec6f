package import OperonModel

/// Tracks the phase of each operation of a graph for a client, from a list that the client read
/// once and the events since then.
///
/// An event states the phase that an operation is in, not how it changed. Applying an event that
/// the list already includes is therefore harmless, and after a gap the list is simply read again.
package struct GraphProgress: Sendable {
    private var phases: [ProgressPhase?] = []
    /// The number of known operations without an outcome.
    package private(set) var unfinishedCount = 0

    package init() {}

    /// One more than the highest index of a known operation.
    package var count: Int { phases.count }

    /// Takes over a listed operation. Returns the change, if there is one.
    package mutating func listed(_ operation: OperationView) -> Change? {
        // benign: a list has the outcome of every finished operation.
        let phase = ProgressPhase(operation.state, operation.outcome ?? .failed)
        let detail = operation.skippedFor.map { "because of “\($0.name)”" } ?? ""
        return move(operation.index, operation.name, to: phase, detail: detail)
    }

    /// Applies an event. Returns the change, if the event concerns an operation of this graph.
    package mutating func apply(_ event: EventView) -> Change? {
        guard let operation = event.operation else { return nil }
        var detail = ""
        let phase: ProgressPhase
        switch event.kind.known {
        case .retry, .granted: phase = .ready
        case .reopened: phase = .pending
        case .started: phase = .executing
        case .attemptEnded:
            guard ["returned", "lost", "crashed"].contains(event.ending) else { return nil }
            phase = .ready
        case .finished:
            guard let outcome = event.outcome else { return nil }
            phase = ProgressPhase(.finished, outcome)
            detail = event.error?.message ?? event.reason ?? ""
            if event.isUpToDate == true { detail = OperationReport.upToDate }
        // It names only the first of them.
        case .rangeFinished: return nil
        case .graphSubmitted, .graphAdded, .graphClosed, .graphFinished, .graphCancelled,
            .suspended, .resumed, .queueSet, .queueCancelled, .priority, .cancelRequested,
            .dependencyAdded,
            .dependencyRemoved, .workerJoined, .workerLost, .workerDraining, .keySet,
            .triggerAdded, .triggerReplaced, .triggerRemoved, .triggerSuspended, .triggerResumed,
            .triggerFired, nil:
            return nil
        }
        let isStale = self.phase(of: operation.index)?.isFinished == true && !phase.isFinished
        guard !isStale || event.kind.known == .reopened else { return nil }
        return move(operation.index, operation.name, to: phase, detail: detail)
    }

    /// The phase of an operation; `nil`: it is unknown.
    package func phase(of index: UInt32) -> ProgressPhase? {
        Int(index) < phases.count ? phases[Int(index)] : nil
    }

    private mutating func move(
        _ index: UInt32,
        _ name: String,
        to phase: ProgressPhase,
        detail: String
    ) -> Change? {
        let old = self.phase(of: index)
        guard old != phase else { return nil }
        while phases.count <= Int(index) { phases.append(nil) }
        phases[Int(index)] = phase
        if old?.isFinished ?? true, !phase.isFinished { unfinishedCount += 1 }
        if old?.isFinished == false, phase.isFinished { unfinishedCount -= 1 }
        return Change(
            index: Int(index),
            old: old,
            name: name,
            new: phase,
            detail: detail
        )
    }

    /// A change of phase; `old` is `nil` for an operation that was unknown. How long it ran is not
    /// known: an event tells when the coordinator learned of a start, which may be late.
    package struct Change: Hashable, Sendable {
        package let index: Int
        package let old: ProgressPhase?
        package let name: String
        package let new: ProgressPhase
        package let detail: String
    }
}
