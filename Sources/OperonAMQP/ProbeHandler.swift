import NIOCore
import OperonModel

/// Speaks AMQP for a `ProbeSession`: it logs in, then tries one step after the other on one
/// channel, which it reopens whenever the broker has closed it.
final class ProbeHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// Carries the handler through a future. The handler is used only on its event loop.
    struct Box: @unchecked Sendable {
        let value: ProbeHandler
    }

    struct Login: Sendable {
        var product: String?
        var version: String?
        var failure: BrokerProbe.Failure?
    }

    private static let channelNumber: UInt16 = 1

    private let configuration: AMQPConfiguration
    private let codec: AMQPCodec
    private var assembler: MessageAssembler
    private var context: ChannelHandlerContext?
    private var login = Login()
    private var firstError: (any Error)?
    private var loginPromise: EventLoopPromise<Login>?
    private var isChannelOpen = false
    private var script: [OutgoingMethod] = []
    private var attemptPromise: EventLoopPromise<ProbeSession.Answer>?
    private var askPromise: EventLoopPromise<[UInt8]?>?

    init(_ configuration: AMQPConfiguration) throws(AMQPError) {
        self.configuration = configuration
        codec = try AMQPCodec()
        assembler = MessageAssembler(bodyBytesMax: configuration.bodyBytesMax)
    }

    // MARK: - Calls of the session

    func begin(_ promise: EventLoopPromise<Login>) {
        loginPromise = promise
        // The connection may have failed before this call.
        if let firstError { return fail(firstError) }
        guard let context else { return fail(ProbeError("the connection was closed")) }
        var buffer = context.channel.allocator.buffer(capacity: 8)
        // The protocol header of AMQP 0-9-1 §4.2.2.
        buffer.writeBytes(Array("AMQP".utf8) + [0, 0, 9, 1])
        context.writeAndFlush(wrapOutboundOut(buffer), promise: nil)
    }

    func attempt(_ step: BrokerProbe.Step, _ promise: EventLoopPromise<ProbeSession.Answer>) {
        guard context != nil else { return promise.fail(ProbeError("the connection was closed")) }
        attemptPromise = promise
        script = (isChannelOpen ? [] : [.channelOpen]) + step.methods
        sendNext()
    }

    func ask(_ queue: String, replyTo: String, _ promise: EventLoopPromise<[UInt8]?>) {
        askPromise = promise
        let method = OutgoingMethod.publish(exchange: "", routingKey: queue, isMandatory: true)
        send(method, replyTo: replyTo)
    }

    func close() {
        send(.connectionClose, channel: 0)
        context?.close(promise: nil)
    }

    // MARK: - Sending

    private func sendNext() {
        guard let method = script.first else { return succeed(.done) }
        if case .publish = method { send(method, replyTo: nil) } else { send(method) }
    }

    private func send(_ method: OutgoingMethod, channel: UInt16 = channelNumber) {
        write { buffer throws(AMQPError) in
            try AMQPCodec.write(method, channel: channel, into: &buffer)
        }
    }

    /// Sends an empty message: its header gives the size 0, and no body follows.
    private func send(_ method: OutgoingMethod, replyTo: String?) {
        write { buffer throws(AMQPError) in
            try AMQPCodec.write(method, channel: Self.channelNumber, into: &buffer)
            let properties = try AMQPCodec.properties(
                MessageProperties(contentType: "text/plain", replyTo: replyTo)
            )
            // Type 2, then class 60 (basic), weight, size of the body (AMQP 0-9-1 §4.2.6.1).
            buffer.writeInteger(UInt8(2))
            buffer.writeInteger(Self.channelNumber)
            buffer.writeInteger(UInt32(12 + properties.count))
            buffer.writeMultipleIntegers(UInt16(60), UInt16(0), UInt64(0))
            buffer.writeBytes(properties)
            buffer.writeInteger(UInt8(0xCE))
        }
    }

    private func write(_ body: (inout ByteBuffer) throws(AMQPError) -> Void) {
        guard let context else { return }
        var buffer = context.channel.allocator.buffer(capacity: 512)
        do throws(AMQPError) {
            try body(&buffer)
        } catch {
            return fail(ProbeError(error.description))
        }
        context.writeAndFlush(wrapOutboundOut(buffer), promise: nil)
    }

    // MARK: - Ends

    private func succeed(_ answer: ProbeSession.Answer) {
        script = []
        attemptPromise?.succeed(answer)
        attemptPromise = nil
    }

    private func loginEnded(_ stage: BrokerProbe.Failure.Stage? = nil, _ reason: String = "") {
        login.failure = stage.map { BrokerProbe.Failure(stage: $0, reason: reason) }
        loginPromise?.succeed(login)
        loginPromise = nil
    }

    private func fail(_ error: any Error) {
        // Later errors are consequences of the first one.
        let error = firstError ?? error
        firstError = error
        if loginPromise != nil {
            let hasSpoken = login.product != nil
            let stage: BrokerProbe.Failure.Stage =
                hasSpoken ? .loggingIn : configuration.address.tls == nil ? .greeting : .encrypting
            loginEnded(stage, error.sentence)
        }
        attemptPromise?.fail(error)
        attemptPromise = nil
        askPromise?.fail(error)
        askPromise = nil
        context?.close(promise: nil)
    }
}

// MARK: - The socket

extension ProbeHandler {
    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        do throws(AMQPError) {
            try codec.read(unwrapInboundIn(data), into: self)
        } catch {
            fail(error)
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        fail(ProbeError("the other side closed the connection"))
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { fail(error) }
}

// MARK: - Frames

extension ProbeHandler: FrameSink {
    func received(_ frame: IncomingFrame, channel: UInt16) throws(AMQPError) {
        switch frame {
        case .start(let mechanisms, let server): started(mechanisms, server)
        case .secure: loginEnded(.loggingIn, "it asks for more than a password")
        case .tune(let channelMax, let frameMax, _):
            try tune(channelMax: channelMax, frameMax: frameMax)
        case .openOk: loginEnded()
        case .connectionClose(let reason): connectionClosed(reason)
        case .channelOpenOk:
            isChannelOpen = true
            stepDone()
        case .exchangeDeclareOk, .queueDeclareOk, .queueBindOk, .prefetchOk, .consumeOk:
            stepDone()
        case .channelClose(let reason):
            send(.channelCloseOk)
            isChannelOpen = false
            succeed(.closed(reason))
        case .returned(let routingKey, let exchange):
            try assembler.begin(.returned(routingKey: routingKey, exchange: exchange))
        case .deliver(let consumer, let delivery):
            try assembler.begin(.delivered(consumer), delivery)
        case .header(let bodyBytes, let properties):
            if let message = try assembler.header(bodyBytes: bodyBytes, properties) {
                received(message)
            }
        case .channelFlow(let isActive): send(.channelFlowOk(isActive: isActive))
        case .connectionCloseOk, .blocked, .unblocked, .cancel, .ack, .nack, .channelCloseOk,
            .heartbeat, .unexpected:
            return
        }
    }

    func receivedBody(_ bytes: RawSpan, channel: UInt16) throws(AMQPError) {
        if let message = try assembler.body(bytes) { received(message) }
    }

    private func received(_ message: MessageAssembler.Message) {
        switch message.origin {
        case .returned:
            if let askPromise {
                // The holder has stopped at this moment.
                askPromise.succeed(nil)
                self.askPromise = nil
            } else {
                // As expected: no queue has this key.
                stepDone()
            }
        case .delivered:
            askPromise?.succeed(message.body)
            askPromise = nil
        }
    }

    private func stepDone() {
        guard !script.isEmpty else { return }
        script.removeFirst()
        sendNext()
    }

    private func connectionClosed(_ reason: CloseReason) {
        send(.connectionCloseOk, channel: 0)
        guard loginPromise != nil else {
            return fail(ProbeError("the broker closed the connection: \(reason.text)"))
        }
        switch reason.code {
        case CloseReason.notAllowed: loginEnded(.virtualHost, reason.text)
        default: loginEnded(.loggingIn, reason.text)
        }
    }

    private func started(_ mechanisms: String, _ server: ServerIdentity) {
        login.product = server.product
        login.version = server.version
        let address = configuration.address
        let mechanism = address.usesExternalLogin ? "EXTERNAL" : "PLAIN"
        guard mechanisms.split(separator: " ").contains(Substring(mechanism)) else {
            return loginEnded(.loggingIn, "it offers \(mechanisms), not \(mechanism)")
        }
        send(.startOk(mechanism: mechanism, response: address.loginResponse), channel: 0)
    }

    private func tune(channelMax: UInt16, frameMax: UInt32) throws(AMQPError) {
        let channels = channelMax == 0 ? 1 : min(channelMax, 1)
        let bytes = frameMax == 0 ? 131_072 : min(frameMax, 131_072)
        // The probe ends long before a heartbeat is due; zero turns heartbeats off.
        try codec.tune(channelMax: channels, frameMax: bytes, heartbeat: 0)
        send(.tuneOk(channelMax: channels, frameMax: bytes, heartbeat: 0), channel: 0)
        send(.open(virtualHost: configuration.address.virtualHost), channel: 0)
    }
}
