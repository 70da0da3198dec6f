import HTTPTypes
import NIOCore
import OperonModel
import OperonPorts

/// Decides who may make which request, and from where.
struct Access: Sendable {
    let configuration: HTTPServerConfiguration
    let tokens: TokenBook
    let sessions: Sessions

    /// Refuses requests that a browser makes for a page of another site, and those to a host name
    /// that is not one of this coordinator (DNS rebinding).
    /// - Returns: the caller; `nil` if the caller is unknown and the route does not need one.
    func caller(
        _ request: HTTPRequest,
        _ access: Route.Access
    ) throws(Failure) -> Caller? {
        let isWrite = ![.get, .head, .options].contains(request.method)
        if isWrite { try checkOrigin(request) }
        let verdict = try verdict(request, isWrite: isWrite, isOpen: access.role == nil)
        if mustNameUs(request, access, verdict) { try checkHost(request) }
        let caller: Caller
        switch verdict {
        case .valid(let found)?: caller = found
        case nil where !configuration.needsToken:
            caller = Caller(name: "", role: configuration.roleWithoutToken)
        case let verdict:
            guard access.role != nil else { return nil }
            throw unauthorized(verdict)
        }
        guard let needed = access.role, caller.role < needed else { return caller }
        throw Self.forbidden(caller, needed)
    }

    /// What the request shows to say who sent it; `nil`: nothing.
    private func verdict(
        _ request: HTTPRequest,
        isWrite: Bool,
        isOpen: Bool
    ) throws(Failure) -> TokenBook.Verdict? {
        // Where nobody needs a token and there is none, what somebody shows means nothing.
        guard configuration.needsToken || !tokens.isEmpty else { return nil }
        guard request.headerFields[.authorization] != nil else {
            guard configuration.needsToken else { return nil }
            return try session(request, isWrite: isWrite, isOpen: isOpen)
        }
        return bearer(request).map { tokens.verdict(showing: $0) } ?? .unknown
    }

    static func forbidden(_ caller: Caller, _ needed: AccessRole) -> Failure {
        let who =
            caller.digest == nil
            ? "Whoever shows no token here has" : "The token of “\(caller.name)” has"
        var failure = Failure(
            ClientError(
                .forbidden,
                "This needs the role “\(needed.rawValue)”. \(who) the role "
                    + "“\(caller.role.rawValue)”."
            )
        )
        failure.caller = caller
        return failure
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
    /// machine, to which a browser may send the cookie as well, are refused. What anybody may read,
    /// such as the page itself, they may have links to.
    private func session(
        _ request: HTTPRequest,
        isWrite: Bool,
        isOpen: Bool
    ) throws(Failure) -> TokenBook.Verdict? {
        guard let secret = SessionCookie.secret(in: request),
            let caller = sessions.caller(showing: secret)
        else { return nil }
        let verdict = tokens.verdict(caller)
        guard verdict.caller != nil else {
            sessions.end(secret)
            return verdict
        }
        if isWrite || !isOpen { try checkOrigin(request) }
        // A form cannot send it, and a script of another origin only after a preflight request.
        guard !isWrite || request.headerFields[.operonPage] != nil else {
            let message = "A request with the cookie of a session needs the header Operon-Page."
            throw Failure(ClientError(.forbidden, message), closes: true)
        }
        return verdict
    }

    private func unauthorized(_ verdict: TokenBook.Verdict?) -> Failure {
        var headers = HTTPFields()
        headers[.wwwAuthenticate] = "Bearer realm=\"operon\""
        let message =
            verdict?.refusal
            ?? "This coordinator requires a token: “Authorization: Bearer TOKEN”."
        return Failure(ClientError(.unauthorized, message), headers: headers, closes: true)
    }

    /// Whether the request must have a name of this coordinator as its host.
    private func mustNameUs(
        _ request: HTTPRequest,
        _ access: Route.Access,
        _ verdict: TokenBook.Verdict?
    ) -> Bool {
        guard configuration.needsToken else { return true }
        // A page of somebody else has no token of ours to show, and cannot sign anything.
        let showsToken = request.headerFields[.authorization] != nil && verdict?.caller != nil
        return configuration.knowsItsNames && !showsToken && access != .signed
    }

    private func checkHost(_ request: HTTPRequest) throws(Failure) {
        let authority = request.authority ?? ""
        let host = Self.host(of: authority)
        // Nobody can make an address stand for another one.
        let isAddress = (try? SocketAddress(ipAddress: host, port: 0)) != nil
        guard !isOurs(host: host), !(configuration.needsToken && isAddress) else { return }
        let message =
            authority.isEmpty
            ? "The request has no Host header."
            : "“\(authority)” is not a name of this coordinator. Use 127.0.0.1 or localhost on its "
                + "machine, or start it with --host NAME."
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
            guard isSame, isOurs(host: Self.host(of: authority)) || configuration.needsToken
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
