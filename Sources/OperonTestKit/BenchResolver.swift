package import OperonCore
package import OperonModel

/// Answers requests of running operations on a test bench: it knows the graphs that the test
/// submitted, and what the test tells it.
package struct BenchResolver: RequestResolver, Sendable {
    /// The submitted graphs, by number.
    package internal(set) var graphs: [GraphDescription] = []
    /// The answers to additions, the first first: the operations, or a refusal.
    package var additions: [Result<[OperationDescription], Refusal>] = []
    /// The operation of the same graph that waits for all that is added; `nil`: none.
    package var group: UInt32?
    /// The outputs that are loaded, by operation.
    package var outputs: [String: Payload] = [:]
    /// Names that it finds, whether or not there are such operations.
    package var strangers: [String: OperationID] = [:]
    /// The requests that the scheduler passed on, by number.
    package private(set) var requests: [UInt64] = []

    /// What was compiled last.
    private var compiled: [OperationDescription] = []

    package init() {}

    /// The operation of this name; the latest graph wins.
    package func find(_ name: String) -> OperationID? {
        if let stranger = strangers[name] { return stranger }
        for (number, graph) in graphs.enumerated().reversed() {
            if let index = graph.operations.firstIndex(where: { $0.name == name }) {
                return OperationID(graph: GraphID(rawValue: UInt32(number)), index: UInt32(index))
            }
        }
        return nil
    }

    package mutating func compile(
        _ request: AdditionRequest,
        of held: HeldAttempt,
        to base: CompiledAddition.Base,
        _ notices: [Scheduler.Notice]
    ) throws(Refusal) -> CompiledAddition? {
        requests.append(request.number)
        let operations = try additions.removeFirst().get()
        let graph = GraphDescription(name: "added", operations: operations)
        compiled = operations
        var addition = try CompiledAddition.compile(graph, to: base, resolve: find)
        addition.group = group
        return addition
    }

    package mutating func added(_ addition: CompiledAddition, by held: HeldAttempt) {
        graphs[Int(held.operation.graph.rawValue)].operations += compiled
    }

    package mutating func awaited(
        _ request: WaitRequest,
        of held: HeldAttempt
    ) throws(Refusal) -> [OperationID] {
        requests.append(request.number)
        return try request.names.map { name throws(Refusal) in
            guard let id = find(name) else { throw .unknownOperation(name: name, namedBy: "") }
            return id
        }
    }

    package mutating func output(
        _ request: ReadRequest,
        of held: HeldAttempt,
        _ notices: [Scheduler.Notice]
    ) throws(Refusal) -> FoundOutput {
        requests.append(request.number)
        guard let id = find(request.name) else {
            throw .unknownOperation(name: request.name, namedBy: "")
        }
        return FoundOutput(id, outputs[request.name].map { .loaded($0) } ?? .notLoaded)
    }
}
