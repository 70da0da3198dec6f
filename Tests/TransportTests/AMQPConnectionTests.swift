import Logging
import NIOCore
import NIOEmbedded
import OperonCore
import OperonModel
import OperonPorts
import Testing

@testable import OperonAMQP

/// Notes what a connection tells its owner.
private final class Owner: AMQPConnectionOwner {
    var isReady = false
    var failures: [LinkFailure] = []
    var messages: [MessageAssembler.Message] = []

    func opened(_ connection: AMQPConnection, heartbeat: Duration) { connection.prepare([]) }
    func ready(_ connection: AMQPConnection) { isReady = true }
    func channelClosed(
        _ connection: AMQPConnection,
        _ reason: CloseReason,
        during: OutgoingMethod
    ) {}
    func failed(_ connection: AMQPConnection, _ failure: LinkFailure) { failures.append(failure) }
    func received(_ connection: AMQPConnection, _ message: MessageAssembler.Message) {
        messages.append(message)
    }
    func blocked(_ connection: AMQPConnection, _ isBlocked: Bool, reason: String) {}
    func readCompleted(_ connection: AMQPConnection) {}
    func becameWritable(_ connection: AMQPConnection) {}
}

/// What one connection writes, and what it makes of frames, without a socket.
@Suite struct AMQPConnectionTests {
    private let owner = Owner()
    private let connection: AMQPConnection
    private let channel = EmbeddedChannel()

    /// Logged in, with both channels open.
    init() throws {
        connection = try AMQPConnection(
            attempt: 1,
            configuration: try AMQPConfiguration(url: "amqp://127.0.0.1"),
            logger: Logger(label: "test"),
            owner: owner
        )
        try channel.pipeline.syncOperations.addHandler(connection)
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        connection.begin()
        var bytes = BrokerBytes()
        bytes.login()
        bytes.channelOpened(AMQPConnection.beatChannelNumber)
        bytes.channelOpened(AMQPConnection.channelNumber)
        try channel.writeInbound(bytes.buffer)
        _ = try written()
    }

    /// Type and channel of each frame that was written since the last call.
    private func written() throws -> [String] {
        var frames: [String] = []
        while var buffer = try channel.readOutbound(as: ByteBuffer.self) {
            if buffer.readableBytes == 8, buffer.getString(at: 0, length: 4) == "AMQP" { continue }
            while let (type, number, size) = buffer.readMultipleIntegers(
                as: (UInt8, UInt16, UInt32).self
            ) {
                buffer.moveReaderIndex(forwardBy: Int(size) + 1)
                frames.append("\(type)@\(number)")
            }
        }
        return frames
    }

    private func message(_ destination: Outbox.Destination, _ bytes: Int) -> Outbox.Message {
        .init(destination: destination, priority: 0, body: [UInt8](repeating: 1, count: bytes))
    }

    @Test func `a beat goes between the frames of a large message, and nothing else does`() throws {
        #expect(owner.isReady)
        let names = Topology(prefix: "p.")

        connection.write([message(.events, 300_000)], names: names)
        #expect(connection.hasRest)
        connection.write([message(.beats, 10)], names: names)
        connection.publish([1], to: "q", replyTo: nil, isMandatory: false)
        while connection.hasRest { connection.writeRest() }
        connection.flush()

        // Frames of 4,096 bytes: 300,000 take 74, of which a slice of 128 KiB has 31 with the
        // method and the header before them.
        let frames = try written()
        let bodies = frames.prefix { $0 != "1@2" }.dropFirst(2)
        #expect(Array(frames.prefix(2)) == ["1@1", "2@1"])
        #expect(bodies.allSatisfy { $0 == "3@1" } && (10..<74).contains(bodies.count))
        let rest = Array(frames.dropFirst(2 + bodies.count))
        #expect(Array(rest.prefix(3)) == ["1@2", "2@2", "3@2"])
        #expect(rest.dropFirst(3).prefix { $0 == "3@1" }.count == 74 - bodies.count)
        #expect(Array(rest.suffix(3)) == ["1@1", "2@1", "3@1"])
    }

    @Test func `messages on both channels are put together frame by frame`() throws {
        var bytes = BrokerBytes()
        bytes.deliver(tag: "events")
        bytes.header(bodyBytes: 2)
        bytes.frame(3, [1])
        // A beat that nobody took comes back meanwhile.
        var returned = BrokerBytes()
        returned.returned(key: "coordinator")
        returned.header(bodyBytes: 1)
        returned.frame(3, [9])
        bytes.buffer.writeImmutableBuffer(returned.moved(to: AMQPConnection.beatChannelNumber))
        bytes.frame(3, [2])

        try channel.writeInbound(bytes.buffer)

        #expect(owner.messages.map(\.body) == [[9], [1, 2]])
        #expect(owner.failures == [])
    }

    @Test func `what comes right behind the end of a consumer is not heard`() throws {
        var bytes = BrokerBytes()
        // `basic.cancel` of the consumer “worker”.
        bytes.frame(1, [0, 60, 0, 30, 1, 0x77, 1])
        bytes.message([1, 2])
        bytes.frame(1, [0, 20, 0, 20, 1])

        try channel.writeInbound(bytes.buffer)

        #expect(owner.failures.count == 1)
        #expect(owner.messages == [])
        #expect(try written() == [])
    }

    @Test(arguments: [UInt8(1), 2, 3])
    func `a frame of a channel that we never opened ends the connection`(type: UInt8) throws {
        var bytes = BrokerBytes()
        let payload: [UInt8] =
            type == 1
            ? [0, 20, 0, 11, 0, 0, 0, 0]
            : type == 2 ? [0, 60, 0, 0] + Array(repeating: 0, count: 10) : [7]
        bytes.frame(type, channel: 9, payload)

        try channel.writeInbound(bytes.buffer)

        #expect(owner.failures == [.lost("a frame on channel 9, which we never opened")])
    }
}

extension BrokerBytes {
    /// The same frames on another channel.
    fileprivate func moved(to channel: UInt16) -> ByteBuffer {
        var copy = buffer
        var place = 0
        while let size = copy.getInteger(at: place + 3, as: UInt32.self) {
            copy.setInteger(channel, at: place + 1)
            place += Int(size) + 8
        }
        return copy
    }
}
