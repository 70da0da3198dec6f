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

/// A coordinator in another process, reached over its HTTP API.
///
/// `shutDown` ends it. A debug build stops if a client is released without it.
package final class HTTPCoordinatorClient: CoordinatorClient {
    let configuration: Configuration
    let codec: any GraphCodec
    private let url: CoordinatorURL
    /// Has no limit on silence, because a command may wait for an hour.
    private let calls: HTTPClient
    /// Treats silence as a dead connection, because a stream sends something every 15 s.
    private let streams: HTTPClient
    private let ending = Mutex(false)
    /// Read from the file, and used until a coordinator does not know it.
    private let ownToken = Mutex(Secret<String?>(wrappedValue: nil))

    package struct Configuration: Sendable {
        /// `unix:PATH`, `http://HOST:PORT` or `https://…`; without a port, 7350.
        package var url: String
        @Secret package var token: String?
        /// The file with this user's token, which the coordinator creates at its first start.
        /// `nil`: use only `token`.
        var tokenFile: String?
        /// A PEM file with the certificates that may vouch for the coordinator's certificate;
        /// `nil`: those of the system.
        package var certificateAuthority: String?
        package var connectTime = Duration.seconds(5)
        /// The time for the answer to a call, in addition to the time that the call may wait.
        package var answerTime = Duration.seconds(60)
        /// The time for the answer to a submission.
        package var submitTime = Duration.seconds(600)
        /// The time for a copy of the store, which takes about as long as copying a file of its
        /// size.
        package var backupTime = Duration.seconds(86_400)
        /// The silence after which a stream is opened again.
        package var silence = Duration.seconds(60)
        /// How long to try to open a lost stream again; `nil`: forever.
        package var patience: Duration? = .seconds(300)
        /// The first pause before a lost stream is opened again. Each further pause is twice as
        /// long, up to `pauseMax`. A random part of up to a half is subtracted, so that many
        /// clients do not return at the same time.
        package var pause = Duration.milliseconds(100)
        package var pauseMax = Duration.seconds(10)
        /// Called when a stream is lost and when it is restored.
        package var onLink: @Sendable (Link) -> Void = { _ in }

        package init(url: String, token: String? = nil) {
            self.url = url
            self.token = token
        }

        /// The defaults: the socket of this user's coordinator and, for loopback addresses, this
        /// user's token.
        ///
        /// - Parameter url: `nil`: the socket.
        /// - Parameter environment: gives the location of both.
        /// - Throws: an error if nothing gives the location of the socket, or if others can read
        ///   the token.
        package init(
            url: String?,
            token: String?,
            environment: [String: String]
        ) throws(ClientError) {
            guard let url = url ?? StateFolder.socket(environment).map({ "unix:" + $0 }) else {
                throw ClientError(
                    .invalid,
                    "Neither XDG_STATE_HOME nor HOME says where your coordinator's socket is: name "
                        + "the coordinator's URL."
                )
            }
            self.init(url: url, token: token)
            guard token == nil, case .tcp(let address) = try CoordinatorURL(url).address,
                address.isLoopback, let file = StateFolder.token(environment)
            else { return }
            tokenFile = file
            _ = try ownToken()
        }

        /// The current token in the file; `nil` if there is none.
        package func ownToken() throws(ClientError) -> String? {
            guard let tokenFile else { return nil }
            do throws(HTTPServerError) {
                return try OwnToken.load(tokenFile)
            } catch {
                throw ClientError(.invalid, error.message)
            }
        }
    }

    package enum Link: Hashable, Sendable {
        /// The stream was lost, and why.
        case cut(String)
        case restored
    }

    /// - Throws: an error if the URL is not valid, a token would be sent without encryption, or a
    ///   file of certificates cannot be read.
    package init(_ configuration: Configuration, codec: any GraphCodec) throws(ClientError) {
        var configuration = configuration
        let url = try CoordinatorURL(configuration.url)
        configuration.url = url.description
        if configuration.token != nil, !url.isSecure, let host = url.address.tcp,
            !host.isLoopback
        {
            throw ClientError(
                .invalid,
                "The token would be sent to \(host.host) in the clear: use https://."
            )
        }
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.minimumTLSVersion = .tlsv12
        if let file = configuration.certificateAuthority {
            do {
                tls.trustRoots = .certificates(try NIOSSLCertificate.fromPEMFile(file))
            } catch {
                let why = SecretFile.problem(of: file) ?? "it has none in PEM"
                throw ClientError(.invalid, "The certificates in \(file) cannot be read: \(why).")
            }
        }
        self.configuration = configuration
        self.codec = codec
        self.url = url
        calls = Self.client(tls, configuration, silence: nil)
        streams = Self.client(tls, configuration, silence: configuration.silence)
    }

    private static func client(
        _ tls: TLSConfiguration,
        _ configuration: Configuration,
        silence: Duration?
    ) -> HTTPClient {
        var settings = HTTPClient.Configuration(
            tlsConfiguration: tls,
            redirectConfiguration: .disallow,
            timeout: .init(
                connect: TimeAmount(configuration.connectTime),
                read: silence.map { TimeAmount($0) }
            )
        )
        settings.httpVersion = .http1Only
        // The coordinator closes connections that are idle for a minute. Do not use one that it may
        // be closing.
        settings.connectionPool.idleTimeout = .seconds(20)
        // Report at once that no coordinator is there; callers that wait try again themselves.
        settings.connectionPool.retryConnectionEstablishment = false
        return HTTPClient(
            eventLoopGroupProvider: .shared(MultiThreadedEventLoopGroup.singleton),
            configuration: settings
        )
    }

    /// Closes the connections. Calls in progress and open streams end with `ClientError.closed`.
    package func shutDown() async {
        ending.withLock { $0 = true }
        // This only fails if it was shut down before.
        try? await calls.shutdown()
        try? await streams.shutdown()
    }

    var isShutDown: Bool { ending.withLock { $0 } }

    // MARK: - Asking

    struct Ask: Sendable {
        var method: HTTPMethod = .GET
        var path: String
        var query: [(name: String, value: String)] = []
        var headers = HTTPHeaders()
        var body: HTTPClientRequest.Body?
        /// `nil`: no limit.
        var time: Duration?

        init(_ method: HTTPMethod, _ path: String...) {
            self.method = method
            self.path = "/v1/" + path.map(PercentText.encode).joined(separator: "/")
        }

        init(_ method: HTTPMethod, _ operation: OperationSelector, _ path: String...) {
            self.method = method
            let names = ["graphs", operation.graph, "operations", operation.operation] + path
            self.path = "/v1/" + names.map(PercentText.encode).joined(separator: "/")
        }

        init(_ method: HTTPMethod, _ target: TargetSelector, _ verb: String) {
            switch target {
            case .operation(let operation): self.init(method, operation, verb)
            case .graph(let graph): self.init(method, "graphs", graph, verb)
            case .queue(let queue): self.init(method, "queues", queue, verb)
            }
        }

        func with(_ name: String, _ value: (some CustomStringConvertible)?) -> Ask {
            var ask = self
            if let value { ask.query.append((name, value.description)) }
            return ask
        }

        func with(
            _ name: String,
            json value: some Encodable
        ) throws(ClientError) -> Ask {
            with(name, String(decoding: try Self.line(value), as: UTF8.self))
        }

        private static func line(_ value: some Encodable) throws(ClientError) -> [UInt8] {
            do {
                return try JSONBytes.line(value)
            } catch {
                throw ClientError(.invalid, "What was asked cannot be said in JSON: \(error).")
            }
        }

        func with(json value: some Encodable) throws(ClientError) -> Ask {
            var ask = self
            ask.body = .bytes(ByteBuffer(bytes: try Self.line(value)))
            ask.headers.replaceOrAdd(name: "Content-Type", value: "application/json")
            return ask
        }

        /// Adds the headers of a submission.
        func with(key: String?, traceParent: String?) -> Ask {
            var ask = self
            if let key { ask.headers.add(name: "Idempotency-Key", value: key) }
            if let traceParent { ask.headers.add(name: "traceparent", value: traceParent) }
            return ask
        }

        func within(_ time: Duration) -> Ask {
            var ask = self
            ask.time = time
            return ask
        }
    }

    func value<Value: Decodable>(
        _ ask: Ask,
        _ type: Value.Type = Value.self
    ) async throws(ClientError) -> Value {
        let bytes = try await bytes(of: try await response(to: ask))
        do {
            return try JSONBytes.decode(type, bytes)
        } catch {
            throw ClientError(
                .internal,
                "This program cannot read the answer of \(configuration.url)"
                    + "\(Self.place(of: error)): use a coordinator and a client of the same "
                    + "version."
            )
        }
    }

    /// The field of an answer that could not be read, such as ` (graphs.0.counts)`; empty: none is
    /// known. What a library says of it is nothing for users.
    private static func place(of error: any Error) -> String {
        var path: [any CodingKey] = []
        switch error as? DecodingError {
        case .typeMismatch(_, let context), .valueNotFound(_, let context),
            .dataCorrupted(let context):
            path = context.codingPath
        case .keyNotFound(let key, let context): path = context.codingPath + [key]
        default: break
        }
        let names = path.map { $0.intValue.map(String.init) ?? $0.stringValue }
        return names.isEmpty ? "" : " (\(names.joined(separator: ".")))"
    }

    /// The response, if it is not an error.
    func response(
        to ask: Ask,
        isStream: Bool = false
    ) async throws(ClientError) -> HTTPClientResponse {
        try url.check()
        var request = HTTPClientRequest(url: url.base + ask.path + ask.queryText)
        request.method = ask.method
        request.headers = ask.headers
        // A Unix socket has no host name.
        if url.address.tcp == nil { request.headers.add(name: "Host", value: "localhost") }
        request.headers.add(name: "User-Agent", value: "operon")
        if !request.headers.contains(name: "Accept") {
            request.headers.add(name: "Accept", value: "application/json")
        }
        if let token = try token() {
            request.headers.add(name: "Authorization", value: "Bearer \(token)")
        }
        request.body = ask.body
        let deadline = NIODeadline.now() + TimeAmount(ask.time ?? configuration.answerTime)
        let client = isStream ? streams : calls
        let response: HTTPClientResponse
        do {
            response = try await execute(client, request, isStream ? .distantFuture : deadline)
        } catch {
            throw sentence(error)
        }
        guard (200..<300).contains(response.status.code) else {
            if response.status == .unauthorized {
                ownToken.withLock { $0.wrappedValue = nil }
            }
            throw await problem(response)
        }
        return response
    }

    private func token() throws(ClientError) -> String? {
        let known = ownToken.withLock { $0.wrappedValue }
        if let known = configuration.token ?? known { return known }
        let token = try configuration.ownToken()
        ownToken.withLock { $0.wrappedValue = token }
        return token
    }

    /// The other side may just have closed a kept connection, and the next one too. Requests that
    /// change nothing are sent again.
    private func execute(
        _ client: HTTPClient,
        _ request: HTTPClientRequest,
        _ deadline: NIODeadline
    ) async throws -> HTTPClientResponse {
        for _ in 1..<Self.triesMax {
            do {
                return try await client.execute(request, deadline: deadline)
            } catch let error where request.method == .GET && Self.isCut(error) {
                continue
            }
        }
        return try await client.execute(request, deadline: deadline)
    }

    private static let triesMax = 4

    /// Whether the connection existed and was then lost.
    static func isCut(_ error: any Error) -> Bool {
        if let error = error as? HTTPClientError { return error == .remoteConnectionClosed }
        if let error = error as? ChannelError {
            let cuts: [ChannelError] = [
                .ioOnClosedChannel, .alreadyClosed, .outputClosed, .inputClosed, .eof,
            ]
            return cuts.contains(error)
        }
        guard let error = error as? IOError else { return false }
        return error.errnoCode == ECONNRESET || error.errnoCode == EPIPE
    }

    func bytes(of response: HTTPClientResponse) async throws(ClientError) -> [UInt8] {
        var bytes: [UInt8] = []
        do {
            for try await piece in response.body {
                bytes += piece.readableBytesView
                guard bytes.count <= Self.answerBytesMax else {
                    throw ClientError(.tooLarge, "The answer is too large: ask for less at once.")
                }
            }
        } catch {
            throw sentence(error)
        }
        return bytes
    }

    /// The most bytes of an answer: a page of the largest size.
    private static let answerBytesMax = 256 << 20

    private func problem(_ response: HTTPClientResponse) async -> ClientError {
        let bytes = (try? await bytes(of: response)) ?? []
        if let problem = try? JSONBytes.decode(Problem.self, bytes) { return problem.error }
        let status = response.status
        return ClientError(
            Problem.code(of: Int(status.code)),
            "\(configuration.url) answered “\(status.code) \(status.reasonPhrase)”, unlike a "
                + "coordinator: check the address."
        )
    }
}

extension HTTPCoordinatorClient.Ask {
    var queryText: String {
        guard !query.isEmpty else { return "" }
        return "?"
            + query.map { PercentText.encode($0.name) + "=" + PercentText.encode($0.value) }
            .joined(separator: "&")
    }
}
