import OperonCore
import OperonModel
import OperonTestKit
import Testing

/// How often operations of a queue, or those that hold a key, start.
struct RateTests {
    private func operations(_ count: Int, key: String? = nil) -> [OperationDescription] {
        (0..<count).map { index in
            .nothing("\(index)") { if let key { $0.exclusive = [key] } }
        }
    }

    private func queue(_ rate: StartRate?) -> [QueueSettings] {
        var queue = QueueSettings(name: QueueSettings.defaultName)
        queue.rate = rate
        return [queue]
    }

    @Test func `a burst starts at once, and then one operation for each interval`() throws {
        var bench = SchedulerBench()
        bench.join(slots: 20)
        try bench.submit(operations(6), queues: queue(StartRate(4, burst: 2)))
        #expect(bench.granted == ["0", "1"])

        let next = bench.now.monotonic + .milliseconds(250)
        #expect(
            bench.explain("2") == [.queueRate("default", StartRate(4, burst: 2), next)]
        )
        #expect(bench.effects.wakeAt == next)
        bench.advance(by: .milliseconds(249))
        #expect(bench.granted.count == 2)
        bench.advance(by: .milliseconds(1))
        #expect(bench.granted == ["0", "1", "2"])
        // Two tokens come back, and no more however long nothing starts.
        bench.advance(by: .milliseconds(500))
        #expect(bench.granted.count == 5)
    }

    @Test func `a queue without a token and without a place needs no timer`() throws {
        var bench = SchedulerBench()
        bench.join(slots: 2)
        var settings = queue(StartRate(1, burst: 1))
        settings[0].maxConcurrentOperationCount = 1
        try bench.submit(operations(2), queues: settings)
        #expect(bench.granted == ["0"])
        #expect(bench.scheduler.violatedExplanation() == nil)
        bench.start("0")
        // The token has come back, and the place not.
        bench.advance(by: .seconds(1))
        #expect(bench.granted == ["0"])
        bench.finish("0")
        #expect(bench.granted == ["0", "1"])
    }

    @Test func `external operations start at the rate without any worker`() throws {
        var bench = SchedulerBench()
        let external = (0..<3).map { index in
            OperationDescription(name: "\(index)", work: .external(input: .empty))
        }
        try bench.submit(external, queues: queue(StartRate(1)))
        #expect(bench.granted == ["0"])
        #expect(bench.effects.wakeAt == bench.now.monotonic + .seconds(1))
        bench.advance(by: .seconds(1))
        bench.advance(by: .seconds(1))
        #expect(bench.granted == ["0", "1", "2"])
    }

    @Test func `another rate leaves as many tokens missing`() throws {
        var bench = SchedulerBench()
        bench.join(slots: 20)
        try bench.submit(operations(9), queues: queue(StartRate(10, burst: 2)))
        #expect(bench.granted.count == 2)
        // Two tokens are missing, which now take two seconds each.
        try bench.request(
            .queueRateSet(queue: "default", StartRate(1, per: .seconds(2), burst: 2))
        )
        bench.advance(by: .milliseconds(1_999))
        #expect(bench.granted.count == 2)
        bench.advance(by: .milliseconds(1))
        #expect(bench.granted.count == 3)
    }

    @Test func `tokens that come back are no more than a burst`() throws {
        var bench = SchedulerBench()
        bench.join(slots: 20)
        try bench.submit(operations(1), queues: queue(StartRate(10, burst: 3)))
        bench.advance(by: .seconds(3))
        try bench.submit(operations(9))
        #expect(bench.granted.count == 4)
    }

    @Test func `a key has a rate across queues, and what waits for it does not hold others up`()
        throws
    {
        var bench = SchedulerBench()
        bench.join(slots: 20)
        let key = KeySettings(name: "api", limit: 9, rate: StartRate(1, burst: 1))
        try bench.submit(operations(3, key: "api") + [.nothing("free")], keys: [key])
        #expect(bench.granted == ["0", "free"])
        let next = bench.now.monotonic + .seconds(1)
        #expect(bench.explain("1") == [.keyRate("api", StartRate(1, burst: 1), next)])

        // An end gives a key back, and no token.
        bench.finish("0")
        #expect(bench.granted.count == 2)
        bench.advance(by: .seconds(1))
        #expect(bench.granted == ["0", "free", "1"])
        bench.advance(by: .seconds(1))
        #expect(bench.granted == ["0", "free", "1", "2"])
    }

    @Test func `a restart gives no tokens back, however the wall clock was set`() throws {
        for step in [Duration.zero, .seconds(-100), .seconds(100)] {
            var life = RestartBench()
            life.bench.join(slots: 20)
            let rate = StartRate(1, per: .seconds(2), burst: 1)
            try life.bench.submit(operations(3), queues: queue(rate))
            #expect(life.bench.granted == ["0"])
            life.bench.advance(by: .seconds(1))
            life.bench.now.wall = life.bench.now.wall + step
            life.bench.drive(.timeReached)
            let difference = try life.restart()
            #expect(difference == nil)
            life.bench.drive(.transportUp)
            life.bench.hello(from: 0, connection: 2, held: life.bench.workers[0].held)
            #expect(life.bench.granted.isEmpty)
            life.bench.advance(by: .seconds(1))
            #expect(life.bench.granted.count == 1)
        }
    }

    @Test func `a command sets and removes a rate, and later graphs do not change it`() throws {
        var bench = SchedulerBench()
        bench.join(slots: 20)
        try bench.request(.queueRateSet(queue: "default", StartRate(1, burst: 1)))
        try bench.submit(operations(3), queues: queue(StartRate(1_000, burst: 1_000)))
        #expect(bench.granted == ["0"])
        try bench.request(.queueRateSet(queue: "default", nil))
        #expect(bench.granted == ["0", "1", "2"])

        #expect(throws: Refusal.self) {
            try bench.request(.queueRateSet(queue: "default", StartRate(0, burst: 1)))
        }
    }

    @Test(arguments: UInt64(0)..<30)
    func `no stretch of time has more starts than a burst and what came back`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var bench = SchedulerBench()
        // Invariants would take most of the time, and the simulator checks them with rates, too.
        bench.checksInvariants = false
        bench.join(slots: 2_000)
        let rate = StartRate(
            1 + Int(random.next() % 50),
            per: .milliseconds(1 + Int64(random.next() % 5_000)),
            burst: 1 + Int(random.next() % 5)
        )
        try bench.submit(operations(300), queues: queue(rate))
        var starts: [Timestamp] = []
        func note(_ bench: inout SchedulerBench) {
            starts += Array(repeating: bench.now.monotonic, count: bench.granted.count)
            bench.drain()
        }
        note(&bench)
        for _ in 0..<200 {
            bench.advance(by: .microseconds(Int64(random.next() % 400_000)))
            note(&bench)
        }
        let interval = Double(rate.period.nanoseconds) / Double(rate.count)
        for first in starts.indices {
            for last in first..<starts.endIndex {
                let time = Double((starts[last] - starts[first]).nanoseconds)
                let allowed = Double(rate.burst) + time / interval
                #expect(Double(last - first + 1) <= allowed + 1e-6)
                guard Double(last - first + 1) <= allowed + 1e-6 else { return }
            }
        }
        #expect(starts.count > 1)
    }
}

/// Rates as people write them.
struct StartRateTests {
    @Test(
        arguments: [
            ("10/s", 10, 1_000), ("100/m", 100, 60_000), ("5/30s", 5, 30_000),
            ("1/2h", 1, 7_200_000),
            ("1000/ms", 1_000, 1), ("7/1d", 7, 86_400_000),
        ] as [(String, Int, Int64)]
    )
    func `a rate is a number of starts and a period`(text: String, count: Int, period: Int64) {
        let rate = StartRate(text)
        #expect(rate?.count == count)
        #expect(rate?.period == .milliseconds(period))
        #expect(rate.flatMap { StartRate($0.text) } == rate)
    }

    @Test(arguments: [
        "", "10", "/s", "10/", "10/x", "-1/s", "1.5/s", "10/0s", "10/s/s", "٣/s", " 1/s",
        "99999999999999999999/s", "1/9223372036854775807d",
    ])
    func `anything else is none`(text: String) {
        #expect(StartRate(text) == nil)
    }

    @Test func `a burst is a tenth of a second's starts, and at least one`() {
        #expect(StartRate("10/s")?.burst == 1)
        #expect(StartRate("1000/s")?.burst == 100)
        #expect(StartRate("1/h")?.burst == 1)
        #expect(StartRate(.max).burst == 100_000)
    }

    @Test(arguments: [
        StartRate(0), StartRate(1_000_001), StartRate(1, per: .nanoseconds(1)),
        StartRate(1, per: .seconds(366 * 86_400)), StartRate(1, burst: 0),
        StartRate(1, per: .seconds(86_400), burst: 1_000_000), StartRate(-1),
        StartRate(3, per: .microseconds(1_500)),
    ])
    func `a rate out of bounds is refused`(rate: StartRate) {
        #expect(throws: Refusal.self) { try rate.check("rate") }
    }
}
