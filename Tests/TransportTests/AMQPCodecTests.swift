import NIOCore
import OperonCore
import OperonModel
import OperonPorts
import Testing

@testable import OperonAMQP

/// Keeps what a codec reads.
private final class Recorder: FrameSink {
    var frames: [IncomingFrame] = []
    var messages: [MessageAssembler.Message] = []
    var assembler: MessageAssembler

    init(bodyBytesMax: Int = 8 << 20) { assembler = MessageAssembler(bodyBytesMax: bodyBytesMax) }

    func received(_ frame: IncomingFrame, channel: UInt16) throws(AMQPError) {
        frames.append(frame)
        switch frame {
        case .deliver(let consumer, let delivery):
            try assembler.begin(.delivered(consumer), delivery)
        case .returned(let key, let exchange):
            try assembler.begin(.returned(routingKey: key, exchange: exchange))
        case .header(let bytes, let properties):
            if let message = try assembler.header(bodyBytes: bytes, properties) {
                messages.append(message)
            }
        default: break
        }
    }

    func receivedBody(_ bytes: RawSpan, channel: UInt16) throws(AMQPError) {
        if let message = try assembler.body(bytes) { messages.append(message) }
    }
}

@Suite struct AMQPCodecTests {
    private func delivered(_ body: [UInt8]) -> MessageAssembler.Message {
        .init(
            origin: .delivered(.events),
            delivery: Delivery(tag: 7, isRedelivered: false),
            properties: HeaderProperties(),
            body: body,
            bodyBytes: UInt64(body.count)
        )
    }

    @Test(arguments: UInt64(0)...12)
    func `bytes in pieces of any size give the same messages`(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        var bytes = BrokerBytes()
        var bodies: [[UInt8]] = []
        for _ in 0..<40 {
            let size = Int(generator.next() % 12_000) * Int(generator.next() % 3) / 2
            let body = (0..<size).map { _ in UInt8(truncatingIfNeeded: generator.next()) }
            bodies.append(body)
            bytes.message(body)
            if generator.next() % 4 == 0 { bytes.frame(8, channel: 0, []) }
        }
        let codec = try AMQPCodec()
        let recorder = Recorder()

        // Seed 0 trickles single bytes.
        while bytes.buffer.readableBytes > 0 {
            let most = seed == 0 ? 1 : Int(generator.next() % 9_000) + 1
            let slice = bytes.buffer.readSlice(length: min(most, bytes.buffer.readableBytes))
            let piece = try #require(slice)
            try codec.read(piece, into: recorder)
        }

        #expect(recorder.messages == bodies.map(delivered))
    }

    @Test func `a returned message names where it was sent`() throws {
        var bytes = BrokerBytes()
        bytes.returned(key: "operon.worker.1")
        bytes.header(bodyBytes: 2)
        bytes.frame(3, [1, 2])
        let recorder = Recorder()

        try AMQPCodec().read(bytes.buffer, into: recorder)

        #expect(
            recorder.messages.first?.origin
                == .returned(routingKey: "operon.worker.1", exchange: "operon.dispatch")
        )
    }

    @Test func `a header's reply address is read`() throws {
        var bytes = BrokerBytes()
        bytes.deliver(tag: "lock")
        bytes.header(bodyBytes: 0, replyTo: "operon.asks.1")
        let recorder = Recorder()

        try AMQPCodec().read(bytes.buffer, into: recorder)

        #expect(recorder.messages.first?.properties.replyTo == "operon.asks.1")
        #expect(recorder.messages.first?.origin == .delivered(.lock))
    }

    @Test func `a message over the limit is passed over and the next one arrives`() throws {
        var bytes = BrokerBytes()
        bytes.message([UInt8](repeating: 1, count: 1_001))
        bytes.message([UInt8](repeating: 2, count: 1_000))
        let recorder = Recorder(bodyBytesMax: 1_000)

        try AMQPCodec().read(bytes.buffer, into: recorder)

        #expect(recorder.messages.map { $0.body?.count } == [nil, 1_000])
        #expect(recorder.messages.map(\.bodyBytes) == [1_001, 1_000])
    }

    @Test func `every method that a broker sends has its meaning`() throws {
        let text: [UInt8] = [3] + Array("why".utf8)
        let methods: [([UInt8], IncomingFrame)] = [
            ([0, 10, 0, 41, 0], .openOk),
            (
                [0, 10, 0, 30, 7, 0xFF, 0, 2, 0, 0, 0, 60],
                .tune(channelMax: 0x7FF, frameMax: 131_072, heartbeat: 60)
            ),
            (
                [0, 10, 0, 50, 1, 0x40] + text + [0, 0, 0, 0],
                .connectionClose(CloseReason(code: 320, text: "why"))
            ),
            ([0, 10, 0, 51], .connectionCloseOk),
            ([0, 10, 0, 60] + text, .blocked(reason: "why")),
            ([0, 10, 0, 61], .unblocked),
            ([0, 20, 0, 11, 0, 0, 0, 0], .channelOpenOk),
            ([0, 20, 0, 20, 1], .channelFlow(isActive: true)),
            (
                [0, 20, 0, 40, 1, 0x94] + text + [0, 60, 0, 40],
                .channelClose(CloseReason(code: 404, text: "why"))
            ),
            ([0, 20, 0, 41], .channelCloseOk),
            ([0, 40, 0, 11], .exchangeDeclareOk),
            ([0, 50, 0, 11, 1, 0x71, 0, 0, 0, 0, 0, 0, 0, 0], .queueDeclareOk),
            ([0, 50, 0, 21], .queueBindOk),
            ([0, 60, 0, 11], .prefetchOk),
            ([0, 60, 0, 21, 1, 0x65], .consumeOk),
            (
                [0, 60, 0, 60, 1, 0x6D, 0, 0, 0, 0, 0, 0, 1, 2, 1, 0, 1, 0x71],
                .deliver(consumer: .messages, Delivery(tag: 258, isRedelivered: true))
            ),
            ([0, 60, 0, 30, 1, 0x77, 1], .cancel(consumer: .worker)),
            ([0, 60, 0, 80, 0, 0, 0, 0, 0, 0, 0, 1, 0], .ack),
            ([0, 60, 0, 120, 0, 0, 0, 0, 0, 0, 0, 1, 0], .nack),
            ([0, 50, 0, 31, 0, 0, 0, 0], .unexpected(method: 0x0032_001F)),
        ]
        let codec = try AMQPCodec()
        let recorder = Recorder()

        for (payload, _) in methods {
            var bytes = BrokerBytes()
            bytes.frame(1, payload)
            try codec.read(bytes.buffer, into: recorder)
        }

        #expect(recorder.frames == methods.map(\.1))
    }

    @Test(
        arguments: [
            // No mark at the end; longer than any frame may be; a method cut short; no such method.
            [8, 0, 0, 0, 0, 0, 0, 0xCD],
            [3, 0, 1, 0x7F, 0xFF, 0xFF, 0xFF, 0, 0],
            [1, 0, 1, 0, 0, 0, 6, 0, 60, 0, 60, 9, 0x61, 0xCE],
            [1, 0, 1, 0, 0, 0, 4, 0x7F, 60, 0, 60, 0xCE],
            Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8),
        ] as [[UInt8]]
    )
    func `bytes that are no AMQP are an error`(bytes: [UInt8]) throws {
        let codec = try AMQPCodec()

        #expect(throws: AMQPError.self) {
            try codec.read(ByteBuffer(bytes: bytes), into: Recorder())
        }
    }

    @Test func `frames in an order that makes no message are an error`() throws {
        var bodyFirst = BrokerBytes()
        bodyFirst.frame(3, [1])
        var headerFirst = BrokerBytes()
        headerFirst.header(bodyBytes: 1)
        var twoMethods = BrokerBytes()
        twoMethods.deliver(tag: "events")
        twoMethods.deliver(tag: "events")
        var tooLong = BrokerBytes()
        tooLong.deliver(tag: "events")
        tooLong.header(bodyBytes: 1)
        tooLong.frame(3, [1, 2])

        for bytes in [bodyFirst, headerFirst, twoMethods, tooLong] {
            #expect(throws: AMQPError.self) {
                try AMQPCodec().read(bytes.buffer, into: Recorder())
            }
        }
    }

    /// Garbage may be refused at any byte, but nothing else may happen.
    @Test(arguments: UInt64(1)...50)
    func `changed bytes never do more than end the connection`(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        var bytes = BrokerBytes()
        for size in [0, 10, 5_000] { bytes.message([UInt8](repeating: 1, count: size)) }
        var changed = Array(bytes.buffer.readableBytesView)
        for _ in 0..<4 {
            let index = Int(generator.next() % UInt64(changed.count))
            changed[index] = UInt8(truncatingIfNeeded: generator.next())
        }
        let codec = try AMQPCodec()
        let recorder = Recorder()

        do { try codec.read(ByteBuffer(bytes: changed), into: recorder) } catch {}

        #expect(recorder.messages.count <= 3)
    }
}

@Suite struct PublishTemplateTests {
    /// Type, channel and payload of each frame.
    private func frames(_ buffer: ByteBuffer) throws -> [(UInt8, UInt16, [UInt8])] {
        var buffer = buffer
        var frames: [(UInt8, UInt16, [UInt8])] = []
        while buffer.readableBytes > 0 {
            let type = buffer.readInteger(as: UInt8.self)
            let channel = buffer.readInteger(as: UInt16.self)
            let count = buffer.readInteger(as: UInt32.self)
            let payload = buffer.readBytes(length: Int(count ?? 0))
            let end = buffer.readInteger(as: UInt8.self)
            #expect(end == 0xCE)
            frames.append(
                (try #require(type), try #require(channel), try #require(payload))
            )
        }
        return frames
    }

    @Test(arguments: [0, 1, 4_087, 4_088, 4_089, 8_176, 8_177])
    func `a body is cut into frames of the agreed size`(size: Int) throws {
        var templates = PublishTemplates()
        let body = (0..<size).map { UInt8(truncatingIfNeeded: $0) }
        let message = Outbox.Message(destination: .events, priority: 3, body: body)

        // The second time everything comes from what was kept.
        for _ in 0..<2 {
            var buffer = ByteBuffer()
            try templates.write(
                message,
                names: Topology(prefix: "p."),
                frameMax: 4_096,
                into: &buffer
            )
            let frames = try frames(buffer)

            #expect(frames.map(\.0).prefix(2) == [1, 2])
            #expect(frames.dropFirst(2).allSatisfy { $0.0 == 3 && $0.2.count <= 4_088 })
            #expect(frames.count == 2 + (size + 4_087) / 4_088)
            #expect(frames.dropFirst(2).flatMap(\.2) == body)
            // Class 60, weight 0, and the size of the body in 64 bits.
            let head = withUnsafeBytes(of: UInt64(size).bigEndian, Array.init)
            #expect(Array(frames[1].2.prefix(12)) == [0, 60, 0, 0] + head)
        }
    }

    @Test(arguments: [1, 4_096, 5_000, 9_000, 100_000])
    func `what is written a slice at a time consists of whole frames`(bytesMax: Int) throws {
        var templates = PublishTemplates()
        var buffer = ByteBuffer()
        for size in [10_000, 0, 4_088] {
            try templates.write(
                Outbox.Message(
                    destination: .events,
                    priority: 0,
                    body: [UInt8](repeating: 0xCE, count: size)
                ),
                names: Topology(prefix: "p."),
                frameMax: 4_096,
                into: &buffer
            )
        }
        var queue = FrameQueue()
        queue.append(buffer)
        var written = ByteBuffer()
        var sizes: [Int] = []
        while let slice = queue.next(bytesMax: bytesMax), slice.readableBytes > 0 {
            #expect(try frames(slice).count == 1 || slice.readableBytes <= bytesMax)
            sizes.append(slice.readableBytes)
            written.writeImmutableBuffer(slice)
        }

        #expect(written == buffer)
        #expect(queue.isEmpty)
        #expect(sizes.count == (bytesMax == 1 ? 10 : sizes.count))
        if bytesMax == 100_000 { #expect(sizes.count == 1) }
    }

    @Test func `a beat travels on a channel of its own`() throws {
        var templates = PublishTemplates()
        for destination in [Outbox.Destination.beats, .events] {
            var buffer = ByteBuffer()
            try templates.write(
                Outbox.Message(destination: destination, priority: 0, body: [1]),
                names: Topology(prefix: "p."),
                frameMax: 4_096,
                into: &buffer
            )
            let channels = Set(try frames(buffer).map(\.1))
            #expect(channels == [destination == .beats ? 2 : 1])
        }
    }

    @Test func `a message is transient, mandatory and has its priority`() throws {
        var templates = PublishTemplates()
        var buffer = ByteBuffer()
        try templates.write(
            Outbox.Message(destination: .beats, priority: 4, body: []),
            names: Topology(prefix: "p."),
            frameMax: 4_096,
            into: &buffer
        )
        let frames = try frames(buffer)

        let method: [UInt8] =
            [0, 60, 0, 40, 0, 0, 7] + Array("p.beats".utf8) + [11] + Array("coordinator".utf8) + [1]
        #expect(frames[0].2 == method)
        // Flags: content type, delivery mode, priority.
        let properties: [UInt8] =
            [0x98, 0, 22] + Array("application/x-protobuf".utf8) + [1, 4]
        #expect(Array(frames[1].2.dropFirst(12)) == properties)
    }
}
