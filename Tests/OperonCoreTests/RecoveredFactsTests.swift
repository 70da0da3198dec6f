import OperonCore
import OperonModel
import OperonTestKit
import Testing

/// Facts that somebody stated, or that came about: they are there after a restart as before.
struct RecoveredFactsTests {
    private let graph = GraphID(rawValue: 0)

    /// Each is made in a coordinator where “a” runs and “b”, “c” and “d” wait.
    enum Fact: String, CaseIterable {
        case nothing, cancelled, cancelledTwice, cascade, queueCancelled, graphCancelled
        case graphThenOperationCancelled
        case operationSuspended, graphSuspended, queueSuspended, resumed
        case limit, limitOfNothing, priority, succeeded, failed, retried, lost, returned, crashed
        case delayed, deadlinePassed
    }

    private func coordinator() throws -> RestartBench {
        var coordinator = RestartBench()
        coordinator.bench.join()
        try coordinator.bench.submit(
            [
                .nothing("a") {
                    $0.retry = RetryPolicy(limit: 2, delay: .seconds(8), jitter: 0)
                    $0.deadline = coordinator.bench.now.wall + .seconds(60)
                },
                .nothing("b"), .nothing("c", after: ["a"]), .nothing("d", after: ["b"], .failed),
                .nothing("e", after: ["a"], .finished) { $0.delay = .seconds(30) },
            ],
            queues: [QueueSettings(name: "default", maxConcurrentOperationCount: 7)]
        )
        coordinator.bench.start("a")
        return coordinator
    }

    private func state(_ fact: Fact, in coordinator: inout RestartBench) throws {
        let operation = Scheduler.Target.operation(coordinator.bench.id("b"))
        switch fact {
        case .nothing: break
        case .cancelled: coordinator.bench.cancel("a", reason: "r")
        case .cancelledTwice:
            coordinator.bench.cancel("a", reason: "first")
            coordinator.bench.cancel("a", reason: "second")
        case .cascade: coordinator.bench.cancel("a", reason: "r", cascade: true)
        case .queueCancelled:
            coordinator.bench.drive(
                .cancelRequested(.queue("default"), reason: "r", cascade: false)
            )
        case .graphCancelled, .graphThenOperationCancelled:
            coordinator.bench.drive(.cancelRequested(.graph(graph), reason: "r", cascade: false))
            if fact == .graphThenOperationCancelled {
                coordinator.bench.cancel("a", reason: "late")
            }
        case .operationSuspended: coordinator.bench.suspend(operation)
        case .graphSuspended: coordinator.bench.suspend(.graph(graph))
        case .queueSuspended: coordinator.bench.suspend(.queue("default"))
        case .resumed:
            coordinator.bench.suspend(.queue("default"))
            coordinator.bench.resume(.queue("default"))
        case .limit: coordinator.bench.setLimit(1)
        case .limitOfNothing: coordinator.bench.setLimit(nil)
        case .priority:
            coordinator.bench.drive(.priorityRequested(coordinator.bench.id("b"), .veryHigh))
        case .succeeded, .delayed: coordinator.bench.finish("a")
        case .failed: coordinator.bench.finish("a", .failed(.undecodable("why")))
        case .retried: coordinator.bench.finish("a", .failed(.exit(code: 3)))
        case .lost: coordinator.bench.advance(by: .seconds(20))
        case .returned: coordinator.bench.giveBack("a")
        case .crashed: coordinator.bench.finish("a", .crashed)
        case .deadlinePassed:
            for _ in 0..<31 {
                coordinator.bench.advance(by: .seconds(2))
                coordinator.bench.beat(from: 0)
            }
        }
    }

    @Test(arguments: Fact.allCases)
    func `what was so before a restart is so after it`(_ fact: Fact) throws {
        var coordinator = try coordinator()
        try state(fact, in: &coordinator)

        #expect(try coordinator.restart() == nil)
        #expect(try coordinator.restart() == nil)
    }

    // MARK: Asked for

    @Test func `who is asked to stop is asked again, and ends with the first reason`() throws {
        for fact in [Fact.cancelledTwice, .queueCancelled, .graphThenOperationCancelled] {
            var coordinator = try coordinator()
            let held = coordinator.bench.attempt("a").held
            try state(fact, in: &coordinator)
            _ = coordinator.bench.takeOrders(of: 0)
            try coordinator.restart()
            coordinator.bench.drive(.transportUp)

            coordinator.bench.hello(from: 0, held: [held])

            #expect(coordinator.bench.takeOrders(of: 0) == [.cancel(held)])
            coordinator.bench.finish("a", .cancelled)
            let reason = fact == .cancelledTwice ? "first" : "r"
            #expect(coordinator.bench.outcome("a") == .cancelled(reason: reason))
        }
    }

    @Test func `what is suspended stays so, and what was dispatched is recalled`() throws {
        for target in [Scheduler.Target.graph(graph), .queue("default")] {
            var coordinator = RestartBench()
            coordinator.bench.join(slots: 2)
            try coordinator.bench.submit([.nothing("a"), .nothing("b"), .nothing("c")])
            coordinator.bench.start("a")
            let held = coordinator.bench.workers[0].held
            coordinator.bench.suspend(target)
            _ = coordinator.bench.takeOrders(of: 0)
            #expect(try coordinator.restart() == nil)
            coordinator.bench.drive(.transportUp)

            coordinator.bench.hello(from: 0, held: held)

            #expect(coordinator.bench.takeOrders(of: 0) == [.recall(held[1])])
            coordinator.bench.finish("a")
            #expect(coordinator.bench.granted.isEmpty)
            coordinator.bench.giveBack("b")
            coordinator.bench.resume(target)
            #expect(coordinator.bench.granted == ["b", "c"])
        }
    }

    @Test func `what a command set of a queue wins over what later graphs say`() throws {
        var coordinator = try coordinator()
        coordinator.bench.setLimit(1)
        #expect(try coordinator.restart() == nil)
        coordinator.bench.drive(.transportUp)
        coordinator.bench.join(slots: 8)

        try coordinator.bench.submit(
            [.nothing("later")],
            queues: [QueueSettings(name: "default", maxConcurrentOperationCount: 9)]
        )

        let isLimited = coordinator.bench.explain("later").contains { reason in
            if case .queueLimit("default", maximum: 1, _, _) = reason { true } else { false }
        }
        #expect(isLimited)
    }

    // MARK: Counted

    @Test func `retries before a restart count, and so do attempts`() throws {
        var coordinator = try coordinator()
        coordinator.bench.suspend(.operation(coordinator.bench.id("b")))
        for _ in 0..<2 {
            coordinator.bench.finish("a", .failed(.exit(code: 3)))
            #expect(try coordinator.restart() == nil)
            coordinator.bench.drive(.transportUp)
            coordinator.bench.advance(by: .seconds(16))
            coordinator.bench.hello(from: 0)
            #expect(coordinator.bench.state("a") == .dispatched)
        }
        let operation = coordinator.bench.id("a")
        #expect(coordinator.bench.scheduler.attemptCount(of: operation) == 3)
        coordinator.bench.finish("a", .failed(.exit(code: 3)))
        #expect(coordinator.bench.outcome("a") == .failed(.exit(code: 3)))
    }

    @Test func `who died under an operation is remembered, and who killed it is not forgiven`()
        throws
    {
        var coordinator = RestartBench()
        coordinator.bench.join(kinds: ["Poison"])
        var poison = OperationDescription(name: "a", work: .nothing)
        poison.work = .registered(kind: "Poison", input: .empty)
        try coordinator.bench.submit([poison])
        for death in 1...5 {
            #expect(coordinator.bench.state("a") == .dispatched)
            coordinator.bench.finish("a", .crashed)
            if death < 5 {
                #expect(try coordinator.restart() == nil)
                coordinator.bench.drive(.transportUp)
                coordinator.bench.hello(from: 0)
                #expect(coordinator.bench.effects.messages.contains(where: isIsolated))
            }
        }
        #expect(coordinator.bench.outcome("a") == .failed(.workerLost))
    }

    private func isIsolated(_ message: Scheduler.Message) -> Bool {
        guard case .dispatch(_, let grants) = message.body else { return false }
        return grants.contains { $0.isIsolated }
    }

    @Test func `what comes back stands in front of others of its priority`() throws {
        var coordinator = RestartBench()
        coordinator.bench.join()
        try coordinator.bench.submit([.nothing("a"), .nothing("b"), .nothing("c")])
        coordinator.bench.finish("a")
        coordinator.bench.suspend(.queue("default"))
        coordinator.bench.giveBack("b")
        #expect(try coordinator.restart() == nil)
        coordinator.bench.drive(.transportUp)
        coordinator.bench.hello(from: 0)
        coordinator.bench.resume(.queue("default"))

        #expect(coordinator.bench.granted == ["b"])
    }

    // MARK: Timed

    @Test func `a pause goes on where it was, and is not waited for anew`() throws {
        for (fact, name, pause) in [
            (Fact.retried, "a", Duration.seconds(8)), (.delayed, "e", .seconds(30)),
        ] {
            var coordinator = try coordinator()
            try state(fact, in: &coordinator)
            let end = coordinator.bench.now.wall + pause
            coordinator.bench.advance(by: .seconds(5))
            #expect(try coordinator.restart() == nil)
            coordinator.bench.drive(.transportUp)
            let due = Scheduler.Due.date(end)
            let reason: Scheduler.Reason = fact == .retried ? .retryAt(due) : .notBefore(due)
            #expect(coordinator.bench.explain(name).contains(reason))

            coordinator.bench.advance(by: pause - .seconds(5))
            let delayed = StoreRecord.delayed(coordinator.bench.id(name), until: nil)
            #expect(coordinator.bench.effects.records.contains(delayed))
            #expect(!coordinator.bench.explain(name).contains(.notBefore(due)))
        }
    }

    @Test func `a pause that is over stays over when the clock is set back`() throws {
        var coordinator = try coordinator()
        try state(.retried, in: &coordinator)
        coordinator.bench.setLimit(0)
        coordinator.bench.advance(by: .seconds(8))
        coordinator.bench.now.wall = coordinator.bench.now.wall + .seconds(-3_600)
        try coordinator.restart()
        coordinator.bench.drive(.transportUp)
        coordinator.bench.hello(from: 0)

        #expect(coordinator.bench.explain("a") == [.queueLimit("default", maximum: 0, [], more: 0)])
    }

    @Test func `a deadline that passed while nobody was there is kept`() throws {
        var coordinator = try coordinator()
        let held = coordinator.bench.attempt("a").held
        #expect(try coordinator.restart() == nil)
        coordinator.bench.advance(by: .seconds(61))
        coordinator.bench.drive(.transportUp)
        #expect(try coordinator.keep().records.contains(.deadlinePassed(held.operation)))
        // The clock is set back, and the coordinator dies again.
        coordinator.bench.now.wall = coordinator.bench.now.wall + .seconds(-3_600)
        try coordinator.restart()
        coordinator.bench.drive(.transportUp)

        coordinator.bench.hello(from: 0, held: [held])

        #expect(coordinator.bench.takeOrders(of: 0) == [.cancel(held)])
        coordinator.bench.finish("a", .cancelled)
        #expect(coordinator.bench.outcome("a") == .failed(.deadline))
    }
}
