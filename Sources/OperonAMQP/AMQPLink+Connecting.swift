import Logging
import NIOCore
import NIOPosix
import NIOSSL
import OperonCore
import OperonSystem

extension AMQPLink {
    /// The most bytes that may wait in the kernel: about a second of a slow link, and enough for a
    /// fast one. A beat cannot overtake these bytes.
    private static var sendBufferBytes: Int32 { 256 << 10 }

    func connect(attempt: UInt64) {
        let address = configuration.address
        logger.debug("connecting", metadata: ["to": "\(address)"])
        let tls: NIOSSLContext?
        do {
            tls = try address.tls.map { try $0.context() }
        } catch {
            return handle(.failed(attempt: attempt, .notAllowed("TLS cannot be set up: \(error)")))
        }
        let bootstrap = ClientBootstrap(group: loop)
            .connectTimeout(.seconds(5))
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .channelOption(.socketOption(.so_sndbuf), value: .init(Self.sendBufferBytes))
            .channelOption(.maxMessagesPerRead, value: 16)
            .channelOption(
                .recvAllocator,
                value: AdaptiveRecvByteBufferAllocator(
                    minimum: 4 << 10,
                    initial: 64 << 10,
                    maximum: 256 << 10
                )
            )
            .channelOption(
                .writeBufferWaterMark,
                value: ChannelOptions.Types.WriteBufferWaterMark(low: 64 << 10, high: 256 << 10)
            )
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try self.addHandlers(to: channel, tls: tls, attempt: attempt)
                }
            }
        bootstrap.connect(host: address.host, port: address.port).whenComplete { result in
            switch result {
            case .success(let channel): self.connected(channel, attempt: attempt)
            case .failure(let error):
                self.handle(
                    .failed(
                        attempt: attempt,
                        .lost("\(address) cannot be reached: \(error.sentence)")
                    )
                )
            }
        }
    }

    /// Several sockets may be tried for one host name; the first one that connects becomes the
    /// connection.
    private func addHandlers(to channel: any Channel, tls: NIOSSLContext?, attempt: UInt64) throws {
        if let tls {
            let handler = try configuration.address.encryption(tls)
            try channel.pipeline.syncOperations.addHandler(handler)
        }
        let connection = try AMQPConnection(
            attempt: attempt,
            configuration: configuration,
            logger: logger,
            owner: self
        )
        try channel.pipeline.syncOperations.addHandler(connection)
    }

    private func connected(_ channel: any Channel, attempt: UInt64) {
        guard isCurrent(attempt),
            let connection = try? channel.pipeline.syncOperations.handler(
                type: AMQPConnection.self
            )
        else {
            // Harmless: the attempt was given up while it connected, or the socket is already
            // closed.
            channel.close(promise: nil)
            return
        }
        self.connection = connection
        connection.begin()
    }
}

extension Error {
    /// The error for a person: the system's own text if there is one, without wrapping errors.
    var sentence: String {
        switch self {
        case let system as IOError: SystemWords.text(of: system.errnoCode)
        case let connection as NIOConnectionError:
            connection.connectionErrors.first.map { $0.error.sentence }
                ?? "the host’s name is not known"
        case is NIOSSLError, is NIOSSLExtraError, is BoringSSLError:
            TLSWords.sentence("\(self)", of: "the broker")
        default: "\(self)"
        }
    }
}
