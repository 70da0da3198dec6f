import ClusterKit
import Operon
import OperonCore
import OperonModel
import OperonPorts
import OperonRuntime
import Synchronization
import Testing

/// Operations in code that ask for resources and labels, and workers in code that offer them.
@Suite(.timeLimit(.minutes(5))) struct ResourceTests {
    private static let licence = ResourceAmount(name: "licences", amount: 1)

    /// How many run at once.
    private static let running = Mutex((now: 0, most: 0))

    private struct Licensed: Operon.Operation {
        static let kind = "Licensed"

        var options: OperationOptions {
            var options = OperationOptions()
            options.resources = [ResourceTests.licence]
            return options
        }

        func main(_ context: OperationContext) async throws -> Int {
            ResourceTests.running.withLock { running in
                running.now += 1
                running.most = max(running.most, running.now)
            }
            for _ in 0..<100 { await Task.yield() }
            ResourceTests.running.withLock { $0.now -= 1 }
            return context.resources["licences"] ?? 0
        }
    }

    /// Returns its graphics processors.
    private struct Draw: Operon.Operation {
        static let kind = "Draw"

        func main(_ context: OperationContext) async throws -> [String] { context.gpus }
    }

    @Test func `a worker that offers too much is refused before it connects`() async throws {
        func refusal(_ resources: ResourceAmounts, _ labels: [String: String]) async -> String? {
            let error = await #expect(throws: OperonError.self) {
                try await Worker(broker: "amqp://h", resources: resources, labels: labels).run()
            }
            #expect(error?.code == .invalid)
            return error?.message
        }
        var (resources, labels): (ResourceAmounts, [String: String]) = ([], [:])
        for number in 1...15 { resources["a\(number)"] = 1 }
        for number in 1...62 { labels["a\(number)"] = "b" }

        #expect(
            await refusal(resources, [:])
                == "resources of an operation or a worker: 17 is over the limit of 16, counting "
                + "the machine's own cpus, memory and gpus"
        )
        #expect(
            await refusal([], labels)
                == "labels of a worker, or requirements of an operation: 66 is over the limit of "
                + "64, counting arch, host, name and os"
        )
        #expect(
            await refusal([.gpus(1 << 50)], [:]) == "resources of the worker: gpus is over 4096"
        )
    }

    @Test func `no more run at once than there is of what they ask for`() async throws {
        let cluster = Cluster.inProcess(
            slots: 4,
            resources: [ResourceAmount(name: "licences", amount: 2)]
        )
        let queue = OperationQueue(cluster: cluster)
        let handles = try await queue.addOperations((0..<40).map { _ in Licensed() })
        for handle in handles { #expect(try await handle.value == 1) }

        #expect(Self.running.withLock { $0.most } <= 2)
        await cluster.close()
    }

    @Test func `an operation learns which graphics processors are its own`() async throws {
        let cluster = Cluster.inProcess(slots: 4, resources: [.gpus(2)], labels: ["zone": "a"])
        let queue = OperationQueue(cluster: cluster)
        let options = OperationOptions(
            resources: [.gpus(2)],
            workers: [.equals("zone", "a"), WorkerRequirement("os", .exists(true))]
        )
        let both = try await queue.addOperation(Draw(), options: options)
        let none = try await queue.addOperation(Draw())

        #expect(Set(try await both.value).count == 2)
        #expect(try await none.value == [])
        await cluster.close()
    }

    @Test func `what this process could never run is refused when it is added`() async throws {
        let cluster = Cluster.inProcess(slots: 1, resources: [Self.licence])
        let queue = OperationQueue(cluster: cluster)
        let much = OperationOptions(
            name: "greedy",
            resources: [ResourceAmount(name: "licences", amount: 2)]
        )
        let refusal = Refusal.invalid(
            field: "resources or workers of “greedy”",
            why: "this process can never run it: licences: 2 needed, 1 offered"
        )
        await #expect(throws: refusal) { try await queue.addOperation(Draw(), options: much) }
        let elsewhere = OperationOptions(name: "far", workers: [.equals("zone", "b")])
        await #expect(throws: Refusal.self) {
            try await queue.addOperation(Draw(), options: elsewhere)
        }

        // A whole graph, and what a running operation adds.
        var operation = OperationDescription(name: "greedy", work: .nothing)
        operation.resources = much.resources
        let graph = GraphDescription(name: "g", operations: [operation])
        await #expect(throws: refusal) { try await cluster.submit(graph) }
        // No control group holds a command to its processors here.
        var held = OperationDescription(
            name: "held",
            work: .command(CommandDescription(arguments: ["true"]))
        )
        held.resources = [.cpus(0.001)]
        held.enforcesResources = true
        let unheld = Refusal.invalid(
            field: "resources or workers of “held”",
            why: "this process can never run it: enforce needs a worker that was started with "
                + "--control-group"
        )
        await #expect(throws: unheld) {
            try await cluster.submit(GraphDescription(name: "h", operations: [held]))
        }
        let outer = try await queue.addOperation(Adding(amount: 2))
        #expect(try await outer.value == "\(refusal)")
        // It can run the next one.
        #expect(try await queue.addOperation(Adding(amount: 1)).value == "")
        await cluster.close()
    }

    /// Adds an operation that asks for licences; returns why that was refused.
    private struct Adding: Operon.Operation {
        static let kind = "Adding"
        var amount: Int

        func main(_ context: OperationContext) async throws -> String {
            var options = OperationOptions()
            options.resources = [ResourceAmount(name: "licences", amount: amount)]
            do {
                try await context.addOperation(Draw(), named: "greedy", options: options)
                return ""
            } catch let refusal as Refusal {
                return "\(refusal)"
            }
        }
    }

    @Test func `an offer out of bounds is refused when the cluster starts`() async throws {
        let wrong = [
            Cluster.inProcess(resources: [ResourceAmount(name: "a b", amount: 1)]),
            Cluster.inProcess(resources: [.gpus(0)]),
            Cluster.inProcess(labels: ["zone": ""]),
        ]
        for cluster in wrong {
            let error = await #expect(throws: OperonError.self) { try await cluster.connect() }
            #expect(error?.code == .invalid)
        }
    }

    @Test func `a program that submits to a cluster is told what no worker there could run`()
        async throws
    {
        let log = Recorder<[String]>([])
        try await TestCluster.run { coordinator in
            try await coordinator.join(
                "worker",
                slots: 1,
                kinds: [Draw.kind],
                offer: WorkerOffer(resources: [.gpus(1)])
            )
            try await RemoteCluster.serve(coordinator.client) { url in
                let cluster = Cluster.remote(url, logger: log.logger)
                var operation = OperationDescription(name: "a", work: .nothing)
                operation.resources = [.gpus(2)]
                let submitted = try await cluster.submit(
                    GraphDescription(name: "g", operations: [operation])
                )
                let warning = try #require(submitted.warnings.first)
                #expect(submitted.warnings.count == 1)
                #expect(warning.code == "noWorkerForResources")
                #expect(warning.message.contains("“a”: gpus: 2 needed, 1 offered"))
                #expect(warning.operations == [OperationID(graph: submitted.id, index: 0)])

                // What is added one by one is logged, once for each thing that is missing.
                let queue = OperationQueue(cluster: cluster)
                let options = OperationOptions(resources: [.gpus(2)])
                for _ in 0..<3 { try await queue.addOperation(Draw(), options: options) }
                try await queue.addOperation(
                    Draw(),
                    options: OperationOptions(workers: [.equals("zone", "a")])
                )
                await cluster.close(within: .zero)
            }
        }
        let line = "operations wait for a worker"
        #expect(log.current == [line, line])
    }

    @Test func `a child process finds its graphics processors in its environment`() {
        let given = Allocation(amounts: [.gpus(2)], gpus: ["3", "GPU-8f"])
        #expect(Allocation(given.amounts, told: given.variables).gpus == given.gpus)
        // Those of the machine are not its own.
        #expect(Allocation([.cpus(1)], told: ["CUDA_VISIBLE_DEVICES": "0"]).gpus == [])
    }
}
