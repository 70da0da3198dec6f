import ClusterKit
import OperonPorts
import OperonRuntime
import Testing

/// What is told of the connection to the broker.
@Suite(.timeLimit(.minutes(5))) struct ConnectionLogTests {
    @Test func `each loss and each return of the connection is logged once`() async throws {
        try await ManualCluster.run(nil) { cluster in
            for _ in 0..<2 {
                await cluster.transport.handle(.down(reason: "the test cut it"))
                await cluster.transport.handle(.up)
            }
            let told = cluster.log.current.filter { $0.hasPrefix("connection ") }
            let once = ["connection lost", "connection restored"]
            #expect(told == once + once)
        }
    }

    @Test func `without a broker, no connection is logged`() async throws {
        try await ManualCluster.run(nil) { cluster in
            await cluster.transport.handle(.down(reason: ""))
            await cluster.transport.handle(.up)
            #expect(!cluster.log.current.contains { $0.hasPrefix("connection ") })
        }
    }
}
