import OperonCore
import OperonModel
import OperonTestKit
import Testing

struct CommandResultTests {
    @Test func `a cancel says what ended, what runs on and what waits on for it`() throws {
        var bench = SchedulerBench()
        bench.join(slots: 2)
        let graph = try bench.submit([
            .nothing("runs"), .nothing("sent"), .nothing("waits", after: ["runs"]),
        ])
        try bench.submit([.nothing("other", after: ["runs"])])
        bench.start("runs")
        bench.drain()
        try bench.request(.cancelRequested(.graph(graph), reason: "", cascade: false))

        let result = try #require(bench.drain().results.first)
        #expect(result.affected == 3)
        #expect(result.finished == 1)
        #expect(result.running == 2)
        #expect(result.released == 1)
        #expect(Set(result.named) == [bench.id("runs"), bench.id("sent")])
        #expect(!result.isEffective)
        #expect(!bench.scheduler.isEffective(.graph(graph)))

        bench.giveBack("sent")
        #expect(bench.scheduler.isEffective(.graph(graph)))
        #expect(bench.state("runs") == .executing)
        bench.finish("runs", .cancelled)
        #expect(bench.state("runs") == .finished)
    }

    @Test func `a suspension is effective when nothing is on its way to a start`() throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([.nothing("a"), .nothing("b")])
        bench.drain()
        try bench.request(.suspensionRequested(.queue("default"), Suspension()))

        let result = try #require(bench.drain().results.first)
        #expect(result.affected == 2)
        #expect(result.running == 1)
        #expect(!result.isEffective)
        bench.start("a")
        #expect(bench.scheduler.isEffective(.queue("default")))
        #expect(bench.scheduler.isEffective(.operation(bench.id("a"))))
    }

    @Test func `a cascade is effective with its last member`() throws {
        var bench = SchedulerBench()
        bench.join(slots: 2)
        try bench.submit([.nothing("a"), .nothing("b", after: ["a"], .finished)])
        bench.finish("a")
        let target = Scheduler.Target.operation(bench.id("a"))

        #expect(bench.scheduler.isEffective(target))
        #expect(!bench.scheduler.isEffective(target, cascade: true))
        bench.start("b")
        #expect(bench.scheduler.isEffective(target, cascade: true))
    }

    @Test func `a cancel with cascade reaches dependents of other graphs`() throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([.nothing("gate"), .nothing("a")])
        try bench.submit([.nothing("b", after: ["a"])])
        bench.drain()
        bench.cancel("a", cascade: true)

        #expect(bench.outcome("b") == .cancelled(reason: ""))
        #expect(bench.drain().results.first?.finished == 2)
    }

    @Test func `what is refused has no result`() throws {
        var bench = SchedulerBench()
        bench.drive(.cancelRequested(.queue("none"), reason: "", cascade: false))
        #expect(bench.effects.results.isEmpty)
        #expect(bench.effects.refusals.count == 1)
    }
}
