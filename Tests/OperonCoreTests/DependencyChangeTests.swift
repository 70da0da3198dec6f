import OperonCore
import OperonModel
import OperonTestKit
import Testing

struct DependencyChangeTests {
    private func adding(
        _ bench: SchedulerBench,
        _ name: String,
        on other: String,
        _ condition: DependencyCondition = .unlessFailed
    ) -> Scheduler.Event {
        .dependencyAdded(bench.id(name), on: bench.id(other), condition)
    }

    private func removing(
        _ bench: SchedulerBench,
        _ name: String,
        on other: String
    ) -> Scheduler.Event {
        .dependencyRemoved(bench.id(name), on: bench.id(other))
    }

    @Test func `a ready operation that gains a dependency waits for it`() throws {
        var bench = SchedulerBench()
        try bench.submit([.nothing("a"), .nothing("b")])
        try bench.request(adding(bench, "a", on: "b"))
        #expect(bench.state("a") == .pending)
        #expect(
            bench.effects.records.last
                == .dependencyAdded(bench.id("a"), on: bench.id("b"), .unlessFailed)
        )

        bench.join()
        bench.finish("b")
        bench.finish("a")
        #expect(bench.granted == ["b", "a"])
    }

    @Test func `a dependency that failed already skips at once`() throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([.nothing("bad"), .nothing("a"), .nothing("b", after: ["a"])])
        bench.suspend(.operation(bench.id("a")))
        bench.finish("bad", .failed(.exit(code: 1)))

        try bench.request(adding(bench, "a", on: "bad"))
        #expect(bench.outcome("a") == .skipped(cause: bench.id("bad")))
        #expect(bench.outcome("b") == .skipped(cause: bench.id("a")))
    }

    @Test func `removing the last unfinished dependency releases`() throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([
            .nothing("slow"), .nothing("done"), .nothing("a", after: ["slow", "done"]),
        ])
        bench.setLimit(2)
        bench.finish("slow")
        try bench.submit([.nothing("x")])
        try bench.request(removing(bench, "a", on: "done"))

        #expect(bench.state("a") != .pending)
        #expect(
            bench.effects.records.contains(
                .dependencyRemoved(bench.id("a"), on: bench.id("done"))
            )
        )
        bench.finish("done")
    }

    @Test func `a dependency that was added can be removed, across graphs as well`() throws {
        var bench = SchedulerBench()
        try bench.submit([.nothing("a")])
        try bench.submit([.nothing("b")])
        try bench.request(adding(bench, "a", on: "b"))
        try bench.request(adding(bench, "a", on: "b"))
        #expect(bench.scheduler.dependencies(of: bench.id("a")).count == 1)

        try bench.request(removing(bench, "a", on: "b"))
        #expect(bench.state("a") == .ready)
        #expect(bench.scheduler.dependents(of: bench.id("b")).isEmpty)
        #expect(throws: Refusal.self) { try bench.request(removing(bench, "a", on: "b")) }
    }

    @Test func `removing what forbade it lets it run`() throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([
            .nothing("bad"), .nothing("slow"), .nothing("a", after: ["bad", "slow"]),
        ])
        bench.finish("bad", .failed(.exit(code: 1)))
        #expect(bench.state("a") == .pending)

        try bench.request(removing(bench, "a", on: "bad"))
        bench.finish("slow")
        #expect(bench.state("a") == .dispatched)
    }

    @Test func `what a worker has, or finished, is refused, whether or not it has begun`() throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([.nothing("a"), .nothing("b")])
        let name = bench.id("a").description

        #expect(throws: Refusal.alreadyStarted(name: name)) {
            try bench.request(adding(bench, "a", on: "b"))
        }
        bench.start("a")
        #expect(throws: Refusal.alreadyStarted(name: name)) {
            try bench.request(removing(bench, "a", on: "b"))
        }
        bench.finish("a")
        #expect(throws: Refusal.alreadyFinished(name: name)) {
            try bench.request(adding(bench, "a", on: "b"))
        }
    }

    @Test func `a cycle is refused and named, also across graphs`() throws {
        var bench = SchedulerBench()
        try bench.submit([.nothing("a"), .nothing("b", after: ["a"])])
        try bench.submit([.nothing("c", after: ["b"])])
        bench.drain()
        let path = ["a", "c", "b", "a"].map { bench.id($0).description }

        #expect(throws: Refusal.dependencyCycle(path: path)) {
            try bench.request(adding(bench, "a", on: "c"))
        }
        #expect(throws: Refusal.self) { try bench.request(adding(bench, "a", on: "a")) }
        #expect(bench.drain().records.isEmpty)
    }

    @Test func `the same dependency under another condition is refused`() throws {
        var bench = SchedulerBench()
        try bench.submit([.nothing("a"), .nothing("b", after: ["a"])])
        #expect(throws: Refusal.self) {
            try bench.request(adding(bench, "b", on: "a", .finished))
        }
    }

    @Test func `a chain of 100,000 is searched for a cycle without recursion`() throws {
        var bench = SchedulerBench()
        bench.checksInvariants = false
        let count = 100_000
        let offsets = (0...UInt32(count)).map { $0 == 0 ? 0 : $0 - 1 }
        let edges = (0..<UInt32(count - 1)).map { Edge($0, .unlessFailed) }
        bench.submit(
            .uniform(topology: GraphTopology(dependencyOffsets: offsets, dependencyEdges: edges))
        )
        func id(_ index: Int) -> OperationID {
            OperationID(graph: GraphID(rawValue: 0), index: UInt32(index))
        }
        bench.drive(.dependencyAdded(id(0), on: id(count - 1), .finished))

        guard case .dependencyCycle(let path)? = bench.effects.refusals.first else {
            Issue.record("the cycle was not seen")
            return
        }
        #expect(path.count == count + 1)
    }
}
