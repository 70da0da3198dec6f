import OperonModel

/// The graphs of a scheduler by their numbers, which are never reused.
///
/// Of a dropped graph the table keeps only the outcomes: usually eight bytes. Read by its number it
/// looks like a graph without operations, and writes to it are lost.
///
/// A mutating method of the scheduler reads `operations.state`, and what a large part of a graph
/// computes, such as `operations.indices`, through a method or subscript of this table. It must not
/// say `graphs[graph].operations.indices`: without optimization, Swift 6.3.1 copies the part, ends
/// the access to the graph, and then releases the part where the accessor had it, in memory that is
/// free by then. AddressSanitizer reports it.
struct GraphTable: Sendable {
    private var states = NumberedTable(absent: GraphState.absent)
    private(set) var dropped = DroppedGraphs()

    /// One more than the highest number.
    var count: Int { states.count }

    /// The numbers of all graphs, dropped ones included, ascending.
    var all: some Sequence<GraphID> {
        (0..<UInt32(states.count)).lazy.map { GraphID(rawValue: $0) }
    }

    /// The most graphs that were kept at any one time: there is room for as many states.
    var placeCount: Int { states.placeCount }

    /// The numbers of the graphs that are kept, ascending. O(graphs kept).
    var kept: [GraphID] { states.kept.map { GraphID(rawValue: UInt32($0)) } }

    func isDropped(_ graph: GraphID) -> Bool { states.isDropped(Int(graph.rawValue)) }

    subscript(graph: GraphID) -> GraphState {
        @inline(__always) _read { yield states[Int(graph.rawValue)] }
        @inline(__always) _modify { yield &states[Int(graph.rawValue)] }
    }

    mutating func append(_ graph: GraphState) { states.append(graph) }

    /// Removes the last graph, whose number is then free.
    mutating func removeLast() -> GraphState { states.removeLast() }

    /// Appends a graph that was dropped before this table was created.
    mutating func append(dropped outcomes: OutcomeRuns) {
        dropped.insert(GraphID(rawValue: UInt32(states.count)), outcomes)
        states.appendDropped()
    }

    /// Keeps only the outcomes of a graph's operations.
    mutating func drop(_ graph: GraphID, _ outcomes: OutcomeRuns) {
        dropped.insert(graph, outcomes)
        states.drop(Int(graph.rawValue))
    }
}

// MARK: - Operations

extension GraphTable {
    subscript(state operation: OperationID) -> OperationState {
        @inline(__always) get { self[operation.graph].operations.state[operation.index] }
    }

    subscript(outcome operation: OperationID) -> OutcomeKind? {
        @inline(__always) get { self[operation.graph].operations.outcome[operation.index] }
        @inline(__always) set {
            self[operation.graph].operations.outcome[operation.index] = newValue
        }
    }

    subscript(flags operation: OperationID) -> OperationFlags {
        @inline(__always) get { self[operation.graph].operations.flags[operation.index] }
        @inline(__always) set { self[operation.graph].operations.flags[operation.index] = newValue }
    }

    subscript(level operation: OperationID) -> UInt8 {
        @inline(__always) get { self[operation.graph].operations.level[operation.index] }
        @inline(__always) set { self[operation.graph].operations.level[operation.index] = newValue }
    }

    subscript(waiting operation: OperationID) -> UInt32 {
        @inline(__always) get { self[operation.graph].operations.waiting[operation.index] }
        @inline(__always) set {
            self[operation.graph].operations.waiting[operation.index] = newValue
        }
    }

    subscript(attempt operation: OperationID) -> UInt32 {
        @inline(__always) get { self[operation.graph].operations.attempt[operation.index] }
        @inline(__always) set {
            self[operation.graph].operations.attempt[operation.index] = newValue
        }
    }

    subscript(ordinal operation: OperationID) -> UInt32 {
        @inline(__always) get { self[operation.graph].operations.ordinal[operation.index] }
        @inline(__always) set {
            self[operation.graph].operations.ordinal[operation.index] = newValue
        }
    }

    subscript(retries operation: OperationID) -> UInt16 {
        @inline(__always) get { self[operation.graph].operations.retries[operation.index] }
        @inline(__always) set {
            self[operation.graph].operations.retries[operation.index] = newValue
        }
    }

    @inline(__always) func indices(of graph: GraphID) -> Range<UInt32> {
        self[graph].operations.indices
    }

    /// The dependents of the first tables; `addedDependents` has the others.
    @inline(__always) func dependents(of operation: OperationID) -> ArraySlice<Edge> {
        self[operation.graph].compiled.topology.dependents(of: operation.index)
    }

    @inline(__always) func addedDependents(of operation: OperationID) -> AddedDependents.List {
        self[operation.graph].compiled.topology.addedDependents(of: operation.index)
    }

    /// Its policy, in place: `policy(of:)` copies it.
    subscript(policy operation: OperationID) -> OperationPolicy {
        @inline(__always) _read {
            let place = self[operation.graph].compiled.policy[Int(operation.index)]
            yield self[operation.graph].compiled.policies[Int(place)]
        }
    }

    /// Changes an operation's state: see `OperationTable.move`.
    @inline(__always) mutating func move(_ operation: OperationID, to next: OperationState) {
        self[operation.graph].operations.move(operation.index, to: next)
    }

    func policy(of operation: OperationID) -> OperationPolicy {
        self[operation.graph].policy(operation.index)
    }

    func rule(of operation: OperationID) -> PolicyRule {
        self[operation.graph].rule(operation.index)
    }

    /// See `CompiledGraph.rank`.
    @inline(__always) func rank(of operation: OperationID) -> UInt64 {
        self[operation.graph].compiled.rank[Int(operation.index)]
    }

    /// See `CompiledGraph.bytes`.
    func byteCount(of operation: OperationID) -> Int {
        let isEmpty = self[operation.graph].compiled.bytes.isEmpty
        return isEmpty ? 0 : Int(self[operation.graph].compiled.bytes[Int(operation.index)])
    }

    func queue(of operation: OperationID) -> Int { rule(of: operation).queue }

    func kind(of operation: OperationID) -> Int { rule(of: operation).kind }

    func urgency(of operation: OperationID) -> UInt8 {
        self[operation.graph].urgency(operation.index)
    }
}

extension GraphState {
    /// What a dropped graph looks like to a reader.
    static var absent: GraphState {
        var graph = GraphState(
            compiled: CompiledGraph(
                name: "",
                topology: GraphTopology(dependencyOffsets: [0], dependencyEdges: []),
                queues: [],
                kinds: [],
                keys: [],
                policies: [],
                policy: [],
                rank: []
            ),
            rules: [],
            keys: [],
            submittedAt: Moment(monotonic: .zero, wall: WallTime(nanosecondsSince1970: 0)),
            operations: OperationTable(levels: []),
            unfinished: 0
        )
        graph.isGone = true
        return graph
    }
}
