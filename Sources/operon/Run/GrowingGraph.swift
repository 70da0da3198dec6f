import NIOConcurrencyHelpers
import OperonCore
import OperonModel

/// The graph of a run. Running operations may add to it.
final class GrowingGraph: Sendable {
    /// The graph as it was submitted.
    let submitted: LoadedGraph
    private let added = NIOLockedValueBox<[OperationDescription]>([])

    init(_ graph: LoadedGraph) { submitted = graph }

    func append(_ operations: [OperationDescription]) {
        added.withLockedValue { $0 += operations }
    }

    var operations: [OperationDescription] {
        let added = added.withLockedValue { $0 }
        return added.isEmpty
            ? submitted.description.operations : submitted.description.operations + added
    }

    func name(of index: UInt32) -> String {
        let first = submitted.description.operations.count
        guard Int(index) >= first else {
            return submitted.description.operations[Int(index)].name
        }
        return added.withLockedValue { $0[Int(index) - first].name }
    }

    /// The graph with all operations added so far.
    var current: LoadedGraph {
        let operations = operations
        guard operations.count > submitted.description.operations.count else { return submitted }
        var description = submitted.description
        description.operations = operations
        do throws(Refusal) {
            let compiled = try CompiledGraph.compile(description)
            return LoadedGraph(description: description, compiled: compiled)
        } catch {
            preconditionFailure("each of its parts was found to fit behind the others: \(error)")
        }
    }
}
