import OperonPorts

/// The decoded frames of a broker. Body bytes are not included: the codec passes them on without
/// copying them.
enum IncomingFrame: Hashable {
    case start(mechanisms: String, server: ServerIdentity)
    case secure
    case tune(channelMax: UInt16, frameMax: UInt32, heartbeat: UInt16)
    case openOk
    case connectionClose(CloseReason)
    case connectionCloseOk
    case blocked(reason: String)
    case unblocked
    case channelOpenOk
    case channelFlow(isActive: Bool)
    case channelClose(CloseReason)
    case channelCloseOk
    case exchangeDeclareOk
    case queueDeclareOk
    case queueBindOk
    case prefetchOk
    case consumeOk
    /// The broker ended one of our consumers because its queue is gone.
    case cancel(consumer: Consumer?)
    case deliver(consumer: Consumer?, Delivery)
    case returned(routingKey: String, exchange: String)
    /// Confirms, which we do not request.
    case ack
    case nack
    case header(bodyBytes: UInt64, HeaderProperties)
    case heartbeat
    /// A method that cannot result from anything we send.
    case unexpected(method: UInt32)
}

/// What the broker says of one delivery.
struct Delivery: Hashable, Sendable {
    /// Its number on the channel, for an acknowledgement.
    var tag: UInt64
    /// Whether the message may have been delivered before.
    var isRedelivered: Bool
}

/// The properties of an arrived message that somebody asks for.
struct HeaderProperties: Hashable, Sendable {
    var replyTo: String?
    /// Chosen by the publisher.
    var messageID: String?
    var contentType: String?
}

/// The broker's name and version, such as “RabbitMQ”, “3.10.8”. Empty if the broker does
/// not send them.
struct ServerIdentity: Hashable {
    var product = ""
    var version = ""
}

/// Why the broker closed a channel or a connection.
struct CloseReason: Hashable {
    var code: UInt16
    var text: String
}

extension CloseReason {
    // The codes of AMQP 0-9-1 that lead to different decisions.
    static let accessRefused: UInt16 = 403
    static let notFound: UInt16 = 404
    static let resourceLocked: UInt16 = 405
    static let preconditionFailed: UInt16 = 406
    static let notAllowed: UInt16 = 530
}

/// A consumer on our channel. The first byte of its tag identifies it.
enum Consumer: String, Hashable {
    case worker
    case events
    case beats
    case lock
    case asks
    /// Of a queue that belongs to somebody else, with acknowledgements.
    case messages

    init?(firstByte: UInt8) {
        switch firstByte {
        case UInt8(ascii: "w"): self = .worker
        case UInt8(ascii: "e"): self = .events
        case UInt8(ascii: "b"): self = .beats
        case UInt8(ascii: "l"): self = .lock
        case UInt8(ascii: "a"): self = .asks
        case UInt8(ascii: "m"): self = .messages
        default: return nil
        }
    }
}

/// The methods that we send.
enum OutgoingMethod: Hashable {
    case startOk(mechanism: String, response: [UInt8])
    case tuneOk(channelMax: UInt16, frameMax: UInt32, heartbeat: UInt16)
    case open(virtualHost: String)
    case connectionClose
    case connectionCloseOk
    case channelOpen
    case channelFlowOk(isActive: Bool)
    case channelCloseOk
    /// Durable, so that the exchange outlives the coordinator that declares it.
    case exchangeDeclare(name: String, kind: ExchangeKind)
    /// Exclusive: the queue ends with this connection.
    case queueDeclare(name: String, arguments: [QueueArgument])
    case queueBind(queue: String, exchange: String, routingKey: String)
    /// Asks whether a queue exists, and changes nothing.
    case queueCheck(name: String)
    /// How many deliveries of each later consumer may be without an answer.
    case prefetch(count: UInt16)
    /// Without acknowledgements.
    case consume(queue: String, consumer: Consumer)
    /// Each delivery is answered by `acknowledge` or `reject`, or comes again.
    case consumeUntilAnswered(queue: String, consumer: Consumer)
    case acknowledge(tag: UInt64)
    /// The message goes where the queue's dead letters go, or is dropped.
    case reject(tag: UInt64)
    case publish(exchange: String, routingKey: String, isMandatory: Bool)
}

enum ExchangeKind: String, Hashable {
    case direct
    case fanout
}

enum QueueArgument: Hashable {
    case messageTTL(Duration)
    case lengthMax(Int)
    case lengthBytesMax(Int)
    case overflow(Overflow)

    enum Overflow: String, Hashable {
        case dropHead = "drop-head"
        case rejectPublish = "reject-publish"
    }
}

/// The properties of a message.
struct MessageProperties: Hashable {
    var contentType = "application/x-protobuf"
    var priority: UInt8 = 0
    var replyTo: String?
}

/// The broker sent something that AMQP 0-9-1 does not allow.
struct AMQPError: Error, Hashable, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}
