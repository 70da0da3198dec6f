import DequeModule
import OperonCore
import OperonModel
import OperonWire

/// What the operations of a graph are made of: everything the scheduler does without.
struct GraphContents: Sendable {
    let name: String
    /// The trace that its operations belong to; empty: none.
    var traceParent = ""
    private(set) var operations: KeptOperations
    /// Outputs of finished operations that somebody depends on. Only looked up.
    private var outputs: [UInt32: KeptOutput] = [:]
    /// Of those outputs that nobody was known to ask for, the last ones, while there is no store
    /// that has them: a running operation may still add somebody who does.
    private var spare: SpareOutputs?
    /// The running operation that added one. Only looked up.
    private var parents: [UInt32: UInt32] = [:]
    private let limits: Limits
    /// What a reference takes in a dispatch: what is no larger than that travels itself.
    private static let referenceBytes = 64
    /// How many unfinished operations may still ask for the output of each; empty: none for any.
    private var consumers: [UInt32] = []

    init(_ graph: GraphDescription, limits: Limits) {
        self.limits = limits
        name = graph.name
        operations = KeptOperations(graph.operations)
        countConsumers(from: 0)
    }

    /// What a store kept, or is given.
    ///
    /// - Parameter wanting: those that take outputs of others, unless they are counted later.
    init(name: String, stored: StoredOperations, wanting: [UInt32], limits: Limits) {
        self.limits = limits
        self.name = name
        operations = KeptOperations(stored)
        for index in wanting { count(consumersOf: index) }
    }

    /// Compiles the first operations of what a store kept, and counts who may ask for what.
    ///
    /// - Parameter resolve: finds operations of other graphs by the names that dependencies have.
    /// - Throws: `WireError` or `Refusal`, if they make no sense.
    mutating func assemble(
        _ assembly: inout GraphAssembly,
        _ count: Int,
        resolve: CompiledGraph.Resolver
    ) throws {
        var consumers: [UInt32] = []
        try operations.assemble(&assembly, count, resolve: resolve) { number in
            if consumers.isEmpty { consumers = Array(repeating: 0, count: count) }
            consumers[Int(number)] += 1
        }
        self.consumers = consumers
    }

    /// The number of the operation of this name. The first question costs a walk over all names.
    mutating func number(of name: String) -> UInt32? { operations.number(of: name) }

    /// Of operations from this number on: who may ask for what.
    mutating func countConsumers(from first: Int) {
        for index in first..<operations.count { count(consumersOf: UInt32(index)) }
    }

    private mutating func count(consumersOf index: UInt32) {
        for number in operations.inputs(of: Int(index)) {
            if consumers.count < operations.count {
                let missing = operations.count - consumers.count
                consumers.append(contentsOf: repeatElement(0, count: missing))
            }
            consumers[Int(number)] += 1
        }
    }

    /// An operation has its outcome: it asks for nothing any more.
    mutating func finished(_ index: UInt32) {
        guard !consumers.isEmpty else { return }
        for number in operations.inputs(of: Int(index)) where isWanted(number) {
            consumers[Int(number)] -= 1
            if consumers[Int(number)] == 0, let output = outputs.removeValue(forKey: number) {
                spare?.keep(output.payload, of: number)
            }
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

    /// What a running operation that adds one of this name is compared with.
    mutating func known(_ name: String) -> CompiledAddition.Known? {
        number(of: name).map { index in
            CompiledAddition.Known(
                description: operations[Int(index)],
                parent: parents[index]
            )
        }
    }

    /// Adds operations, which may depend on those that are there.
    ///
    /// - Parameters:
    ///   - body: the same as a store keeps them.
    ///   - parent: the running operation that adds them; `nil`: a client does.
    /// - Throws: `WireError`, if the bytes cannot be read, and nothing is added.
    mutating func append(
        _ more: [OperationDescription],
        _ body: [UInt8],
        by parent: UInt32? = nil
    ) throws(WireError) {
        let first = operations.count
        try operations.append(more, body)
        if let parent { adopt(first..<operations.count, by: parent) }
        countConsumers(from: first)
        guard spare != nil else { return }
        for index in first..<operations.count {
            for number in operations.inputs(of: index) {
                if let output = spare?.take(number) { keep(output, of: number) }
            }
        }
    }

    /// These operations were added by a running one.
    mutating func adopt(_ children: Range<Int>, by parent: UInt32) {
        for index in children { parents[UInt32(index)] = parent }
    }

    /// There is no store that has outputs for whoever may be added.
    mutating func keepSpareOutputs() { spare = SpareOutputs(bytesMax: limits.cachedBytes) }

    /// Whether it has left an output that is not kept anywhere any more.
    func isGone(_ index: UInt32) -> Bool { spare?.isGone(index) ?? false }

    func hasKept(_ index: UInt32) -> Bool { outputs[index] != nil }

    /// Whether an unfinished operation may ask for its output.
    func isWanted(_ index: UInt32) -> Bool {
        Int(index) < consumers.count && consumers[Int(index)] > 0
    }

    /// An operation has another round before it: it asks for what it asked for before.
    mutating func reopened(_ index: UInt32) {
        count(consumersOf: index)
    }

    /// Keeps an output if an operation that takes inputs depends on it.
    mutating func keep(_ output: Payload, of index: UInt32) {
        guard !output.isEmpty else { return }
        guard isWanted(index) else {
            spare?.keep(output, of: index)
            return
        }
        outputs[index] = KeptOutput(payload: output)
        // It will be fetched, whatever its dependents have beside it.
        if output.bytes.count > limits.inlineInputBytes { _ = outputs[index]?.makeHash() }
    }

    /// What a worker needs to know of an operation to run it.
    mutating func dispatched(_ grant: Scheduler.Grant) -> DispatchedOperation {
        let index = Int(grant.held.operation.index)
        var dependencies: [DependencyDescription] = []
        // Field by field: a copy of the whole description would cost more than all the rest.
        var dispatched = operations.with(index) { operation in
            if operation.wantsInputs { dependencies = operation.dependencies }
            return DispatchedOperation(
                held: grant.held,
                ordinal: grant.ordinal,
                graphName: name,
                name: operation.name,
                queue: operation.queue,
                work: operation.work,
                priority: grant.priority,
                rank: grant.rank,
                timeout: operation.timeout,
                qualityOfService: operation.qualityOfService,
                inputs: [],
                isIsolated: grant.isIsolated,
                announcesStart: grant.announcesStart,
                exclusiveLease: grant.exclusiveLease,
                traceParent: traceParent
            )
        }
        if !dependencies.isEmpty {
            dispatched.inputs = inputs(dependencies, of: grant.held.operation.graph)
        }
        return dispatched
    }

    /// What an operation takes: see `dispatched`.
    mutating func inputs(of operation: OperationID) -> [NamedInput] {
        let description = operations[Int(operation.index)]
        guard description.wantsInputs else { return [] }
        return inputs(description.dependencies, of: operation.graph)
    }

    /// The outputs of direct dependencies, each dependency once, in the order they are listed.
    /// Together they travel with it as far as that is allowed; then the larger ones stay here, and
    /// are fetched.
    private mutating func inputs(
        _ dependencies: [DependencyDescription],
        of graph: GraphID
    ) -> [NamedInput] {
        var seen: Set<String> = []
        var inputs: [NamedInput] = []
        var numbersOfInputs: [UInt32] = []
        var bytes = 0
        for dependency in dependencies where seen.insert(dependency.name).inserted {
            let number = number(of: dependency.name)
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
                .reference(number, graph: graph)
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

/// Outputs that nobody is known to want, up to a number of bytes: the last ones.
private struct SpareOutputs: Sendable {
    let bytesMax: Int
    private var bytes = 0
    /// Only looked up.
    private var outputs: [UInt32: Payload] = [:]
    private var order = Deque<UInt32>()
    private var gone: Set<UInt32> = []

    init(bytesMax: Int) { self.bytesMax = bytesMax }

    mutating func keep(_ output: Payload, of index: UInt32) {
        _ = take(index)
        gone.remove(index)
        outputs[index] = output
        order.append(index)
        bytes += output.bytes.count
        while bytes > bytesMax, let first = order.first {
            if take(first) != nil { gone.insert(first) }
        }
    }

    mutating func take(_ index: UInt32) -> Payload? {
        guard let output = outputs.removeValue(forKey: index) else { return nil }
        bytes -= output.bytes.count
        if order.first == index { order.removeFirst() } else { order.removeAll { $0 == index } }
        return output
    }

    func isGone(_ index: UInt32) -> Bool { gone.contains(index) }
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
