import OperonCore
import OperonModel

// Outputs across graphs: operations of one graph may take outputs of another.
extension ContentsTable {
    /// The bytes that a reference takes in a dispatch: an output that is no larger travels itself.
    private static var referenceBytes: Int { 64 }

    /// Registers the operations from this number on as possible consumers of other graphs' outputs.
    mutating func began(_ graph: GraphID, from first: Int = 0) {
        let number = Int(graph.rawValue)
        guard self[number].asksElsewhere else { return }
        for index in first..<self[number].operations.count { retain(for: index, of: number) }
    }

    private mutating func retain(for index: Int, of number: Int) {
        // The order does not matter: each output is counted once.
        for other in self[number].elsewhere(UInt32(index)) {
            self[Int(other.graph.rawValue)].retain(other.index)
        }
    }

    /// Unregisters an operation that has its outcome: it takes no outputs any more.
    mutating func finished(_ operation: OperationID) {
        let number = Int(operation.graph.rawValue)
        self[number].finished(operation.index)
        guard self[number].asksElsewhere else { return }
        for other in self[number].elsewhere(operation.index) {
            self[Int(other.graph.rawValue)].release(other.index)
        }
    }

    /// Registers an operation again whose next round begins: it takes the same outputs as before.
    mutating func reopened(_ operation: OperationID) {
        let number = Int(operation.graph.rawValue)
        self[number].reopened(operation.index)
        retain(for: Int(operation.index), of: number)
    }

    /// The existing operations whose outputs `more` would take, in ascending order. `graph` is the
    /// graph to which `more` is added, if any.
    mutating func wanted(
        by more: [OperationDescription],
        of graph: GraphID?
    ) -> [OperationID] {
        var wanted: Set<OperationID> = []
        if let graph {
            for index in self[Int(graph.rawValue)].wanted(by: more) {
                wanted.insert(OperationID(graph: graph, index: index))
            }
        }
        for operation in more where operation.wantsInputs {
            wanted.formUnion(operation.dependencies.compactMap(\.elsewhere))
        }
        return wanted.sorted()
    }

    /// The data that a worker needs to run an operation.
    mutating func dispatched(_ grant: Scheduler.Grant) -> DispatchedOperation {
        let graph = grant.held.operation.graph
        var (operation, dependencies) = self[Int(graph.rawValue)].dispatched(grant)
        if !dependencies.isEmpty { operation.inputs = inputs(dependencies, of: graph) }
        return operation
    }

    /// The inputs of an operation, as in `dispatched`.
    mutating func inputs(of operation: OperationID) -> [NamedInput] {
        let description = self[Int(operation.graph.rawValue)].operations[Int(operation.index)]
        guard description.wantsInputs else { return [] }
        return inputs(description.dependencies, of: operation.graph)
    }

    /// The outputs of direct dependencies, each dependency once, in the order they are listed. They
    /// travel with the operation up to `inlineInputBytes` in total. Beyond that, references replace
    /// the largest ones, and the worker fetches these outputs.
    private mutating func inputs(
        _ dependencies: [DependencyDescription],
        of graph: GraphID
    ) -> [NamedInput] {
        let limits = self[Int(graph.rawValue)].limits
        var seen: Set<String> = []
        var inputs: [NamedInput] = []
        var sources: [OperationID?] = []
        var bytes = 0
        for dependency in dependencies where seen.insert(dependency.name).inserted {
            let source = source(of: dependency, in: graph)
            let output = source.flatMap { self[Int($0.graph.rawValue)].output(of: $0.index) }
            bytes += output?.bytes.count ?? 0
            var input = NamedInput(name: dependency.name, output: output)
            if output == nil, let source {
                input.isDropped = isDropped(source)
            }
            inputs.append(input)
            sources.append(source)
        }
        guard bytes > limits.inlineInputBytes else { return inputs }
        let largest = inputs.indices.sorted { left, right in
            (inputs[right].byteCount, left) < (inputs[left].byteCount, right)
        }
        for place in largest where inputs[place].byteCount > Self.referenceBytes {
            guard bytes > limits.inlineInputBytes else { break }
            guard let source = sources[place] else { continue }
            bytes -= inputs[place].byteCount
            inputs[place].reference = self[Int(source.graph.rawValue)].reference(to: source)
            inputs[place].output = nil
        }
        return inputs
    }

    private mutating func source(
        of dependency: DependencyDescription,
        in graph: GraphID
    ) -> OperationID? {
        if let elsewhere = dependency.elsewhere { return elsewhere }
        let index = self[Int(graph.rawValue)].number(of: dependency.name)
        return index.map { OperationID(graph: graph, index: $0) }
    }
}
