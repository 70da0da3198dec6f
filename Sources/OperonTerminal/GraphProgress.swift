package import OperonModel

/// Where each operation of a graph is, for somebody who watches it from afar: a list that was read
/// once, and the events since.
///
/// Events are about what an operation *is* then, not about how it changed, so an event that the
/// list knows already does no harm, and after a gap the list is simply read again.
package struct GraphProgress: Sendable {
    private var phases: [ProgressPhase?] = []
    private var startedAt: [UInt32: TimeText] = [:]
    /// Operations that have no outcome.
    package private(set) var unfinishedCount = 0

    package init() {}

    /// How many operations are known, all of them from the first on.
    package var count: Int { phases.count }

    /// What a list says of an operation: what changes by it.
    package mutating func listed(_ operation: OperationView) -> Change? {
        // benign: a list tells the outcome of whatever is finished.
        let phase = ProgressPhase(operation.state, operation.outcome ?? .failed)
        return move(operation.index, operation.name, to: phase, duration: nil, detail: "")
    }

    /// What an event says: what changes by it, if it is about an operation of this graph.
    package mutating func apply(_ event: EventView) -> Change? {
        guard let operation = event.operation else { return nil }
        var detail = ""
        let phase: ProgressPhase
        switch event.kind {
        case "ready", "retry", "granted": phase = .ready
        case "reopened": phase = .pending
        case "started":
            startedAt[operation.index] = event.at
            phase = .executing
        case "attemptEnded":
            guard ["returned", "lost", "crashed"].contains(event.ending) else { return nil }
            phase = .ready
        case "finished":
            guard let outcome = event.outcome else { return nil }
            phase = ProgressPhase(.finished, outcome)
            detail = event.error?.message ?? event.reason ?? ""
        default: return nil
        }
        let isStale = self.phase(of: operation.index)?.isFinished == true && !phase.isFinished
        guard !isStale || event.kind == "reopened" else { return nil }
        var duration: Duration?
        if phase.isFinished, phase != .skipped {
            duration = startedAt.removeValue(forKey: operation.index).map {
                event.at.time - $0.time
            }
        }
        return move(operation.index, operation.name, to: phase, duration: duration, detail: detail)
    }

    private func phase(of index: UInt32) -> ProgressPhase? {
        Int(index) < phases.count ? phases[Int(index)] : nil
    }

    private mutating func move(
        _ index: UInt32,
        _ name: String,
        to phase: ProgressPhase,
        duration: Duration?,
        detail: String
    ) -> Change? {
        let old = self.phase(of: index)
        guard old != phase else { return nil }
        while phases.count <= Int(index) { phases.append(nil) }
        phases[Int(index)] = phase
        if old?.isFinished ?? true, !phase.isFinished { unfinishedCount += 1 }
        if old?.isFinished == false, phase.isFinished { unfinishedCount -= 1 }
        return Change(old: old, name: name, new: phase, duration: duration, detail: detail)
    }

    /// What changed; `old` is `nil` for an operation that was not known.
    package struct Change: Hashable, Sendable {
        package let old: ProgressPhase?
        package let name: String
        package let new: ProgressPhase
        package let duration: Duration?
        package let detail: String
    }
}
