import OperonCore
import OperonModel
import OperonTestKit
import Testing

/// A group waits for the operations that a running operation adds to it.
struct JoinTests {
    /// “list” runs, the group waits for it, and “after” for the group.
    private func bench(_ more: [OperationDescription] = []) throws -> SchedulerBench {
        var bench = SchedulerBench()
        bench.join(slots: 8)
        try bench.submit(
            [.nothing("list"), .nothing("group", after: ["list"])] + more
                + [.nothing("after", after: ["group"])]
        )
        bench.start("list")
        bench.drain()
        bench.resolver.group = 1
        return bench
    }

    /// Returns the verdict.
    private func add(
        _ operations: [OperationDescription],
        number: UInt64 = 1,
        to bench: inout SchedulerBench
    ) -> Scheduler.Verdict.Content? {
        bench.drain()
        bench.resolver.additions = [.success(operations)]
        let held = bench.attempt("list").held
        bench.send(.added(held, AdditionRequest(number: number, operations: [1])), from: 0)
        return bench.effects.messages.flatMap(\.verdicts).first?.content
    }

    private func dependencies(of name: String, _ bench: SchedulerBench) -> [String] {
        bench.scheduler.dependencies(of: bench.id(name)).map { bench.name($0.operation) }
    }

    @Test func `a group waits for all that was added, in pieces and by several additions`() throws {
        var bench = try bench()
        #expect(add([.nothing("e0"), .nothing("e1")], to: &bench) == .added(2))
        #expect(add([.nothing("e2", after: ["e1"])], number: 2, to: &bench) == .added(1))
        bench.scheduler.checkInvariants()
        #expect(dependencies(of: "group", bench) == ["list", "e0", "e1", "e2"])
        for name in ["list", "e0", "e1"] {
            bench.finish(name)
            #expect(bench.state("group") == .pending)
        }
        bench.finish("e2")
        bench.finish("group")
        bench.finish("after")
        #expect(bench.outcome("after") == .succeeded)
        #expect(bench.scheduler.isFinished(GraphID(rawValue: 0)))
    }

    @Test func `a group is skipped for an element that failed, and its retry runs that again`()
        throws
    {
        var bench = try bench()
        #expect(add([.nothing("e0"), .nothing("e1")], to: &bench) == .added(2))
        bench.finish("list")
        bench.finish("e0", .failed(.exit(code: 1)))
        bench.finish("e1")
        #expect(bench.outcome("group") == .skipped(cause: bench.id("e0")))
        #expect(bench.outcome("after") == .skipped(cause: bench.id("group")))

        try bench.request(
            .retryRequested(GraphID(rawValue: 0), operations: [1], cancelled: false)
        )
        bench.scheduler.checkInvariants()
        #expect(bench.state("group") == .pending)
        bench.finish("e0")
        bench.finish("group")
        bench.finish("after")
        #expect(bench.outcome("after") == .succeeded)
        #expect(bench.scheduler.round(of: bench.id("e1")) == 0)
    }

    @Test func `a group that was cancelled takes nothing more, and nothing is added`() throws {
        var bench = try bench()
        bench.cancel("group")
        let group = bench.id("group")
        #expect(add([.nothing("e0")], to: &bench) == .refused(.alreadyFinished(group)))
        #expect(bench.effects.records.isEmpty)
        #expect(bench.scheduler.operationCount(of: group.graph) == 3)
    }

    @Test func `an element cannot wait for what waits for its group`() throws {
        var bench = try bench()
        let path = ["group", "after", "group"].map(bench.id)
        #expect(
            add([.nothing("e0", after: ["after"])], to: &bench)
                == .refused(.dependencyCycle(path))
        )
        #expect(bench.effects.records.isEmpty)
        let group = bench.id("group")
        #expect(
            add([.nothing("e0", after: ["group"])], number: 2, to: &bench)
                == .refused(.dependencyCycle([group, group]))
        )
    }

    @Test func `the dependencies of a group count towards those of the graph`() throws {
        var configuration = SchedulerBench.noReadAhead
        configuration.limits.edgesPerGraph = 4
        var bench = SchedulerBench(configuration)
        bench.join(slots: 8)
        try bench.submit([.nothing("list"), .nothing("group", after: ["list"])])
        bench.start("list")
        bench.resolver.group = 1
        #expect(add([.nothing("e0"), .nothing("e1")], to: &bench) == .added(2))
        let refusal = Refusal.limitExceeded(limit: .edgesPerGraph, value: 5, maximum: 4)
        #expect(
            add([.nothing("e2"), .nothing("e3")], number: 2, to: &bench)
                == .refused(.worded(refusal))
        )
    }

    @Test func `a group can be told to wait no longer for one of its elements`() throws {
        var bench = try bench()
        #expect(add((0..<5).map { .nothing("e\($0)") }, to: &bench) == .added(5))
        bench.finish("list")
        let group = bench.id("group")
        for name in ["e0", "e2", "e4"] {
            try bench.request(.dependencyRemoved(group, on: bench.id(name)))
        }
        bench.scheduler.checkInvariants()
        #expect(dependencies(of: "group", bench) == ["list", "e1", "e3"])
        bench.finish("e1")
        bench.finish("e3")
        bench.finish("group")
        #expect(bench.outcome("group") == .succeeded)
        bench.finish("e0", .failed(.exit(code: 1)))
        #expect(bench.outcome("group") == .succeeded)
    }
}
