import AsyncHTTPClient
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
package import OperonModel
package import OperonPorts
import OperonSystem
import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

extension HTTPCoordinatorClient {
    package func events(_ query: EventQuery) async throws(ClientError) -> EventBatches {
        let kinds = query.kinds.map(\.name).sorted().joined(separator: ",")
        let outcomes = query.outcomes.map(\.name).sorted().joined(separator: ",")
        let reader = StreamReader(
            self,
            lastID: query.after.map(String.init),
            isSilent: query.isSilent
        ) { lastID in
            var ask = Ask(.GET, "events").with("graph", query.graph)
            if !kinds.isEmpty { ask = ask.with("kind", kinds) }
            if !outcomes.isEmpty { ask = ask.with("outcome", outcomes) }
            if let lastID { ask.headers.add(name: "Last-Event-ID", value: lastID) }
            return ask
        }
        try await reader.open()
        return AsyncThrowingStream {
            try await reader.nextBatch()?.map { event in
                switch event.event {
                case "gap":
                    let gap = try JSONBytes.decode(GapBody.self, event.data)
                    return .gap(gap.first, gap.last)
                case "problem":
                    throw try JSONBytes.decode(Problem.self, event.data).error
                default:
                    let view =
                        try EventJSON.view(event.data)
                        ?? JSONBytes.decode(EventView.self, event.data)
                    return .event(SharedEvent(view))
                }
            }
        }
    }

    package func progress(of graph: String) async throws(ClientError) -> ProgressUpdates {
        try await updates { Ask(.GET, "graphs", graph, "progress") }
    }

    package func statusUpdates() async throws(ClientError) -> StatusUpdates {
        try await updates { Ask(.GET, "progress") }
    }

    private func updates<View: Decodable & Sendable>(
        _ ask: @escaping @Sendable () -> Ask
    ) async throws(ClientError) -> SharedUpdates<View> {
        let reader = StreamReader(self, lastID: nil) { _ in ask() }
        try await reader.open()
        return AsyncThrowingStream {
            // Each event replaces the one before.
            guard let event = try await reader.nextBatch()?.last else { return nil }
            if event.event == "problem" {
                throw try JSONBytes.decode(Problem.self, event.data).error
            }
            return SharedView(try JSONBytes.decode(View.self, event.data))
        }
    }

    package func log(
        of selector: LogSelector,
        _ query: LogQuery
    ) async throws(ClientError) -> AsyncThrowingStream<LogView, any Error> {
        let position = Mutex(LogPosition())
        let reader = StreamReader(self, lastID: nil) { _ in
            let ask =
                switch selector {
                case .operation(let operation): Ask(.GET, operation, "log")
                case .graph(let graph): Ask(.GET, "graphs", graph, "log")
                }
            // After a lost connection the stream begins anew. What was read is left out here.
            let tail = position.withLock { $0.isAtStart ? query.tail : nil }
            return ask.with("follow", query.follow ? true : nil).with("tail", tail)
                .with("since", query.since.map { TimeText($0) })
                .with("attempt", query.attempt)
                .with("repeated", query.repeated)
        }
        try await reader.open()
        return AsyncThrowingStream {
            while let event = try await reader.next() {
                switch event.event {
                case "end": return nil
                case "problem": throw try JSONBytes.decode(Problem.self, event.data).error
                default:
                    let log = try JSONBytes.decode(LogView.self, event.data)
                    if let new = position.withLock({ $0.new(in: log) }) { return new }
                }
            }
            return nil
        }
    }

    /// The error in a sentence that says what to do.
    func sentence(_ error: any Error) -> ClientError {
        let url = configuration.url
        if let error = error as? ClientError { return error }
        if isShutDown { return .closed }
        if error is CancellationError { return .givenUp }
        if Self.isCut(error) { return .cut(url) }
        if let error = error as? HTTPClientError {
            switch error {
            case .connectTimeout, .getConnectionFromPoolTimeout: return .nobody(url)
            case .deadlineExceeded, .readTimeout:
                return ClientError(
                    .timedOut,
                    "\(url) accepted the request and did not answer in time. The request may have "
                        + "been carried out: check with “operon status”."
                )
            case .cancelled, .requestStreamCancelled: return .givenUp
            case .writeTimeout: return .cut(url)
            case .tlsHandshakeTimeout: return .noTLS(url, "it did not answer to TLS")
            default: break
            }
        }
        if error is NIOSSLError || error is BoringSSLError || error is NIOSSLExtraError {
            return .noTLS(url, TLSWords.sentence("\(error)", of: "the coordinator"))
        }
        if let error = error as? NIOConnectionError, error.connectionErrors.isEmpty {
            return ClientError(
                .unreachable,
                "There is no machine “\(error.host)”: check the address \(url)."
            )
        }
        if let error = error as? IOError, error.errnoCode == EACCES {
            return ClientError(.forbidden, "\(url) is another user's: you may not connect to it.")
        }
        if error is NIOConnectionError || error is IOError || error is ChannelError {
            return .nobody(url)
        }
        return ClientError(
            .unreachable,
            "\(url) did not answer like a coordinator: check the address, and whether it needs "
                + "https."
        )
    }
}

extension ClientError {
    static func nobody(_ url: String) -> ClientError {
        ClientError(
            .unreachable,
            "Cannot connect to \(url): no coordinator answers. Start one with “operon up” or "
                + "“operon coordinator”, or give the address of another one."
        )
    }

    fileprivate static func cut(_ url: String) -> ClientError {
        ClientError(
            .unreachable,
            "The connection to \(url) broke before the answer came. The request may have been "
                + "carried out. Try again; with an idempotency key, a graph is submitted only once."
        )
    }

    fileprivate static func noTLS(_ url: String, _ why: String) -> ClientError {
        ClientError(
            .unreachable,
            "No TLS connection to \(url): \(why). Check the address, and the authority that "
                + "signed its certificate."
        )
    }
}

/// How far a client has read logs.
struct LogPosition: Sendable {
    private struct Place {
        var number: UInt32
        var next: UInt64
    }

    private var places: [OperationName: Place] = [:]

    /// Whether nothing was read.
    var isAtStart: Bool { places.isEmpty }

    /// The part of a view that was not read before; `nil`: all of it was.
    mutating func new(in log: LogView) -> LogView? {
        var log = log
        let end = log.offset &+ UInt64(log.bytes.count)
        if let place = places[log.operation] {
            guard log.number >= place.number else { return nil }
            if log.number == place.number {
                guard end > place.next else { return nil }
                if log.offset < place.next {
                    log.bytes.removeFirst(Int(place.next - log.offset))
                    log.offset = place.next
                }
                log.missedBytes = log.offset - place.next
            }
        }
        places[log.operation] = Place(number: log.number, next: end)
        return log
    }
}

/// Reads one stream. After a lost connection it opens the stream again at the same position.
actor StreamReader {
    private let client: HTTPCoordinatorClient
    private let ask: @Sendable (_ lastID: String?) -> HTTPCoordinatorClient.Ask
    private let isSilent: Bool
    private var body: HTTPClientResponse.Body.AsyncIterator?
    private var parser = ServerSentEventParser()
    private var events: ArraySlice<ServerSentEvent> = []
    private var lastID: String?
    private var generator = SystemRandomNumberGenerator()

    init(
        _ client: HTTPCoordinatorClient,
        lastID: String?,
        isSilent: Bool = false,
        _ ask: @escaping @Sendable (_ lastID: String?) -> HTTPCoordinatorClient.Ask
    ) {
        self.client = client
        self.lastID = lastID
        self.isSilent = isSilent
        self.ask = ask
    }

    func open() async throws(ClientError) {
        var ask = ask(lastID)
        ask.headers.add(name: "Accept", value: "text/event-stream")
        let response = try await client.response(to: ask, isStream: true)
        body = response.body.makeAsyncIterator()
        parser = ServerSentEventParser()
    }

    /// The events that have come by now, at least one. An error is a batch of its own, so that
    /// nothing before it is lost. `nil` if the task was cancelled.
    func nextBatch() async throws -> [ServerSentEvent]? {
        guard var batch = try await next().map({ [$0] }) else { return nil }
        while let event = events.first, batch[0].event != "problem", event.event != "problem" {
            events.removeFirst()
            if let id = event.id { lastID = id }
            if !event.isPosition { batch.append(event) }
        }
        return batch
    }

    /// `nil` if the task was cancelled.
    func next() async throws -> ServerSentEvent? {
        while !Task.isCancelled {
            if let event = events.popFirst() {
                if let id = event.id { lastID = id }
                if !event.isPosition { return event }
                continue
            }
            do {
                if let piece = try await piece() {
                    events = try parser.read(Array(piece.readableBytesView))[...]
                    continue
                }
            } catch is ServerSentEventParser.EventTooLarge {
                throw ClientError(.tooLarge, "An event is too large to be one.")
            } catch {
                if Task.isCancelled { return nil }
            }
            try await reopen()
        }
        return nil
    }

    private func piece() async throws -> ByteBuffer? {
        guard var iterator = body else { return nil }
        defer { body = iterator }
        return try await iterator.next(isolation: self)
    }

    private func reopen() async throws {
        guard !client.isShutDown else { throw ClientError.closed }
        let settings = client.configuration
        let start = ContinuousClock.now
        var pause = settings.pause
        body = nil
        var cause = "the connection was cut"
        while true {
            if !isSilent { settings.onLink(.cut(cause)) }
            let share = Double.random(in: 0.5...1, using: &generator)
            try await Task.sleep(for: pause * share)
            pause = min(pause * 2, settings.pauseMax)
            do throws(ClientError) {
                try await open()
                if !isSilent { settings.onLink(.restored) }
                return
            } catch {
                cause = error.message
                let isPassing = [.unreachable, .unavailable, .timedOut].contains(error.code)
                let time = ContinuousClock.now - start
                guard isPassing, settings.patience.map({ time < $0 }) ?? true else { throw error }
            }
        }
    }
}
