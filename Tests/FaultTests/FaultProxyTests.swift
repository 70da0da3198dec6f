import NIOConcurrencyHelpers
import NIOCore
import NIOPosix
import OperonCore
import OperonFaultKit
import Testing

/// The proxy does what it says, and nothing else, to bytes between two sockets.
@Suite(.timeLimit(.minutes(5))) struct FaultProxyTests {
    private static func bytes(_ count: Int) -> [UInt8] {
        var generator = SeededGenerator(seed: 1)
        return (0..<count).map { _ in UInt8(truncatingIfNeeded: generator.next()) }
    }

    @Test func `without a fault every byte passes in both directions, and is counted`()
        async throws
    {
        try await ProxiedServer.run { served, proxy in
            let (client, server) = try await served.connect()
            let bytes = Self.bytes(1 << 20)

            client.send(bytes)
            #expect(try await server.receive(bytes.count) == bytes)
            server.send(bytes.reversed())
            #expect(try await client.receive(bytes.count) == bytes.reversed())

            #expect(
                await proxy.state
                    == FaultProxy.Counts.one(toServer: bytes.count, toClient: bytes.count)
            )
            client.close()
            #expect(try await server.end() == .closed)
            #expect(await proxy.state.open == 0)
            #expect(await proxy.state.openBytes == [.toServer: 0, .toClient: 0])
        }
    }

    @Test(arguments: [0, 1, 100, 40_000])
    func `a cut at an offset lets exactly that many bytes pass`(offset: Int) async throws {
        try await ProxiedServer.run { served, proxy in
            let cut = await proxy.arm(FaultProxy.Cut(.toServer, .offset(offset)))
            let (client, server) = try await served.connect()

            client.send(Self.bytes(50_000))

            try await cut.happens()
            #expect(try await server.end() == .reset)
            #expect(try await client.end() == .reset)
            #expect(server.received == Array(Self.bytes(50_000).prefix(offset)))
            // It happens once.
            let (again, other) = try await served.connect()
            again.send([1, 2, 3])
            #expect(try await other.receive(3) == [1, 2, 3])
        }
    }

    @Test(arguments: FaultProxy.Direction.allCases, AMQPByteScanner.Kind.allCases)
    func `a cut at a kind of byte lets pass what stands before it`(
        direction: FaultProxy.Direction,
        kind: AMQPByteScanner.Kind
    ) async throws {
        // A method of 5 bytes, twice; a header of 4; a body of 6.
        let method: [UInt8] = [1, 0, 1, 0, 0, 0, 5, 1, 2, 3, 4, 5, 0xCE]
        let header: [UInt8] = [2, 0, 1, 0, 0, 0, 4, 6, 7, 8, 9, 0xCE]
        let body: [UInt8] = [3, 0, 1, 0, 0, 0, 6, 1, 2, 3, 4, 5, 6, 0xCE]
        try await ProxiedServer.run { served, proxy in
            let place = FaultProxy.Cut.Place.byte(kind, skipping: kind == .method ? 1 : 0)
            let cut = await proxy.arm(FaultProxy.Cut(direction, place))
            let (client, server) = try await served.connect()
            let start = direction == .toServer ? Array("AMQP".utf8) + [0, 0, 9, 1] : []
            let (sender, receiver) = direction == .toServer ? (client, server) : (server, client)

            sender.send(start + method + method + header + body)

            try await cut.happens()
            #expect(try await receiver.end() == .reset)
            let expected: [AMQPByteScanner.Kind: Int] = [
                .method: 13 + 9, .header: 26 + 9, .body: 38 + 10, .end: 12,
            ]
            #expect(receiver.received.count == start.count + expected[kind, default: -1])
        }
    }

    @Test func `while nothing arrives in one direction the other works, and nothing is lost`()
        async throws
    {
        try await ProxiedServer.run { served, proxy in
            let (client, server) = try await served.connect()
            client.send([1])
            #expect(try await server.receive(1) == [1])
            await proxy.drop(.toServer, true)
            client.send([2, 3])
            server.send([4])
            #expect(try await client.receive(1) == [4])
            // The end is not told either.
            client.close()
            server.send([5])
            #expect(server.received == [1])
            #expect(await proxy.state.bytes[.toServer] == 1)
            await proxy.drop(.toServer, false)

            #expect(try await server.receive(3) == [1, 2, 3])
            // Closed, or reset if what it sent meanwhile was not read.
            _ = try await server.end()
        }
    }

    @Test func `a connection that is made while nothing arrives works afterwards`() async throws {
        try await ProxiedServer.run { served, proxy in
            await proxy.drop(.toServer, true)
            let (client, server) = try await served.connect()
            client.send([1])
            await proxy.drop(.toServer, false)
            #expect(try await server.receive(1) == [1])
        }
    }

    @Test func `an unplugged link resets what is there and refuses what comes`() async throws {
        try await ProxiedServer.run { served, proxy in
            let (client, server) = try await served.connect()
            await proxy.unplug(true)
            #expect(try await client.end() == .reset)
            #expect(try await server.end() == .reset)
            // The reset may come before the client knows that it is connected.
            if let refused = try? await served.connectClient() {
                #expect(try await refused.end() == .reset)
            }
            await proxy.unplug(false)

            let (next, other) = try await served.connect()
            next.send([7])
            #expect(try await other.receive(1) == [7])
            #expect(await proxy.state.connections == 2)
        }
    }

    struct Slowness: Sendable {
        let name: String
        let count: Int
        let atLeast: Duration
        let change: @Sendable (inout FaultProxy.Conditions) -> Void
    }

    @Test(arguments: [
        Slowness(name: "delay", count: 500_000, atLeast: .milliseconds(300)) {
            $0.delay = .milliseconds(300)
        },
        Slowness(name: "rate", count: 500_000, atLeast: .milliseconds(400)) {
            $0.bytesPerSecond = 1_000_000
        },
        Slowness(name: "one by one", count: 200, atLeast: .milliseconds(300)) {
            $0.bytePause = .milliseconds(2)
        },
    ])
    func `slow links keep every byte and their pace`(slowness: Slowness) async throws {
        try await ProxiedServer.run { served, proxy in
            for direction in FaultProxy.Direction.allCases {
                await proxy.change(direction, slowness.change)
            }
            let (client, server) = try await served.connect()
            let bytes = Self.bytes(slowness.count)
            let start = ContinuousClock.now

            client.send(bytes)
            server.send(bytes)

            #expect(try await server.receive(bytes.count) == bytes)
            #expect(try await client.receive(bytes.count) == bytes)
            #expect(ContinuousClock.now - start >= slowness.atLeast)
        }
    }
}

extension FaultProxy.Counts {
    fileprivate static func one(toServer: Int, toClient: Int) -> FaultProxy.Counts {
        var counts = FaultProxy.Counts()
        counts.connections = 1
        counts.open = 1
        counts.bytes = [.toServer: toServer, .toClient: toClient]
        counts.openBytes = counts.bytes
        return counts
    }
}

/// A server behind a proxy, and clients in front of it.
private struct ProxiedServer {
    let proxy: FaultProxy
    let accepted: EventStream<Peer>

    static func run(_ body: (ProxiedServer, FaultProxy) async throws -> Void) async throws {
        let accepted = EventStream<Peer>()
        let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    accepted.send(try Peer(channel))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let port = listener.localAddress?.port ?? 0
        try await FaultProxy.withProxy(to: "tcp://127.0.0.1:\(port)") { proxy in
            try await body(ProxiedServer(proxy: proxy, accepted: accepted), proxy)
        }
        try await listener.close()
    }

    func connectClient() async throws -> Peer {
        let made = EventStream<Peer>()
        _ = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { made.send(try Peer(channel)) }
            }
            .connect(host: "127.0.0.1", port: proxy.port).get()
        return try await made.next()
    }

    func connect() async throws -> (client: Peer, server: Peer) {
        (try await connectClient(), try await accepted.next())
    }
}

/// Values that one side sends and one other awaits.
private final class EventStream<Value: Sendable>: Sendable {
    private let stream: AsyncStream<Value>
    private let continuation: AsyncStream<Value>.Continuation

    init() { (stream, continuation) = AsyncStream.makeStream() }

    func send(_ value: Value) { continuation.yield(value) }

    func next() async throws -> Value {
        for await value in stream { return value }
        throw CommandFailure("nothing comes any more")
    }
}

/// One end of a connection: what it has received, and how the connection ended.
private final class Peer: Sendable {
    enum End: Hashable, Sendable {
        case closed
        case reset
    }

    private enum Event: Sendable {
        case bytes([UInt8])
        case end(End)
    }

    private let channel: any Channel
    private let events = EventStream<Event>()
    private let state = NIOLockedValueBox((bytes: [UInt8](), end: End?.none))

    init(_ channel: any Channel) throws {
        self.channel = channel
        try channel.pipeline.syncOperations.addHandler(Handler(events))
    }

    var received: [UInt8] { state.withLockedValue { $0.bytes } }

    func send(_ bytes: [UInt8]) { channel.writeAndFlush(ByteBuffer(bytes: bytes), promise: nil) }

    func close() { channel.close(promise: nil) }

    /// Everything it has received, once that is so much.
    func receive(_ count: Int) async throws -> [UInt8] {
        while received.count < count {
            guard state.withLockedValue({ $0.end }) == nil else {
                throw CommandFailure("ended after \(received.count) of \(count) bytes")
            }
            try await step()
        }
        return received
    }

    func end() async throws -> End {
        while true {
            if let end = state.withLockedValue({ $0.end }) { return end }
            try await step()
        }
    }

    private func step() async throws {
        let event = try await events.next()
        state.withLockedValue { state in
            switch event {
            case .bytes(let bytes): state.bytes += bytes
            case .end(let end): state.end = state.end ?? end
            }
        }
    }

    private final class Handler: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        private let events: EventStream<Event>

        init(_ events: EventStream<Event>) { self.events = events }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            events.send(.bytes(Array(unwrapInboundIn(data).readableBytesView)))
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            events.send(.end(.reset))
            context.close(promise: nil)
        }

        func channelInactive(context: ChannelHandlerContext) { events.send(.end(.closed)) }
    }
}
