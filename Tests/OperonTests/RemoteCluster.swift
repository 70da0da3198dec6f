import ClusterKit
import Operon
import OperonPorts

/// A program's cluster whose coordinator is elsewhere: a real one behind the real API, whose calls
/// the test records, holds and lets fail.
struct RemoteCluster {
    let coordinator: TestCluster
    let tap: ClientTap
    let cluster: Operon.Cluster
    let queue: Operon.OperationQueue

    /// Runs `body`, then closes the cluster. Without patience, whoever asks is told at once that
    /// nobody answers.
    static func run(
        patience: Duration = .zero,
        isolation: isolated (any Actor)? = #isolation,
        _ body: (RemoteCluster) async throws -> Void
    ) async throws {
        try await TestCluster.run { coordinator in
            let tap = ClientTap()
            try await serve(TappedClient(coordinator.client, tap)) { url in
                let cluster = Cluster.remote(url, patience: patience)
                let queue = OperationQueue(cluster: cluster)
                try await body(
                    RemoteCluster(
                        coordinator: coordinator,
                        tap: tap,
                        cluster: cluster,
                        queue: queue
                    )
                )
                await cluster.close(within: .zero)
            }
        }
    }

    /// Answers for a coordinator at the URL that `body` is told, until that is done.
    static func serve(
        _ client: any CoordinatorClient,
        isolation: isolated (any Actor)? = #isolation,
        _ body: (String) async throws -> Void
    ) async throws {
        try await TestAPI.serve(TestAPI.configuration()) { _ in
            client
        } _: { _, address in
            try await body("http://\(address)")
        }
    }
}
