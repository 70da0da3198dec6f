import Logging
import NIOCore
import OperonCore
import OperonModel
import OperonPorts

/// Receives the events of a connection, on its event loop.
protocol AMQPConnectionOwner: AnyObject {
    func opened(_ connection: AMQPConnection, heartbeat: Duration)
    /// Everything that the connection was asked to declare and consume is ready.
    func ready(_ connection: AMQPConnection)
    /// The broker closed the channel while it was being prepared; the connection is still open.
    func channelClosed(_ connection: AMQPConnection, _ reason: CloseReason, during: OutgoingMethod)
    func failed(_ connection: AMQPConnection, _ failure: LinkFailure)
    func received(_ connection: AMQPConnection, _ message: MessageAssembler.Message)
    func blocked(_ connection: AMQPConnection, _ isBlocked: Bool, reason: String)
    /// Everything that could be read now has been read.
    func readCompleted(_ connection: AMQPConnection)
    /// The socket accepts more data again.
    func becameWritable(_ connection: AMQPConnection)
}

/// One connection to the broker, from the protocol header to the closing handshake: login, a
/// channel with its declarations and with messages in both directions, and a second channel for
/// beats alone. It does not open sockets and never retries.
///
/// Lives on its channel's event loop. Its owner is notified of everything until the first failure.
final class AMQPConnection: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = Never
    typealias OutboundIn = Never
    typealias OutboundOut = ByteBuffer

    enum Phase: Hashable {
        /// The socket is being opened.
        case connecting
        /// Between the protocol header and `openOk`.
        case loggingIn
        /// Logged in. The connection declares what it is asked to declare, or waits for such a
        /// request.
        case open
        /// We or the broker asked to close the connection.
        case closing
        case closed
    }

    /// All our messages except beats use one channel, so they arrive in the order in which they
    /// were sent.
    static let channelNumber: UInt16 = 1
    /// Beats have a channel of their own, so that they do not wait for the rest of a large message.
    static let beatChannelNumber: UInt16 = 2

    let attempt: UInt64
    private(set) var phase = Phase.connecting
    private(set) var frameMax: UInt32 = 131_072
    private let configuration: AMQPConfiguration
    private let logger: Logger
    private let codec: AMQPCodec
    private var assemblers: ChannelAssemblers
    private weak var owner: (any AMQPConnectionOwner)?
    private var context: ChannelHandlerContext?
    private var hasFailed = false
    private var script: [OutgoingMethod] = []
    private var scriptIndex = 0
    private var hasBeatChannel = false
    /// The unwritten parts of large messages.
    private var unwritten = FrameQueue()
    private var isReadingPaused = false
    private var heldRead = false
    private var templates = PublishTemplates()

    init(
        attempt: UInt64,
        configuration: AMQPConfiguration,
        logger: Logger,
        owner: any AMQPConnectionOwner
    ) throws(AMQPError) {
        self.attempt = attempt
        self.configuration = configuration
        self.logger = logger
        self.owner = owner
        codec = try AMQPCodec()
        assemblers = ChannelAssemblers(bodyBytesMax: configuration.bodyBytesMax)
    }

    // MARK: - Calls of the owner

    /// Logs in. The broker sends nothing before it receives this.
    func begin() {
        guard phase == .connecting, let context else { return }
        phase = .loggingIn
        // "AMQP", 0, 0-9-1: the protocol header of AMQP 0-9-1 §4.2.2.
        var buffer = context.channel.allocator.buffer(capacity: 8)
        buffer.writeBytes(Array("AMQP".utf8) + [0, 0, 9, 1])
        context.writeAndFlush(wrapOutboundOut(buffer), promise: nil)
    }

    /// Opens the channels and performs these methods one after the other.
    func prepare(_ methods: [OutgoingMethod]) {
        guard phase == .open else { return }
        script = [.channelOpen] + methods
        scriptIndex = 0
        if hasBeatChannel {
            send(script[0])
        } else {
            send(.channelOpen, channel: Self.beatChannelNumber)
        }
    }

    func sendHeartbeat() {
        guard let context else { return }
        var buffer = context.channel.allocator.buffer(capacity: 8)
        // An empty frame of type 8 on channel 0.
        buffer.writeBytes([8, 0, 0, 0, 0, 0, 0, 0xCE])
        context.writeAndFlush(wrapOutboundOut(buffer), promise: nil)
    }

    var isWritable: Bool { phase == .open && context?.channel.isWritable == true }

    /// Writes messages without flushing them. Part of a large message is left for `writeRest`.
    /// Until that part is written, only beats may be written.
    func write(_ messages: [Outbox.Message], names: Topology) {
        guard phase == .open, let context else { return }
        let bytes = messages.reduce(0) { $0 + $1.body.count + 192 }
        var buffer = context.channel.allocator.buffer(capacity: bytes)
        do throws(AMQPError) {
            for message in messages {
                try templates.write(
                    message,
                    names: names,
                    frameMax: frameMax,
                    into: &buffer
                )
            }
        } catch {
            return fail(.lost(error.description))
        }
        if buffer.readableBytes <= Self.sliceBytesMax * 2 {
            context.write(wrapOutboundOut(buffer), promise: nil)
        } else {
            unwritten.append(buffer)
            writeRest()
        }
    }

    /// The most bytes of a large message that are written at a time: a frame of RabbitMQ's usual
    /// size.
    private static let sliceBytesMax = 128 << 10

    var hasRest: Bool { !unwritten.isEmpty }

    /// Writes some more frames of a large message without flushing them.
    func writeRest() {
        guard phase == .open, let context,
            let slice = unwritten.next(bytesMax: Self.sliceBytesMax)
        else { return }
        context.write(wrapOutboundOut(slice), promise: nil)
    }

    func flush() { context?.flush() }

    /// Publishes a message outside the topology: a question about the lock, or its answer.
    func publish(_ body: [UInt8], to queue: String, replyTo: String?, isMandatory: Bool) {
        guard phase == .open, let context else { return }
        var buffer = context.channel.allocator.buffer(capacity: body.count + 256)
        do throws(AMQPError) {
            try PublishTemplates.write(
                body,
                to: queue,
                replyTo: replyTo,
                isMandatory: isMandatory,
                frameMax: frameMax,
                into: &buffer
            )
        } catch {
            return fail(.lost(error.description))
        }
        write(buffer, channel: Self.channelNumber, context)
    }

    /// Answers a delivery that came over this connection.
    func answer(_ method: OutgoingMethod) {
        guard phase == .open else { return }
        send(method)
    }

    /// Writes after the unwritten part of a message on the same channel, because the frames of a
    /// message have to stay together.
    private func write(_ frames: ByteBuffer, channel: UInt16, _ context: ChannelHandlerContext) {
        if hasRest, channel == Self.channelNumber {
            unwritten.append(frames)
        } else {
            context.writeAndFlush(wrapOutboundOut(frames), promise: nil)
        }
    }

    /// Sends nothing more and starts to close. The end is reported as a failure.
    func sayGoodbye() {
        guard phase == .open else { return }
        phase = .closing
        send(.connectionClose, channel: 0)
    }

    /// Closes without waiting for the broker's answer. The owner is not notified of anything
    /// further.
    func drop() {
        hasFailed = true
        owner = nil
        if phase == .open { sayGoodbye() }
        phase = .closed
        context?.close(promise: nil)
    }

    /// Sets whether the broker's data stays unread in the socket.
    func setReadingPaused(_ isPaused: Bool) {
        isReadingPaused = isPaused
        guard !isPaused, heldRead else { return }
        heldRead = false
        context?.read()
    }

    private func send(_ method: OutgoingMethod, channel: UInt16 = AMQPConnection.channelNumber) {
        guard let context else { return }
        var buffer = context.channel.allocator.buffer(capacity: 512)
        do throws(AMQPError) {
            try AMQPCodec.write(method, channel: channel, into: &buffer)
        } catch {
            return fail(.lost(error.description))
        }
        write(buffer, channel: channel, context)
    }

    private func fail(_ failure: LinkFailure) {
        guard !hasFailed else { return }
        hasFailed = true
        phase = .closed
        owner?.failed(self, failure)
        context?.close(promise: nil)
    }
}

// MARK: - The socket

extension AMQPConnection {
    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard phase != .closed else { return }
        do throws(AMQPError) {
            try codec.read(unwrapInboundIn(data), into: self)
        } catch {
            fail(.lost(error.description))
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) { owner?.readCompleted(self) }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if context.channel.isWritable { owner?.becameWritable(self) }
    }

    func read(context: ChannelHandlerContext) {
        if isReadingPaused { heldRead = true } else { context.read() }
    }

    func channelInactive(context: ChannelHandlerContext) {
        fail(.lost("the broker closed the connection"))
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        fail(.lost("the connection broke: \(error.sentence)"))
    }
}

// MARK: - Frames

extension AMQPConnection: FrameSink {
    func received(_ frame: IncomingFrame, channel: UInt16) throws(AMQPError) {
        // benign: the broker sent it right behind what ended the connection.
        guard phase != .closed else { return }
        try Self.check(channel)
        switch frame {
        case .start, .secure, .tune, .openOk: try login(frame)
        case .connectionClose(let reason): connectionClosed(reason)
        case .connectionCloseOk: fail(.lost("closed"))
        case .blocked(let reason): owner?.blocked(self, true, reason: reason)
        case .unblocked: owner?.blocked(self, false, reason: "")
        case .channelClose(let reason): channelClosed(reason, channel)
        case .channelFlow(let isActive):
            send(.channelFlowOk(isActive: isActive), channel: channel)
        case .channelOpenOk where channel == Self.beatChannelNumber:
            hasBeatChannel = true
            if phase == .open { send(script[0]) }
        case .channelOpenOk, .exchangeDeclareOk, .queueDeclareOk, .queueBindOk, .prefetchOk,
            .consumeOk:
            scriptStepDone()
        case .cancel(let consumer):
            let name = consumer?.rawValue ?? "unknown"
            fail(.lost("the broker ended the consumer “\(name)”: its queue is gone"))
        case .deliver(let consumer, let delivery):
            try assemblers[channel].begin(.delivered(consumer), delivery)
        case .returned(let routingKey, let exchange):
            try assemblers[channel].begin(.returned(routingKey: routingKey, exchange: exchange))
        case .header(let bodyBytes, let properties):
            let message = try assemblers[channel].header(bodyBytes: bodyBytes, properties)
            if let message { owner?.received(self, message) }
        case .ack, .nack, .channelCloseOk, .heartbeat:
            // Harmless: we did not ask for confirms, and the others need no action.
            return
        case .unexpected(let method):
            logger.debug("unexpected method", metadata: ["method": "\(method)"])
        }
    }

    func receivedBody(_ bytes: RawSpan, channel: UInt16) throws(AMQPError) {
        guard phase != .closed else { return }
        try Self.check(channel)
        guard let message = try assemblers[channel].body(bytes) else { return }
        owner?.received(self, message)
    }

    private static func check(_ channel: UInt16) throws(AMQPError) {
        guard channel <= beatChannelNumber else {
            throw AMQPError("a frame on channel \(channel), which we never opened")
        }
    }

    private func scriptStepDone() {
        guard phase == .open, scriptIndex < script.count else { return }
        scriptIndex += 1
        if scriptIndex < script.count {
            send(script[scriptIndex])
        } else {
            owner?.ready(self)
        }
    }

    private func channelClosed(_ reason: CloseReason, _ channel: UInt16) {
        // Everything still to be written on this channel is lost.
        if channel == Self.channelNumber { unwritten = FrameQueue() }
        send(.channelCloseOk, channel: channel)
        guard channel == Self.channelNumber, scriptIndex < script.count else {
            return fail(
                reason.code == CloseReason.accessRefused
                    ? .refused("\(configuration.address) refuses what we do: \(reason.text)")
                    : .lost("the broker closed the channel: \(reason.text)")
            )
        }
        let step = script[scriptIndex]
        scriptIndex = script.count
        owner?.channelClosed(self, reason, during: step)
    }

    private func connectionClosed(_ reason: CloseReason) {
        let wasLoggingIn = phase == .loggingIn
        send(.connectionCloseOk, channel: 0)
        switch reason.code {
        case CloseReason.accessRefused where wasLoggingIn:
            fail(.refused(loginRefused(reason)))
        case CloseReason.notAllowed where wasLoggingIn:
            fail(.notAllowed("\(configuration.address) refuses the virtual host: \(reason.text)"))
        default:
            fail(.lost("the broker closed the connection: \(reason.text)"))
        }
    }

    private func loginRefused(_ reason: CloseReason) -> String {
        "\(configuration.address) refuses the login of “\(configuration.address.user)”: "
            + "\(reason.text)"
    }
}

// MARK: - Login

extension AMQPConnection {
    private func login(_ frame: IncomingFrame) throws(AMQPError) {
        guard phase == .loggingIn else { throw AMQPError("a login after the login") }
        switch frame {
        case .start(let mechanisms, _): answerStart(mechanisms: mechanisms)
        case .secure: throw AMQPError("the broker asks for more than a password")
        case .tune(let channelMax, let frameMax, let heartbeat):
            try answerTune(channelMax: channelMax, frameMax: frameMax, heartbeat: heartbeat)
        default:
            phase = .open
            owner?.opened(self, heartbeat: configuration.heartbeat)
        }
    }

    private func answerStart(mechanisms: String) {
        let address = configuration.address
        let mechanism = address.usesExternalLogin ? "EXTERNAL" : "PLAIN"
        guard mechanisms.split(separator: " ").contains(Substring(mechanism)) else {
            return fail(.refused("\(address) does not offer the login \(mechanism)"))
        }
        send(.startOk(mechanism: mechanism, response: address.loginResponse), channel: 0)
    }

    private func answerTune(
        channelMax: UInt16,
        frameMax: UInt32,
        heartbeat: UInt16
    ) throws(AMQPError) {
        // Zero: the broker sets no limit.
        if frameMax > 0 { self.frameMax = min(self.frameMax, frameMax) }
        // "The negotiated frame-max must be at least 4096" (AMQP 0-9-1, frame-min-size).
        guard self.frameMax >= 4_096 else { throw AMQPError("frames of \(frameMax) bytes") }
        let seconds = UInt16(clamping: configuration.heartbeat.components.seconds)
        let channels = Self.beatChannelNumber
        // Zero has the same meaning here.
        guard channelMax == 0 || channelMax >= channels else {
            throw AMQPError("\(channelMax) channel in a connection; \(channels) are needed")
        }
        try codec.tune(channelMax: channels, frameMax: self.frameMax, heartbeat: seconds)
        send(
            .tuneOk(channelMax: channels, frameMax: self.frameMax, heartbeat: seconds),
            channel: 0
        )
        send(.open(virtualHost: configuration.address.virtualHost), channel: 0)
    }
}
