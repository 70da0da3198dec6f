import OperonArguments
import OperonGraphFile
import OperonHTTP
import OperonPorts

/// Makes the client that commands ask. The only place that knows how it reaches a coordinator.
enum ClientFactory {
    /// Hands a client to `body`, and lets go of its connections when that is done. Streams that
    /// are cut are opened again, for ever: `news` is told.
    ///
    /// - Throws: `ClientError` for an address that makes no sense, and what `body` throws.
    static func with(
        _ address: ClientAddress,
        _ news: LinkNews,
        _ body: (any CoordinatorClient) async throws -> Void
    ) async throws {
        var configuration = try HTTPCoordinatorClient.Configuration(
            url: address.url,
            token: address.token,
            environment: address.environment
        )
        configuration.certificateAuthority = address.caFile
        configuration.patience = nil
        configuration.onLink = { link in
            switch link {
            case .cut: news.cut()
            case .restored: news.restored()
            }
        }
        let client = try HTTPCoordinatorClient(configuration, codec: GraphFileCodec())
        do {
            try await body(client)
        } catch {
            await client.shutDown()
            throw error
        }
        await client.shutDown()
    }
}
