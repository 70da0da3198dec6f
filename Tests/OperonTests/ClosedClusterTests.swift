import Operon
import OperonModel
import OperonPorts
import OperonTestKit
import Testing

/// What becomes of those who listen to a coordinator elsewhere when their cluster is closed.
@Suite(.timeLimit(.minutes(5))) struct ClosedClusterTests {
    private static func play(
        isolation: isolated (any Actor)? = #isolation,
        _ body: (FakeWorld, Operon.Cluster) async throws -> Void
    ) async throws {
        let fake = FakeCoordinator()
        try await DroppedHandleTests.serve(fake) { url in
            try await body(fake.world, Cluster.remote(url))
        }
    }

    @Test func eventsOfAClusterEndWithIt() async throws {
        try await Self.play { world, cluster in
            let reading = Task { for try await _ in cluster.events() {} }
            await world.waitForWatchers(1)
            await cluster.close(within: .zero)
            try await reading.value
        }
    }

    @Test func eventsOfAnOperationEndWithItsCluster() async throws {
        try await Self.play { world, cluster in
            let queue = Operon.OperationQueue(cluster: cluster)
            let handle = try await queue.addOperation(Nothing())
            // The cluster listens as well.
            await world.waitForWatchers(1)
            let reading = Task {
                var kinds: [OperationEvent.Kind] = []
                for try await event in handle.events { kinds.append(event.kind) }
                return kinds
            }
            await world.waitForWatchers(2)
            await cluster.close(within: .zero)
            #expect(try await reading.value == [.state(.ready)])
        }
    }

    @Test func whoeverWaitsForAGraphIsToldThatItsClusterWasClosed() async throws {
        try await Self.play { world, cluster in
            let command = CommandDescription(arguments: ["true"])
            let operation = OperationDescription(name: "a", work: .command(command))
            let graph = try await cluster.submit(
                GraphDescription(name: "g", operations: [operation])
            )
            let waiting = Task { try await graph.waitUntilFinished() }
            // It asks before and behind the opening of the stream.
            await world.waitForCalls("graph", 2)
            await cluster.close(within: .zero)
            await #expect(throws: (any Error).self) { try await waiting.value }
        }
    }
}
