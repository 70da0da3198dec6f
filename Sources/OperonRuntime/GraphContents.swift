import OperonCore
import OperonModel

/// What the operations of a graph are made of: everything the scheduler does without.
struct GraphContents: Sendable {
    let name: String
    let operations: [OperationDescription]
    /// Index of an operation by its name, where it is somebody's dependency.
    private let numbers: [String: UInt32]
    /// Outputs of finished operations that somebody depends on. Only looked up.
    private var outputs: [UInt32: Payload] = [:]
    /// How many unfinished operations may still ask for an output. Only looked up.
    private var consumers: [UInt32: Int] = [:]

    init(_ graph: GraphDescription) {
        name = graph.name
        operations = graph.operations
        var wanted: Set<String> = []
        for operation in graph.operations where operation.wantsInputs {
            for dependency in operation.dependencies { wanted.insert(dependency.name) }
        }
        var numbers: [String: UInt32] = [:]
        for (index, operation) in graph.operations.enumerated()
        where wanted.contains(operation.name) {
            numbers[operation.name] = UInt32(index)
        }
        self.numbers = numbers
        for operation in operations where operation.wantsInputs {
            for number in dependencies(of: operation) { consumers[number, default: 0] += 1 }
        }
    }

    /// Its dependencies by number, each once.
    private func dependencies(of operation: OperationDescription) -> Set<UInt32> {
        Set(operation.dependencies.compactMap { numbers[$0.name] })
    }

    /// An operation has its outcome: it asks for nothing any more.
    mutating func finished(_ index: UInt32) {
        guard operations[Int(index)].wantsInputs else { return }
        // A set of numbers, each of which is counted down once: their order does not matter.
        for number in dependencies(of: operations[Int(index)]) {
            guard let left = consumers[number] else { continue }
            consumers[number] = left > 1 ? left - 1 : nil
            if left == 1 { outputs[number] = nil }
        }
    }

    /// Keeps an output if an operation that takes inputs depends on it.
    mutating func keep(_ output: Payload, of index: UInt32) {
        guard !output.isEmpty, consumers[index] != nil else { return }
        outputs[index] = output
    }

    /// What a worker needs to know of an operation to run it.
    func dispatched(_ grant: Scheduler.Grant) -> DispatchedOperation {
        let index = Int(grant.held.operation.index)
        // Field by field: a copy of the whole description would cost more than all the rest.
        return DispatchedOperation(
            held: grant.held,
            ordinal: grant.ordinal,
            graphName: name,
            name: operations[index].name,
            queue: operations[index].queue,
            work: operations[index].work,
            priority: grant.priority,
            rank: grant.rank,
            timeout: operations[index].timeout,
            qualityOfService: operations[index].qualityOfService,
            inputs: inputs(of: grant.held.operation.index),
            isIsolated: grant.isIsolated,
            announcesStart: grant.announcesStart,
            exclusiveLease: grant.exclusiveLease
        )
    }

    /// The outputs of its direct dependencies, each dependency once, in the order they are listed.
    func inputs(of index: UInt32) -> [NamedInput] {
        guard operations[Int(index)].wantsInputs else { return [] }
        var seen: Set<String> = []
        return operations[Int(index)].dependencies.compactMap { dependency in
            guard seen.insert(dependency.name).inserted else { return nil }
            let output = numbers[dependency.name].flatMap { outputs[$0] }
            return NamedInput(name: dependency.name, output: output)
        }
    }
}

extension OperationDescription {
    /// Whether its kind does anything with outputs of dependencies.
    var wantsInputs: Bool {
        switch work {
        case .nothing, .wait: false
        case .command, .registered: !dependencies.isEmpty
        }
    }
}
