import OperonCore
import OperonModel
import OperonTestKit
import Testing

struct ExclusiveTests {
    private func exclusive(_ name: String, _ keys: [String]) -> OperationDescription {
        .nothing(name) { $0.exclusive = keys }
    }

    @Test func `one operation at a time holds a key, in any graph and queue`() throws {
        var bench = SchedulerBench()
        bench.join(slots: 8)
        try bench.submit([exclusive("a", ["db"]), exclusive("b", ["db"]), .nothing("free")])
        try bench.submit([
            .nothing("c") {
                $0.exclusive = ["db"]
                $0.queue = "other"
            }
        ])

        #expect(bench.granted == ["a", "free"])
        #expect(bench.explain("b") == [.keyHeld("db", by: [bench.id("a")], more: 0)])
        bench.drain()
        bench.finish("a")
        #expect(bench.granted.count == 1)
        bench.drain()
        let next = bench.state("b") == .dispatched ? "b" : "c"
        bench.finish(next)
        #expect(bench.granted == [next == "b" ? "c" : "b"])
    }

    @Test func `several keys are taken together or not at all`() throws {
        var bench = SchedulerBench()
        bench.join(slots: 8)
        try bench.submit([
            exclusive("a", ["x"]), exclusive("both", ["x", "y", "y"]), exclusive("y", ["y"]),
        ])
        #expect(bench.granted == ["a", "y"])

        bench.finish("a")
        #expect(bench.explain("both") == [.keyHeld("y", by: [bench.id("y")], more: 0)])
        bench.finish("y")
        #expect(bench.state("both") == .dispatched)
    }

    @Test func `the most urgent of those that wait for a key is next`() throws {
        var bench = SchedulerBench()
        bench.join(slots: 8)
        try bench.submit([
            exclusive("a", ["k"]), exclusive("low", ["k"]),
            .nothing("high") {
                $0.exclusive = ["k"]
                $0.priority = .high
            },
        ])
        bench.finish("high")
        #expect(bench.state("a") == .dispatched)
        bench.finish("a")
        #expect(bench.state("low") == .dispatched)
    }

    @Test func `a suspended operation does not keep others from the key`() throws {
        var bench = SchedulerBench()
        bench.join(slots: 8)
        try bench.submit([
            exclusive("a", ["k"]), exclusive("suspended", ["k"]), exclusive("b", ["k"]),
        ])
        bench.suspend(.operation(bench.id("suspended")))

        bench.finish("a")

        #expect(bench.state("b") == .dispatched)
        bench.resume(.operation(bench.id("suspended")))
        #expect(bench.explain("suspended") == [.keyHeld("k", by: [bench.id("b")], more: 0)])
        bench.finish("b")
        #expect(bench.state("suspended") == .dispatched)
    }

    @Test func `a key is free again when its holder's attempt is lost, given back or retried`()
        throws
    {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([
            .nothing("a") {
                $0.exclusive = ["k"]
                $0.retry = RetryPolicy(limit: 1, delay: .seconds(5), jitter: 0)
            },
            exclusive("b", ["k"]),
        ])
        bench.finish("a", .failed(.timeout))
        #expect(bench.state("b") == .dispatched)
        bench.giveBack("b")
        #expect(bench.state("b") == .dispatched)
        bench.advance(by: .seconds(6))
        #expect(bench.state("b") == .dispatched, "its right to the key has not ended")
        bench.advance(by: .seconds(54))

        #expect(bench.state("b") == .ready)
        #expect(!bench.explain("b").contains { if case .keyHeld = $0 { true } else { false } })
    }

    @Test func `who waits for a key goes on in order though the first of them is taken away`()
        throws
    {
        var bench = SchedulerBench()
        bench.join()
        let names = (0..<6).map { "w\($0)" }
        try bench.submit([exclusive("a", ["k"])] + names.map { exclusive($0, ["k"]) })
        // All have looked for the key and wait.
        bench.join(slots: 8)
        bench.suspend(.operation(bench.id("w0")))
        bench.cancel("w1")
        bench.drive(.priorityRequested(bench.id("w4"), .veryHigh))
        bench.drain()

        bench.finish("a")
        for name in ["w4", "w2", "w3", "w5"] {
            #expect(bench.granted == [name])
            bench.drain()
            bench.finish(name)
        }

        #expect(bench.granted.isEmpty)
        bench.resume(.operation(bench.id("w0")))
        #expect(bench.granted == ["w0"])
    }

    @Test func `who waits behind one that needs another key as well is not forgotten`() throws {
        var bench = SchedulerBench()
        bench.join(slots: 8)
        try bench.submit([
            exclusive("a", ["k"]), exclusive("b", ["l"]), exclusive("both", ["k", "l"]),
            exclusive("k1", ["k"]), exclusive("k2", ["k"]),
        ])
        bench.drain()

        bench.finish("a")
        #expect(bench.granted == ["k1"])
        bench.finish("b")
        bench.finish("k1")
        #expect(bench.granted.count == 2)
        for name in ["both", "k2"] where bench.state(name) == .dispatched { bench.finish(name) }
        for name in ["both", "k2"] where bench.state(name) == .dispatched { bench.finish(name) }
        #expect(Set(bench.finished).isSuperset(of: ["both", "k2"]))
    }
}
