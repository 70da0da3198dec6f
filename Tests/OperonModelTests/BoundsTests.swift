import Testing

@testable import OperonModel

/// What clients and workers that are bound may submit and add.
struct BoundsTests {
    private static func graph(_ queue: String) -> GraphDescription {
        var operation = OperationDescription(
            name: "a",
            work: .command(CommandDescription(arguments: ["true"]))
        )
        operation.queue = queue
        return GraphDescription(name: "g", operations: [operation])
    }

    @Test("a worker that is bound to queues adds no settings of others, and none of keys")
    func senderRights() throws {
        let rights = SenderRights(queues: ["small"], kinds: [])
        var graph = Self.graph("small")
        graph.queues = [QueueSettings(name: "small", maxConcurrentOperationCount: 1)]
        try rights.check(addition: graph)
        #expect(throws: Refusal.self) { try rights.check(addition: Self.graph("large")) }
        graph.queues = [QueueSettings(name: "large", maxConcurrentOperationCount: 1)]
        #expect(throws: Refusal.self) { try rights.check(addition: graph) }
        graph.queues = []
        graph.keys = [KeySettings(name: "database", limit: 1_000)]
        #expect(throws: Refusal.self) { try rights.check(addition: graph) }
        // One that is bound to kinds alone is in all queues.
        try SenderRights(queues: [], kinds: ["k"]).check(addition: graph)
    }

    @Test("a client cancels no siblings that others have submitted")
    func siblings() {
        let other = OperationID(graph: GraphID(rawValue: 7), index: 0)
        var graph = Self.graph("small")
        var dependency = DependencyDescription("other/a")
        dependency.resolvedID = other
        graph.operations[0].dependencies = [dependency]
        let bounds = SubmitterBounds(queues: nil, mayCancelOthers: false)
        func objection(_ bounds: SubmitterBounds, owns: Bool = false) -> String? {
            bounds.objection(to: graph) { _ in owns }
        }
        #expect(objection(bounds) == nil)
        graph.operations[0].cancelSiblings = true
        #expect(objection(bounds)?.contains("“other/a”") == true)
        #expect(objection(bounds, owns: true) == nil)
        #expect(objection(.none) == nil)
        #expect(objection(SubmitterBounds(queues: ["large"], mayCancelOthers: true)) != nil)
    }
}
