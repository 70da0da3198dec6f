import NIOPosix
import OperonModel
import OperonPorts

// Routes of the tokens.

extension HTTPServer {
    static let tokenRoutes: [Route] = [
        Route("GET", "/v1/tokens", .administer) { call in
            .json(TokensBody(tokens: call.server.tokens.views))
        },
        Route("POST", "/v1/tokens", .administer, body: .json(isRequired: true)) { call in
            let request = try call.json(TokenBody.self).request
            let by = call.caller.auditName
            let view = try await call.withTokens { book throws(ClientError) in
                try book.create(request, by: by)
            }
            return .json(view, created: true)
        },
        Route("DELETE", "/v1/tokens/{token}", .administer) { call in
            let name = call.names["token"] ?? ""
            return .json(
                try await call.withTokens { book throws(ClientError) in try book.revoke(name) }
            )
        },
    ]
}

extension Call {
    /// Changes tokens where the wait for a disk holds up nobody.
    fileprivate func withTokens(
        _ body: @escaping @Sendable (TokenBook) throws(ClientError) -> TokenView
    ) async throws -> TokenView {
        let tokens = server.tokens
        return try await NIOThreadPool.singleton.runIfActive { try body(tokens) }
    }
}

struct TokensBody: Codable { let tokens: [TokenView] }

/// The token that a client wants to create.
struct TokenBody: Decodable {
    let request: TokenRequest

    init(from decoder: any Decoder) throws {
        let fields = try StrictFields(decoder, ["name", "role", "queues", "expiresInSeconds"])
        var request = TokenRequest(
            name: try fields.required(String.self, "name"),
            role: try fields.required(AccessRole.self, "role")
        )
        request.queues = try fields.optional([String].self, "queues")
        request.expiresInSeconds = try fields.optional(Int.self, "expiresInSeconds")
        self.request = request
    }
}
