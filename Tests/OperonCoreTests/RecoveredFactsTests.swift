import OperonCore
import OperonModel
import OperonTestKit
import Testing

/// Facts that somebody stated, or that came about: they are there after a restart as before.
struct RecoveredFactsTests {
    private let graph = GraphID(rawValue: 0)

    /// Each is made in a world where “a” runs and “b”, “c” and “d” wait.
    enum Fact: String, CaseIterable {
        case nothing, cancelled, cancelledTwice, cascade, queueCancelled, graphCancelled
        case graphThenOperationCancelled
        case operationSuspended, graphSuspended, queueSuspended, resumed
        case limit, limitOfNothing, priority, succeeded, failed, retried, lost, returned, crashed
        case delayed, deadlinePassed
    }

    private func world() throws -> RestartBench {
        var world = RestartBench()
        world.bench.join()
        try world.bench.submit(
            [
                .nothing("a") {
                    $0.retry = RetryPolicy(limit: 2, delay: .seconds(8), jitter: 0)
                    $0.deadline = world.bench.now.wall + .seconds(60)
                },
                .nothing("b"), .nothing("c", after: ["a"]), .nothing("d", after: ["b"], .failed),
                .nothing("e", after: ["a"], .finished) { $0.delay = .seconds(30) },
            ],
            queues: [QueueSettings(name: "default", maxConcurrentOperationCount: 7)]
        )
        world.bench.start("a")
        return world
    }

    private func state(_ fact: Fact, in world: inout RestartBench) throws {
        let operation = Scheduler.Target.operation(world.bench.id("b"))
        switch fact {
        case .nothing: break
        case .cancelled: world.bench.cancel("a", reason: "r")
        case .cancelledTwice:
            world.bench.cancel("a", reason: "first")
            world.bench.cancel("a", reason: "second")
        case .cascade: world.bench.cancel("a", reason: "r", cascade: true)
        case .queueCancelled:
            world.bench.drive(
                .cancelRequested(.queue("default"), reason: "r", cascade: false)
            )
        case .graphCancelled, .graphThenOperationCancelled:
            world.bench.drive(.cancelRequested(.graph(graph), reason: "r", cascade: false))
            if fact == .graphThenOperationCancelled { world.bench.cancel("a", reason: "late") }
        case .operationSuspended: world.bench.suspend(operation)
        case .graphSuspended: world.bench.suspend(.graph(graph))
        case .queueSuspended: world.bench.suspend(.queue("default"))
        case .resumed:
            world.bench.suspend(.queue("default"))
            world.bench.resume(.queue("default"))
        case .limit: world.bench.setLimit(1)
        case .limitOfNothing: world.bench.setLimit(nil)
        case .priority: world.bench.drive(.priorityRequested(world.bench.id("b"), .veryHigh))
        case .succeeded, .delayed: world.bench.finish("a")
        case .failed: world.bench.finish("a", .failed(.undecodable("why")))
        case .retried: world.bench.finish("a", .failed(.exit(code: 3)))
        case .lost: world.bench.advance(by: .seconds(20))
        case .returned: world.bench.giveBack("a")
        case .crashed: world.bench.finish("a", .crashed)
        case .deadlinePassed:
            for _ in 0..<31 {
                world.bench.advance(by: .seconds(2))
                world.bench.beat(from: 0)
            }
        }
    }

    @Test(arguments: Fact.allCases)
    func `what was so before a restart is so after it`(_ fact: Fact) throws {
        var world = try world()
        try state(fact, in: &world)

        #expect(try world.restart() == nil)
        #expect(try world.restart() == nil)
    }

    // MARK: Asked for

    @Test func `who is asked to stop is asked again, and ends with the first reason`() throws {
        for fact in [Fact.cancelledTwice, .queueCancelled, .graphThenOperationCancelled] {
            var world = try world()
            let held = world.bench.attempt("a").held
            try state(fact, in: &world)
            _ = world.bench.takeOrders(of: 0)
            try world.restart()
            world.bench.drive(.transportUp)

            world.bench.hello(from: 0, held: [held])

            #expect(world.bench.takeOrders(of: 0) == [.cancel(held)])
            world.bench.finish("a", .cancelled)
            let reason = fact == .cancelledTwice ? "first" : "r"
            #expect(world.bench.outcome("a") == .cancelled(reason: reason))
        }
    }

    @Test func `what is suspended stays so, and what was dispatched is recalled`() throws {
        for target in [Scheduler.Target.graph(graph), .queue("default")] {
            var world = RestartBench()
            world.bench.join(slots: 2)
            try world.bench.submit([.nothing("a"), .nothing("b"), .nothing("c")])
            world.bench.start("a")
            let held = world.bench.workers[0].held
            world.bench.suspend(target)
            _ = world.bench.takeOrders(of: 0)
            #expect(try world.restart() == nil)
            world.bench.drive(.transportUp)

            world.bench.hello(from: 0, held: held)

            #expect(world.bench.takeOrders(of: 0) == [.recall(held[1])])
            world.bench.finish("a")
            #expect(world.bench.granted.isEmpty)
            world.bench.giveBack("b")
            world.bench.resume(target)
            #expect(world.bench.granted == ["b", "c"])
        }
    }

    @Test func `what a command set of a queue wins over what later graphs say`() throws {
        var world = try world()
        world.bench.setLimit(1)
        #expect(try world.restart() == nil)
        world.bench.drive(.transportUp)
        world.bench.join(slots: 8)

        try world.bench.submit(
            [.nothing("later")],
            queues: [QueueSettings(name: "default", maxConcurrentOperationCount: 9)]
        )

        let isLimited = world.bench.explain("later").contains { reason in
            if case .queueLimit("default", maximum: 1, _, _) = reason { true } else { false }
        }
        #expect(isLimited)
    }

    // MARK: Counted

    @Test func `retries before a restart count, and so do attempts`() throws {
        var world = try world()
        world.bench.suspend(.operation(world.bench.id("b")))
        for _ in 0..<2 {
            world.bench.finish("a", .failed(.exit(code: 3)))
            #expect(try world.restart() == nil)
            world.bench.drive(.transportUp)
            world.bench.advance(by: .seconds(16))
            world.bench.hello(from: 0)
            #expect(world.bench.state("a") == .dispatched)
        }
        let operation = world.bench.id("a")
        #expect(world.bench.scheduler.attemptCount(of: operation) == 3)
        world.bench.finish("a", .failed(.exit(code: 3)))
        #expect(world.bench.outcome("a") == .failed(.exit(code: 3)))
    }

    @Test func `who died under an operation is remembered, and who killed it is not forgiven`()
        throws
    {
        var world = RestartBench()
        world.bench.join(kinds: ["Poison"])
        var poison = OperationDescription(name: "a", work: .nothing)
        poison.work = .registered(kind: "Poison", input: .empty)
        try world.bench.submit([poison])
        for death in 1...5 {
            #expect(world.bench.state("a") == .dispatched)
            world.bench.finish("a", .crashed)
            if death < 5 {
                #expect(try world.restart() == nil)
                world.bench.drive(.transportUp)
                world.bench.hello(from: 0)
                #expect(world.bench.effects.messages.contains(where: isIsolated))
            }
        }
        #expect(world.bench.outcome("a") == .failed(.workerLost))
    }

    private func isIsolated(_ message: Scheduler.Message) -> Bool {
        guard case .dispatch(_, let grants) = message.body else { return false }
        return grants.contains { $0.isIsolated }
    }

    @Test func `what comes back stands in front of others of its priority`() throws {
        var world = RestartBench()
        world.bench.join()
        try world.bench.submit([.nothing("a"), .nothing("b"), .nothing("c")])
        world.bench.finish("a")
        world.bench.suspend(.queue("default"))
        world.bench.giveBack("b")
        #expect(try world.restart() == nil)
        world.bench.drive(.transportUp)
        world.bench.hello(from: 0)
        world.bench.resume(.queue("default"))

        #expect(world.bench.granted == ["b"])
    }

    // MARK: Timed

    @Test func `a pause goes on where it was, and is not waited for anew`() throws {
        for (fact, name, pause) in [
            (Fact.retried, "a", Duration.seconds(8)), (.delayed, "e", .seconds(30)),
        ] {
            var world = try world()
            try state(fact, in: &world)
            let end = world.bench.now.wall + pause
            world.bench.advance(by: .seconds(5))
            #expect(try world.restart() == nil)
            world.bench.drive(.transportUp)
            let due = Scheduler.Due.date(end)
            let reason: Scheduler.Reason = fact == .retried ? .retryAt(due) : .notBefore(due)
            #expect(world.bench.explain(name).contains(reason))

            world.bench.advance(by: pause - .seconds(5))
            let delayed = StoreRecord.delayed(world.bench.id(name), until: nil)
            #expect(world.bench.effects.records.contains(delayed))
            #expect(!world.bench.explain(name).contains(.notBefore(due)))
        }
    }

    @Test func `a pause that is over stays over when the clock is set back`() throws {
        var world = try world()
        try state(.retried, in: &world)
        world.bench.setLimit(0)
        world.bench.advance(by: .seconds(8))
        world.bench.now.wall = world.bench.now.wall + .seconds(-3_600)
        try world.restart()
        world.bench.drive(.transportUp)
        world.bench.hello(from: 0)

        #expect(world.bench.explain("a") == [.queueLimit("default", maximum: 0, [], more: 0)])
    }

    @Test func `a deadline that passed while nobody was there is kept`() throws {
        var world = try world()
        let held = world.bench.attempt("a").held
        #expect(try world.restart() == nil)
        world.bench.advance(by: .seconds(61))
        world.bench.drive(.transportUp)
        #expect(try world.keep().records.contains(.deadlinePassed(held.operation)))
        // The clock is set back, and the coordinator dies again.
        world.bench.now.wall = world.bench.now.wall + .seconds(-3_600)
        try world.restart()
        world.bench.drive(.transportUp)

        world.bench.hello(from: 0, held: [held])

        #expect(world.bench.takeOrders(of: 0) == [.cancel(held)])
        world.bench.finish("a", .cancelled)
        #expect(world.bench.outcome("a") == .failed(.deadline))
    }
}
