import OperonCore
import OperonModel
import OperonPorts
import OperonWire

/// The names of the simulated cluster: an operation of a graph is named by its number, and one that
/// a running operation added by its own name.
struct SimulatedResolver: RequestResolver {
    private struct Key: Hashable {
        let graph: GraphID
        let name: String
    }

    /// An addition that the scheduler took.
    struct Accepted {
        let addition: CompiledAddition
        let operations: [OperationDescription]
        let held: HeldAttempt
    }

    private let violation: PlantedViolation?
    /// The operation that waits for all that an operation adds. Only looked up.
    var groups: [OperationID: UInt32] = [:]
    /// Only looked up.
    private var known: [Key: (index: UInt32, known: CompiledAddition.Known)] = [:]
    /// What bodies in the store stand for. Only looked up.
    private var parts: [[UInt8]: (operations: [OperationDescription], parent: UInt32)] = [:]
    /// What was compiled last.
    private var compiled: [OperationDescription] = []
    private var accepted: [Accepted] = []

    init(violation: PlantedViolation?) { self.violation = violation }

    func find(_ name: String, in graph: GraphID) -> OperationID? {
        (known[Key(graph: graph, name: name)]?.index ?? UInt32(name))
            .map { OperationID(graph: graph, index: $0) }
    }

    // MARK: Requests

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
            group: groups[held.operation],
            to: base,
            violation: violation
        ) { name in
            known[Key(graph: graph, name: name)]?.known
        } resolve: { name in
            guard violation == .addsAgain else { return find(name, in: graph) }
            return UInt32(name).map { OperationID(graph: graph, index: $0) }
        }
        compiled = new?.description.operations ?? []
        return new?.addition
    }

    mutating func added(_ addition: CompiledAddition, by held: HeldAttempt) {
        accepted.append(Accepted(addition: addition, operations: compiled, held: held))
        note(compiled, from: addition.first, in: held.operation.graph, by: held.operation.index)
    }

    func awaited(
        _ request: WaitRequest,
        of held: HeldAttempt
    ) throws(Refusal) -> [OperationID] {
        try request.names.map { name throws(Refusal) in
            try found(name, in: held.operation.graph)
        }
    }

    func output(
        _ request: ReadRequest,
        of held: HeldAttempt,
        _ notices: [Scheduler.Notice]
    ) throws(Refusal) -> FoundOutput {
        let id = try found(request.name, in: held.operation.graph)
        return FoundOutput(id, .loaded(Payload(bytes: Simulator.output(of: id))))
    }

    private func found(_ name: String, in graph: GraphID) throws(Refusal) -> OperationID {
        guard let id = find(name, in: graph) else {
            throw .unknownOperation(name: name, namedBy: "")
        }
        return id
    }

    // MARK: What is kept

    mutating func takeAccepted() -> [Accepted] {
        defer { accepted = [] }
        return accepted
    }

    mutating func keep(_ accepted: Accepted, as contents: StoredContents) {
        parts[contents.body] = (accepted.operations, accepted.held.operation.index)
    }

    /// A coordinator knows what its store has.
    mutating func restore(_ state: StoredState) {
        known = [:]
        for graph in state.graphs {
            for contents in graph.contents {
                guard let (operations, parent) = parts[contents.body] else { continue }
                note(operations, from: contents.first, in: contents.graph, by: parent)
            }
        }
    }

    private mutating func note(
        _ operations: [OperationDescription],
        from first: UInt32,
        in graph: GraphID,
        by parent: UInt32
    ) {
        for (offset, operation) in operations.enumerated() {
            known[Key(graph: graph, name: operation.name)] = (
                first + UInt32(offset),
                CompiledAddition.Known(description: operation, parent: parent)
            )
        }
    }
}
