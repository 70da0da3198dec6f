import HummingbirdCore
package import Logging
import NIOCore
import NIOPosix
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

/// The coordinator's API over HTTP: `/v1`, its document, health and metrics.
///
/// The server has no knowledge of graphs. It identifies the caller, reads the request, calls a
/// `CoordinatorClient` in the name of the caller, and writes the answer.
package final class HTTPServer: Sendable {
    let context: Context
    let logger: Logger
    /// `nil`: without TLS, and before the server runs.
    let certificates = Mutex<Certificates?>(nil)
    /// What the files were like when they were last read.
    let stamps = Mutex(FileStamps())

    /// Everything that is needed to answer requests.
    struct Context: Sendable {
        fileprivate(set) var configuration: HTTPServerConfiguration
        let codec: any GraphCodec
        let health: HTTPHealth
        let wall: @Sendable () -> WallTime
        let client: @Sendable (_ callerName: String) -> any CoordinatorClient
        let tokens: TokenBook
        let streams: StreamTable
        let sessions = Sessions()
        let plans = GraphPlans()
        let bodies: BodyBudget
        fileprivate(set) var connections: Connections
        /// Shared by the server at the socket and the server of its page.
        fileprivate let pageAddress = PageAddress()

        /// Where the page beside a socket is; `nil`: there is none.
        var page: ListenAddress? { pageAddress.value.withLock { $0 } }
    }

    fileprivate final class PageAddress: Sendable {
        let value = Mutex<ListenAddress?>(nil)
    }

    /// - Parameters:
    ///   - wall: the calendar, by which tokens expire and entries of the audit have their time.
    ///   - client: the coordinator for a caller with this name; the name is empty if no token was
    ///     needed.
    package init(
        _ configuration: HTTPServerConfiguration,
        codec: any GraphCodec,
        health: HTTPHealth,
        logger: Logger,
        wall: @escaping @Sendable () -> WallTime,
        client: @escaping @Sendable (_ callerName: String) -> any CoordinatorClient
    ) {
        context = Context(
            configuration: configuration,
            codec: codec,
            health: health,
            wall: wall,
            client: client,
            tokens: configuration.book ?? TokenBook(configuration.tokens, now: wall),
            streams: StreamTable(maximum: configuration.limits.streams),
            bodies: BodyBudget(bytesMax: configuration.limits.bodyBytesInAll),
            connections: Connections(configuration.limits)
        )
        self.logger = logger
    }

    /// The page beside the socket of a server. Both have the same sessions, and stop together. Its
    /// connections are counted apart, so that strangers cannot take those of the socket.
    private init(pageOf server: HTTPServer, at port: Int) {
        var context = server.context
        context.configuration = context.configuration.ofPage(at: port)
        context.connections = Connections(context.configuration.limits)
        self.context = context
        logger = server.logger
    }

    /// Where the page beside the socket is; `nil`: there is none.
    package var page: ListenAddress? { context.page }

    /// Serves until `stop`, or until the task is cancelled.
    /// - Parameter onListening: called once with the address on which the server listens. A page
    ///   beside it has its address by then.
    package func run(
        onListening: @escaping @Sendable (ListenAddress) async -> Void = { _ in }
    ) async throws(HTTPServerError) {
        guard context.configuration.hasPage else { return try await serve(onListening) }
        let (listening, continuation) = AsyncStream<Never>.makeStream()
        async let page: Void = servePage(whenReady: { continuation.finish() })
        for await _ in listening {}
        let problem: HTTPServerError?
        do throws(HTTPServerError) {
            try await serve(onListening)
            problem = nil
        } catch {
            problem = error
        }
        stop()
        await page
        if let problem { throw problem }
    }

    /// Serves the page beside the socket. Without it, the commands still work.
    private func servePage(whenReady: @escaping @Sendable () -> Void) async {
        do throws(HTTPServerError) {
            let listening: @Sendable (ListenAddress) async -> Void = { address in
                self.context.pageAddress.value.withLock { $0 = address }
                whenReady()
            }
            let last = context.configuration.pagePort
            do throws(HTTPServerError) {
                try await HTTPServer(pageOf: self, at: last ?? 0).serve(listening)
            } catch {
                // Somebody else has the port, or it may not be used any more.
                guard last != nil, error.code != .ended else { throw error }
                try await HTTPServer(pageOf: self, at: 0).serve(listening)
            }
        } catch {
            let reason = Logger.MetadataValue.string(error.message)
            logger.warning("there is no page for browsers", metadata: ["reason": reason])
        }
        context.pageAddress.value.withLock { $0 = nil }
        whenReady()
    }

    private func serve(
        _ onListening: @escaping @Sendable (ListenAddress) async -> Void
    ) async throws(HTTPServerError) {
        guard let files = context.configuration.tls else {
            return try await serve(connection, onListening)
        }
        let made = try Certificates(files)
        certificates.withLock { $0 = made }
        try await serve(SecuredChannel(base: connection, certificates: made), onListening)
    }

    /// Reads the requests of one connection, and answers them.
    var connection: HTTP1Channel {
        HTTP1Channel(
            responder: Responder(context: context, logger: logger).respond,
            configuration: channelConfiguration
        )
    }

    /// Accepts no more connections, ends every stream, and lets current answers finish.
    package func stop() { context.streams.end() }

    /// The number of current readers of streams.
    package var streamCount: Int { context.streams.count }

    /// The number of open connections.
    package var connectionCount: Int { context.connections.count }

    /// The number of bytes of bodies in memory.
    package var bodyBytes: Int { context.bodies.count }

    private var channelConfiguration: HTTP1Channel.Configuration {
        let limits = context.configuration.limits
        let connections = context.connections
        let isLocal = context.configuration.listen.tcp == nil
        return HTTP1Channel.Configuration(
            additionalChannelHandlers: [
                ConnectionGuard(connections, headTime: limits.headTime, isLocal: isLocal),
                RefusalHandler(),
            ],
            idleTimeout: TimeAmount(limits.idleTime),
            httpDecoderConfiguration: .init(
                maxHeaderFieldSize: limits.headerBytes,
                maxHeaderListSize: limits.headerBytes,
                maxHeaderFieldCount: limits.headerFields
            )
        )
    }

    private func serve<Child: ServerChildChannel>(
        _ child: Child,
        _ onListening: @escaping @Sendable (ListenAddress) async -> Void
    ) async throws(HTTPServerError) {
        switch context.configuration.listen {
        case .socket(let path):
            let file = try SocketFile(taking: path)
            defer { file.remove() }
            let problem = Mutex<HTTPServerError?>(nil)
            try await run(child, at: .unixDomainSocket(path: path)) { _ in
                do throws(HTTPServerError) {
                    try file.protect()
                } catch {
                    problem.withLock { $0 = error }
                    return self.stop()
                }
                await onListening(.socket(path))
            }
            if let problem = problem.withLock({ $0 }) { throw problem }
        case .tcp(let listen):
            let isExposed = Mutex(false)
            try await run(child, at: .hostname(listen.host, port: listen.port)) { address in
                // A host name may stand for an address that other machines can reach.
                if listen.isLoopback, address?.isLoopback == false {
                    isExposed.withLock { $0 = true }
                    return self.stop()
                }
                let port = address?.port ?? listen.port
                await onListening(.tcp(HTTPAddress(host: listen.host, port: port)))
            }
            guard !isExposed.withLock({ $0 }) else {
                throw HTTPServerError(
                    .unsafe,
                    "\(listen.host) stands for an address that other machines reach: listen on "
                        + "127.0.0.1."
                )
            }
        }
    }

    private func run<Child: ServerChildChannel>(
        _ child: Child,
        at address: BindAddress,
        _ onListening: @escaping @Sendable (SocketAddress?) async -> Void
    ) async throws(HTTPServerError) {
        let listen = context.configuration.listen
        let hasListened = Mutex(false)
        let (closed, closing) = AsyncStream<Never>.makeStream()
        let server = Server(
            childChannelSetup: child,
            configuration: ServerConfiguration(
                address: address,
                availableConnectionsDelegate: MaximumAvailableConnections(
                    context.connections.socketsMax,
                    logger: logger
                )
            ),
            onServerRunning: { channel in
                hasListened.withLock { $0 = true }
                channel.closeFuture.whenComplete { _ in closing.finish() }
                await onListening(channel.localAddress)
            },
            eventLoopGroup: MultiThreadedEventLoopGroup.singleton,
            logger: Logger(label: logger.label) { _ in ServerLog(logger) }
        )
        do {
            try await serve(server, until: closed)
        } catch {
            if hasListened.withLock({ $0 }) {
                throw HTTPServerError(
                    .ended,
                    "The API does not listen on \(listen) any more: start the coordinator again."
                )
            }
            if let error = error as? IOError { throw Self.sentence(error, listen) }
            throw HTTPServerError(.bind, "The API cannot listen on \(listen): \(error).")
        }
    }

    private struct ListeningEnded: Error {}

    private enum Part: Sendable {
        case served
        case closed
        case askedToStop
        case shutDown
        case timeIsOver
    }

    /// - Parameter closed: Ends when the server listens no more. Its streams may go on for ever.
    /// - Throws: `ListeningEnded` if nobody has asked for that.
    private func serve<Child>(
        _ server: Server<Child>,
        until closed: AsyncStream<Never>
    ) async throws {
        let streams = context.streams
        let stopTime = context.configuration.limits.stopTime
        try await withThrowingTaskGroup(of: Part.self) { group in
            group.addTask {
                try await server.run()
                return .served
            }
            group.addTask {
                await streams.untilEnd()
                return .askedToStop
            }
            group.addTask {
                for await _ in closed {}
                return .closed
            }
            var isStopping = false
            for try await part in group {
                switch part {
                case .served, .closed:
                    guard isStopping || Task.isCancelled else { throw ListeningEnded() }
                    if part == .served { group.cancelAll() }
                case .askedToStop:
                    isStopping = true
                    streams.end()
                    group.addTask {
                        try await server.shutdownGracefully()
                        return .shutDown
                    }
                    group.addTask {
                        try? await Task.sleep(for: stopTime)
                        return .timeIsOver
                    }
                case .shutDown: continue
                case .timeIsOver: group.cancelAll()
                }
            }
        }
    }

    private static func sentence(_ error: IOError, _ listen: ListenAddress) -> HTTPServerError {
        switch error.errnoCode {
        case EADDRINUSE:
            HTTPServerError(
                .addressInUse,
                "\(listen) is in use, by another coordinator perhaps: stop it, or give another "
                    + "address with --listen."
            )
        case EACCES:
            HTTPServerError(
                .bind,
                listen.tcp == nil
                    ? "This user may not listen on \(listen): use a directory of your own."
                    : "This user may not listen on \(listen): use a port from 1024 up."
            )
        case EADDRNOTAVAIL:
            HTTPServerError(
                .bind,
                "\(listen) is not an address of this machine."
            )
        default: HTTPServerError(.bind, "The API cannot listen on \(listen): \(error).")
        }
    }
}

/// Counts the bytes of bodies in memory. Many large bodies at the same time are refused before they
/// can take all memory.
final class BodyBudget: Sendable {
    private let bytesMax: Int
    private let bytes = Mutex(0)

    init(bytesMax: Int) { self.bytesMax = bytesMax }

    func take(_ count: Int) -> Bool {
        bytes.withLock { bytes in
            guard bytes + count <= bytesMax else { return false }
            bytes += count
            return true
        }
    }

    func give(_ count: Int) { bytes.withLock { $0 -= count } }

    var count: Int { bytes.withLock { $0 } }
}
