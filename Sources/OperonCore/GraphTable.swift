import OperonModel

/// The graphs of a scheduler, by their numbers, which are never given again.
///
/// Of a graph that was dropped the table keeps its outcomes and nothing else: eight bytes as a
/// rule. Read by its number it looks like a graph without operations; what is written to it is
/// lost.
struct GraphTable: Sendable {
    private var states = NumberedTable(absent: GraphState.absent)
    private(set) var dropped = DroppedGraphs()

    /// One more than the highest number.
    var count: Int { states.count }

    var indices: Range<Int> { states.indices }

    /// As many as were kept at once at most: those have room for their states.
    var placeCount: Int { states.placeCount }

    /// Numbers of those that are kept, ascending. O(graphs kept).
    var kept: [Int] { states.kept }

    func isDropped(_ number: Int) -> Bool { states.isDropped(number) }

    subscript(number: Int) -> GraphState {
        @inline(__always) _read { yield states[number] }
        @inline(__always) _modify { yield &states[number] }
    }

    mutating func append(_ graph: GraphState) { states.append(graph) }

    /// Takes the last graph out again, whose number is then free.
    mutating func removeLast() -> GraphState { states.removeLast() }

    /// A graph that was dropped before this table was made.
    mutating func append(dropped outcomes: OutcomeRuns) {
        dropped.insert(GraphID(rawValue: UInt32(states.count)), outcomes)
        states.appendDropped()
    }

    /// Keeps nothing of a graph but how its operations ended.
    mutating func drop(_ number: Int, _ outcomes: OutcomeRuns) {
        dropped.insert(GraphID(rawValue: UInt32(number)), outcomes)
        states.drop(number)
    }
}

extension GraphState {
    /// What a dropped graph looks like.
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
