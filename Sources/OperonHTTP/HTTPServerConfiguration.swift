import NIOCore
import OperonModel

/// Where the API listens, who may use it, and how much of it.
package struct HTTPServerConfiguration: Sendable {
    package var listen: ListenAddress
    /// `nil`: no TLS, allowed only for this machine.
    package var tls: TLSFiles?
    /// If there are no tokens, nobody needs one: on a socket its user may do everything, on an
    /// address of this machine every user of it may do what `operate` allows.
    package let tokens: AccessTokens
    /// Whether a caller has to show a token, or the cookie of a session.
    private(set) var needsToken: Bool
    /// Whether a socket has the page beside it, on a free port of this machine.
    package var hasPage = false
    /// The port of the page that is tried first, so that an open page goes on after a restart;
    /// `nil`: any. If somebody else has it, the page gets another one.
    package var pagePort: Int?
    /// The role of a caller where no token is needed: of the own user on a socket, of any user of
    /// this machine on an address of it.
    var roleWithoutToken: AccessRole { listen.tcp == nil ? .administer : .operate }
    /// Names by which clients without a token of their own, such as browsers, may call the
    /// coordinator, besides `localhost` and the host that it listens on. If there are none, they
    /// may call one that other machines can reach by any name.
    package private(set) var hosts: [String] = []
    package var limits = HTTPLimits()
    /// `nil`: changes are not recorded.
    package var audit: AuditLog?
    /// The tokens as they change; `nil`: they are those above.
    package var book: TokenBook?
    /// The file of tokens, which may be read again; `nil`: there is none.
    package var tokensFile: String?

    /// Listens on a socket, which only processes of this user can reach.
    package init(socket path: String, tokens: AccessTokens = AccessTokens()) {
        listen = .socket(path)
        self.tokens = tokens
        needsToken = !tokens.isEmpty
    }

    /// - Parameter allowsAnyUser: every user of this machine may do everything without a token.
    /// - Throws: an error if the address needs a token and there is none, or if it can be reached
    ///   from other machines and there is no TLS.
    package init(
        listen: HTTPAddress,
        tls: TLSFiles? = nil,
        tokens: AccessTokens = AccessTokens(),
        allowsAnyUser: Bool = false
    ) throws(HTTPServerError) {
        if !listen.isLoopback {
            try Self.checkExposed(listen, tls: tls, tokens: tokens)
        } else if tokens.isEmpty, !allowsAnyUser {
            throw HTTPServerError(
                .unsafe,
                "Every user of this machine can reach \(listen), and could run commands as you: "
                    + "give a token."
            )
        }
        self.listen = .tcp(listen)
        self.tls = tls
        self.tokens = tokens
        needsToken = !tokens.isEmpty
    }

    /// Whether all names are known by which it is called. Other machines may know it by any name,
    /// if it is given none.
    package var knowsItsNames: Bool { (listen.tcp?.isLoopback ?? true) || !hosts.isEmpty }

    /// Adds a name by which clients may call the coordinator.
    ///
    /// - Throws: an error if it cannot be the name of a host, such as one with a port.
    package mutating func add(host: String) throws(HTTPServerError) {
        let bytes = host.utf8
        let isName =
            (1...Self.hostBytesMax).contains(bytes.count) && host.last != "."
            && bytes.allSatisfy { $0.isASCIILetterOrDigit || "-._".utf8.contains($0) }
        guard isName else {
            throw HTTPServerError(
                .invalid,
                "--host \(host): give the name of a host, without a port, such as operon.example."
            )
        }
        hosts.append(host)
    }

    /// The most bytes of the name of a host (RFC 1035).
    private static let hostBytesMax = 253

    /// The same coordinator for browsers, on a free port of this machine. Every user of the machine
    /// can reach it, so it always needs a login.
    ///
    /// - Parameter port: 0: one that is free.
    func ofPage(at port: Int) -> Self {
        var made = self
        made.listen = .tcp(HTTPAddress(host: HTTPAddress.standard.host, port: port))
        made.needsToken = true
        made.hasPage = false
        made.limits.connections = limits.pageConnections
        made.limits.connectionsPerAddress = limits.pageConnections
        made.limits.refusedConnections = limits.pageConnections / 2
        return made
    }

    private static func checkExposed(
        _ listen: HTTPAddress,
        tls: TLSFiles?,
        tokens: AccessTokens
    ) throws(HTTPServerError) {
        if tls == nil, tokens.isEmpty {
            throw HTTPServerError(
                .unsafe,
                "\(listen) can be reached from other machines: give a certificate and its key, "
                    + "and a file of tokens, or listen on 127.0.0.1."
            )
        }
        guard tls != nil else {
            throw HTTPServerError(
                .unsafe,
                "\(listen) can be reached from other machines, and tokens would be sent in "
                    + "the clear: give a certificate and its key, or listen on 127.0.0.1."
            )
        }
        guard !tokens.isEmpty else {
            throw HTTPServerError(
                .unsafe,
                "\(listen) can be reached from other machines: give a file of tokens, or "
                    + "listen on 127.0.0.1."
            )
        }
    }
}

/// PEM files.
package struct TLSFiles: Hashable, Sendable {
    /// The certificate, followed by those that lead to its root.
    package var certificate: String
    package var key: String

    package init(certificate: String, key: String) {
        self.certificate = certificate
        self.key = key
    }
}

/// A host and a port.
package struct HTTPAddress: Hashable, Sendable, CustomStringConvertible {
    /// A name or an address; IPv6 without brackets.
    package var host: String
    /// 0: any free port.
    package var port: Int

    package init(host: String, port: Int) {
        self.host = host
        self.port = port
    }

    /// The default: this machine and the standard port of a coordinator, `127.0.0.1:7350`.
    package static let standard = HTTPAddress(host: "127.0.0.1", port: 7350)

    /// Reads `HOST:PORT`, `HOST`, `PORT` or `:PORT` (this machine) or `[IPv6]:PORT`.
    /// - Throws: a sentence that says what the text should be.
    package init(_ text: String) throws(HTTPServerError) {
        let problem = HTTPServerError(
            .invalid,
            "“\(text)” is not an address to listen on: use HOST:PORT, such as 127.0.0.1:7350."
        )
        // Such a machine can be named with its port.
        if let first = text.first, first.isNumber, text.contains(where: \.isLetter),
            !text.contains(where: { ".:".contains($0) })
        {
            throw HTTPServerError(
                .invalid,
                "“\(text)” is no port and no address: use HOST:PORT, such as 127.0.0.1:7350."
            )
        }
        // No machine has a number as its name.
        let isPort = !text.isEmpty && text.allSatisfy(\.isNumber)
        var rest = (isPort ? ":" + text : text)[...]
        var host = HTTPAddress.standard.host
        if rest.first == "[" {
            guard let end = rest.firstIndex(of: "]") else { throw problem }
            host = String(rest[rest.index(after: rest.startIndex)..<end])
            rest = rest[rest.index(after: end)...]
        } else {
            let end = rest.firstIndex(of: ":") ?? rest.endIndex
            if end > rest.startIndex { host = String(rest[..<end]) }
            rest = rest[end...]
        }
        var port = HTTPAddress.standard.port
        if rest.popFirst() == ":" {
            guard rest.utf8.count <= 5, rest.allSatisfy(\.isNumber), let number = Int(rest),
                number <= 65_535
            else { throw problem }
            port = number
        } else if !rest.isEmpty {
            throw problem
        }
        let isName = host.utf8.allSatisfy { byte in
            byte.isASCIILetterOrDigit || ".-:".utf8.contains(byte)
        }
        guard !host.isEmpty, isName, text == text.trimmingSpaces else { throw problem }
        self.init(host: host, port: port)
    }

    /// Whether only this machine can reach it.
    package var isLoopback: Bool {
        if host.lowercased() == "localhost" { return true }
        guard let address = try? SocketAddress(ipAddress: host, port: 0) else { return false }
        return address.isLoopback
    }

    package var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}

extension SocketAddress {
    /// 127.0.0.0/8 or ::1.
    var isLoopback: Bool {
        guard let text = ipAddress else { return false }
        return text.hasPrefix("127.") || text == "::1" || text.hasPrefix("::ffff:127.")
    }
}

extension String {
    var trimmingSpaces: String {
        var rest = self[...]
        while let first = rest.first, first.isWhitespace { rest.removeFirst() }
        while let last = rest.last, last.isWhitespace { rest.removeLast() }
        return String(rest)
    }
}

/// Limits on what one client, or all clients together, may take from the coordinator.
package struct HTTPLimits: Sendable {
    /// The most bytes of a submitted graph.
    package var graphBytes = Limits().graphFileBytes
    /// The most bytes of any other body: enough for an output, which is longer in base 64.
    package var bodyBytes = 2 << 20
    /// The most bytes of bodies that are being read at the same time: two of the largest graphs.
    package var bodyBytesInAll = 2 * Limits().graphFileBytes
    /// The most connections at a time, and never more than half of the process's descriptors; the
    /// other half is for the store, the broker and operations. A further connection replaces the
    /// one that has waited longest without a request.
    package var connections = 1_000
    /// The most connections from one network address, so that one machine leaves room for others.
    package var connectionsPerAddress = 500
    /// The most connections to the page beside a socket, which strangers on this machine can reach:
    /// several times what the tabs of one person open.
    package var pageConnections = 100
    /// Further connections that may only ask for health and metrics, so that monitoring can still
    /// reach the coordinator.
    package var reservedConnections = 16
    /// The most connections without a place that are kept until their request has been refused in
    /// words, and never more than an eighth of the process's descriptors. Further ones wait in the
    /// kernel: silent ones can be accepted as fast as their time is over.
    package var refusedConnections = 1_000
    /// How long the first request of a connection may be on its way: so long, the connection keeps
    /// its place before those that are idle, or stays without a place. Four thousand clients on a
    /// machine with two cores took more than half a second.
    package var firstRequestTime = Duration.seconds(2)
    /// The time from the connection to the end of the first head, including the TLS handshake. Both
    /// together take three round trips.
    package var headTime = Duration.seconds(10)
    /// The most streams of events and logs at a time; each holds a connection.
    package var streams = 200
    /// The most bytes of the head of a request: its URL and all its fields.
    package var headerBytes = 32 << 10
    package var headerFields = 100
    /// The time without a byte of a request after which the connection is closed.
    package var idleTime = Duration.seconds(60)
    /// The time a client has to take a piece of an answer; after it the connection is closed.
    package var writeTime = Duration.seconds(60)
    /// The time for a body, plus one second for each `bodyBytesPerSecond` bytes.
    package var bodyTime = Duration.seconds(30)
    package var bodyBytesPerSecond = 16 << 10
    /// The interval between comments on a quiet stream; proxies close streams that are quiet for a
    /// minute.
    package var keepAlive = Duration.seconds(15)
    /// The longest duration of a stream. The client reconnects for later events.
    package var streamTime = Duration.seconds(3_600)
    /// The time for current answers to finish when the server stops.
    package var stopTime = Duration.seconds(10)
    /// The most entries of a page.
    package var pageEntries = 10_000
    /// The longest `wait` of a command.
    package var commandWait = Duration.seconds(3_600)

    package init() {}
}
