import OperonCore
import OperonModel
import OperonTestKit
import Testing

/// `inFlight`: how many operations of a group are dispatched or executing at once.
@Suite struct InFlightTests {
    private static func elements(
        _ count: Int,
        limit: Int = 2,
        group: String = "render",
        _ change: (inout OperationDescription) -> Void = { _ in }
    ) -> [OperationDescription] {
        (1...count).map { number in
            .nothing("\(group)[\(number)]") {
                $0.inFlight = InFlightLimit(group: group, limit: limit)
                change(&$0)
            }
        }
    }

    @Test func `no more elements are in flight than their group allows, on all workers`() throws {
        var bench = SchedulerBench()
        bench.join(slots: 4)
        bench.join(slots: 4)
        try bench.submit(Self.elements(4) + [.nothing("free")])

        #expect(bench.granted == ["render[1]", "render[2]", "free"])
        let held = [bench.id("render[1]"), bench.id("render[2]")]
        #expect(
            bench.explain("render[3]") == [.groupLimit("render", maximum: 2, held, more: 0)]
        )
        #expect(bench.scheduler.violatedExplanation() == nil)
        bench.finish("render[2]")
        #expect(bench.granted.last == "render[3]")
        bench.finish("render[1]")
        #expect(bench.granted.last == "render[4]")
    }

    @Test func `groups of the same name in two graphs have nothing in common, and are no keys`()
        throws
    {
        var bench = SchedulerBench()
        bench.join(slots: 8)
        try bench.submit(Self.elements(3))
        try bench.submit(Self.elements(3, limit: 1))

        #expect(bench.granted == ["render[1]", "render[2]", "render[1]"])
        #expect(bench.scheduler.keyStatus.isEmpty)
        #expect(!bench.scheduler.hasKey("\u{1}0/render"))
    }

    @Test func `an element gets no lease, unless it has a key as well`() throws {
        var bench = SchedulerBench()
        bench.join(slots: 8)
        try bench.submit(
            Self.elements(1) + Self.elements(1, group: "keyed") { $0.exclusive = ["k"] }
        )

        let grants = bench.effects.messages.flatMap { message -> [Scheduler.Grant] in
            if case .dispatch(_, let grants) = message.body { grants } else { [] }
        }
        #expect(grants.map { $0.held.operation.index } == [0, 1])
        #expect(grants.map { $0.exclusiveLease != nil } == [false, true])
    }

    @Test func `an element that waits for its next attempt leaves its place to another`() throws {
        var bench = SchedulerBench()
        bench.join(slots: 8)
        // Shorter than the silence after which a worker gets nothing.
        let pause = RetryPolicy(limit: 1, delay: .seconds(1), jitter: 0)
        try bench.submit(Self.elements(3, limit: 1) { $0.retry = pause })

        bench.finish("render[1]", .failed(.exit(code: 1)))
        #expect(bench.granted == ["render[1]", "render[2]"])
        bench.advance(by: .seconds(2))
        bench.finish("render[2]")
        // It comes back before those that never ran.
        #expect(bench.granted == ["render[1]", "render[2]", "render[1]"])
        bench.finish("render[1]")
        #expect(bench.granted.last == "render[3]")
    }

    @Test(arguments: [
        (["a": 2, "b": 3], "the group “render” has the limit 2 already"),
        (["a": 0], "0 is not from"),
    ])
    func `limits that contradict one another, and those out of range, are refused`(
        limits: [String: Int],
        why: String
    ) {
        let operations = limits.sorted { $0.key < $1.key }.map { name, limit in
            OperationDescription.nothing(name) {
                $0.inFlight = InFlightLimit(group: "render", limit: limit)
            }
        }
        do {
            _ = try CompiledGraph.compile(GraphDescription(name: "g", operations: operations))
            Issue.record("it was accepted")
        } catch {
            #expect("\(error)".contains(why), "\(error)")
        }
    }

    @Test func `a restarted coordinator counts what is in flight, and its graph says how many`()
        throws
    {
        var coordinator = RestartBench()
        coordinator.bench.join(slots: 4)
        try coordinator.bench.submit(Self.elements(4))
        #expect(coordinator.bench.granted == ["render[1]", "render[2]"])
        #expect(try coordinator.restart() == nil)

        coordinator.bench.drive(.transportUp)
        coordinator.bench.join(slots: 4)
        #expect(coordinator.bench.granted.isEmpty)
        let held = ["render[1]", "render[2]"].map { coordinator.bench.id($0) }
        #expect(
            coordinator.bench.explain("render[3]")
                == [.groupLimit("render", maximum: 2, held, more: 0)]
        )
        coordinator.bench.hello(from: 0, held: coordinator.bench.workers[0].held)
        coordinator.bench.finish("render[1]")
        #expect(coordinator.bench.granted == ["render[3]"])
    }

    @Test func `added elements have a limit of their own, or that of their group`() throws {
        var bench = SchedulerBench()
        bench.join(slots: 8)
        let graph = try bench.submit(Self.elements(1, limit: 1), open: true)
        try bench.add(
            [
                .nothing("x") { $0.inFlight = InFlightLimit(group: "render", limit: 1) },
                .nothing("y") { $0.inFlight = InFlightLimit(group: "other", limit: 1) },
            ],
            to: graph
        )

        #expect(bench.granted == ["render[1]", "y"])
        bench.finish("render[1]")
        #expect(bench.granted == ["render[1]", "y", "x"])
    }
}
