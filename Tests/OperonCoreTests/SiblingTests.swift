import OperonCore
import OperonModel
import OperonTestKit
import Testing

/// Operations that cancel what they still wait for once they will be skipped.
struct SiblingTests {
    /// “a” and “b” run, “c” waits, and “group” waits for all three.
    private func world(
        cancelSiblings: Bool = true,
        _ condition: DependencyCondition = .unlessFailed
    ) throws -> RestartBench {
        var world = RestartBench()
        world.bench.join(slots: 2)
        try world.bench.submit([
            .nothing("a"), .nothing("b"), .nothing("c"),
            .nothing("group") {
                $0.dependencies = ["a", "b", "c"].map { DependencyDescription($0, condition) }
                $0.cancelSiblings = cancelSiblings
            },
        ])
        world.bench.start("a")
        world.bench.start("b")
        world.bench.drain()
        return world
    }

    @Test func `when one part fails the others are cancelled, and the group is skipped`() throws {
        var world = try world()
        let running = world.bench.attempt("b").held
        try world.keep()
        world.bench.finish("a", .failed(.exit(code: 1)))

        let reason = "a sibling did not succeed"
        #expect(world.bench.outcome("c") == .cancelled(reason: reason))
        #expect(world.bench.outcome("b") == nil)
        #expect(world.bench.takeOrders(of: 0) == [.cancel(running)])
        #expect(
            world.bench.effects.records.contains(
                .cancelled(.operation(running.operation), reason: reason, cascade: false, by: "")
            )
        )
        // Whoever takes over knows it.
        #expect(try world.restart() == nil)
        world.bench.drive(.transportUp)
        try world.keep()
        world.bench.hello(from: 0, held: [running])
        #expect(world.bench.takeOrders(of: 0) == [.cancel(running)])
        world.bench.finish("b", .cancelled)
        #expect(world.bench.outcome("b") == .cancelled(reason: reason))
        #expect(world.bench.outcome("group") == .skipped(cause: world.bench.id("a")))
    }

    @Test func `without the wish they go on`() throws {
        var world = try world(cancelSiblings: false)
        world.bench.finish("a", .failed(.exit(code: 1)))
        world.bench.finish("b")
        world.bench.start("c")
        world.bench.finish("c")
        #expect(world.bench.outcome("c") == .succeeded)
        #expect(world.bench.outcome("group") == .skipped(cause: world.bench.id("a")))
    }

    @Test func `an outcome that lets the group go cancels nobody`() throws {
        var world = try world(.finished)
        world.bench.finish("a", .failed(.exit(code: 1)))
        #expect(world.bench.outcome("c") == nil)
        world.bench.cancel("c")
        world.bench.finish("b")
        #expect(world.bench.outcome("b") == .succeeded)
        #expect(world.bench.outcome("group") != .skipped(cause: world.bench.id("a")))
    }

    @Test func `a group that comes late cancels what is left`() throws {
        var bench = SchedulerBench()
        bench.join(slots: 2)
        let graph = try bench.submit([.nothing("a"), .nothing("b")], open: true)
        bench.start("a")
        bench.start("b")
        bench.finish("a", .failed(.exit(code: 1)))
        let held = bench.attempt("b").held
        bench.drain()
        let group = OperationDescription.nothing("group", after: ["a", "b"]) {
            $0.cancelSiblings = true
        }
        try bench.add([group], to: graph)
        #expect(bench.takeOrders(of: 0) == [.cancel(held)])
    }

    @Test func `groups of groups of groups are no recursion`() throws {
        var bench = SchedulerBench()
        bench.join(slots: 1)
        var operations = [OperationDescription.nothing("part 0"), .nothing("group 0")]
        for number in 1..<20_000 {
            operations.append(.nothing("part \(number)", after: ["group 0"]))
            operations.append(
                .nothing("group \(number)", after: ["group \(number - 1)", "part \(number)"]) {
                    $0.cancelSiblings = true
                }
            )
        }
        operations[1].dependencies = [DependencyDescription("part 0")]
        try bench.submit(operations)
        bench.start("part 0")
        bench.finish("part 0", .failed(.exit(code: 1)))
        #expect(bench.scheduler.isFinished(GraphID(rawValue: 0)))
    }
}
