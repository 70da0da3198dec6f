import NIOCore
import NIOPosix

/// One connection through a proxy: two sockets, and a pipe for each direction. Lives on the proxy's
/// event loop, until both sockets are closed.
final class ProxyLink {
    /// What the network may hold of a connection besides the sockets of its ends: small, or a slow
    /// link would look fast for a long time.
    static let receiveBufferBytes: ChannelOptions.Types.SocketOption.Value = 64 << 10
    static let allocator = FixedSizeRecvByteBufferAllocator(capacity: 16 << 10)

    private let proxy: FaultProxy
    private let client: any Channel
    private var server: (any Channel)?
    private let toServer: ProxyPipe
    private let toClient: ProxyPipe
    private var isOver = false

    init(proxy: FaultProxy, client: any Channel) {
        self.proxy = proxy
        self.client = client
        toServer = ProxyPipe(.toServer, from: client)
        toClient = ProxyPipe(.toClient, to: client)
        toServer.link = self
        toClient.link = self
    }

    func connect(to server: (host: String, port: Int), on loop: any EventLoop) throws {
        try client.pipeline.syncOperations.addHandler(ProxyEnd(reads: toServer, writes: toClient))
        let end = NIOLoopBound(ProxyEnd(reads: toClient, writes: toServer), eventLoop: loop)
        let link = NIOLoopBound(self, eventLoop: loop)
        ClientBootstrap(group: loop)
            .channelOption(.autoRead, value: false)
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .channelOption(.socketOption(.so_rcvbuf), value: Self.receiveBufferBytes)
            .channelOption(.recvAllocator, value: Self.allocator)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(end.value)
                }
            }
            .connect(host: server.host, port: server.port)
            .whenComplete { result in link.value.connected(result) }
    }

    private func connected(_ result: Result<any Channel, any Error>) {
        guard case .success(let server) = result, !isOver else {
            if case .success(let late) = result { Self.reset(late) }
            return reset()
        }
        self.server = server
        toServer.destination = server
        toClient.source = server
        pump()
    }

    func pump() {
        toServer.pump(proxy)
        toClient.pump(proxy)
    }

    func pump(_ pipe: ProxyPipe) { pipe.pump(proxy) }

    /// How many bytes of this direction were let through.
    func passedBytes(_ direction: FaultProxy.Direction) -> Int {
        direction == .toServer ? toServer.passed : toClient.passed
    }

    /// Both ends find their connection reset.
    func reset() {
        guard !isOver else { return }
        isOver = true
        toServer.stop()
        toClient.stop()
        Self.reset(client)
        if let server { Self.reset(server) }
        proxy.ended(self)
    }

    /// Whatever one end still had to say has arrived: the other learns of its end.
    func finish() {
        guard !isOver else { return }
        isOver = true
        toServer.stop()
        toClient.stop()
        client.close(promise: nil)
        server?.close(promise: nil)
        proxy.ended(self)
    }

    static func reset(_ channel: any Channel) {
        // Closing with a linger time of zero sends RST (socket(7)).
        if let socket = channel as? any SocketOptionProvider {
            _ = socket.setSoLinger(linger(l_onoff: 1, l_linger: 0))
        }
        channel.close(promise: nil)
    }
}

/// The bytes of one direction, from one socket to the other.
final class ProxyPipe {
    weak var link: ProxyLink?
    /// `nil` until the server has answered.
    var source: (any Channel)?
    var destination: (any Channel)?
    private let direction: FaultProxy.Direction
    private var waiting = CircularBuffer<(due: NIODeadline, bytes: ByteBuffer)>()
    private var waitingBytes = 0
    private var scanner: AMQPByteScanner
    private(set) var passed = 0
    private var nextAt = NIODeadline.uptimeNanoseconds(0)
    private var timer: Scheduled<Void>?
    private var isReading = false
    private var hasEnded = false
    private var isStopped = false

    /// How much may be on its way while everything is delayed.
    private static let delayedBytesMax = 4 << 20
    /// How long a socket has to take what came before a cut; a reset would throw it away.
    private static let cutPause = TimeAmount.milliseconds(10)

    init(_ direction: FaultProxy.Direction, from source: any Channel) {
        self.direction = direction
        self.source = source
        scanner = AMQPByteScanner(startsWithProtocolHeader: true)
    }

    init(_ direction: FaultProxy.Direction, to destination: any Channel) {
        self.direction = direction
        self.destination = destination
        scanner = AMQPByteScanner(startsWithProtocolHeader: false)
    }

    func received(_ bytes: ByteBuffer) {
        guard !isStopped, let proxyDelay = delay else { return }
        waiting.append((.now() + proxyDelay, bytes))
        waitingBytes += bytes.readableBytes
    }

    private var delay: TimeAmount? { link.map { $0.delay(of: direction) } }

    func readCompleted() {
        isReading = false
        link?.pump(self)
    }

    /// The source is closed: the last thing it said.
    func sourceEnded() {
        hasEnded = true
        link?.pump(self)
    }

    func stop() {
        isStopped = true
        timer?.cancel()
        timer = nil
        waiting.removeAll()
    }

    /// Hands on what may arrive now, and looks for more.
    func pump(_ proxy: FaultProxy) {
        timer?.cancel()
        timer = nil
        let conditions = proxy.conditions(of: direction)
        guard !isStopped, !conditions.isDropping, let destination else { return }
        while let first = waiting.first {
            let at = max(first.due, nextAt)
            guard at <= .now() else { return wake(at: at, on: destination.eventLoop) }
            guard destination.isWritable || !destination.isActive else { break }
            let piece = nextPiece(conditions)
            guard pass(piece, to: destination, proxy) else { return }
        }
        if waiting.isEmpty, hasEnded {
            link?.finish()
        } else {
            readMore(conditions)
        }
    }

    private func readMore(_ conditions: FaultProxy.Conditions) {
        let hasRoom =
            conditions.delay > .zero ? waitingBytes < Self.delayedBytesMax : waiting.isEmpty
        guard hasRoom, !isReading, !hasEnded, let source else { return }
        isReading = true
        source.read()
    }

    private func wake(at deadline: NIODeadline, on loop: any EventLoop) {
        let bound = NIOLoopBound(self, eventLoop: loop)
        timer = loop.scheduleTask(deadline: deadline) {
            let pipe = bound.value
            pipe.timer = nil
            pipe.link?.pump(pipe)
        }
        // While it waits for its time, more may come.
        if let link { readMore(link.conditions(of: direction)) }
    }

    private func nextPiece(_ conditions: FaultProxy.Conditions) -> ByteBuffer {
        var most = Int.max
        var pause = TimeAmount.zero
        if let rate = conditions.bytesPerSecond {
            // A hundredth of a second at a time.
            most = max(1, rate / 100)
        }
        if let bytePause = conditions.bytePause {
            most = 1
            pause = TimeAmount(bytePause)
        }
        var first = waiting[waiting.startIndex]
        let count = min(most, first.bytes.readableBytes)
        let piece = first.bytes.readSlice(length: count) ?? ByteBuffer()
        if first.bytes.readableBytes == 0 {
            waiting.removeFirst()
        } else {
            waiting[waiting.startIndex] = first
        }
        waitingBytes -= count
        if let rate = conditions.bytesPerSecond {
            pause = max(pause, .nanoseconds(Int64(count) * 1_000_000_000 / Int64(max(1, rate))))
        }
        // A timer that came late is made up for, a link that was idle is not.
        nextAt = max(nextAt, .now() - .milliseconds(50)) + pause
        return piece
    }

    /// Returns whether the connection still stands.
    private func pass(
        _ piece: ByteBuffer,
        to destination: any Channel,
        _ proxy: FaultProxy
    ) -> Bool {
        let count = piece.readableBytes
        let marks = scanner.scan(piece.readableBytesView)
        let cut = proxy.cut(direction, from: passed, count: count, marks: marks)
        let arriving = cut.flatMap { piece.getSlice(at: piece.readerIndex, length: $0) } ?? piece
        passed += arriving.readableBytes
        proxy.passed(arriving.readableBytes, direction)
        destination.writeAndFlush(arriving, promise: nil)
        guard cut != nil else { return true }
        isStopped = true
        if let link {
            let bound = NIOLoopBound(link, eventLoop: destination.eventLoop)
            destination.eventLoop.scheduleTask(in: Self.cutPause) { bound.value.reset() }
        }
        return false
    }
}

extension ProxyLink {
    func conditions(of direction: FaultProxy.Direction) -> FaultProxy.Conditions {
        proxy.conditions(of: direction)
    }

    func delay(of direction: FaultProxy.Direction) -> TimeAmount {
        TimeAmount(conditions(of: direction).delay)
    }
}

/// One socket: reads for one pipe, takes the bytes of the other.
private final class ProxyEnd: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let reads: ProxyPipe
    private let writes: ProxyPipe

    init(reads: ProxyPipe, writes: ProxyPipe) {
        self.reads = reads
        self.writes = writes
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        reads.received(unwrapInboundIn(data))
    }

    func channelReadComplete(context: ChannelHandlerContext) { reads.readCompleted() }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        writes.link?.pump(writes)
    }

    func channelInactive(context: ChannelHandlerContext) { reads.sourceEnded() }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }
}
