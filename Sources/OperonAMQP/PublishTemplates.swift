import NIOCore

/// Writes messages as frames: a method, a header, and as many bodies as needed.
///
/// The bytes of a method depend only on the destination, and those of the properties only on the
/// priority. So the library encodes each of them once, and a message costs three copies.
struct PublishTemplates {
    private var methods: [Outbox.Destination: ByteBuffer] = [:]
    private var properties: [UInt8: [UInt8]] = [:]

    /// The most destinations that are kept: more than the workers of one coordinator with some of
    /// their earlier connections. At the limit all are removed, so each must be encoded once more.
    private static let methodsMax = 10_000

    /// Bytes of a frame besides its payload: type, channel and length before it, and the end mark
    /// after it.
    private static let frameOverhead: UInt32 = 8

    mutating func write(
        _ message: Outbox.Message,
        names: Topology,
        frameMax: UInt32,
        into buffer: inout ByteBuffer
    ) throws(AMQPError) {
        if let method = methods[message.destination] {
            buffer.writeImmutableBuffer(method)
        } else {
            var method = ByteBuffer()
            try AMQPCodec.write(
                names.publish(to: message.destination),
                channel: message.destination.channel,
                into: &method
            )
            if methods.count >= Self.methodsMax { methods.removeAll(keepingCapacity: true) }
            methods[message.destination] = method
            buffer.writeImmutableBuffer(method)
        }
        if let properties = properties[message.priority] {
            Self.writeContent(message, properties, frameMax, into: &buffer)
        } else {
            let encoded = try AMQPCodec.properties(MessageProperties(priority: message.priority))
            properties[message.priority] = encoded
            Self.writeContent(message, encoded, frameMax, into: &buffer)
        }
    }

    /// Writes one message that goes directly to a queue, through the default exchange.
    static func write(
        _ body: [UInt8],
        to queue: String,
        replyTo: String?,
        isMandatory: Bool,
        frameMax: UInt32,
        into buffer: inout ByteBuffer
    ) throws(AMQPError) {
        try AMQPCodec.write(
            .publish(exchange: "", routingKey: queue, isMandatory: isMandatory),
            channel: AMQPConnection.channelNumber,
            into: &buffer
        )
        let properties = try AMQPCodec.properties(
            MessageProperties(contentType: "text/plain", replyTo: replyTo)
        )
        let channel = AMQPConnection.channelNumber
        writeContent(body, properties, frameMax, channel: channel, into: &buffer)
    }

    private static func writeContent(
        _ message: Outbox.Message,
        _ properties: [UInt8],
        _ frameMax: UInt32,
        into buffer: inout ByteBuffer
    ) {
        let channel = message.destination.channel
        writeContent(message.body, properties, frameMax, channel: channel, into: &buffer)
    }

    private static func writeContent(
        _ body: [UInt8],
        _ properties: [UInt8],
        _ frameMax: UInt32,
        channel: UInt16,
        into buffer: inout ByteBuffer
    ) {
        writeFrameHead(2, channel, byteCount: 12 + properties.count, into: &buffer)
        // Class 60 is basic; the weight is unused and zero (AMQP 0-9-1 §4.2.6.1).
        buffer.writeInteger(UInt16(60))
        buffer.writeInteger(UInt16(0))
        buffer.writeInteger(UInt64(body.count))
        buffer.writeBytes(properties)
        buffer.writeInteger(UInt8(0xCE))

        let pieceMax = Int(frameMax - frameOverhead)
        guard body.count > pieceMax else {
            guard !body.isEmpty else { return }
            writeFrameHead(3, channel, byteCount: body.count, into: &buffer)
            buffer.writeBytes(body)
            buffer.writeInteger(UInt8(0xCE))
            return
        }
        var rest = body[...]
        while !rest.isEmpty {
            let piece = rest.prefix(pieceMax)
            rest = rest.dropFirst(piece.count)
            writeFrameHead(3, channel, byteCount: piece.count, into: &buffer)
            buffer.writeBytes(piece)
            buffer.writeInteger(UInt8(0xCE))
        }
    }

    private static func writeFrameHead(
        _ type: UInt8,
        _ channel: UInt16,
        byteCount: Int,
        into buffer: inout ByteBuffer
    ) {
        buffer.writeMultipleIntegers(
            type,
            channel,
            UInt32(byteCount),
            as: (UInt8, UInt16, UInt32).self
        )
    }
}

extension Outbox.Destination {
    /// Beats have their own channel, so that they go between the frames of a large message.
    fileprivate var channel: UInt16 {
        switch self {
        case .beats: AMQPConnection.beatChannelNumber
        case .worker, .broadcast, .events: AMQPConnection.channelNumber
        }
    }
}
