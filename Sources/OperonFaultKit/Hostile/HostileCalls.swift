import OperonModel

/// One thing that a hostile client does with one connection.
package struct HostileCall: Sendable {
    package let kind: String
    package var bytes: [UInt8]
    package var conduct: ConnectionConduct
    /// How long the connection lives at most.
    package var patience: Duration
}

/// Draws what a client of the API may send: every address with every method, edges in every place
/// of a request, and connections that do not behave.
///
/// A client may change what it likes. So that one can be beside honest work, its changes name
/// graphs that it has submitted itself, and queues and workers that are not spared; with a token
/// that only reads it tries to change everything.
package struct HostileCalls: Sendable {
    package struct Tokens: Sendable {
        /// May do everything. `nil`: nobody has to show one.
        package var operate: String?
        /// May only read.
        package var read: String?

        package init(operate: String?, read: String?) {
            self.operate = operate
            self.read = read
        }
    }

    package var values: HostileValues
    /// Graphs that this client has submitted.
    package private(set) var owned: [String] = []
    private let routes: [HostileRoute]
    private let body: HostileBody
    private let tokens: Tokens
    private var submissions = 0

    /// Graphs that are accepted at most: each is kept by the coordinator, as it should be.
    private static let graphsMax = 300
    /// Half-open connections live so long: longer than a server should wait for the rest.
    private static let halfOpen = Duration.seconds(40)

    package init(
        values: HostileValues,
        document: HostileDocument,
        tokens: Tokens,
        spared: [String]
    ) {
        self.values = values
        routes = document.routes
        body = HostileBody(members: document.members, spared: spared)
        self.tokens = tokens
    }

    /// The request for the API's document.
    package static func document(_ tokens: Tokens) -> [UInt8] {
        var head = "GET /v1/openapi.json HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        if let token = tokens.operate { head += "Authorization: Bearer \(token)\r\n" }
        return Array((head + "\r\n").utf8)
    }

    package mutating func own(_ graph: String) {
        if !owned.contains(graph) { owned.append(graph) }
    }

    // MARK: - Any call

    package mutating func next() -> HostileCall {
        switch values.below(40) {
        case 0: return rawBytes()
        case 1: return halfHead()
        case 2: return hugeHead()
        case 3: return oddLength()
        case 4: return oddChunks()
        case 5: return pipelined()
        case 6: return strangeMethod()
        case 7: return stream()
        case 8:
            return HostileCall(
                kind: "nothing at all",
                bytes: values.flag() ? [] : [0x16, 3, 1, 2, 0],
                conduct: .staysMute,
                patience: Self.halfOpen
            )
        case 9, 10: return submission()
        default: return known()
        }
    }

    /// A known address, with values at the edges in its path, its query and its body.
    private mutating func known() -> HostileCall {
        let route = values.pick(routes)
        let mayChange = !route.isChange || values.isIn(70)
        if route.path.hasSuffix("/backup"), !values.isRare(50) { return submission() }
        let isOperating = route.isChange && mayChange
        let target = path(route, isOperating: isOperating) + query(route)
        var type: String?
        var content: [UInt8] = []
        var kind = "\(route.method) \(route.path)"
        if route.takesGraph {
            let graph = body.graph(&values)
            (type, content) = (graph.type, graph.bytes)
            if isOperating, submissions >= Self.graphsMax { content = values.damaged(content) }
            submissions += isOperating ? 1 : 0
            kind += ", \(graph.kind)"
        } else if route.takesBody || values.isIn(5) {
            let json = body.json(&values, isChange: isOperating)
            (type, content) = ("application/json", json.bytes)
            kind += ", \(json.kind)"
        }
        let head = self.head(
            route.method,
            target,
            token: mayChange ? tokens.operate : tokens.read ?? "none",
            type: type,
            length: content.isEmpty ? nil : "\(content.count)"
        )
        // Without a token that may only read, nobody keeps it from changing what is spared.
        guard mayChange || tokens.read != nil else { return rawBytes() }
        return HostileCall(
            kind: mayChange ? kind : "reading token: \(kind)",
            bytes: head + content,
            conduct: conduct(),
            patience: .seconds(5)
        )
    }

    private mutating func conduct() -> ConnectionConduct {
        switch values.below(20) {
        case 0: .sendsSlowly
        case 1: .staysMute
        case 2: .hangsUp
        default: .reads
        }
    }

    private mutating func submission() -> HostileCall {
        submissions += 1
        let content = body.soundGraph(&values)
        let key = "hostile-\(min(submissions, Self.graphsMax))"
        let head = self.head(
            "POST",
            "/v1/graphs",
            token: tokens.operate,
            type: "application/json",
            length: "\(content.utf8.count)",
            more: "Idempotency-Key: \(key)\r\n"
        )
        return HostileCall(
            kind: "submission",
            bytes: head + Array(content.utf8),
            conduct: .reads,
            patience: .seconds(10)
        )
    }

    // MARK: - Addresses

    private mutating func path(_ route: HostileRoute, isOperating: Bool) -> String {
        let segments = route.path.split(separator: "/", omittingEmptySubsequences: false)
        return segments.map { segment in
            guard segment.first == "{" else { return String(segment) }
            let name = segment.dropFirst().dropLast()
            return encoded(value(of: String(name), isOperating: isOperating))
        }.joined(separator: "/")
    }

    private mutating func value(of name: String, isOperating: Bool) -> String {
        guard isOperating else { return values.flag() ? values.text() : "\(values.number())" }
        switch name {
        case "graph":
            if !owned.isEmpty, values.isIn(80) { return values.pick(owned) }
            // Far from any graph that exists.
            return "\(values.number() | 1 << 31)"
        case "operation": return values.flag() ? values.text() : "o0"
        case "dependencyGraph", "dependency": return values.text()
        case _: return body.harmless(&values)
        }
    }

    /// Percent-encoded, mostly rightly. Never empty, which would be another address.
    private mutating func encoded(_ text: String) -> String {
        if text.isEmpty || text == "." || text == ".." { return "%2E%2E" }
        if values.isRare(30) { return values.pick(["%", "%zz", "%FF%FE", "%00", "%C0%AF"]) }
        return PercentText.encode(text)
    }

    private mutating func query(_ route: HostileRoute) -> String {
        var parts: [String] = []
        for name in route.query where values.flag() {
            let text = values.flag() ? values.numberText() : values.text()
            parts.append("\(name)=\(encoded(text))")
        }
        if values.isIn(5) { parts.append("\(encoded(values.text()))=1") }
        return parts.isEmpty ? "" : "?" + parts.joined(separator: "&")
    }

    private mutating func head(
        _ method: String,
        _ target: String,
        token: String?,
        type: String?,
        length: String?,
        more: String = ""
    ) -> [UInt8] {
        var text = "\(method) \(target) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        if let token {
            let shown = values.isRare(50) ? "\(token)x" : token
            text += "Authorization: Bearer \(shown)\r\n"
        }
        if let type { text += "Content-Type: \(type.filter { $0.isASCII && $0 >= " " })\r\n" }
        if let length { text += "Content-Length: \(length)\r\n" }
        return Array((text + more + "\r\n").utf8)
    }

    // MARK: - What is no proper request

    private mutating func rawBytes() -> HostileCall {
        let bytes = values.bytes(values.byteCount() + 1)
        return HostileCall(
            kind: "random bytes",
            bytes: bytes,
            conduct: conduct(),
            patience: .seconds(5)
        )
    }

    private mutating func halfHead() -> HostileCall {
        let whole = head("GET", "/v1/status", token: tokens.operate, type: nil, length: nil)
        return HostileCall(
            kind: "half a head",
            bytes: Array(whole.prefix(1 + values.below(whole.count - 1))),
            conduct: values.flag() ? .staysMute : .sendsSlowly,
            patience: Self.halfOpen
        )
    }

    private mutating func hugeHead() -> HostileCall {
        let count = values.pick([99, 100, 101, 1_000, 20_000])
        let more =
            values.flag()
            ? String(repeating: "X-A: 1\r\n", count: count)
            : "X-A: \(String(repeating: "a", count: count * 10))\r\n"
        let bytes = head("GET", "/healthz", token: nil, type: nil, length: nil, more: more)
        return HostileCall(kind: "huge head", bytes: bytes, conduct: .reads, patience: .seconds(5))
    }

    /// A length that is not that of the body, or is no length.
    private mutating func oddLength() -> HostileCall {
        let path = values.pick(["/v1/graphs", "/v1/queues/hostile/suspend"])
        let bytes = head(
            "POST",
            path,
            token: tokens.operate,
            type: "application/json",
            length: values.pick([
                values.numberText(), "-1", "268435456", "268435457", "9223372036854775807", "1, 2",
            ])
        )
        return HostileCall(
            kind: "odd length",
            bytes: bytes + values.bytes(values.below(100)),
            conduct: values.flag() ? .reads : .staysMute,
            patience: .seconds(20)
        )
    }

    private mutating func oddChunks() -> HostileCall {
        let encoding = values.pick(["chunked", "chunked, chunked", "gzip", "identity", "\t", "xx"])
        let bytes = head(
            "POST",
            "/v1/graphs",
            token: tokens.operate,
            type: "application/json",
            length: values.isIn(30) ? "3" : nil,
            more: "Transfer-Encoding: \(encoding)\r\n"
        )
        let chunk = values.pick([
            "3\r\n{} \r\n0\r\n\r\n", "FFFFFFFFFFFFFFFF\r\n{}", "-1\r\n{}", "zz\r\n", "3;a=b\r\n{}",
            String(repeating: "1\r\n{\r\n", count: 1_000),
        ])
        return HostileCall(
            kind: "odd chunks",
            bytes: bytes + Array(chunk.utf8),
            conduct: .reads,
            patience: .seconds(10)
        )
    }

    private mutating func pipelined() -> HostileCall {
        let route = values.pick(["/healthz", "/v1/status", "/v1/queues", "/v1/graphs"])
        let token = tokens.operate.map { "Authorization: Bearer \($0)\r\n" } ?? ""
        let one = "GET \(route) HTTP/1.1\r\nHost: localhost\r\n\(token)\r\n"
        let count = values.pick([2, 20, 200])
        return HostileCall(
            kind: "requests without reading answers",
            bytes: Array(String(repeating: one, count: count).utf8),
            conduct: .staysMute,
            patience: .seconds(10)
        )
    }

    /// Any method at any address that changes nothing, or at none.
    private mutating func strangeMethod() -> HostileCall {
        let method = values.pick([
            "HEAD", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "get", "BREW", "PUT", "DELETE",
            "PRI",
        ])
        let reading = routes.filter { !$0.isChange }
        let target = values.pick([
            values.pick(reading).path, "*", "//", "/v2", "http://localhost/healthz", "?", "/%",
        ])
        let bytes = head(method, target, token: tokens.operate, type: nil, length: nil)
        return HostileCall(
            kind: "strange method",
            bytes: bytes,
            conduct: conduct(),
            patience: .seconds(5)
        )
    }

    /// A stream that is never read, or not to its end.
    private mutating func stream() -> HostileCall {
        let target = values.pick([
            "/v1/events", "/v1/events?after=0", "/v1/events?after=9223372036854775807",
            "/v1/graphs/\(values.number())/operations/o0/log?follow=true",
            "/v1/graphs/0/operations/o0-0/log?follow=true",
        ])
        let bytes = head("GET", target, token: tokens.operate, type: nil, length: nil)
        return HostileCall(
            kind: "stream",
            bytes: bytes,
            conduct: values.flag() ? .staysMute : .reads,
            patience: .seconds(10)
        )
    }
}
