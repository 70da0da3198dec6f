import OperonCore
import OperonModel
import OperonTestKit
import Testing

struct OpenGraphTests {
    private func finishedGraphs(_ bench: SchedulerBench) -> [GraphID] {
        bench.effects.notices.compactMap {
            if case .graphFinished(let id) = $0 { id } else { nil }
        }
    }

    @Test func `an open graph takes operations whose dependencies it has, and ends when closed`()
        throws
    {
        var bench = SchedulerBench()
        bench.join()
        let graph = try bench.submit([.nothing("a")], open: true)
        try bench.add([.nothing("b", after: ["a", "c"]), .nothing("c", after: ["a"])], to: graph)

        #expect(bench.state("b") == .pending)
        for name in ["a", "c", "b"] { bench.finish(name) }
        #expect(bench.granted == ["a", "c", "b"])
        #expect(finishedGraphs(bench).isEmpty)
        #expect(!bench.scheduler.isFinished(graph))

        try bench.request(.graphClosed(graph))
        #expect(finishedGraphs(bench) == [graph])
        #expect(bench.scheduler.isFinished(graph))
        #expect(bench.effects.records.contains(.operationsAdded(graph, first: 1)))
        #expect(bench.effects.records.last == .graphClosed(graph))
    }

    @Test func `a dependency on what has finished is resolved at once, by its outcome`() throws {
        var bench = SchedulerBench()
        bench.join()
        let graph = try bench.submit([.nothing("good"), .nothing("bad")], open: true)
        bench.finish("good")
        bench.finish("bad", .failed(.exit(code: 1)))
        bench.drain()

        try bench.add(
            [
                .nothing("after good", after: ["good"]), .nothing("after bad", after: ["bad"]),
                .nothing("behind", after: ["after bad"]),
                .nothing("handler", after: ["bad"], .failed),
            ],
            to: graph
        )

        #expect(bench.outcome("after bad") == .skipped(cause: bench.id("bad")))
        #expect(bench.outcome("behind") == .skipped(cause: bench.id("after bad")))
        #expect(bench.granted == ["after good"])
        #expect(bench.state("handler") == .ready)
    }

    @Test func `an operation may depend on operations of other graphs`() throws {
        var bench = SchedulerBench()
        bench.join()
        let first = try bench.submit([.nothing("a")], open: true)
        try bench.submit([.nothing("b", after: ["a"])])
        try bench.add([.nothing("c", after: ["b"])], to: first)

        #expect(bench.explain("b") == [.dependencies([bench.id("a")], more: 0)])
        for name in ["a", "b", "c"] { bench.finish(name) }
        #expect(bench.finished == ["a", "b", "c"])
    }

    @Test func `a failure skips across graphs`() throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([.nothing("a")])
        let second = try bench.submit([.nothing("b", after: ["a"]), .nothing("c", after: ["b"])])
        bench.finish("a", .failed(.exit(code: 1)))

        #expect(bench.outcome("c") == .skipped(cause: bench.id("b")))
        #expect(bench.scheduler.isFinished(second))
    }

    @Test func `a refused addition leaves nothing behind`() throws {
        var bench = SchedulerBench()
        let graph = try bench.submit([.nothing("a")], open: true)
        bench.drain()

        #expect(throws: Refusal.duplicateOperation(name: "a")) {
            try bench.add([.nothing("b"), .nothing("a")], to: graph)
        }
        #expect(throws: Refusal.unknownOperation(name: "ghost", namedBy: "b")) {
            try bench.add([.nothing("b", after: ["ghost"])], to: graph)
        }
        #expect(throws: Refusal.dependencyCycle(path: ["b", "c", "b"])) {
            try bench.add([.nothing("b", after: ["c"]), .nothing("c", after: ["b"])], to: graph)
        }
        #expect(bench.drain().records.isEmpty)
        #expect(bench.scheduler.operationCount(of: graph) == 1)
    }

    @Test func `a closed graph takes nothing, and one that was cancelled is closed`() throws {
        var bench = SchedulerBench()
        let closed = try bench.submit([.nothing("a")])
        #expect(throws: Refusal.graphClosed(name: "graph0")) {
            try bench.add([.nothing("b")], to: closed)
        }
        let open = try bench.submit([.nothing("c")], open: true)
        try bench.request(.cancelRequested(.graph(open), reason: "", cascade: false))

        #expect(throws: Refusal.graphClosed(name: "graph1")) {
            try bench.request(.graphClosed(open))
        }
        #expect(bench.scheduler.isFinished(open))
    }

    @Test func `an addition that was compiled before another came is refused`() throws {
        var bench = SchedulerBench()
        let graph = try bench.submit([.nothing("a")], open: true)
        let addition = try CompiledAddition.compile(
            GraphDescription(name: "", operations: [.nothing("b")]),
            to: try bench.scheduler.additionBase(of: graph),
            resolve: { _ in nil }
        )
        try bench.add([.nothing("c")], to: graph)

        #expect(throws: Refusal.self) { try bench.request(.operationsAdded(graph, addition)) }
        #expect(bench.scheduler.operationCount(of: graph) == 2)
    }

    @Test func `an open graph with nothing to do for a week is closed with a notice`() throws {
        var bench = SchedulerBench()
        bench.join()
        let graph = try bench.submit([.nothing("a")], open: true)
        bench.finish("a")
        bench.advance(by: .seconds(6 * 86_400))
        bench.hello(from: 0, connection: 2)
        try bench.add([.nothing("b")], to: graph)
        bench.finish("b")
        bench.advance(by: .seconds(6 * 86_400))
        #expect(bench.scheduler.isOpen(graph))
        bench.drain()

        bench.advance(by: .seconds(86_400))
        #expect(!bench.scheduler.isOpen(graph))
        let effects = bench.drain()
        #expect(effects.records == [.graphClosed(graph)])
        #expect(effects.notices.contains(.graphClosedIdle(graph)))
        #expect(effects.notices.contains(.graphFinished(graph)))
    }

    @Test func `what is added has its own queues, kinds, keys, priorities and sizes`() throws {
        var bench = SchedulerBench()
        bench.join(slots: 4, kinds: Work.builtInKinds + ["Big"])
        let graph = try bench.submit([.nothing("a") { $0.exclusive = ["x"] }], open: true)
        let bytes = [UInt8](repeating: 1, count: 5_000)
        var big = OperationDescription(
            name: "big",
            work: .registered(kind: "Big", input: Payload(bytes: bytes))
        )
        big.queue = "other"
        big.exclusive = ["y", "x"]
        try bench.add(
            [big, .nothing("c") { $0.exclusive = ["y"] }],
            to: graph,
            queues: [QueueSettings(name: "other", maxConcurrentOperationCount: 1)]
        )

        #expect(bench.granted == ["a", "c"])
        #expect(
            bench.explain("big") == [
                .keyHeld("y", by: [bench.id("c")], more: 0),
                .keyHeld("x", by: [bench.id("a")], more: 0),
            ]
        )
        bench.finish("a")
        bench.finish("c")
        #expect(bench.state("big") == .dispatched)
    }

    @Test func `a thousand additions one by one cost as much as what they add`() throws {
        var bench = SchedulerBench()
        bench.checksInvariants = false
        let graph = try bench.submit([.nothing("0")], open: true)
        for number in 1...1_000 {
            try bench.add([.nothing("\(number)", after: ["\(number - 1)", "0"])], to: graph)
        }
        bench.scheduler.checkInvariants()

        #expect(bench.scheduler.compiled(graph).policies.count == 1)
        bench.join(slots: 2)
        for number in 0...1_000 { bench.finish("\(number)") }
        #expect(bench.finished == (0...1_000).map(String.init))
        bench.scheduler.checkInvariants()
    }
}
