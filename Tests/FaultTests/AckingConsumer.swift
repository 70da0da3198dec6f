import Foundation
import NIOCore
import NIOPosix
import OperonFaultKit

@testable import OperonAMQP

/// A consumer as most are: it acknowledges what it has worked off. This one takes a message and
/// never does.
final class AckingConsumer: ChannelInboundHandler, FrameSink {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let codec: AMQPCodec
    private let ended: EventLoopPromise<CloseReason>
    private var context: ChannelHandlerContext?
    private let queue = "acking.\(UUID().uuidString)"

    /// Returns why the broker closed its channel.
    static func channelEnd(at url: String, within limit: Duration) async throws -> CloseReason {
        let address = try BrokerAddress(url: url)
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let ended = loop.makePromise(of: CloseReason.self)
        loop.scheduleTask(in: TimeAmount(limit)) {
            ended.fail(CommandFailure("the channel of an acking consumer still stands"))
        }
        let channel = try await ClientBootstrap(group: loop)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let consumer = try AckingConsumer(ended)
                    try channel.pipeline.syncOperations.addHandler(consumer)
                }
            }
            .connect(host: address.host, port: address.port).get()
        let reason = try await ended.futureResult.get()
        try await channel.close()
        return reason
    }

    private init(_ ended: EventLoopPromise<CloseReason>) throws {
        codec = try AMQPCodec()
        self.ended = ended
    }

    func channelActive(context: ChannelHandlerContext) {
        self.context = context
        context.writeAndFlush(
            wrapOutboundOut(ByteBuffer(bytes: Array("AMQP".utf8) + [0, 0, 9, 1])),
            promise: nil
        )
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        do {
            try codec.read(unwrapInboundIn(data), into: self)
        } catch {
            ended.fail(error)
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        self.context = nil
        ended.fail(CommandFailure("the broker closed the connection, not only the channel"))
    }

    func received(_ frame: IncomingFrame, channel: UInt16) throws(AMQPError) {
        switch frame {
        case .start:
            let login = [0] + Array("guest".utf8) + [0] + Array("guest".utf8)
            try send(.startOk(mechanism: "PLAIN", response: login), channel: 0)
        case .tune(_, let frameMax, _):
            try codec.tune(channelMax: 1, frameMax: frameMax, heartbeat: 0)
            try send(.tuneOk(channelMax: 1, frameMax: frameMax, heartbeat: 0), channel: 0)
            try send(.open(virtualHost: "/"), channel: 0)
        case .openOk: try send(.channelOpen)
        case .channelOpenOk: try send(.queueDeclare(name: queue, arguments: []))
        case .queueDeclareOk:
            try sendConsume()
            // To the default exchange: straight into the queue.
            try send(.publish(exchange: "", routingKey: queue, isMandatory: true))
            try sendBody()
        case .channelClose(let reason): ended.succeed(reason)
        default: break
        }
    }

    func receivedBody(_ bytes: RawSpan, channel: UInt16) throws(AMQPError) {}

    private func send(_ method: OutgoingMethod, channel: UInt16 = 1) throws(AMQPError) {
        var buffer = ByteBuffer()
        try AMQPCodec.write(method, channel: channel, into: &buffer)
        context?.writeAndFlush(wrapOutboundOut(buffer), promise: nil)
    }

    /// `basic.consume` as ours never is: with acknowledgements.
    private func sendConsume() throws(AMQPError) {
        var buffer = ByteBuffer()
        try AMQPCodec.write(
            .consume(queue: queue, consumer: .worker),
            channel: 1,
            into: &buffer
        )
        // The bits no-local, no-ack, exclusive and no-wait stand in one octet before the empty
        // table of arguments (4 octets) and the end octet.
        buffer.setInteger(UInt8(0), at: buffer.writerIndex - 6)
        context?.writeAndFlush(wrapOutboundOut(buffer), promise: nil)
    }

    /// A content header of class 60 without properties that announces one byte, and that byte.
    private func sendBody() throws(AMQPError) {
        var buffer = ByteBuffer()
        buffer.writeBytes([2, 0, 1, 0, 0, 0, 14, 0, 60, 0, 0])
        buffer.writeInteger(UInt64(1))
        buffer.writeBytes([0, 0, 0xCE, 3, 0, 1, 0, 0, 0, 1, 0x2A, 0xCE])
        context?.writeAndFlush(wrapOutboundOut(buffer), promise: nil)
    }
}
