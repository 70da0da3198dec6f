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
        world.bench.finish("b")
        for _ in 0..<20 {
            world.bench.finish("a", .notYet(after: .zero))
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

    @Test func `a pause beyond all time does not overflow`() throws {
        var world = try bench()
        world.bench.finish("a", .notYet(after: .seconds(Int64.max)))
        #expect(world.bench.state("a") == .ready)
        world.bench.cancel("a")
        #expect(world.bench.outcome("a") == .cancelled(reason: ""))
    }
}
