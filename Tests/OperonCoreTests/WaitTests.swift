import OperonCore
import OperonModel
import OperonTestKit
import Testing

/// Running operations that wait for others, at the coordinator.
struct WaitTests {
    private func wait(
        _ name: String,
        for awaited: String...,
        number: UInt64 = 1,
        in bench: inout SchedulerBench
    ) {
        let (worker, held) = bench.attempt(name)
        let request = WaitRequest(number: number, names: awaited)
        bench.send(.yielded(held, request), from: worker)
    }

    private func verdicts(_ bench: SchedulerBench) -> [Scheduler.Verdict.Content] {
        bench.effects.messages.flatMap(\.verdicts).map(\.content)
    }

    private func cycle(_ bench: SchedulerBench, _ names: String...) -> Scheduler.Verdict.Content {
        .refused(.waitCycle(names.map { bench.id($0) }))
    }

    @Test func `on one slot what is waited for runs, and then what waited goes on first`() throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([.nothing("a"), .nothing("b"), .nothing("c"), .nothing("d")])
        bench.start("a")
        #expect(bench.granted == ["a"])
        wait("a", for: "b", "c", in: &bench)
        #expect(bench.granted == ["a", "b"])
        #expect(bench.explain("a") == [.awaits([bench.id("b"), bench.id("c")], more: 0)])

        bench.finish("b")
        #expect(bench.granted == ["a", "b", "c"])
        bench.drain()
        bench.finish("c", .failed(.exit(code: 1)))

        #expect(verdicts(bench) == [.ended([.succeeded, .failed])])
        // The slot is its own again: nobody else has it.
        #expect(bench.granted.isEmpty)
        #expect(bench.explain("a").isEmpty)
        bench.finish("a")
        #expect(bench.granted.last == "d")
        bench.scheduler.checkInvariants()
    }

    @Test func `it goes on when its worker has a slot again, and nothing is read ahead there`()
        throws
    {
        var bench = SchedulerBench()
        bench.join()
        bench.join(kinds: [Work.waitKind])
        let other = OperationDescription(name: "b", work: .wait(.seconds(1)))
        try bench.submit([.nothing("a"), other, .nothing("c"), .nothing("d")])
        bench.start("a")
        wait("a", for: "b", in: &bench)
        #expect(bench.granted == ["a", "b", "c"])
        bench.start("c")
        bench.drain()

        bench.finish("b")
        let worker = bench.workers[0].identity.incarnation
        #expect(verdicts(bench).isEmpty)
        #expect(bench.explain("a") == [.awaitsSlot(of: worker)])
        #expect(bench.explain("d") == [.noFreeSlot])
        bench.finish("c")

        #expect(verdicts(bench) == [.ended([.succeeded])])
        #expect(bench.granted.isEmpty)
        bench.finish("a")
        bench.finish("d")
        bench.scheduler.checkInvariants()
    }

    @Test func `its place in its queue is free for what it waits for, and it waits for one`()
        throws
    {
        var bench = SchedulerBench()
        bench.join(slots: 4)
        let queue = QueueSettings(name: "q", maxConcurrentOperationCount: 1)
        let names = ["a", "b", "c"]
        try bench.submit(names.map { .nothing($0) { $0.queue = "q" } }, queues: [queue])
        bench.start("a")
        wait("a", for: "b", in: &bench)
        #expect(bench.granted == ["a", "b"])
        bench.drain()
        bench.finish("b")

        #expect(verdicts(bench) == [.ended([.succeeded])])
        #expect(bench.granted.isEmpty)
        bench.finish("a")
        #expect(bench.granted == ["c"])
    }

    @Test func `a place in its queue is kept for it while its worker has no slot`() throws {
        var bench = SchedulerBench()
        bench.join(kinds: [Work.nothingKind])
        let queue = QueueSettings(name: "q", maxConcurrentOperationCount: 1)
        let long = { (name: String, queue: String) in
            var operation = OperationDescription(name: name, work: .wait(.seconds(1)))
            operation.queue = queue
            return operation
        }
        let operations = [
            .nothing("a") { $0.queue = "q" }, long("b", "far"), .nothing("c"), long("d", "q"),
        ]
        try bench.submit(operations, queues: [queue])
        bench.start("a")
        wait("a", for: "b", in: &bench)
        bench.start("c")
        bench.join(kinds: [Work.waitKind])
        #expect(bench.granted == ["a", "c", "b"])
        bench.drain()

        bench.finish("b")
        #expect(bench.granted.isEmpty)
        #expect(bench.explain("d") == [.queueLimit("q", maximum: 1, [bench.id("a")], more: 0)])
        #expect(bench.scheduler.violatedExplanation() == nil)
        bench.finish("c")
        #expect(verdicts(bench) == [.ended([.succeeded])])
        bench.finish("a")
        #expect(bench.granted == ["d"])
        bench.scheduler.checkInvariants()
    }

    @Test func `what has ended is not waited for`() throws {
        var bench = SchedulerBench()
        bench.join(slots: 2)
        try bench.submit([.nothing("a"), .nothing("b")])
        bench.start("a")
        bench.finish("b")
        bench.drain()
        wait("a", for: "b", in: &bench)

        #expect(verdicts(bench) == [.ended([.succeeded])])
        #expect(bench.effects.notices.isEmpty)
    }

    @Test func `what waits for it in any way is refused, and nothing is given back`() throws {
        var bench = SchedulerBench()
        bench.join(slots: 2)
        try bench.submit([
            .nothing("a") { $0.exclusive = ["db"] }, .nothing("after", after: ["a"]),
            .nothing("last", after: ["after"]), .nothing("other"),
            .nothing("needs") { $0.exclusive = ["db"] },
            .nothing("behind", after: ["needs"]),
        ])
        bench.start("a")
        bench.start("other")
        bench.drain()
        for (awaited, path) in [
            ("a", cycle(bench, "a", "a")),
            ("last", cycle(bench, "a", "last", "after", "a")),
            ("needs", cycle(bench, "a", "needs", "a")),
            ("behind", cycle(bench, "a", "behind", "needs", "a")),
        ] {
            wait("a", for: awaited, in: &bench)
            #expect(verdicts(bench) == [path], "\(awaited)")
            bench.drain()
        }
        // Neither may they wait for each other.
        wait("a", for: "other", in: &bench)
        #expect(verdicts(bench).isEmpty)
        wait("other", for: "after", in: &bench)
        #expect(verdicts(bench) == [cycle(bench, "other", "after", "a", "other")])
        bench.scheduler.checkInvariants()
    }

    @Test func `a dependency that would close a cycle with a wait is refused`() throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([.nothing("a"), .nothing("b"), .nothing("c", after: ["a"])])
        bench.start("a")
        bench.suspend(.operation(bench.id("b")))
        wait("a", for: "b", in: &bench)

        let (b, c) = (bench.id("b"), bench.id("c"))
        let path = ["b", "c", "a", "b"].map { bench.id($0).description }
        #expect(throws: Refusal.dependencyCycle(path: path)) {
            try bench.request(.dependencyAdded(b, on: c, .finished))
        }
    }

    @Test func `one wait at a time, of something, and not of too many`() throws {
        var configuration = SchedulerBench.noReadAhead
        configuration.limits.awaitedOperations = 2
        var bench = SchedulerBench(configuration)
        bench.join()
        try bench.submit([.nothing("a"), .nothing("b"), .nothing("c"), .nothing("d")])
        bench.start("a")
        bench.drain()
        wait("a", in: &bench)
        let nothing = Refusal.invalid(field: "wait", why: "it names no operation")
        #expect(verdicts(bench) == [.refused(.worded(nothing))])
        bench.drain()
        wait("a", for: "b", "c", "d", in: &bench)
        let limit = LimitName.awaitedOperations
        let many = Refusal.limitExceeded(limit: limit, value: 3, maximum: 2)
        #expect(verdicts(bench) == [.refused(.worded(many))])
        bench.drain()

        wait("a", for: "b", "c", in: &bench)
        #expect(verdicts(bench).isEmpty)
        // Its worker lets nobody wait twice: it has dropped the other.
        wait("a", for: "d", number: 2, in: &bench)
        #expect(verdicts(bench).isEmpty)
        #expect(bench.explain("a") == [.awaits([bench.id("d")], more: 0)])
        bench.scheduler.checkInvariants()
    }

    @Test func `as many of a worker wait as may`() throws {
        var configuration = SchedulerBench.noReadAhead
        configuration.limits.yieldedOperations = 1
        var bench = SchedulerBench(configuration)
        bench.join(slots: 2)
        try bench.submit([.nothing("a"), .nothing("b"), .nothing("c")])
        bench.suspend(.operation(bench.id("c")))
        bench.start("a")
        bench.start("b")
        wait("a", for: "c", in: &bench)
        bench.drain()
        wait("b", for: "c", in: &bench)

        let limit = LimitName.yieldedOperations
        let refusal = Refusal.limitExceeded(limit: limit, value: 2, maximum: 1)
        #expect(verdicts(bench) == [.refused(.worded(refusal))])
    }

    @Test func `what is not listed any more waits no more, and counts again at once`() throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([.nothing("a"), .nothing("b"), .nothing("c")])
        bench.start("a")
        bench.suspend(.operation(bench.id("b")))
        wait("a", for: "b", in: &bench)
        let open = OpenRequest(number: 1, held: bench.attempt("a").held, event: 2)
        bench.beat(from: 0, open: [open])
        #expect(bench.explain("a") == [.awaits([bench.id("b")], more: 0)])
        bench.drain()

        bench.beat(from: 0, open: [])
        let (a, attempt) = (bench.id("a"), bench.attempt("a").held.attempt)
        #expect(bench.effects.notices == [.waitEnded(a, attempt, hasRoom: false)])
        #expect(bench.explain("a").isEmpty)
        bench.scheduler.checkInvariants()
        bench.resume(.operation(bench.id("b")))
        #expect(verdicts(bench).isEmpty)
    }

    @Test func `one that ends or is lost while it waits leaves nothing behind`() throws {
        var bench = SchedulerBench()
        bench.join()
        bench.join()
        try bench.submit([.nothing("a"), .nothing("b"), .nothing("c", after: ["b"])])
        bench.start("a")
        bench.suspend(.operation(bench.id("b")))
        wait("a", for: "c", in: &bench)
        bench.finish("a", .failed(.exit(code: 3)))
        #expect(bench.outcome("a") == .failed(.exit(code: 3)))
        bench.scheduler.checkInvariants()
        bench.resume(.operation(bench.id("b")))
        bench.drain()
        bench.finish("b")
        bench.finish("c")
        #expect(verdicts(bench).isEmpty)
    }

    @Test func `a round that makes a wait endless ends it`() throws {
        var bench = SchedulerBench()
        bench.join(slots: 2)
        try bench.submit([
            .nothing("a"), .nothing("c", after: ["a"], .finished),
            .nothing("b", after: ["c"], .finished),
        ])
        bench.suspend(.operation(bench.id("b")))
        bench.finish("a", .failed(.exit(code: 1)))
        bench.finish("c", .failed(.exit(code: 1)))
        let graph = bench.id("a").graph
        try bench.request(
            .retryRequested(graph, operations: [bench.id("a").index], cancelled: false)
        )
        bench.start("a")
        wait("a", for: "b", in: &bench)
        #expect(bench.explain("a") == [.awaits([bench.id("b")], more: 0)])
        bench.drain()

        try bench.request(
            .retryRequested(graph, operations: [bench.id("c").index], cancelled: false)
        )
        #expect(verdicts(bench) == [cycle(bench, "a", "b", "c", "a")])
        #expect(bench.explain("a").isEmpty)
        bench.scheduler.checkInvariants()
    }
}

/// The same at its worker.
struct WaitingWorkerTests {
    private func running(slots: Int = 1) -> WorkerBench {
        var bench = WorkerBench(slots: slots)
        bench.join()
        bench.dispatch([1, 2, 3])
        bench.drain()
        return bench
    }

    private func ask(_ number: UInt64, _ operation: UInt64, in bench: inout WorkerBench) {
        bench.drive(.asked(number, WorkerBench.held(operation).attempt, .wait(["x"])))
    }

    private func say(_ content: Verdict.Content, event: UInt64, in bench: inout WorkerBench) {
        let verdict = Verdict(number: 7, event: event, content: content)
        bench.say(.control(Control(acknowledged: 0, verdicts: [verdict])))
    }

    private func starts(_ bench: inout WorkerBench) -> [UInt64] {
        bench.drain().starts.map(\.held.attempt.number)
    }

    @Test func `its slot goes to the next, and it goes on before the one behind that`() {
        var bench = running()
        ask(7, 1, in: &bench)
        let effects = bench.drain()
        #expect(effects.starts.map(\.held) == [WorkerBench.held(2)])
        let request = WaitRequest(number: 7, names: ["x"])
        let events = effects.messages.flatMap { message -> [WorkerEvent] in
            guard case .events(let batch) = message.envelope.body else { return [] }
            return batch.events
        }
        #expect(events.last == .yielded(WorkerBench.held(1), request))

        say(.ended([.succeeded]), event: 2, in: &bench)
        #expect(bench.drain().answers.isEmpty)
        bench.end(2)
        let after = bench.drain()
        #expect(after.answers == [.init(number: 7, content: .awaited([.succeeded]))])
        #expect(after.starts.isEmpty)
        bench.end(1)
        #expect(starts(&bench) == [3])
    }

    @Test func `a refusal waits for a slot as well`() {
        var bench = running()
        ask(7, 1, in: &bench)
        #expect(starts(&bench) == [2])
        say(.refused(.dependencyCycle(path: ["a"])), event: 2, in: &bench)
        #expect(bench.drain().answers.isEmpty)
        bench.end(2)
        let refusal = Refusal.dependencyCycle(path: ["a"])
        #expect(bench.drain().answers == [.init(number: 7, content: .refused(refusal))])
    }

    @Test func `who does not wait any more runs, and the next slot that is free is filled by none`()
    {
        var bench = running()
        ask(7, 1, in: &bench)
        #expect(starts(&bench) == [2])
        bench.drive(.withdrawn(7))
        #expect(bench.drain().answers == [.init(number: 7, content: .ended)])
        bench.end(2)
        #expect(starts(&bench) == [])
        bench.end(1)
        #expect(starts(&bench) == [3])
    }

    @Test func `a second wait is refused, and what ends while it waits is answered`() {
        var bench = running(slots: 3)
        ask(7, 1, in: &bench)
        bench.drain()
        ask(8, 1, in: &bench)
        let why = "this operation waits already: name all at once"
        let refusal = Refusal.invalid(field: "wait", why: why)
        #expect(bench.drain().answers == [.init(number: 8, content: .refused(refusal))])

        bench.end(1)
        #expect(bench.drain().answers == [.init(number: 7, content: .ended)])
        bench.drive(.drainRequested(deadline: .distantFuture))
        bench.end(2)
        bench.end(3)
        bench.say(.control(Control(acknowledged: 20)))
        #expect(bench.effects.wantsExit)
    }

    @Test func `a worker that leaves waits for what waits`() {
        var bench = running(slots: 3)
        bench.end(2)
        bench.end(3)
        ask(7, 1, in: &bench)
        bench.drive(.drainRequested(deadline: .distantFuture))
        bench.say(.control(Control(acknowledged: 20)))
        #expect(!bench.effects.wantsExit)
        say(.ended([.failed]), event: 4, in: &bench)
        #expect(bench.drain().answers == [.init(number: 7, content: .awaited([.failed]))])
        bench.end(1)
        bench.say(.control(Control(acknowledged: 20)))
        #expect(bench.effects.wantsExit)
    }

    @Test func `no more wait than may, and for no more than may be`() {
        var bench = WorkerBench(slots: 2) {
            $0.limits.yieldedOperations = 1
            $0.limits.awaitedOperations = 2
        }
        bench.join()
        bench.dispatch([1, 2])
        bench.drain()
        let first = WorkerBench.held(1).attempt
        bench.drive(.asked(1, first, .wait(["x", "y", "z"])))
        let many = Refusal.limitExceeded(limit: .awaitedOperations, value: 3, maximum: 2)
        #expect(bench.drain().answers == [.init(number: 1, content: .refused(many))])
        bench.drive(.asked(2, first, .wait(["x", "y"])))
        #expect(bench.drain().answers.isEmpty)
        ask(7, 2, in: &bench)
        let waiting = Refusal.limitExceeded(limit: .yieldedOperations, value: 2, maximum: 1)
        #expect(bench.drain().answers == [.init(number: 7, content: .refused(waiting))])
    }
}
