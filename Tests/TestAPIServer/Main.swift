import ClusterKit
import Foundation
import OperonHTTP
import OperonModel
import OperonPorts

/// The real server around a coordinator in memory, for programs that test it from outside. It
/// writes its address on a line by itself and serves until it is stopped.
@main struct TestAPIServer {
    static func main() async throws {
        var api = try TestAPI.configuration()
        // A program that tries every address must come to the end of a stream.
        api.limits.streamTime = .milliseconds(200)
        let health = HTTPHealth(
            healthz: { HealthAnswer(isGood: true, text: "ok") },
            readyz: { HealthAnswer(isGood: true, text: "ok") },
            metrics: { "# TYPE operon_up gauge\noperon_up 1\n" }
        )
        try await TestCluster.run { cluster in
            try await prepare(cluster)
            try await TestAPI.serve(api, health: health) { caller in
                cluster.client(of: caller)
            } _: { _, address in
                print("http://\(address)")
                fflush(nil)
                // Until a signal ends the process.
                for await _ in AsyncStream<Never>.makeStream().stream {}
            }
        }
    }

    /// Something to look at: what ran, what failed, what waits, and what may grow.
    static func prepare(_ cluster: TestCluster) async throws {
        var graph = GraphDescription(name: "wordcount")
        let names = ["split", "count/a", "count/b", "merge"]
        graph.operations = names.map { OperationDescription(name: $0, work: .nothing) }
        graph.operations[1].dependencies = [DependencyDescription("split")]
        graph.operations[2].dependencies = [DependencyDescription("split")]
        graph.operations[3].dependencies = [
            DependencyDescription("count/a"), DependencyDescription("count/b"),
        ]
        _ = try await cluster.client.submit(Submission(graph: graph))
        var open = Submission(graph: GraphDescription(name: "grows", operations: graph.operations))
        open.isOpen = true
        _ = try await cluster.client.submit(open)
        try await cluster.join("worker-1", slots: 4)
        let split = OperationSelector(graph: "wordcount", operation: "split")
        try await cluster.print(split, "part.aa\npart.ab")
        try await cluster.finish(split, output: Payload(bytes: Array("{\"parts\":2}".utf8)))
        let count = OperationSelector(graph: "wordcount", operation: "count/a")
        try await cluster.finish(count, .exit(code: 2))
    }
}
