import OperonCore
import OperonModel

/// The contents of a coordinator's graphs, by graph number. For a dropped graph the table keeps
/// only the outcomes, usually in eight bytes.
struct ContentsTable: Sendable {
    private var table: NumberedTable<GraphContents>
    private var dropped = DroppedGraphs()

    init(limits: Limits) {
        table = NumberedTable(absent: GraphContents(GraphDescription(name: ""), limits: limits))
    }

    /// One more than the highest number.
    var count: Int { table.count }

    var indices: Range<Int> { table.indices }

    subscript(number: Int) -> GraphContents {
        @inline(__always) _read { yield table[number] }
        @inline(__always) _modify { yield &table[number] }
    }

    mutating func append(_ contents: GraphContents) { table.append(contents) }

    /// Adds a graph that an earlier coordinator dropped.
    mutating func append(dropped outcomes: OutcomeRuns) {
        dropped.insert(GraphID(rawValue: UInt32(table.count)), outcomes)
        table.appendDropped()
    }

    mutating func drop(_ graph: GraphID, _ outcomes: OutcomeRuns) {
        dropped.insert(graph, outcomes)
        table.drop(Int(graph.rawValue))
    }

    /// Whether the operation succeeded and its output was dropped with its graph.
    func isDropped(_ operation: OperationID) -> Bool {
        dropped.outcome(of: operation) == .succeeded
    }
}
