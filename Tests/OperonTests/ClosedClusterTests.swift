import ClusterKit
import Operon
import OperonModel
import OperonPorts
import Testing

/// What becomes of those who listen to a coordinator elsewhere when their cluster is closed.
@Suite(.timeLimit(.minutes(5))) struct ClosedClusterTests {
    @Test func eventsOfAClusterEndWithIt() async throws {
        try await RemoteCluster.run { remote in
            let heard = Changes()
            let reading = Task { for try await _ in remote.cluster.events() { heard.note() } }
            await remote.tap.waitForWatchers(1)
            // The coordinator knows of the stream first; an event shows that the cluster does.
            try await remote.coordinator.submit(OperationDescription(name: "a", work: .nothing))
            try await heard.wait(after: 0)
            await remote.cluster.close(within: .zero)
            try await reading.value
        }
    }

    @Test func eventsOfAnOperationEndWithItsCluster() async throws {
        try await RemoteCluster.run { remote in
            let handle = try await remote.queue.addOperation(Nothing())
            // The cluster listens as well.
            await remote.tap.waitForWatchers(1)
            let reading = Task {
                var kinds: [OperationEvent.Kind] = []
                for try await event in handle.events { kinds.append(event.kind) }
                return kinds
            }
            await remote.tap.waitForWatchers(2)
            await remote.cluster.close(within: .zero)
            #expect(try await reading.value == [.state(.ready)])
        }
    }

    @Test func whoeverWaitsForAGraphIsToldThatItsClusterWasClosed() async throws {
        try await RemoteCluster.run { remote in
            let command = CommandDescription(arguments: ["true"])
            let operation = OperationDescription(name: "a", work: .command(command))
            let graph = try await remote.cluster.submit(
                GraphDescription(name: "g", operations: [operation])
            )
            let waiting = Task { try await graph.waitUntilFinished() }
            // It asks before and behind the opening of the stream.
            await remote.tap.waitForCalls("graph", 2)
            await remote.cluster.close(within: .zero)
            await #expect(throws: (any Error).self) { try await waiting.value }
        }
    }
}
