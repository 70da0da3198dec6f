import OperonModel

/// The graphs of a scheduler by their numbers, which are never reused.
///
/// Of a dropped graph the table keeps only the outcomes: usually eight bytes. Read by its number it
/// looks like a graph without operations, and writes to it are lost.
struct GraphTable: Sendable {
    private var states = NumberedTable(absent: GraphState.absent)
    private(set) var dropped = DroppedGraphs()

    /// One more than the highest number.
    var count: Int { states.count }

    var indices: Range<Int> { states.indices }

    /// The most graphs that were kept at any one time: there is room for as many states.
    var placeCount: Int { states.placeCount }

    /// The numbers of the graphs that are kept, ascending. O(graphs kept).
    var kept: [Int] { states.kept }

    func isDropped(_ number: Int) -> Bool { states.isDropped(number) }

    subscript(number: Int) -> GraphState {
        @inline(__always) _read { yield states[number] }
        @inline(__always) _modify { yield &states[number] }
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
    mutating func drop(_ number: Int, _ outcomes: OutcomeRuns) {
        dropped.insert(GraphID(rawValue: UInt32(number)), outcomes)
        states.drop(number)
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
            state: [],
            outcome: [],
            flags: [],
            level: [],
            waiting: [],
            attempt: [],
            ordinal: [],
            retries: [],
            unfinished: 0
        )
        graph.isGone = true
        return graph
    }
}
