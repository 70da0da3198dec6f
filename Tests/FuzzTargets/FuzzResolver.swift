import OperonCore
import OperonModel
import OperonWire

/// Finds what requests of running operations name, as a coordinator does: additions are read from
/// their bytes, and names are those of the requester's graph.
struct FuzzResolver: RequestResolver {
    private struct Key: Hashable {
        let graph: GraphID
        let name: String
    }

    /// Only looked up.
    private var known: [Key: (index: UInt32, known: CompiledAddition.Known)] = [:]
    /// What was compiled last.
    private var compiled: [OperationDescription] = []

    mutating func note(
        _ operations: [OperationDescription],
        from first: UInt32,
        in graph: GraphID,
        by parent: UInt32? = nil
    ) {
        for (offset, operation) in operations.enumerated() {
            known[Key(graph: graph, name: operation.name)] = (
                first + UInt32(offset),
                CompiledAddition.Known(description: operation, parent: parent)
            )
        }
    }

    mutating func compile(
        _ request: AdditionRequest,
        of held: HeldAttempt,
        to base: CompiledAddition.Base,
        _ notices: [Scheduler.Notice]
    ) throws(Refusal) -> CompiledAddition? {
        let graph = held.operation.graph
        let description = try StoreFormat.decodeAddition(request.operations)
        let new = try CompiledAddition.compile(
            description,
            addedBy: held.operation.index,
            to: base
        ) { name in
            known[Key(graph: graph, name: name)]?.known
        } resolve: { name in
            find(name, in: graph)
        }
        compiled = new?.description.operations ?? []
        return new?.addition
    }

    mutating func added(_ addition: CompiledAddition, by held: HeldAttempt) {
        let parent = held.operation.index
        note(compiled, from: addition.first, in: held.operation.graph, by: parent)
    }

    func awaited(
        _ request: WaitRequest,
        of held: HeldAttempt
    ) throws(Refusal) -> [OperationID] {
        try request.names.map { name throws(Refusal) in
            guard let id = find(name, in: held.operation.graph) else {
                throw .unknownOperation(name: name, namedBy: "")
            }
            return id
        }
    }

    func output(
        _ request: ReadRequest,
        of held: HeldAttempt,
        _ notices: [Scheduler.Notice]
    ) throws(Refusal) -> FoundOutput {
        guard let id = find(request.name, in: held.operation.graph) else {
            throw .unknownOperation(name: request.name, namedBy: "")
        }
        return FoundOutput(id, .loaded(Payload(bytes: [1, 2, 3])))
    }

    private func find(_ name: String, in graph: GraphID) -> OperationID? {
        known[Key(graph: graph, name: name)].map { OperationID(graph: graph, index: $0.index) }
    }
}
