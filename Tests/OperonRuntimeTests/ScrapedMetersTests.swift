import OperonCore
import OperonModel
import OperonPorts
import OperonRuntime
import OperonTestKit
import Testing

@Suite(.timeLimit(.minutes(5))) struct ScrapedMetersTests {
    @Test func `of many queues those with the most are listed, and the others added up`()
        async throws
    {
        let store = InMemoryStore(reign: Reign(rawValue: 5))
        try await ManualCluster.run(store, isConnected: false) { cluster in
            let wait = Work.wait(.seconds(3_600))
            var operations: [OperationDescription] = []
            for number in 0..<1_200 {
                // The last hundred have two each.
                for copy in 0..<(number < 1_100 ? 1 : 2) {
                    var operation = OperationDescription(name: "o\(number)-\(copy)", work: wait)
                    operation.queue = "q\(number)"
                    operations.append(operation)
                }
            }
            let graph = GraphDescription(name: "wide", operations: operations)
            _ = try await cluster.client.submit(Submission(graph: graph))

            let families = await cluster.service.refreshMeters().families
            #expect(
                families.prefix(4).map(\.label) == [
                    "operon_queue_ready", "operon_queue_in_flight", "operon_other_queues_ready",
                    "operon_other_queues_in_flight",
                ]
            )
            #expect(families[0].values.count == ScrapedMeters.listedMax)
            #expect(families[1].values.count == ScrapedMeters.listedMax)
            #expect(families[0].values[0].dimensions.map(\.1) == ["q1100"])
            #expect(families[0].values[0].value == 2)
            let listed = families[0].values.reduce(0) { $0 + $1.value }
            let others = families[2].values.reduce(0) { $0 + $1.value }
            #expect(listed == 1_100)
            #expect(listed + others == 1_300)
        }
    }

    @Test func `different demands have different series, and long ones are added up`()
        async throws
    {
        let requirements: [[WorkerRequirement]] = [
            [.equals("a", "b,c")], [WorkerRequirement("a", .oneOf(["b", "c"]))],
            [WorkerRequirement("a", .oneOf(["(b", "c)"]))], [.equals("a", "b\"")],
            [.equals("a", "b\\\"")], [WorkerRequirement("a", .exists(true))],
            [WorkerRequirement("a", .exists(false))], [WorkerRequirement("a", .noneOf(["b"]))],
            [.equals("a", "b"), WorkerRequirement("c", .exists(true))],
            [.equals("a", "b,c exists")],
            // Two that are too long to be a label of a series.
            [.equals("a", String(repeating: "v", count: 250)), .equals("b", long)],
            [.equals("a", String(repeating: "v", count: 250)), .equals("c", long)],
        ]
        try await ManualCluster.run(nil, isConnected: false) { cluster in
            let operations = requirements.enumerated().map { number, requirements in
                var operation = OperationDescription(name: "o\(number)", work: .nothing)
                operation.workers = requirements
                operation.resources = [ResourceAmount(name: "a", amount: 1)]
                return operation
            }
            let graph = GraphDescription(name: "many", operations: operations)
            _ = try await cluster.client.submit(Submission(graph: graph))

            let families = await cluster.service.refreshMeters().families
            let ready = try #require(families.first { $0.label == "operon_demand_ready" })
            let used = ready.values.filter { $0.value > 0 }.map { $0.dimensions.map(\.1) }
            #expect(used.count == requirements.count - 2)
            #expect(Set(used).count == used.count)
            #expect(used.contains(["a=1", "a in (b,c)", "false"]))
            #expect(used.contains(["a=1", "a=\"b,c\"", "false"]))
            let others = families.first { $0.label == "operon_other_demands_ready" }
            #expect(others?.values.first?.value == 2)
        }
    }

    @Test func `demands that differ only in whether they are enforced have series of their own`()
        async throws
    {
        let command = Work.command(CommandDescription(arguments: ["x"]))
        try await ManualCluster.run(nil, isConnected: false) { cluster in
            let operations = (0..<8).map { number in
                var operation = OperationDescription(name: "o\(number)", work: command)
                operation.resources = [.cpus(2)]
                operation.enforcesResources = number < 3
                return operation
            }
            let graph = GraphDescription(name: "both", operations: operations)
            _ = try await cluster.client.submit(Submission(graph: graph))

            let families = await cluster.service.refreshMeters().families
            let ready = families.first { $0.label == "operon_demand_ready" }?.values ?? []
            let lines = ready.filter { $0.value > 0 }.map { series in
                let labels = series.dimensions.map { "\($0.0)=\($0.1)" }
                return "\(labels.joined(separator: ";")) \(series.value)"
            }
            #expect(
                lines == [
                    "resources=cpus=2;workers=;enforce=false 5.0",
                    "resources=cpus=2;workers=;enforce=true 3.0",
                ]
            )
            let demands = try await cluster.client.status().demands ?? []
            let areEnforced = demands.map { $0.enforce == true }
            #expect(areEnforced == [false, true])
        }
    }

    private let long = String(repeating: "w", count: 256)

    @Test func `of many resources those that most workers offer are listed`() {
        let resources = (0..<150).map { number in
            Scheduler.ResourceStatus(
                name: "r\(number)",
                workers: number < 140 ? 1 : 2,
                offered: 4,
                left: 3
            )
        }
        let cpus = Scheduler.ResourceStatus(name: "cpus", workers: 3, offered: 2_500, left: 500)
        let families = ScrapedMeters(queues: [], demands: [], resources: resources + [cpus])
            .families.suffix(3)

        #expect(
            families.map(\.label) == [
                "operon_resource_offered", "operon_resource_free", "operon_other_resources",
            ]
        )
        let offered = families.first?.values ?? []
        #expect(offered.count == ScrapedMeters.resourcesMax)
        #expect(offered.first?.dimensions.map(\.1) == ["cpus"])
        #expect(offered.first?.value == 2.5)
        #expect(offered[1...10].allSatisfy { $0.dimensions[0].1.hasPrefix("r14") })
        #expect(families.last?.values.first?.value == 51)
    }
}
