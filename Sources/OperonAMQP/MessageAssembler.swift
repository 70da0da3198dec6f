/// Assembles the frames of one message: a method, a header, and bodies up to the length in the
/// header. A message over the limit is read to its end and dropped.
struct MessageAssembler {
    enum Origin: Hashable {
        case delivered(Consumer?)
        case returned(routingKey: String, exchange: String)
    }

    struct Message: Hashable {
        var origin: Origin
        /// Of a message that was delivered, not returned.
        var delivery: Delivery?
        var properties: HeaderProperties
        /// `nil` if the message was over the limit.
        var body: [UInt8]?
        var bodyBytes: UInt64
    }

    private enum State {
        /// Between two messages.
        case idle
        /// The method was read; its header follows.
        case method(Origin, Delivery?)
        /// The header was read; `missing` bytes of the body follow.
        case body(Message, missing: UInt64)
    }

    private var state = State.idle
    private let bodyBytesMax: UInt64

    init(bodyBytesMax: Int) { self.bodyBytesMax = UInt64(bodyBytesMax) }

    mutating func begin(_ origin: Origin, _ delivery: Delivery? = nil) throws(AMQPError) {
        guard case .idle = state else { throw AMQPError("a message begins inside another") }
        state = .method(origin, delivery)
    }

    /// Returns the message if it has no body.
    mutating func header(
        bodyBytes: UInt64,
        _ properties: HeaderProperties
    ) throws(AMQPError) -> Message? {
        guard case .method(let origin, let delivery) = state else {
            throw AMQPError("a header without its method")
        }
        var message = Message(
            origin: origin,
            delivery: delivery,
            properties: properties,
            body: nil,
            bodyBytes: bodyBytes
        )
        if bodyBytes <= bodyBytesMax {
            message.body = []
            message.body?.reserveCapacity(Int(bodyBytes))
        }
        guard bodyBytes > 0 else {
            state = .idle
            return message
        }
        state = .body(message, missing: bodyBytes)
        return nil
    }

    /// Returns the message when its last bytes have arrived.
    mutating func body(_ bytes: RawSpan) throws(AMQPError) -> Message? {
        guard case .body(var message, let missing) = state else {
            throw AMQPError("a body without its header")
        }
        // The state gives up its copy, so that appending below does not copy the bytes.
        state = .idle
        let count = UInt64(bytes.byteCount)
        guard count <= missing else { throw AMQPError("a body longer than its header says") }
        unsafe bytes.withUnsafeBytes { bytes in
            unsafe message.body?.append(contentsOf: bytes)
        }
        guard count < missing else { return message }
        state = .body(message, missing: missing - count)
        return nil
    }
}

/// One assembler for each channel of a connection, because frames of several channels are
/// interleaved.
struct ChannelAssemblers {
    private var assemblers: [MessageAssembler]

    init(bodyBytesMax: Int) {
        let count = Int(AMQPConnection.beatChannelNumber) + 1
        assemblers = Array(repeating: MessageAssembler(bodyBytesMax: bodyBytesMax), count: count)
    }

    /// - Parameter channel: a channel that we opened.
    subscript(channel: UInt16) -> MessageAssembler {
        get { assemblers[Int(channel)] }
        _modify { yield &assemblers[Int(channel)] }
    }
}
