import OperonCore
import OperonModel
import OperonTestKit
import Testing

/// Retries, delays, dates and deadlines: everything that waits for a clock.
struct TimeTests {
    // MARK: Retries

    @Test(arguments: [
        AttemptEnd.failed(.exit(code: 1)), .failed(.timeout), .failed(.signal(name: "SIGSEGV")),
        .failed(.thrown(type: "E", message: "m", payload: [])),
    ])
    func `what failed by itself is tried again after a pause, at the front`(
        _ end: AttemptEnd
    ) throws {
        var bench = SchedulerBench()
        bench.join()
        let policy = RetryPolicy(limit: 2, delay: .seconds(4), factor: 2, jitter: 0)
        try bench.submit([.nothing("a") { $0.retry = policy }, .nothing("b"), .nothing("c")])
        let held = bench.attempt("a").held
        bench.start("a")
        bench.drain()

        bench.finish("a", end)
        var effects = bench.drain()
        let retryAt = bench.now.wall + .seconds(4)
        #expect(effects.records.contains(.retryScheduled(held.operation, at: retryAt)))
        #expect(bench.state("a") == .ready)
        let due = bench.now.monotonic + .seconds(4)
        #expect(bench.explain("a").contains(.retryAt(.time(due))))

        bench.advance(by: .seconds(4) - .nanoseconds(1))
        #expect(bench.state("a") == .ready)
        bench.advance(by: .nanoseconds(1))
        bench.finish("b")
        #expect(bench.state("a") == .dispatched)
        bench.drain()

        bench.finish("a", end)
        effects = bench.drain()
        let nextRetryAt = bench.now.wall + .seconds(8)
        #expect(effects.records.contains(.retryScheduled(held.operation, at: nextRetryAt)))
        // Its lease is renewed by the beat, or the pause would outlast the worker.
        bench.advance(by: .seconds(4))
        bench.beat(from: 0)
        bench.advance(by: .seconds(4))
        bench.finish("c")
        bench.finish("a", end)

        guard case .failed(let error) = end else { return }
        #expect(bench.outcome("a") == .failed(error))
        #expect(bench.scheduler.attemptCount(of: held.operation) == 3)
    }

    @Test(arguments: [
        OperationError.kindUnknown("k"), .undecodable("why"), .outputTooLarge(bytes: 2, limit: 1),
        .inputTooLarge(bytes: 2, limit: 1), .versionUnsupported("2"),
        .conditionFailed(name: "c"), .workerLost, .deadline,
    ])
    func `what trying again cannot mend is not tried again`(_ error: OperationError) throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([.nothing("a") { $0.retry = RetryPolicy(limit: 3) }])

        bench.finish("a", .failed(error))

        #expect(bench.outcome("a") == .failed(error))
    }

    @Test func `a retry without a pause goes out at once`() throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([
            .nothing("a") { $0.retry = RetryPolicy(limit: 1, delay: .zero) }, .nothing("b"),
        ])
        bench.drain()

        bench.finish("a", .failed(.timeout))

        #expect(bench.granted == ["a"])
    }

    private func pauses(seed: UInt64) throws -> [Duration] {
        var configuration = SchedulerBench.noReadAhead
        configuration.seed = seed
        var bench = SchedulerBench(configuration)
        bench.join()
        let policy = RetryPolicy(
            limit: 20,
            delay: .seconds(1),
            factor: 1,
            jitter: 0.5
        )
        try bench.submit([.nothing("a") { $0.retry = policy }])
        var pauses: [Duration] = []
        for _ in 0..<20 {
            bench.finish("a", .failed(.timeout))
            for case .retryScheduled(_, let time) in bench.drain().records {
                pauses.append(time - bench.now.wall)
            }
            bench.advance(by: .seconds(2))
            bench.beat(from: 0)
        }
        return pauses
    }

    @Test func `jitter stays within its bounds and comes from the seed`() throws {
        let first = try pauses(seed: 1)

        #expect(first.count == 20)
        #expect(first.allSatisfy { $0 >= .milliseconds(500) && $0 <= .milliseconds(1_500) })
        #expect(Set(first).count > 10)
        #expect(try pauses(seed: 1) == first)
        #expect(try pauses(seed: 2) != first)
    }

    // MARK: Delays and dates

    @Test func `a delay counts from the release`() throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([
            .nothing("a"), .nothing("b", after: ["a"]) { $0.delay = .seconds(3) },
        ])
        bench.advance(by: .seconds(2))
        bench.finish("a")

        #expect(bench.state("b") == .ready)
        #expect(bench.effects.wakeAt == bench.now.monotonic + .seconds(3))
        bench.advance(by: .seconds(3) - .nanoseconds(1))
        #expect(bench.state("b") == .ready)
        bench.advance(by: .nanoseconds(1))
        #expect(bench.state("b") == .dispatched)
    }

    @Test func `nothing starts before its date, even if the wall clock is set back`() throws {
        var bench = SchedulerBench()
        bench.join()
        let date = wall(bench, .seconds(4))
        try bench.submit([.nothing("a") { $0.notBefore = date }])
        #expect(bench.state("a") == .ready)

        bench.now.wall = wall(bench, .seconds(-100))
        bench.advance(by: .seconds(4))
        #expect(bench.state("a") == .ready)
        for _ in 0..<25 {
            bench.beat(from: 0)
            bench.advance(by: .seconds(4))
        }
        #expect(bench.now.wall == date)
        #expect(bench.state("a") == .dispatched)
    }

    @Test func `a date that has passed delays nothing`() throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([.nothing("a") { $0.notBefore = wall(bench, .seconds(-1)) }])
        #expect(bench.state("a") == .dispatched)
    }

    @Test func `a date delays the first attempt only`() throws {
        var bench = SchedulerBench()
        bench.join()
        let date = wall(bench, .seconds(2))
        try bench.submit([
            .nothing("a") {
                $0.notBefore = date
                $0.retry = RetryPolicy(limit: 1, delay: .seconds(1), jitter: 0)
            }
        ])
        bench.advance(by: .seconds(2))
        bench.finish("a", .failed(.timeout))
        bench.now.wall = wall(bench, .seconds(-1_000))

        bench.advance(by: .seconds(1))

        #expect(bench.state("a") == .dispatched)
    }

    // MARK: Deadlines

    @Test func `what waits at its deadline fails, and releases by that`() throws {
        var bench = SchedulerBench()
        bench.join()
        let date = wall(bench, .seconds(3))
        try bench.submit([
            .nothing("gate"),
            .nothing("ready") { $0.deadline = date },
            .nothing("pending", after: ["gate"]) { $0.deadline = date },
            .nothing("handler", after: ["ready"], .failed),
        ])

        bench.advance(by: .seconds(3))

        #expect(bench.outcome("ready") == .failed(.deadline))
        #expect(bench.outcome("pending") == .failed(.deadline))
        #expect(bench.state("handler") == .ready)
        bench.finish("gate")
        #expect(bench.outcome("pending") == .failed(.deadline))
    }

    @Test(arguments: [true, false])
    func `what is in flight at its deadline is stopped, and its own end counts`(
        _ succeeds: Bool
    ) throws {
        var bench = SchedulerBench()
        bench.join()
        let date = wall(bench, .seconds(3))
        try bench.submit([.nothing("a") { $0.deadline = date }])
        bench.start("a")
        let held = bench.attempt("a").held

        bench.advance(by: .seconds(3))
        #expect(bench.takeOrders(of: 0) == [.cancel(held)])
        bench.finish("a", succeeds ? .succeeded : .cancelled)

        #expect(bench.outcome("a") == (succeeds ? .succeeded : .failed(.deadline)))
    }

    @Test func `a deadline follows the wall clock, forwards and back`() throws {
        var bench = SchedulerBench()
        let date = wall(bench, .seconds(10))
        try bench.submit([.nothing("a") { $0.deadline = date }])

        bench.now.wall = wall(bench, .seconds(-20))
        bench.advance(by: .seconds(10))
        #expect(bench.outcome("a") == nil)
        bench.advance(by: .seconds(20))
        #expect(bench.outcome("a") == .failed(.deadline))
    }

    @Test func `a deadline that passed is never undone`() throws {
        var bench = SchedulerBench()
        bench.join()
        let date = wall(bench, .seconds(2))
        try bench.submit([
            .nothing("a") {
                $0.deadline = date
                $0.retry = RetryPolicy(limit: 5)
            }
        ])
        bench.advance(by: .seconds(2))
        bench.now.wall = wall(bench, .seconds(-100))

        bench.giveBack("a")

        #expect(bench.outcome("a") == .failed(.deadline))
    }

    @Test func `dates at the ends of time do not trap`() throws {
        var bench = SchedulerBench()
        bench.join()
        let first = WallTime(nanosecondsSince1970: .min)
        let last = WallTime(nanosecondsSince1970: .max)
        bench.now.wall = WallTime(nanosecondsSince1970: -5)
        try bench.submit([
            .nothing("a") {
                $0.notBefore = first
                $0.deadline = last
            },
            .nothing("b") { $0.notBefore = last },
            .nothing("c") { $0.deadline = first },
        ])
        bench.advance(by: .zero)

        #expect(bench.state("a") == .dispatched)
        #expect(bench.state("b") == .ready)
        #expect(bench.outcome("c") == .failed(.deadline))
    }

    private func wall(_ bench: SchedulerBench, _ later: Duration) -> WallTime {
        WallTime(
            nanosecondsSince1970: bench.now.wall.nanosecondsSince1970 + later.nanoseconds
        )
    }
}
