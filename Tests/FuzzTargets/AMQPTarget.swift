// Both see what is internal to the library; a release build for users does not.
#if DEBUG || OPERON_FUZZER
import Logging
import NIOCore
import NIOEmbedded
import OperonCore
import OperonModel
import OperonPorts

@testable import OperonAMQP

extension FuzzTarget {
    /// The bytes of a broker, from the login on. The first byte chooses how far the connection is
    /// before, and the second one how the bytes are cut.
    ///
    /// librabbitmq, which finds the frames, is compiled without coverage: what is followed is what
    /// we make of its frames.
    static let amqp = FuzzTarget("amqp", bytesMax: 2_048) { bytes in
        var input = InputReader(bytes)
        let isLoggedIn = input.byte() & 1 == 0
        var cut = Int(input.byte())
        let sent = input.remainder()

        let whole = try BrokerSide(isLoggedIn: isLoggedIn)
        defer { whole.close() }
        try whole.send(sent[...])
        let inPieces = try BrokerSide(isLoggedIn: isLoggedIn)
        defer { inPieces.close() }
        var rest = sent[...]
        while !rest.isEmpty {
            let count = cut % 7 * (cut % 5) + 1
            cut = (cut &* 31 &+ 17) & 0xFF
            try inPieces.send(rest.prefix(count))
            rest = rest.dropFirst(count)
        }

        try require(
            whole.owner.heard == inPieces.owner.heard,
            "pieces say \(inPieces.owner.heard), the whole \(whole.owner.heard)"
        )
        let answers = try (whole.written(), inPieces.written())
        try require(
            answers.0 == answers.1,
            "pieces are answered by \(answers.1), the whole by \(answers.0)"
        )
        try whole.owner.check(Limits().messageBytes)
    }
}

/// A connection without a socket, and a broker that says what the test wants.
private struct BrokerSide {
    let owner = RecordingOwner()
    private let channel = EmbeddedChannel()

    init(isLoggedIn: Bool) throws {
        let connection = try AMQPConnection(
            attempt: 1,
            configuration: try AMQPConfiguration(url: "amqp://127.0.0.1"),
            logger: Logger(label: "fuzz") { _ in SwiftLogNoOpLogHandler() },
            owner: owner
        )
        owner.connection = connection
        try channel.pipeline.syncOperations.addHandler(connection)
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        connection.begin()
        if isLoggedIn { try send(Self.login[...]) }
    }

    /// The frames of a broker up to two open channels.
    private static let login: [UInt8] = {
        let mechanisms: [UInt8] = [0, 0, 0, 5] + Array("PLAIN".utf8)
        let locales: [UInt8] = [0, 0, 0, 5] + Array("en_US".utf8)
        return frame(0, [0, 10, 0, 10, 0, 9, 0, 0, 0, 0] + mechanisms + locales)
            + frame(0, [0, 10, 0, 30, 0, 0, 0, 0, 0x10, 0, 0, 0])
            + frame(0, [0, 10, 0, 41, 0])
            + frame(2, [0, 20, 0, 11, 0, 0, 0, 0])
            + frame(1, [0, 20, 0, 11, 0, 0, 0, 0])
    }()

    /// A method on a channel.
    private static func frame(_ channel: UInt8, _ payload: [UInt8]) -> [UInt8] {
        [1, 0, channel, 0, 0, 0, UInt8(payload.count)] + payload + [0xCE]
    }

    func send(_ bytes: ArraySlice<UInt8>) throws {
        // A connection that has failed closes its channel.
        guard channel.isActive else { return }
        try channel.writeInbound(ByteBuffer(bytes: bytes))
    }

    /// Without it, the channel and its handlers would keep each other.
    func close() {
        // benign: it throws what the handlers have caught.
        _ = try? channel.finish(acceptAlreadyClosed: true)
    }

    /// All bytes that the connection wrote.
    func written() throws -> [UInt8] {
        var bytes: [UInt8] = []
        while var buffer = try channel.readOutbound(as: ByteBuffer.self) {
            bytes += buffer.readBytes(length: buffer.readableBytes) ?? []
        }
        return bytes
    }
}

/// Keeps what a connection tells its owner.
private final class RecordingOwner: AMQPConnectionOwner {
    enum Heard: Hashable {
        case opened
        case ready
        case channelClosed(CloseReason)
        case failed(LinkFailure)
        case message(MessageAssembler.Message)
        case blocked(Bool)
    }

    weak var connection: AMQPConnection?
    private(set) var heard: [Heard] = []

    func opened(_ connection: AMQPConnection, heartbeat: Duration) {
        heard.append(.opened)
        connection.prepare([.queueCheck(name: "q")])
    }

    func ready(_ connection: AMQPConnection) { heard.append(.ready) }

    func channelClosed(
        _ connection: AMQPConnection,
        _ reason: CloseReason,
        during: OutgoingMethod
    ) {
        heard.append(.channelClosed(reason))
    }

    func failed(_ connection: AMQPConnection, _ failure: LinkFailure) {
        heard.append(.failed(failure))
    }

    func received(_ connection: AMQPConnection, _ message: MessageAssembler.Message) {
        heard.append(.message(message))
    }

    func blocked(_ connection: AMQPConnection, _ isBlocked: Bool, reason: String) {
        heard.append(.blocked(isBlocked))
    }

    func readCompleted(_ connection: AMQPConnection) {}

    func becameWritable(_ connection: AMQPConnection) {}

    /// A failure comes once and last, and a message has the length that it says.
    func check(_ bytesMax: Int) throws {
        for (index, heard) in heard.enumerated() {
            switch heard {
            case .failed:
                try require(index == self.heard.count - 1, "a failed connection goes on")
            case .message(let message):
                let isRight = message.body.map { $0.count == message.bodyBytes }
                try require(
                    isRight ?? (message.bodyBytes > bytesMax),
                    "a message of another length"
                )
            case .opened, .ready, .channelClosed, .blocked: continue
            }
        }
    }
}
#endif
