import OperonCore
import OperonModel
import OperonTestKit
import Testing

struct SuspensionTests {
    enum Scope: CaseIterable {
        case operation
        case graph
        case queue
    }

    static func target(_ scope: Scope, _ bench: SchedulerBench) -> Scheduler.Target {
        switch scope {
        case .operation: .operation(bench.id("a"))
        case .graph: .graph(bench.id("a").graph)
        case .queue: .queue("default")
        }
    }

    @Test(arguments: Scope.allCases)
    func `what is suspended before it is released does not start until it is resumed`(
        _ scope: Scope
    ) throws {
        var bench = SchedulerBench()
        bench.join(slots: 2)
        try bench.submit([
            .nothing("first") { $0.queue = "other" }, .nothing("a", after: ["first"]),
        ])
        let target = Self.target(scope, bench)
        bench.suspend(target)
        bench.drain()

        if bench.state("first") == .dispatched { bench.finish("first") }
        #expect(bench.state("a") == .ready)
        #expect(bench.granted.isEmpty)

        bench.drain()
        bench.resume(target)
        let effects = bench.drain()
        #expect(effects.records.first == .suspended(target, nil))
        #expect(bench.state("a") == .dispatched)
    }

    @Test(arguments: Scope.allCases)
    func `what was dispatched and has not started is recalled, and comes back at the front`(
        _ scope: Scope
    ) throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([.nothing("a"), .nothing("b")])
        let held = bench.attempt("a").held
        let target = Self.target(scope, bench)
        bench.drain()

        bench.suspend(target)
        #expect(bench.drain().records == [.suspended(target, Suspension())])
        #expect(bench.takeOrders(of: 0) == [.recall(held)])
        #expect(bench.state("a") == .dispatched)

        bench.giveBack("a")
        #expect(bench.state("a") == .ready)
        bench.resume(target)
        if scope == .operation { bench.finish("b") }
        #expect(bench.state("a") == .dispatched)
        #expect(bench.scheduler.attemptCount(of: bench.id("a")) == 2)
        #expect(bench.attempt("a").held.attempt.number > held.attempt.number)
    }

    @Test(arguments: Scope.allCases)
    func `what runs goes on while it is suspended`(_ scope: Scope) throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([.nothing("a")])
        bench.start("a")
        _ = bench.takeOrders(of: 0)

        bench.suspend(Self.target(scope, bench))

        #expect(bench.takeOrders(of: 0).isEmpty)
        bench.finish("a")
        #expect(bench.outcome("a") == .succeeded)
    }

    @Test func `one of several suspensions is enough to hold an operation`() throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([.nothing("gate"), .nothing("a")])
        let targets: [Scheduler.Target] = [
            .operation(bench.id("a")), .graph(bench.id("a").graph), .queue("default"),
        ]
        for target in targets { bench.suspend(target) }
        bench.finish("gate")

        #expect(
            bench.explain("a") == [
                .operationSuspended(Suspension()), .graphSuspended(Suspension()),
                .queueSuspended("default", Suspension()),
            ]
        )
        for target in targets {
            #expect(bench.state("a") == .ready)
            bench.resume(target)
        }
        #expect(bench.state("a") == .dispatched)
    }

    @Test func `an operation may be suspended and resumed any number of times`() throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([.nothing("a"), .nothing("b")])
        for _ in 0..<5 {
            bench.suspend(.operation(bench.id("b")))
            bench.resume(.operation(bench.id("b")))
            bench.suspend(.graph(bench.id("b").graph))
            bench.resume(.graph(bench.id("b").graph))
        }
        bench.giveBack("a")
        bench.finish("a")
        bench.finish("b")

        #expect(bench.outcome("b") == .succeeded)
        #expect(bench.scheduler.attemptCount(of: bench.id("b")) == 1)
    }

    @Test func `a suspended operation does not stand in the way of the others`() throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([.nothing("a"), .nothing("b") { $0.priority = .high }, .nothing("c")])
        bench.suspend(.operation(bench.id("a")))
        bench.drain()

        bench.finish("b")

        #expect(bench.granted == ["c"])
    }

    @Test func `a queue may be born suspended`() throws {
        var bench = SchedulerBench()
        bench.join()
        var queue = QueueSettings(name: "default")
        queue.isSuspended = true
        try bench.submit([.nothing("a")], queues: [queue])
        #expect(bench.granted.isEmpty)

        bench.resume(.queue("default"))
        #expect(bench.granted == ["a"])
    }

    @Test func `a recall that crossed a start is answered by the start`() throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([.nothing("a")])
        bench.suspend(.graph(GraphID(rawValue: 0)))
        bench.start("a")
        #expect(bench.state("a") == .executing)
        bench.drain()

        bench.beat(from: 0)
        #expect(bench.takeOrders(of: 0).count == 1)  // Only the order of the suspension itself.
        bench.finish("a")
        #expect(bench.outcome("a") == .succeeded)
    }

    @Test func `a recall is said again with every answer until the worker's word arrives`() throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([.nothing("a")])
        let held = bench.attempt("a").held
        bench.suspend(.queue("default"))
        _ = bench.takeOrders(of: 0)

        bench.beat(from: 0)
        #expect(bench.takeOrders(of: 0) == [.recall(held)])
        bench.beat(from: 0)
        #expect(bench.takeOrders(of: 0) == [.recall(held)])
        bench.giveBack("a")
        bench.beat(from: 0)
        #expect(bench.takeOrders(of: 0).isEmpty)
    }
}
