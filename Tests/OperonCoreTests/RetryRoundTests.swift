import OperonCore
import OperonModel
import OperonTestKit
import Testing

struct RetryRoundTests {
    private func retry(
        _ graph: GraphID,
        _ operations: [UInt32] = [],
        cancelled: Bool = false
    ) -> Scheduler.Event {
        .retryRequested(graph, operations: operations, cancelled: cancelled)
    }

    @Test func `what failed, and what was skipped because of it, runs again; the rest stays`()
        throws
    {
        var bench = SchedulerBench()
        bench.join()
        let graph = try bench.submit([
            .nothing("good"), .nothing("bad", after: ["good"]), .nothing("c", after: ["bad"]),
            .nothing("d", after: ["c"]),
        ])
        bench.finish("good")
        bench.finish("bad", .failed(.exit(code: 1)))
        #expect(bench.scheduler.isFinished(graph))
        bench.drain()

        try bench.request(retry(graph))
        let effects = bench.effects
        #expect(
            effects.records.prefix(3) == [
                .reopened(bench.id("bad")), .reopened(bench.id("c")), .reopened(bench.id("d")),
            ]
        )
        #expect(effects.results.first?.affected == 3)
        #expect(!bench.scheduler.isFinished(graph))
        for name in ["bad", "c", "d"] { bench.finish(name) }

        #expect(bench.granted == ["bad", "c", "d"])
        #expect(bench.scheduler.count(of: graph, .succeeded) == 4)
        #expect(bench.scheduler.attemptCount(of: bench.id("bad")) == 2)
        #expect(bench.scheduler.round(of: bench.id("bad")) == 1)
        #expect(bench.effects.notices.contains(.graphFinished(graph)))
    }

    @Test func `a skipped operation stands for what failed before it`() throws {
        var bench = SchedulerBench()
        bench.join()
        let graph = try bench.submit([
            .nothing("a"), .nothing("b"), .nothing("c"), .nothing("other"),
            .nothing("group", after: ["a", "b", "c"]), .nothing("last", after: ["group", "c"]),
        ])
        bench.finish("a")
        for name in ["b", "c", "other"] { bench.finish(name, .failed(.exit(code: 1))) }
        #expect(bench.outcome("last") == .skipped(cause: bench.id("group")))

        try bench.request(retry(graph, [5]))
        #expect(bench.effects.results.first?.affected == 4)
        for name in ["b", "c", "group", "last"] { bench.finish(name) }
        #expect(bench.scheduler.count(of: graph, .succeeded) == 5)
        #expect(bench.outcome("other") == .failed(.exit(code: 1)))
    }

    @Test(arguments: [[2, 1], [1, 2]] as [[UInt32]])
    func `skipped operations are retried or refused in any order`(chosen: [UInt32]) throws {
        var bench = SchedulerBench()
        _ = try bench.submit([.nothing("z")])
        let graph = try bench.submit([
            .nothing("a"), .nothing("y"), .nothing("x", after: ["a", "y"]),
        ])
        try bench.request(
            .dependencyAdded(bench.id("y"), on: bench.id("z"), .unlessFailed)
        )
        bench.join()
        bench.finish("z", .failed(.exit(code: 1)))
        bench.finish("a", .failed(.exit(code: 1)))

        // What “y” was skipped for is in another graph.
        #expect(throws: Refusal.self) { try bench.request(retry(graph, chosen)) }
        try bench.request(retry(graph, [2]))
        #expect(bench.effects.results.last?.affected == 2)
    }

    @Test(.timeLimit(.minutes(1)))
    func `many skipped operations of one chain cost one walk along it`() throws {
        var bench = SchedulerBench()
        bench.join()
        let count = 20_000
        let graph = try bench.submit(
            [.nothing("0")] + (1..<count).map { .nothing("\($0)", after: ["\($0 - 1)"]) }
        )
        bench.finish("0", .failed(.exit(code: 1)))

        // Walking the chain once for each would take 200 million steps.
        try bench.request(retry(graph, (1..<UInt32(count)).reversed()))
        #expect(bench.effects.results.first?.affected == count)
    }

    @Test func `what was skipped because nothing failed is not run again`() throws {
        var bench = SchedulerBench()
        bench.join()
        let graph = try bench.submit([
            .nothing("a"), .nothing("alarm", after: ["a"], .failed),
        ])
        bench.finish("a")
        #expect(throws: Refusal.self) { try bench.request(retry(graph, [1])) }
    }

    @Test func `retries and losses count anew in the next round`() throws {
        var bench = SchedulerBench()
        bench.join()
        let graph = try bench.submit([
            .nothing("a") {
                $0.retry = RetryPolicy(limit: 1, delay: .zero)
            }
        ])
        for _ in 0..<2 { bench.finish("a", .failed(.exit(code: 1))) }
        #expect(bench.outcome("a") == .failed(.exit(code: 1)))

        try bench.request(retry(graph))
        bench.finish("a", .failed(.exit(code: 1)))
        #expect(bench.state("a") == .dispatched)
        bench.finish("a")
        #expect(bench.scheduler.attemptCount(of: bench.id("a")) == 4)
    }

    @Test func `a cancelled graph is cancelled no more for what is reopened`() throws {
        var bench = SchedulerBench()
        bench.join()
        let graph = try bench.submit([.nothing("a"), .nothing("b", after: ["a"])])
        try bench.request(.cancelRequested(.graph(graph), reason: "late", cascade: false))
        #expect(throws: Refusal.self) { try bench.request(retry(graph, cancelled: true)) }
        bench.giveBack("a")
        #expect(bench.scheduler.isFinished(graph))

        try bench.request(retry(graph))
        #expect(bench.scheduler.isFinished(graph))
        try bench.request(retry(graph, cancelled: true))
        bench.finish("a")
        bench.finish("b")
        #expect(bench.scheduler.count(of: graph, .succeeded) == 2)
    }

    @Test func `what succeeded or has not finished cannot be chosen`() throws {
        var bench = SchedulerBench()
        bench.join(slots: 2)
        let graph = try bench.submit([
            .nothing("good"), .nothing("bad"), .nothing("c", after: ["bad"]), .nothing("d"),
        ])
        bench.finish("good")
        bench.finish("bad", .failed(.exit(code: 1)))
        bench.drain()

        for index in [UInt32(0), 3, 4] {
            #expect(throws: Refusal.self) { try bench.request(retry(graph, [index])) }
            #expect(throws: Refusal.self) { try bench.request(retry(graph, [1, index])) }
        }
        #expect(bench.drain().records.isEmpty)
        try bench.request(retry(graph, [1]))
        #expect(bench.state("c") == .pending)
    }

    @Test func `a handler of the failure that no worker has waits for the next round`() throws {
        var bench = SchedulerBench()
        bench.join()
        let graph = try bench.submit([
            .nothing("bad"), .nothing("handler", after: ["bad"], .failed),
        ])
        bench.suspend(.operation(bench.id("handler")))
        bench.finish("bad", .failed(.exit(code: 1)))
        #expect(bench.state("handler") == .ready)

        try bench.request(retry(graph))
        #expect(bench.state("handler") == .pending)
        bench.finish("bad")
        #expect(bench.outcome("handler") == .skipped(cause: bench.id("bad")))
    }

    @Test func `one that a worker had waits only if it comes back`() throws {
        var bench = SchedulerBench()
        bench.join(slots: 2)
        let graph = try bench.submit([
            .nothing("bad"), .nothing("gone", after: ["bad"], .finished),
            .nothing("kept", after: ["bad"], .finished),
        ])
        bench.finish("bad", .failed(.exit(code: 1)))
        bench.start("kept")
        #expect(bench.state("gone") == .dispatched)
        try bench.request(retry(graph))
        bench.giveBack("gone")

        #expect(bench.state("gone") == .pending)
        bench.finish("kept")
        #expect(bench.outcome("kept") == .succeeded)
        bench.finish("bad")
        bench.finish("gone")
        #expect(bench.scheduler.isFinished(graph))
    }

    @Test func `what was skipped in another graph follows`() throws {
        var bench = SchedulerBench()
        bench.join()
        let first = try bench.submit([.nothing("bad")])
        let second = try bench.submit([.nothing("b", after: ["bad"])])
        bench.finish("bad", .failed(.exit(code: 1)))
        #expect(bench.scheduler.isFinished(second))

        try bench.request(retry(first))
        #expect(!bench.scheduler.isFinished(second))
        bench.finish("bad")
        bench.finish("b")
        #expect(bench.scheduler.isFinished(second))
    }
}
