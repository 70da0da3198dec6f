import ClusterKit
import Foundation
import Glibc
import OperonGraphFile
import OperonHTTP
import OperonModel
import OperonPorts
import OperonRuntime
import Testing

/// A server whose socket the system takes away.
@Suite(.timeLimit(.minutes(1))) struct ListeningTests {
    /// Ends the listening of this process at a port, as an error of `accept` does.
    private func endListening(at port: Int) throws {
        for file in try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd") {
            guard let number = Int32(file), isListening(number, at: port) else { continue }
            #expect(shutdown(number, Int32(SHUT_RD)) == 0)
            return
        }
        Issue.record("nothing listens at \(port)")
    }

    private func isListening(_ number: Int32, at port: Int) -> Bool {
        var listens: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        guard getsockopt(number, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) == 0, listens != 0
        else { return false }
        var address = sockaddr_in()
        length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let status = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                getsockname(number, $0, &length)
            }
        }
        return status == 0 && Int(UInt16(bigEndian: address.sin_port)) == port
    }

    @Test(arguments: [false, true])
    func `a server that listens no more says so, whoever reads a stream`(
        hasReader: Bool
    ) async throws {
        let tap = ClientTap()
        try await TestCluster.run { cluster in
            let server = HTTPServer(
                try TestAPI.configuration(),
                codec: GraphFileCodec(),
                health: TestAPI.health,
                logger: TestCluster.logger,
                wall: { SystemClock.wall() }
            ) { caller in TappedClient(cluster.client(of: caller), caller: caller, tap) }
            let (addresses, continuation) = AsyncStream<ListenAddress>.makeStream()
            let serving = Task { try await server.run { continuation.yield($0) } }
            let found = await addresses.first { _ in true }
            let address = try #require(found)
            let client = try HTTPCoordinatorClient(
                HTTPCoordinatorClient.Configuration(url: "http://\(address)", token: nil),
                codec: GraphFileCodec()
            )
            let reader = Task {
                guard hasReader else { return }
                for try await _ in try await client.events(EventQuery()) {}
            }
            if hasReader { await tap.waitForWatchers(1) }

            try endListening(at: try #require(address.tcp?.port))
            let error = await #expect(throws: HTTPServerError.self) { try await serving.value }
            #expect(error?.code == .ended)
            #expect(error?.message.hasPrefix("The API does not listen on 127.0.0.1:") == true)
            reader.cancel()
            await client.shutDown()
        }
    }
}
