import OperonCore
import OperonModel
import OperonTestKit
import Testing

/// Finished graphs that are kept no longer.
struct ForgettingTests {
    private let graph = GraphID(rawValue: 0)

    private func world() throws -> RestartBench {
        var world = RestartBench()
        world.bench.join(slots: 8)
        try world.bench.submit([.nothing("good"), .nothing("bad", after: ["good"])])
        world.bench.finish("good")
        world.bench.finish("bad", .failed(.exit(code: 1)))
        return world
    }

    @Test(arguments: [false, true])
    func `of a graph that is forgotten only its outcomes stay, for whoever depends on them`(
        _ restarts: Bool
    ) throws {
        var world = try world()
        let (good, bad) = (world.bench.id("good"), world.bench.id("bad"))
        try world.forget()
        if restarts {
            #expect(try world.restart() == nil)
            world.bench.drive(.transportUp)
            world.bench.hello(from: 0, held: [])
        }
        let scheduler = world.bench.scheduler
        #expect(scheduler.isGone(graph) && scheduler.isFinished(graph))
        #expect(scheduler.operationCount(of: graph) == 0)
        #expect(scheduler.compiled(graph).policy.isEmpty)
        #expect([good, bad].map { scheduler.outcomeKind(of: $0) } == [.succeeded, .failed])

        try world.bench.submit([.nothing("b", after: ["good"]), .nothing("c", after: ["bad"])])
        world.bench.finish("b")
        #expect(world.bench.outcome("c") == .skipped(cause: bad))
        #expect(try world.restart() == nil)
    }

    @Test func `what something unfinished depends on is kept, and forgotten after it`() throws {
        var world = try world()
        try world.bench.submit([.nothing("b", after: ["good"])])
        world.bench.drive(.graphsForgotten([graph]))
        #expect(!world.bench.scheduler.isGone(graph))

        world.bench.finish("b")
        // The one that depends goes first: what is left is told of nothing any more.
        world.bench.drive(.graphsForgotten([GraphID(rawValue: 1)]))
        try world.bench.request(.retryRequested(graph, operations: [], cancelled: false))
        world.bench.finish("bad")
        world.bench.drive(.graphsForgotten([graph]))
        #expect(world.bench.scheduler.isGone(graph))
        #expect(world.bench.scheduler.isGone(GraphID(rawValue: 1)))
    }

    @Test func `what is gone is neither suspended nor added to nor run again`() throws {
        var world = try world()
        let bad = world.bench.id("bad")
        try world.forget()

        for event: Scheduler.Event in [
            .suspensionRequested(.graph(graph), Suspension()), .graphClosed(graph),
            .suspensionRequested(.operation(bad), Suspension()),
            .retryRequested(graph, operations: [], cancelled: false),
            .retryRequested(graph, operations: [1], cancelled: false),
            .priorityRequested(bad, .high), .dependencyRemoved(bad, on: world.bench.id("good")),
        ] {
            #expect(throws: Refusal.self) { try world.bench.request(event) }
        }
        try world.bench.request(.cancelRequested(.graph(graph), reason: "", cascade: false))
        #expect(try world.keep().records.isEmpty)
    }

    @Test func `times and places in line of what is gone go with it`() throws {
        var world = RestartBench()
        let late = world.bench.now.wall + .seconds(100)
        try world.bench.submit([
            .nothing("a") { $0.deadline = late },
            .nothing("b") { $0.delay = .seconds(50) },
            .nothing("c") { $0.exclusive = ["k"] },
        ])
        let until = Suspension(until: world.bench.now.wall + .seconds(70))
        try world.bench.request(.suspensionRequested(.operation(world.bench.id("a")), until))
        try world.bench.request(.suspensionRequested(.graph(graph), until))
        try world.bench.request(.cancelRequested(.graph(graph), reason: "", cascade: false))
        try world.forget()
        #expect(world.bench.scheduler.isGone(graph))

        world.bench.join()
        try world.bench.submit([.nothing("d")])
        world.bench.finish("d")
        world.bench.advance(by: .seconds(200))
        #expect(world.bench.scheduler.isFinished(GraphID(rawValue: 1)))
    }
}
