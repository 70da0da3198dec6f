import OperonModel
import Testing

struct DroppedGraphsTests {
    private func runs(_ text: String) throws -> OutcomeRuns {
        try #require(OutcomeRuns(text: text))
    }

    @Test func `how operations ended is found by the number of their graph`() throws {
        let texts = ["s1", "f3", "", "s2 f1 k4", "c1000000", "k7", "s1 c1"]
        var dropped = DroppedGraphs()
        for (number, text) in texts.enumerated() {
            dropped.insert(GraphID(rawValue: UInt32(number) * 2), try runs(text))
        }
        for (number, text) in texts.enumerated() {
            let graph = GraphID(rawValue: UInt32(number) * 2)
            let expected = try runs(text)
            #expect(dropped.contains(graph) && dropped[graph] == expected)
            for index in [0, 1, 2, 3, 6, 7, 999_999, 1_000_000] as [UInt32] {
                let operation = OperationID(graph: graph, index: index)
                #expect(dropped.outcome(of: operation) == expected[index])
            }
        }
    }

    @Test func `of a graph that was not dropped nothing is found`() throws {
        var dropped = DroppedGraphs()
        dropped.insert(GraphID(rawValue: 3), try runs("s2"))
        for number: UInt32 in [0, 2, 4, .max] {
            let graph = GraphID(rawValue: number)
            #expect(!dropped.contains(graph) && dropped[graph] == OutcomeRuns())
            #expect(dropped.outcome(of: OperationID(graph: graph, index: 0)) == nil)
        }
    }

    @Test func `a graph is dropped once`() throws {
        var dropped = DroppedGraphs()
        let first = try runs("f2")
        dropped.insert(GraphID(rawValue: 0), first)
        dropped.insert(GraphID(rawValue: 0), try runs("s1"))
        #expect(dropped[GraphID(rawValue: 0)] == first)
    }
}
