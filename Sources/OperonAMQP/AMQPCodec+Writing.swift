import CRabbitMQ
import NIOCore

// MARK: - Writing

extension AMQPCodec {
    /// Larger than any method or header that we send; their names and answers are short strings.
    private static let methodBytesMax = 4_096 - 8

    /// Appends the method as one complete frame.
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
        case .exchangeDeclare, .queueDeclare, .queueBind, .queueCheck:
            try writeTopology(method, channel, arena, into: &buffer)
        case .prefetch, .consume, .consumeUntilAnswered, .acknowledge, .reject:
            try writeConsuming(method, channel, arena, into: &buffer)
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

    private static func writeConsuming(
        _ method: OutgoingMethod,
        _ channel: UInt16,
        _ arena: MethodArena,
        into buffer: inout ByteBuffer
    ) throws(AMQPError) {
        var consume = unsafe amqp_basic_consume_t()
        switch method {
        case .prefetch(let count):
            // Each consumer for itself: RabbitMQ 4.3 refuses a limit for the whole channel.
            var value = amqp_basic_qos_t(prefetch_size: 0, prefetch_count: count, global: 0)
            return try write(AMQP_BASIC_QOS_METHOD, &value, channel, into: &buffer)
        case .acknowledge(let tag):
            var value = amqp_basic_ack_t(delivery_tag: tag, multiple: 0)
            return try write(AMQP_BASIC_ACK_METHOD, &value, channel, into: &buffer)
        case .reject(let tag):
            var value = amqp_basic_reject_t(delivery_tag: tag, requeue: 0)
            return try write(AMQP_BASIC_REJECT_METHOD, &value, channel, into: &buffer)
        case .consume(let queue, let consumer):
            unsafe consume.queue = arena.bytes(queue)
            unsafe consume.consumer_tag = arena.bytes(consumer.rawValue)
            unsafe consume.no_ack = 1
        case .consumeUntilAnswered(let queue, let consumer):
            unsafe consume.queue = arena.bytes(queue)
            unsafe consume.consumer_tag = arena.bytes(consumer.rawValue)
        default: preconditionFailure("only consuming comes here: write(_:) sorted it out")
        }
        try unsafe write(AMQP_BASIC_CONSUME_METHOD, &consume, channel, into: &buffer)
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
        case .queueCheck(let name):
            var value = unsafe amqp_queue_declare_t()
            unsafe value.queue = arena.bytes(name)
            unsafe value.passive = 1
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

    /// The encoded properties of a message, in the form that follows the body size in the header
    /// frame. They depend only on the priority, so senders reuse them.
    static func properties(_ properties: MessageProperties) throws(AMQPError) -> [UInt8] {
        let arena = MethodArena()
        var value = unsafe amqp_basic_properties_t()
        var flags =
            AMQP_BASIC_CONTENT_TYPE_FLAG | AMQP_BASIC_DELIVERY_MODE_FLAG
            | AMQP_BASIC_PRIORITY_FLAG
        unsafe value.content_type = arena.bytes(properties.contentType)
        // Transient: no message on the broker needs a disk.
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

    /// Appends a frame around the output of `encode`, which returns its size in bytes or a negative
    /// status.
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

    /// Unless the client announces these capabilities, a broker does not report cancelled consumers
    /// and alarms, and closes the connection without a reason when it refuses a login.
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

/// Keeps memory that the library's structures point to alive while a method is encoded.
@safe
private final class MethodArena {
    enum Field {
        case text(String)
        case integer(Int64)
        /// Names that each have the value true.
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
