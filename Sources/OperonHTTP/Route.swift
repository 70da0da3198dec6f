import HTTPTypes
import NIOCore
import OperonModel
import OperonPorts

/// One thing that can be asked: how it is asked, who may, and what is done.
package struct Route: Sendable {
    /// What a request may carry.
    package enum Body: Hashable, Sendable {
        case none
        /// A small object; none at all stands for `{}` if nothing in it is required.
        case json(isRequired: Bool)
        case graph
    }

    /// Who may ask.
    package enum Access: Hashable, Sendable {
        /// Anyone who reaches the address: says nothing but that somebody is there.
        case open
        case read
        case operate
    }

    package let method: String
    /// `/v1/graphs/{graph}`: a name in braces stands for anything.
    package let pattern: String
    package let access: Access
    package let body: Body
    /// What may stand behind the `?`.
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

    /// The names in the pattern, if the path is of it.
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

/// A request as a route sees it.
struct Call: Sendable {
    let names: [String: String]
    let query: [String: String]
    let headers: HTTPFields
    let body: [UInt8]
    let caller: Caller
    /// Whether the caller had to say who it is, and did.
    let isTrusted: Bool
    let client: any CoordinatorClient
    let server: HTTPServer.Context

    var graph: String { names["graph"] ?? "" }
    var operation: OperationSelector {
        OperationSelector(graph: graph, operation: names["operation"] ?? "")
    }
    var queue: String { names["queue"] ?? "" }
    var key: String { names["key"] ?? "" }

    func flag(_ name: String) throws(Failure) -> Bool {
        switch query[name] {
        case nil, "false": return false
        case "true": return true
        case _?: throw .invalid(name, "is true or false")
        }
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

    /// Entries of a page.
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

    /// Seconds to wait, within bounds; `nil`: not said.
    func seconds(_ name: String) throws(Failure) -> Double? {
        guard let text = query[name] else { return nil }
        guard let seconds = Double(text) else {
            throw .invalid(name, "“\(text)” is no number of seconds")
        }
        try checked(seconds)
        return seconds
    }

    /// Seconds to wait, within bounds.
    func checked(_ wait: Double?) throws(Failure) {
        let most = server.configuration.limits.commandWait.seconds
        guard let wait else { return }
        guard wait >= 0, wait <= most else {
            throw .invalid("wait", "is from 0 to \(Int(most)) seconds")
        }
    }
}

/// What a route gives back.
enum Answer: Sendable {
    /// A page of JSON.
    case json(any Encodable & Sendable, created: Bool = false)
    /// Bytes of their own type.
    case bytes(ByteBuffer, type: String, status: Int = 200)
    case nothing
    /// A file of as many bytes as it says.
    case file(StoreBackup, type: String)
    /// Server-sent events until there are no more.
    case stream(@Sendable (EventWriter) async throws -> Void)
}
