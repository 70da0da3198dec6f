import OperonCore
import OperonModel
import Synchronization

/// The graph of a run. Running operations may add to it.
final class GrowingGraph: Sendable {
    /// The graph as it was submitted.
    let submitted: LoadedGraph
    private let added = Mutex<[OperationDescription]>([])
    private let place = Mutex(Place())

    private struct Place {
        var id = GraphID(rawValue: 0)
        var staying: Set<UInt32> = []
    }

    init(_ graph: LoadedGraph) { submitted = graph }

    /// The graph that the coordinator has of it. Not 0 if the file of a stored run was edited.
    var id: GraphID {
        get { place.withLock { $0.id } }
        set { place.withLock { $0.id = newValue } }
    }

    /// Operations that stay as they succeeded before an edit. What the coordinator does in their
    /// place concerns nobody.
    func stay(_ operations: Set<UInt32>) { place.withLock { $0.staying = operations } }

    /// The notices about this graph, its workers and its coordinator: a store may have graphs that
    /// this one replaces.
    func relevant(_ notices: [Scheduler.Notice]) -> [Scheduler.Notice] {
        let place = place.withLock { $0 }
        guard place.id.rawValue > 0 else { return notices }
        return notices.flatMap { notice -> [Scheduler.Notice] in
            switch notice.subject {
            case .operation(let operation):
                let isOurs = operation.graph == place.id
                return isOurs && !place.staying.contains(operation.index) ? [notice] : []
            case .operations(let operations, let outcome):
                guard operations.graph == place.id else { return [] }
                return operations.filter { !place.staying.contains($0.index) }
                    .map { .finished($0, outcome) }
            case .graph(let graph): return graph == place.id ? [notice] : []
            case nil: return [notice]
            }
        }
    }

    func append(_ operations: [OperationDescription]) {
        added.withLock { $0 += operations }
    }

    var operations: [OperationDescription] {
        let added = added.withLock { $0 }
        return added.isEmpty
            ? submitted.description.operations : submitted.description.operations + added
    }

    func operation(_ index: UInt32) -> OperationDescription {
        let first = submitted.description.operations.count
        guard Int(index) >= first else { return submitted.description.operations[Int(index)] }
        return added.withLock { $0[Int(index) - first] }
    }

    func name(of index: UInt32) -> String { operation(index).name }

    /// The graph with all operations added so far.
    var current: LoadedGraph {
        let operations = operations
        guard operations.count > submitted.description.operations.count else { return submitted }
        var description = submitted.description
        description.operations = operations
        do throws(Refusal) {
            return try Self.loaded(Self.linked(description))
        } catch {
            // With these dependencies it has more than a graph may have.
        }
        do throws(Refusal) {
            return try Self.loaded(description)
        } catch {
            preconditionFailure("each of its parts was found to fit behind the others: \(error)")
        }
    }

    private static func loaded(_ description: GraphDescription) throws(Refusal) -> LoadedGraph {
        LoadedGraph(
            description: description,
            compiled: try CompiledGraph.compile(description)
        )
    }

    /// The same graph, in which elements that were added come after what added them, and before
    /// their group: no description says so.
    private static func linked(_ description: GraphDescription) -> GraphDescription {
        var linked = description
        for group in ElementFolding(description.operations).groups {
            let adding = group.adding.map { description.operations[$0].name }
            for index in group.added.joined() {
                let element = description.operations[index]
                if let adding, !element.dependencies.contains(where: { $0.name == adding }) {
                    linked.operations[index].dependencies.append(
                        DependencyDescription(adding, .finished)
                    )
                }
                linked.operations[group.index].dependencies.append(
                    DependencyDescription(element.name)
                )
            }
        }
        return linked
    }
}

extension Scheduler.Notice {
    fileprivate enum Subject {
        case operation(OperationID)
        case operations(OperationRange, Outcome)
        case graph(GraphID)
    }

    /// `nil`: it is about a worker or the coordinator.
    fileprivate var subject: Subject? {
        switch self {
        case .ready(let operation), .granted(let operation, _, _), .started(let operation, _, _),
            .resumed(let operation, _, _), .yielded(let operation, _),
            .waitEnded(let operation, _, _), .attemptEnded(let operation, _, _, _, _),
            .result(let operation, _, _), .finished(let operation, _), .retry(let operation, _):
            .operation(operation)
        case .log(let chunk): .operation(chunk.held.operation)
        case .progress(let report): .operation(report.held.operation)
        case .rangeFinished(let operations, let outcome): .operations(operations, outcome)
        case .operationsAdded(let graph, _, _), .graphFinished(let graph),
            .graphClosedIdle(let graph):
            .graph(graph)
        case .workerJoined, .workerLost, .workerDraining, .workerBusy, .superseded, .eventRefused,
            .watched:
            nil
        }
    }
}
