import OperonCore
import OperonModel
import OperonTestKit
import Testing

/// What running operations add to their graphs, at the coordinator.
struct AdditionTests {
    private func bench() throws -> SchedulerBench {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([.nothing("a"), .nothing("b")])
        bench.start("a")
        bench.drain()
        return bench
    }

    private let request = AdditionRequest(number: 1, operations: [1, 2, 3])

    @Test func `what was taken before is found again, whatever the rules are now`() throws {
        var operation = OperationDescription.nothing("a")
        operation.timeout = .zero
        let graph = GraphDescription(name: "added", operations: [operation])
        let base = CompiledAddition.Base(
            graph: GraphID(rawValue: 0),
            operationCount: 3,
            edgeCount: 0
        )
        #expect(throws: Refusal.self) {
            try CompiledAddition.compile(graph, to: base) { _ in nil }
        }
        let found = try CompiledAddition.recompile(graph, to: base) { _ in nil }
        #expect(found.first == 3)
        #expect(found.graph.topology.operationCount == 1)
    }

    private func verdicts(_ bench: SchedulerBench) -> [Scheduler.Verdict] {
        bench.effects.messages.flatMap(\.verdicts)
    }

    @Test func `what it adds is stored before its outcome, though both come at once`() throws {
        var bench = try bench()
        let (worker, held) = bench.attempt("a")
        let end = bench.result(.succeeded)
        let events: [WorkerEvent] = [.added(held, request), .finished(held, end)]
        let batch = EventBatch(firstNumber: 2, sentAt: bench.now.monotonic, events: events)
        bench.resolver.additions = [.success([.nothing("c"), .nothing("d")])]
        bench.send(.events(batch), from: worker)

        let graph = held.operation.graph
        #expect(bench.effects.records.first == .operationsAdded(graph, first: 2, by: held))
        #expect(bench.effects.records.contains(.finished(held.operation, .succeeded)))
        #expect(verdicts(bench) == [.init(number: 1, event: 2, content: .added(2))])
        #expect(bench.scheduler.operationCount(of: graph) == 4)
        #expect(!bench.scheduler.isFinished(graph))
    }

    @Test func `an attempt that is another's by now, or has not started, adds nothing`() throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([.nothing("a")])
        let (worker, held) = bench.attempt("a")

        bench.send(.added(held, request), from: worker)
        #expect(bench.resolver.requests.isEmpty)

        bench.start("a")
        bench.finish("a")
        bench.drain()
        bench.send(.added(held, request), from: worker)
        #expect(bench.resolver.requests.isEmpty)
        #expect(bench.effects.notices == [.eventRefused(held.attempt)])
        #expect(bench.effects.records.isEmpty)
    }

    @Test func `a verdict is said with every answer until no beat lists the request`() throws {
        var bench = try bench()
        let held = bench.attempt("a").held
        bench.resolver.additions = [.success([.nothing("c")])]
        bench.send(.added(held, request), from: 0)
        let verdict = Scheduler.Verdict(number: 1, event: 2, content: .added(1))
        let open = OpenRequest(number: 1, held: held, event: 2)

        for _ in 0..<2 {
            bench.drain()
            bench.beat(from: 0, open: [open])
            #expect(verdicts(bench) == [verdict])
        }
        bench.drain()
        bench.beat(from: 0, open: [])
        #expect(verdicts(bench).isEmpty)

        // Whoever lists it again is asked to tell of it anew: nobody remembers.
        bench.drain()
        bench.beat(from: 0, open: [open])
        #expect(verdicts(bench) == [.init(number: 1, event: 2, content: .again)])
    }

    @Test func `a request whose event is on its way has no verdict yet`() throws {
        var bench = try bench()
        let held = bench.attempt("a").held
        bench.beat(from: 0, open: [OpenRequest(number: 1, held: held, event: 2)])
        #expect(verdicts(bench).isEmpty)
    }

    @Test func `a graph that was cancelled takes nothing from what still runs`() throws {
        var bench = try bench()
        let held = bench.attempt("a").held
        bench.drive(.cancelRequested(.graph(held.operation.graph), reason: "", cascade: false))
        bench.drain()
        bench.resolver.additions = [.success([.nothing("c")])]
        bench.send(.added(held, request), from: 0)

        let refusal = Refusal.graphClosed(name: "graph0")
        #expect(
            verdicts(bench) == [.init(number: 1, event: 2, content: .refused(.worded(refusal)))]
        )
        #expect(bench.effects.records.isEmpty)
    }

    @Test func `what an operation added before is the same addition, anything else is refused`()
        throws
    {
        let known: [String: CompiledAddition.Known] = [
            "c": CompiledAddition.Known(description: .nothing("c"), parent: 0),
            "b": CompiledAddition.Known(description: .nothing("b"), parent: nil),
        ]
        let base = CompiledAddition.Base(
            graph: GraphID(rawValue: 0),
            operationCount: 3,
            edgeCount: 0
        )
        func added(
            _ operations: [OperationDescription],
            by parent: UInt32 = 0
        ) throws(Refusal) -> [String] {
            let graph = GraphDescription(name: "added", operations: operations)
            let new = try CompiledAddition.compile(graph, addedBy: parent, to: base) { name in
                known[name]
            } resolve: { name in
                known[name].map { _ in OperationID(graph: base.graph, index: 1) }
            }
            return new?.description.operations.map(\.name) ?? []
        }

        #expect(try added([.nothing("c")]) == [])
        #expect(try added([.nothing("c"), .nothing("d", after: ["c"])]) == ["d"])
        let again = Refusal.duplicateOperation(name: "c")
        #expect(throws: again) { try added([.nothing("c", after: ["b"])]) }
        #expect(throws: again) { try added([.nothing("c")], by: 1) }
        #expect(throws: Refusal.duplicateOperation(name: "b")) { try added([.nothing("b")]) }
    }

    // MARK: The worker

    private func running() -> WorkerBench {
        var bench = WorkerBench()
        bench.join()
        bench.dispatch([1])
        bench.drain()
        return bench
    }

    private func events(_ effects: WorkerAgent.Effects) -> [WorkerEvent] {
        effects.messages.flatMap { message -> [WorkerEvent] in
            guard case .events(let batch) = message.envelope.body else { return [] }
            return batch.events
        }
    }

    private func open(_ effects: WorkerAgent.Effects) -> [OpenRequest]? {
        for case .beat(let beat) in effects.messages.map(\.envelope.body) { return beat.open }
        return nil
    }

    private func say(_ verdict: Verdict, to bench: inout WorkerBench) {
        bench.say(.control(Control(acknowledged: 2, verdicts: [verdict])))
    }

    @Test func `a request is told behind the start, listed in beats, and answered once`() {
        var bench = running()
        let held = WorkerBench.held(1)
        bench.drive(.asked(7, held.attempt, .add([9])))
        let told = events(bench.drain())
        #expect(told.count == 2)
        #expect(told.last == .added(held, AdditionRequest(number: 7, operations: [9])))

        bench.advance(by: .seconds(2))
        #expect(open(bench.drain()) == [OpenRequest(number: 7, held: held, event: 2)])

        let verdict = Verdict(number: 7, event: 2, content: .added(1))
        say(verdict, to: &bench)
        #expect(bench.drain().answers == [.init(number: 7, content: .added(1))])
        say(verdict, to: &bench)
        #expect(bench.drain().answers.isEmpty)
        bench.advance(by: .seconds(2))
        #expect(open(bench.drain()) == [])
    }

    @Test func `a request whose verdict was lost is told anew, once`() {
        var bench = running()
        let held = WorkerBench.held(1)
        bench.drive(.asked(7, held.attempt, .add([9])))
        bench.drain()

        say(Verdict(number: 7, event: 2, content: .again), to: &bench)
        let request = AdditionRequest(number: 7, operations: [9])
        #expect(events(bench.drain()) == [.added(held, request)])
        say(Verdict(number: 7, event: 2, content: .again), to: &bench)
        #expect(events(bench.drain()).isEmpty)
        bench.advance(by: .seconds(2))
        #expect(open(bench.drain()) == [OpenRequest(number: 7, held: held, event: 3)])
    }

    @Test func `who does not run gets no verdict, and what is too large goes nowhere`() {
        var bench = running()
        bench.drive(.asked(1, WorkerBench.held(2).attempt, .add([])))
        #expect(bench.drain().answers == [.init(number: 1, content: .ended)])

        let limit = Limits().additionBytes
        let body = [UInt8](repeating: 0, count: limit + 1)
        bench.drive(.asked(2, WorkerBench.held(1).attempt, .add(body)))
        let refusal = Refusal.limitExceeded(
            limit: .additionBytes,
            value: limit + 1,
            maximum: limit
        )
        let effects = bench.drain()
        #expect(effects.answers == [.init(number: 2, content: .refused(refusal))])
        #expect(events(effects).isEmpty)

        bench.drive(.asked(3, WorkerBench.held(1).attempt, .add([1])))
        bench.end(1)
        #expect(bench.drain().answers == [.init(number: 3, content: .ended)])
    }
}
