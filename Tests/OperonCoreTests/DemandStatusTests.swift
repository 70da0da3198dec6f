import OperonCore
import OperonModel
import OperonTestKit
import Testing

/// What clients can see of demand classes and of the resources of all workers.
struct DemandStatusTests {
    private func needing(
        _ name: String,
        _ resources: ResourceAmounts,
        _ workers: [WorkerRequirement] = []
    ) -> OperationDescription {
        .nothing(name) {
            $0.resources = resources
            $0.workers = workers
        }
    }

    /// Classes with any operation: the resources, what is ready, what is in flight.
    private func counts(_ bench: SchedulerBench) -> [String: [Int]] {
        var counts: [String: [Int]] = [:]
        for status in bench.scheduler.demandStatus where status.ready + status.inFlight > 0 {
            counts[status.demand.text] = [status.ready, status.inFlight]
        }
        return counts
    }

    @Test func `the backlog is counted by what operations ask for, in all queues`() throws {
        var bench = SchedulerBench(ResourceTests.patient)
        bench.join(slots: 8, offer: WorkerOffer(resources: [.gpus(2)]))
        let gpu: ResourceAmounts = [.gpus(1)]
        try bench.submit(
            [
                needing("a", gpu), needing("b", gpu), needing("c", gpu), needing("d", gpu),
                .nothing("other queue") {
                    $0.resources = gpu
                    $0.queue = "second"
                },
                needing("nowhere", [], [.equals("region", "eu")]),
                OperationDescription(name: "external", work: .external(input: .empty)),
            ],
            queues: [QueueSettings(name: "second", maxConcurrentOperationCount: 0)]
        )
        #expect(counts(bench) == ["gpus 1": [3, 2], "“region” must be “eu”": [1, 0]])

        // What leaves a lane is counted out, whether it starts, is set aside or has ended.
        bench.finish("a")
        #expect(counts(bench)["gpus 1"] == [2, 2])
        bench.cancel("d")
        #expect(counts(bench)["gpus 1"] == [1, 2])
        bench.finish("b")
        bench.finish("c")
        #expect(counts(bench)["gpus 1"] == [1, 0])
    }

    @Test func `of what waits it is told how much no worker could run, and what is missing`()
        throws
    {
        var bench = SchedulerBench(ResourceTests.patient)
        bench.join(slots: 1, queues: ["default"], offer: WorkerOffer(resources: [.gpus(2)]))
        var operations = (0..<3).map { needing("one\($0)", [.gpus(1)]) }
        operations += (0..<2).map { needing("four\($0)", [.gpus(4)]) }
        operations += [
            .nothing("elsewhere") {
                $0.resources = [.gpus(1)]
                $0.queue = "second"
            },
            OperationDescription(name: "strange", work: .registered(kind: "x", input: .empty)),
            .nothing("plain"),
        ]
        try bench.submit(operations)

        let waiting = bench.scheduler.waitingDemands
        let four = ResourceDemand(resources: [.gpus(4)])
        #expect(waiting.map(\.demand.text) == ["", "gpus 1", "gpus 4"])
        #expect(waiting.map(\.ready) == [2, 3, 2])
        #expect(waiting.map(\.inFlight) == [0, 1, 0])
        #expect(waiting.map(\.unrunnable) == [1, 1, 2])
        #expect(waiting.map(\.missing) == [.kind("x"), .queue("second"), .demand(four)])
        let offers = bench.scheduler.serving(waiting[2])
        #expect(four.lacking(nearestOf: offers) == "gpus: 4 needed, 2 offered")
    }

    @Test func `what all workers offer and have left is added up, without those that drain`()
        throws
    {
        var bench = SchedulerBench(ResourceTests.patient)
        bench.join(
            slots: 4,
            offer: WorkerOffer(resources: [.cpus(4), ResourceAmount(name: "licences", amount: 3)])
        )
        bench.join(slots: 4, offer: WorkerOffer(resources: [.cpus(2), .gpus(1)]))
        let draining = bench.join(slots: 4, offer: WorkerOffer(resources: [.gpus(8)]))
        try bench.request(.drainRequested(bench.workers[draining].identity.incarnation))
        try bench.submit([needing("a", [.cpus(1.5)]), needing("b", [.gpus(1)])])

        let status = bench.scheduler.resourceStatus
        #expect(status.map(\.name) == ["cpus", "gpus", "licences"])
        #expect(status.map(\.offered) == [6_000, 1, 3])
        #expect(status.map(\.left) == [4_500, 0, 3])
        #expect(status.map(\.workers) == [2, 1, 1])
    }
}
