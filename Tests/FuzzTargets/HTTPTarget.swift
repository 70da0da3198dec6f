// It sees what is internal to the library; a release build for users does not.
#if DEBUG || OPERON_FUZZER
import HTTPTypes
import HummingbirdCore
import Logging
import NIOCore
import NIOEmbedded
import NIOHTTPTypes
import OperonGraphFile
import OperonModel
import OperonPorts

@testable import OperonHTTP

extension FuzzTarget {
    /// The bytes of a client's connection, with all handlers of the server and without a socket.
    /// The first byte chooses whether the server has tokens, and how the bytes are cut.
    ///
    /// Every answer is HTTP and none is a mistake of the server, and the answers do not depend on
    /// how the bytes are cut.
    static let http = FuzzTarget("http", bytesMax: 2_048) { bytes async throws in
        var input = InputReader(bytes)
        let choice = input.byte()
        let server = choice & 1 == 0 ? openServer : tokenServer
        let sent = input.remainder()
        let whole = try await answers(of: server, to: [sent[...]])
        for status in whole {
            try require(status != "500", "a request is answered by a mistake of the server")
        }
        guard choice & 2 != 0 else { return }
        let count = Int(choice >> 2) % 32 + 1
        let pieces = stride(from: 0, to: sent.count, by: count).map { sent[$0...].prefix(count) }
        let inPieces = try await answers(of: server, to: pieces)
        try require(whole == inPieces, "pieces are answered by \(inPieces), the whole by \(whole)")
    }

    /// The status of each answer.
    private static func answers(
        of server: HTTPServer,
        to pieces: [ArraySlice<UInt8>]
    ) async throws -> [String] {
        let channel = NIOAsyncTestingChannel()
        let logger = Logger(label: "fuzz") { _ in SwiftLogNoOpLogHandler() }
        let connection = server.connection
        let requests = try await channel.eventLoop.flatSubmit {
            connection.setup(channel: channel, logger: logger)
        }.get()
        try await channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).get()
        async let served: Void = connection.handle(value: requests, logger: logger)
        for piece in pieces where channel.isActive {
            // benign: it has closed the connection meanwhile.
            _ = try? await channel.writeInbound(ByteBuffer(bytes: piece))
        }
        channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        await served
        var text = ""
        while var bytes = try await channel.readOutbound(as: ByteBuffer.self) {
            text += bytes.readString(length: bytes.readableBytes) ?? ""
        }
        // benign: it throws what the handlers have caught.
        _ = try? await channel.finish(acceptAlreadyClosed: true)
        return try statuses(text)
    }

    private static func statuses(_ text: String) throws -> [String] {
        let start = "HTTP/1.1 "
        try require(text.isEmpty || text.hasPrefix(start), "an answer that is no HTTP: \(text)")
        return text.split(separator: "\r\n").filter { $0.hasPrefix(start) }.map { line in
            String(line.dropFirst(start.count).prefix(3))
        }
    }

    private static let openServer = server(AccessTokens())

    private static let tokenServer: HTTPServer = {
        var tokens = AccessTokens()
        tokens.add("ann", token: "0123456789abcdef", role: .operate)
        tokens.add("bob", token: "fedcba9876543210", role: .view)
        return server(tokens)
    }()

    private static func server(_ tokens: AccessTokens) -> HTTPServer {
        let good = HealthAnswer(isGood: true, text: "ok")
        do throws(HTTPServerError) {
            return HTTPServer(
                try HTTPServerConfiguration(
                    listen: .standard,
                    tokens: tokens,
                    allowsAnyUser: tokens.isEmpty
                ),
                codec: GraphFileCodec(),
                health: HTTPHealth(healthz: { good }, readyz: { good }, metrics: { "" }),
                logger: Logger(label: "fuzz") { _ in SwiftLogNoOpLogHandler() },
                wall: { WallTime(nanosecondsSince1970: 0) },
                client: { _ in EmptyCoordinator() }
            )
        } catch {
            preconditionFailure("a server on this machine is allowed: \(error)")
        }
    }
}
#endif
