import OperonCore
import OperonModel
import OperonTestKit
import Testing

/// Operations that no worker known now could ever run.
struct UnrunnableTests {
    private func offer(_ resources: ResourceAmounts, _ labels: [WorkerLabel] = []) -> WorkerOffer {
        WorkerOffer(resources: resources, labels: labels)
    }

    private func names(_ bench: SchedulerBench, _ found: Scheduler.Unrunnable) -> [String] {
        found.operations.map { bench.name($0) }
    }

    @Test func `what no worker could run is told once for each thing that is missing`() throws {
        var bench = SchedulerBench(ResourceTests.patient)
        bench.join(slots: 4, kinds: ["command"], offer: offer([.gpus(8)]))
        bench.join(slots: 4, queues: ["default"], kinds: ["nothing"], offer: offer([.gpus(2)]))
        var operations: [OperationDescription] = [.nothing("fits") { $0.resources = [.gpus(2)] }]
        for number in 0..<5 {
            // Only the worker that does not know the kind offers as many.
            operations.append(.nothing("large\(number)") { $0.resources = [.gpus(3)] })
            // Another policy, for the same reason.
            operations.append(
                .nothing("late\(number)", after: ["fits"]) {
                    $0.resources = [.gpus(3)]
                    $0.expectedDuration = .seconds(number + 1)
                }
            )
        }
        operations.append(.nothing("elsewhere") { $0.queue = "second" })
        operations.append(
            OperationDescription(name: "strange", work: .registered(kind: "x", input: .empty))
        )
        operations.append(OperationDescription(name: "by hand", work: .external(input: .empty)))
        let graph = try bench.submit(operations)

        let found = bench.scheduler.unrunnable(in: graph)
        #expect(
            found.map(\.missing) == [
                .demand(ResourceDemand(resources: [.gpus(3)])), .queue("second"), .kind("x"),
            ]
        )
        #expect(
            found.map { names(bench, $0) } == [
                ["large0", "late0", "large1"], ["elsewhere"], ["strange"],
            ]
        )
        #expect(found.map(\.more) == [7, 0, 0])
        // Only what comes from there on.
        let rest = bench.scheduler.unrunnable(in: graph, from: bench.id("late4").index)
        #expect(rest.map { names(bench, $0) } == [["late4"], ["elsewhere"], ["strange"]])

        // Somebody cancels one; a worker comes for the others.
        bench.cancel("strange")
        bench.join(slots: 1, offer: offer([.gpus(4)]))
        #expect(bench.scheduler.unrunnable(in: graph).isEmpty)
    }

    @Test func `it is what explain says of each operation, in any cluster`() throws {
        var random = SeededGenerator(seed: 11)
        for _ in 0..<40 {
            var bench = SchedulerBench(ResourceTests.patient)
            for _ in 0..<Int.random(in: 0...3, using: &random) {
                bench.join(
                    slots: 1,
                    queues: Bool.random(using: &random) ? [] : ["default"],
                    kinds: Bool.random(using: &random) ? ["nothing"] : ["a", "nothing"],
                    offer: offer(
                        [.gpus(Int.random(in: 1...3, using: &random))],
                        [WorkerLabel("zone", Bool.random(using: &random) ? "a" : "b")]
                    )
                )
            }
            let operations = (0..<30).map { number in
                var operation = OperationDescription(name: "o\(number)", work: .nothing)
                if Int.random(in: 0..<4, using: &random) == 0 {
                    operation.work = .registered(kind: "a", input: .empty)
                }
                if Bool.random(using: &random) { operation.queue = "second" }
                if Bool.random(using: &random) {
                    operation.resources = [.gpus(Int.random(in: 1...4, using: &random))]
                }
                if Bool.random(using: &random) { operation.workers = [.equals("zone", "a")] }
                return operation
            }
            let graph = try bench.submit(operations)

            let found = bench.scheduler.unrunnable(in: graph)
            var told: [Scheduler.Reason: Int] = [:]
            for one in found {
                told[Scheduler.Reason(one.missing)] = one.operations.count + one.more
            }
            var explained: [Scheduler.Reason: Int] = [:]
            for operation in operations {
                for reason in bench.explain(operation.name) {
                    switch reason.kind {
                    case .noWorkerForKind, .noWorkerForQueue, .noWorkerForDemand:
                        explained[reason, default: 0] += 1
                    case _: continue
                    }
                }
            }
            #expect(told == explained)
        }
    }
}
