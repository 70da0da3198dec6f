import OperonCore
import OperonModel
import OperonTestKit
import Testing

/// Graphs that grew, changed and were reopened: they go on after a restart as they would have.
struct RecoveredGrowthTests {
    private let graph = GraphID(rawValue: 0)

    private func restart(_ world: inout RestartBench) throws {
        #expect(try world.restart() == nil)
        world.bench.drive(.transportUp)
        world.bench.hello(from: 0, held: world.bench.workers[0].held)
    }

    @Test func `additions, and what was made to wait or not to, are there after each restart`()
        throws
    {
        var world = RestartBench()
        world.bench.join(slots: 8)
        try world.bench.submit([.nothing("a"), .nothing("b", after: ["a"])], open: true)
        try world.bench.submit([.nothing("other", after: ["a"])])
        try restart(&world)
        try world.bench.add([.nothing("c", after: ["b", "other"]), .nothing("d")], to: graph)
        try restart(&world)
        let (b, c) = (world.bench.id("b"), world.bench.id("c"))
        try world.bench.request(.dependencyRemoved(b, on: world.bench.id("a")))
        try world.bench.request(.dependencyAdded(world.bench.id("other"), on: b, .finished))
        try restart(&world)
        try world.bench.add([.nothing("e", after: ["c", "d"])], to: graph)
        try world.bench.request(.dependencyRemoved(c, on: b))
        try world.bench.request(.graphClosed(graph))
        try restart(&world)

        #expect(
            world.bench.scheduler.dependencies(of: c).map(\.operation) == [world.bench.id("other")]
        )
        for name in ["b", "d", "a", "other", "c", "e"] { world.bench.finish(name) }
        #expect(world.bench.scheduler.isFinished(graph))
        #expect(world.bench.scheduler.count(of: graph, .succeeded) == 5)
    }

    @Test func `what was reopened, in whatever graph, waits for its new outcome after a restart`()
        throws
    {
        var world = RestartBench()
        world.bench.join(slots: 8)
        try world.bench.submit([.nothing("bad"), .nothing("b", after: ["bad"], .finished)])
        try world.bench.submit([.nothing("skipped", after: ["bad"])])
        world.bench.finish("bad", .failed(.exit(code: 1)))
        let second = GraphID(rawValue: 1)
        #expect(world.bench.scheduler.isFinished(second))
        try restart(&world)

        try world.bench.request(.retryRequested(graph, operations: [], cancelled: false))
        #expect(world.bench.scheduler.round(of: world.bench.id("skipped")) == 1)
        try restart(&world)
        // It ran by the old outcome; given back, it waits for the new one.
        world.bench.giveBack("b")
        #expect(world.bench.state("b") == .pending)
        try restart(&world)

        for name in ["bad", "b", "skipped"] { world.bench.finish(name) }
        #expect(world.bench.scheduler.isFinished(graph))
        #expect(world.bench.outcome("skipped") == .succeeded)
    }

    @Test func `an idle open graph counts its week on, and is not cancelled by being closed so`()
        throws
    {
        var world = RestartBench()
        world.bench.join()
        try world.bench.submit([.nothing("a")], open: true)
        world.bench.finish("a")
        world.bench.advance(by: .seconds(6 * 86_400))
        #expect(try world.restart() == nil)
        world.bench.advance(by: .seconds(86_401))
        #expect(!world.bench.scheduler.isOpen(graph))

        try world.bench.submit([.nothing("b")], open: true)
        world.bench.drive(.transportUp)
        world.bench.hello(from: 0, connection: 2)
        world.bench.finish("b")
        let second = GraphID(rawValue: 1)
        try world.bench.request(.cancelRequested(.graph(second), reason: "r", cascade: false))
        #expect(!world.bench.scheduler.isCancelled(second))
        #expect(try world.restart() == nil)
    }

    @Test func `what ends already keeps its reason when its dependents are cancelled`() throws {
        var world = RestartBench()
        world.bench.join()
        try world.bench.submit([.nothing("a")])
        try world.bench.submit([.nothing("b", after: ["a"])])
        try world.bench.request(.cancelRequested(.graph(graph), reason: "old", cascade: false))
        world.bench.cancel("a", reason: "new", cascade: true)
        #expect(world.bench.outcome("b") == .cancelled(reason: "new"))
        try restart(&world)

        world.bench.finish("a", .cancelled)
        #expect(world.bench.outcome("a") == .cancelled(reason: "old"))
    }

    // MARK: Queues

    private func settings(_ maximum: Int?, suspended: Bool = false) -> QueueSettings {
        var settings = QueueSettings(name: "q", maxConcurrentOperationCount: maximum)
        settings.priority = .high
        settings.isSuspended = suspended
        return settings
    }

    @Test(arguments: [false, true])
    func `what a command set of a queue counts on, and only that, whatever graphs say`(
        _ restarts: Bool
    ) throws {
        var world = RestartBench()
        func restart() throws {
            if restarts { #expect(try world.restart() == nil) }
        }
        try world.bench.request(.queueLimitSet(queue: "q", maximum: 5))
        world.bench.suspend(.queue("q"))
        world.bench.resume(.queue("q"))
        try restart()
        try world.bench.submit(
            [.nothing("a") { $0.queue = "q" }],
            queues: [settings(1, suspended: true)]
        )
        try restart()
        var queue = try #require(world.bench.scheduler.queueStatus.first { $0.name == "q" })
        #expect(queue.maximum == 5)
        #expect(queue.priority == .high)
        #expect(!queue.isSuspended)

        try world.bench.request(.queuePrioritySet(queue: "q", .low))
        try restart()
        try world.bench.submit([.nothing("b") { $0.queue = "q" }], queues: [settings(2)])
        queue = try #require(world.bench.scheduler.queueStatus.first { $0.name == "q" })
        #expect(queue.priority == .low)
    }

    @Test func `a queue that its graph suspends is so for that reason after a restart`() throws {
        var world = RestartBench()
        try world.bench.submit(
            [.nothing("a") { $0.queue = "q" }],
            queues: [settings(1, suspended: true)]
        )

        #expect(try world.restart() == nil)
        #expect(world.bench.scheduler.suspension(of: .queue("q")) == .ofGraphFile)
    }

    @Test(arguments: [false, true])
    func `what runs, or has failed, has the new priority of its queue when it comes back`(
        _ restarts: Bool
    ) throws {
        var world = RestartBench()
        world.bench.join()
        try world.bench.submit([.nothing("a"), .nothing("b")])
        world.bench.start("a")
        try world.bench.request(.queuePrioritySet(queue: "default", .veryHigh))
        if restarts {
            #expect(try world.restart() == nil)
            world.bench.drive(.transportUp)
            world.bench.hello(from: 0, held: world.bench.workers[0].held)
        }
        #expect(world.bench.scheduler.priority(of: world.bench.id("a")) == .veryHigh)

        world.bench.finish("a", .failed(.exit(code: 1)))
        world.bench.finish("b")
        try world.bench.request(.queuePrioritySet(queue: "default", .low))
        if restarts { #expect(try world.restart() == nil) }
        try world.bench.request(.retryRequested(graph, operations: [], cancelled: false))
        #expect(world.bench.scheduler.priority(of: world.bench.id("a")) == .low)
        #expect(try world.restart() == nil)
    }
}
