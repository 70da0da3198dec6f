import OperonCore
import OperonModel

// Graphs that end as a whole.
extension SimulatorLedger {
    /// Nothing of a cancelled graph is granted, until a part of it is opened again. One that fails
    /// fast is cancelled by its first failure.
    mutating func checkStopped(_ record: StoreRecord) {
        switch record {
        case .cancelled(.graph(let graph), _, _, _): kept.stopped.insert(graph)
        case .finished(let operation, .failed) where operation.graph == failsFast:
            met(.failedFast)
            kept.stopped.insert(operation.graph)
        case .reopened(let operation): kept.stopped.remove(operation.graph)
        case .granted(_, let operation, _, _) where kept.stopped.contains(operation.graph):
            broken("\(operation) was granted after its graph was cancelled")
        case _: return
        }
    }
}
