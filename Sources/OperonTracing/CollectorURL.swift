/// The address of a collector. What AsyncHTTPClient would accept and cannot use is refused here.
struct CollectorURL: Hashable, Sendable {
    /// With scheme, host and, if there is one, port: `https://c.example:4318`.
    private let origin: String
    /// Begins with a slash, or is empty.
    private var path: String
    /// With its question mark, or empty. It may contain a secret.
    private let query: String

    enum Problem: Error {
        case noURL, login, noHost, port

        var words: String {
            switch self {
            case .noURL: "is no URL with http or https"
            case .login: "contains a login, which OTEL_EXPORTER_OTLP_HEADERS is for"
            case .noHost: "names no host"
            case .port: "has no port from 1 to 65535"
            }
        }
    }

    init(_ text: String) throws(Problem) {
        guard let scheme = text.firstRange(of: "://"),
            ["http", "https"].contains(text[..<scheme.lowerBound].lowercased()),
            text.utf8.allSatisfy({ (33...126).contains($0) })
        else { throw .noURL }
        let rest = text[scheme.upperBound...].prefix { $0 != "#" }
        let authority = rest.prefix { $0 != "/" && $0 != "?" }
        // A password may contain a slash.
        guard !rest.contains("@") else { throw .login }
        try Self.check(authority)
        origin = text[..<scheme.lowerBound].lowercased() + "://" + authority
        let target = rest[authority.endIndex...]
        path = String(target.prefix { $0 != "?" })
        query = String(target[target.index(target.startIndex, offsetBy: path.count)...])
    }

    /// A host, or an IPv6 address in brackets, and perhaps a port.
    private static func check(_ authority: Substring) throws(Problem) {
        var port = authority[...]
        if authority.first == "[" {
            guard let end = authority.firstIndex(of: "]"),
                end > authority.index(after: authority.startIndex)
            else { throw .noHost }
            port = authority[authority.index(after: end)...]
        } else {
            port = authority.drop { $0 != ":" }
            guard port.count < authority.count else { throw .noHost }
        }
        guard !port.isEmpty else { return }
        guard port.first == ":", let number = UInt16(port.dropFirst()), number > 0 else {
            throw .port
        }
    }

    /// The same with this path after its own.
    func appending(_ part: String) -> CollectorURL {
        var url = self
        url.path += path.hasSuffix("/") ? part : "/" + part
        return url
    }

    var text: String { origin + path + query }

    /// For people: without what may be secret.
    var shown: String { origin + path }
}
