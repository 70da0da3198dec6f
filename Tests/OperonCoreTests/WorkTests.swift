import OperonCore
import OperonModel
import OperonTestKit
import Testing

/// What an event costs must not depend on what it does not concern. Counted in elements that the
/// scheduler looked at.
struct WorkTests {
    private func bench(
        _ configuration: Scheduler.Configuration = SchedulerBench.noReadAhead
    ) -> SchedulerBench {
        var bench = SchedulerBench(configuration)
        bench.checksInvariants = false
        return bench
    }

    private func visits(
        _ bench: inout SchedulerBench,
        _ body: (inout SchedulerBench) throws -> Void
    ) rethrows -> Int {
        let before = bench.scheduler.visitCount
        try body(&bench)
        return bench.scheduler.visitCount - before
    }

    private func cancel(_ graph: GraphID, in bench: inout SchedulerBench) {
        bench.drive(.cancelRequested(.graph(graph), reason: "", cascade: false))
    }

    /// Graphs of one operation each, which are finished.
    private func submitAndCancel(
        _ count: Int,
        in bench: inout SchedulerBench,
        _ change: (Int, inout OperationDescription) -> Void
    ) throws -> [GraphID] {
        try (0..<count).map { number in
            var operation = OperationDescription.nothing("n\(number)")
            change(number, &operation)
            let graph = try bench.submit([operation])
            cancel(graph, in: &bench)
            bench.drain()
            return graph
        }
    }

    // MARK: Forgetting

    @Test func `forgetting what depended on one operation costs each dependent the same`() throws {
        var bench = bench()
        bench.join()
        try bench.submit([.nothing("old")])
        bench.finish("old")
        // None of them is sent to the worker, which would have to answer a cancellation.
        bench.suspend(.queue("default"))
        let count = 500
        let graphs = try submitAndCancel(count, in: &bench) { _, operation in
            operation.dependencies = [DependencyDescription("old", .finished)]
        }

        let visits = visits(&bench) { bench in
            for graph in graphs { bench.drive(.graphsForgotten([graph])) }
        }
        #expect(visits < 10 * count)
        #expect(graphs.allSatisfy { bench.scheduler.isGone($0) })
        // Nobody is left: what they depended on may go as well.
        #expect(bench.scheduler.dependents(of: bench.id("old")).isEmpty)
        bench.drive(.graphsForgotten([GraphID(rawValue: 0)]))
        #expect(bench.scheduler.isGone(GraphID(rawValue: 0)))
        bench.scheduler.checkInvariants()
    }

    @Test func `who depends on what dropped graphs depended on is told of its end`() throws {
        var bench = bench()
        bench.join()
        bench.suspend(.queue("default"))
        try bench.submit([.nothing("y")])
        func dependents(_ name: String, _ count: Int) -> [OperationDescription] {
            (0..<count).map { number in
                .nothing("\(name)\(number)") { $0.dependencies = [DependencyDescription("y")] }
            }
        }
        let many = try bench.submit(dependents("many", 6))
        let one = try bench.submit(dependents("one", 1))
        try bench.submit(dependents("kept", 4))
        cancel(many, in: &bench)
        bench.drive(.graphsForgotten([many]))
        bench.scheduler.checkInvariants()
        for number in 0..<3 {
            try bench.request(
                .dependencyRemoved(bench.id("kept\(number)"), on: bench.id("y"))
            )
        }
        cancel(one, in: &bench)
        bench.drive(.graphsForgotten([one]))
        bench.scheduler.checkInvariants()

        bench.resume(.queue("default"))
        for name in ["y", "kept0", "kept1", "kept2"] { bench.finish(name) }
        #expect(bench.state("kept3") == .dispatched)
    }

    @Test func `forgetting one graph after the other does not walk what waits`() throws {
        var bench = bench()
        let waiting = 1_000
        try bench.submit((0..<waiting).map { .nothing("w\($0)") })
        let count = 300
        let graphs = try submitAndCancel(count, in: &bench) { _, _ in }

        let visits = visits(&bench) { bench in
            for graph in graphs { bench.drive(.graphsForgotten([graph])) }
        }
        #expect(visits < 10 * (count + waiting))
        bench.join(slots: 4)
        bench.finish("w0")
        bench.scheduler.checkInvariants()
    }

    @Test func `what dropped graphs left in line does not gather`() throws {
        var bench = bench()
        let late = bench.now.wall + .seconds(100_000)
        for _ in 0..<50 {
            let graphs = try submitAndCancel(10, in: &bench) { _, operation in
                operation.deadline = late
            }
            bench.drive(.graphsForgotten(graphs))
        }
        #expect(bench.scheduler.lineCount < 100)
        bench.advance(by: .seconds(200_000))
        #expect(bench.scheduler.lineCount == 0)
    }

    @Test func `the place of a dropped graph is given to the next one`() throws {
        var bench = bench()
        for _ in 0..<100 {
            let graphs = try submitAndCancel(1, in: &bench) { _, _ in }
            bench.drive(.graphsForgotten(graphs))
        }
        #expect(bench.scheduler.graphCount == 100)
        #expect(bench.scheduler.graphPlaceCount == 1)
        #expect(bench.scheduler.outcomeKind(of: bench.id("n0")) == .cancelled)
        bench.scheduler.checkInvariants()
    }

    @Test func `an open graph that is idle again and again has one timer`() throws {
        var bench = bench()
        bench.join()
        let graph = try bench.submit([], open: true)
        for number in 0..<20 {
            try bench.add([.nothing("n\(number)")], to: graph)
            bench.finish("n\(number)")
            bench.advance(by: .seconds(1))
            bench.beat(from: 0)
        }
        // That of its worker's lease, and that of the graph.
        #expect(bench.scheduler.lineCount <= 3)
        bench.advance(by: bench.scheduler.configuration.limits.openGraphIdle - .seconds(2))
        #expect(bench.scheduler.isOpen(graph))
        bench.advance(by: .seconds(2))
        #expect(!bench.scheduler.isOpen(graph))
    }

    // MARK: Queues with work

    /// Operations of unknown run time, each in a queue of its own.
    private func spread(_ count: Int) -> [OperationDescription] {
        (0..<count).map { number in
            .nothing("n\(number)") { operation in
                operation.work = .registered(kind: "Blur", input: .empty)
                operation.queue = "q\(number)"
            }
        }
    }

    /// Ends an operation that ran for an hour.
    private func end(_ name: String, in bench: inout SchedulerBench) {
        let (worker, held) = bench.attempt(name)
        let now = bench.now.monotonic
        let start = now - .seconds(3_600)
        let result = AttemptResult(end: .succeeded, startedAt: start, endedAt: now)
        bench.settle(held, result, from: worker)
    }

    /// A worker that reads ahead always has room for operations that are short enough.
    @Test(arguments: [true, false])
    func `an end costs the same, however many queues have work`(_ readsAhead: Bool) throws {
        var bench = bench(readsAhead ? Scheduler.Configuration() : SchedulerBench.noReadAhead)
        bench.join(slots: 2, kinds: ["Blur"])
        let count = 300
        try bench.submit(spread(count))
        for number in 0..<count - 2 {
            #expect(visits(&bench) { end("n\(number)", in: &$0) } < 20)
            // The queues are served in turn.
            #expect(bench.scheduler.state(of: bench.id("n\(number + 2)")) == .dispatched)
            #expect(bench.scheduler.queueMembersInFlight("q\(number + 3)") == 0)
        }
        #expect(visits(&bench) { $0.beat(from: 0) } < 20)
        bench.scheduler.checkInvariants()
    }

    @Test func `a worker that joins costs the queues with work nothing`() throws {
        var bench = bench()
        bench.join(kinds: ["Blur"])
        try bench.submit(spread(300))
        #expect(visits(&bench) { $0.join(kinds: ["Blur"]) } < 20)
        #expect(bench.scheduler.state(of: bench.id("n1")) == .dispatched)
        bench.scheduler.checkInvariants()
    }

    @Test func `queues without room do not hold up one that needs less of it`() throws {
        var bench = bench(Scheduler.Configuration())
        bench.join(slots: 2, kinds: ["Blur", Work.nothingKind])
        try bench.submit([.nothing("first"), .nothing("second")])
        try bench.submit(spread(300))
        // Both slots are taken, for a moment.
        #expect(bench.scheduler.state(of: bench.id("n0")) == .ready)
        try bench.submit([.nothing("short") { $0.queue = "z" }])
        #expect(bench.scheduler.state(of: bench.id("short")) == .dispatched)
        #expect(bench.scheduler.state(of: bench.id("n0")) == .ready)
        bench.finish("first")
        #expect(bench.scheduler.state(of: bench.id("n0")) == .ready, "short has the slot")
        bench.finish("second")
        #expect(bench.scheduler.state(of: bench.id("n0")) == .dispatched)
        bench.scheduler.checkInvariants()
    }

    @Test func `queues that one worker serves do not hold up those of another`() throws {
        var bench = bench()
        bench.join(queues: ["q0", "q1"], kinds: ["Blur"])
        try bench.submit(spread(4))
        #expect(bench.scheduler.state(of: bench.id("n0")) == .dispatched)
        #expect(bench.scheduler.state(of: bench.id("n2")) == .ready)
        bench.join(queues: ["q1", "q2", "q3"], kinds: ["Blur"])
        #expect(bench.scheduler.state(of: bench.id("n1")) == .dispatched)
        end("n1", in: &bench)
        #expect(bench.scheduler.state(of: bench.id("n2")) == .dispatched)
        end("n0", in: &bench)
        #expect(bench.scheduler.state(of: bench.id("n3")) == .ready)
        end("n2", in: &bench)
        #expect(bench.scheduler.state(of: bench.id("n3")) == .dispatched)
        bench.scheduler.checkInvariants()
    }

    // MARK: Names

    @Test func `queues in which nothing is ready cost a beat nothing`() throws {
        var bench = bench()
        let count = 300
        _ = try submitAndCancel(count, in: &bench) { number, operation in
            operation.queue = "q\(number)"
        }
        bench.join()

        #expect(visits(&bench) { $0.beat(from: 0) } == 0)
        #expect(bench.scheduler.queueStatus.count == count)
    }

    @Test func `kinds that nothing ready has cost an event nothing`() throws {
        var bench = bench()
        bench.join(runsAnyKind: true)
        let count = 300
        try bench.submit(
            (0..<count).map { number in
                OperationDescription(
                    name: "n\(number)",
                    work: .registered(kind: "k\(number)", input: .empty)
                )
            }
        )
        for number in 0..<count - 1 { bench.finish("n\(number)") }
        #expect(visits(&bench) { $0.beat(from: 0) } < 5)
        bench.scheduler.checkInvariants()
    }

    @Test func `a name that no graph needs any more is forgotten, and so costs nothing`() throws {
        var configuration = SchedulerBench.noReadAhead
        configuration.unusedKindsMax = 2
        var bench = bench(configuration)
        bench.join()
        for round in 0..<3 {
            let graphs = try submitAndCancel(50, in: &bench) { number, operation in
                operation.queue = "q\(round)-\(number)"
                operation.exclusive = ["k\(round)-\(number)"]
                operation.work = .registered(kind: "kind\(round)-\(number)", input: .empty)
            }
            #expect(bench.scheduler.queueStatus.count == 50)
            bench.drive(.graphsForgotten(graphs))
            #expect(bench.scheduler.queueStatus.isEmpty && bench.scheduler.keyStatus.isEmpty)
            // The kinds whose run times are remembered.
            #expect(bench.scheduler.nameCount == 2)
            bench.scheduler.checkInvariants()
        }
    }

    @Test func `a queue with operations or settings of its own is not forgotten`() throws {
        var coordinator = RestartBench()
        try coordinator.bench.submit([.nothing("a") { $0.queue = "limited" }])
        try coordinator.bench.submit([.nothing("b") { $0.queue = "used" }])
        try coordinator.bench.submit([.nothing("c") { $0.queue = "used" }])
        try coordinator.bench.request(.queueLimitSet(queue: "limited", maximum: 3))
        for graph: UInt32 in [0, 1] { cancel(GraphID(rawValue: graph), in: &coordinator.bench) }
        try coordinator.forget()

        let names = coordinator.bench.scheduler.queueStatus.map(\.name).sorted()
        #expect(names == ["limited", "used"])
        #expect(try coordinator.restart() == nil)
        let status = coordinator.bench.scheduler.queueStatus.sorted { $0.name < $1.name }
        #expect(status.map(\.name) == names && status.map(\.maximum) == [3, nil])
    }

    @Test func `a queue whose settings are taken back goes with its last graph`() throws {
        var coordinator = RestartBench()
        try coordinator.bench.submit([.nothing("a") { $0.queue = "q" }])
        try coordinator.bench.request(.queueLimitSet(queue: "q", maximum: 1))
        try coordinator.bench.request(.queuePrioritySet(queue: "q", .high))
        try coordinator.bench.request(.suspensionRequested(.queue("q"), Suspension()))

        try coordinator.bench.request(.queueReset("q"))
        #expect(try coordinator.restart() == nil)
        let status = try #require(coordinator.bench.scheduler.queueStatus.first)
        #expect(status.maximum == nil && status.priority == .normal && !status.isSuspended)

        coordinator.bench.join()
        coordinator.bench.drive(.transportUp)
        #expect(coordinator.bench.granted.count == 1)
        cancel(GraphID(rawValue: 0), in: &coordinator.bench)
        coordinator.bench.finish("a")
        try coordinator.forget()
        #expect(coordinator.bench.scheduler.queueStatus.isEmpty)
        #expect(throws: Refusal.invalid(field: "queue", why: "there is no queue “q”")) {
            try coordinator.bench.request(.queueReset("q"))
        }
    }

    @Test func `a queue that takes the number of another one has nothing of it`() throws {
        var bench = bench()
        bench.checksInvariants = true
        bench.join(queues: ["old"])
        let graphs = try submitAndCancel(1, in: &bench) { _, operation in
            operation.queue = "old"
        }
        bench.drive(.graphsForgotten(graphs))
        try bench.submit([.nothing("a") { $0.queue = "new" }])
        #expect(bench.granted.isEmpty)
        #expect(bench.explain("a") == [.noWorkerForQueue("new")])
        bench.join(queues: ["new"])
        #expect(bench.granted == ["a"])
    }

    // MARK: Waiting

    /// A chain, each waiting for the one before, which waits for `first`.
    private func chain(
        _ name: String,
        _ count: Int,
        after first: String? = nil
    ) -> [OperationDescription] {
        (0..<count).map { number in
            let before = number == 0 ? first : "\(name)\(number - 1)"
            return .nothing("\(name)\(number)", after: before.map { [$0] } ?? [])
        }
    }

    private func wait(_ name: String, for awaited: String..., in bench: inout SchedulerBench) {
        let (worker, held) = bench.attempt(name)
        bench.send(.yielded(held, WaitRequest(number: 1, names: awaited)), from: worker)
    }

    private func verdicts(_ bench: SchedulerBench) -> [Scheduler.Verdict.Content] {
        bench.effects.messages.flatMap(\.verdicts).map(\.content)
    }

    @Test func `an await costs what the smaller side has, whatever is behind the other`() throws {
        var bench = bench()
        bench.join()
        try bench.submit([.nothing("a")])
        bench.start("a")
        let large = try bench.submit(chain("up", 2_000))
        bench.suspend(.graph(large))
        #expect(visits(&bench) { wait("a", for: "up1999", in: &$0) } < 10)
        #expect(verdicts(bench).isEmpty)

        try bench.submit([.nothing("b")] + chain("down", 2_000, after: "b") + [.nothing("c")])
        bench.start("b")
        bench.suspend(.operation(bench.id("c")))
        #expect(visits(&bench) { wait("b", for: "c", in: &$0) } < 10)
        #expect(verdicts(bench).isEmpty)
    }

    @Test(arguments: [false, true])
    func `a search with much on both sides is led on in later events`(_ isCycle: Bool) throws {
        var configuration = SchedulerBench.noReadAhead
        configuration.searchVisitsMax = 50
        var bench = bench(configuration)
        bench.join()
        try bench.submit([.nothing("a")] + chain("down", 1_000, after: "a") + chain("up", 1_000))
        bench.start("a")
        bench.drain()
        bench.suspend(.operation(bench.id("up0")))
        let awaited = isCycle ? "down999" : "up999"

        #expect(visits(&bench) { wait("a", for: awaited, in: &$0) } < 60)
        var events = 0
        while bench.effects.wakeAt == bench.now.monotonic, events < 1_000 {
            events += 1
            #expect(visits(&bench) { $0.drive(.timeReached) } < 60)
        }
        #expect((10..<100).contains(events))
        let path = [bench.id("a")] + (0..<1_000).reversed().map { bench.id("down\($0)") }
        let expected = path + [bench.id("a")]
        guard isCycle else {
            #expect(verdicts(bench).isEmpty)
            return
        }
        guard case .refused(.waitCycle(let found))? = verdicts(bench).first else {
            Issue.record("the cycle was not found")
            return
        }
        #expect(found.first == expected.first && found.last == expected.last)
        #expect(found.count < expected.count)
        bench.scheduler.checkInvariants()
    }

    @Test func `a cycle that is gone when a search comes to its end is not refused`() throws {
        var configuration = SchedulerBench.noReadAhead
        configuration.searchVisitsMax = 50
        var bench = bench(configuration)
        bench.join()
        try bench.submit(
            [.nothing("a"), .nothing("rest")] + chain("down", 200, after: "a")
                + [.nothing("end", after: ["down199"])]
        )
        bench.suspend(.operation(bench.id("rest")))
        bench.start("a")
        bench.drain()
        wait("a", for: "end", "rest", in: &bench)
        #expect(bench.effects.wakeAt == bench.now.monotonic, "the search is not over")

        bench.drive(.cancelRequested(.operation(bench.id("end")), reason: "", cascade: false))
        var events = 0
        while bench.effects.wakeAt == bench.now.monotonic, events < 100 {
            events += 1
            bench.drive(.timeReached)
        }
        #expect(events < 100)
        #expect(verdicts(bench).isEmpty, "it waits for the rest")
        bench.drive(.cancelRequested(.operation(bench.id("rest")), reason: "", cascade: false))
        #expect(verdicts(bench) == [.ended([.cancelled, .cancelled])])
        bench.scheduler.checkInvariants()
    }

    @Test func `what comes back with a key searches for cycles through itself alone`() throws {
        var bench = bench()
        bench.join(slots: 2)
        try bench.submit([.nothing("a"), .nothing("keyed") { $0.exclusive = ["k"] }])
        let large = try bench.submit(chain("up", 2_000))
        bench.suspend(.graph(large))
        bench.start("a")
        wait("a", for: "up1999", in: &bench)

        #expect(visits(&bench) { $0.giveBack("keyed") } < 20)
    }

    @Test func `a dependency is added at the cost of the smaller side`() throws {
        var bench = bench()
        try bench.submit(chain("up", 2_000))
        try bench.submit([.nothing("last")])
        let event = Scheduler.Event.dependencyAdded(
            bench.id("last"),
            on: bench.id("up1999"),
            .finished
        )
        #expect(try visits(&bench) { try $0.request(event) } < 10)
    }

    @Test func `answers that a worker does not take are kept up to what it may list`() throws {
        var configuration = SchedulerBench.noReadAhead
        configuration.limits.openRequests = 3
        configuration.limits.yieldedOperations = 2
        var bench = bench(configuration)
        bench.join()
        try bench.submit([.nothing("a")])
        bench.start("a")
        let held = bench.attempt("a").held
        for number: UInt64 in 1...20 {
            bench.send(.yielded(held, WaitRequest(number: number, names: [])), from: 0)
        }
        bench.drain()
        let open = [1, 20].map { number in
            OpenRequest(number: UInt64(number), held: held, event: UInt64(number) + 1)
        }
        bench.beat(from: 0, open: open)

        // What was forgotten is asked for again.
        let why = "it names no operation"
        let refused = Scheduler.Verdict.Content.refused(.worded(.invalid(field: "wait", why: why)))
        #expect(verdicts(bench) == [.again, refused])
    }
}
