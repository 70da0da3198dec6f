import Foundation
import Glibc
import Operon
import Testing

/// What a call to a coordinator somewhere else throws when its task is cancelled.
@Suite(.timeLimit(.minutes(5))) struct GivenUpTests {
    @Test func `a call whose task is cancelled throws CancellationError, whoever is silent`()
        async throws
    {
        let path = "\(NSTemporaryDirectory())operon-given-up-\(getpid()).sock"
        let listener = try Self.listen(path)
        defer {
            close(listener)
            unlink(path)
        }
        let cluster = Cluster.remote("unix:\(path)")
        let id = try #require(OperationID("0/0"))
        let call = Task { try await cluster.handle(id, of: Nobody.self) }
        // Somebody takes the question, and never answers it.
        let connection = await Task.detached { accept(listener, nil, nil) }.value
        defer { close(connection) }
        var byte: UInt8 = 0
        #expect(recv(connection, &byte, 1, 0) == 1)
        call.cancel()
        await #expect(throws: CancellationError.self) { _ = try await call.value }
        await cluster.close(within: .zero)
    }

    private struct Nobody: Operon.Operation {
        func main(_ context: OperationContext) async throws {}
    }

    private struct Failure: Error { let number = errno }

    private static func listen(_ path: String) throws -> Int32 {
        let number = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let status = withUnsafePointer(to: &address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(number, address, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard status == 0, Glibc.listen(number, 1) == 0 else { throw Failure() }
        return number
    }
}
