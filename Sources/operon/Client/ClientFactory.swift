import OperonArguments
import OperonGraphFile
import OperonHTTP
import OperonPorts

/// Makes the client that commands use. Only this type knows how the client reaches a coordinator.
enum ClientFactory {
    /// Passes a client to `body`, and closes its connections afterwards. Streams that are cut are
    /// reopened without limit, and `news` is notified.
    ///
    /// - Throws: `ClientError` for an invalid address, and what `body` throws.
    static func with(
        _ address: ClientAddress,
        _ news: LinkNews,
        _ body: (any CoordinatorClient & AccessClient) async throws -> Void
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
