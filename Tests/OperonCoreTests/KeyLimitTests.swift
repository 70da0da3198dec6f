import OperonCore
import OperonModel
import OperonTestKit
import Testing

/// Keys that more than one operation may hold at a time.
struct KeyLimitTests {
    private func holding(
        _ names: [String],
        queue: String = QueueSettings.defaultName
    ) -> [OperationDescription] {
        names.map { name in
            .nothing(name) {
                $0.exclusive = ["db"]
                $0.queue = queue
            }
        }
    }

    private func submit(
        _ operations: [OperationDescription],
        limit: Int?,
        to bench: inout SchedulerBench
    ) throws {
        let keys = limit.map { [KeySettings(name: "db", limit: $0)] } ?? []
        try bench.submit(operations, keys: keys)
    }

    @Test func `as many hold a key as its graph says, across queues and workers`() throws {
        var bench = SchedulerBench()
        bench.join(slots: 2)
        bench.join(slots: 4)
        try submit(
            holding(["a", "b"]) + holding(["c", "d", "e"], queue: "other") + [.nothing("free")],
            limit: 3,
            to: &bench
        )

        #expect(Set(bench.granted) == ["a", "b", "c", "free"])
        let held = [bench.id("a"), bench.id("c"), bench.id("b")]
        #expect(bench.explain("d") == [.keyHeld("db", by: held, more: 0)])
        bench.finish("b")
        #expect(bench.granted.last == "d")
        bench.finish("a")
        #expect(bench.granted.last == "e")
    }

    @Test func `a command changes how many, at once, and counts more than later graphs`() throws {
        var bench = SchedulerBench()
        bench.join(slots: 8)
        try submit(holding(["a", "b", "c", "d"]), limit: nil, to: &bench)
        #expect(bench.granted == ["a"])

        try bench.request(.keyLimitSet(KeySettings(name: "db", limit: 3)))
        #expect(bench.granted == ["a", "b", "c"])
        try submit(holding(["e"]), limit: 9, to: &bench)
        try bench.request(.keyLimitSet(KeySettings(name: "db", limit: 1)))
        bench.finish("a")
        bench.finish("b")
        #expect(bench.granted == ["a", "b", "c"])
        bench.finish("c")
        #expect(bench.granted == ["a", "b", "c", "d"])
    }

    @Test func `a limit that is taken back is one, and the key goes with its last graph`() throws {
        var coordinator = RestartBench()
        coordinator.bench.join(slots: 8)
        try submit(holding(["a", "b", "c", "d"]), limit: nil, to: &coordinator.bench)
        try coordinator.bench.request(.keyLimitSet(KeySettings(name: "db", limit: 3)))
        #expect(coordinator.bench.granted == ["a", "b", "c"])

        try coordinator.bench.request(.keyReset("db"))
        #expect(try coordinator.restart() == nil)
        #expect(coordinator.bench.scheduler.limit(ofKey: "db") == 1)

        try coordinator.bench.request(.keyLimitSet(KeySettings(name: "unused", limit: 3)))
        try coordinator.bench.request(.keyReset("unused"))
        #expect(coordinator.bench.scheduler.keyStatus.map(\.settings.name) == ["db"])
        #expect(try coordinator.restart() == nil)
        #expect(throws: Refusal.invalid(field: "key", why: "there is no key “unused”")) {
            try coordinator.bench.request(.keyReset("unused"))
        }
    }

    @Test func `who holds a key is told, and how many wait, whatever else keeps them`() throws {
        var bench = SchedulerBench()
        try submit(
            holding(["a", "b"]) + holding(["c"], queue: "other") + [.nothing("free")],
            limit: 2,
            to: &bench
        )
        let status = try #require(bench.scheduler.keyStatus.first)
        #expect(status.settings == KeySettings(name: "db", limit: 2))
        #expect(status.holders == [] && status.waiting == 3)
        #expect(status.waiters == ["a", "b", "c"].map { bench.id($0) })

        bench.join(slots: 8)
        #expect(bench.scheduler.keyStatus.first?.waiting == 1)
        try bench.request(.keyLimitSet(KeySettings(name: "db", limit: 1)))
        let lowered = try #require(bench.scheduler.keyStatus.first)
        #expect(lowered.holders.count == 2 && lowered.waiting == 1)
        for name in bench.granted where name != "free" { bench.finish(name) }
        #expect(bench.scheduler.keyStatus.first?.holders.count == 1)
        for name in bench.granted.suffix(1) { bench.finish(name) }
        let last = try #require(bench.scheduler.keyStatus.first)
        #expect(last.holders == [] && last.waiting == 0 && last.waiters == [])
    }

    @Test func `of many that wait for a key the first of their graph are listed`()
        throws
    {
        var bench = SchedulerBench()
        let names = (0..<12).map { "w\($0)" }
        try submit(holding(names), limit: 1, to: &bench)
        let status = try #require(bench.scheduler.status(ofKey: "db"))
        #expect(status.waiting == 12)
        #expect(status.waiters == names.prefix(10).map { bench.id($0) })
    }

    @Test func `a limit below one, or a name that is none, is refused`() throws {
        var bench = SchedulerBench()
        for settings in [KeySettings(name: "db", limit: 0), KeySettings(name: "")] {
            #expect(throws: Refusal.self) { try bench.request(.keyLimitSet(settings)) }
        }
        #expect(throws: Refusal.self) { try submit(holding(["a"]), limit: 0, to: &bench) }
        #expect(bench.drain().records.isEmpty)
    }

    @Test func `a holder that was killed keeps its place until its right has ended`() throws {
        var bench = SchedulerBench()
        bench.join(slots: 2)
        try submit(holding(["a", "b", "c"]), limit: 2, to: &bench)
        bench.start("a")
        bench.start("b")
        bench.advance(by: .seconds(20))
        bench.join(slots: 2)
        #expect(Set(bench.granted) == ["a", "b"])

        // Beats of the new one, until the leases of the keys have run out.
        for _ in 0..<30 {
            bench.advance(by: .seconds(2))
            bench.beat(from: 1)
        }
        #expect(bench.granted.count == 4)
    }

    @Test func `who holds a key, and how many may, is so after a restart`() throws {
        var coordinator = RestartBench()
        coordinator.bench.join(slots: 8)
        try submit(holding(["a", "b", "c", "d"]), limit: 2, to: &coordinator.bench)
        #expect(try coordinator.restart() == nil)
        #expect(
            coordinator.bench.explain("c").contains {
                if case .keyHeld("db", _, 0) = $0 { true } else { false }
            }
        )
        try coordinator.bench.request(.keyLimitSet(KeySettings(name: "db", limit: 3)))
        #expect(try coordinator.restart() == nil)
        try submit(holding(["e"]), limit: 9, to: &coordinator.bench)
        #expect(coordinator.bench.scheduler.limit(ofKey: "db") == 3)
        coordinator.bench.drive(.transportUp)
        coordinator.bench.hello(from: 0, held: coordinator.bench.workers[0].held)
        #expect(coordinator.bench.workers[0].held.count == 3)
    }
}
