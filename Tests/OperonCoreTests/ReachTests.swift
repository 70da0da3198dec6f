import OperonCore
import OperonModel
import OperonTestKit
import Testing

/// Who is given attempts of those who may be gone without being missed yet.
struct ReachTests {
    private func address(_ bench: SchedulerBench, _ worker: Int) -> WorkerAddress {
        let identity = bench.workers[worker].identity
        return WorkerAddress(
            incarnation: identity.incarnation,
            connection: identity.connection
        )
    }

    @Test func `a worker to whom a message came back gets nothing until it is heard again`() throws
    {
        var bench = SchedulerBench()
        let gone = bench.join(slots: 4)
        let other = bench.join()
        bench.drive(.addressReturned(address(bench, gone)))
        try bench.submit([.nothing("a"), .nothing("b")])

        #expect(bench.granted == ["a"])
        #expect(bench.attempt("a").worker == other)
        #expect(bench.explain("b") == [.noFreeSlot])
        bench.beat(from: gone)
        #expect(bench.attempt("b").worker == gone)
    }

    @Test func `what a worker holds to whom a message came back is judged by its lease alone`()
        throws
    {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([.nothing("a")])
        bench.start("a")
        let held = bench.attempt("a").held
        bench.drain()
        bench.drive(.addressReturned(address(bench, 0)))

        #expect(bench.drain().records.isEmpty)
        bench.advance(by: .seconds(6) - .nanoseconds(1))
        #expect(bench.state("a") == .executing)
        bench.advance(by: .nanoseconds(1))
        let lost = StoreRecord.attemptEnded(held.attempt, held.operation, .lost)
        #expect(bench.drain().records == [lost])
    }

    @Test func `a message to an earlier connection that comes back sets nobody aside`() throws {
        var bench = SchedulerBench()
        bench.join()
        let earlier = address(bench, 0)
        bench.hello(from: 0, connection: 2)
        bench.drive(.addressReturned(earlier))
        try bench.submit([.nothing("a")])

        #expect(bench.state("a") == .dispatched)
    }

    @Test func `a worker that is silent for more than two beats gets nothing until it is heard`()
        throws
    {
        var bench = SchedulerBench()
        bench.join(slots: 2)
        bench.advance(by: .seconds(4))
        try bench.submit([.nothing("a")])
        #expect(bench.state("a") == .dispatched)

        bench.advance(by: .nanoseconds(1))
        try bench.submit([.nothing("b")])
        #expect(bench.state("b") == .ready)
        #expect(bench.explain("b") == [.workersSilent])
        bench.beat(from: 0)
        #expect(bench.state("b") == .dispatched)
    }

    @Test func `among workers with equal room the one that was heard last is first`() throws {
        var bench = SchedulerBench()
        for _ in 0..<3 { bench.join(slots: 2) }
        bench.advance(by: .seconds(1))
        bench.beat(from: 2)
        bench.advance(by: .seconds(1))
        bench.beat(from: 1)
        try bench.submit((0..<6).map { number in .nothing("o\(number)") })

        #expect((0..<6).map { bench.attempt("o\($0)").worker } == [1, 2, 0, 1, 2, 0])
    }

    @Test func `an operation costs one lease, however many workers have died`() throws {
        var bench = SchedulerBench()
        for _ in 0..<4 { bench.join() }
        let alive = bench.join()
        // The first has it, and dies with the next three.
        try bench.submit([.nothing("a")])
        #expect(bench.attempt("a").worker == 0)
        for _ in 0..<3 {
            bench.advance(by: .seconds(2))
            bench.beat(from: alive)
        }

        let id = bench.id("a")
        #expect(bench.attempt("a").worker == alive)
        #expect(bench.scheduler.attemptCount(of: id) == 2)
    }

    @Test func `nothing is taken back for a worker that cannot be reached`() throws {
        var bench = SchedulerBench(Scheduler.Configuration())
        bench.join(kinds: ["Blur"])
        let blur = { (name: String) in
            OperationDescription(name: name, work: .registered(kind: "Blur", input: .empty))
        }
        try bench.submit([blur("first")])
        bench.finish("first")
        try bench.submit((0..<4).map { blur("o\($0)") })
        #expect(bench.workers[0].held.count == 4)
        let other = bench.join(slots: 4, kinds: ["Blur"])
        bench.drive(.addressReturned(address(bench, other)))
        bench.start("o0")
        bench.beat(from: 0)
        bench.beat(from: 0)
        #expect(bench.takeOrders(of: 0).isEmpty)

        bench.beat(from: other)
        bench.beat(from: 0)
        #expect(bench.takeOrders(of: 0).count == 3)
    }
}
