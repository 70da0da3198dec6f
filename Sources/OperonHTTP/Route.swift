import FoundationEssentials
import HTTPTypes
import NIOCore
package import OperonModel
import OperonPorts

/// One kind of request: its method and path, who may make it, and the code that answers it.
package struct Route: Sendable {
    /// The body that a request may have.
    package enum Body: Hashable, Sendable {
        case none
        /// A small object. If no field is required, an empty body means `{}`.
        case json(isRequired: Bool)
        case graph
        /// Any bytes, at most so many. The route checks their type.
        case bytes(max: Int)
    }

    /// The access that a request needs.
    package enum Access: Hashable, Sendable {
        /// No token needed; reveals only that a server runs.
        case open
        /// No token needed: a signature in the request shows who sent it.
        case signed
        case view
        case submit
        /// `submit` for graphs that the same token has submitted, `operate` for others.
        case own
        case operate
        case administer

        /// The least role that a caller needs; `nil`: none.
        package var role: AccessRole? {
            switch self {
            case .open, .signed: nil
            case .view: .view
            case .submit, .own: .submit
            case .operate: .operate
            case .administer: .administer
            }
        }
    }

    package let method: String
    /// For example `/v1/graphs/{graph}`; a name in braces matches any text.
    package let pattern: String
    package let access: Access
    package let body: Body
    /// The parameters that may follow the `?`.
    package let query: [String]
    let answer: @Sendable (Call) async throws -> Answer

    private let segments: [Segment]

    private enum Segment: Sendable {
        case fixed(String)
        case name(String)
    }

    init(
        _ method: String,
        _ pattern: String,
        _ access: Access,
        body: Body = .none,
        query: [String] = [],
        _ answer: @escaping @Sendable (Call) async throws -> Answer
    ) {
        self.method = method
        self.pattern = pattern
        self.access = access
        self.body = body
        self.query = query
        self.answer = answer
        segments = pattern.split(separator: "/").map { text in
            text.first == "{" ? .name(String(text.dropFirst().dropLast())) : .fixed(String(text))
        }
    }

    /// The values of the names in the pattern, if the path matches.
    func match(_ path: [String]) -> [String: String]? {
        guard path.count == segments.count else { return nil }
        var names: [String: String] = [:]
        for (segment, text) in zip(segments, path) {
            switch segment {
            case .fixed(let fixed): if fixed != text { return nil }
            case .name(let name):
                if text.isEmpty { return nil }
                names[name] = text
            }
        }
        return names
    }
}

/// A request, as its route receives it.
struct Call: Sendable {
    let names: [String: String]
    let query: [String: String]
    let headers: HTTPFields
    /// The host and the port that the caller named.
    let authority: String?
    /// What a browser that is logged in has sent.
    let sessionSecret: String?
    let body: [UInt8]
    let caller: Caller
    /// Whether the caller had to authenticate and did.
    let isTrusted: Bool
    let client: any CoordinatorClient
    let server: HTTPServer.Context

    var graph: String { names["graph"] ?? "" }
    var operation: OperationSelector {
        OperationSelector(graph: graph, operation: names["operation"] ?? "")
    }
    var trigger: String { names["trigger"] ?? "" }
    var queue: String { names["queue"] ?? "" }
    var key: String { names["key"] ?? "" }

    func flag(_ name: String) throws(Failure) -> Bool {
        switch query[name] {
        case nil, "false": return false
        case "true": return true
        case _?: throw .invalid(name, "is true or false")
        }
    }

    /// The kinds of events in the query, separated by commas; empty: all.
    var kinds: Set<ClusterEvent.Kind> {
        get throws(Failure) {
            guard let text = query["kind"] else { return [] }
            var kinds: Set<ClusterEvent.Kind> = []
            for name in text.split(separator: ",", omittingEmptySubsequences: false) {
                guard let kind = EventKind(rawValue: String(name)).known else {
                    let all = ClusterEvent.Kind.allCases.map(\.name).joined(separator: ", ")
                    throw .invalid("kind", "“\(name)” is none of \(all)")
                }
                kinds.insert(kind)
            }
            return kinds
        }
    }

    /// The outcomes in the query, separated by commas; empty: all.
    var outcomes: Set<OutcomeKind> {
        get throws(Failure) {
            guard let text = query["outcome"] else { return [] }
            var outcomes: Set<OutcomeKind> = []
            for name in text.split(separator: ",", omittingEmptySubsequences: false) {
                guard let outcome = OutcomeKind(name: name) else {
                    let all = OutcomeKind.allCases.map(\.name).joined(separator: ", ")
                    throw .invalid("outcome", "“\(name)” is none of \(all)")
                }
                outcomes.insert(outcome)
            }
            return outcomes
        }
    }

    /// The names in a JSON array in the query; empty: none.
    func names(_ name: String) throws(Failure) -> [String] {
        guard let text = query[name] else { return [] }
        guard let names = try? JSONDecoder().decode([String].self, from: Data(text.utf8)) else {
            throw .invalid(name, "is a JSON array of names")
        }
        return names
    }

    func number<Number: FixedWidthInteger>(
        _ name: String,
        _ type: Number.Type = Number.self
    ) throws(Failure) -> Number? {
        guard let text = query[name] else { return nil }
        guard text.utf8.allSatisfy({ (48...57).contains($0) }), let number = Number(text) else {
            throw .invalid(name, "is a whole number from 0 to \(Number.max)")
        }
        return number
    }

    func moment(_ name: String) throws(Failure) -> WallTime? {
        guard let text = query[name] else { return nil }
        guard let moment = DateText.moment(text) else {
            throw .invalid(name, "“\(text)” is no RFC 3339 time")
        }
        return moment
    }

    /// The number of entries of a page.
    func limit(_ usual: Int) throws(Failure) -> Int {
        let most = server.configuration.limits.pageEntries
        guard let number = try number("limit", Int.self) else { return usual }
        guard (1...most).contains(number) else { throw .invalid("limit", "is from 1 to \(most)") }
        return number
    }

    func named<Value: NamedCase>(
        _ name: String,
        _ type: Value.Type = Value.self
    ) throws(Failure) -> Value? {
        guard let text = query[name] else { return nil }
        guard let value = Value(name: text) else {
            let names = Value.allCases.map(\.name).joined(separator: ", ")
            throw .invalid(name, "“\(text)” is none of \(names)")
        }
        return value
    }

    func json<Value: Decodable>(_ type: Value.Type) throws(Failure) -> Value {
        try JSONBytes.read(type, body.isEmpty ? Array("{}".utf8) : body)
    }

    /// Seconds to wait, within bounds; `nil` if the parameter is missing.
    func seconds(_ name: String) throws(Failure) -> Double? {
        guard let text = query[name] else { return nil }
        guard let seconds = Double(text) else {
            throw .invalid(name, "“\(text)” is no number of seconds")
        }
        try checked(seconds)
        return seconds
    }

    /// Checks that seconds to wait are within bounds.
    func checked(_ wait: Double?) throws(Failure) {
        let most = server.configuration.limits.commandWait.seconds
        guard let wait else { return }
        guard wait >= 0, wait <= most else {
            throw .invalid("wait", "is from 0 to \(Int(most)) seconds")
        }
    }
}

/// The result of a route.
enum Answer: Sendable {
    /// A page of JSON.
    case json(any Encodable & Sendable, created: Bool = false, headers: HTTPFields = HTTPFields())
    /// Bytes of their own type.
    case bytes(ByteBuffer, type: String, status: Int = 200)
    case nothing
    /// A file of the page.
    case page(Page.File)
    /// A file with exactly the number of bytes that it announces.
    case file(StoreBackup, type: String)
    /// Server-sent events, until there are no more.
    case stream(@Sendable (EventWriter) async throws -> Void)
}
