import OperonCore
import OperonModel
import OperonTestKit
import Testing

/// Operations that cancel what they still wait for once they will be skipped.
struct SiblingTests {
    /// “a” and “b” run, “c” waits, and “group” waits for all three.
    private func coordinator(
        cancelSiblings: Bool = true,
        _ condition: DependencyCondition = .unlessFailed
    ) throws -> RestartBench {
        var coordinator = RestartBench()
        coordinator.bench.join(slots: 2)
        try coordinator.bench.submit([
            .nothing("a"), .nothing("b"), .nothing("c"),
            .nothing("group") {
                $0.dependencies = ["a", "b", "c"].map { DependencyDescription($0, condition) }
                $0.cancelSiblings = cancelSiblings
            },
        ])
        coordinator.bench.start("a")
        coordinator.bench.start("b")
        coordinator.bench.drain()
        return coordinator
    }

    @Test func `when one part fails the others are cancelled, and the group is skipped`() throws {
        var coordinator = try coordinator()
        let running = coordinator.bench.attempt("b").held
        try coordinator.keep()
        coordinator.bench.finish("a", .failed(.exit(code: 1)))

        let reason = "a sibling did not succeed"
        #expect(coordinator.bench.outcome("c") == .cancelled(reason: reason))
        #expect(coordinator.bench.outcome("b") == nil)
        #expect(coordinator.bench.takeOrders(of: 0) == [.cancel(running)])
        #expect(
            coordinator.bench.effects.records.contains(
                .cancelled(.operation(running.operation), reason: reason, cascade: false, by: "")
            )
        )
        // Whoever takes over knows it.
        #expect(try coordinator.restart() == nil)
        coordinator.bench.drive(.transportUp)
        try coordinator.keep()
        coordinator.bench.hello(from: 0, held: [running])
        #expect(coordinator.bench.takeOrders(of: 0) == [.cancel(running)])
        coordinator.bench.finish("b", .cancelled)
        #expect(coordinator.bench.outcome("b") == .cancelled(reason: reason))
        #expect(coordinator.bench.outcome("group") == .skipped(cause: coordinator.bench.id("a")))
    }

    @Test func `without the wish they go on`() throws {
        var coordinator = try coordinator(cancelSiblings: false)
        coordinator.bench.finish("a", .failed(.exit(code: 1)))
        coordinator.bench.finish("b")
        coordinator.bench.start("c")
        coordinator.bench.finish("c")
        #expect(coordinator.bench.outcome("c") == .succeeded)
        #expect(coordinator.bench.outcome("group") == .skipped(cause: coordinator.bench.id("a")))
    }

    @Test func `an outcome that lets the group go cancels nobody`() throws {
        var coordinator = try coordinator(.finished)
        coordinator.bench.finish("a", .failed(.exit(code: 1)))
        #expect(coordinator.bench.outcome("c") == nil)
        coordinator.bench.cancel("c")
        coordinator.bench.finish("b")
        #expect(coordinator.bench.outcome("b") == .succeeded)
        #expect(coordinator.bench.outcome("group") != .skipped(cause: coordinator.bench.id("a")))
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
