import OperonCore
import OperonModel
import OperonTestKit
import Testing

/// The operations of a graph by state, as clients see them.
@Suite struct StateCountTests {
    private static func counts(_ change: (inout StateCounts) -> Void) -> StateCounts {
        var counts = StateCounts()
        change(&counts)
        return counts
    }

    @Test func `each operation is counted in its state, all of them and those of a range`() throws {
        var bench = SchedulerBench()
        bench.join(slots: 3)
        let names = ["bad", "runs", "sent", "ready", "gone"]
        try bench.submit(names.map { .nothing($0) } + [.nothing("skipped", after: ["bad"])])
        let graph = bench.id("bad").graph
        bench.start("bad")
        bench.start("runs")
        bench.cancel("gone")
        #expect(
            bench.scheduler.stateCounts(of: graph)
                == Self.counts {
                    ($0.pending, $0.ready, $0.dispatched, $0.executing) = (1, 1, 1, 2)
                    $0.cancelled = 1
                }
        )
        bench.suspend(.graph(graph))
        bench.finish("bad", .failed(.exit(code: 1)))
        #expect(
            bench.scheduler.stateCounts(of: graph)
                == Self.counts {
                    ($0.ready, $0.dispatched, $0.executing) = (1, 1, 1)
                    ($0.failed, $0.cancelled, $0.skipped) = (1, 1, 1)
                }
        )
        #expect(
            bench.scheduler.stateCounts(of: graph, in: 0..<3)
                == Self.counts { ($0.failed, $0.executing, $0.dispatched) = (1, 1, 1) }
        )
        // A range may go beyond the end of a graph that was dropped meanwhile.
        #expect(
            bench.scheduler.stateCounts(of: graph, in: 5..<90) == Self.counts { $0.skipped = 1 }
        )
        bench.scheduler.checkInvariants()
    }
}
