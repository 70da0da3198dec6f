import OperonCore
import OperonModel
import OperonTestKit
import Testing

/// An attempt that gives its place back for a while.
struct NotYetTests {
    private func bench() throws -> RestartBench {
        var coordinator = RestartBench()
        coordinator.bench.join()
        try coordinator.bench.submit([
            .nothing("a") { $0.retry = RetryPolicy(limit: 1, delay: .zero, jitter: 0) },
            .nothing("b"),
        ])
        coordinator.bench.start("a")
        return coordinator
    }

    @Test func `it is given back, and is first again when its time has come`() throws {
        var coordinator = try bench()
        let held = coordinator.bench.attempt("a").held
        try coordinator.keep()
        coordinator.bench.finish("a", .notYet(after: .seconds(30)))

        let id = coordinator.bench.id("a")
        #expect(
            coordinator.bench.effects.records.prefix(2) == [
                .attemptEnded(held.attempt, id, .returned),
                .delayed(id, until: coordinator.bench.now.wall + .seconds(30)),
            ]
        )
        #expect(coordinator.bench.state("a") == .ready)
        #expect(coordinator.bench.granted == ["b"])
        #expect(try coordinator.restart() == nil)
        coordinator.bench.advance(by: .seconds(29))
        #expect(coordinator.bench.state("a") == .ready)
        #expect(coordinator.bench.granted.isEmpty)
        coordinator.bench.advance(by: .seconds(1))
        #expect(coordinator.bench.effects.records.contains(.delayed(id, until: nil)))
    }

    @Test func `it counts as no failure and no death, however often`() throws {
        var coordinator = try bench()
        for _ in 0..<20 {
            coordinator.bench.finish("a", .notYet(after: .zero))
            // Before others of its priority.
            #expect(coordinator.bench.granted.last == "a")
            coordinator.bench.start("a")
        }
        #expect(coordinator.bench.scheduler.attemptCount(of: coordinator.bench.id("a")) == 21)
        // Its retry is still there.
        coordinator.bench.finish("a", .failed(.exit(code: 1)))
        #expect(coordinator.bench.outcome("a") == nil)
        coordinator.bench.finish("a")
        #expect(coordinator.bench.outcome("a") == .succeeded)
    }

    @Test func `what was cancelled meanwhile is not tried again`() throws {
        var coordinator = try bench()
        coordinator.bench.cancel("a", reason: "r")
        coordinator.bench.finish("a", .notYet(after: .seconds(30)))
        #expect(coordinator.bench.outcome("a") == .cancelled(reason: "r"))
    }

    @Test func `a cancel ends the pause, and a suspension outlasts it`() throws {
        var coordinator = try bench()
        try coordinator.bench.submit([.nothing("c")])
        coordinator.bench.finish("a", .notYet(after: .seconds(3)))
        coordinator.bench.start("b")
        coordinator.bench.finish("b", .notYet(after: .seconds(3)))
        coordinator.bench.cancel("a", reason: "r")
        #expect(coordinator.bench.outcome("a") == .cancelled(reason: "r"))

        let id = coordinator.bench.id("b")
        coordinator.bench.suspend(.operation(id))
        coordinator.bench.start("c")
        coordinator.bench.finish("c")
        coordinator.bench.drain()
        coordinator.bench.advance(by: .seconds(4))
        #expect(coordinator.bench.state("b") == .ready)
        #expect(coordinator.bench.granted.isEmpty)
        coordinator.bench.resume(.operation(id))
        #expect(coordinator.bench.granted == ["b"])
    }

    @Test func `a priority that is set meanwhile counts after the pause, and does not end it`()
        throws
    {
        var coordinator = try bench()
        try coordinator.bench.submit([.nothing("c")])
        coordinator.bench.finish("a", .notYet(after: .seconds(3)))
        coordinator.bench.start("b")
        coordinator.bench.drive(.priorityRequested(coordinator.bench.id("a"), .veryHigh))
        coordinator.bench.drain()
        coordinator.bench.finish("b")
        #expect(coordinator.bench.granted == ["c"])
        coordinator.bench.start("c")
        try coordinator.bench.submit([.nothing("d") { $0.priority = .high }])
        coordinator.bench.advance(by: .seconds(3))
        coordinator.bench.drain()
        coordinator.bench.finish("c")
        #expect(coordinator.bench.granted == ["a"])
    }

    @Test func `the reason speaks of no failure, also after one`() throws {
        var coordinator = try bench()
        let due = Scheduler.Due.time(coordinator.bench.now.monotonic + .seconds(30))
        let restored = Scheduler.Due.date(coordinator.bench.now.wall + .seconds(30))
        coordinator.bench.finish("a", .notYet(after: .seconds(30)))
        #expect(coordinator.bench.explain("a") == [.notYet(due)])
        #expect(try coordinator.restart() == nil)
        #expect(coordinator.bench.explain("a").first == .notYet(restored))

        coordinator = try bench()
        coordinator.bench.finish("a", .failed(.exit(code: 1)))
        coordinator.bench.start("a")
        coordinator.bench.finish("a", .notYet(after: .seconds(30)))
        #expect(coordinator.bench.explain("a") == [.notYet(due)])
        #expect(try coordinator.restart() == nil)
        // What is left of it: the time. Both pauses are kept in the same way.
        #expect(coordinator.bench.explain("a").first == .retryAt(restored))
    }

    @Test func `a delay is none of an attempt, also after a restart`() throws {
        var coordinator = RestartBench()
        coordinator.bench.join()
        try coordinator.bench.submit([.nothing("a") { $0.delay = .seconds(30) }])
        let due = Scheduler.Due.date(coordinator.bench.now.wall + .seconds(30))
        #expect(try coordinator.restart() == nil)
        #expect(coordinator.bench.explain("a").first == .notBefore(due))
    }

    @Test func `a pause beyond all time does not overflow`() throws {
        var coordinator = try bench()
        coordinator.bench.finish("a", .notYet(after: .seconds(Int64.max)))
        #expect(coordinator.bench.state("a") == .ready)
        coordinator.bench.cancel("a")
        #expect(coordinator.bench.outcome("a") == .cancelled(reason: ""))
    }
}
