import OperonCore
import OperonModel
import OperonTestKit
import Testing

/// When silence is taken for absence.
@Suite struct TickTests {
    /// A worker with an operation, silent until its lease is over; the test returns the ticks.
    private func silent() throws -> (bench: SchedulerBench, tick: UInt64) {
        var bench = SchedulerBench()
        bench.returnsTicks = false
        bench.join()
        try bench.submit([.nothing("a")])
        bench.drain()
        bench.advance(by: .seconds(6))
        let ticks = bench.drain().ticks
        return (bench, try #require(ticks.first))
    }

    @Test func `nobody is given up before the tick is back on both ways`() throws {
        var (bench, tick) = try silent()
        #expect(bench.state("a") == .dispatched)

        bench.tick(tick, .events)
        #expect(bench.state("a") == .dispatched)

        bench.tick(tick, .beats)
        #expect(bench.state("a") == .ready)
    }

    @Test func `what was in the queue before the tick saves its sender`() throws {
        var (bench, tick) = try silent()

        bench.beat(from: 0)
        bench.tick(tick, .events)
        bench.tick(tick, .beats)

        #expect(bench.state("a") == .dispatched)
        // And its lease is watched again.
        bench.advance(by: .seconds(6))
        #expect(bench.drain().ticks.count == 1)
    }

    @Test func `after a tick that was long on its way every lease has two beats left`() throws {
        var (bench, tick) = try silent()
        bench.advance(by: .seconds(5))

        bench.tick(tick, .events)
        bench.tick(tick, .beats)
        #expect(bench.state("a") == .dispatched)

        bench.advance(by: .seconds(4) - .nanoseconds(1))
        #expect(bench.drain().ticks.isEmpty)
        bench.advance(by: .nanoseconds(1))
        let next = try #require(bench.drain().ticks.first)
        bench.tick(next, .events)
        bench.tick(next, .beats)
        #expect(bench.state("a") == .ready)
    }

    @Test func `a lost tick is sent again, and does not make the silence shorter`() throws {
        var (bench, lost) = try silent()
        bench.advance(by: .seconds(6))
        let second = try #require(bench.drain().ticks.first)
        #expect(second != lost)

        // The first comes after all: it proves nothing any more.
        bench.tick(lost, .events)
        bench.tick(lost, .beats)
        #expect(bench.state("a") == .dispatched)

        // An alarm ends right after the second was sent: it is back at once, the first was not.
        bench.tick(second, .events)
        bench.tick(second, .beats)
        #expect(bench.state("a") == .dispatched)
    }

    @Test func `a worker whose lease ends while a tick is on its way waits for the next`() throws {
        var (bench, tick) = try silent()
        bench.beat(from: 0)
        // Silent again, just as long as the tick takes.
        bench.tick(tick, .events)
        bench.advance(by: .seconds(1))
        bench.tick(tick, .beats)
        #expect(bench.state("a") == .dispatched)
        bench.advance(by: .seconds(5))

        #expect(bench.drain().ticks.count == 1)
    }

    @Test func `a tick of another reign is none`() throws {
        var (bench, tick) = try silent()
        for way in [Tick.Way.events, .beats] {
            bench.drive(
                .workerMessage(
                    WorkerEnvelope(
                        reign: Reign(rawValue: 8),
                        epoch: Epoch(rawValue: 1),
                        sequence: 0,
                        sender: .none,
                        body: .tick(Tick(number: tick, way: way))
                    )
                )
            )
        }
        #expect(bench.state("a") == .dispatched)
    }
}

/// How long what ran on a silent worker is waited for.
@Suite struct PatienceTests {
    @Test(arguments: [
        // Ran for, silent for until it is lost: 5 %, at least the lease, five minutes at most.
        (Duration.seconds(10), Duration.seconds(6)),
        (.seconds(120), .seconds(6)),
        (.seconds(1_000), .seconds(50)),
        (.seconds(6_000), .seconds(300)),
        (.seconds(12_000), .seconds(300)),
    ])
    func `a long run is given up later`(ran: Duration, patience: Duration) throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([.nothing("a")])
        bench.start("a")
        let step = min(ran, .seconds(5))
        for _ in 0..<Int(ran / step) {
            bench.advance(by: step)
            bench.beat(from: 0)
        }

        bench.advance(by: patience - .nanoseconds(1))
        #expect(bench.state("a") == .executing)
        bench.advance(by: .nanoseconds(1))
        #expect(bench.state("a") == .ready)
    }

    @Test func `a worker that is back within the patience goes on as if nothing had been`() throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([.nothing("a")])
        bench.start("a")
        let held = bench.attempt("a").held
        for _ in 0..<500 {
            bench.advance(by: .seconds(2))
            bench.beat(from: 0)
        }
        bench.advance(by: .seconds(20))
        bench.join()
        #expect(bench.granted == ["a"], "the second worker got it although it is waited for")

        bench.hello(from: 0, connection: 2, held: [held])
        bench.advance(by: .seconds(2))
        bench.beat(from: 0)
        #expect(bench.takeOrders(of: 0).isEmpty)
        bench.finish("a")

        #expect(bench.outcome("a") == .succeeded)
        #expect(bench.scheduler.attemptCount(of: bench.id("a")) == 1)
    }

    @Test func `a second silence is as long as its own patience`() throws {
        // The timer of the first one gave the attempt up, and another worker got its key.
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([.nothing("a")])
        bench.start("a")
        let held = bench.attempt("a").held
        for _ in 0..<500 {
            bench.advance(by: .seconds(2))
            bench.beat(from: 0)
        }
        bench.advance(by: .seconds(20))
        bench.hello(from: 0, connection: 2, held: [held])
        for _ in 0..<10 {
            bench.advance(by: .seconds(2))
            bench.beat(from: 0)
        }

        bench.advance(by: .seconds(40))
        #expect(bench.state("a") == .executing)
        bench.advance(by: .seconds(12))
        #expect(bench.state("a") == .ready)
    }

    @Test func `what had not started is not waited for`() throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([.nothing("a")])
        bench.advance(by: .seconds(6))
        #expect(bench.state("a") == .ready)
    }

    @Test func `nobody is given up for silence while there was no connection`() throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([.nothing("a")])
        bench.start("a")
        for _ in 0..<500 {
            bench.advance(by: .seconds(2))
            bench.beat(from: 0)
        }
        bench.advance(by: .seconds(49))
        bench.drive(.transportDown)
        bench.advance(by: .seconds(60))
        bench.drive(.transportUp)
        bench.advance(by: .seconds(5))
        #expect(bench.state("a") == .executing)
        bench.advance(by: .seconds(2))
        #expect(bench.state("a") == .ready)
    }
}

/// An owner that comes back after its attempt was given up.
@Suite struct LateOwnerTests {
    /// "a" ran on worker 0, was lost, and is ready, or granted to worker 1.
    private func lost(next: Bool) throws -> (bench: SchedulerBench, held: HeldAttempt) {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([.nothing("a")])
        bench.start("a")
        let held = bench.attempt("a").held
        bench.advance(by: .seconds(6))
        if next { bench.join() }
        bench.drain()
        return (bench, held)
    }

    @Test func `goes on if there is no next attempt yet`() throws {
        var (bench, held) = try lost(next: false)
        #expect(bench.state("a") == .ready)

        bench.hello(from: 0, connection: 2, held: [held])

        #expect(bench.state("a") == .executing)
        #expect(bench.drain().records == [.resumed(held.attempt, held.operation)])
        #expect(bench.takeOrders(of: 0).isEmpty)
        bench.finish("a")
        #expect(bench.outcome("a") == .succeeded)
        #expect(bench.scheduler.attemptCount(of: bench.id("a")) == 1)
    }

    @Test func `goes on if the next attempt is given back unstarted`() throws {
        var (bench, held) = try lost(next: true)
        let next = bench.attempt("a").held
        #expect(bench.state("a") == .dispatched)

        bench.hello(from: 0, connection: 2, held: [held])
        #expect(bench.takeOrders(of: 1) == [.recall(next)])
        #expect(bench.takeOrders(of: 0).isEmpty, "it was told to stop what may go on")
        bench.beat(from: 0, held: [held])
        #expect(bench.takeOrders(of: 0).isEmpty)

        bench.send(.returned(next), from: 1)
        #expect(bench.state("a") == .executing)
        bench.settle(held, bench.result(.succeeded), from: 0)
        #expect(bench.outcome("a") == .succeeded)
    }

    @Test func `is told to stop if the next attempt has started`() throws {
        var (bench, held) = try lost(next: true)
        let next = bench.attempt("a").held
        bench.hello(from: 0, connection: 2, held: [held])

        bench.send(.started(next, at: bench.now.monotonic), from: 1)
        bench.beat(from: 0, held: [held])

        #expect(bench.takeOrders(of: 0) == [.stop(held)])
        bench.send(.finished(held, bench.result(.failed(.timeout))), from: 0)
        #expect(bench.state("a") == .executing)
        bench.settle(next, bench.result(.succeeded), from: 1)
        #expect(bench.outcome("a") == .succeeded)
    }

    @Test func `brings a result that counts if nothing else has started`() throws {
        var (bench, held) = try lost(next: false)
        // Its hello names the event, which comes behind it: until then it gets nothing new.
        bench.hello(from: 0, connection: 2, lastEvent: 2)
        #expect(bench.state("a") == .ready)

        bench.send(.finished(held, bench.result(.succeeded)), from: 0)

        #expect(bench.outcome("a") == .succeeded)
        #expect(bench.scheduler.attemptCount(of: bench.id("a")) == 1)
    }

    @Test func `brings a result that counts once the next attempt is given back`() throws {
        var (bench, held) = try lost(next: true)
        let next = bench.attempt("a").held
        bench.hello(from: 0, connection: 2)
        bench.send(.finished(held, bench.result(.succeeded)), from: 0)
        #expect(bench.outcome("a") == nil)
        #expect(bench.takeOrders(of: 1) == [.recall(next)])

        bench.send(.returned(next), from: 1)

        #expect(bench.outcome("a") == .succeeded)
    }

    @Test func `has to stop if its place was given to another meanwhile`() throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit(
            [.nothing("a"), .nothing("b") { $0.priority = .veryHigh }],
            queues: [QueueSettings(name: "default", maxConcurrentOperationCount: 1)]
        )
        bench.finish("b")
        bench.start("a")
        let held = bench.attempt("a").held
        bench.advance(by: .seconds(6))
        bench.setLimit(0)

        bench.hello(from: 0, connection: 2, held: [held])

        #expect(bench.takeOrders(of: 0) == [.stop(held)])
        #expect(bench.state("a") == .ready)
    }

    @Test func `the attempt after a lost one travels alone and announces its start`() throws {
        var (bench, _) = try lost(next: false)
        bench.join()
        let grants = bench.drain().messages.flatMap { message -> [Scheduler.Grant] in
            if case .dispatch(_, let grants) = message.body { grants } else { [] }
        }
        #expect(grants.map(\.announcesStart) == [true])
        bench.start("a")
        bench.giveBack("a")
        let again = bench.drain().messages.flatMap { message -> [Scheduler.Grant] in
            if case .dispatch(_, let grants) = message.body { grants } else { [] }
        }
        #expect(again.map(\.announcesStart) == [false])
    }
}
