import NIOCore
import OperonModel

/// Where the API listens, who may use it and how much of it.
package struct HTTPServerConfiguration: Sendable {
    package var listen: ListenAddress
    /// `nil`: without TLS, which only this machine may use.
    package var tls: TLSFiles?
    /// None: on a socket its user, and on an address of this machine everybody there, may do
    /// everything.
    package var tokens: AccessTokens
    /// Names by which a browser on this machine may reach it without a token, over those of this
    /// machine itself.
    package var hosts: [String] = []
    package var limits = HTTPLimits()

    /// A socket, which only processes of this user reach.
    package init(socket path: String, tokens: AccessTokens = AccessTokens()) {
        listen = .socket(path)
        self.tokens = tokens
    }

    /// - Parameter allowsAnyUser: Every user of this machine may do everything, without a token.
    /// - Throws: an address without a token, or one beyond this machine without TLS.
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
                "Every user of this machine reaches \(listen), and could run commands as you: give "
                    + "a token."
            )
        }
        self.listen = .tcp(listen)
        self.tls = tls
        self.tokens = tokens
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
                "\(listen) can be reached from other machines, and tokens would travel in "
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

/// Files in PEM.
package struct TLSFiles: Hashable, Sendable {
    /// The certificate, and those that lead to its root behind it.
    package var certificate: String
    package var key: String

    package init(certificate: String, key: String) {
        self.certificate = certificate
        self.key = key
    }
}

/// A host and a port.
package struct HTTPAddress: Hashable, Sendable, CustomStringConvertible {
    /// A name or an address, IPv6 without brackets.
    package var host: String
    /// 0: any that is free.
    package var port: Int

    package init(host: String, port: Int) {
        self.host = host
        self.port = port
    }

    /// This machine, and the port of a coordinator that is given none: `127.0.0.1:7350`.
    package static let standard = HTTPAddress(host: "127.0.0.1", port: 7350)

    /// Reads `HOST:PORT`, `HOST`, `:PORT` (this machine) or `[IPv6]:PORT`.
    /// - Throws: a sentence about what it should be.
    package init(_ text: String) throws(HTTPServerError) {
        let problem = HTTPServerError(
            .invalid,
            "“\(text)” is no address to listen on: write HOST:PORT, such as 127.0.0.1:7350."
        )
        var rest = text[...]
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

    /// Whether only this machine reaches it.
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

/// What one client, or all of them together, may take of the coordinator.
package struct HTTPLimits: Sendable {
    /// Bytes of a graph that is submitted.
    package var graphBytes = Limits().graphFileBytes
    /// Bytes of any other body: an output at most, which is longer in base 64.
    package var bodyBytes = 2 << 20
    /// Bytes of bodies that are being read at one time, in all: two of the largest graphs.
    package var bodyBytesInAll = 2 * Limits().graphFileBytes
    /// Connections at a time, and never more than half of the descriptors that the process may
    /// have: the other half is for the store, the broker and what operations need. One more takes
    /// the place of the connection that has waited longest without a request.
    package var connections = 1_000
    /// Of these, from one address of the network: one machine leaves room for others.
    package var connectionsPerAddress = 500
    /// Over these, for requests about health and metrics alone, so that whoever watches the
    /// coordinator still reaches it.
    package var reservedConnections = 16
    /// From the connection to the end of the first head, with the handshake of TLS. Both together
    /// take three round trips.
    package var headTime = Duration.seconds(10)
    /// Streams of events and logs at a time; they hold a connection each.
    package var streams = 200
    /// Bytes of the head of a request: its address and all its fields.
    package var headerBytes = 32 << 10
    package var headerFields = 100
    /// Without a byte of a request; then the connection is closed.
    package var idleTime = Duration.seconds(60)
    /// To take a piece of an answer; then the connection is closed.
    package var writeTime = Duration.seconds(60)
    /// A body may take this long, and a second more for every so many bytes.
    package var bodyTime = Duration.seconds(30)
    package var bodyBytesPerSecond = 16 << 10
    /// Between two signs of life on a quiet stream: proxies close what is quiet for a minute.
    package var keepAlive = Duration.seconds(15)
    /// Longest life of a stream; the client comes back for what follows.
    package var streamTime = Duration.seconds(3_600)
    /// To end what runs when the server stops.
    package var stopTime = Duration.seconds(10)
    /// Entries of a page.
    package var pageEntries = 10_000
    /// Longest `wait` of a command.
    package var commandWait = Duration.seconds(3_600)

    package init() {}
}
