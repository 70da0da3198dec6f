import Operon
import OperonGraphFile
import OperonHTTP
import OperonModel
import OperonPorts
import OperonTestKit

/// A cluster whose coordinator somebody else plays, behind the real API.
struct FakedCluster {
    let world: FakeWorld
    let cluster: Operon.Cluster
    let queue: Operon.OperationQueue

    /// Runs `body`, then closes the cluster. Without patience, whoever asks is told at once that
    /// nobody answers.
    static func play(
        patience: Duration = .zero,
        isolation: isolated (any Actor)? = #isolation,
        _ body: (FakedCluster) async throws -> Void
    ) async throws {
        let fake = FakeCoordinator()
        try await serve(fake) { url in
            let cluster = Cluster.remote(url, patience: patience)
            let queue = OperationQueue(cluster: cluster)
            try await body(FakedCluster(world: fake.world, cluster: cluster, queue: queue))
            await cluster.close(within: .zero)
        }
    }

    /// An operation that no worker runs has its turn.
    func start(_ handle: AnyOperationHandle) async throws {
        guard let id = handle.id else { throw WorldFailure("\(handle) was not added") }
        try await world.change { truth throws(ClientError) in
            try truth.start(OperationSelector(id))
        }
    }

    /// What was said of such operations.
    func completions() async -> [Completion] {
        await world.truth.completions.map(\.completion)
    }

    /// Answers for a coordinator at the URL that `body` is told, until that is done.
    static func serve(
        _ client: any CoordinatorClient,
        isolation: isolated (any Actor)? = #isolation,
        _ body: (String) async throws -> Void
    ) async throws {
        let server = HTTPServer(
            try HTTPServerConfiguration(
                listen: HTTPAddress(host: "127.0.0.1", port: 0),
                allowsAnyUser: true
            ),
            codec: GraphFileCodec(),
            health: HTTPHealth(
                healthz: { HealthAnswer(isGood: true, text: "ok") },
                readyz: { HealthAnswer(isGood: true, text: "ok") },
                metrics: { "" }
            ),
            logger: World.logger,
            client: { _ in client }
        )
        let (addresses, continuation) = AsyncStream<ListenAddress>.makeStream()
        let serving = Task {
            defer { continuation.finish() }
            try await server.run { continuation.yield($0) }
        }
        let result: Result<Void, any Error>
        do {
            for await address in addresses {
                try await body("http://\(address)")
                break
            }
            result = .success(())
        } catch {
            result = .failure(error)
        }
        server.stop()
        try await serving.value
        try result.get()
    }
}
