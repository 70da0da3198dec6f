import OperonCore
import OperonModel
import OperonTestKit
import Testing

/// Graphs that grew, changed and were reopened: they go on after a restart as they would have.
struct RecoveredGrowthTests {
    private let graph = GraphID(rawValue: 0)

    private func restart(_ coordinator: inout RestartBench) throws {
        #expect(try coordinator.restart() == nil)
        coordinator.bench.drive(.transportUp)
        coordinator.bench.hello(from: 0, held: coordinator.bench.workers[0].held)
    }

    @Test func `additions, and what was made to wait or not to, are there after each restart`()
        throws
    {
        var coordinator = RestartBench()
        coordinator.bench.join(slots: 8)
        try coordinator.bench.submit([.nothing("a"), .nothing("b", after: ["a"])], open: true)
        try coordinator.bench.submit([.nothing("other", after: ["a"])])
        try restart(&coordinator)
        try coordinator.bench.add(
            [.nothing("c", after: ["b", "other"]), .nothing("d")],
            to: graph
        )
        try restart(&coordinator)
        let (b, c) = (coordinator.bench.id("b"), coordinator.bench.id("c"))
        try coordinator.bench.request(.dependencyRemoved(b, on: coordinator.bench.id("a")))
        try coordinator.bench.request(
            .dependencyAdded(coordinator.bench.id("other"), on: b, .finished)
        )
        try restart(&coordinator)
        try coordinator.bench.add([.nothing("e", after: ["c", "d"])], to: graph)
        try coordinator.bench.request(.dependencyRemoved(c, on: b))
        try coordinator.bench.request(.graphClosed(graph))
        try restart(&coordinator)

        #expect(
            coordinator.bench.scheduler.dependencies(of: c).map(\.operation) == [
                coordinator.bench.id("other")
            ]
        )
        for name in ["b", "d", "a", "other", "c", "e"] { coordinator.bench.finish(name) }
        #expect(coordinator.bench.scheduler.isFinished(graph))
        #expect(coordinator.bench.scheduler.count(of: graph, .succeeded) == 5)
    }

    @Test func `what was reopened, in whatever graph, waits for its new outcome after a restart`()
        throws
    {
        var coordinator = RestartBench()
        coordinator.bench.join(slots: 8)
        try coordinator.bench.submit([.nothing("bad"), .nothing("b", after: ["bad"], .finished)])
        try coordinator.bench.submit([.nothing("skipped", after: ["bad"])])
        coordinator.bench.finish("bad", .failed(.exit(code: 1)))
        let second = GraphID(rawValue: 1)
        #expect(coordinator.bench.scheduler.isFinished(second))
        try restart(&coordinator)

        try coordinator.bench.request(.retryRequested(graph, operations: [], cancelled: false))
        #expect(coordinator.bench.scheduler.round(of: coordinator.bench.id("skipped")) == 1)
        try restart(&coordinator)
        // It ran by the old outcome; given back, it waits for the new one.
        coordinator.bench.giveBack("b")
        #expect(coordinator.bench.state("b") == .pending)
        try restart(&coordinator)

        for name in ["bad", "b", "skipped"] { coordinator.bench.finish(name) }
        #expect(coordinator.bench.scheduler.isFinished(graph))
        #expect(coordinator.bench.outcome("skipped") == .succeeded)
    }

    @Test func `an idle open graph counts its week on, and is not cancelled by being closed so`()
        throws
    {
        var coordinator = RestartBench()
        coordinator.bench.join()
        try coordinator.bench.submit([.nothing("a")], open: true)
        coordinator.bench.finish("a")
        coordinator.bench.advance(by: .seconds(6 * 86_400))
        #expect(try coordinator.restart() == nil)
        coordinator.bench.advance(by: .seconds(86_401))
        #expect(!coordinator.bench.scheduler.isOpen(graph))

        try coordinator.bench.submit([.nothing("b")], open: true)
        coordinator.bench.drive(.transportUp)
        coordinator.bench.hello(from: 0, connection: 2)
        coordinator.bench.finish("b")
        let second = GraphID(rawValue: 1)
        try coordinator.bench.request(.cancelRequested(.graph(second), reason: "r", cascade: false))
        #expect(!coordinator.bench.scheduler.isCancelled(second))
        #expect(try coordinator.restart() == nil)
    }

    @Test func `what ends already keeps its reason when its dependents are cancelled`() throws {
        var coordinator = RestartBench()
        coordinator.bench.join()
        try coordinator.bench.submit([.nothing("a")])
        try coordinator.bench.submit([.nothing("b", after: ["a"])])
        try coordinator.bench.request(
            .cancelRequested(.graph(graph), reason: "old", cascade: false)
        )
        coordinator.bench.cancel("a", reason: "new", cascade: true)
        #expect(coordinator.bench.outcome("b") == .cancelled(reason: "new"))
        try restart(&coordinator)

        coordinator.bench.finish("a", .cancelled)
        #expect(coordinator.bench.outcome("a") == .cancelled(reason: "old"))
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
        var coordinator = RestartBench()
        func restart() throws {
            if restarts { #expect(try coordinator.restart() == nil) }
        }
        try coordinator.bench.request(.queueLimitSet(queue: "q", maximum: 5))
        coordinator.bench.suspend(.queue("q"))
        coordinator.bench.resume(.queue("q"))
        try restart()
        try coordinator.bench.submit(
            [.nothing("a") { $0.queue = "q" }],
            queues: [settings(1, suspended: true)]
        )
        try restart()
        var queue = try #require(coordinator.bench.scheduler.queueStatus.first { $0.name == "q" })
        #expect(queue.maximum == 5)
        #expect(queue.priority == .high)
        #expect(!queue.isSuspended)

        try coordinator.bench.request(.queuePrioritySet(queue: "q", .low))
        try restart()
        try coordinator.bench.submit([.nothing("b") { $0.queue = "q" }], queues: [settings(2)])
        queue = try #require(coordinator.bench.scheduler.queueStatus.first { $0.name == "q" })
        #expect(queue.priority == .low)
    }

    @Test func `a queue that its graph suspends is so for that reason after a restart`() throws {
        var coordinator = RestartBench()
        try coordinator.bench.submit(
            [.nothing("a") { $0.queue = "q" }],
            queues: [settings(1, suspended: true)]
        )

        #expect(try coordinator.restart() == nil)
        #expect(coordinator.bench.scheduler.suspension(of: .queue("q")) == .ofGraphFile)
    }

    @Test(arguments: [false, true])
    func `what runs, or has failed, has the new priority of its queue when it comes back`(
        _ restarts: Bool
    ) throws {
        var coordinator = RestartBench()
        coordinator.bench.join()
        try coordinator.bench.submit([.nothing("a"), .nothing("b")])
        coordinator.bench.start("a")
        try coordinator.bench.request(.queuePrioritySet(queue: "default", .veryHigh))
        if restarts {
            #expect(try coordinator.restart() == nil)
            coordinator.bench.drive(.transportUp)
            coordinator.bench.hello(from: 0, held: coordinator.bench.workers[0].held)
        }
        #expect(coordinator.bench.scheduler.priority(of: coordinator.bench.id("a")) == .veryHigh)

        coordinator.bench.finish("a", .failed(.exit(code: 1)))
        coordinator.bench.finish("b")
        try coordinator.bench.request(.queuePrioritySet(queue: "default", .low))
        if restarts { #expect(try coordinator.restart() == nil) }
        try coordinator.bench.request(.retryRequested(graph, operations: [], cancelled: false))
        #expect(coordinator.bench.scheduler.priority(of: coordinator.bench.id("a")) == .low)
        #expect(try coordinator.restart() == nil)
    }
}
