import OperonCore
import OperonModel
import OperonTestKit
import Testing

struct PlacementTests {
    private func operation(_ name: String, kind: String, queue: String = "default")
        -> OperationDescription
    {
        var operation = OperationDescription(
            name: name,
            work: .registered(kind: kind, input: .empty)
        )
        operation.queue = queue
        return operation
    }

    @Test func `an operation goes to a worker that knows its kind`() throws {
        var bench = SchedulerBench()
        let blur = bench.join(kinds: ["Blur"])
        let sharpen = bench.join(kinds: ["Sharpen"])

        try bench.submit([operation("s", kind: "Sharpen"), operation("b", kind: "Blur")])

        #expect(bench.attempt("b").worker == blur)
        #expect(bench.attempt("s").worker == sharpen)
    }

    @Test func `a kind that nobody knows waits, and stands in nobody's way`() throws {
        var bench = SchedulerBench()
        bench.join(slots: 2)
        try bench.submit([
            operation("strange", kind: "Strange"), .nothing("a"), .nothing("b"),
        ])

        #expect(bench.granted == ["a", "b"])
        #expect(bench.explain("strange") == [.noWorkerForKind("Strange")])
        let late = bench.join(kinds: ["Strange"])
        #expect(bench.attempt("strange").worker == late)
    }

    @Test func `a worker that runs any kind is given those that come later, too`() throws {
        var bench = SchedulerBench()
        let other = bench.join()
        let any = bench.join(slots: 3, queues: ["default"], runsAnyKind: true)

        try bench.submit([operation("blur", kind: "Blur")])
        try bench.submit([
            operation("sharpen", kind: "Sharpen"),
            operation("elsewhere", kind: "Blur", queue: "gpu"),
        ])

        #expect(bench.attempt("blur").worker == any)
        #expect(bench.attempt("sharpen").worker == any)
        #expect(bench.explain("elsewhere") == [.noWorkerForQueue("gpu")])
        #expect(bench.workers[other].held.isEmpty)
    }

    @Test func `a worker takes only the queues it serves`() throws {
        var bench = SchedulerBench()
        let special = bench.join(slots: 4, queues: ["gpu"])
        try bench.submit([.nothing("plain"), .nothing("onGPU") { $0.queue = "gpu" }])

        #expect(bench.granted == ["onGPU"])
        #expect(bench.attempt("onGPU").worker == special)
        #expect(bench.explain("plain") == [.noWorkerForQueue("default")])
    }

    @Test func `a worker that knows the kind and another that serves the queue are none`() throws {
        var bench = SchedulerBench()
        bench.join(queues: ["gpu"])
        bench.join(queues: ["cpu"], kinds: ["Blur"])
        try bench.submit([operation("blur", kind: "Blur", queue: "gpu")])

        #expect(bench.granted.isEmpty)
        #expect(bench.explain("blur") == [.noWorkerForQueue("gpu")])
    }

    @Test func `the worker with the most free slots is next, and the first among equals`() throws {
        var bench = SchedulerBench()
        bench.join(slots: 1)
        bench.join(slots: 3)
        bench.join(slots: 3)
        try bench.submit((0..<7).map { number in .nothing("o\(number)") })

        #expect((0..<7).map { bench.attempt("o\($0)").worker } == [1, 2, 1, 2, 0, 1, 2])
    }

    @Test func `nothing is dispatched beyond the slots while durations are unknown`() throws {
        var bench = SchedulerBench(Scheduler.Configuration())
        bench.join(slots: 2, kinds: ["Blur"])
        try bench.submit((0..<10).map { number in operation("o\(number)", kind: "Blur") })

        #expect(bench.granted.count == 2)
    }

    @Test func `short operations are read ahead, up to some milliseconds of work`() throws {
        var bench = SchedulerBench(Scheduler.Configuration())
        bench.join(slots: 2, kinds: ["Blur"])
        try bench.submit((0..<100).map { number in operation("o\(number)", kind: "Blur") })
        bench.drain()

        // One took a millisecond: 4 ms of work for each of two slots is eight of them.
        let (worker, held) = bench.attempt("o0")
        let start = bench.now.monotonic
        bench.now.monotonic = start + .milliseconds(1)
        bench.send(
            .finished(
                held,
                AttemptResult(
                    end: .succeeded,
                    startedAt: start,
                    endedAt: start + .milliseconds(1)
                )
            ),
            from: worker
        )
        bench.finish("o1")

        // The estimate falls by an eighth a sample; the first guess of the others was “long”.
        #expect(bench.scheduler.queueMembersInFlight("default") > 2)
        #expect(bench.scheduler.queueMembersInFlight("default") <= 12)
    }

    @Test func `a worker that drains is given nothing more`() throws {
        var bench = SchedulerBench()
        let worker = bench.join(slots: 2)
        bench.beat(from: worker, draining: true)
        bench.drain()

        try bench.submit([.nothing("a")])

        #expect(bench.granted.isEmpty)
        #expect(bench.explain("a") == [.noWorkerForKind("nothing")])
        #expect(bench.scheduler.slotCount == 0)
    }

    @Test func `slots beyond the limit are not believed`() {
        var bench = SchedulerBench()
        bench.join(slots: 4_096)
        #expect(bench.scheduler.slotCount == 4_096)
        bench.join(slots: 4_097)
        #expect(bench.scheduler.slotCount == 8_192)
    }

    @Test func `nothing is granted while there is no connection`() throws {
        var bench = SchedulerBench()
        bench.join()
        bench.drive(.transportDown)
        try bench.submit([.nothing("a")])
        #expect(bench.granted.isEmpty)
        #expect(bench.explain("a") == [.disconnected])

        bench.drive(.transportUp)
        #expect(bench.granted == ["a"])
    }

    /// `o0` and `o1` took a millisecond each, so that the worker now holds `o2` to `o9`, of which
    /// it runs the first two.
    private func benchWithReadAhead() throws -> (bench: SchedulerBench, full: Int) {
        var bench = SchedulerBench(Scheduler.Configuration())
        let full = bench.join(slots: 2, kinds: ["Blur"])
        try bench.submit((0..<10).map { number in operation("o\(number)", kind: "Blur") })
        for name in ["o0", "o1"] {
            let start = bench.now.monotonic
            bench.now.monotonic = start + .milliseconds(1)
            let held = bench.attempt(name).held
            let result = AttemptResult(
                end: .succeeded,
                startedAt: start,
                endedAt: bench.now.monotonic
            )
            bench.settle(held, result, from: full)
        }
        bench.start("o2")
        bench.start("o3")
        #expect(bench.scheduler.queueMembersInFlight("default") == 8)
        return (bench, full)
    }

    private func recalls(_ bench: inout SchedulerBench, of worker: Int) -> [String] {
        bench.takeOrders(of: worker).map { order in
            guard case .recall(let held) = order else { return "\(order)" }
            return bench.name(held.operation)
        }
    }

    @Test func `what was read ahead goes to slots that are free elsewhere, newest first`() throws {
        var (bench, full) = try benchWithReadAhead()
        let idle = bench.join(slots: 2, kinds: ["Blur"])

        bench.beat(from: full)
        #expect(recalls(&bench, of: full) == [], "it may start them within a beat")
        bench.beat(from: full)
        #expect(recalls(&bench, of: full) == ["o9", "o8"])

        bench.giveBack("o9")
        bench.giveBack("o8")
        #expect(bench.attempt("o9").worker == idle)
        #expect(bench.attempt("o8").worker == idle)
        bench.beat(from: full)
        #expect(recalls(&bench, of: full) == [], "no slot is free any more")
    }

    @Test func `read-ahead stays where nobody else could run it`() throws {
        var (bench, full) = try benchWithReadAhead()
        bench.join(slots: 2, kinds: ["Sharpen"])
        bench.join(slots: 2, queues: ["gpu"], kinds: ["Blur"])
        let draining = bench.join(slots: 2, kinds: ["Blur"])
        bench.hello(from: draining, draining: true)

        for _ in 0..<3 { bench.beat(from: full) }

        #expect(recalls(&bench, of: full) == [])
    }
}
