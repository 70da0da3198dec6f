package import OperonModel

/// The requests of those who administer a coordinator: its tokens and its audit.
package protocol AccessClient: Sendable {
    /// By name; those of the file first.
    func tokens() async throws(ClientError) -> [TokenView]
    /// Creates a token. Only this answer has its text.
    func createToken(_ request: TokenRequest) async throws(ClientError) -> TokenView
    /// Revokes a created token. It stops at once, with the sessions and streams that it began.
    func revokeToken(_ name: String) async throws(ClientError) -> TokenView
    func audit(_ query: AuditQuery) async throws(ClientError) -> AuditPage
    /// Reads the whole audit and checks its chain.
    func checkAudit() async throws(ClientError) -> AuditCheckView
}
