import DequeModule
import OperonCore
import OperonModel
import OperonWire

/// The contents of a graph's operations: everything that the scheduler does not need.
struct GraphContents: Sendable {
    let name: String
    /// The trace that the graph's operations belong to; empty: none.
    var traceParent = ""
    private(set) var operations: KeptOperations
    /// Outputs of finished operations that unfinished operations may ask for. Only looked up.
    private var outputs: [UInt32: KeptOutput] = [:]
    /// The most recent outputs that no known operation may ask for. They are kept only if no store
    /// has them, because a running operation may still add a dependent that takes them.
    private var spare: SpareOutputs?
    /// The running operation that added an operation. Only looked up.
    private var parents: [UInt32: UInt32] = [:]
    /// What large operations that do nothing stand for. Only looked up.
    private var originals: [UInt32: OperationID?] = [:]
    /// The operations that have added some. Only looked up.
    private var adding: Set<UInt32> = []
    /// The elements that running operations added, by their group. Only looked up.
    private var elements: [UInt32: AddedElements] = [:]
    /// The group of what each operation adds. Only looked up.
    private var groups: [UInt32: UInt32] = [:]
    /// For each group, how many unfinished operations, of any graph, take the outputs of its
    /// elements, those included that are added later. Only looked up.
    private var elementConsumers: [UInt32: UInt32] = [:]
    /// The sizes of `Limits` that are needed: all of them would take more than the graph.
    private let sizes: Sizes
    /// Whether some of its operations take outputs of other graphs.
    private(set) var hasOtherInputs = false
    /// For each operation, how many unfinished operations, of any graph, may still ask for its
    /// output. Empty: none for any operation.
    private var consumers: [UInt32] = []
    /// When each operation finished, in nanoseconds since 1970; 0: it has not, or nobody knows.
    /// Shorter than `operations` until the last operation has finished.
    private var finishTimes: [Int64] = []

    private struct AddedElements: Sendable {
        var ranges: [Range<UInt32>] = []
        /// What they take at most in the list of an operation's inputs.
        var listBytes = 0
    }

    private struct Sizes: Sendable {
        let inlineInputBytes: Int
        let chunkBytes: Int

        init(_ limits: Limits) {
            inlineInputBytes = limits.inlineInputBytes
            chunkBytes = limits.chunkBytes
        }
    }

    init(_ graph: GraphDescription, limits: Limits) {
        sizes = Sizes(limits)
        name = graph.name
        operations = KeptOperations(graph.operations)
        countConsumers(from: 0)
    }

    /// Makes the contents from stored bytes.
    ///
    /// - Parameter wanting: The operations that take outputs of others, unless they are counted
    ///   later.
    init(name: String, stored: StoredOperations, wanting: [UInt32], limits: Limits) {
        sizes = Sizes(limits)
        self.name = name
        operations = KeptOperations(stored)
        for index in wanting { count(consumersOf: index) }
    }

    /// Compiles the first operations of a stored graph, and counts the consumers of each output.
    ///
    /// - Throws: `WireError` or `Refusal` if the stored operations are invalid.
    mutating func assemble(_ assembly: inout GraphAssembly, _ count: Int) throws {
        var consumers: [UInt32] = []
        var hasOtherInputs = false
        let collecting = try operations.assemble(&assembly, count) { number in
            guard let number else {
                hasOtherInputs = true
                return
            }
            if consumers.isEmpty { consumers = Array(repeating: 0, count: count) }
            consumers[Int(number)] += 1
        }
        self.consumers = consumers
        for index in collecting {
            for group in operations.inputs(of: index).ownGroups { retainElements(of: group) }
        }
        if hasOtherInputs { self.hasOtherInputs = true }
    }

    /// The number of the operation with this name. The first call visits all names.
    mutating func number(of name: String) -> UInt32? { operations.number(of: name) }

    /// Counts the operations from this number on as consumers.
    mutating func countConsumers(from first: Int) {
        for index in first..<operations.count { count(consumersOf: UInt32(index)) }
    }

    private mutating func count(consumersOf index: UInt32) {
        let inputs = operations.inputs(of: Int(index))
        for number in inputs.own { count(consumerOf: number) }
        for group in inputs.ownGroups { retainElements(of: group) }
        if !inputs.others.isEmpty { hasOtherInputs = true }
    }

    private mutating func count(consumerOf number: UInt32) {
        if consumers.count < operations.count {
            let missing = operations.count - consumers.count
            consumers.append(contentsOf: repeatElement(0, count: missing))
        }
        // A dropped graph has no operations, and gets none.
        if Int(number) < consumers.count { consumers[Int(number)] += 1 }
    }

    /// When the operation finished the last time.
    func finishTime(of index: UInt32) -> WallTime? {
        guard Int(index) < finishTimes.count, finishTimes[Int(index)] != 0 else { return nil }
        return WallTime(nanosecondsSince1970: finishTimes[Int(index)])
    }

    /// Unregisters operations that have their outcome: they take no outputs of this graph any more.
    mutating func finished(_ indices: Range<UInt32>, at time: WallTime?) {
        let end = Int(indices.upperBound)
        if finishTimes.count < end {
            let missing = end - finishTimes.count
            finishTimes.append(contentsOf: repeatElement(0, count: missing))
        }
        let nanoseconds = time?.nanosecondsSince1970 ?? 0
        for index in indices { finishTimes[Int(index)] = nanoseconds }
        guard !consumers.isEmpty else { return }
        for index in indices {
            let inputs = operations.inputs(of: Int(index))
            for number in inputs.own { release(number) }
            for group in inputs.ownGroups { releaseElements(of: group) }
        }
    }

    /// Counts one more operation, of any graph, that may ask for an output.
    mutating func retain(_ number: UInt32) {
        count(consumerOf: number)
        if let output = spare?.take(number) { keep(output, of: number) }
    }

    /// Uncounts an operation that might have asked for an output.
    mutating func release(_ number: UInt32) {
        guard Int(number) < consumers.count, consumers[Int(number)] > 0 else { return }
        consumers[Int(number)] -= 1
        dropIfUnwanted(number)
    }

    private mutating func dropIfUnwanted(_ number: UInt32) {
        guard !isWanted(number), let output = outputs.removeValue(forKey: number) else { return }
        spare?.keep(output.payload, of: number)
    }

    /// Counts one more operation, of any graph, that may ask for the outputs of a group's elements.
    mutating func retainElements(of group: UInt32) {
        elementConsumers[group, default: 0] += 1
        guard elementConsumers[group] == 1, spare != nil else { return }
        for element in elements(of: group) {
            if let output = spare?.take(element) { keep(output, of: element) }
        }
    }

    /// Uncounts an operation that might have asked for the outputs of a group's elements.
    mutating func releaseElements(of group: UInt32) {
        guard let count = elementConsumers[group] else { return }
        elementConsumers[group] = count > 1 ? count - 1 : nil
        guard count == 1 else { return }
        for element in elements(of: group) { dropIfUnwanted(element) }
    }

    /// The elements that were added to a group, in the order in which they were.
    func elements(of group: UInt32) -> some Sequence<UInt32> {
        (elements[group]?.ranges ?? []).lazy.joined()
    }

    /// Checks that an operation which takes the outputs of the group's elements can be sent with
    /// those of more elements, whatever these leave.
    ///
    /// - Throws: `limitExceeded`: `inputListBytes`.
    func check(_ more: [OperationDescription], of group: UInt32, _ limits: Limits) throws(Refusal) {
        guard elementConsumers[group] != nil else { return }
        let bytes = more.reduce(elements[group]?.listBytes ?? 0) { bytes, element in
            bytes + InputList.bytes(of: element.name)
        }
        try LimitName.inputListBytes.check(bytes, limits.inputListBytes)
    }

    /// The operations whose outputs an operation takes, if some are of other graphs.
    mutating func otherInputs(of index: UInt32) -> KeptOperations.Inputs {
        hasOtherInputs ? operations.inputs(of: Int(index)) : KeptOperations.Inputs()
    }

    /// The existing operations of this graph whose outputs these would ask for.
    mutating func wanted(by more: [OperationDescription]) -> Set<UInt32> {
        var wanted: Set<UInt32> = []
        var groups: Set<UInt32> = []
        for operation in more where operation.wantsInputs {
            for dependency in operation.dependencies where dependency.resolvedID == nil {
                guard let number = number(of: dependency.name) else { continue }
                wanted.insert(number)
                if dependency.takesElements { groups.insert(number) }
            }
        }
        // The order does not matter: each is added once.
        for group in groups { wanted.formUnion(elements(of: group)) }
        return wanted
    }

    /// The existing operation of this name, for comparison if a running operation adds it again.
    mutating func known(_ name: String) -> CompiledAddition.Known? {
        number(of: name).map { index in
            CompiledAddition.Known(
                description: operations[Int(index)],
                parent: parents[index]
            )
        }
    }

    /// The running operation that added an operation; `nil`: a client submitted or added it.
    func parent(of index: UInt32) -> UInt32? { parents[index] }

    /// The operation of an earlier form of the graph for which this one stands; `nil`: it stands
    /// for none.
    mutating func original(of index: UInt32) -> OperationID? {
        guard operations.isNothing(Int(index)) else { return nil }
        if let known = originals[index] { return known }
        let description = operations[Int(index)]
        let original = Continuation.original(of: description)
        // A group of many elements takes long to decode, and all that is added may depend on it.
        if description.dependencies.count > Self.fewDependencies {
            originals[index] = .some(original)
        }
        return original
    }

    /// With so many at most, decoding costs less than an entry of the table takes in memory.
    private static let fewDependencies = 8

    /// Whether the operation has added others.
    func hasAdded(_ index: UInt32) -> Bool { adding.contains(index) }

    /// The group of the elements that an operation has added; `nil`: it has added none.
    func group(waitingFor parent: UInt32) -> UInt32? { groups[parent] }

    /// The operation that waits for what a running operation adds: the group of the elements, if
    /// its work is to repeat an operation for each element of an output. The group follows it.
    func group(ofElementsAddedBy parent: UInt32) -> UInt32? {
        let next = Int(parent) + 1
        guard next < operations.count else { return nil }
        let adding = operations[Int(parent)]
        guard adding.work.kind == Work.forEachKind else { return nil }
        let group = operations[next]
        // What it added itself is an element, and no group.
        guard group.work == .nothing, parents[UInt32(next)] != parent,
            group.dependencies.contains(where: { $0.name == adding.name })
        else { return nil }
        return UInt32(next)
    }

    /// The same for an operation that was added.
    func group(ofElements element: UInt32) -> UInt32? {
        parents[element].flatMap { group(ofElementsAddedBy: $0) }
    }

    /// Adds operations, which may depend on existing ones.
    ///
    /// - Parameters:
    ///   - body: The same operations as a store keeps them.
    ///   - parent: The running operation that adds them; `nil`: a client does.
    /// - Throws: `WireError` if the bytes cannot be read; then nothing is added.
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

    /// Notes that a running operation added these operations.
    mutating func adopt(_ children: Range<Int>, by parent: UInt32) {
        for index in children { parents[UInt32(index)] = parent }
        if !children.isEmpty { adding.insert(parent) }
        guard !children.isEmpty, let group = group(ofElementsAddedBy: parent) else { return }
        groups[parent] = group
        let added = UInt32(children.lowerBound)..<UInt32(children.upperBound)
        elements[group, default: AddedElements()].ranges.append(added)
        elements[group]?.listBytes += children.reduce(0) {
            $0 + InputList.bytes(of: operations.name(of: $1))
        }
    }

    /// Starts keeping spare outputs, for a coordinator without a store from which operations that
    /// are added later could take them.
    mutating func keepSpareOutputs(bytesMax: Int) { spare = SpareOutputs(bytesMax: bytesMax) }

    /// The approximate bytes of all its operations' inputs.
    var inputBytes: Int { operations.byteCount }

    /// Whether the operation left an output that is not kept anywhere any more.
    func isGone(_ index: UInt32) -> Bool { spare?.isGone(index) ?? false }

    /// The output that the operation left, if it is in memory.
    func left(_ index: UInt32) -> Payload? { outputs[index]?.payload ?? spare?[index] }

    func hasKept(_ index: UInt32) -> Bool { outputs[index] != nil }

    /// Whether an unfinished operation may ask for this operation's output.
    func isWanted(_ index: UInt32) -> Bool {
        if Int(index) < consumers.count, consumers[Int(index)] > 0 { return true }
        guard !elementConsumers.isEmpty, let parent = parents[index], let group = groups[parent]
        else { return false }
        return elementConsumers[group] != nil
    }

    /// Registers an operation again whose next round begins: it takes the same outputs as before.
    mutating func reopened(_ index: UInt32) {
        count(consumersOf: index)
        if Int(index) < finishTimes.count { finishTimes[Int(index)] = 0 }
    }

    /// Keeps an output if an operation that takes inputs depends on it.
    mutating func keep(_ output: Payload, of index: UInt32) {
        guard !output.isEmpty else { return }
        guard isWanted(index) else {
            spare?.keep(output, of: index)
            return
        }
        outputs[index] = KeptOutput(payload: output)
        // A worker will fetch it, however small the other inputs of the dependent are.
        if output.bytes.count > sizes.inlineInputBytes { _ = outputs[index]?.makeHash() }
    }

    /// The data that a worker needs to run an operation, without its inputs, and the dependencies
    /// that it takes inputs from.
    func dispatched(
        _ grant: Scheduler.Grant
    ) -> (operation: DispatchedOperation, dependencies: [DependencyDescription]) {
        let index = Int(grant.held.operation.index)
        var dependencies: [DependencyDescription] = []
        // Field by field, because copying the whole description would cost more than everything
        // else.
        let dispatched = operations.withDispatched(index) { operation in
            if operation.wantsInputs { dependencies = operation.dependencies }
            var dispatched = DispatchedOperation(
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
            dispatched.isRepeat = grant.isRepeat
            dispatched.resources = operation.resources
            dispatched.isEnforced = operation.enforcesResources
            return dispatched
        }
        return (dispatched, dependencies)
    }

    func output(of index: UInt32) -> Payload? { outputs[index]?.payload }

    mutating func reference(to operation: OperationID) -> OutputReference? {
        outputs[operation.index]?.reference(operation)
    }

    /// The requested bytes, at most one chunk; `nil`: they are not in memory.
    func piece(_ request: OutputRequest) -> [UInt8]? {
        guard let bytes = outputs[request.operation.index]?.payload.bytes,
            request.offset < bytes.count
        else { return nil }
        let length = min(request.length, sizes.chunkBytes, bytes.count - request.offset)
        return Array(bytes[request.offset..<request.offset + length])
    }
}

/// The most recent outputs that no operation is known to want, up to a number of bytes.
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
    /// Computed when it is first needed.
    private var hash: ContentHash?

    init(payload: Payload) { self.payload = payload }

    /// Returns the hash; computes it on the first call.
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
    /// Whether its kind uses outputs of dependencies.
    var wantsInputs: Bool { work.takesInputs && !dependencies.isEmpty }
}
