import NIOHTTP1
package import OperonModel
package import OperonPorts

// The methods of the client that concern tokens and the audit, as requests.
extension HTTPCoordinatorClient: AccessClient {
    package func tokens() async throws(ClientError) -> [TokenView] {
        try await value(Ask(.GET, "tokens"), TokensBody.self).tokens
    }

    package func createToken(_ request: TokenRequest) async throws(ClientError) -> TokenView {
        try await value(Ask(.POST, "tokens").with(json: request))
    }

    package func revokeToken(_ name: String) async throws(ClientError) -> TokenView {
        try await value(Ask(.DELETE, "tokens", name))
    }

    package func audit(_ query: AuditQuery) async throws(ClientError) -> AuditPage {
        try await value(
            Ask(.GET, "audit").with("before", query.before)
                .with("since", query.since.map { TimeText($0) }).with("by", query.by)
                .with("limit", query.limit)
        )
    }

    /// Reading the largest audit takes some seconds.
    package func checkAudit() async throws(ClientError) -> AuditCheckView {
        try await value(Ask(.GET, "audit", "check").within(configuration.submitTime))
    }
}
