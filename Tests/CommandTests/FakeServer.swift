import Foundation
import Logging
import OperonGraphFile
import OperonHTTP
import OperonModel
import OperonPorts
import OperonTestKit

/// A coordinator that runs nothing by itself, behind the real API: the test drives its operations
/// and runs the real commands against it.
struct FakeServer {
    let scene: Scene
    let coordinator: FakeCoordinator
    let url: String

    /// Serves until `body` is done.
    static func play(
        isolation: isolated (any Actor)? = #isolation,
        _ body: (FakeServer) async throws -> Void
    ) async throws {
        let coordinator = FakeCoordinator(caller: "ann")
        try await serve(coordinator) { url in
            try await Scene.play { scene in
                try await body(FakeServer(scene: scene, coordinator: coordinator, url: url))
            }
        }
    }

    /// Answers for a coordinator at the URL that `body` is told, until that is done.
    static func serve(
        _ coordinator: any CoordinatorClient,
        tokens: AccessTokens = AccessTokens(),
        isolation: isolated (any Actor)? = #isolation,
        _ body: (_ url: String) async throws -> Void
    ) async throws {
        let server = HTTPServer(
            try HTTPServerConfiguration(
                listen: HTTPAddress(host: "127.0.0.1", port: 0),
                tokens: tokens,
                allowsAnyUser: tokens.isEmpty
            ),
            codec: GraphFileCodec(),
            health: HTTPHealth(
                healthz: { HealthAnswer(isGood: true, text: "ok") },
                readyz: { HealthAnswer(isGood: true, text: "ok") },
                metrics: { "" }
            ),
            logger: logger
        ) { _ in coordinator }
        let (addresses, listening) = AsyncStream<ListenAddress>.makeStream()
        let serving = Task {
            defer { listening.finish() }
            try await server.run { listening.yield($0) }
        }
        defer { serving.cancel() }
        var iterator = addresses.makeAsyncIterator()
        guard let address = await iterator.next(isolation: isolation) else {
            throw CommandFailure("the API does not listen: \(await serving.result)")
        }
        try await body("http://\(address)")
        server.stop()
    }

    static let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

    /// Runs `operon` to its end.
    func operon(
        _ arguments: [String],
        environment: [String: String?] = [:],
        streams: Program.Streams = .pipes
    ) async throws -> Ended {
        try await start(arguments, environment: environment, streams: streams).end()
    }

    func start(
        _ arguments: [String],
        environment: [String: String?] = [:],
        streams: Program.Streams = .pipes
    ) throws -> Program {
        let all = environment.merging(["OPERON_COORDINATOR": url]) { given, _ in given }
        return try scene.start("operon", arguments, environment: all, streams: streams)
    }

    /// Changes what the coordinator knows.
    func change(
        _ body: @Sendable (inout FakeTruth) throws(ClientError) -> Void
    ) async throws {
        try await coordinator.world.change(body)
    }

    func start(_ operation: String, of graph: String = "@latest") async throws {
        try await change { truth throws(ClientError) in
            try truth.start(OperationSelector(graph: graph, operation: operation))
        }
    }

    func finish(
        _ operation: String,
        of graph: String = "@latest",
        _ outcome: Outcome = .succeeded,
        output: String? = nil
    ) async throws {
        try await change { truth throws(ClientError) in
            try truth.finish(
                OperationSelector(graph: graph, operation: operation),
                outcome,
                output: output.map { Payload(bytes: Array($0.utf8)) }
            )
        }
    }

    /// A graph of four: one to begin with, two after it, and one behind both.
    static let wordcount = """
        name: wordcount
        queues: { licensed: { maxConcurrentOperationCount: 1 } }
        operations:
          split: { run: split book.txt }
          count-a: { run: wc -w xaa, dependencies: [split], exclusive: db }
          count-b: { run: wc -w xab, dependencies: [split], exclusive: db, queue: licensed }
          merge: { run: ./merge, dependencies: [count-a, count-b] }

        """

    func submitWordcount() async throws {
        let file = try scene.write("wordcount.yaml", Self.wordcount)
        let ended = try await operon(["submit", file])
        guard ended.end == .exit(0) else { throw CommandFailure(ended.errors) }
    }
}
