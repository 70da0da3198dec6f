import Foundation
import Logging
import OperonGraphFile
import OperonHTTP
import OperonModel
import OperonPorts
import OperonTestKit

/// The real server around a coordinator in memory, for programs that test it from outside. It
/// writes its address on a line by itself and serves until it is stopped.
@main struct TestAPIServer {
    static func main() async throws {
        let fake = FakeCoordinator()
        try await prepare(fake)
        var configuration = try HTTPServerConfiguration(
            listen: HTTPAddress(host: "127.0.0.1", port: 0),
            allowsAnyUser: true
        )
        // A program that tries every address must come to the end of a stream.
        configuration.limits.streamTime = .milliseconds(200)
        let health = HTTPHealth(
            healthz: { HealthAnswer(isGood: true, text: "ok") },
            readyz: { HealthAnswer(isGood: true, text: "ok") },
            metrics: { "# TYPE operon_up gauge\noperon_up 1\n" }
        )
        var logger = Logger(label: "api") { StreamLogHandler.standardError(label: $0) }
        logger.logLevel = .error
        let server = HTTPServer(
            configuration,
            codec: GraphFileCodec(),
            health: health,
            logger: logger,
            client: { fake.as($0) }
        )
        try await server.run { address in
            print("http://\(address)")
            fflush(nil)
        }
    }

    /// Something to look at: what ran, what failed, what waits, and what may grow.
    static func prepare(_ fake: FakeCoordinator) async throws {
        var graph = GraphDescription(name: "wordcount")
        let names = ["split", "count/a", "count/b", "merge"]
        graph.operations = names.map { OperationDescription(name: $0, work: .nothing) }
        graph.operations[1].dependencies = [DependencyDescription("split")]
        graph.operations[2].dependencies = [DependencyDescription("split")]
        graph.operations[3].dependencies = [
            DependencyDescription("count/a"), DependencyDescription("count/b"),
        ]
        _ = try await fake.submit(Submission(graph: graph))
        var open = Submission(graph: GraphDescription(name: "grows", operations: graph.operations))
        open.isOpen = true
        _ = try await fake.submit(open)
        try await fake.world.change { truth throws(ClientError) in
            truth.workers = [
                WorkerView(
                    id: "00000000000000a1",
                    name: "worker-1",
                    host: "localhost",
                    slots: 4,
                    busySlots: 1,
                    held: 1,
                    status: "alive",
                    queues: ["default"],
                    kinds: ["command", "nothing", "wait"],
                    heardSecondsAgo: 0.4
                )
            ]
            let split = OperationSelector(graph: "wordcount", operation: "split")
            try truth.start(split)
            try truth.print(split, "part.aa\npart.ab\n")
            try truth.finish(split, output: Payload(bytes: Array("{\"parts\":2}".utf8)))
            let count = OperationSelector(graph: "wordcount", operation: "count/a")
            try truth.start(count)
            try truth.finish(count, .failed(.exit(code: 2)))
        }
    }
}
