import OperonCore
import OperonModel
import OperonTestKit
import Testing

/// By whom changes were asked for.
struct AttributionTests {
    /// The events of the records, each with the name that it has.
    private func events(of effects: Scheduler.Effects) -> [String] {
        var events: [String] = []
        effects.forEachRecord { record, client in
            let now = WallTime(nanosecondsSince1970: 0)
            guard let event = ClusterEvent(record, by: client, at: now) else { return }
            events.append(event.by.isEmpty ? event.kind.name : "\(event.kind) by \(event.by)")
        }
        return events
    }

    @Test func `what was asked for has the name, and what follows from it has none`() throws {
        var bench = SchedulerBench()
        bench.drain()
        try bench.submit([
            .nothing("a") { $0.work = .external(input: .empty) }, .nothing("b", after: ["a"]),
            .nothing("c", after: ["b"]),
        ])
        bench.drain()
        let failure = Completion.failed(.thrown(type: "T", message: "no", payload: []))
        bench.drive(.completionRequested(bench.id("a"), attempt: nil, failure), by: "ann")
        #expect(events(of: bench.drain()) == ["finished by ann", "finished", "finished"])

        bench.drive(
            .retryRequested(bench.id("a").graph, operations: [], cancelled: false),
            by: "bob"
        )
        let again = ["reopened by bob", "reopened by bob", "reopened by bob"]
        #expect(events(of: bench.drain()) == again + ["granted", "started"])
    }

    @Test func `an attempt that fails and is tried again says who ended it`() throws {
        var bench = SchedulerBench()
        try bench.submit([
            .nothing("a") {
                $0.work = .external(input: .empty)
                $0.retry.limit = 1
            }
        ])
        bench.drain()
        let failure = Completion.failed(.thrown(type: "T", message: "no", payload: []))
        bench.drive(.completionRequested(bench.id("a"), attempt: nil, failure), by: "ann")
        #expect(events(of: bench.drain()).first == "attemptEnded by ann")
    }

    @Test func `a graph that fails fast is cancelled by nobody`() throws {
        var bench = SchedulerBench()
        bench.drain()
        try bench.submit(
            [.nothing("a") { $0.work = .external(input: .empty) }, .nothing("b")],
            failFast: true
        )
        bench.drain()
        let failure = Completion.failed(.thrown(type: "T", message: "no", payload: []))
        bench.drive(.completionRequested(bench.id("a"), attempt: nil, failure), by: "ann")
        #expect(
            events(of: bench.drain()) == ["finished by ann", "graphCancelled", "finished"]
        )
    }

    @Test func `the cancel of a graph and its closing have the name, its operations do not`()
        throws
    {
        var bench = SchedulerBench()
        let graph = try bench.submit([.nothing("a")], open: true)
        bench.drain()
        bench.drive(.cancelRequested(.graph(graph), reason: "", cascade: false), by: "ann")
        #expect(
            events(of: bench.drain()) == [
                "graphCancelled by ann", "graphClosed by ann", "finished",
            ]
        )
    }

    @Test func `a command that concerns many operations adds one attribution`() throws {
        var bench = SchedulerBench()
        bench.checksInvariants = false
        let graph = try bench.submit((0..<2_000).map { .nothing("\($0)") })
        bench.drive(.cancelRequested(.graph(graph), reason: "", cascade: false), by: "ann")
        bench.drain()
        bench.drive(.retryRequested(graph, operations: [], cancelled: true), by: "ann")
        let effects = bench.drain()
        #expect(events(of: effects).count { $0 == "reopened by ann" } == 2_000)
        #expect(effects.attributions.map(\.records) == [0..<2_000])
    }

    @Test func `a client without a name adds nothing, and neither does a refused command`() throws {
        var bench = SchedulerBench()
        let graph = try bench.submit([.nothing("a")], open: true)
        bench.drive(.queueLimitSet(queue: "default", maximum: 2))
        bench.drive(.graphClosed(GraphID(rawValue: 7)), by: "ann")
        #expect(bench.drain().attributions.isEmpty)
        bench.drive(.graphClosed(graph), by: "ann")
        bench.drive(.graphClosed(graph), by: "bob")
        #expect(bench.drain().attributions.map(\.client) == ["ann"])
    }

    @Test func `effects of several events keep who asked for each`() throws {
        var bench = SchedulerBench()
        bench.drain()
        for client in ["ann", "ann", "", "bob"] {
            bench.drive(.queueLimitSet(queue: "q", maximum: 2), by: client)
        }
        let effects = bench.drain()
        #expect(effects.attributions.map(\.records) == [0..<2, 3..<4])
        #expect(
            events(of: effects) == [
                "queueSet by ann", "queueSet by ann", "queueSet", "queueSet by bob",
            ]
        )
    }
}
