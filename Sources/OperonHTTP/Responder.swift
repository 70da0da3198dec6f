import HTTPTypes
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import OperonModel
import OperonPorts

/// Produces the answer to a request.
struct Responder: Sendable {
    let context: HTTPServer.Context
    let logger: Logger

    private var limits: HTTPLimits { context.configuration.limits }

    @concurrent @Sendable func respond(
        _ request: Request,
        _ writer: consuming ResponseWriter,
        _ channel: any Channel
    ) async throws {
        var exchange = Exchange()
        defer { context.bodies.give(exchange.taken) }
        let answer: Answer
        switch await self.answer(request, writer, channel, &exchange) {
        case .success(let made): answer = made
        case .failure(let failure):
            try await fail(request, writer, channel, failure)
            guard failure.closes, hasBody(request.head) else { return }
            return try await drain(request, &exchange.body, channel)
        }
        if case .file(let file, let type) = answer {
            return try await copy(file, type, writer, channel)
        }
        guard case .stream(let events) = answer, request.method == .get else {
            return try await write(answer, request, writer, channel)
        }
        guard context.streams.enter() else {
            let message = "Too many read streams of this coordinator: try again later."
            let failure = Failure(ClientError(.unavailable, message), headers: Self.later)
            return try await fail(request, writer, channel, failure)
        }
        defer { context.streams.leave() }
        try await stream(request, writer, channel, exchange.caller, events)
    }

    /// What is known of a request while it is being answered.
    private struct Exchange {
        /// A body can be iterated only once.
        var body: RequestBody.AsyncIterator?
        /// The bytes of the body that are in memory.
        var taken = 0
        /// `nil`: unknown.
        var caller: Caller?
        /// Whether the audit has it as a change.
        var isAsked = false
    }

    @concurrent private func answer(
        _ request: Request,
        _ writer: borrowing ResponseWriter,
        _ channel: any Channel,
        _ exchange: inout Exchange
    ) async -> Result<Answer, Failure> {
        do {
            let (route, found) = try find(request.head)
            let caller = try access.caller(request.head, route.access)
            exchange.caller = caller
            let names = try await checkOwner(route, found, caller)
            let query = try self.query(request.head, route)
            try checkType(request.head, route)
            let body = try await readBody(request, route, writer, &exchange)
            let call = Call(
                names: names,
                query: query,
                headers: request.headers,
                authority: request.head.authority,
                sessionSecret: SessionCookie.secret(in: request.head),
                body: body,
                caller: caller ?? Caller(name: "", role: .view),
                isTrusted: caller != nil,
                client: context.client(caller?.name ?? ""),
                server: context
            )
            exchange.isAsked = route.isAudited && route.access != .signed
            return .success(try await audited(route, call, request.head, channel))
        } catch {
            let failure = failure(error)
            if !exchange.isAsked {
                await noteRefusal(failure, request.head, exchange.caller, channel)
            }
            return .failure(failure)
        }
    }

    private var access: Access {
        Access(
            configuration: context.configuration,
            tokens: context.tokens,
            sessions: context.sessions
        )
    }

    /// Checks that a caller who may only submit has submitted the graph that it wants to change.
    /// - Returns: the names in the path; the graph has its number, so that the name cannot stand
    ///   for another graph by the time of the change.
    @concurrent private func checkOwner(
        _ route: Route,
        _ names: [String: String],
        _ caller: Caller?
    ) async throws -> [String: String] {
        guard route.access == .own, let caller, caller.role < .operate else { return names }
        let graph = try await context.client(caller.name).graph(names["graph"] ?? "")
        guard graph.submittedBy == caller.name else {
            var failure = Access.forbidden(caller, .operate)
            failure.error.message +=
                " It may change the graphs that it has submitted; graph \(graph.id) is not one."
            throw failure
        }
        return names.merging(["graph": String(graph.id)]) { _, number in number }
    }

    static var later: HTTPFields {
        var fields = HTTPFields()
        fields[.retryAfter] = "5"
        return fields
    }

    func failure(_ error: any Error) -> Failure {
        if let failure = error as? Failure { return failure }
        if let error = error as? ClientError {
            let fields = error.code == .unavailable ? Self.later : HTTPFields()
            return Failure(error, headers: fields)
        }
        if error is CancellationError {
            let message = "The coordinator is stopping: try again."
            return Failure(ClientError(.unavailable, message), headers: Self.later)
        }
        if error is HTTPParserError {
            let message = "The body is not encoded as its head says."
            return Failure(ClientError(.invalid, message), closes: true)
        }
        if error is IOError || error is ChannelError {
            // Harmless: the client disconnected before its body was complete, so nobody reads this.
            let message = "The connection was cut before the body was whole."
            return Failure(ClientError(.invalid, message), closes: true)
        }
        logger.error("a request ended with an error of ours", metadata: ["error": "\(error)"])
        let message = "A mistake of the coordinator, about which its log says more."
        return Failure(ClientError(.internal, message))
    }

    // MARK: - Requests

    private func find(_ head: HTTPRequest) throws(Failure) -> (Route, [String: String]) {
        let path = (head.path ?? "").prefix { $0 != "?" && $0 != "#" }
        guard path.first == "/" else { throw unknown(head, .view) }
        var segments: [String] = []
        for part in path.dropFirst().split(separator: "/", omittingEmptySubsequences: false) {
            guard let text = PercentText.decode(part) else {
                throw .invalid("path", "is no percent-encoded UTF-8")
            }
            segments.append(text)
        }
        if path == "/" { segments = [] }
        let isHead = head.method == .head
        let method = isHead ? "GET" : head.method.rawValue
        var others: [Route] = []
        for route in HTTPServer.routes {
            guard let names = route.match(segments) else { continue }
            if route.method == method { return (route, names) }
            others.append(route)
        }
        guard let first = others.first else { throw unknown(head, .view) }
        // Callers without access do not learn which methods exist.
        _ = try access.caller(head, first.access)
        var methods = Set(others.map(\.method))
        if methods.contains("GET") { methods.insert("HEAD") }
        var headers = HTTPFields()
        headers[.allow] = methods.sorted().joined(separator: ", ")
        throw Failure(
            ClientError(
                .invalid,
                "\(head.method.rawValue) is not for this address: it takes "
                    + methods.sorted().joined(separator: ", ") + "."
            ),
            status: 405,
            headers: headers,
            closes: true
        )
    }

    private func unknown(_ head: HTTPRequest, _ needed: Route.Access) -> Failure {
        do throws(Failure) {
            _ = try access.caller(head, needed)
        } catch {
            return error
        }
        let message = "There is nothing at this address. /v1/openapi.json says what there is."
        return Failure(ClientError(.notFound, message), closes: true)
    }

    private func query(_ head: HTTPRequest, _ route: Route) throws(Failure) -> [String: String] {
        let path = head.path ?? ""
        guard let start = path.firstIndex(of: "?") else { return [:] }
        let text = path[path.index(after: start)...].prefix { $0 != "#" }
        var found: [String: String] = [:]
        for part in text.split(separator: "&") {
            let equals = part.firstIndex(of: "=") ?? part.endIndex
            guard let name = PercentText.decode(part[..<equals], plusIsSpace: true),
                let value = PercentText.decode(part[equals...].dropFirst(), plusIsSpace: true)
            else { throw .invalid("query", "is no percent-encoded UTF-8") }
            guard route.query.contains(name) else {
                let known = route.query.isEmpty ? "none" : route.query.joined(separator: ", ")
                throw .invalid(name, "is no parameter of this address: it takes \(known)")
            }
            guard found.updateValue(value, forKey: name) == nil else {
                throw .invalid(name, "is there twice")
            }
        }
        return found
    }

    /// Checks the content type. A form of another site cannot send these types without a preflight
    /// request.
    private func checkType(_ head: HTTPRequest, _ route: Route) throws(Failure) {
        let fields = head.headerFields
        if let encoding = fields[.contentEncoding], encoding.lowercased() != "identity" {
            throw unsupported("Send the body as it is, not as \(encoding).")
        }
        guard hasBody(head) else { return }
        let type = (fields[.contentType] ?? "").lowercased()
        let media = String(type.prefix { $0 != ";" }).trimmingSpaces
        switch route.body {
        case .none, .bytes: return
        case .json:
            guard media == "application/json" else {
                throw unsupported("The body is to be JSON: send “Content-Type: application/json”.")
            }
        case .graph:
            guard Self.graphTypes.contains(media) else {
                throw unsupported(
                    "A graph is sent as application/json, application/jsonl or application/yaml: "
                        + "say which as its Content-Type."
                )
            }
        }
        if let charset = type.split(separator: ";").dropFirst().map({ String($0).trimmingSpaces })
            .first(where: { $0.hasPrefix("charset=") })
        {
            let name = charset.dropFirst("charset=".count).filter { $0 != "\"" }
            guard ["utf-8", "utf8", "us-ascii"].contains(name) else {
                throw unsupported("The body is to be in UTF-8, not in \(name).")
            }
        }
    }

    static let graphTypes = [
        "application/json", "application/jsonl", "application/x-ndjson", "application/yaml",
        "application/x-yaml", "text/yaml",
    ]

    private func unsupported(_ message: String) -> Failure {
        Failure(ClientError(.invalid, message), status: 415, closes: true)
    }

    func hasBody(_ head: HTTPRequest) -> Bool {
        let length = head.headerFields[.contentLength].flatMap { Int($0) } ?? 0
        return length > 0 || head.headerFields[.transferEncoding] != nil
    }

    // MARK: - The body

    @concurrent private func readBody(
        _ request: Request,
        _ route: Route,
        _ writer: borrowing ResponseWriter,
        _ exchange: inout Exchange
    ) async throws -> [UInt8] {
        guard hasBody(request.head) else {
            switch route.body {
            case .none, .bytes, .json(isRequired: false): return []
            case .graph: throw Failure.invalid("body", "is empty, and should be a graph")
            case .json(isRequired: true):
                throw Failure.invalid("body", "is empty, and should be an object in JSON")
            }
        }
        guard route.body != .none else {
            // Refuse before reading the body: unknown callers can get here, too.
            var failure = Failure.invalid("body", "is not taken here: leave it out")
            failure.closes = true
            throw failure
        }
        let bytesMax =
            switch route.body {
            case .graph: limits.graphBytes
            case .bytes(let most): most
            case .none, .json: limits.bodyBytes
            }
        let length = request.headers[.contentLength].flatMap { Int($0) } ?? 0
        guard length <= bytesMax else { throw tooLarge(bytesMax) }
        if request.headers[.expect]?.lowercased() == "100-continue" {
            try await writer.writeInformationalHead(HTTPResponse(status: .continue))
        }
        var bytes: [UInt8] = []
        let start = ContinuousClock.now
        var iterator = request.body.makeAsyncIterator()
        defer { exchange.body = iterator }
        while var piece = try await iterator.next() {
            let count = piece.readableBytes
            guard bytes.count + count <= bytesMax else { throw tooLarge(bytesMax) }
            guard context.bodies.take(count) else {
                let message = "The coordinator reads too much at once: try again later."
                throw Failure(
                    ClientError(.unavailable, message),
                    headers: Self.later,
                    closes: true
                )
            }
            exchange.taken += count
            bytes += piece.readBytes(length: count) ?? []
            let time = limits.bodyTime + .seconds(bytes.count / limits.bodyBytesPerSecond)
            guard ContinuousClock.now - start <= time else {
                throw Failure(
                    ClientError(.timedOut, "The body came too slowly."),
                    status: 408,
                    closes: true
                )
            }
        }
        return bytes
    }

    private func tooLarge(_ bytesMax: Int) -> Failure {
        Failure(
            ClientError(
                .tooLarge,
                "The body is larger than the \(bytesMax) bytes that it may have."
            ),
            closes: true
        )
    }
}
