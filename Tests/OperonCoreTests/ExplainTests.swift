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
                .notBefore(.time(bench.now.monotonic + .seconds(5))),
                .queueLimit("default", maximum: 1, [bench.id("holder")], more: 0),
                .keyHeld("db", by: [bench.id("holder")], more: 0),
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

    /// Each in a state in which it arises, and in which every reason of everything else that waits
    /// is true as well.
    @Test func `every reason arises, and is true by recomputation`() throws {
        var met: Set<Scheduler.Reason.Kind> = []
        func look(
            _ bench: SchedulerBench,
            _ expected: Scheduler.Reason.Kind,
            _ operation: String
        ) {
            #expect(bench.scheduler.violatedExplanation() == nil)
            #expect(bench.explain(operation).map(\.kind).contains(expected), "\(expected)")
            met.formUnion(bench.scheduler.reasonKinds)
        }

        var bench = SchedulerBench(connected: false)
        try bench.submit([.nothing("first"), .nothing("after", after: ["first"])])
        look(bench, .dependencies, "after")
        look(bench, .disconnected, "first")
        look(bench, .noWorkerForKind, "first")
        bench.drive(.transportUp)
        bench.join(slots: 1, queues: ["other"])
        look(bench, .noWorkerForQueue, "first")
        for target in [Target.operation(bench.id("after")), .graph(bench.id("after").graph)] {
            bench.suspend(target)
        }
        bench.suspend(.queue("default"))
        look(bench, .operationSuspended, "after")
        look(bench, .graphSuspended, "first")
        look(bench, .queueSuspended, "first")

        bench = SchedulerBench()
        bench.join()
        bench.advance(by: .seconds(5))
        try bench.submit([.nothing("unheard")])
        look(bench, .workersSilent, "unheard")

        bench = try Self.busyBench()
        let busy: [(Scheduler.Reason.Kind, String)] = [
            (.queueLimit, "limited"), (.keyHeld, "keyed"), (.groupLimit, "grouped[2]"),
            (.notBefore, "late"), (.retryAt, "again"), (.notYet, "unmet"), (.dispatched, "holder"),
        ]
        for (kind, operation) in busy { look(bench, kind, operation) }
        bench.join(slots: 2)
        try bench.submit([.nothing("x")] + (0..<5).map { .nothing("y\($0)") } + [.nothing("z")])
        look(bench, .noFreeSlot, "z")
        bench.cancel("x", reason: "why")
        bench.drive(.cancelRequested(.graph(bench.id("holder").graph), reason: "", cascade: false))
        look(bench, .cancelRequested, "x")
        look(bench, .graphCancelled, "holder")
        bench.drive(.shutdownRequested(kill: false))
        look(bench, .leaving, "z")

        bench = try Self.ratedBench()
        look(bench, .queueRate, "1")
        look(bench, .keyRate, "3")
        bench = try Self.heavyBench()
        look(bench, .dispatchedBytes, "heavier")
        look(bench, .behind, "light")

        bench = try Self.waitingBench()
        look(bench, .awaits, "waits")
        bench.finish("awaited")
        look(bench, .awaitsSlot, "waits")
        try bench.submit([OperationDescription(name: "approve", work: .external(input: .empty))])
        look(bench, .awaitsCompletion, "approve")

        bench = try Self.shortBench()
        look(bench, .noWorkerForDemand, "huge")
        look(bench, .resourcesTaken, "large")
        look(bench, .reserved, "small")
        #expect(met == Set(Scheduler.Reason.Kind.allCases))
    }

    /// A queue and a key may start one operation in a second, and each has started one.
    private static func ratedBench() throws -> SchedulerBench {
        var bench = SchedulerBench()
        bench.join(slots: 4)
        var rated = QueueSettings(name: "rated")
        rated.rate = StartRate(1)
        let key = KeySettings(name: "rated", limit: 9, rate: StartRate(1))
        try bench.submit(
            (0..<4).map { index in
                .nothing("\(index)") {
                    if index < 2 { $0.queue = "rated" } else { $0.exclusive = ["rated"] }
                }
            },
            queues: [rated],
            keys: [key]
        )
        return bench
    }

    /// One GPU is left of two, and kept for an operation that needs both.
    private static func shortBench() throws -> SchedulerBench {
        var bench = SchedulerBench()
        bench.join(slots: 8, offer: WorkerOffer(resources: [.gpus(2)]))
        try bench.submit(
            [("runs", 1), ("huge", 3), ("large", 2), ("small", 1)].map { name, count in
                .nothing(name) {
                    $0.resources = [.gpus(count)]
                    $0.expectedDuration = .seconds(name == "small" ? 90 : 60)
                }
            }
        )
        return bench
    }

    /// One operation waits for another one, which runs elsewhere; its slot is another's.
    private static func waitingBench() throws -> SchedulerBench {
        var bench = SchedulerBench()
        bench.join(slots: 1)
        bench.join(kinds: [Work.waitKind])
        let awaited = OperationDescription(name: "awaited", work: .wait(.seconds(1)))
        try bench.submit([.nothing("waits"), awaited, .nothing("third")])
        bench.start("waits")
        let (worker, held) = bench.attempt("waits")
        bench.send(.yielded(held, WaitRequest(number: 1, names: ["awaited"])), from: worker)
        bench.start("third")
        return bench
    }

    /// One operation is dispatched, and holds a key and the only place of a queue.
    private static func busyBench() throws -> SchedulerBench {
        var bench = SchedulerBench()
        bench.join(slots: 5)
        try bench.submit(
            [
                .nothing("again") { $0.retry = RetryPolicy(limit: 1, delay: .seconds(9)) },
                .nothing("holder") {
                    $0.queue = "narrow"
                    $0.exclusive = ["db"]
                },
                .nothing("limited") { $0.queue = "narrow" },
                .nothing("keyed") { $0.exclusive = ["db"] },
                .nothing("grouped[1]") { $0.inFlight = InFlightLimit(group: "grouped", limit: 1) },
                .nothing("grouped[2]") { $0.inFlight = InFlightLimit(group: "grouped", limit: 1) },
                .nothing("late") { $0.delay = .seconds(5) },
                .nothing("unmet"),
            ],
            queues: [QueueSettings(name: "narrow", maxConcurrentOperationCount: 1)]
        )
        bench.start("again")
        bench.finish("again", .failed(.exit(code: 1)))
        bench.start("unmet")
        bench.finish("unmet", .notYet(after: .seconds(7)))
        return bench
    }

    /// There are slots, and no room for what operations are made of.
    private static func heavyBench() throws -> SchedulerBench {
        var configuration = SchedulerBench.noReadAhead
        configuration.limits.dispatchedBytes = 10_000
        var bench = SchedulerBench(configuration)
        bench.join(slots: 3)
        let heavy = Work.command(
            CommandDescription(arguments: [String(repeating: "x", count: 7_000)])
        )
        try bench.submit([
            OperationDescription(name: "heavy", work: heavy),
            OperationDescription(name: "heavier", work: heavy),
            OperationDescription(
                name: "light",
                work: .command(CommandDescription(arguments: ["x"]))
            ),
        ])
        return bench
    }
}
