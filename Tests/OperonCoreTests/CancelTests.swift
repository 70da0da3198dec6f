import OperonCore
import OperonModel
import OperonTestKit
import Testing

struct CancelTests {
    @Test func `what waits is cancelled in the same event`() throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([.nothing("a"), .nothing("b"), .nothing("c", after: ["a"])])
        bench.drain()

        for name in ["b", "c"] {
            let id = bench.id(name)
            bench.cancel(name, reason: "not wanted")
            let effects = bench.drain()
            #expect(
                effects.records == [
                    .cancelled(.operation(id), reason: "not wanted", cascade: false, by: ""),
                    .finished(id, .cancelled(reason: "not wanted")),
                ]
            )
            #expect(effects.messages.isEmpty)
            #expect(effects.notices == [.finished(id, .cancelled(reason: "not wanted"))])
        }
    }

    @Test func `many in a row are cancelled with one record`() throws {
        var bench = SchedulerBench(SchedulerBench.noReadAhead)
        bench.join()
        var operations = (0..<200).map { OperationDescription.nothing("a\($0)") }
        for index in 150..<200 { operations[index].queue = "other" }
        try bench.submit(operations)
        let held = bench.attempt("a0").held
        bench.drain()

        let graph = GraphID(rawValue: 0)
        bench.drive(.cancelRequested(.graph(graph), reason: "r", cascade: false))
        let effects = bench.drain()
        let outcome = Outcome.cancelled(reason: "r")
        let range = OperationRange(graph: graph, indices: 1..<150)
        // Fewer than 64 are in the other queue.
        let others = (150..<200).map { OperationID(graph: graph, index: $0) }
        let cancelled = Scheduler.Record.cancelled(
            .graph(graph),
            reason: "r",
            cascade: false,
            by: ""
        )
        #expect(
            effects.records
                == [cancelled, .rangeFinished(range, outcome)]
                + others.map { .finished($0, outcome) }
        )
        #expect(effects.results.first?.affected == 200)
        #expect(effects.results.first?.finished == 199)
        #expect(bench.takeOrders(of: 0) == [.cancel(held)])
        #expect(bench.outcome("a77") == outcome)
    }

    @Test func `dependents of two stages are cancelled with one record, too`() throws {
        var bench = SchedulerBench()
        var operations = [OperationDescription.nothing("first")]
        for index in 0..<50 {
            operations.append(.nothing("a\(index)", after: ["first"]))
            operations.append(.nothing("b\(index)", after: ["a\(index)"]))
        }
        try bench.submit(operations)
        bench.drain()

        bench.cancel("first", reason: "r", cascade: true)

        let range = OperationRange(graph: GraphID(rawValue: 0), indices: 0..<101)
        let records = bench.drain().records
        #expect(records.last == .rangeFinished(range, .cancelled(reason: "r")))
        #expect(records.count == 2)
    }

    @Test func `what was dispatched and not started is given back and then cancelled`() throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([.nothing("a")])
        let held = bench.attempt("a").held
        bench.drain()

        bench.cancel("a", reason: "r")
        #expect(bench.takeOrders(of: 0) == [.cancel(held)])
        #expect(bench.outcome("a") == nil)
        bench.drain()

        bench.giveBack("a")
        #expect(
            bench.drain().records == [
                .attemptEnded(held.attempt, held.operation, .returned),
                .finished(held.operation, .cancelled(reason: "r")),
            ]
        )
        #expect(bench.scheduler.isFinished(GraphID(rawValue: 0)))
    }

    @Test(arguments: [
        (AttemptEnd.cancelled, Outcome.cancelled(reason: "r")),
        (.succeeded, .succeeded),
        (.failed(.exit(code: 2)), .failed(.exit(code: 2))),
    ])
    func `what runs is asked to stop, and its outcome is what it reports`(
        _ end: AttemptEnd,
        _ outcome: Outcome
    ) throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([.nothing("a") { $0.retry = RetryPolicy(limit: 3) }])
        let held = bench.attempt("a").held
        bench.start("a")

        bench.cancel("a", reason: "r")
        #expect(bench.takeOrders(of: 0) == [.cancel(held)])
        #expect(bench.state("a") == .executing)

        // Even what could be tried again is not, once it was cancelled.
        bench.finish("a", end)
        #expect(bench.outcome("a") == outcome)
    }

    @Test func `cancelling twice, or what has finished, changes nothing`() throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([.nothing("done"), .nothing("runs"), .nothing("waits")])
        bench.finish("done")
        bench.cancel("waits", reason: "first")
        bench.cancel("runs", reason: "first")
        _ = bench.takeOrders(of: 0)
        bench.drain()

        for name in ["done", "waits", "runs"] {
            bench.cancel(name, reason: "second")
            let effects = bench.drain()
            #expect(effects.messages.isEmpty && effects.notices.isEmpty)
            #expect(effects.records.isEmpty)
        }
        bench.finish("runs", .cancelled)
        #expect(bench.outcome("done") == .succeeded)
        #expect(bench.outcome("waits") == .cancelled(reason: "first"))
        #expect(bench.outcome("runs") == .cancelled(reason: "first"))
    }

    @Test func `cancelled dependencies release by default`() throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([.nothing("gate"), .nothing("a"), .nothing("b", after: ["a"])])

        bench.cancel("a")

        #expect(bench.state("b") == .ready)
    }

    @Test func `cascade cancels every dependent, whatever its condition, and only those`() throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([
            .nothing("gate"),
            .nothing("a"),
            .nothing("b", after: ["a"]),
            .nothing("c", after: ["a"], .failed),
            .nothing("d", after: ["b", "c", "gate"], .finished),
            .nothing("outsider", after: ["gate"]),
        ])
        bench.drain()

        bench.cancel("a", reason: "r", cascade: true)

        #expect(bench.finished == ["a", "b", "c", "d"])
        for name in ["a", "b", "c", "d"] { #expect(bench.outcome(name) == .cancelled(reason: "r")) }
        #expect(bench.state("outsider") == .pending)
    }

    @Test func `members of a cancelled graph do not release one another`() throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([
            .nothing("a"), .nothing("b", after: ["a"]), .nothing("c", after: ["b"], .failed),
        ])
        let graph = GraphID(rawValue: 0)
        let held = bench.attempt("a").held
        bench.drain()

        bench.drive(.cancelRequested(.graph(graph), reason: "stop", cascade: false))

        let effects = bench.drain()
        #expect(
            effects.records == [
                .cancelled(.graph(graph), reason: "stop", cascade: false, by: ""),
                .finished(bench.id("b"), .cancelled(reason: "stop")),
                .finished(bench.id("c"), .cancelled(reason: "stop")),
            ]
        )
        #expect(bench.takeOrders(of: 0) == [.cancel(held)])
        bench.finish("a", .cancelled)
        #expect(bench.outcome("a") == .cancelled(reason: "stop"))
        #expect(bench.drain().notices.last == .graphFinished(graph))
    }

    @Test func `members of a cancelled queue do not release one another, outsiders are released`()
        throws
    {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([
            .nothing("gate"),
            .nothing("a") { $0.queue = "doomed" },
            .nothing("b", after: ["a"]) { $0.queue = "doomed" },
            .nothing("outsider", after: ["b"]),
            .nothing("strict", after: ["b"], .succeeded),
        ])
        bench.drain()

        bench.drive(.cancelRequested(.queue("doomed"), reason: "", cascade: false))

        #expect(bench.drain().notices.contains(.ready(bench.id("b"))) == false)
        #expect(bench.outcome("a") == .cancelled(reason: ""))
        #expect(bench.outcome("b") == .cancelled(reason: ""))
        #expect(bench.state("outsider") == .ready)
        #expect(bench.outcome("strict") == .skipped(cause: bench.id("b")))
    }

    @Test func `a queue is cancelled in every graph, and takes new operations afterwards`() throws {
        var bench = SchedulerBench()
        try bench.submit([.nothing("a") { $0.queue = "q" }])
        try bench.submit([.nothing("b") { $0.queue = "q" }, .nothing("other")])
        bench.drive(.cancelRequested(.queue("q"), reason: "", cascade: false))
        try bench.submit([.nothing("new") { $0.queue = "q" }])

        #expect(bench.outcome("a")?.kind == .cancelled)
        #expect(bench.outcome("b")?.kind == .cancelled)
        #expect(bench.state("other") == .ready)
        #expect(bench.state("new") == .ready)
    }

    @Test func `an operation is cancelled wherever it waits`() throws {
        var bench = SchedulerBench()
        bench.join()
        let key: (inout OperationDescription) -> Void = { $0.exclusive = ["key"] }
        try bench.submit([
            .nothing("holder", after: [], .unlessFailed, key),
            .nothing("parked", after: [], .unlessFailed, key),
            .nothing("delayed") { $0.delay = .seconds(9) }, .nothing("suspended"),
            .nothing("retried") { $0.retry = RetryPolicy(limit: 1) },
        ])
        bench.suspend(.operation(bench.id("suspended")))
        bench.join(slots: 4)
        bench.finish("retried", .failed(.timeout))

        for name in ["parked", "delayed", "suspended", "retried"] {
            #expect(bench.state(name) == .ready)
            bench.cancel(name)
            #expect(bench.outcome(name) == .cancelled(reason: ""))
        }
        bench.advance(by: .seconds(3_600))
        bench.hello(from: 0)
        #expect(bench.scheduler.count(of: GraphID(rawValue: 0), .cancelled) == 4)
    }

    @Test func `fail-fast cancels what is left at the first failure`() throws {
        var bench = SchedulerBench()
        bench.join(slots: 2)
        try bench.submit(
            [
                .nothing("a"), .nothing("b"), .nothing("c"), .nothing("d", after: ["a"]),
                .nothing("onFailure", after: ["a"], .failed),
            ],
            failFast: true
        )
        let b = bench.attempt("b").held

        bench.finish("a", .failed(.exit(code: 1)))

        #expect(bench.outcome("a") == .failed(.exit(code: 1)))
        #expect(bench.outcome("c") == .cancelled(reason: "an operation failed"))
        #expect(bench.outcome("d") == .skipped(cause: bench.id("a")))
        #expect(bench.takeOrders(of: 0) == [.cancel(b)])
        bench.finish("b", .cancelled)
        #expect(bench.outcome("b") == .cancelled(reason: "an operation failed"))
        #expect(bench.outcome("onFailure") == .cancelled(reason: "an operation failed"))
        #expect(bench.scheduler.isFinished(GraphID(rawValue: 0)))
    }

    @Test func `a chain that waits is cancelled as a whole, with two records`() {
        var bench = SchedulerBench()
        bench.checksInvariants = false
        let graph = GraphID(rawValue: 0)
        bench.submit(.uniform(topology: chain(100_000)))
        bench.drain()

        bench.drive(.cancelRequested(.graph(graph), reason: "", cascade: false))

        #expect(bench.scheduler.count(of: graph, .cancelled) == 100_000)
        // One for the graph, and one for all its operations.
        #expect(bench.effects.records.count == 2)
        #expect(bench.scheduler.isFinished(graph))
    }
}
