import OperonCore
import OperonModel
import OperonWire

// Finds what running operations name when they add operations, wait for others, or read an output.
extension GraphCatalog: RequestResolver {
    /// What the requests that are being handled need. Emptied after each message with requests.
    struct Requests: Sendable {
        /// Outputs that were loaded for them.
        var outputs: [OperationID: Payload] = [:]
        /// The operations whose outputs could not be read.
        var unreadable: Set<OperationID> = []
        /// Additions that were decoded before. Only looked up.
        var decoded: [AdditionKey: GraphDescription] = [:]
        /// Operations of earlier forms of a graph that additions need not run again, by name.
        /// Only looked up.
        var carried: [AdditionKey: [String: OperationID]] = [:]
        /// What their worker may do; `nil`: everything.
        var rights: SenderRights?
        /// The addition that was compiled last.
        fileprivate var compiled: Addition?
        /// The additions that the scheduler accepted, oldest first.
        fileprivate(set) var added: [Addition] = []
    }

    /// Identifies one addition of one attempt.
    struct AdditionKey: Hashable, Sendable {
        let held: HeldAttempt
        let number: UInt64
    }

    /// Operations that a running operation adds.
    struct Addition: Sendable {
        /// What a store keeps of them.
        let kept: StoredContents
        let operations: [OperationDescription]
        /// Outputs that they take and that are there already.
        fileprivate let outputs: [OperationID: Payload]
    }

    /// The operations to be added, with dependencies on other graphs resolved.
    mutating func read(
        _ request: AdditionRequest,
        of held: HeldAttempt
    ) throws(Refusal) -> GraphDescription {
        let key = AdditionKey(held: held, number: request.number)
        let description: GraphDescription
        if let known = requests.decoded[key] {
            description = known
        } else {
            description = try StoreFormat.decodeAddition(request.operations, limits: limits)
            try requests.rights?.check(addition: description)
            requests.decoded[key] = description
        }
        let found = resolved(description, in: held.operation.graph)
        // What another graph may add would depend on this one.
        for operation in found.operations {
            let other = operation.dependencies.first { $0.takesElements && $0.resolvedID != nil }
            guard let other else { continue }
            throw .invalid(
                field: "dependencies of “\(operation.name)”",
                why: "the elements of “\(other.name)” are those of another graph"
            )
        }
        return found
    }

    mutating func compile(
        _ request: AdditionRequest,
        of held: HeldAttempt,
        to base: CompiledAddition.Base,
        _ notices: [Scheduler.Notice]
    ) throws(Refusal) -> CompiledAddition? {
        let graph = held.operation.graph
        let parent = held.operation.index
        let new = try CompiledAddition.compile(
            try read(request, of: held),
            addedBy: parent,
            group: self[graph].group(ofElementsAddedBy: parent),
            to: base,
            limits: limits
        ) { name in
            known(name, in: graph)
        } resolve: { name in
            resolve(name, in: graph)
        }
        guard let new else { return nil }
        let submitter = submission(of: graph).submitter
        if let objection = objection(to: new.description, by: submitter) {
            throw .invalid(
                field: "operations",
                why: "the token of “\(submitter)” does not allow this: \(objection)"
            )
        }
        if let group = new.addition.group {
            try self[graph].check(new.description.operations, of: group, limits)
        }
        let outputs = try outputs(for: new.description.operations, of: graph, notices)
        let body: [UInt8]
        do throws(WireError) {
            body = try StoreFormat.encode(new.description, failFast: false, parent: parent)
        } catch {
            throw .invalid(field: "operations", why: error.message)
        }
        var addition = new.addition
        let carried = requests.carried[AdditionKey(held: held, number: request.number)] ?? [:]
        for (offset, operation) in new.description.operations.enumerated() {
            guard let earlier = carried[operation.name], let output = carriedOutput(of: earlier)
            else { continue }
            addition.carried[addition.first + UInt32(offset)] = output
        }
        var kept = StoredContents(
            graph: graph,
            name: name(of: graph),
            first: addition.first,
            operationCount: new.description.operations.count,
            body: body
        )
        kept.needs = addition.graph.graphsNeeded(by: graph)
        let operations = new.description.operations
        requests.compiled = Addition(kept: kept, operations: operations, outputs: outputs)
        return addition
    }

    /// An operation of a graph, for comparison with one that is added again. An earlier version
    /// noted no originals.
    private mutating func known(_ name: String, in graph: GraphID) -> CompiledAddition.Known? {
        guard var known = self[graph].known(name) else { return nil }
        for place in known.description.dependencies.indices {
            let dependency = known.description.dependencies[place]
            guard dependency.resolvedID == nil, !dependency.takesElements else { continue }
            known.description.dependencies[place].resolvedID =
                original(of: dependency.name, in: graph)
        }
        return known
    }

    /// Notes what an addition need not run, because an earlier form of its graph has run the same.
    mutating func noteCarried(
        by request: AdditionRequest,
        of held: HeldAttempt,
        _ scheduler: Scheduler
    ) throws(Refusal) {
        let key = AdditionKey(held: held, number: request.number)
        let adding = self[description: held.operation]
        guard requests.carried[key] == nil, let earlier = Continuation.earlierAdding(of: adding),
            contains(earlier.graph), scheduler.isKept(earlier)
        else { return }
        var carried: [String: OperationID] = [:]
        for operation in try read(request, of: held).operations {
            guard let index = self[earlier.graph].number(of: operation.name),
                self[earlier.graph].parent(of: index) == earlier.index,
                // What it added is not in the new graph.
                !self[earlier.graph].hasAdded(index)
            else { continue }
            let id = OperationID(graph: earlier.graph, index: index)
            var description = self[description: id]
            // In the new graph, an operation that stayed is one of the earlier graph.
            for place in description.dependencies.indices
            where description.dependencies[place].resolvedID == nil {
                let name = description.dependencies[place].name
                let own = self[earlier.graph].number(of: name)
                description.dependencies[place].resolvedID =
                    original(of: name, in: earlier.graph)
                    ?? own.map { OperationID(graph: earlier.graph, index: $0) }
            }
            let previous = Continuation.Previous(
                id: id,
                description: description,
                outcome: scheduler.outcomeKind(of: id)
            )
            if Continuation.carries(previous, to: operation) { carried[operation.name] = id }
        }
        requests.carried[key] = carried
    }

    /// What an operation left that need not run again; `nil`: it is not kept any more.
    private func carriedOutput(of id: OperationID) -> Payload? {
        guard !requests.unreadable.contains(id), !self[id.graph].isGone(id.index) else {
            return nil
        }
        return loadedOutput(of: id) ?? (hasStore ? nil : .empty)
    }

    /// Why a client may not submit a graph or an addition whose dependencies are resolved, as a
    /// clause; `nil`: it may.
    func objection(to description: GraphDescription, by submitter: String) -> String? {
        boundsOfSubmitter(submitter).objection(to: description) { graph in
            submission(of: graph).submitter == submitter
        }
    }

    /// The outputs that these operations take and that are in memory. An output that was dropped
    /// with its graph is not among them, and does not prevent the addition.
    ///
    /// - Parameter graph: The graph that the operations are added to.
    /// - Throws: A refusal if an output cannot be read, or was deleted because nobody wanted it.
    private mutating func outputs(
        for operations: [OperationDescription],
        of graph: GraphID,
        _ notices: [Scheduler.Notice]
    ) throws(Refusal) -> [OperationID: Payload] {
        var outputs: [OperationID: Payload] = [:]
        var missing: Set<OperationID> = []
        for id in wanted(by: operations, of: graph) {
            if requests.unreadable.contains(id) { throw unreadable(id) }
            if self[id.graph].isGone(id.index) {
                let name = name(of: id).name
                let why =
                    "the output of “\(name)” was deleted because no operation depended on it"
                throw .invalid(field: "dependencies", why: why)
            }
            outputs[id] = loadedOutput(of: id)
            if outputs[id] == nil { missing.insert(id) }
        }
        guard !missing.isEmpty else { return outputs }
        for case .result(let id, _, let result) in notices where missing.contains(id) {
            outputs[id] = result.output
        }
        return outputs
    }

    mutating func added(_ addition: CompiledAddition, by held: HeldAttempt) {
        guard let compiled = requests.compiled else {
            preconditionFailure("an addition is compiled before it is added")
        }
        requests.compiled = nil
        do throws(WireError) {
            try append(compiled.operations, of: compiled.kept, by: held.operation.index)
        } catch {
            preconditionFailure("these bytes were written from what they are: \(error)")
        }
        keep(compiled.outputs)
        requests.added.append(compiled)
    }

    mutating func awaited(
        _ request: WaitRequest,
        of held: HeldAttempt
    ) throws(Refusal) -> [OperationID] {
        // Checked before that many names are looked up.
        try LimitName.awaitedOperations.check(request.names.count, limits.awaitedOperations)
        return try request.names.map { name throws(Refusal) in try find(name, for: held) }
    }

    mutating func output(
        _ request: ReadRequest,
        of held: HeldAttempt,
        _ notices: [Scheduler.Notice]
    ) throws(Refusal) -> FoundOutput {
        let found = try find(request.name, for: held)
        let id = original(of: request.name, in: held.operation.graph) ?? found
        let isDropped = hasDroppedOutput(id)
        // A store has nothing of a dropped operation, which does not mean that it left nothing.
        var output = isDropped ? nil : loadedOutput(of: id)
        // An operation that ended in this very step left its result in the notices.
        if output == nil, !isDropped {
            for case .result(id, _, let result) in notices.reversed() {
                output = result.output
                break
            }
        }
        if let output { return FoundOutput(id, .loaded(output.isEmpty ? nil : output)) }
        if requests.unreadable.contains(id) { throw unreadable(id) }
        if isDropped || self[id.graph].isGone(id.index) {
            let why = "what “\(request.name)” has left is not kept any more"
            throw .invalid(field: "output", why: why)
        }
        // The operation may have ended after the outputs for this message were loaded.
        return FoundOutput(id, hasStore ? .notLoaded : .loaded(nil))
    }

    private mutating func find(
        _ name: String,
        for held: HeldAttempt
    ) throws(Refusal) -> OperationID {
        let graph = held.operation.graph
        guard let id = resolve(name, in: graph) ?? original(of: name, in: graph) else {
            throw .unknownOperation(name: name, namedBy: self.name(of: held.operation).name)
        }
        return id
    }

    private func unreadable(_ id: OperationID) -> Refusal {
        .unreachable("the output of “\(name(of: id).name)” cannot be read from the store")
    }

    /// The output of an operation that finished in an earlier step, if it is in memory.
    func loadedOutput(of id: OperationID) -> Payload? {
        self[id.graph].left(id.index) ?? requests.outputs[id]
    }

    /// The additions that were accepted since the last call, oldest first.
    mutating func takeAdded() -> [Addition] {
        defer { requests.added = [] }
        return requests.added
    }
}

extension CompiledGraph {
    /// The other graphs that its operations depend on.
    ///
    /// - Parameter graph: The graph itself, or the one that these operations are added to; `nil`:
    ///   it has no number yet.
    func graphsNeeded(by graph: GraphID?) -> [GraphID] {
        Set(outer.map(\.on.operation.graph)).filter { $0 != graph }.sorted()
    }
}
