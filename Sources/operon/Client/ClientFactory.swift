import OperonArguments
import OperonPorts

/// Makes the client that commands ask. The only place that knows how it reaches a coordinator.
enum ClientFactory {
    /// Hands a client to `body`, and lets go of its connections when that is done.
    ///
    /// - Throws: `Failure` for an address that makes no sense, and what `body` throws.
    static func with(
        _ address: ClientAddress,
        _ body: (any CoordinatorClient) async throws -> Void
    ) async throws {
        throw Failure(ExitStatus.unreachable, "nobody answers at \(address.url)")
    }
}
