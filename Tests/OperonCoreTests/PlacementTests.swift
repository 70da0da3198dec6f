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
}
