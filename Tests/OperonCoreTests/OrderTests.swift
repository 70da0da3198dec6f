import OperonCore
import OperonModel
import OperonTestKit
import Testing

/// Which operation is next, and where it goes.
struct OrderTests {
    /// Runs everything on one slot, and says in which order it was granted.
    private func order(_ bench: inout SchedulerBench) -> [String] {
        var order: [String] = []
        while let held = bench.workers[0].held.first {
            let name = bench.name(held.operation)
            order.append(name)
            bench.finish(name)
        }
        return order
    }

    @Test func `priorities go before rank, and rank before submission`() throws {
        var bench = SchedulerBench()
        bench.join()
        func wait(
            _ name: String,
            _ seconds: Int,
            _ priority: QueuePriority? = nil
        ) -> OperationDescription {
            var operation = OperationDescription(name: name, work: .wait(.seconds(seconds)))
            operation.priority = priority
            return operation
        }

        try bench.submit(
            [
                .nothing("gate") { $0.priority = .veryHigh },
                wait("short", 1), wait("short2", 1), wait("long", 9),
                wait("low", 99, .low), wait("high", 1, .high), wait("veryLow", 99, .veryLow),
                wait("veryHigh", 1, .veryHigh),
            ],
            order: .criticalPath
        )

        // The gate has the shortest path of the two that are veryHigh.
        #expect(
            order(&bench) == [
                "veryHigh", "gate", "high", "long", "short", "short2", "low", "veryLow",
            ]
        )
    }

    @Test func `the critical path of a graph goes first`() throws {
        var bench = SchedulerBench()
        bench.join()
        func work(_ name: String, after: [String] = []) -> OperationDescription {
            var operation = OperationDescription(name: name, work: .wait(.seconds(1)))
            operation.dependencies = after.map { DependencyDescription($0) }
            return operation
        }

        try bench.submit(
            [
                work("side1"), work("side2"), work("a"), work("b", after: ["a"]),
                work("c", after: ["b"]),
            ],
            order: .criticalPath
        )

        #expect(order(&bench) == ["a", "b", "side1", "side2", "c"])
    }

    @Test func `a queue used from code runs in the order of submission`() throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([
            .nothing("a"), .nothing("b"), .nothing("z", after: ["a"]), .nothing("c"),
        ])
        try bench.submit([.nothing("later")])

        #expect(order(&bench) == ["a", "b", "z", "c", "later"])
    }

    @Test func `what comes back goes to the front of its priority, not before a higher one`() throws
    {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([.nothing("a"), .nothing("b"), .nothing("urgent") { $0.priority = .high }])
        #expect(bench.granted == ["urgent"])
        bench.finish("urgent")
        let a = bench.attempt("a")
        bench.drive(.queueLimitSet(queue: "default", maximum: 0))
        bench.giveBack("a")
        try bench.submit([.nothing("more") { $0.priority = .high }, .nothing("first")])
        #expect(a.worker == 0 && bench.state("a") == .ready)
        bench.drain()

        bench.setLimit(nil)

        #expect(bench.granted == ["more"])
        #expect(order(&bench) == ["more", "a", "b", "first"])
    }

    @Test func `raising and lowering a priority acts on what waits`() throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit(
            ["gate", "a", "b", "c"].map { name in .nothing(name) }
        )
        bench.drive(.priorityRequested(bench.id("c"), .veryHigh))
        bench.drive(.priorityRequested(bench.id("a"), .low))

        #expect(order(&bench) == ["gate", "c", "b", "a"])
    }

    @Test func `a priority that was raised and lowered again counts as lowered`() throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit(["gate", "a", "b"].map { name in .nothing(name) })
        for priority in [QueuePriority.veryHigh, .veryLow, .high, .low] {
            bench.drive(.priorityRequested(bench.id("a"), priority))
        }

        #expect(order(&bench) == ["gate", "b", "a"])
        #expect(bench.scheduler.attemptCount(of: bench.id("a")) == 1)
    }

    @Test func `a priority cannot be changed once it has started`() throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([.nothing("a")])
        let id = bench.id("a")
        bench.start("a")
        bench.drain()

        bench.drive(.priorityRequested(id, .high))
        #expect(bench.drain().refusals == [.alreadyStarted(id)])
        bench.finish("a")
        bench.drain()
        bench.drive(.priorityRequested(id, .high))
        #expect(bench.drain().refusals == [.alreadyFinished(id)])
    }

    @Test func `operations without a priority take that of their queue`() throws {
        var bench = SchedulerBench()
        bench.join()
        var queue = QueueSettings(name: "default")
        queue.priority = .high
        try bench.submit(
            [.nothing("gate"), .nothing("n") { $0.priority = .normal }, .nothing("q")],
            queues: [queue]
        )

        #expect(order(&bench) == ["gate", "q", "n"])
    }

    // MARK: Queues

    @Test func `two queues share the slots, whichever has more to do`() throws {
        var bench = SchedulerBench()
        bench.join(slots: 4)
        try bench.submit((0..<8).map { number in .nothing("a\(number)") { $0.queue = "a" } })
        #expect(bench.granted == ["a0", "a1", "a2", "a3"])
        try bench.submit((0..<3).map { number in .nothing("b\(number)") { $0.queue = "b" } })
        bench.drain()

        for name in ["a0", "a1", "a2", "a3"] { bench.finish(name) }

        #expect(bench.granted == ["b0", "b1", "a4", "a5"])
        #expect(bench.scheduler.queueMembersInFlight("a") == 2)
        #expect(bench.scheduler.queueMembersInFlight("b") == 2)
    }

    @Test func `queues that hold equally many slots take turns`() throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([.nothing("gate")])
        for queue in ["a", "b", "c"] {
            try bench.submit(
                (0..<2).map { number in .nothing("\(queue)\(number)") { $0.queue = queue } }
            )
        }

        #expect(order(&bench) == ["gate", "a0", "b0", "c0", "a1", "b1", "c1"])
    }

    @Test func `a limit holds over all workers`() throws {
        var bench = SchedulerBench()
        for _ in 0..<4 { bench.join(slots: 2) }
        try bench.submit(
            (0..<10).map { number in .nothing("o\(number)") },
            queues: [QueueSettings(name: "default", maxConcurrentOperationCount: 3)]
        )

        #expect(bench.granted == ["o0", "o1", "o2"])
        bench.drain()
        bench.finish("o1")
        #expect(bench.granted == ["o3"])
        #expect(bench.scheduler.queueMembersInFlight("default") == 3)
    }

    @Test func `a raised limit acts at once`() throws {
        var bench = SchedulerBench()
        bench.join(slots: 8)
        try bench.submit(
            (0..<10).map { number in .nothing("o\(number)") },
            queues: [QueueSettings(name: "default", maxConcurrentOperationCount: 1)]
        )
        bench.drain()

        bench.setLimit(3)
        #expect(bench.granted == ["o1", "o2"])
        bench.drain()
        bench.setLimit(nil)
        #expect(bench.granted == ["o3", "o4", "o5", "o6", "o7"])
    }

    @Test func `a lowered limit recalls what has not started, the latest first`() throws {
        var bench = SchedulerBench()
        bench.join(slots: 5)
        try bench.submit((0..<5).map { number in .nothing("o\(number)") })
        bench.start("o0")
        bench.start("o4")
        let (o3, o2) = (bench.attempt("o3").held, bench.attempt("o2").held)
        _ = bench.takeOrders(of: 0)

        bench.setLimit(3)
        #expect(bench.takeOrders(of: 0) == [.recall(o3), .recall(o2)])

        bench.giveBack("o3")
        bench.giveBack("o2")
        #expect(bench.scheduler.queueMembersInFlight("default") == 3)
        bench.drain()
        bench.finish("o0")
        #expect(bench.granted == ["o2"])
    }

    @Test func `lowering a limit twice recalls no more than the last limit asks for`() throws {
        var bench = SchedulerBench()
        bench.join(slots: 5)
        try bench.submit((0..<5).map { number in .nothing("o\(number)") })
        let held = (0..<5).map { bench.attempt("o\($0)").held }
        _ = bench.takeOrders(of: 0)

        bench.setLimit(3)
        #expect(bench.takeOrders(of: 0) == [.recall(held[4]), .recall(held[3])])
        bench.setLimit(2)
        #expect(bench.takeOrders(of: 0) == [.recall(held[2])])
        bench.setLimit(2)
        #expect(bench.takeOrders(of: 0).isEmpty)
    }

    @Test func `a limit of zero holds everything`() throws {
        var bench = SchedulerBench()
        bench.join(slots: 2)
        try bench.submit(
            [.nothing("a")],
            queues: [QueueSettings(name: "default", maxConcurrentOperationCount: 0)]
        )

        #expect(bench.granted.isEmpty)
        bench.setLimit(1)
        #expect(bench.granted == ["a"])
    }
}
