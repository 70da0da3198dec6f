import OperonCore
import OperonModel
import OperonTestKit
import Testing

struct QueueSettingsTests {
    @Test func `a queue that is not there yet can be limited, suspended and prioritised`() throws {
        var bench = SchedulerBench()
        bench.join(slots: 4)
        try bench.request(.queueLimitSet(queue: "new", maximum: 1))
        try bench.request(.queuePrioritySet(queue: "new", .high))
        try bench.request(.suspensionRequested(.queue("new"), Suspension()))
        try bench.submit([
            .nothing("a") { $0.queue = "new" }, .nothing("b") { $0.queue = "new" },
        ])
        bench.drain()

        #expect(bench.explain("a") == [.queueSuspended("new", Suspension())])
        bench.resume(.queue("new"))
        #expect(bench.granted == ["a"])
        #expect(
            bench.explain("b") == [.queueLimit("new", maximum: 1, [bench.id("a")], more: 0)]
        )
        guard case .dispatch(_, let grants)? = bench.effects.messages.last?.body else {
            Issue.record("nothing was dispatched")
            return
        }
        #expect(grants.map(\.priority) == [.high])
    }

    @Test func `a queue counts what is unfinished, in all graphs and rounds`() throws {
        var bench = SchedulerBench()
        bench.join(slots: 1)
        func count() -> Int? { bench.scheduler.unfinishedCount(ofQueue: "q") }
        #expect(count() == nil)
        let graph = try bench.submit(
            [.nothing("a") { $0.queue = "q" }, .nothing("other")],
            open: true
        )
        try bench.submit([.nothing("b") { $0.queue = "q" }])
        try bench.add([.nothing("c", after: ["a"]) { $0.queue = "q" }], to: graph)
        #expect(count() == 3)
        bench.finish("a", .failed(.exit(code: 1)))
        // What was skipped for it has its outcome as well.
        #expect(count() == 1)
        try bench.request(.retryRequested(graph, operations: [], cancelled: false))
        #expect(count() == 3)
        try bench.request(.cancelRequested(.queue("q"), reason: "", cascade: false))
        #expect(count() == 0)
        bench.scheduler.checkInvariants()
    }

    @Test(arguments: ["", String(repeating: "x", count: 257)])
    func `a name that cannot be one is refused`(_ name: String) {
        var bench = SchedulerBench()
        #expect(throws: Refusal.self) {
            try bench.request(.queueLimitSet(queue: name, maximum: 1))
        }
        #expect(bench.drain().records.isEmpty)
    }

    @Test func `what a command set counts, whatever later graphs say`() throws {
        var bench = SchedulerBench()
        bench.join(slots: 4)
        try bench.request(.queueLimitSet(queue: "q", maximum: 1))
        try bench.request(.suspensionRequested(.queue("q"), nil))
        var settings = QueueSettings(name: "q", maxConcurrentOperationCount: 3)
        settings.isSuspended = true
        try bench.submit(
            [.nothing("a") { $0.queue = "q" }, .nothing("b") { $0.queue = "q" }],
            queues: [settings]
        )

        #expect(bench.granted == ["a"])
    }

    @Test func `without a command the latest graph that defines a queue counts`() throws {
        var bench = SchedulerBench()
        bench.join(slots: 4)
        try bench.submit([.nothing("a") { $0.queue = "q" }])
        try bench.submit(
            [.nothing("b") { $0.queue = "q" }],
            queues: [QueueSettings(name: "q", maxConcurrentOperationCount: 1)]
        )
        try bench.submit([.nothing("c") { $0.queue = "q" }])
        #expect(bench.granted == ["a"])
        bench.drain()

        try bench.submit([], queues: [QueueSettings(name: "q", maxConcurrentOperationCount: 3)])
        #expect(bench.granted == ["b", "c"])
    }

    @Test func `operations without a priority of their own follow that of their queue`() throws {
        var bench = SchedulerBench()
        try bench.submit([
            .nothing("own") { $0.priority = .normal }, .nothing("set"), .nothing("plain"),
            .nothing("later", after: ["plain"]),
        ])
        try bench.request(.priorityRequested(bench.id("set"), .low))
        bench.drain()
        try bench.request(.queuePrioritySet(queue: "default", .veryHigh))
        #expect(bench.drain().results.first?.affected == 2)

        bench.join()
        bench.finish("plain")
        bench.finish("later")
        bench.finish("own")
        #expect(bench.granted == ["plain", "later", "own", "set"])
    }
}
