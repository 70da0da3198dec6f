import OperonCore
import OperonModel
import OperonTestKit
import Testing

/// The wall clock is set while something waits for a time. Dates follow it; pauses, leases and
/// timeouts that began in this life do not.
struct ClockTests {
    enum Wait: CaseIterable {
        case notBefore
        case deadline
        case queueSuspension
        case graphSuspension
        case operationSuspension
    }

    /// “a” waits for a date, and would run otherwise.
    private func bench(_ wait: Wait, until date: WallTime) throws -> SchedulerBench {
        var bench = SchedulerBench()
        bench.join()
        let suspension = Suspension(until: date)
        switch wait {
        case .notBefore:
            try bench.submit([.nothing("a") { $0.notBefore = date }])
        case .deadline:
            bench.suspend(.queue("default"))
            try bench.submit([.nothing("a") { $0.deadline = date }])
        case .queueSuspension:
            bench.suspend(.queue("default"), suspension)
            try bench.submit([.nothing("a")])
        case .graphSuspension, .operationSuspension:
            bench.suspend(.queue("default"))
            let graph = try bench.submit([.nothing("a")])
            let operation = Target.operation(bench.id("a"))
            bench.suspend(wait == .graphSuspension ? .graph(graph) : operation, suspension)
            bench.resume(.queue("default"))
        }
        #expect(bench.state("a") == .ready)
        return bench
    }

    private func isOver(_ wait: Wait, _ bench: SchedulerBench) -> Bool {
        switch wait {
        case .deadline: bench.outcome("a") == .failed(.deadline)
        case .notBefore, .queueSuspension, .graphSuspension, .operationSuspension:
            bench.state("a") == .dispatched
        }
    }

    @Test(arguments: Wait.allCases)
    func `a date that the wall clock is set beyond has come`(_ wait: Wait) throws {
        let date = SchedulerBench().now.wall + .seconds(8 * 3_600)
        var bench = try bench(wait, until: date)
        #expect(bench.effects.nextDate == date)

        bench.now.wall = date + .nanoseconds(-1)
        bench.drive(.timeReached)
        #expect(!isOver(wait, bench))
        bench.now.wall = date
        bench.drive(.timeReached)
        #expect(isOver(wait, bench))
        #expect(bench.effects.nextDate == nil)
    }

    @Test(arguments: Wait.allCases)
    func `a date that the wall clock is set away from has not come`(_ wait: Wait) throws {
        let date = SchedulerBench().now.wall + .seconds(3)
        var bench = try bench(wait, until: date)
        bench.now.wall = date + .seconds(-3_600)

        bench.advance(by: .seconds(3))
        bench.beat(from: 0)
        #expect(!isOver(wait, bench))
        #expect(bench.effects.nextDate == date)
        bench.now.wall = date
        bench.drive(.timeReached)
        #expect(isOver(wait, bench))
    }

    @Test(arguments: [Duration.seconds(8 * 3_600), .seconds(-8 * 3_600)])
    func `a pause of this life is neither cut short nor prolonged by the wall clock`(
        _ step: Duration
    ) throws {
        var bench = SchedulerBench()
        bench.join()
        let retry = RetryPolicy(limit: 1, delay: .seconds(4), jitter: 0)
        try bench.submit([.nothing("a") { $0.retry = retry }])
        bench.finish("a", .failed(.timeout))
        bench.now.wall = bench.now.wall + step

        bench.advance(by: .seconds(4) - .nanoseconds(1))
        bench.beat(from: 0)
        #expect(bench.state("a") == .ready)
        bench.advance(by: .nanoseconds(1))
        #expect(bench.state("a") == .dispatched)
    }

    @Test func `a delay and a date are both waited for`() throws {
        var bench = SchedulerBench()
        bench.join()
        let date = bench.now.wall + .seconds(3_600)
        try bench.submit([
            .nothing("a") {
                $0.delay = .seconds(2)
                $0.notBefore = date
            }
        ])
        #expect(bench.explain("a") == [.notBefore(.date(date))])
        bench.now.wall = date
        bench.drive(.timeReached)
        #expect(bench.state("a") == .ready)
        bench.advance(by: .seconds(2))
        #expect(bench.state("a") == .dispatched)
    }

    @Test func `a date that has come stays so, though the clock is set back during a delay`()
        throws
    {
        var bench = SchedulerBench()
        bench.join()
        let date = bench.now.wall + .seconds(1)
        try bench.submit([
            .nothing("a") {
                $0.delay = .seconds(2)
                $0.notBefore = date
            }
        ])
        bench.advance(by: .seconds(1))
        #expect(bench.explain("a") == [.notBefore(.time(bench.now.monotonic + .seconds(1)))])
        bench.now.wall = date + .seconds(-3_600)
        bench.advance(by: .seconds(1))
        #expect(bench.state("a") == .dispatched)
    }

    @Test(arguments: [Duration.seconds(3_600), .seconds(-3_600)])
    func `an open graph is closed for want of work by the monotonic clock`(
        _ step: Duration
    ) throws {
        var bench = SchedulerBench()
        let graph = try bench.submit([], open: true)
        let idle = bench.scheduler.configuration.limits.openGraphIdle
        bench.now.wall = bench.now.wall + step
        bench.advance(by: idle - .nanoseconds(1))
        #expect(!bench.scheduler.isFinished(graph))
        bench.advance(by: .nanoseconds(1))
        #expect(bench.scheduler.isFinished(graph))
    }

    @Test func `nobody watches the calendar for a date that nothing waits for`() throws {
        var bench = SchedulerBench()
        bench.join()
        let date = bench.now.wall + .seconds(3_600)
        try bench.submit([.nothing("a") { $0.deadline = date }])
        bench.suspend(.queue("other"), Suspension(until: date))
        #expect(bench.effects.nextDate == date)
        bench.finish("a")
        bench.resume(.queue("other"))
        #expect(bench.effects.nextDate == nil)
    }

    // MARK: - After a death

    /// Operations of a kind of its own may ask for any pause.
    private func paused(_ kind: String?, for pause: Duration) throws -> RestartBench {
        var coordinator = RestartBench()
        coordinator.bench.join(kinds: Work.builtInKinds + ["Look"])
        let work = kind.map { Work.registered(kind: $0, input: .empty) } ?? .nothing
        var operation = OperationDescription(name: "a", work: work)
        operation.retry = RetryPolicy(limit: 1, delay: pause, jitter: 0)
        try coordinator.bench.submit([operation])
        coordinator.bench.start("a")
        coordinator.bench.finish("a", kind == nil ? .failed(.timeout) : .notYet(after: pause))
        return coordinator
    }

    private func restart(_ coordinator: inout RestartBench, at date: WallTime) throws {
        coordinator.bench.now.wall = date
        #expect(try coordinator.restart() == nil)
        coordinator.bench.drive(.transportUp)
        coordinator.bench.hello(from: 0)
    }

    private let beforeTimeService = WallTime(nanosecondsSince1970: 60_000_000_000)

    @Test func `a pause that is restored before the clock is set ends when it is set`() throws {
        var coordinator = try paused("Look", for: .seconds(1))
        let now = coordinator.bench.now.wall
        try restart(&coordinator, at: beforeTimeService)
        coordinator.bench.advance(by: .seconds(2))
        #expect(coordinator.bench.state("a") == .ready)
        #expect(coordinator.bench.effects.nextDate == now + .seconds(1))

        coordinator.bench.now.wall = now + .seconds(5)
        coordinator.bench.drive(.timeReached)
        #expect(coordinator.bench.state("a") == .dispatched)
    }

    @Test func `a pause whose length is known is over after it, wherever the clock stands`() throws
    {
        var coordinator = try paused(nil, for: .seconds(3))
        try restart(&coordinator, at: beforeTimeService)
        coordinator.bench.advance(by: .seconds(3) - .nanoseconds(1))
        #expect(coordinator.bench.state("a") == .ready)
        coordinator.bench.advance(by: .nanoseconds(1))
        #expect(coordinator.bench.state("a") == .dispatched)
    }

    @Test(arguments: [Duration.seconds(8 * 3_600), .seconds(-8 * 3_600)])
    func `the records of a pause follow the wall clock`(_ step: Duration) throws {
        var coordinator = try paused("Look", for: .seconds(60))
        coordinator.bench.advance(by: .seconds(3))
        try coordinator.keep()
        coordinator.bench.now.wall = coordinator.bench.now.wall + step
        coordinator.bench.beat(from: 0)
        let end = coordinator.bench.now.wall + .seconds(57)
        #expect(
            coordinator.bench.effects.records == [.delayed(coordinator.bench.id("a"), until: end)]
        )

        try restart(&coordinator, at: coordinator.bench.now.wall)
        for _ in 0..<28 {
            coordinator.bench.advance(by: .seconds(2))
            coordinator.bench.beat(from: 0)
        }
        #expect(coordinator.bench.state("a") == .ready)
        coordinator.bench.advance(by: .seconds(1))
        #expect(coordinator.bench.state("a") == .dispatched)
    }

    @Test func `clocks that drift by less than a second change no record`() throws {
        var coordinator = try paused("Look", for: .seconds(60))
        try coordinator.keep()
        coordinator.bench.now.wall = coordinator.bench.now.wall + .milliseconds(999)
        coordinator.bench.beat(from: 0)
        #expect(coordinator.bench.effects.records.isEmpty)
        coordinator.bench.now.wall = coordinator.bench.now.wall + .milliseconds(1)
        coordinator.bench.beat(from: 0)
        #expect(coordinator.bench.effects.records.count == 1)
    }

    @Test func `a timeout that is restored before the clock is set is no longer than it was`()
        throws
    {
        var coordinator = RestartBench()
        var operation = OperationDescription(name: "a", work: .external(input: .empty))
        operation.timeout = .seconds(60)
        try coordinator.bench.submit([operation])
        let start = coordinator.bench.now.wall
        coordinator.bench.now.wall = beforeTimeService
        #expect(try coordinator.restart() == nil)

        coordinator.bench.advance(by: .seconds(59))
        #expect(coordinator.bench.state("a") == .executing)
        var stepped = coordinator
        stepped.bench.now.wall = start + .seconds(60)
        stepped.bench.drive(.timeReached)
        #expect(stepped.bench.outcome("a") == .failed(.timeout))
        coordinator.bench.advance(by: .seconds(1))
        #expect(coordinator.bench.outcome("a") == .failed(.timeout))
    }
}
