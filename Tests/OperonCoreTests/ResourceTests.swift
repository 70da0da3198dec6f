import OperonCore
import OperonModel
import OperonTestKit
import Testing

/// What operations ask of their workers besides a slot.
struct ResourceTests {
    /// Workers are heard often enough without beats.
    static var patient: Scheduler.Configuration {
        var configuration = SchedulerBench.noReadAhead
        configuration.beat = .seconds(100_000)
        configuration.lease = .seconds(300_000)
        return configuration
    }

    private func needing(
        _ name: String,
        _ resources: ResourceAmounts,
        lasting seconds: Int64? = nil,
        _ workers: [WorkerRequirement] = []
    ) -> OperationDescription {
        .nothing(name) {
            $0.resources = resources
            $0.workers = workers
            $0.expectedDuration = seconds.map { .seconds($0) } ?? $0.expectedDuration
        }
    }

    private func offer(_ resources: ResourceAmounts, _ labels: [WorkerLabel] = []) -> WorkerOffer {
        WorkerOffer(resources: resources, labels: labels)
    }

    // MARK: - Where

    @Test func `an operation goes to a worker whose labels it asks for`() throws {
        var bench = SchedulerBench()
        bench.join(slots: 4, offer: offer([], [WorkerLabel("region", "us")]))
        let eu = bench.join(
            slots: 4,
            offer: offer([], [WorkerLabel("disk", "ssd"), WorkerLabel("region", "eu")])
        )

        try bench.submit([
            needing("equal", [], [.equals("region", "eu")]),
            needing("listed", [], [WorkerRequirement("region", .oneOf(["asia", "eu"]))]),
            needing("excluded", [], [WorkerRequirement("region", .noneOf(["us"]))]),
            needing("there", [], [WorkerRequirement("disk", .exists(true))]),
            needing("nowhere", [], [.equals("region", "asia")]),
        ])

        for name in ["equal", "listed", "excluded", "there"] {
            #expect(bench.attempt(name).worker == eu)
        }
        let demand = ResourceDemand(requirements: [.equals("region", "asia")])
        #expect(bench.explain("nowhere") == [.noWorkerForDemand(demand)])
    }

    @Test func `a worker gives out no more than it offers, and what ends leaves room`() throws {
        var bench = SchedulerBench()
        bench.join(slots: 8, offer: offer([.gpus(3), .memory(bytes: 100)]))
        try bench.submit([
            needing("a", [.gpus(2)]),
            needing("b", [.gpus(2)]),
            needing("c", [.gpus(1), .memory(bytes: 60)]),
            needing("d", [.memory(bytes: 60)]),
        ])

        #expect(bench.granted == ["a", "c"])
        #expect(
            bench.explain("b") == [
                .resourcesTaken([shortage("gpus", needed: 2, left: 0)], more: 0)
            ]
        )
        bench.finish("c")
        #expect(bench.granted == ["a", "c", "d"])
        bench.finish("a")
        #expect(bench.granted == ["a", "c", "d", "b"])
    }

    private func shortage(_ name: String, needed: Int, left: Int) -> Scheduler.Shortage {
        Scheduler.Shortage(
            worker: Incarnation(rawValue: 1),
            resource: name,
            needed: needed,
            left: left
        )
    }

    @Test func `amounts are taken besides a slot`() throws {
        var bench = SchedulerBench()
        bench.join(slots: 1, offer: offer([.gpus(2)]))
        try bench.submit([needing("a", [.gpus(1)]), needing("b", [.gpus(1)]), .nothing("c")])

        #expect(bench.granted == ["a"])
        #expect(bench.explain("b") == [.noFreeSlot])
        #expect(bench.explain("c") == [.noFreeSlot])
    }

    @Test func `the smallest room that is enough is used, and GPUs stay for who needs them`()
        throws
    {
        var bench = SchedulerBench()
        let graphics = bench.join(slots: 4, offer: offer([.cpus(2), .gpus(1)]))
        let large = bench.join(slots: 4, offer: offer([.cpus(8)]))
        let small = bench.join(slots: 4, offer: offer([.cpus(3)]))
        try bench.submit([
            needing("graphics", [.gpus(1)]), needing("one", [.cpus(2)]),
            needing("two", [.cpus(2)]), needing("three", [.cpus(6)]),
        ])

        #expect(bench.attempt("graphics").worker == graphics)
        #expect(bench.attempt("one").worker == small)
        #expect(bench.attempt("two").worker == large)
        #expect(bench.attempt("three").worker == large)
    }

    @Test func `an operation that asks for amounts is never read ahead`() throws {
        var bench = SchedulerBench(Scheduler.Configuration())
        bench.join(slots: 1, offer: offer([.cpus(9)]))
        try bench.submit([needing("n0", [.cpus(1)])])
        try bench.submit((0..<3).map { .nothing("m\($0)") })
        #expect(bench.granted == ["n0", "m0", "m1", "m2"])
        // From here on the worker is kept for the second one.
        try bench.submit([needing("n1", [.cpus(1)]), .nothing("m3")])
        #expect(bench.granted == ["n0", "m0", "m1", "m2"])
    }

    // MARK: - In line

    @Test func `small operations do not pass a large one for ever`() throws {
        var bench = SchedulerBench(Self.patient)
        bench.join(slots: 8, offer: offer([.cpus(4)]))
        try bench.submit((0..<4).map { needing("s\($0)", [.cpus(1)], lasting: 10) })
        try bench.submit([needing("large", [.cpus(4)], lasting: 10)])
        try bench.submit((4..<8).map { needing("s\($0)", [.cpus(1)], lasting: 10) })
        bench.advance(by: .seconds(5))
        for name in ["s0", "s1"] { bench.finish(name) }

        #expect(bench.granted == ["s0", "s1", "s2", "s3"])
        #expect(
            bench.explain("s4")
                == [.reserved(Incarnation(rawValue: 1), for: bench.id("large"))]
        )
        for name in ["s2", "s3"] { bench.finish(name) }
        #expect(bench.granted.last == "large")
    }

    @Test func `what ends before the reserved time passes, and so does what fits beside`() throws {
        var bench = SchedulerBench(Self.patient)
        bench.join(slots: 8, offer: offer([.cpus(4), .gpus(1)]))
        try bench.submit([
            needing("long", [.cpus(3)], lasting: 10), needing("large", [.cpus(4)], lasting: 10),
            needing("longer", [.cpus(1)], lasting: 11), needing("short", [.cpus(0.5)], lasting: 9),
            needing("beside", [.gpus(1)], lasting: 99), .nothing("slot"),
        ])

        #expect(bench.granted == ["long", "short", "beside", "slot"])
        bench.advance(by: .seconds(10))
        bench.finish("short")
        #expect(bench.granted == ["long", "short", "beside", "slot"])
        bench.finish("long")
        #expect(bench.granted == ["long", "short", "beside", "slot", "large"])
    }

    @Test func `a large operation keeps its worker when others run longer than expected`() throws {
        var bench = SchedulerBench(Self.patient)
        for _ in 0..<2 { bench.join(slots: 8, offer: offer([.cpus(2)])) }
        try bench.submit((0..<4).map { needing("s\($0)", [.cpus(1)], lasting: 1) })
        try bench.submit([needing("large", [.cpus(2)], lasting: 1)])
        try bench.submit((4..<9).map { needing("s\($0)", [.cpus(1)], lasting: 1) })
        bench.advance(by: .seconds(60))
        let all = (0..<4).map { "s\($0)" }
        let kept = all.filter { bench.attempt($0).worker == 0 }
        let other = all.filter { bench.attempt($0).worker == 1 }

        bench.finish(other[0])
        #expect(bench.granted.last == "s4")
        #expect(bench.attempt("s4").worker == 1)
        bench.finish(kept[0])
        #expect(bench.granted.last == "s4")
        bench.finish(other[1])
        #expect(bench.granted.last == "s5")
        #expect(bench.attempt("s5").worker == 1)
        bench.finish(kept[1])
        #expect(bench.granted.last == "large")
        #expect(bench.attempt("large").worker == 0)
    }

    @Test func `a queue that is served first takes nothing that is kept for another`() throws {
        var bench = SchedulerBench(Self.patient)
        bench.join(slots: 10, offer: offer([], [WorkerLabel("zone", "a")]))
        bench.join(slots: 8, offer: offer([.cpus(4)]))
        func small(_ number: Int) -> OperationDescription {
            var small = needing("s\(number)", [.cpus(1)], lasting: 10)
            small.queue = "small"
            return small
        }
        // The queue of the large operation holds more slots than the other one ever does.
        try bench.submit((0..<10).map { needing("l\($0)", [], [.equals("zone", "a")]) })
        try bench.submit((0..<4).map(small))
        try bench.submit([needing("large", [.cpus(4)], lasting: 10)])
        try bench.submit((4..<20).map(small))
        bench.drain()
        bench.advance(by: .seconds(5))

        for number in 0..<3 { bench.finish("s\(number)") }
        #expect(bench.granted.isEmpty)
        bench.finish("s3")
        #expect(bench.granted == ["large"])
    }

    @Test func `the last place of a queue is for the first in line`() throws {
        var bench = SchedulerBench(Self.patient)
        bench.join(slots: 8, offer: offer([.cpus(4)]))
        bench.join(slots: 8, offer: offer([], [WorkerLabel("zone", "a")]))
        let queue = QueueSettings(name: "default", maxConcurrentOperationCount: 2)
        try bench.submit(
            [
                needing("first", [.cpus(4)], lasting: 10), needing("large", [.cpus(4)], lasting: 1),
                needing("l0", [], lasting: 10, [.equals("zone", "a")]),
            ],
            queues: [queue]
        )

        #expect(bench.granted == ["first"])
        #expect(bench.explain("l0") == [.behind(bench.id("large"))])
        bench.finish("first")
        #expect(bench.granted == ["first", "large", "l0"])
    }

    @Test func `a worker with more resources is the last, before anybody asks for those`() throws {
        var bench = SchedulerBench(Self.patient)
        bench.join(slots: 4, offer: offer([.cpus(4), .gpus(1)]))
        let plain = bench.join(slots: 4, offer: offer([.cpus(8)]))
        try bench.submit([needing("a", [.cpus(4)])])

        #expect(bench.attempt("a").worker == plain)
    }

    @Test func `what no worker could ever run holds up nothing`() throws {
        var bench = SchedulerBench(Self.patient)
        bench.join(slots: 4, offer: offer([.cpus(4)]))
        let huge: ResourceAmounts = [.cpus(5)]
        try bench.submit([needing("huge", huge), needing("a", [.cpus(4)], lasting: 5)])

        #expect(bench.granted == ["a"])
        #expect(bench.explain("huge") == [.noWorkerForDemand(ResourceDemand(resources: huge))])
        let late = bench.join(slots: 1, offer: offer([.cpus(8)]))
        #expect(bench.attempt("huge").worker == late)
    }

    // MARK: - Waiting

    @Test func `an operation that waits gives back what it has, and takes all of it again`() throws
    {
        var bench = SchedulerBench()
        let worker = bench.join(slots: 3, offer: offer([.cpus(2), .gpus(1)]))
        try bench.submit(
            [
                needing("parent", [.cpus(2), .gpus(1)]),
                .nothing("gate") { $0.queue = "gated" },
                needing("cpus", [.cpus(2)]), needing("gpu", [.gpus(1)]),
            ],
            queues: [QueueSettings(name: "gated", maxConcurrentOperationCount: 0)]
        )
        bench.start("parent")
        let held = bench.attempt("parent").held
        bench.send(.yielded(held, WaitRequest(number: 1, names: ["gate"])), from: worker)

        #expect(bench.granted == ["parent", "cpus", "gpu"])
        bench.drive(.queueLimitSet(queue: "gated", maximum: 1))
        bench.finish("gate")
        func short(_ resource: String, _ needed: Int) -> Scheduler.Reason {
            let worker = Incarnation(rawValue: 1)
            return .resourcesTaken(
                [.init(worker: worker, resource: resource, needed: needed, left: 0)],
                more: 0
            )
        }
        #expect(bench.explain("parent") == [short("cpus", 2_000)])
        bench.finish("cpus")
        #expect(bench.explain("parent") == [short("gpus", 1)])
        bench.finish("gpu")
        #expect(bench.explain("parent").isEmpty)
    }
}
