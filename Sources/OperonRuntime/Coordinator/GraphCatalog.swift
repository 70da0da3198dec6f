import DequeModule
import OperonCore
import OperonModel

/// Everything that a coordinator knows of its graphs and that the scheduler does not need: names,
/// contents, outputs, who submitted them, and under which key. Owned by the coordinator's service.
///
/// The name and the outcomes of a dropped graph stay, for dependencies that name it. They usually
/// take 16 bytes, plus one copy of each name, however many graphs share it.
struct GraphCatalog: Sendable {
    /// Who submitted a graph, and when.
    struct Submission: Sendable {
        var submitter = ""
        var submittedAt = WallTime(nanosecondsSince1970: 0)
        /// When everything in it was finished; `nil`: not yet.
        var finishedAt: WallTime?
        /// Whether everything in it had finished before a retry, too.
        var hadFinished = false
    }

    /// The earlier use of an idempotency key.
    struct Use: Sendable {
        let graph: GraphID
        /// The number of the first operation that was submitted or added.
        let first: UInt32
        let hash: ContentHash
    }

    private struct Entry: Sendable {
        var contents: GraphContents
        var submission = Submission()
        /// The owned key under which the graph was submitted; `nil`: none.
        var key: String?
        /// The keys of the most recent additions; `nil`: none had a key.
        var additions: AdditionUses?
    }

    /// The keys of the most recent additions to one graph.
    private struct AdditionUses: Sendable {
        /// Only looked up.
        var byKey: [String: Use] = [:]
        /// The keys, oldest first.
        var order = Deque<String>()
    }

    let limits: Limits
    /// Whether a store has the outputs that are not in memory.
    let hasStore: Bool
    /// What the requests of running operations that are being handled need.
    var requests = Requests()
    /// What a submitter may not do.
    var boundsOfSubmitter: @Sendable (_ name: String) -> SubmitterBounds = { _ in .none }
    private var entries: NumberedTable<Entry>
    private var dropped = DroppedGraphs()
    /// The index in `names`, by graph number.
    private var nameNumbers: [UInt32] = []
    /// Each name once.
    private var names: [String] = []
    /// The newest graph of each name.
    private var newest: [GraphID] = []
    /// The index of a name in `names`. Only looked up.
    private var byName: [String: UInt32] = [:]
    /// Only looked up.
    private var uses: [String: Use] = [:]

    init(limits: Limits, hasStore: Bool) {
        self.limits = limits
        self.hasStore = hasStore
        let nothing = GraphContents(GraphDescription(name: ""), limits: limits)
        entries = NumberedTable(absent: Entry(contents: nothing))
    }

    // MARK: - Graphs

    /// One more than the highest number.
    var count: Int { entries.count }

    /// The number that the next graph gets. Those of dropped graphs are not given again.
    var next: GraphID { GraphID(rawValue: UInt32(count)) }

    /// The graphs that are kept, oldest first.
    var keptGraphs: [GraphID] { entries.kept.map { GraphID(rawValue: UInt32($0)) } }

    func contains(_ graph: GraphID) -> Bool { Int(graph.rawValue) < entries.count }

    func isDropped(_ graph: GraphID) -> Bool { entries.isDropped(Int(graph.rawValue)) }

    /// The contents of a graph; empty for a dropped graph.
    subscript(graph: GraphID) -> GraphContents {
        @inline(__always) _read { yield entries[Int(graph.rawValue)].contents }
        @inline(__always) _modify { yield &entries[Int(graph.rawValue)].contents }
    }

    /// What an operation is, as it was submitted or added.
    subscript(description operation: OperationID) -> OperationDescription {
        self[operation.graph].operations[Int(operation.index)]
    }

    func name(of graph: GraphID) -> String { names[Int(nameNumbers[Int(graph.rawValue)])] }

    /// Of a dropped graph nothing is known.
    func submission(of graph: GraphID) -> Submission { entries[Int(graph.rawValue)].submission }

    /// Finds a graph by `@latest`, number or name; a name finds its newest graph.
    func find(_ selector: String) -> GraphID? {
        if selector == "@latest" {
            return entries.lastKept.map { GraphID(rawValue: UInt32($0)) }
        }
        if let number = UInt32(selector), Int(number) < count {
            return GraphID(rawValue: number)
        }
        return byName[selector].map { newest[Int($0)] }
    }

    /// Adds a graph. `began` registers the outputs of other graphs that its operations take.
    mutating func append(_ name: String, _ contents: GraphContents, _ submission: Submission) {
        append(name: name)
        var contents = contents
        if !hasStore { contents.keepSpareOutputs(bytesMax: limits.cachedBytes) }
        entries.append(Entry(contents: contents, submission: submission))
    }

    /// Adds a graph that an earlier coordinator dropped.
    mutating func append(droppedNamed name: String, _ outcomes: OutcomeRuns) {
        dropped.insert(GraphID(rawValue: UInt32(count)), outcomes)
        append(name: name)
        entries.appendDropped()
    }

    private mutating func append(name: String) {
        let graph = GraphID(rawValue: UInt32(count))
        let number = byName[name] ?? UInt32(names.count)
        nameNumbers.append(number)
        guard byName[name] == nil else {
            newest[Int(number)] = graph
            return
        }
        byName[name] = number
        names.append(name)
        newest.append(graph)
    }

    /// Forgets everything about a dropped graph but its name and its outcomes. Its keys may be used
    /// again.
    mutating func drop(_ graph: GraphID, _ outcomes: OutcomeRuns) {
        let number = Int(graph.rawValue)
        if let key = entries[number].key, uses[key]?.graph == graph { uses[key] = nil }
        dropped.insert(graph, outcomes)
        entries.drop(number)
    }

    /// Whether the operation succeeded and its output, if it left one, was dropped with its graph.
    func hasDroppedOutput(_ operation: OperationID) -> Bool {
        dropped.outcome(of: operation) == .succeeded
    }

    mutating func finished(_ graph: GraphID, at time: WallTime) {
        let number = Int(graph.rawValue)
        entries[number].submission.hadFinished = entries[number].submission.finishedAt != nil
        entries[number].submission.finishedAt = time
    }

    // MARK: - Keys

    /// Keeps the key under which these operations were submitted or added, if they have one. Of the
    /// keys of additions, the most recent `Limits.additionKeys` of each graph are kept.
    mutating func keepKey(of kept: StoredContents, _ hash: ContentHash, isAddition: Bool) {
        guard !kept.idempotencyKey.isEmpty else { return }
        let number = Int(kept.graph.rawValue)
        let key = Self.owned(kept.idempotencyKey, by: kept.submitter)
        let use = Use(graph: kept.graph, first: kept.first, hash: hash)
        guard isAddition else {
            uses[key] = use
            entries[number].key = key
            return
        }
        var additions = entries[number].additions ?? AdditionUses()
        // Gives up the second reference, so that nothing is copied.
        entries[number].additions = nil
        if additions.byKey.updateValue(use, forKey: key) == nil { additions.order.append(key) }
        if additions.order.count > limits.additionKeys, let oldest = additions.order.popFirst() {
            additions.byKey[oldest] = nil
        }
        entries[number].additions = additions
    }

    /// - Parameter graph: The graph that operations were added to under the key; `nil`: it was
    ///   submitted.
    func use(of key: String, by client: String, addedTo graph: GraphID? = nil) -> Use? {
        let key = Self.owned(key, by: client)
        guard let graph else { return uses[key] }
        return entries[Int(graph.rawValue)].additions?.byKey[key]
    }

    /// How many graphs were submitted with such a key, and without a client's name.
    func useCount(of isMeant: (Substring) -> Bool) -> Int {
        let start = Self.owned("", by: "")
        var graphs: Set<GraphID> = []
        for (key, use) in uses where key.hasPrefix(start) {
            if isMeant(key.dropFirst(start.count)) { graphs.insert(use.graph) }
        }
        return graphs.count
    }

    /// Qualifies a key with its client, so that equal keys of two clients do not collide.
    private static func owned(_ key: String, by client: String) -> String {
        client + "\u{0}" + key
    }

    // MARK: - Operations

    /// Whether there is or was such an operation. Of a dropped graph the outcomes are known.
    func knows(_ operation: OperationID) -> Bool {
        contains(operation.graph)
            && (Int(operation.index) < self[operation.graph].operations.count
                || dropped.outcome(of: operation) != nil)
    }

    /// The queue that an operation was submitted to; `nil`: the operation is not known any more.
    func queue(of operation: OperationID) -> String? {
        guard contains(operation.graph) else { return nil }
        let index = Int(operation.index)
        guard index < self[operation.graph].operations.count else { return nil }
        return self[operation.graph].operations.queue(of: index)
    }

    func name(of operation: OperationID) -> OperationName {
        let operations = self[operation.graph].operations
        let index = Int(operation.index)
        return OperationName(
            graph: operation.graph.rawValue,
            index: operation.index,
            // A dropped graph has no operation names any more.
            name: index < operations.count ? operations.name(of: index) : "\(index)"
        )
    }

    /// The operation that is named by a dependency of an operation of this graph, or by a request.
    mutating func resolve(_ name: String, in graph: GraphID?) -> OperationID? {
        if let graph, let index = self[graph].number(of: name) {
            return OperationID(graph: graph, index: index)
        }
        // A worker that is limited learns nothing of other graphs.
        guard requests.rights == nil, let slash = name.firstIndex(of: "/"),
            let other = find(String(name[..<slash])), other != graph
        else { return nil }
        let operation = String(name[name.index(after: slash)...])
        if let numbered = Self.numbered(operation) {
            let id = OperationID(graph: other, index: numbered.index)
            // Looks up one name, not all. A dropped graph has no names to compare.
            if knows(id), isDropped(other) || self.name(of: id).name == numbered.name { return id }
        }
        if let index = self[other].number(of: operation) {
            return OperationID(graph: other, index: index)
        }
        guard let index = UInt32(operation) else { return nil }
        let id = OperationID(graph: other, index: index)
        return knows(id) ? id : nil
    }

    /// Splits `7/merge`: number 7 finds the operation even after its graph was dropped; the name is
    /// there for human readers.
    private static func numbered(_ operation: String) -> (index: UInt32, name: Substring)? {
        guard let slash = operation.firstIndex(of: "/"), let index = UInt32(operation[..<slash])
        else { return nil }
        return (index, operation[operation.index(after: slash)...])
    }

    /// The operation of an earlier form of a graph for which the one of this name stands, and whose
    /// output counts; `nil`: it stands for none.
    mutating func original(of name: String, in graph: GraphID) -> OperationID? {
        if let number = self[graph].number(of: name) { return self[graph].original(of: number) }
        // Elements that were found at run time are in the graph in which they were added.
        guard let group = RepeatedNames.group(ofElement: name),
            let number = self[graph].number(of: group + RepeatedNames.addingSuffix),
            let adding = self[graph].original(of: number), contains(adding.graph),
            let element = self[adding.graph].number(of: name),
            self[adding.graph].parent(of: element) == adding.index
        else { return nil }
        return OperationID(graph: adding.graph, index: element)
    }

    /// Resolves the dependencies on other graphs to numbers, because newer graphs may take over the
    /// names of the others. A number before an operation name is removed once it has been resolved.
    mutating func resolved(
        _ description: GraphDescription,
        in graph: GraphID?
    ) -> GraphDescription {
        let own = Set(description.operations.map(\.name))
        var description = description
        for index in description.operations.indices {
            for place in description.operations[index].dependencies.indices {
                let dependency = description.operations[index].dependencies[place]
                let name = dependency.name
                if !own.contains(name), !dependency.takesElements, dependency.resolvedID == nil,
                    let graph, let original = original(of: name, in: graph)
                {
                    description.operations[index].dependencies[place].resolvedID = original
                    continue
                }
                guard name.contains("/"), !own.contains(name),
                    let found = resolve(name, in: graph), found.graph != graph
                else { continue }
                description.operations[index].dependencies[place].resolvedID = found
                let graph = name.prefix { $0 != "/" }
                let operation = String(name.dropFirst(graph.count + 1))
                guard let numbered = Self.numbered(operation), numbered.index == found.index,
                    self.name(of: found).name != operation
                else { continue }
                description.operations[index].dependencies[place].name =
                    "\(graph)/\(numbered.name)"
            }
        }
        return description
    }
}
