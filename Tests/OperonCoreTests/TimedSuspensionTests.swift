import OperonCore
import OperonModel
import OperonTestKit
import Testing

struct TimedSuspensionTests {
    private func suspension(_ bench: SchedulerBench, seconds: Int) -> Suspension {
        Suspension(by: "anna", reason: "backup", until: bench.now.wall + .seconds(seconds))
    }

    @Test(arguments: SuspensionTests.Scope.allCases)
    func `who suspended it, why and until when is kept and told`(
        _ scope: SuspensionTests.Scope
    ) throws {
        var bench = SchedulerBench()
        try bench.submit([.nothing("a")])
        let target = SuspensionTests.target(scope, bench)
        let suspension = suspension(bench, seconds: 60)
        bench.suspend(target, suspension)

        #expect(bench.scheduler.suspension(of: target) == suspension)
        let reason: Scheduler.Reason =
            switch scope {
            case .operation: .operationSuspended(suspension)
            case .graph: .graphSuspended(suspension)
            case .queue: .queueSuspended("default", suspension)
            }
        #expect(bench.explain("a").contains(reason))
        #expect(bench.effects.records.last == .suspended(target, suspension))
    }

    @Test(arguments: SuspensionTests.Scope.allCases)
    func `a suspension ends by itself, by a record, when its time has come`(
        _ scope: SuspensionTests.Scope
    ) throws {
        var bench = SchedulerBench()
        try bench.submit([.nothing("a")])
        let target = SuspensionTests.target(scope, bench)
        bench.suspend(target, suspension(bench, seconds: 5))
        bench.join()
        bench.drain()

        bench.advance(by: .seconds(4))
        bench.beat(from: 0)
        #expect(bench.state("a") == .ready)
        bench.drain()
        bench.advance(by: .seconds(1))

        #expect(bench.state("a") == .dispatched)
        #expect(bench.drain().records.first == .suspended(target, nil))
        #expect(bench.scheduler.suspension(of: target) == nil)
    }

    @Test func `a clock that is set back does not bring a suspension back, nor end it early`()
        throws
    {
        var bench = SchedulerBench()
        try bench.submit([.nothing("a")])
        bench.suspend(.queue("default"), suspension(bench, seconds: 5))
        bench.now.wall = bench.now.wall + .seconds(-3)

        bench.advance(by: .seconds(5))
        #expect(bench.scheduler.suspension(of: .queue("default")) != nil)
        bench.advance(by: .seconds(3))
        #expect(bench.scheduler.suspension(of: .queue("default")) == nil)

        bench.now.wall = bench.now.wall + .seconds(-60)
        bench.advance(by: .seconds(1))
        #expect(bench.scheduler.suspension(of: .queue("default")) == nil)
    }

    @Test func `a later suspension replaces an earlier one with its time`() throws {
        var bench = SchedulerBench()
        try bench.submit([.nothing("a")])
        bench.suspend(.queue("default"), suspension(bench, seconds: 5))
        bench.suspend(.queue("default"), suspension(bench, seconds: 50))

        bench.advance(by: .seconds(10))
        #expect(bench.scheduler.suspension(of: .queue("default")) != nil)
        bench.advance(by: .seconds(40))
        #expect(bench.scheduler.suspension(of: .queue("default")) == nil)
    }

    @Test func `a time that has passed is refused`() throws {
        var bench = SchedulerBench()
        try bench.submit([.nothing("a")])
        bench.drain()
        let event = Scheduler.Event.suspensionRequested(
            .queue("default"),
            suspension(bench, seconds: 0)
        )

        #expect(throws: Refusal.self) { try bench.request(event) }
        #expect(bench.drain().records.isEmpty)
    }
}
