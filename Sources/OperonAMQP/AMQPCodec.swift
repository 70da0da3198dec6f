import CRabbitMQ
import NIOCore

/// The only type that calls librabbitmq, and only its codec: it decodes bytes to frames and encodes
/// methods and properties to bytes. It never opens a socket of the library.
///
/// Belongs to one connection and one thread; the library has no locks.
@safe
final class AMQPCodec {
    private let state: amqp_connection_state_t

    init() throws(AMQPError) {
        guard let state = unsafe amqp_new_connection() else {
            throw AMQPError("no memory for a connection")
        }
        unsafe self.state = state
    }

    deinit { unsafe amqp_destroy_connection(state) }

    /// Sets the values that both sides agreed on. Call it only between frames.
    func tune(channelMax: UInt16, frameMax: UInt32, heartbeat: UInt16) throws(AMQPError) {
        let status = unsafe amqp_tune_connection(
            state,
            Int32(channelMax),
            Int32(frameMax),
            Int32(heartbeat)
        )
        guard status == AMQP_STATUS_OK.rawValue else { throw Self.error(status) }
    }

    static func error(_ status: Int32) -> AMQPError {
        let text = unsafe amqp_error_string2(status).map { unsafe String(cString: $0) }
        return AMQPError("the broker's bytes cannot be read: \(text ?? "status \(status)")")
    }
}

/// Receives what the codec decodes.
protocol FrameSink: AnyObject {
    func received(_ frame: IncomingFrame, channel: UInt16) throws(AMQPError)

    /// `bytes` is in the library's buffer and only valid during the call.
    func receivedBody(_ bytes: RawSpan, channel: UInt16) throws(AMQPError)
}

// MARK: - Reading

extension AMQPCodec {
    /// Reads all of `buffer`. An incomplete frame at the end is kept for the next call.
    func read(_ buffer: ByteBuffer, into sink: some FrameSink) throws(AMQPError) {
        let result = unsafe buffer.withUnsafeReadableBytes { bytes -> Result<Void, AMQPError> in
            do throws(AMQPError) {
                unsafe try read(bytes, into: sink)
                return .success(())
            } catch {
                return .failure(error)
            }
        }
        try result.get()
    }

    private func read(
        _ bytes: UnsafeRawBufferPointer,
        into sink: some FrameSink
    ) throws(AMQPError) {
        guard let base = bytes.baseAddress else { return }
        var offset = 0
        while offset < bytes.count {
            var frame = unsafe amqp_frame_t()
            // The library only reads these bytes; its type has no constant pointer.
            let rest = unsafe amqp_bytes_t(
                len: bytes.count - offset,
                bytes: UnsafeMutableRawPointer(mutating: base + offset)
            )
            let consumed = unsafe amqp_handle_input(state, rest, &frame)
            guard consumed > 0 else { throw Self.error(consumed) }
            offset += Int(consumed)
            // Zero: the frame is not complete yet, or is of a kind to be ignored.
            guard unsafe frame.frame_type != 0 else { continue }
            try unsafe deliver(frame, to: sink)
            // All decoded values have been copied. Without this call the channel's pool would only
            // grow.
            unsafe amqp_maybe_release_buffers_on_channel(state, frame.channel)
        }
    }

    private func deliver(_ frame: amqp_frame_t, to sink: some FrameSink) throws(AMQPError) {
        let channel = unsafe frame.channel
        switch unsafe Int32(frame.frame_type) {
        case AMQP_FRAME_METHOD:
            try unsafe sink.received(Self.method(frame.payload.method), channel: channel)
        case AMQP_FRAME_HEADER:
            try unsafe sink.received(Self.header(frame), channel: channel)
        case AMQP_FRAME_BODY:
            let fragment = unsafe frame.payload.body_fragment
            let bytes = unsafe UnsafeRawBufferPointer(
                start: fragment.bytes,
                count: fragment.len
            )
            try unsafe sink.receivedBody(bytes.bytes, channel: channel)
        case AMQP_FRAME_HEARTBEAT:
            try sink.received(.heartbeat, channel: channel)
        default:
            // The library's own value for a protocol header: the broker speaks another version.
            throw AMQPError("the broker does not speak AMQP 0-9-1")
        }
    }

    private static func header(_ frame: amqp_frame_t) throws(AMQPError) -> IncomingFrame {
        let header = unsafe frame.payload.properties
        // librabbitmq reads the properties of other classes into smaller structures.
        guard unsafe header.class_id == UInt16(AMQP_BASIC_CLASS) else {
            throw unsafe AMQPError("a header of class \(header.class_id), not of a message")
        }
        let properties = unsafe header.decoded.assumingMemoryBound(
            to: amqp_basic_properties_t.self
        )
        func has(_ flag: Int32) -> Bool {
            unsafe properties.pointee._flags & amqp_flags_t(flag) != 0
        }
        var found = HeaderProperties()
        if has(AMQP_BASIC_REPLY_TO_FLAG) {
            found.replyTo = unsafe text(properties.pointee.reply_to)
        }
        if has(AMQP_BASIC_MESSAGE_ID_FLAG) {
            found.messageID = unsafe text(properties.pointee.message_id)
        }
        if has(AMQP_BASIC_CONTENT_TYPE_FLAG) {
            found.contentType = unsafe text(properties.pointee.content_type)
        }
        return unsafe .header(bodyBytes: header.body_size, found)
    }

    private static func method(_ method: amqp_method_t) -> IncomingFrame {
        switch unsafe method.id {
        case AMQP_BASIC_DELIVER_METHOD:
            let method = unsafe decoded(method, amqp_basic_deliver_t.self)
            return unsafe .deliver(
                consumer: consumer(method.consumer_tag),
                Delivery(tag: method.delivery_tag, isRedelivered: method.redelivered != 0)
            )
        case AMQP_BASIC_RETURN_METHOD:
            let method = unsafe decoded(method, amqp_basic_return_t.self)
            return unsafe .returned(
                routingKey: text(method.routing_key),
                exchange: text(method.exchange)
            )
        case AMQP_BASIC_CANCEL_METHOD:
            let tag = unsafe decoded(method, amqp_basic_cancel_t.self).consumer_tag
            return unsafe .cancel(consumer: consumer(tag))
        case AMQP_BASIC_ACK_METHOD: return .ack
        case AMQP_BASIC_NACK_METHOD: return .nack
        case AMQP_BASIC_QOS_OK_METHOD: return .prefetchOk
        case AMQP_BASIC_CONSUME_OK_METHOD: return .consumeOk
        case AMQP_QUEUE_DECLARE_OK_METHOD: return .queueDeclareOk
        case AMQP_QUEUE_BIND_OK_METHOD: return .queueBindOk
        case AMQP_EXCHANGE_DECLARE_OK_METHOD: return .exchangeDeclareOk
        case AMQP_CHANNEL_OPEN_OK_METHOD: return .channelOpenOk
        case AMQP_CHANNEL_CLOSE_OK_METHOD: return .channelCloseOk
        case AMQP_CHANNEL_FLOW_METHOD:
            let isActive = unsafe decoded(method, amqp_channel_flow_t.self).active != 0
            return .channelFlow(isActive: isActive)
        case AMQP_CHANNEL_CLOSE_METHOD:
            let method = unsafe decoded(method, amqp_channel_close_t.self)
            return unsafe .channelClose(
                CloseReason(code: method.reply_code, text: text(method.reply_text))
            )
        default: return unsafe connectionMethod(method)
        }
    }

    private static func connectionMethod(_ method: amqp_method_t) -> IncomingFrame {
        switch unsafe method.id {
        case AMQP_CONNECTION_START_METHOD:
            let method = unsafe decoded(method, amqp_connection_start_t.self)
            return unsafe .start(
                mechanisms: text(method.mechanisms),
                server: server(method.server_properties)
            )
        case AMQP_CONNECTION_SECURE_METHOD: return .secure
        case AMQP_CONNECTION_TUNE_METHOD:
            let method = unsafe decoded(method, amqp_connection_tune_t.self)
            return .tune(
                channelMax: method.channel_max,
                frameMax: method.frame_max,
                heartbeat: method.heartbeat
            )
        case AMQP_CONNECTION_OPEN_OK_METHOD: return .openOk
        case AMQP_CONNECTION_CLOSE_METHOD:
            let method = unsafe decoded(method, amqp_connection_close_t.self)
            return unsafe .connectionClose(
                CloseReason(code: method.reply_code, text: text(method.reply_text))
            )
        case AMQP_CONNECTION_CLOSE_OK_METHOD: return .connectionCloseOk
        case AMQP_CONNECTION_BLOCKED_METHOD:
            let method = unsafe decoded(method, amqp_connection_blocked_t.self)
            return unsafe .blocked(reason: text(method.reason))
        case AMQP_CONNECTION_UNBLOCKED_METHOD: return .unblocked
        default: return unsafe .unexpected(method: method.id)
        }
    }

    /// The decoded structure; the library sets `decoded` to the structure for the method's number.
    private static func decoded<T>(_ method: amqp_method_t, _ type: T.Type) -> T {
        unsafe method.decoded.assumingMemoryBound(to: type).pointee
    }

    private static func text(_ bytes: amqp_bytes_t) -> String {
        unsafe String(
            decoding: UnsafeRawBufferPointer(start: bytes.bytes, count: bytes.len),
            as: UTF8.self
        )
    }

    private static func server(_ table: amqp_table_t) -> ServerIdentity {
        var server = ServerIdentity()
        for index in unsafe 0..<Int(table.num_entries) {
            let entry = unsafe table.entries[index]
            guard unsafe entry.value.kind == UInt8(AMQP_FIELD_KIND_UTF8.rawValue) else { continue }
            switch unsafe text(entry.key) {
            case "product": server.product = unsafe text(entry.value.value.bytes)
            case "version": server.version = unsafe text(entry.value.value.bytes)
            default: continue
            }
        }
        return server
    }

    private static func consumer(_ tag: amqp_bytes_t) -> Consumer? {
        let bytes = unsafe UnsafeRawBufferPointer(start: tag.bytes, count: tag.len)
        return unsafe bytes.first.flatMap { Consumer(firstByte: $0) }
    }
}
