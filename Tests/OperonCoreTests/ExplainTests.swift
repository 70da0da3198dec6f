import OperonCore
import OperonModel
import OperonTestKit
import Testing

struct ExplainTests {
    @Test func `an operation that waits names what it waits for, and how many more`() throws {
        var bench = SchedulerBench()
        let names = (0..<10).map { "d\($0)" }
        try bench.submit(names.map { name in .nothing(name) } + [.nothing("a", after: names)])

        #expect(bench.explain("a") == [.dependencies(names.prefix(8).map(bench.id), more: 2)])
    }

    @Test func `a pending operation that is suspended says both`() throws {
        var bench = SchedulerBench()
        try bench.submit([.nothing("d"), .nothing("a", after: ["d"])])
        bench.suspend(.operation(bench.id("a")))

        #expect(
            bench.explain("a") == [
                .dependencies([bench.id("d")], more: 0), .operationSuspended(Suspension()),
            ]
        )
    }

    @Test func `a busy cluster is a reason of its own`() throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([.nothing("a"), .nothing("b")])

        #expect(bench.explain("b") == [.noFreeSlot])
        #expect(bench.explain("a") == [.dispatched(to: bench.workers[0].identity.incarnation)])
        bench.drive(.transportDown)
        #expect(
            bench.explain("a") == [
                .dispatched(to: bench.workers[0].identity.incarnation), .disconnected,
            ]
        )
    }

    @Test func `what runs or has finished needs no explanation`() throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([.nothing("a")])
        bench.start("a")
        #expect(bench.explain("a").isEmpty)
        bench.finish("a")
        #expect(bench.explain("a").isEmpty)
        let ghost = OperationID(graph: GraphID(rawValue: 5), index: 0)
        #expect(bench.scheduler.explain(ghost).isEmpty)
    }

    @Test func `a full queue, a held key and a delay are named, all at once`() throws {
        var bench = SchedulerBench()
        bench.join(slots: 4)
        try bench.submit(
            [
                .nothing("holder") { $0.exclusive = ["db"] },
                .nothing("a") {
                    $0.exclusive = ["db"]
                    $0.delay = .seconds(5)
                },
            ],
            queues: [QueueSettings(name: "default", maxConcurrentOperationCount: 1)]
        )

        #expect(
            bench.explain("a") == [
                .notBefore(bench.now.monotonic + .seconds(5)),
                .queueLimit("default", maximum: 1, [bench.id("holder")], more: 0),
                .keyHeld("db", by: bench.id("holder")),
            ]
        )
    }

    @Test func `every suspension, and a missing worker, are named together`() throws {
        var bench = SchedulerBench(connected: false)
        try bench.submit([.nothing("a")])
        bench.suspend(.operation(bench.id("a")))
        bench.suspend(.graph(bench.id("a").graph))
        bench.suspend(.queue("default"))

        #expect(
            bench.explain("a") == [
                .operationSuspended(Suspension()), .graphSuspended(Suspension()),
                .queueSuspended("default", Suspension()),
                .disconnected, .noWorkerForKind("nothing"),
            ]
        )
    }
}
