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
    let limits: Limits
    /// Some of its operations take outputs of other graphs.
    private(set) var asksElsewhere = false
    /// How many unfinished operations, of any graph, may still ask for the output of each; empty:
    /// none for any.
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
    /// - Throws: `WireError` or `Refusal`, if they make no sense.
    mutating func assemble(_ assembly: inout GraphAssembly, _ count: Int) throws {
        var consumers: [UInt32] = []
        var asksElsewhere = false
        try operations.assemble(&assembly, count) { number in
            guard let number else {
                asksElsewhere = true
                return
            }
            if consumers.isEmpty { consumers = Array(repeating: 0, count: count) }
            consumers[Int(number)] += 1
        }
        self.consumers = consumers
        if asksElsewhere { self.asksElsewhere = true }
    }

    /// The number of the operation of this name. The first question costs a walk over all names.
    mutating func number(of name: String) -> UInt32? { operations.number(of: name) }

    /// Of operations from this number on: who may ask for what.
    mutating func countConsumers(from first: Int) {
        for index in first..<operations.count { count(consumersOf: UInt32(index)) }
    }

    private mutating func count(consumersOf index: UInt32) {
        let inputs = operations.inputs(of: Int(index))
        for number in inputs.own { count(consumerOf: number) }
        if !inputs.others.isEmpty { asksElsewhere = true }
    }

    private mutating func count(consumerOf number: UInt32) {
        if consumers.count < operations.count {
            let missing = operations.count - consumers.count
            consumers.append(contentsOf: repeatElement(0, count: missing))
        }
        // A tombstone has no operations, and gets none.
        if Int(number) < consumers.count { consumers[Int(number)] += 1 }
    }

    /// An operation has its outcome: it asks for nothing of this graph any more.
    mutating func finished(_ index: UInt32) {
        guard !consumers.isEmpty else { return }
        for number in operations.inputs(of: Int(index)).own { release(number) }
    }

    /// One more, of whatever graph, may ask for an output.
    mutating func retain(_ number: UInt32) {
        count(consumerOf: number)
        if let output = spare?.take(number) { keep(output, of: number) }
    }

    /// One that might have asked for an output does so no more.
    mutating func release(_ number: UInt32) {
        guard isWanted(number) else { return }
        consumers[Int(number)] -= 1
        if consumers[Int(number)] == 0, let output = outputs.removeValue(forKey: number) {
            spare?.keep(output.payload, of: number)
        }
    }

    /// Operations of other graphs whose outputs one takes, each once.
    mutating func elsewhere(_ index: UInt32) -> [OperationID] {
        asksElsewhere ? operations.inputs(of: Int(index)).others : []
    }

    /// The operations of this graph that are there and whose outputs these would ask for.
    mutating func wanted(by more: [OperationDescription]) -> Set<UInt32> {
        var wanted: Set<UInt32> = []
        for operation in more where operation.wantsInputs {
            for dependency in operation.dependencies where dependency.elsewhere == nil {
                if let number = number(of: dependency.name) { wanted.insert(number) }
            }
        }
        return wanted
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
            for number in operations.inputs(of: index).own {
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

    /// Of all its operations' inputs, roughly.
    var inputBytes: Int { operations.byteCount }

    /// Whether it has left an output that is not kept anywhere any more.
    func isGone(_ index: UInt32) -> Bool { spare?.isGone(index) ?? false }

    /// What it has left, if that is at hand.
    func left(_ index: UInt32) -> Payload? { outputs[index]?.payload ?? spare?[index] }

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

    /// What a worker needs to know of an operation to run it, but for its inputs; and what it takes
    /// them from.
    func dispatched(
        _ grant: Scheduler.Grant
    ) -> (operation: DispatchedOperation, dependencies: [DependencyDescription]) {
        let index = Int(grant.held.operation.index)
        var dependencies: [DependencyDescription] = []
        // Field by field: a copy of the whole description would cost more than all the rest.
        let dispatched = operations.with(index) { operation in
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
        return (dispatched, dependencies)
    }

    func output(of index: UInt32) -> Payload? { outputs[index]?.payload }

    mutating func reference(to operation: OperationID) -> OutputReference? {
        outputs[operation.index]?.reference(operation)
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

    subscript(index: UInt32) -> Payload? { outputs[index] }
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

    mutating func reference(_ operation: OperationID) -> OutputReference {
        OutputReference(
            operation: operation,
            byteCount: payload.bytes.count,
            hash: makeHash(),
            contentType: payload.contentType
        )
    }
}

extension OperationDescription {
    /// Whether its kind does anything with outputs of dependencies.
    var wantsInputs: Bool { work.takesInputs && !dependencies.isEmpty }
}
