import OperonCore
import OperonModel
import OperonTestKit
import Testing

@Suite struct DrainTests {
    // MARK: The coordinator

    @Test func `a worker that is asked to drain is given nothing more`() throws {
        var bench = SchedulerBench()
        bench.join()
        bench.join()
        try bench.submit([.nothing("a"), .nothing("b"), .nothing("c")])
        let first = bench.attempt("a").worker

        bench.drive(.drainRequested(bench.workers[first].identity.incarnation))
        bench.finish("a")
        bench.finish("b")

        #expect(bench.takeOrders(of: first) == [.drain])
        #expect(bench.attempt("c").worker != first)
    }

    @Test func `the order is said again with every answer until the worker says that it drains`()
        throws
    {
        var bench = SchedulerBench()
        bench.join()
        let incarnation = bench.workers[0].identity.incarnation
        bench.drive(.drainRequested(incarnation))
        _ = bench.takeOrders(of: 0)

        bench.beat(from: 0)
        #expect(bench.takeOrders(of: 0) == [.drain])
        bench.hello(from: 0, connection: 2)
        #expect(bench.takeOrders(of: 0) == [.drain])
        #expect(!bench.scheduler.hasBegunToDrain(incarnation))
        #expect(bench.scheduler.areDrainsOpen)

        bench.drain()
        bench.beat(from: 0, draining: true)
        #expect(bench.takeOrders(of: 0) == [])
        #expect(bench.scheduler.hasBegunToDrain(incarnation))
        #expect(!bench.scheduler.areDrainsOpen)
        let notices = bench.drain().notices
        #expect(notices.contains(.workerDraining(bench.workers[0].identity, by: "")))
    }

    @Test func `whoever is asked twice, or drains already, is not told again`() throws {
        var bench = SchedulerBench()
        bench.join()
        bench.drive(.drainRequested(bench.workers[0].identity.incarnation))
        bench.drive(.drainRequested(bench.workers[0].identity.incarnation))
        #expect(bench.takeOrders(of: 0) == [.drain])

        bench.join()
        bench.beat(from: 1, draining: true)
        bench.drive(.drainRequested(bench.workers[1].identity.incarnation))
        #expect(bench.takeOrders(of: 1) == [])
    }

    @Test func `a worker that drains says who asked for it first`() throws {
        var bench = SchedulerBench()
        bench.join()
        let identity = bench.workers[0].identity
        bench.drive(.drainRequested(identity.incarnation), by: "ann")
        bench.drive(.drainRequested(identity.incarnation), by: "bob")
        bench.drain()
        bench.beat(from: 0, draining: true)
        #expect(bench.drain().notices.contains(.workerDraining(identity, by: "ann")))
    }

    @Test func `one that is not there cannot be asked`() throws {
        var bench = SchedulerBench()
        bench.drain()
        bench.drive(.drainRequested(Incarnation(rawValue: 99)))
        let refusals = bench.drain().refusals
        #expect(refusals == [.worded(.invalid(field: "worker", why: "it is not there"))])
    }

    // MARK: The worker

    @Test func `a worker gives back what waits, finishes what runs, and leaves`() throws {
        var bench = WorkerBench(slots: 1) { $0.drainTimeout = .seconds(20) }
        bench.join()
        bench.dispatch([1, 2])
        bench.drain()

        bench.order(.drain)
        #expect(bench.drain().notices.contains(.draining(returned: 1, running: 1)))

        bench.advance(by: .seconds(19))
        #expect(bench.drain().stops == [])
        bench.end(1)
        bench.answer(acknowledged: 3)
        #expect(bench.drain().wantsExit)
    }

    @Test func `what still runs after the time that the worker allows is asked to stop`() throws {
        var bench = WorkerBench(slots: 1) { $0.drainTimeout = .seconds(20) }
        bench.join()
        bench.dispatch([1])
        bench.order(.drain)
        bench.drain()

        bench.advance(by: .seconds(20))
        #expect(bench.drain().stops == [.cancel(WorkerBench.held(1).attempt)])
    }
}
