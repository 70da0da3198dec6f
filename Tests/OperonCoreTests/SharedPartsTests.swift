import OperonModel
import OperonTestKit
import Testing

@testable import OperonCore

/// Graphs with equal parts share the memory of them.
struct SharedPartsTests {
    private func compiled(_ count: Int, queue: String = "one") throws -> CompiledGraph {
        let operations = (0..<count).map { index in
            var operation = OperationDescription(name: "o\(index)", work: .nothing)
            operation.queue = queue
            // A policy of its own.
            operation.expectedDuration = .seconds(index + 1)
            return operation
        }
        return try CompiledGraph.compile(GraphDescription(name: "g", operations: operations))
    }

    private func place(_ compiled: CompiledGraph) -> UnsafePointer<OperationPolicy>? {
        compiled.policies.withUnsafeBufferPointer { $0.baseAddress }
    }

    @Test func `equal graphs have one copy of their policies`() throws {
        var parts = SharedParts()
        var rules: [PolicyRule] = []
        var (first, second, other) = (try compiled(3), try compiled(3), try compiled(2))
        #expect(place(first) != place(second))
        parts.share(&first, &rules)
        parts.share(&other, &rules)
        parts.share(&second, &rules)
        #expect(place(first) == place(second))
        #expect(place(first) != place(other))
        #expect(other.policies == (try compiled(2)).policies)
    }

    @Test func `a graph keeps its parts, however many others there are`() throws {
        var parts = SharedParts()
        var rules: [PolicyRule] = []
        for number in 0..<200 {
            var graph = try compiled(2, queue: "q\(number)")
            parts.share(&graph, &rules)
            #expect(graph.queues.map(\.name) == ["q\(number)"])
            #expect(graph.policies == (try compiled(2)).policies)
        }
    }

    @Test func `graphs of a scheduler have one copy, after a restart too`() throws {
        var coordinator = RestartBench()
        try coordinator.bench.submit([.nothing("a"), .nothing("b", after: ["a"])])
        try coordinator.bench.submit([.nothing("c"), .nothing("d", after: ["c"])])
        func places() -> [UnsafePointer<OperationPolicy>?] {
            (0..<2).map {
                coordinator.bench.scheduler.policies(of: GraphID(rawValue: $0))
                    .withUnsafeBufferPointer { $0.baseAddress }
            }
        }
        #expect(places()[0] == places()[1])
        try coordinator.restart()
        #expect(places()[0] == places()[1])
    }

    @Test func `large graphs are left alone`() throws {
        var parts = SharedParts()
        var rules: [PolicyRule] = []
        var (first, second) = (try compiled(100), try compiled(100))
        parts.share(&first, &rules)
        parts.share(&second, &rules)
        #expect(place(first) != place(second))
    }
}
