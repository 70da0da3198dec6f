import OperonCore
import OperonModel
import OperonTestKit
import Testing

/// Finished graphs that are kept no longer.
struct ForgettingTests {
    private let graph = GraphID(rawValue: 0)

    private func coordinator() throws -> RestartBench {
        var coordinator = RestartBench()
        coordinator.bench.join(slots: 8)
        try coordinator.bench.submit([.nothing("good"), .nothing("bad", after: ["good"])])
        coordinator.bench.finish("good")
        coordinator.bench.finish("bad", .failed(.exit(code: 1)))
        return coordinator
    }

    @Test(arguments: [false, true])
    func `of a graph that is forgotten only its outcomes stay, for whoever depends on them`(
        _ restarts: Bool
    ) throws {
        var coordinator = try coordinator()
        let (good, bad) = (coordinator.bench.id("good"), coordinator.bench.id("bad"))
        try coordinator.forget()
        if restarts {
            #expect(try coordinator.restart() == nil)
            coordinator.bench.drive(.transportUp)
            coordinator.bench.hello(from: 0, held: [])
        }
        let scheduler = coordinator.bench.scheduler
        #expect(scheduler.isGone(graph) && scheduler.isFinished(graph))
        #expect(scheduler.operationCount(of: graph) == 0)
        #expect(scheduler.compiled(graph).policy.isEmpty)
        #expect([good, bad].map { scheduler.outcomeKind(of: $0) } == [.succeeded, .failed])

        try coordinator.bench.submit([
            .nothing("b", after: ["good"]), .nothing("c", after: ["bad"]),
        ])
        coordinator.bench.finish("b")
        #expect(coordinator.bench.outcome("c") == .skipped(cause: bad))
        #expect(try coordinator.restart() == nil)
    }

    @Test func `what something unfinished depends on is kept, and forgotten after it`() throws {
        var coordinator = try coordinator()
        try coordinator.bench.submit([.nothing("b", after: ["good"])])
        coordinator.bench.drive(.graphsForgotten([graph]))
        #expect(!coordinator.bench.scheduler.isGone(graph))

        coordinator.bench.finish("b")
        // The one that depends goes first: what is left is told of nothing any more.
        coordinator.bench.drive(.graphsForgotten([GraphID(rawValue: 1)]))
        try coordinator.bench.request(.retryRequested(graph, operations: [], cancelled: false))
        coordinator.bench.finish("bad")
        coordinator.bench.drive(.graphsForgotten([graph]))
        #expect(coordinator.bench.scheduler.isGone(graph))
        #expect(coordinator.bench.scheduler.isGone(GraphID(rawValue: 1)))
    }

    @Test func `what is gone is neither suspended nor added to nor run again`() throws {
        var coordinator = try coordinator()
        let bad = coordinator.bench.id("bad")
        try coordinator.forget()

        for event: Scheduler.Event in [
            .suspensionRequested(.graph(graph), Suspension()), .graphClosed(graph),
            .suspensionRequested(.operation(bad), Suspension()),
            .retryRequested(graph, operations: [], cancelled: false),
            .retryRequested(graph, operations: [1], cancelled: false),
            .priorityRequested(bad, .high),
            .dependencyRemoved(bad, on: coordinator.bench.id("good")),
        ] {
            #expect(throws: Refusal.self) { try coordinator.bench.request(event) }
        }
        try coordinator.bench.request(.cancelRequested(.graph(graph), reason: "", cascade: false))
        #expect(try coordinator.keep().records.isEmpty)
    }

    @Test func `times and places in line of what is gone go with it`() throws {
        var coordinator = RestartBench()
        let late = coordinator.bench.now.wall + .seconds(100)
        try coordinator.bench.submit([
            .nothing("a") { $0.deadline = late },
            .nothing("b") { $0.delay = .seconds(50) },
            .nothing("c") { $0.exclusive = ["k"] },
        ])
        let until = Suspension(until: coordinator.bench.now.wall + .seconds(70))
        try coordinator.bench.request(
            .suspensionRequested(.operation(coordinator.bench.id("a")), until)
        )
        try coordinator.bench.request(.suspensionRequested(.graph(graph), until))
        try coordinator.bench.request(.cancelRequested(.graph(graph), reason: "", cascade: false))
        try coordinator.forget()
        #expect(coordinator.bench.scheduler.isGone(graph))

        coordinator.bench.join()
        try coordinator.bench.submit([.nothing("d")])
        coordinator.bench.finish("d")
        coordinator.bench.advance(by: .seconds(200))
        #expect(coordinator.bench.scheduler.isFinished(GraphID(rawValue: 1)))
    }
}
