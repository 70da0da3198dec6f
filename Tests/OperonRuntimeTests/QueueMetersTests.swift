import OperonModel
import OperonPorts
import OperonRuntime
import OperonTestKit
import Testing

@Suite(.timeLimit(.minutes(5))) struct QueueMetersTests {
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
                families.map(\.label) == [
                    "operon_queue_ready", "operon_queue_in_flight", "operon_other_queues_ready",
                    "operon_other_queues_in_flight",
                ]
            )
            #expect(families[0].values.count == QueueMeters.listedMax)
            #expect(families[1].values.count == QueueMeters.listedMax)
            #expect(families[0].values[0].queue == "q1100")
            #expect(families[0].values[0].value == 2)
            let listed = families[0].values.reduce(0) { $0 + $1.value }
            let others = families[2].values.reduce(0) { $0 + $1.value }
            #expect(listed == 1_100)
            #expect(listed + others == 1_300)
        }
    }
}
