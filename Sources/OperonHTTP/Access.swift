import HTTPTypes
import OperonPorts

/// Decides who may make which request, and from where.
struct Access: Sendable {
    let configuration: HTTPServerConfiguration
    let sessions: Sessions

    /// Refuses requests that a browser makes for a page of another site. Without tokens it also
    /// refuses requests to a host name other than those of this machine (DNS rebinding).
    /// - Returns: the caller; `nil` if the caller is unknown and the route does not need one.
    func caller(
        _ request: HTTPRequest,
        _ access: Route.Access
    ) throws(Failure) -> Caller? {
        let isWrite = ![.get, .head, .options].contains(request.method)
        if isWrite { try checkOrigin(request) }
        guard !configuration.tokens.isEmpty else {
            try checkHost(request)
            return Caller(name: "", scope: .operate)
        }
        let caller =
            request.headerFields[.authorization] != nil
            ? bearer(request).flatMap { configuration.tokens.caller(showing: $0) }
            : try session(request, isWrite: isWrite)
        guard let caller else {
            if access == .open || access == .signed { return nil }
            throw unauthorized(hasToken: request.headerFields[.authorization] != nil)
        }
        guard access != .operate || caller.scope == .operate else {
            throw Failure(
                ClientError(
                    .forbidden,
                    "The token of “\(caller.name)” is read-only: use one that allows changes."
                )
            )
        }
        return caller
    }

    private func bearer(_ request: HTTPRequest) -> String? {
        let values = request.headerFields[values: .authorization]
        guard values.count == 1, let value = values.first else { return nil }
        let scheme = "bearer "
        guard value.count > scheme.count, value.prefix(scheme.count).lowercased() == scheme else {
            return nil
        }
        return String(value.dropFirst(scheme.count)).trimmingSpaces
    }

    /// The caller whose browser is logged in. Pages of other sites, and of other ports of this
    /// machine, to which a browser may send the cookie as well, are refused.
    private func session(_ request: HTTPRequest, isWrite: Bool) throws(Failure) -> Caller? {
        guard let secret = SessionCookie.secret(in: request),
            let caller = sessions.caller(showing: secret)
        else { return nil }
        try checkOrigin(request)
        // A form cannot send it, and a script of another origin only after a preflight request.
        guard !isWrite || request.headerFields[.operonPage] != nil else {
            let message = "A request with the cookie of a session needs the header Operon-Page."
            throw Failure(ClientError(.forbidden, message), closes: true)
        }
        return caller
    }

    private func unauthorized(hasToken: Bool) -> Failure {
        var headers = HTTPFields()
        headers[.wwwAuthenticate] = "Bearer realm=\"operon\""
        let message =
            hasToken
            ? "The coordinator does not know this token."
            : "This coordinator requires a token: “Authorization: Bearer TOKEN”."
        return Failure(ClientError(.unauthorized, message), headers: headers, closes: true)
    }

    private func checkHost(_ request: HTTPRequest) throws(Failure) {
        let authority = request.authority ?? ""
        guard !isOurs(host: Self.host(of: authority)) else { return }
        let message =
            authority.isEmpty
            ? "The request has no Host header."
            : "“\(authority)” is not a name of this coordinator. Use 127.0.0.1 or localhost, or "
                + "give the coordinator tokens."
        throw Failure(ClientError(.forbidden, message), closes: true)
    }

    private func checkOrigin(_ request: HTTPRequest) throws(Failure) {
        let fields = request.headerFields
        let problem = Failure(
            ClientError(.forbidden, "Pages of other sites cannot change anything here."),
            closes: true
        )
        for origin in fields[values: .origin] {
            guard let scheme = origin.firstRange(of: "://") else { throw problem }
            let authority = String(origin[scheme.upperBound...])
            let isSame = authority.lowercased() == request.authority?.lowercased()
            guard isSame, isOurs(host: Self.host(of: authority)) || !configuration.tokens.isEmpty
            else { throw problem }
        }
        if let site = HTTPField.Name("Sec-Fetch-Site"), let value = fields[site],
            value == "cross-site" || value == "same-site"
        {
            throw problem
        }
    }

    private func isOurs(host: String) -> Bool {
        let names = ["localhost", "127.0.0.1", "::1"]
        // Names that do not stand for an address of this machine are refused at startup. A socket
        // has no name of its own, but may be forwarded to a port that a browser can reach.
        let own = configuration.listen.tcp.map { $0.host.lowercased() }
        return names.contains(host) || host == own
            || configuration.hosts.contains { $0.lowercased() == host }
    }

    /// The host without the port and without brackets.
    static func host(of authority: String) -> String {
        let text = authority.lowercased()
        if text.first == "[" { return String(text.dropFirst().prefix { $0 != "]" }) }
        return String(text.prefix { $0 != ":" })
    }
}

extension HTTPField.Name {
    /// The page sends it with every change.
    static let operonPage = HTTPField.Name("Operon-Page") ?? .origin
    static let referrerPolicy = HTTPField.Name("Referrer-Policy") ?? .referer
}
