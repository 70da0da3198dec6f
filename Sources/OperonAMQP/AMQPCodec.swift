import CRabbitMQ
import NIOCore

/// The only file that calls librabbitmq, and only its codec: bytes in, frames out, and methods
/// and properties into bytes. No socket of the library is ever opened.
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

    /// What both sides agreed on. Only between frames.
    func tune(channelMax: UInt16, frameMax: UInt32, heartbeat: UInt16) throws(AMQPError) {
        let status = unsafe amqp_tune_connection(
            state,
            Int32(channelMax),
            Int32(frameMax),
            Int32(heartbeat)
        )
        guard status == AMQP_STATUS_OK.rawValue else { throw Self.error(status) }
    }

    private static func error(_ status: Int32) -> AMQPError {
        let text = unsafe amqp_error_string2(status).map { unsafe String(cString: $0) }
        return AMQPError("the broker's bytes cannot be read: \(text ?? "status \(status)")")
    }
}

/// Takes what the codec reads.
protocol FrameSink: AnyObject {
    func received(_ frame: IncomingFrame, channel: UInt16) throws(AMQPError)

    /// `bytes` lie in the library's buffer and are gone when this returns.
    func receivedBody(_ bytes: RawSpan, channel: UInt16) throws(AMQPError)
}

// MARK: - Reading

extension AMQPCodec {
    /// Reads all of `buffer`; what is not yet a whole frame is kept for the next call.
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
            // The library only reads what it is given; its type knows no constant bytes.
            let rest = unsafe amqp_bytes_t(
                len: bytes.count - offset,
                bytes: UnsafeMutableRawPointer(mutating: base + offset)
            )
            let consumed = unsafe amqp_handle_input(state, rest, &frame)
            guard consumed > 0 else { throw Self.error(consumed) }
            offset += Int(consumed)
            // Zero: not a whole frame yet, or one of a kind to be ignored.
            guard unsafe frame.frame_type != 0 else { continue }
            try unsafe deliver(frame, to: sink)
            // Everything decoded was copied; without this the channel's pool only grows.
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
            // The library's own mark for a protocol header: the broker speaks another version.
            throw AMQPError("the broker does not speak AMQP 0-9-1")
        }
    }

    private static func header(_ frame: amqp_frame_t) -> IncomingFrame {
        let header = unsafe frame.payload.properties
        let properties = unsafe header.decoded.assumingMemoryBound(
            to: amqp_basic_properties_t.self
        )
        let hasReplyTo =
            unsafe properties.pointee._flags & amqp_flags_t(AMQP_BASIC_REPLY_TO_FLAG) != 0
        return unsafe .header(
            bodyBytes: header.body_size,
            replyTo: hasReplyTo ? text(properties.pointee.reply_to) : nil
        )
    }

    private static func method(_ method: amqp_method_t) -> IncomingFrame {
        switch unsafe method.id {
        case AMQP_BASIC_DELIVER_METHOD:
            let tag = unsafe decoded(method, amqp_basic_deliver_t.self).consumer_tag
            return unsafe .deliver(consumer: consumer(tag))
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
            return unsafe .start(mechanisms: text(method.mechanisms))
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

    /// The library sets `decoded` to the structure that belongs to the method's number.
    private static func decoded<T>(_ method: amqp_method_t, _ type: T.Type) -> T {
        unsafe method.decoded.assumingMemoryBound(to: type).pointee
    }

    private static func text(_ bytes: amqp_bytes_t) -> String {
        unsafe String(
            decoding: UnsafeRawBufferPointer(start: bytes.bytes, count: bytes.len),
            as: UTF8.self
        )
    }

    private static func consumer(_ tag: amqp_bytes_t) -> Consumer? {
        let bytes = unsafe UnsafeRawBufferPointer(start: tag.bytes, count: tag.len)
        return unsafe bytes.first.flatMap { Consumer(firstByte: $0) }
    }
}

// MARK: - Writing

extension AMQPCodec {
    /// More than any method or header of ours: names and answers are short strings.
    private static let methodBytesMax = 4_096 - 8

    /// Appends the method as a whole frame.
    static func write(
        _ method: OutgoingMethod,
        channel: UInt16,
        into buffer: inout ByteBuffer
    ) throws(AMQPError) {
        let arena = MethodArena()
        switch method {
        case .startOk(let mechanism, let response):
            var value = unsafe amqp_connection_start_ok_t(
                client_properties: arena.table(clientProperties),
                mechanism: arena.bytes(mechanism),
                response: arena.bytes(response),
                locale: arena.bytes("en_US")
            )
            try unsafe write(AMQP_CONNECTION_START_OK_METHOD, &value, channel, into: &buffer)
        case .tuneOk(let channelMax, let frameMax, let heartbeat):
            var value = amqp_connection_tune_ok_t(
                channel_max: channelMax,
                frame_max: frameMax,
                heartbeat: heartbeat
            )
            try write(AMQP_CONNECTION_TUNE_OK_METHOD, &value, channel, into: &buffer)
        case .open(let virtualHost):
            var value = unsafe amqp_connection_open_t(
                virtual_host: arena.bytes(virtualHost),
                capabilities: amqp_empty_bytes,
                insist: 0
            )
            try unsafe write(AMQP_CONNECTION_OPEN_METHOD, &value, channel, into: &buffer)
        case .connectionClose:
            var value = unsafe amqp_connection_close_t(
                reply_code: UInt16(AMQP_REPLY_SUCCESS),
                reply_text: arena.bytes("goodbye"),
                class_id: 0,
                method_id: 0
            )
            try unsafe write(AMQP_CONNECTION_CLOSE_METHOD, &value, channel, into: &buffer)
        case .connectionCloseOk:
            var value = amqp_connection_close_ok_t()
            try write(AMQP_CONNECTION_CLOSE_OK_METHOD, &value, channel, into: &buffer)
        case .channelOpen, .channelFlowOk, .channelCloseOk:
            try writeChannel(method, channel, into: &buffer)
        case .exchangeDeclare, .queueDeclare, .queueBind:
            try writeTopology(method, channel, arena, into: &buffer)
        case .consume(let queue, let consumer):
            var value = unsafe amqp_basic_consume_t()
            unsafe value.queue = arena.bytes(queue)
            unsafe value.consumer_tag = arena.bytes(consumer.rawValue)
            unsafe value.no_ack = 1
            try unsafe write(AMQP_BASIC_CONSUME_METHOD, &value, channel, into: &buffer)
        case .publish(let exchange, let routingKey, let isMandatory):
            var value = unsafe amqp_basic_publish_t()
            unsafe value.exchange = arena.bytes(exchange)
            unsafe value.routing_key = arena.bytes(routingKey)
            unsafe value.mandatory = isMandatory ? 1 : 0
            try unsafe write(AMQP_BASIC_PUBLISH_METHOD, &value, channel, into: &buffer)
        }
    }

    private static func writeChannel(
        _ method: OutgoingMethod,
        _ channel: UInt16,
        into buffer: inout ByteBuffer
    ) throws(AMQPError) {
        switch method {
        case .channelFlowOk(let isActive):
            var value = amqp_channel_flow_ok_t(active: isActive ? 1 : 0)
            try write(AMQP_CHANNEL_FLOW_OK_METHOD, &value, channel, into: &buffer)
        case .channelCloseOk:
            var value = amqp_channel_close_ok_t()
            try write(AMQP_CHANNEL_CLOSE_OK_METHOD, &value, channel, into: &buffer)
        default:
            var value = unsafe amqp_channel_open_t(out_of_band: amqp_empty_bytes)
            try unsafe write(AMQP_CHANNEL_OPEN_METHOD, &value, channel, into: &buffer)
        }
    }

    private static func writeTopology(
        _ method: OutgoingMethod,
        _ channel: UInt16,
        _ arena: MethodArena,
        into buffer: inout ByteBuffer
    ) throws(AMQPError) {
        switch method {
        case .exchangeDeclare(let name, let kind):
            var value = unsafe amqp_exchange_declare_t()
            unsafe value.exchange = arena.bytes(name)
            unsafe value.type = arena.bytes(kind.rawValue)
            unsafe value.durable = 1
            try unsafe write(AMQP_EXCHANGE_DECLARE_METHOD, &value, channel, into: &buffer)
        case .queueDeclare(let name, let arguments):
            var value = unsafe amqp_queue_declare_t()
            unsafe value.queue = arena.bytes(name)
            unsafe value.exclusive = 1
            unsafe value.arguments = arena.table(arguments.map(field))
            try unsafe write(AMQP_QUEUE_DECLARE_METHOD, &value, channel, into: &buffer)
        case .queueBind(let queue, let exchange, let routingKey):
            var value = unsafe amqp_queue_bind_t()
            unsafe value.queue = arena.bytes(queue)
            unsafe value.exchange = arena.bytes(exchange)
            unsafe value.routing_key = arena.bytes(routingKey)
            try unsafe write(AMQP_QUEUE_BIND_METHOD, &value, channel, into: &buffer)
        default: preconditionFailure("only topology comes here: write(_:) sorted it out")
        }
    }

    private static func write<T>(
        _ number: amqp_method_number_t,
        _ value: inout T,
        _ channel: UInt16,
        into buffer: inout ByteBuffer
    ) throws(AMQPError) {
        let count = unsafe withUnsafeMutablePointer(to: &value) { value in
            unsafe Self.write(type: AMQP_FRAME_METHOD, channel, into: &buffer) { bytes in
                unsafe bytes.storeBytes(of: number.bigEndian, as: UInt32.self)
                let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: bytes[4...])
                let space = unsafe amqp_bytes_t(len: rest.count, bytes: rest.baseAddress)
                let count = unsafe amqp_encode_method(number, value, space)
                return count < 0 ? count : count + 4
            }
        }
        guard count >= 0 else { throw error(count) }
    }

    /// The encoded properties of a message, as they follow the size of the body in its header
    /// frame. They depend on the priority only, so senders keep them.
    static func properties(_ properties: MessageProperties) throws(AMQPError) -> [UInt8] {
        let arena = MethodArena()
        var value = unsafe amqp_basic_properties_t()
        var flags =
            AMQP_BASIC_CONTENT_TYPE_FLAG | AMQP_BASIC_DELIVERY_MODE_FLAG
            | AMQP_BASIC_PRIORITY_FLAG
        unsafe value.content_type = arena.bytes(properties.contentType)
        // Transient: nothing on the broker needs a disk.
        unsafe value.delivery_mode = 1
        unsafe value.priority = properties.priority
        if let replyTo = properties.replyTo {
            flags |= AMQP_BASIC_REPLY_TO_FLAG
            unsafe value.reply_to = arena.bytes(replyTo)
        }
        unsafe value._flags = amqp_flags_t(flags)
        var count: Int32 = 0
        let bytes = unsafe [UInt8](unsafeUninitializedCapacity: methodBytesMax) { bytes, used in
            let space = unsafe amqp_bytes_t(len: bytes.count, bytes: bytes.baseAddress)
            count = unsafe amqp_encode_properties(
                UInt16(AMQP_BASIC_CLASS),
                &value,
                space
            )
            used = Int(max(count, 0))
        }
        guard count >= 0 else { throw error(count) }
        return bytes
    }

    /// A frame around what `encode` writes, which returns how much that is, or a negative status.
    private static func write(
        type: Int32,
        _ channel: UInt16,
        into buffer: inout ByteBuffer,
        encode: (UnsafeMutableRawBufferPointer) -> Int32
    ) -> Int32 {
        let start = buffer.writerIndex
        buffer.writeInteger(UInt8(type))
        buffer.writeInteger(channel)
        buffer.writeInteger(UInt32(0))
        var count: Int32 = 0
        unsafe buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: methodBytesMax) { bytes in
            count = unsafe encode(bytes)
            return Int(max(count, 0))
        }
        guard count >= 0 else {
            buffer.moveWriterIndex(to: start)
            return count
        }
        buffer.setInteger(UInt32(count), at: start + 3)
        buffer.writeInteger(UInt8(AMQP_FRAME_END))
        return count
    }

    private static func field(_ argument: QueueArgument) -> (String, MethodArena.Field) {
        switch argument {
        case .messageTTL(let duration):
            (
                "x-message-ttl",
                .integer(
                    duration.components.seconds * 1_000
                        + duration.components.attoseconds / 1_000_000_000_000_000
                )
            )
        case .lengthMax(let count): ("x-max-length", .integer(Int64(count)))
        case .lengthBytesMax(let count): ("x-max-length-bytes", .integer(Int64(count)))
        case .overflow(let overflow): ("x-overflow", .text(overflow.rawValue))
        }
    }

    /// Without these announced, a broker does not tell us of cancelled consumers and alarms, and
    /// drops a login that it refuses without a word.
    private static let clientProperties: [(String, MethodArena.Field)] = [
        ("product", .text("operon")),
        (
            "capabilities",
            .table([
                "consumer_cancel_notify", "connection.blocked", "basic.nack",
                "publisher_confirms", "authentication_failure_close",
            ])
        ),
    ]
}

/// Keeps what the library's structures point to alive while a method is encoded.
@safe
private final class MethodArena {
    enum Field {
        case text(String)
        case integer(Int64)
        /// Names, each with the value true.
        case table([String])
        case flag
    }

    private var allocations: [UnsafeMutableRawBufferPointer] = unsafe []

    deinit { unsafe allocations.forEach { unsafe $0.deallocate() } }

    func bytes(_ text: String) -> amqp_bytes_t { unsafe bytes(Array(text.utf8)) }

    func bytes(_ bytes: [UInt8]) -> amqp_bytes_t {
        let copy = unsafe allocate(byteCount: bytes.count, alignment: 1)
        unsafe copy.copyBytes(from: bytes)
        return unsafe amqp_bytes_t(len: bytes.count, bytes: copy.baseAddress)
    }

    func table(_ fields: [(String, Field)]) -> amqp_table_t {
        let memory = unsafe allocate(
            byteCount: MemoryLayout<amqp_table_entry_t>.stride * fields.count,
            alignment: MemoryLayout<amqp_table_entry_t>.alignment
        )
        let entries = unsafe memory.bindMemory(to: amqp_table_entry_t.self)
        for (index, (key, field)) in fields.enumerated() {
            var entry = unsafe amqp_table_entry_t()
            unsafe entry.key = bytes(key)
            unsafe entry.value = value(field)
            unsafe entries.initializeElement(at: index, to: entry)
        }
        return unsafe amqp_table_t(num_entries: Int32(fields.count), entries: entries.baseAddress)
    }

    private func value(_ field: Field) -> amqp_field_value_t {
        var value = unsafe amqp_field_value_t()
        switch field {
        case .text(let text):
            unsafe value.kind = UInt8(AMQP_FIELD_KIND_UTF8.rawValue)
            unsafe value.value.bytes = bytes(text)
        case .integer(let number):
            unsafe value.kind = UInt8(AMQP_FIELD_KIND_I64.rawValue)
            unsafe value.value.i64 = number
        case .table(let names):
            unsafe value.kind = UInt8(AMQP_FIELD_KIND_TABLE.rawValue)
            unsafe value.value.table = table(names.map { ($0, .flag) })
        case .flag:
            unsafe value.kind = UInt8(AMQP_FIELD_KIND_BOOLEAN.rawValue)
            unsafe value.value.boolean = 1
        }
        return unsafe value
    }

    private func allocate(byteCount: Int, alignment: Int) -> UnsafeMutableRawBufferPointer {
        let memory = UnsafeMutableRawBufferPointer.allocate(
            byteCount: max(byteCount, 1),
            alignment: alignment
        )
        unsafe allocations.append(memory)
        return unsafe memory
    }
}
