import OperonCore
import OperonModel
import OperonWire

// Outputs across graphs: operations of one graph may take outputs of another.
extension GraphCatalog {
    /// The bytes that a reference takes in a dispatch: an output that is no larger travels itself.
    private static var referenceBytes: Int { 64 }

    /// Adds operations to a graph.
    ///
    /// - Parameters:
    ///   - kept: The same operations as a store keeps them.
    ///   - parent: The running operation that adds them; `nil`: a client does.
    /// - Throws: `WireError` if the bytes cannot be read; then nothing is added.
    mutating func append(
        _ operations: [OperationDescription],
        of kept: StoredContents,
        by parent: UInt32? = nil
    ) throws(WireError) {
        let first = self[kept.graph].operations.count
        try self[kept.graph].append(operations, kept.body, by: parent)
        began(kept.graph, from: first)
    }

    /// Keeps outputs that operations will ask for.
    mutating func keep(_ outputs: [OperationID: Payload]) {
        // The order does not matter: each output is kept on its own.
        for (id, output) in outputs { self[id.graph].keep(output, of: id.index) }
    }

    /// Registers the operations from this number on as possible consumers of other graphs' outputs.
    mutating func began(_ graph: GraphID, from first: Int = 0) {
        guard self[graph].hasOtherInputs else { return }
        for index in first..<self[graph].operations.count {
            retain(for: OperationID(graph: graph, index: UInt32(index)))
        }
    }

    private mutating func retain(for operation: OperationID) {
        // The order does not matter: each output is counted once.
        let inputs = self[operation.graph].otherInputs(of: operation.index)
        for other in inputs.others { self[other.graph].retain(other.index) }
        for group in inputs.otherGroups { self[group.graph].retainElements(of: group.index) }
    }

    /// Unregisters an operation that has its outcome: it takes no outputs any more.
    mutating func finished(_ operation: OperationID, at time: WallTime?) {
        let index = operation.index
        finished(OperationRange(graph: operation.graph, indices: index..<index + 1), at: time)
    }

    /// The same for several operations.
    mutating func finished(_ operations: OperationRange, at time: WallTime?) {
        self[operations.graph].finished(operations.indices, at: time)
        guard self[operations.graph].hasOtherInputs else { return }
        for index in operations.indices {
            let inputs = self[operations.graph].otherInputs(of: index)
            for other in inputs.others { self[other.graph].release(other.index) }
            for group in inputs.otherGroups { self[group.graph].releaseElements(of: group.index) }
        }
    }

    /// Registers an operation again whose next round begins: it takes the same outputs as before.
    mutating func reopened(_ operation: OperationID) {
        self[operation.graph].reopened(operation.index)
        retain(for: operation)
    }

    /// The existing operations whose outputs `more` would take, in ascending order. `graph` is the
    /// graph to which `more` is added, if any.
    mutating func wanted(
        by more: [OperationDescription],
        of graph: GraphID?
    ) -> [OperationID] {
        var wanted: Set<OperationID> = []
        if let graph {
            for index in self[graph].wanted(by: more) {
                wanted.insert(OperationID(graph: graph, index: index))
            }
        }
        var groups: Set<OperationID> = []
        for operation in more where operation.wantsInputs {
            for dependency in operation.dependencies {
                guard let other = dependency.resolvedID else { continue }
                wanted.insert(other)
                if dependency.takesElements { groups.insert(other) }
            }
        }
        // The order does not matter: each is added once.
        for group in groups {
            for index in self[group.graph].elements(of: group.index) {
                wanted.insert(OperationID(graph: group.graph, index: index))
            }
        }
        return wanted.sorted()
    }

    /// The data that a worker needs to run an operation.
    mutating func dispatched(_ grant: Scheduler.Grant) -> DispatchedOperation {
        let graph = grant.held.operation.graph
        var (operation, dependencies) = self[graph].dispatched(grant)
        if !dependencies.isEmpty { operation.inputs = inputs(dependencies, of: graph) }
        return operation
    }

    /// The inputs of an operation, as in `dispatched`.
    mutating func inputs(of operation: OperationID) -> [NamedInput] {
        let description = self[description: operation]
        guard description.wantsInputs else { return [] }
        return inputs(description.dependencies, of: operation.graph)
    }

    /// The outputs of direct dependencies, each dependency once, in the order they are listed; for
    /// a group whose elements' outputs are taken, those of the elements in the order of their
    /// addition. They travel with the operation up to `inlineInputBytes` in total. Beyond that,
    /// references replace the largest ones, and the worker fetches these outputs.
    private mutating func inputs(
        _ dependencies: [DependencyDescription],
        of graph: GraphID
    ) -> [NamedInput] {
        var seen: Set<String> = []
        var inputs: [NamedInput] = []
        var sources: [OperationID?] = []
        var bytes = 0
        func add(_ name: String, _ source: OperationID?) {
            guard seen.insert(name).inserted else { return }
            let output = source.flatMap { self[$0.graph].output(of: $0.index) }
            bytes += output?.bytes.count ?? 0
            var input = NamedInput(name: name, output: output)
            if output == nil, let source { input.isDropped = hasDroppedOutput(source) }
            inputs.append(input)
            sources.append(source)
        }
        for dependency in dependencies {
            let source = source(of: dependency, in: graph)
            // Of a dropped graph, nobody knows the elements any more.
            guard dependency.takesElements, let source, !isDropped(source.graph) else {
                add(dependency.name, source)
                continue
            }
            // The group itself has no output.
            for index in self[source.graph].elements(of: source.index) {
                let element = OperationID(graph: source.graph, index: index)
                add(name(of: element).name, element)
            }
        }
        guard bytes > limits.inlineInputBytes else { return inputs }
        let largest = inputs.indices.sorted { left, right in
            (inputs[right].byteCount, left) < (inputs[left].byteCount, right)
        }
        for place in largest where inputs[place].byteCount > Self.referenceBytes {
            guard bytes > limits.inlineInputBytes else { break }
            guard let source = sources[place] else { continue }
            bytes -= inputs[place].byteCount
            inputs[place].reference = self[source.graph].reference(to: source)
            inputs[place].output = nil
        }
        return inputs
    }

    private mutating func source(
        of dependency: DependencyDescription,
        in graph: GraphID
    ) -> OperationID? {
        if let id = dependency.resolvedID { return id }
        let index = self[graph].number(of: dependency.name)
        return index.map { OperationID(graph: graph, index: $0) }
    }
}
