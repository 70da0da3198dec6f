internal import OperonModel

// The outcomes in what a coordinator shows.
extension EndedOperation {
    /// Empty: the event is of another kind, or is incomplete.
    static func all(of event: EventView) -> [EndedOperation] {
        guard event.kind.known == .finished || event.kind.known == .rangeFinished,
            let first = event.operation, let kind = event.outcome
        else { return [] }
        let outcome: Outcome
        switch kind {
        case .succeeded: outcome = .succeeded
        case .failed:
            guard let error = event.error.map({ OperationError($0) }) else { return [] }
            outcome = .failed(error)
        case .cancelled: outcome = .cancelled(reason: event.reason ?? "")
        case .skipped: return []
        }
        let count = event.count ?? 1
        let (end, isOver) = first.index.addingReportingOverflow(count)
        guard !isOver, count <= operationsMax else { return [] }
        return OperationRange(graph: GraphID(rawValue: first.graph), indices: first.index..<end)
            .map { id in
                let output: Payload? = kind == .succeeded ? nil : .empty
                return EndedOperation(id: id, outcome: outcome, output: output)
            }
    }

    /// The most that a coordinator may allow in a graph: see `Limits.operationsPerGraph`.
    private static let operationsMax: UInt32 = 10_000_000

    /// `nil`: the operation has not finished.
    init?(_ view: OperationView) {
        guard let kind = view.outcome else { return nil }
        id = OperationID(graph: GraphID(rawValue: view.graph), index: view.index)
        output = kind == .succeeded ? nil : .empty
        switch kind {
        case .succeeded: outcome = .succeeded
        case .failed:
            guard let error = view.error.map({ OperationError($0) }) else { return nil }
            outcome = .failed(error)
        case .cancelled: outcome = .cancelled(reason: view.reason ?? "")
        case .skipped:
            let cause = view.skippedFor.map {
                OperationID(graph: GraphID(rawValue: $0.graph), index: $0.index)
            }
            outcome = .skipped(cause: cause ?? id)
        }
    }
}
