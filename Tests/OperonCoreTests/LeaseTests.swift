import OperonCore
import OperonModel
import OperonTestKit
import Testing

struct LeaseTests {
    @Test func `a worker that is silent for a lease loses its attempts, which go out again first`()
        throws
    {
        var bench = SchedulerBench()
        bench.join(slots: 2)
        try bench.submit([.nothing("a"), .nothing("b"), .nothing("c")])
        bench.start("a")
        let (a, b) = (bench.attempt("a").held, bench.attempt("b").held)
        let identity = bench.workers[0].identity
        let started = bench.now.monotonic
        bench.advance(by: .seconds(6) - .nanoseconds(1))
        bench.drain()

        bench.advance(by: .nanoseconds(1))

        let effects = bench.drain()
        #expect(
            effects.records == [
                .attemptEnded(a.attempt, a.operation, .lost),
                .attemptEnded(b.attempt, b.operation, .lost),
            ]
        )
        #expect(effects.messages.isEmpty)
        #expect(
            effects.notices == [
                .workerLost(identity),
                .attemptEnded(
                    a.operation,
                    a.attempt,
                    .lost,
                    start: started,
                    end: bench.now.monotonic
                ),
                .attemptEnded(b.operation, b.attempt, .lost, start: nil, end: bench.now.monotonic),
            ]
        )
        bench.join(slots: 2)
        #expect(bench.granted == ["a", "b"])
        #expect(bench.workers[1].held.map(\.operation) == [a.operation, b.operation])
        #expect(bench.workers[1].held.allSatisfy { $0.attempt > b.attempt })
        #expect(bench.scheduler.attemptCount(of: a.operation) == 2)
    }

    @Test func `any message renews a lease`() throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([.nothing("a")])
        let chunk = LogChunk(held: bench.attempt("a").held, stream: .output, offset: 0, bytes: [1])
        for _ in 0..<3 {
            bench.advance(by: .seconds(5))
            bench.send(.log(chunk), from: 0)
            bench.advance(by: .seconds(5))
            bench.beat(from: 0)
        }
        #expect(bench.state("a") == .dispatched)
        #expect(bench.effects.notices.contains(.log(chunk)))
    }

    @Test func `the late result of a lost attempt is refused, acknowledged and ends nothing`()
        throws
    {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([.nothing("a")])
        let late = bench.attempt("a").held
        bench.advance(by: .seconds(6))
        bench.join()
        #expect(bench.workers[1].held.map(\.operation) == [late.operation])
        bench.start("a")
        bench.drain()

        // It wakes up, is told to say hello, and brings its result.
        bench.send(.finished(late, bench.result(.succeeded)), from: 0)
        #expect(bench.drain().messages.map(\.body) == [.plain(.resync)])
        bench.hello(from: 0, firstEvent: 1)
        bench.drain()
        bench.send(
            .events(
                EventBatch(
                    firstNumber: 1,
                    sentAt: bench.now.monotonic,
                    events: [.finished(late, bench.result(.succeeded))]
                )
            ),
            from: 0
        )

        let effects = bench.drain()
        #expect(effects.records.isEmpty)
        #expect(effects.notices == [.eventRefused(late.attempt)])
        #expect(bench.state("a") == .executing)
        bench.beat(from: 0, held: [])
        #expect(controls(bench.drain()).map(\.acknowledged) == [1])
    }

    @Test func `a worker that comes back with a lost attempt is told to stop it`() throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([.nothing("a")])
        bench.start("a")
        let lost = bench.attempt("a").held
        bench.advance(by: .seconds(6))
        bench.join()
        bench.start("a")
        _ = bench.takeOrders(of: 0)

        bench.hello(from: 0, held: [lost])

        #expect(bench.takeOrders(of: 0) == [.stop(lost)])
    }

    @Test func `deafness costs nobody a lease`() throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([.nothing("a")])
        bench.drive(.transportDown)
        bench.advance(by: .seconds(3_600))
        #expect(bench.state("a") == .dispatched)

        bench.drive(.transportUp)
        bench.advance(by: .seconds(6) - .nanoseconds(1))
        #expect(bench.state("a") == .dispatched)
        bench.advance(by: .nanoseconds(1))
        #expect(bench.state("a") == .ready)
    }

    @Test func `a lost attempt of a cancelled operation ends as cancelled`() throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([.nothing("a")])
        bench.start("a")
        bench.cancel("a", reason: "r")

        bench.advance(by: .seconds(6))

        #expect(bench.outcome("a") == .cancelled(reason: "r"))
    }

    @Test func `a returned message is a hint only`() throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([.nothing("a")])
        bench.drain()

        bench.drive(
            .addressReturned(WorkerAddress(incarnation: Incarnation(rawValue: 1), connection: 1))
        )

        #expect(bench.drain().records.isEmpty)
        #expect(bench.state("a") == .dispatched)
    }

    @Test func `every operation leaves a complete trail of records`() throws {
        var bench = SchedulerBench()
        bench.join()
        let graph = try bench.submit([
            .nothing("a") { $0.retry = RetryPolicy(limit: 1, delay: .zero) }
        ])
        let first = bench.attempt("a").held
        let worker = bench.workers[0].identity.incarnation
        bench.giveBack("a")
        let second = bench.attempt("a").held
        bench.start("a")
        bench.finish("a", .failed(.timeout))
        let third = bench.attempt("a").held
        bench.finish("a")

        let id = first.operation
        #expect(
            bench.drain().records == [
                .graphAdded(graph),
                .granted(first.attempt, id, ordinal: 1, to: worker),
                .attemptEnded(first.attempt, id, .returned),
                .granted(second.attempt, id, ordinal: 2, to: worker),
                .started(second.attempt, id),
                .attemptEnded(second.attempt, id, .failed(.timeout)),
                .retryScheduled(id, at: bench.now.wall),
                .granted(third.attempt, id, ordinal: 3, to: worker),
                .started(third.attempt, id),
                .finished(id, .succeeded),
            ]
        )
    }
}

/// The controls among the messages.
func controls(_ effects: Scheduler.Effects) -> [Control] {
    effects.messages.compactMap { message in
        guard case .plain(.control(let control)) = message.body else { return nil }
        return control
    }
}
