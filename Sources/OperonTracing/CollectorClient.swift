import AsyncHTTPClient
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import OperonModel
import OperonSystem

/// Sends requests to a collector over OTLP, version 1, as Protocol Buffers over HTTP
/// (https://opentelemetry.io/docs/specs/otlp/#otlphttp).
struct CollectorClient: Sendable {
    /// Why a collector did not take a request.
    struct Refusal: Error {
        /// One line for a person, without secrets.
        let why: String
        /// Whether it may take the same request later.
        var isRetryable = true
        /// Whether it is there, and asks for the same request later.
        var isBusy = false
        /// When it wants the request again.
        var retryAfter: Duration?
    }

    private let settings: TracingSettings
    private let version: String
    private let client: HTTPClient

    private static let answerBytesMax = 64 << 10
    /// The answers after which OTLP has a client try again.
    private static let busyStatuses: Set<UInt> = [429, 502, 503, 504]

    /// - Throws: `TracingError` if a file of certificates cannot be read.
    init(_ settings: TracingSettings, version: String) throws(TracingError) {
        var configuration = HTTPClient.Configuration(
            tlsConfiguration: try Self.encryption(settings),
            redirectConfiguration: .disallow,
            timeout: .init(connect: TimeAmount(settings.timeout))
        )
        configuration.httpVersion = .http1Only
        // Whoever calls tries again.
        configuration.connectionPool.retryConnectionEstablishment = false
        client = HTTPClient(
            eventLoopGroupProvider: .shared(MultiThreadedEventLoopGroup.singleton),
            configuration: configuration
        )
        self.settings = settings
        self.version = version
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
            let why = SecretFile.problem(of: file) ?? "it is not in the format PEM"
            throw TracingError(message: "\(file) cannot be read: \(why): no spans are sent")
        }
    }

    /// Closes the connections.
    func close() async {
        // This only fails if it was closed before.
        try? await client.shutdown()
    }

    /// The body of a request, made once for all attempts.
    struct Body: Sendable {
        fileprivate let bytes: [UInt8]
        fileprivate let isCompressed: Bool
    }

    func body(of spans: [TraceSpan]) -> Body {
        let bytes = ExportRequest.encode(spans, resource: settings.resource, version: version)
        guard settings.compresses, let compressed = Gzip.compress(bytes) else {
            return Body(bytes: bytes, isCompressed: false)
        }
        return Body(bytes: compressed, isCompressed: true)
    }

    // MARK: - Posting

    /// - Returns: What the collector did not take; `nil`: it took everything.
    func post(_ body: Body) async throws(Refusal) -> ExportRequest.Rejection? {
        let answer: (status: UInt, retryAfter: Duration?, body: [UInt8])
        do {
            // The timeout of AsyncHTTPClient ends with the head of the answer.
            answer = try await withThrowingTaskGroup { group in
                group.addTask { try await send(body) }
                group.addTask { [settings] in
                    try await Task.sleep(for: settings.timeout)
                    throw HTTPClientError.deadlineExceeded
                }
                defer { group.cancelAll() }
                guard let answer = try await group.next() else { throw CancellationError() }
                return answer
            }
        } catch {
            throw Refusal(why: words(error))
        }
        guard (200..<300).contains(answer.status) else {
            let said = ExportRequest.refusal(in: answer.body).prefix(bytes: 256)
            let text = said.isEmpty ? "" : ": \(said)"
            let isBusy = Self.busyStatuses.contains(answer.status)
            throw Refusal(
                why: "the collector at \(settings.endpoint.shown) answered \(answer.status)\(text)",
                isRetryable: isBusy,
                isBusy: isBusy,
                retryAfter: answer.retryAfter
            )
        }
        // An answer that is no message says nothing.
        do { return try ExportRequest.rejection(in: answer.body) } catch { return nil }
    }

    private func send(
        _ body: Body
    ) async throws -> (status: UInt, retryAfter: Duration?, body: [UInt8]) {
        var request = HTTPClientRequest(url: settings.endpoint.text)
        request.method = .POST
        request.headers.add(name: "User-Agent", value: "operon/\(version)")
        for (name, value) in settings.headers {
            request.headers.replaceOrAdd(name: name, value: value)
        }
        request.headers.replaceOrAdd(name: "Content-Type", value: "application/x-protobuf")
        if body.isCompressed {
            request.headers.replaceOrAdd(name: "Content-Encoding", value: "gzip")
        }
        request.body = .bytes(ByteBuffer(bytes: body.bytes))
        let response = try await client.execute(request, timeout: TimeAmount(settings.timeout))
        let seconds = response.headers.first(name: "Retry-After").flatMap { UInt16($0) }
        var answer: [UInt8] = []
        for try await part in response.body {
            // The status alone counts then.
            guard answer.count + part.readableBytes <= Self.answerBytesMax else {
                answer = []
                break
            }
            answer += part.readableBytesView
        }
        return (response.status.code, seconds.map { .seconds(Int($0)) }, answer)
    }

    /// For people. Some errors of AsyncHTTPClient contain the request's headers, and those of TLS
    /// contain paths of the machine that built this program.
    private func words(_ error: any Error) -> String {
        let collector = "the collector at \(settings.endpoint.shown)"
        if error is CancellationError { return "\(collector) did not answer before the end" }
        if let error = error as? HTTPClientError {
            let late: [HTTPClientError] = [.deadlineExceeded, .connectTimeout, .readTimeout]
            return late.contains(error)
                ? "\(collector) did not answer in time"
                : "\(collector) did not answer (\(error.shortDescription))"
        }
        if error is NIOSSLError || error is BoringSSLError || error is NIOSSLExtraError {
            return TLSWords.sentence("\(error)", of: collector)
        }
        if let error = error as? IOError {
            return "\(collector) cannot be reached: \(SystemWords.text(of: error.errnoCode))"
        }
        if let error = error as? NIOConnectionError {
            let failed = error.connectionErrors.lazy.compactMap { $0.error as? IOError }.first
            let why = failed.map { SystemWords.text(of: $0.errnoCode) } ?? "its name is not known"
            return "\(collector) cannot be reached: \(why)"
        }
        return "\(collector) did not answer (\(type(of: error)))"
    }
}
