import OperonCore
import OperonModel

/// What the operations of a graph are made of: everything the scheduler does without.
struct GraphContents: Sendable {
    let name: String
    /// The trace that its operations belong to; empty: none.
    var traceParent = ""
    private(set) var operations: [OperationDescription]
    /// Index of an operation by its name, where it is somebody's dependency.
    private var numbers: [String: UInt32]
    /// Of all operations, once somebody has asked. Only looked up.
    private var byName: [String: UInt32]?
    /// Outputs of finished operations that somebody depends on. Only looked up.
    private var outputs: [UInt32: KeptOutput] = [:]
    private let limits: Limits
    /// What a reference takes in a dispatch: what is no larger than that travels itself.
    private static let referenceBytes = 64
    /// How many unfinished operations may still ask for an output. Only looked up.
    private var consumers: [UInt32: Int] = [:]

    init(_ graph: GraphDescription, limits: Limits) {
        self.limits = limits
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

    /// The number of the operation of this name. The first question costs a walk over all names.
    mutating func number(of name: String) -> UInt32? {
        if let byName { return byName[name] }
        var byName: [String: UInt32] = [:]
        byName.reserveCapacity(operations.count)
        for (index, operation) in operations.enumerated() {
            byName[operation.name] = UInt32(index)
        }
        self.byName = byName
        return byName[name]
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

    /// The operations that are there whose outputs these would ask for.
    mutating func wanted(by more: [OperationDescription]) -> [UInt32] {
        var wanted: Set<UInt32> = []
        for operation in more where operation.wantsInputs {
            for dependency in operation.dependencies {
                if let number = number(of: dependency.name) { wanted.insert(number) }
            }
        }
        return wanted.sorted()
    }

    /// Adds operations, which may depend on those that are there.
    mutating func append(_ more: [OperationDescription]) {
        let first = operations.count
        // Makes the table of all names, if it was not there yet.
        _ = number(of: "")
        operations += more
        for (offset, operation) in more.enumerated() {
            byName?[operation.name] = UInt32(first + offset)
        }
        for operation in more where operation.wantsInputs {
            for dependency in operation.dependencies {
                guard let number = number(of: dependency.name) else { continue }
                numbers[dependency.name] = number
            }
            for number in dependencies(of: operation).sorted() {
                consumers[number, default: 0] += 1
            }
        }
    }

    func hasKept(_ index: UInt32) -> Bool { outputs[index] != nil }

    /// Whether an unfinished operation may ask for its output.
    func isWanted(_ index: UInt32) -> Bool { consumers[index] != nil }

    /// An operation has another round before it: it asks for what it asked for before.
    mutating func reopened(_ index: UInt32) {
        guard operations[Int(index)].wantsInputs else { return }
        // The order does not matter: each is counted up once.
        for dependency in operations[Int(index)].dependencies {
            guard let number = number(of: dependency.name) else { continue }
            numbers[dependency.name] = number
        }
        for number in dependencies(of: operations[Int(index)]) {
            consumers[number, default: 0] += 1
        }
    }

    /// Keeps an output if an operation that takes inputs depends on it.
    mutating func keep(_ output: Payload, of index: UInt32) {
        guard !output.isEmpty, consumers[index] != nil else { return }
        outputs[index] = KeptOutput(payload: output)
        // It will be fetched, whatever its dependents have beside it.
        if output.bytes.count > limits.inlineInputBytes { _ = outputs[index]?.makeHash() }
    }

    /// What a worker needs to know of an operation to run it.
    mutating func dispatched(_ grant: Scheduler.Grant) -> DispatchedOperation {
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
            inputs: inputs(of: grant.held.operation),
            isIsolated: grant.isIsolated,
            announcesStart: grant.announcesStart,
            exclusiveLease: grant.exclusiveLease,
            traceParent: traceParent
        )
    }

    /// The outputs of its direct dependencies, each dependency once, in the order they are listed.
    /// Together they travel with it as far as that is allowed; then the larger ones stay here, and
    /// are fetched.
    mutating func inputs(of operation: OperationID) -> [NamedInput] {
        let index = Int(operation.index)
        guard operations[index].wantsInputs else { return [] }
        var seen: Set<String> = []
        var inputs: [NamedInput] = []
        var numbersOfInputs: [UInt32] = []
        var bytes = 0
        for dependency in operations[index].dependencies
        where seen.insert(dependency.name).inserted {
            let number = numbers[dependency.name]
            let output = number.flatMap { outputs[$0]?.payload }
            bytes += output?.bytes.count ?? 0
            inputs.append(NamedInput(name: dependency.name, output: output))
            numbersOfInputs.append(number ?? 0)
        }
        guard bytes > limits.inlineInputBytes else { return inputs }
        let largest = inputs.indices.sorted { left, right in
            (inputs[right].byteCount, left) < (inputs[left].byteCount, right)
        }
        for place in largest where inputs[place].byteCount > Self.referenceBytes {
            guard bytes > limits.inlineInputBytes else { break }
            let number = numbersOfInputs[place]
            bytes -= inputs[place].byteCount
            inputs[place].reference = outputs[number]?
                .reference(number, graph: operation.graph)
            inputs[place].output = nil
        }
        return inputs
    }

    /// The bytes that a request asks for, if they are there, and no more than a piece.
    func piece(_ request: OutputRequest) -> [UInt8]? {
        guard let bytes = outputs[request.operation.index]?.payload.bytes,
            request.offset < bytes.count
        else { return nil }
        let length = min(request.length, limits.chunkBytes, bytes.count - request.offset)
        return Array(bytes[request.offset..<request.offset + length])
    }
}

/// An output that unfinished operations may ask for.
private struct KeptOutput: Sendable {
    let payload: Payload
    /// Made when it is first wanted.
    private var hash: ContentHash?

    init(payload: Payload) { self.payload = payload }

    /// Computes the hash if that was not done before.
    mutating func makeHash() -> ContentHash {
        let hash = hash ?? ContentHash(of: payload.bytes)
        self.hash = hash
        return hash
    }

    mutating func reference(_ index: UInt32, graph: GraphID) -> OutputReference {
        OutputReference(
            operation: OperationID(graph: graph, index: index),
            byteCount: payload.bytes.count,
            hash: makeHash(),
            contentType: payload.contentType
        )
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
