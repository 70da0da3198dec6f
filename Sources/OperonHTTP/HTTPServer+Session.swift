import HTTPTypes
package import OperonModel
import OperonPorts

// Routes of the page: its files, and how a browser logs in.

extension HTTPServer {
    static let pageRoutes: [Route] = [
        Route("GET", "/", .open) { call in
            guard call.prefersPage, let file = Page.files["index.html"] else {
                return .bytes(Page.greeting, type: "text/plain; charset=utf-8")
            }
            return .page(file)
        },
        Route("GET", "/page/{file}", .open) { call in
            guard let file = Page.files[call.names["file"] ?? ""] else {
                throw ClientError(.notFound, "The page has no such file.")
            }
            return .page(file)
        },
        Route("GET", "/v1/session", .open) { call in .json(call.session) },
        Route("POST", "/v1/session", .open, body: .bytes(max: SessionBody.bytesMax)) { call in
            try call.logIn()
        },
        Route("DELETE", "/v1/session", .open) { call in
            if let secret = call.sessionSecret { call.server.sessions.end(secret) }
            return .json(
                call.needsToken ? SessionView() : call.session,
                headers: call.cookie(nil)
            )
        },
        Route("POST", "/v1/session/codes", .view) { call in
            let page = call.server.page
            guard call.needsToken || page != nil else {
                throw ClientError(.conflict, "This coordinator needs no login.")
            }
            return .json(
                SessionCodeView(
                    code: call.server.sessions.drawCode(for: call.caller),
                    expiresInSeconds: Sessions.codeLifetime.seconds,
                    page: page?.clientText(isSecure: false)
                ),
                created: true
            )
        },
    ]
}

/// What a browser shows to log in: exactly one of both.
struct SessionBody: Decodable {
    /// Several times the longest token. Who sends it is not known yet.
    static let bytesMax = 8 << 10

    @Secret private(set) var token: String?
    @Secret private(set) var code: String?

    init(from decoder: any Decoder) throws {
        let fields = try StrictFields(decoder, ["token", "code"])
        token = try fields.optional(String.self, "token")
        code = try fields.optional(String.self, "code")
    }
}

/// Whether a browser is logged in, and as whom.
package struct SessionView: Hashable, Sendable, Codable {
    /// Everybody who reaches the coordinator may do everything: `false`.
    package var needsToken: Bool
    package var name: String?
    /// Whether the browser may change everything (`operate`) or not (`read`). Missing if a login
    /// is needed.
    package var scope: String?
    /// Missing if a login is needed.
    package var role: AccessRole?

    /// A login is needed.
    init() { needsToken = true }

    init(_ caller: Caller, needsToken: Bool) {
        self.needsToken = needsToken
        if needsToken { name = caller.auditName }
        scope = caller.role < .operate ? "read" : "operate"
        role = caller.role
    }
}

extension Call {
    fileprivate var needsToken: Bool { server.configuration.needsToken }

    /// Browsers name HTML before all else when a person opens an address.
    fileprivate var prefersPage: Bool {
        headers[.accept]?.lowercased().contains("text/html") == true
    }

    fileprivate var session: SessionView {
        isTrusted ? SessionView(caller, needsToken: needsToken) : SessionView()
    }

    fileprivate func logIn() throws -> Answer {
        // A form of another site cannot send this type.
        guard headers[.contentType]?.lowercased().hasPrefix("application/json") == true else {
            let message = "The body is to be JSON: send “Content-Type: application/json”."
            throw Failure(ClientError(.invalid, message), status: 415)
        }
        let body = try json(SessionBody.self)
        guard needsToken else { return .json(session) }
        let verdict: TokenBook.Verdict
        switch (body.token, body.code) {
        case (let token?, nil): verdict = server.tokens.verdict(showing: token)
        case (nil, let code?):
            verdict = server.sessions.take(code: code).map(server.tokens.verdict) ?? .unknown
        default: throw Failure.invalid("body", "has either token or code")
        }
        guard case .valid(let found) = verdict else {
            let message =
                body.token == nil && verdict == .unknown
                ? "This address was used already, or is too old: run “operon page” again."
                : verdict.refusal
            throw ClientError(.unauthorized, message)
        }
        // A browser has one session.
        if let old = sessionSecret { server.sessions.end(old) }
        return .json(
            SessionView(found, needsToken: true),
            headers: cookie(server.sessions.begin(for: found))
        )
    }

    fileprivate func cookie(_ secret: String?) -> HTTPFields {
        var fields = HTTPFields()
        let isSecure = server.configuration.tls != nil
        fields[.setCookie] = SessionCookie.field(
            secret,
            authority: authority,
            isSecure: isSecure
        )
        return fields
    }
}
