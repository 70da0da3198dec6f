import OperonCore
import OperonModel
import OperonTestKit
import Testing

/// An attempt that gives its place back for a while.
struct NotYetTests {
    private func bench() throws -> RestartBench {
        var world = RestartBench()
        world.bench.join()
        try world.bench.submit([
            .nothing("a") { $0.retry = RetryPolicy(limit: 1, delay: .zero, jitter: 0) },
            .nothing("b"),
        ])
        world.bench.start("a")
        return world
    }

    @Test func `it is given back, and is first again when its time has come`() throws {
        var world = try bench()
        let held = world.bench.attempt("a").held
        try world.keep()
        world.bench.finish("a", .notYet(after: .seconds(30)))

        let id = world.bench.id("a")
        #expect(
            world.bench.effects.records.prefix(2) == [
                .attemptEnded(held.attempt, id, .returned),
                .delayed(id, until: world.bench.now.wall + .seconds(30)),
            ]
        )
        #expect(world.bench.state("a") == .ready)
        #expect(world.bench.granted == ["b"])
        #expect(try world.restart() == nil)
        world.bench.advance(by: .seconds(29))
        #expect(world.bench.state("a") == .ready)
        #expect(world.bench.granted.isEmpty)
        world.bench.advance(by: .seconds(1))
        #expect(world.bench.effects.records.contains(.delayed(id, until: nil)))
    }

    @Test func `it counts as no failure and no death, however often`() throws {
        var world = try bench()
        for _ in 0..<20 {
            world.bench.finish("a", .notYet(after: .zero))
            // Before others of its priority.
            #expect(world.bench.granted.last == "a")
            world.bench.start("a")
        }
        #expect(world.bench.scheduler.attemptCount(of: world.bench.id("a")) == 21)
        // Its retry is still there.
        world.bench.finish("a", .failed(.exit(code: 1)))
        #expect(world.bench.outcome("a") == nil)
        world.bench.finish("a")
        #expect(world.bench.outcome("a") == .succeeded)
    }

    @Test func `what was cancelled meanwhile is not tried again`() throws {
        var world = try bench()
        world.bench.cancel("a", reason: "r")
        world.bench.finish("a", .notYet(after: .seconds(30)))
        #expect(world.bench.outcome("a") == .cancelled(reason: "r"))
    }

    @Test func `a cancel ends the pause, and a suspension outlasts it`() throws {
        var world = try bench()
        try world.bench.submit([.nothing("c")])
        world.bench.finish("a", .notYet(after: .seconds(3)))
        world.bench.start("b")
        world.bench.finish("b", .notYet(after: .seconds(3)))
        world.bench.cancel("a", reason: "r")
        #expect(world.bench.outcome("a") == .cancelled(reason: "r"))

        let id = world.bench.id("b")
        world.bench.suspend(.operation(id))
        world.bench.start("c")
        world.bench.finish("c")
        world.bench.drain()
        world.bench.advance(by: .seconds(4))
        #expect(world.bench.state("b") == .ready)
        #expect(world.bench.granted.isEmpty)
        world.bench.resume(.operation(id))
        #expect(world.bench.granted == ["b"])
    }

    @Test func `a priority that is set meanwhile counts after the pause, and does not end it`()
        throws
    {
        var world = try bench()
        try world.bench.submit([.nothing("c")])
        world.bench.finish("a", .notYet(after: .seconds(3)))
        world.bench.start("b")
        world.bench.drive(.priorityRequested(world.bench.id("a"), .veryHigh))
        world.bench.drain()
        world.bench.finish("b")
        #expect(world.bench.granted == ["c"])
        world.bench.start("c")
        try world.bench.submit([.nothing("d") { $0.priority = .high }])
        world.bench.advance(by: .seconds(3))
        world.bench.drain()
        world.bench.finish("c")
        #expect(world.bench.granted == ["a"])
    }

    @Test func `the reason speaks of no failure, also after one`() throws {
        var world = try bench()
        let due = Scheduler.Due.time(world.bench.now.monotonic + .seconds(30))
        let restored = Scheduler.Due.date(world.bench.now.wall + .seconds(30))
        world.bench.finish("a", .notYet(after: .seconds(30)))
        #expect(world.bench.explain("a") == [.notYet(due)])
        #expect(try world.restart() == nil)
        #expect(world.bench.explain("a").first == .notYet(restored))

        world = try bench()
        world.bench.finish("a", .failed(.exit(code: 1)))
        world.bench.start("a")
        world.bench.finish("a", .notYet(after: .seconds(30)))
        #expect(world.bench.explain("a") == [.notYet(due)])
        #expect(try world.restart() == nil)
        // What is left of it: the time. Both pauses are kept in the same way.
        #expect(world.bench.explain("a").first == .retryAt(restored))
    }

    @Test func `a delay is none of an attempt, also after a restart`() throws {
        var world = RestartBench()
        world.bench.join()
        try world.bench.submit([.nothing("a") { $0.delay = .seconds(30) }])
        let due = Scheduler.Due.date(world.bench.now.wall + .seconds(30))
        #expect(try world.restart() == nil)
        #expect(world.bench.explain("a").first == .notBefore(due))
    }

    @Test func `a pause beyond all time does not overflow`() throws {
        var world = try bench()
        world.bench.finish("a", .notYet(after: .seconds(Int64.max)))
        #expect(world.bench.state("a") == .ready)
        world.bench.cancel("a")
        #expect(world.bench.outcome("a") == .cancelled(reason: ""))
    }
}
