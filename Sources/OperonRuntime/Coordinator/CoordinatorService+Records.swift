import OperonCore
import OperonModel
import OperonPorts

// What pictures and reports need of all operations of a graph: see `OperationRecord`.
extension CoordinatorService {
    /// What the service itself knows of the operations of a page.
    struct RecordSlice: Sendable {
        var graph: GraphID
        var submittedAt: WallTime
        var now: WallTime
        var operations: KeptOperations
        var range: Range<UInt32>
        /// One for each operation of the range.
        var states: [CountedState] = []
        var dependencies: [[UInt32]] = []
    }

    func recordSlice(
        of graph: GraphID,
        after: UInt32?,
        limit: Int
    ) throws(ClientError) -> RecordSlice {
        guard !catalog.isDropped(graph) else { throw .dropped(graph) }
        let kept = catalog[graph]
        let count = UInt32(kept.operations.count)
        let first = min(after ?? 0, count)
        let end = UInt32(min(Int(first) + limit, Int(count)))
        var slice = RecordSlice(
            graph: graph,
            submittedAt: catalog.submission(of: graph).submittedAt,
            now: time.wall(),
            operations: kept.operations,
            range: first..<end
        )
        for index in slice.range {
            let operation = OperationID(graph: graph, index: index)
            slice.states.append(countedState(of: operation))
            slice.dependencies.append(
                scheduler.dependencies(of: operation).compactMap { edge in
                    edge.operation.graph == graph ? edge.operation.index : nil
                }
            )
        }
        return slice
    }

    /// The states of some operations of a graph, added to those before them.
    ///
    /// - Returns: whether there are more.
    func addStates(
        of graph: GraphID,
        in range: Range<UInt32>,
        to runs: StateRunsView
    ) throws(ClientError) -> (runs: StateRunsView, hasMore: Bool) {
        guard !catalog.isDropped(graph) else { throw .dropped(graph) }
        var runs = runs
        let count = UInt32(catalog[graph].operations.count)
        scheduler.appendStates(of: graph, in: range, to: &runs)
        return (runs, range.upperBound < count)
    }

    private func countedState(of operation: OperationID) -> CountedState {
        CountedState(scheduler.state(of: operation), scheduler.outcomeKind(of: operation))
    }

    /// The names of these workers, in the same order.
    func names(of workers: [Incarnation]) -> [String] { workers.map { name(of: $0) } }
}

extension RecordPage {
    /// - Parameters:
    ///   - attempts: Those of the operations of the slice, in their order.
    ///   - workers: The workers of the attempts, each once, and their names.
    init(
        _ slice: CoordinatorService.RecordSlice,
        attempts: [StoreChanges.Attempt],
        workers: [Incarnation],
        names: [String]
    ) {
        var places: [Incarnation: Int] = [:]
        for (place, worker) in workers.enumerated() { places[worker] = place }
        func seconds(_ time: WallTime) -> Double { (time - slice.submittedAt).seconds }
        var rest = attempts[...]
        let records = slice.range.enumerated().map { place, index in
            let own = rest.prefix { $0.operation.index == index }
            rest = rest.dropFirst(own.count)
            let attempts = own.map { change in
                AttemptRecord(
                    number: change.attempt.ordinal,
                    worker: places[change.attempt.worker],
                    startedAt: change.attempt.startedAt.map(seconds),
                    endedAt: change.attempt.endedAt.map(seconds),
                    ending: change.attempt.ending?.kind.name
                )
            }
            return OperationRecord(
                name: slice.operations.name(of: Int(index)),
                state: slice.states[place],
                dependencies: slice.dependencies[place],
                isNothing: slice.operations.isNothing(Int(index)) ? true : nil,
                attempts: attempts.isEmpty ? nil : attempts
            )
        }
        let end = slice.range.upperBound
        self.init(
            submittedAt: TimeText(slice.submittedAt),
            now: TimeText(slice.now),
            operationCount: slice.operations.count,
            workers: names,
            records: records,
            next: Int(end) < slice.operations.count ? end : nil
        )
    }
}
