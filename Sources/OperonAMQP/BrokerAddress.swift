import OperonModel
package import OperonPorts

/// The address of a broker and our login, read from a URL:
/// `amqp://user:password@host:port/vhost?cacert=…`, or `amqps://` for TLS.
///
/// As in RabbitMQ's URI specification (https://www.rabbitmq.com/docs/uri-spec), every part may be
/// percent-encoded. If the URL names no virtual host, with or without a `/` after the host, the
/// virtual host is `/`, RabbitMQ's default, as in Celery and pika. The specification reads
/// `amqp://host/` as the virtual host with the empty name, which is hardly ever used; here that one
/// is `amqp://host/?vhost=`. The password is never part of any description or error.
package struct BrokerAddress: Hashable, Sendable, CustomStringConvertible {
    package var host: String
    package var port: Int
    package var user: String
    package var virtualHost: String
    package var tls: TLS?
    /// The value of `heartbeat` in seconds; zero turns heartbeats off.
    package var heartbeatSeconds: UInt16?
    /// Log in with the client certificate (`auth_mechanism=external`) instead of a password.
    package var usesExternalLogin = false
    @Secret private(set) var password: String

    /// The PEM files that the URL names; `nil`: the system's roots, or no client certificate.
    package struct TLS: Hashable, Sendable {
        package var authorityFile: String?
        package var certificateFile: String?
        package var keyFile: String?
    }

    package init(url: String) throws(PortError) {
        var rest = Substring(url)
        guard let scheme = rest.cut(through: "://") else {
            throw Self.invalid("it does not begin with amqp:// or amqps://")
        }
        switch scheme.lowercased() {
        case "amqp": tls = nil
        case "amqps": tls = TLS()
        default: throw Self.invalid("“\(scheme)” is not amqp or amqps")
        }
        let query = rest.cutTail(after: "?")
        let path = rest.cutTail(after: "/")
        let name = try Self.decoded(path ?? "", "the virtual host")
        virtualHost = name.isEmpty ? "/" : name
        let login = try Self.credentials(rest.cutHead(beforeLast: "@"))
        user = login.user
        password = login.password
        (host, port) = try Self.endpoint(rest, defaultPort: tls == nil ? 5672 : 5671)
        try apply(query: query ?? "", isNamed: !name.isEmpty)
    }

    /// The address in a form that may be shown: `***` replaces the password.
    package var description: String {
        let scheme = tls == nil ? "amqp" : "amqps"
        let place = host.contains(":") ? "[\(host)]" : host
        return "\(scheme)://\(user):***@\(place):\(port)/"
            + (virtualHost.isEmpty ? "?vhost=" : PercentText.encode(virtualHost))
    }
}

extension BrokerAddress {
    /// PLAIN as in RFC 4616: an empty identity, a zero and the user, a zero and the password. Empty
    /// for a login with a certificate.
    var loginResponse: [UInt8] {
        usesExternalLogin ? [] : [0] + Array(user.utf8) + [0] + Array(password.utf8)
    }
}

// MARK: - Reading

extension BrokerAddress {
    private static func invalid(_ why: String) -> PortError {
        PortError(
            .invalidAddress,
            "The broker's address cannot be used: \(why). It should look like "
                + "amqp://user:password@host:5672/vhost"
        )
    }

    private static func credentials(
        _ text: Substring?
    ) throws(PortError) -> (user: String, password: String) {
        // RabbitMQ's own default user, which it accepts only from the same machine.
        guard let text, !text.isEmpty else { return ("guest", "guest") }
        var user = text
        let password = user.cutTail(after: ":")
        return (
            try decoded(user, "the user name"), try decoded(password ?? "", "the password")
        )
    }

    private static func endpoint(
        _ text: Substring,
        defaultPort: Int
    ) throws(PortError) -> (host: String, port: Int) {
        var rest = text
        var host: Substring
        if rest.hasPrefix("[") {
            rest.removeFirst()
            guard let inside = rest.cut(through: "]") else {
                throw invalid("an IPv6 address ends with “]”")
            }
            guard rest.isEmpty || rest.hasPrefix(":") else {
                throw invalid("after “]” only a port may follow")
            }
            host = inside
            rest = rest.dropFirst()
        } else {
            host = rest
            rest = host.cutTail(after: ":") ?? ""
            guard !rest.contains(":") else {
                throw invalid("an IPv6 address stands in brackets, as in amqp://[::1]:5672/")
            }
        }
        let name = try decoded(host, "the host")
        guard !rest.isEmpty else { return (name.isEmpty ? "localhost" : name, defaultPort) }
        guard let port = Int(rest), (1...65_535).contains(port) else {
            throw invalid("the port must be a number from 1 to 65535")
        }
        return (name.isEmpty ? "localhost" : name, port)
    }

    /// - Parameter isNamed: whether the path names a virtual host.
    private mutating func apply(query: Substring, isNamed: Bool) throws(PortError) {
        for pair in query.split(separator: "&") {
            var key = pair
            let text = key.cutTail(after: "=") ?? ""
            let value = try Self.decoded(text, "the parameter “\(key)”")
            switch key {
            case "vhost":
                guard !isNamed else {
                    throw Self.invalid("the virtual host is named by the path and by vhost")
                }
                virtualHost = value
            case "heartbeat":
                guard let seconds = UInt16(value) else {
                    throw Self.invalid("heartbeat must be a number of seconds up to 65535")
                }
                heartbeatSeconds = seconds
            case "auth_mechanism":
                guard ["plain", "external"].contains(value.lowercased()) else {
                    throw Self.invalid("auth_mechanism must be plain or external")
                }
                usesExternalLogin = value.lowercased() == "external"
            case "cacertfile", "certfile", "keyfile":
                guard tls != nil else {
                    throw Self.invalid("\(key) needs amqps://")
                }
                if key == "cacertfile" { tls?.authorityFile = value }
                if key == "certfile" { tls?.certificateFile = value }
                if key == "keyfile" { tls?.keyFile = value }
            default:
                throw Self.invalid("the parameter “\(key)” is not known")
            }
        }
        guard (tls?.certificateFile == nil) == (tls?.keyFile == nil) else {
            throw Self.invalid("certfile and keyfile belong together")
        }
    }

    private static func decoded(
        _ text: Substring,
        _ what: String
    ) throws(PortError) -> String {
        guard let bytes = PercentText.bytes(of: text) else {
            throw invalid("a % in \(what) is not followed by two hexadecimal digits")
        }
        // AMQP's short strings hold 255 bytes; a longer password is a mistake as well.
        guard bytes.count <= 255 else { throw invalid("\(what) is longer than 255 bytes") }
        guard let text = String(validating: bytes, as: UTF8.self), !bytes.contains(0) else {
            throw invalid("\(what) is not UTF-8 text")
        }
        return text
    }
}

extension Substring {
    /// Removes and returns the text before `mark`, and removes the mark; `nil` without a mark.
    fileprivate mutating func cut(through mark: String) -> Substring? {
        guard let range = firstRange(of: mark) else { return nil }
        defer { self = self[range.upperBound...] }
        return self[..<range.lowerBound]
    }

    /// Removes the mark and returns the text after it; `nil` without a mark.
    fileprivate mutating func cutTail(after mark: Character) -> Substring? {
        guard let index = firstIndex(of: mark) else { return nil }
        defer { self = self[..<index] }
        return self[self.index(after: index)...]
    }

    /// Removes and returns the text before the last `mark`, and removes the mark.
    fileprivate mutating func cutHead(beforeLast mark: Character) -> Substring? {
        guard let index = lastIndex(of: mark) else { return nil }
        defer { self = self[self.index(after: index)...] }
        return self[..<index]
    }
}
