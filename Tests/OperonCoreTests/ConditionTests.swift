import OperonCore
import OperonModel
import OperonTestKit
import Testing

struct ConditionCase: Sendable, CustomTestStringConvertible {
    let condition: DependencyCondition
    let outcome: OutcomeKind
    let releases: Bool

    var testDescription: String { "\(condition) at \(outcome): \(releases ? "release" : "skip")" }

    /// The table of the design, written out once more.
    static let all: [ConditionCase] = [
        ConditionCase(condition: .unlessFailed, outcome: .succeeded, releases: true),
        ConditionCase(condition: .unlessFailed, outcome: .cancelled, releases: true),
        ConditionCase(condition: .unlessFailed, outcome: .failed, releases: false),
        ConditionCase(condition: .unlessFailed, outcome: .skipped, releases: false),
        ConditionCase(condition: .finished, outcome: .succeeded, releases: true),
        ConditionCase(condition: .finished, outcome: .cancelled, releases: true),
        ConditionCase(condition: .finished, outcome: .failed, releases: true),
        ConditionCase(condition: .finished, outcome: .skipped, releases: true),
        ConditionCase(condition: .succeeded, outcome: .succeeded, releases: true),
        ConditionCase(condition: .succeeded, outcome: .cancelled, releases: false),
        ConditionCase(condition: .succeeded, outcome: .failed, releases: false),
        ConditionCase(condition: .succeeded, outcome: .skipped, releases: false),
        ConditionCase(condition: .failed, outcome: .succeeded, releases: false),
        ConditionCase(condition: .failed, outcome: .cancelled, releases: false),
        ConditionCase(condition: .failed, outcome: .failed, releases: true),
        ConditionCase(condition: .failed, outcome: .skipped, releases: false),
    ]
}

struct ConditionTests {
    @Test(arguments: DependencyCondition.allCases)
    func `an edge keeps its operation and its condition`(_ condition: DependencyCondition) {
        for operation: UInt32 in [0, 1, (1 << 30) - 2] {
            let edge = Edge(operation, condition)
            #expect(edge.operation == operation && edge.condition == condition)
        }
    }

    @Test(arguments: ConditionCase.all)
    func `a dependency releases or skips by its condition`(_ row: ConditionCase) throws {
        var bench = SchedulerBench()
        bench.join(slots: 4)
        try bench.submit([
            .nothing("broken"),
            .nothing("a", after: row.outcome == .skipped ? ["broken"] : []),
            .nothing("b", after: ["a"], row.condition),
        ])

        switch row.outcome {
        case .succeeded: bench.finish("a")
        case .failed: bench.finish("a", .failed(.exit(code: 1)))
        case .cancelled:
            bench.cancel("a")
            bench.finish("a", .cancelled)
        case .skipped: bench.finish("broken", .failed(.exit(code: 1)))
        }

        #expect(bench.outcome("a")?.kind == row.outcome)
        if row.releases {
            #expect(bench.state("b") == .dispatched)
        } else {
            #expect(bench.outcome("b") == .skipped(cause: bench.id("a")))
        }
    }

    @Test func `all dependencies must have an outcome before one of them skips`() throws {
        var bench = SchedulerBench()
        bench.join(slots: 2)
        try bench.submit([.nothing("a"), .nothing("b"), .nothing("c", after: ["a", "b"])])

        bench.finish("a", .failed(.timeout))

        #expect(bench.state("c") == .pending)
        bench.finish("b")
        #expect(bench.outcome("c") == .skipped(cause: bench.id("a")))
    }

    @Test func `skipping names the first listed dependency that demands it`() throws {
        var bench = SchedulerBench()
        bench.join(slots: 3)
        try bench.submit([
            .nothing("x"), .nothing("y"), .nothing("z"),
            .nothing("last", after: ["z", "y", "x"]),
        ])

        bench.finish("x", .failed(.timeout))
        bench.finish("y", .failed(.timeout))
        bench.finish("z")

        #expect(bench.outcome("last") == .skipped(cause: bench.id("y")))
    }

    @Test func `a handler of failure runs, and is skipped when there was none`() throws {
        var bench = SchedulerBench()
        bench.join(slots: 2)
        try bench.submit([
            .nothing("good"), .nothing("bad"),
            .nothing("afterGood", after: ["good"], .failed),
            .nothing("afterBad", after: ["bad"], .failed),
        ])

        bench.finish("good")
        bench.finish("bad", .failed(.exit(code: 3)))

        #expect(bench.outcome("afterGood") == .skipped(cause: bench.id("good")))
        #expect(bench.state("afterBad") == .dispatched)
    }

    @Test func `a dependent is dispatched only when its last dependency finishes`() throws {
        var bench = SchedulerBench()
        bench.join(slots: 3)
        try bench.submit([
            .nothing("a"), .nothing("b"), .nothing("c"), .nothing("d", after: ["a", "b", "c"]),
        ])
        bench.finish("c")
        bench.finish("a")
        bench.drain()

        let (worker, held) = bench.attempt("b")
        bench.finish("b")

        let d = bench.id("d")
        let effects = bench.drain()
        #expect(
            effects.records == [
                .started(held.attempt, held.operation),
                .finished(held.operation, .succeeded),
                .granted(
                    AttemptID(epoch: Epoch(rawValue: 1), number: 4),
                    d,
                    ordinal: 1,
                    to: bench.workers[worker].identity.incarnation
                ),
            ]
        )
        #expect(effects.messages.count == 1)
        #expect(effects.refusals.isEmpty)
        #expect(bench.state("d") == .dispatched)
    }

    @Test func `a failure at the head of a chain of 100,000 skips it all`() {
        let count = 100_000
        var bench = SchedulerBench()
        bench.checksInvariants = false
        bench.join()
        bench.submit(.uniform(topology: chain(count)))
        let head = OperationID(graph: GraphID(rawValue: 0), index: 0)
        let held = bench.workers[0].held[0]
        #expect(held.operation == head)

        bench.send(.finished(held, bench.result(.failed(.exit(code: 1)))), from: 0)

        let graph = GraphID(rawValue: 0)
        #expect(bench.scheduler.isFinished(graph))
        #expect(bench.scheduler.count(of: graph, .failed) == 1)
        #expect(bench.scheduler.count(of: graph, .skipped) == count - 1)
        let last = OperationID(graph: graph, index: UInt32(count - 1))
        let before = OperationID(graph: graph, index: UInt32(count - 2))
        #expect(bench.scheduler.outcome(of: last) == .skipped(cause: before))
    }

    @Test func `an empty graph is finished when it is submitted`() throws {
        var bench = SchedulerBench()

        let graph = try bench.submit([])

        let effects = bench.drain()
        #expect(effects.records == [.graphAdded(graph)])
        #expect(effects.notices == [.graphFinished(graph)])
        #expect(bench.scheduler.isFinished(graph))
    }
}

/// Each operation waits for the one before.
func chain(_ count: Int) -> GraphTopology {
    GraphTopology(
        dependencyOffsets: (0...UInt32(count)).map { $0 == 0 ? 0 : $0 - 1 },
        dependencyEdges: (0..<UInt32(count - 1)).map { Edge($0, .unlessFailed) }
    )
}
