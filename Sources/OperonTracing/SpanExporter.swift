import AsyncHTTPClient
import DequeModule
import NIOConcurrencyHelpers
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
package import OperonModel
import OperonPorts

/// Sends spans to a collector over OTLP, version 1, as Protocol Buffers over HTTP
/// (https://opentelemetry.io/docs/specs/otlp/#otlphttp).
///
/// Whoever makes spans waits for nothing: spans that a slow collector leaves no room for are
/// dropped, and counted.
package final class SpanExporter: SpanSink {
    private struct State {
        var waiting = Deque<TraceSpan>()
        var dropped = 0
        /// Whether a wake-up is due for what waits.
        var isDue = false
        /// Whether the last request was lost.
        var isInTrouble = false
        var hasEnded = false
    }

    private let state = NIOLockedValueBox(State())
    private let settings: TracingSettings
    private let version: String
    private let client: HTTPClient
    private let sender: NIOLockedValueBox<Task<Void, Never>?>
    private let wakes: AsyncStream<Void>
    private let waker: AsyncStream<Void>.Continuation
    private let warn: @Sendable (String) -> Void

    /// How long `end` waits for a collector.
    private static let farewell = Duration.seconds(5)
    private static let answerBytesMax = 64 << 10
    /// Pauses before a request is sent again: twice as long each time, up to the maximum.
    private static let pause = Duration.milliseconds(500)
    private static let pauseMax = Duration.seconds(5)

    /// Starts sending. `end` must be called.
    ///
    /// - Parameter warn: Gets a sentence when spans are lost, and when they are sent again.
    /// - Throws: `TracingError` if a file of certificates cannot be read.
    package init(
        _ settings: TracingSettings,
        version: String,
        warn: @escaping @Sendable (String) -> Void
    ) throws(TracingError) {
        var configuration = HTTPClient.Configuration(
            tlsConfiguration: try Self.encryption(settings),
            redirectConfiguration: .disallow,
            timeout: .init(connect: TimeAmount(settings.timeout))
        )
        configuration.httpVersion = .http1Only
        // The pauses are those of `send`.
        configuration.connectionPool.retryConnectionEstablishment = false
        client = HTTPClient(
            eventLoopGroupProvider: .shared(MultiThreadedEventLoopGroup.singleton),
            configuration: configuration
        )
        self.settings = settings
        self.version = version
        self.warn = warn
        (wakes, waker) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        sender = NIOLockedValueBox(nil)
        let task = Task(priority: .utility) { await run() }
        sender.withLockedValue { $0 = task }
    }

    private static func encryption(
        _ settings: TracingSettings
    ) throws(TracingError) -> TLSConfiguration {
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.minimumTLSVersion = .tlsv12
        if let file = settings.certificateAuthority {
            tls.trustRoots = .certificates(
                try read(file) { try NIOSSLCertificate.fromPEMFile($0) }
            )
        }
        if let file = settings.clientCertificate {
            tls.certificateChain = try read(file) {
                try NIOSSLCertificate.fromPEMFile($0).map { .certificate($0) }
            }
        }
        if let file = settings.clientKey {
            tls.privateKey = .privateKey(
                try read(file) { try NIOSSLPrivateKey(file: $0, format: .pem) }
            )
        }
        return tls
    }

    private static func read<Value>(
        _ file: String,
        _ read: (String) throws -> Value
    ) throws(TracingError) -> Value {
        do {
            return try read(file)
        } catch {
            throw TracingError(message: "\(file) cannot be read as PEM: no spans are sent")
        }
    }

    // MARK: - Taking

    package var linksMax: Int { settings.linksMax }

    package func isSampled(_ trace: TraceContext.TraceID, parent: TraceContext?) -> Bool {
        settings.sampler.isSampled(trace, parent: parent)
    }

    package func take(_ spans: [TraceSpan]) {
        let isFirst = state.withLockedValue { state in
            let room = state.hasEnded ? 0 : settings.queueMax - state.waiting.count
            state.waiting.append(contentsOf: spans.prefix(room))
            state.dropped += max(0, spans.count - room)
            if state.waiting.count >= settings.batchMax { waker.yield() }
            guard !state.isDue, !state.waiting.isEmpty else { return false }
            state.isDue = true
            return true
        }
        if isFirst { wakeLater() }
    }

    private func wakeLater() {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        _ = loop.scheduleTask(in: TimeAmount(settings.pause)) { [waker] in _ = waker.yield() }
    }

    // MARK: - Sending

    /// Sends what waits, for a few seconds at most, and stops.
    package func end() async {
        state.withLockedValue { $0.hasEnded = true }
        waker.finish()
        let task = sender.withLockedValue { $0 }
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await task?.value }
            group.addTask {
                // Cancelled: everything was sent.
                do { try await Task.sleep(for: Self.farewell) } catch { return }
                task?.cancel()
            }
            await group.next()
            group.cancelAll()
        }
        let left = state.withLockedValue { $0.waiting.count + $0.dropped }
        if left > 0 { warn("\(Self.count(left)) could not be sent to the collector \(place)") }
        // This only fails if it was shut down before.
        try? await client.shutdown()
    }

    private func run() async {
        for await _ in wakes {
            repeat { await send(takeBatch()) } while isFull && !Task.isCancelled
            rearm()
        }
        // Nothing is added any more.
        while !Task.isCancelled {
            let batch = takeBatch()
            if batch.isEmpty { return }
            await send(batch)
        }
    }

    private var isFull: Bool { state.withLockedValue { $0.waiting.count >= settings.batchMax } }

    private func takeBatch() -> [TraceSpan] {
        state.withLockedValue { state in
            let count = min(settings.batchMax, state.waiting.count)
            let batch = Array(state.waiting.prefix(count))
            state.waiting.removeFirst(count)
            return batch
        }
    }

    /// What came meanwhile, less than a request, is sent after its own pause.
    private func rearm() {
        let isDue = state.withLockedValue { state in
            state.isDue = !state.waiting.isEmpty
            return state.isDue
        }
        if isDue { wakeLater() }
    }

    private func send(_ batch: [TraceSpan]) async {
        guard !batch.isEmpty else { return }
        let body = ExportRequest.encode(batch, resource: settings.resource, version: version)
        let end = ContinuousClock.now + settings.patience
        var pause = Self.pause
        while true {
            let refusal: Refusal
            do throws(Refusal) {
                return took(try await post(body))
            } catch {
                refusal = error
            }
            let wait = refusal.retryAfter ?? pause * Double.random(in: 0.5...1)
            // A program that ends waits for an answer, but not for a better one.
            let isLast = state.withLockedValue { $0.hasEnded }
            guard refusal.isPassing, !isLast, ContinuousClock.now + wait < end else {
                return lost(batch.count, refusal.why)
            }
            // Cancelled: the time for the last requests is over.
            do { try await Task.sleep(for: wait) } catch { return lost(batch.count, refusal.why) }
            pause = min(pause * 2, Self.pauseMax)
        }
    }

    /// Why a collector did not take a request.
    private struct Refusal: Error {
        let why: String
        /// Whether it may take the same request later.
        var isPassing = true
        /// When the collector wants it again.
        var retryAfter: Duration?
    }

    /// The answers after which OTLP has a client try again.
    private static let passingStatuses: Set<UInt> = [429, 502, 503, 504]

    private func post(_ body: [UInt8]) async throws(Refusal) -> ExportRequest.Rejection? {
        var request = HTTPClientRequest(url: settings.endpoint)
        request.method = .POST
        request.headers.add(name: "User-Agent", value: "operon/\(version)")
        for (name, value) in settings.headers {
            request.headers.replaceOrAdd(name: name, value: value)
        }
        request.headers.replaceOrAdd(name: "Content-Type", value: "application/x-protobuf")
        request.body = .bytes(ByteBuffer(bytes: body))
        let response: HTTPClientResponse
        let answer: [UInt8]
        do {
            response = try await client.execute(request, timeout: TimeAmount(settings.timeout))
            let bytes = try await response.body.collect(upTo: Self.answerBytesMax)
            answer = Array(bytes.readableBytesView)
        } catch {
            throw Refusal(why: Self.words(error))
        }
        guard (200..<300).contains(response.status.code) else {
            var refusal = Refusal(why: "it answered \(response.status.code)")
            refusal.isPassing = Self.passingStatuses.contains(response.status.code)
            let seconds = response.headers.first(name: "Retry-After").flatMap { UInt16($0) }
            refusal.retryAfter = seconds.map { .seconds(Int($0)) }
            throw refusal
        }
        // An answer that is no message says nothing.
        do { return try ExportRequest.rejection(in: answer) } catch { return nil }
    }

    /// Some errors of AsyncHTTPClient contain the request's headers, which may be secrets.
    private static func words(_ error: any Error) -> String {
        switch error {
        case let error as HTTPClientError where error == .deadlineExceeded:
            "it did not answer in time"
        case let error as HTTPClientError: "\(error.shortDescription)"
        case let error as NIOConnectionError:
            error.connectionErrors.first.map { "\($0.error)" } ?? "it cannot be reached"
        case let error as IOError: "\(error)"
        case is NIOSSLError, is BoringSSLError: "the encryption failed: \(error)"
        default: "the request failed: \(type(of: error))"
        }
    }

    // MARK: - Words

    private func took(_ rejection: ExportRequest.Rejection?) {
        if let rejection {
            let why = rejection.why.isEmpty ? "" : ": \(rejection.why.prefix(bytes: 256))"
            warn("the collector \(place) did not take \(Self.count(rejection.count))\(why)")
        }
        let lost = state.withLockedValue { state in
            defer { (state.isInTrouble, state.dropped) = (false, 0) }
            return state.isInTrouble || state.dropped > 0 ? state.dropped : nil
        }
        guard let lost else { return }
        warn("the collector \(place) takes spans again; \(Self.count(lost)) were lost")
    }

    private func lost(_ count: Int, _ why: String) {
        let isNew = state.withLockedValue { state in
            state.dropped += count
            defer { state.isInTrouble = true }
            return !state.isInTrouble
        }
        if isNew { warn("spans are lost: the collector \(place): \(why)") }
    }

    private static func count(_ spans: Int) -> String { spans == 1 ? "1 span" : "\(spans) spans" }

    /// The endpoint without what may be secret: a login, and parameters.
    private var place: String {
        let address = settings.endpoint.prefix { $0 != "?" && $0 != "#" }
        guard let scheme = address.firstRange(of: "://") else { return "" }
        let rest = address[scheme.upperBound...]
        let authority = rest.prefix { $0 != "/" }
        guard let login = authority.lastIndex(of: "@") else { return String(address) }
        return String(address[..<scheme.upperBound] + rest[rest.index(after: login)...])
    }
}
