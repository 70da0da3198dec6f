import OperonGraphFile
package import OperonHTTP
package import OperonModel
package import OperonPorts
import OperonRuntime

/// The real API on a free port of this machine, or on a socket.
package enum TestAPI {
    package static let health = HTTPHealth(
        healthz: { HealthAnswer(isGood: true, text: "ok") },
        readyz: { HealthAnswer(isGood: true, text: "ok") },
        metrics: { "" }
    )

    /// A free port of this machine. Without tokens, every user may do everything.
    package static func configuration(
        tls: TLSFiles? = nil,
        tokens: AccessTokens = AccessTokens()
    ) throws -> HTTPServerConfiguration {
        try HTTPServerConfiguration(
            listen: HTTPAddress(host: "127.0.0.1", port: 0),
            tls: tls,
            tokens: tokens,
            allowsAnyUser: tokens.isEmpty
        )
    }

    /// Serves until `body` is done.
    ///
    /// - Throws: an error of `body`, or of a server that cannot listen.
    package static func serve(
        _ configuration: HTTPServerConfiguration,
        health: HTTPHealth = health,
        wall: @escaping @Sendable () -> WallTime = { SystemClock.wall() },
        client: @escaping @Sendable (_ caller: String) -> any CoordinatorClient,
        isolation: isolated (any Actor)? = #isolation,
        _ body: (HTTPServer, ListenAddress) async throws -> Void
    ) async throws {
        let server = HTTPServer(
            configuration,
            codec: GraphFileCodec(),
            health: health,
            logger: TestCluster.logger,
            wall: wall,
            client: client
        )
        let (addresses, continuation) = AsyncStream<ListenAddress>.makeStream()
        let serving = Task {
            defer { continuation.finish() }
            try await server.run { continuation.yield($0) }
        }
        let result: Result<Void, any Error>
        do {
            for await address in addresses {
                try await body(server, address)
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
