import HTTPTypes
import NIOConcurrencyHelpers
import NIOCore
import NIOHTTPTypes
import OperonPorts

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// The connections of a server, and how to close each of them.
final class Connections: Sendable {
    private struct State {
        var table: ConnectionTable
        /// Those without a place that wait for their request, to be refused in words.
        var refusedCount = 0
        var channels: [ConnectionTable.ID: any Channel] = [:]
    }

    private let state: NIOLockedValueBox<State>
    private let bounds: ConnectionTable.Bounds
    private let refusedMax: Int
    /// How long a connection without a place is kept for its request.
    let refusalTime: Duration

    /// - Parameter refusedMax: the most connections without a place that are kept until they have
    ///   been refused in words.
    init(_ bounds: ConnectionTable.Bounds, refusedMax: Int, refusalTime: Duration) {
        self.bounds = bounds
        self.refusedMax = refusedMax
        self.refusalTime = refusalTime
        state = NIOLockedValueBox(State(table: ConnectionTable(bounds)))
    }

    /// The most sockets at a time: further connections wait in the kernel until one has been
    /// refused. The server accepts a few at once, so there may be a few more: `refusedMax` leaves
    /// room for them.
    var socketsMax: Int { bounds.total + bounds.reserve + max(1, refusedMax - bounds.reserve) }

    /// How long the first request of a connection may be on its way.
    var firstRequest: Duration { bounds.firstRequest }

    var count: Int { state.withLockedValue { $0.table.count } }

    /// `nil` if there is no room for the connection.
    func open(_ channel: any Channel, from address: String?) -> ConnectionTable.ID? {
        let (id, rival): (ConnectionTable.ID?, (any Channel)?) = state.withLockedValue { state in
            switch state.table.open(from: address, at: .now) {
            case .refused: return (nil, nil)
            case .admitted(let id, let rival):
                state.channels[id] = channel
                return (id, rival.flatMap { state.channels.removeValue(forKey: $0) })
            }
        }
        rival?.pipeline.fireUserInboundEventTriggered(ConnectionGuard.PlaceLost())
        return id
    }

    /// Whether one more connection without a place may wait for its request.
    func keepsRefused() -> Bool {
        state.withLockedValue { state in
            guard state.refusedCount < refusedMax else { return false }
            state.refusedCount += 1
            return true
        }
    }

    func releasesRefused() { state.withLockedValue { $0.refusedCount -= 1 } }

    func asks(_ id: ConnectionTable.ID, forHealth: Bool) -> Bool {
        state.withLockedValue { $0.table.asks(id, forHealth: forHealth) }
    }

    func waits(_ id: ConnectionTable.ID) { state.withLockedValue { $0.table.waits(id) } }

    func close(_ id: ConnectionTable.ID) {
        state.withLockedValue { state in
            state.table.close(id)
            state.channels[id] = nil
        }
    }

    /// The limits on connections that this process can serve: at most half of its descriptors.
    convenience init(_ limits: HTTPLimits) {
        var limit = rlimit()
        #if os(Linux)
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        #else
        let resource = RLIMIT_NOFILE
        #endif
        let isKnown = unsafe getrlimit(resource, &limit) == 0
        let descriptors = isKnown ? Int(clamping: limit.rlim_cur) : 1_024
        let refusedMax = min(limits.refusedConnections, descriptors / 8)
        let most = max(1, descriptors / 2 - limits.reservedConnections - refusedMax)
        let bounds = ConnectionTable.Bounds(
            total: min(limits.connections, most),
            // However small the total is, one address cannot take all connections.
            perAddress: min(limits.connectionsPerAddress, max(1, most / 2)),
            reserve: limits.reservedConnections,
            firstRequest: limits.firstRequestTime
        )
        self.init(bounds, refusedMax: refusedMax, refusalTime: limits.refusalTime)
    }
}

/// Guards one connection: admits it only if the server may serve the client, and closes it if no
/// request arrives in time.
///
/// A connection that is not admitted, or that loses its place before its first request, stays for a
/// moment, so that the request can be refused in words. One that loses its place between requests
/// is closed: its client connects again. None of them ends with an error, because an error would
/// end the server.
final class ConnectionGuard: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias InboundOut = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    /// The event for a connection whose place another one has taken.
    struct PlaceLost: Sendable {}

    private let connections: Connections
    private let headTime: TimeAmount
    private let isLocal: Bool
    /// `nil` before the connection is admitted and after it is refused.
    private var id: ConnectionTable.ID?
    private let openedAt = ContinuousClock.now
    private var hasAsked = false
    /// Whether it has no place, and waits for its request for a moment, to refuse it.
    private var isRefusing = false
    private var alarm: Scheduled<Void>?
    /// Requests whose answer has not ended.
    private var openCount = 0

    /// - Parameter isLocal: whether the server listens on a socket file, where the client has a
    ///   uid.
    init(_ connections: Connections, headTime: Duration, isLocal: Bool) {
        self.connections = connections
        self.headTime = TimeAmount(headTime)
        self.isLocal = isLocal
    }

    func handlerAdded(context: ChannelHandlerContext) {
        // The TLS handshake comes before any HTTP. The time for both starts here.
        let channel = context.channel
        alarm = channel.close(in: headTime)
        if channel.isActive { admit(context) }
    }

    func handlerRemoved(context: ChannelHandlerContext) { leave() }

    func channelActive(context: ChannelHandlerContext) {
        admit(context)
        context.fireChannelActive()
    }

    func channelInactive(context: ChannelHandlerContext) {
        leave()
        context.fireChannelInactive()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard event is PlaceLost else { return context.fireUserInboundEventTriggered(event) }
        // If the request has just come, it has been refused: there was no place any more.
        if id != nil { refuseLater(context) }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if isRefusing {
            // Health costs little, and monitoring comes together with a crowd.
            guard case .head(let head) = unwrapInboundIn(data), !Self.isAboutHealth(head) else {
                return context.fireChannelRead(data)
            }
            return refuse(context)
        }
        guard let id else { return }
        if case .head(let head) = unwrapInboundIn(data) {
            alarm?.cancel()
            alarm = nil
            guard connections.asks(id, forHealth: Self.isAboutHealth(head)) else {
                return refuse(context)
            }
            hasAsked = true
            openCount += 1
        }
        context.fireChannelRead(data)
    }

    func write(
        context: ChannelHandlerContext,
        data: NIOAny,
        promise: EventLoopPromise<Void>?
    ) {
        if case .end = unwrapOutboundIn(data) {
            openCount -= 1
            if openCount <= 0, let id { connections.waits(id) }
        }
        context.write(data, promise: promise)
    }

    private func admit(_ context: ChannelHandlerContext) {
        guard id == nil else { return }
        let channel = context.channel
        let isWelcome = !isLocal || PeerUser.isWelcome(at: channel)
        let address = isLocal ? nil : channel.remoteAddress?.ipAddress ?? ""
        guard isWelcome else { return context.close(promise: nil) }
        id = connections.open(channel, from: address)
        if id == nil { refuseLater(context) }
    }

    /// Waits for the first request, if it may be on its way, to refuse it.
    private func refuseLater(_ context: ChannelHandlerContext) {
        guard !isRefusing else { return }
        leave()
        let isNew = !hasAsked && .now - openedAt <= connections.firstRequest
        guard isNew, connections.keepsRefused() else { return context.close(promise: nil) }
        isRefusing = true
        alarm = context.channel.close(in: TimeAmount(connections.refusalTime))
    }

    private func leave() {
        alarm?.cancel()
        alarm = nil
        if isRefusing {
            isRefusing = false
            connections.releasesRefused()
        }
        guard let id else { return }
        connections.close(id)
        self.id = nil
    }

    private static func isAboutHealth(_ head: HTTPRequest) -> Bool {
        let path = (head.path ?? "").prefix { $0 != "?" }
        return path == "/healthz" || path == "/readyz" || path == "/metrics"
    }

    /// Refuses a request, because too many connections have one.
    private func refuse(_ context: ChannelHandlerContext) {
        leave()
        let message = "Too many connections to this coordinator: try again later."
        let body =
            (try? JSONBytes.page(Problem(ClientError(.unavailable, message)))) ?? ByteBuffer()
        var head = HTTPResponse(status: .serviceUnavailable)
        head.headerFields[.contentType] = Problem.contentType
        head.headerFields[.contentLength] = String(body.readableBytes)
        head.headerFields[.retryAfter] = "5"
        head.headerFields[.connection] = "close"
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        context.write(wrapOutboundOut(.body(body)), promise: nil)
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
        context.close(promise: nil)
    }
}

/// The user at the other end of a socket file.
enum PeerUser {
    #if os(Linux)
    /// `struct ucred` (unix(7)); the kernel fills it with the client as it was when it connected.
    private struct Credentials: Sendable {
        var process: Int32 = 0
        var user: UInt32 = 0
        var group: UInt32 = 0
    }

    /// Whether the client is this user or root.
    static func isWelcome(at channel: any Channel) -> Bool {
        guard let provider = channel as? any SocketOptionProvider else { return false }
        let asked: EventLoopFuture<Credentials> = provider.unsafeGetSocketOption(
            level: .socket,
            name: NIOBSDSocket.Option(rawValue: SO_PEERCRED)
        )
        // Already completed, because this runs on the channel's own event loop.
        let found = NIOLockedValueBox<UInt32?>(nil)
        asked.whenSuccess { peer in found.withLockedValue { $0 = peer.user } }
        guard let user = found.withLockedValue({ $0 }) else { return false }
        return isWelcome(user)
    }
    #else
    /// On this system only the mode of the file and of its directory decide who can connect.
    static func isWelcome(at channel: any Channel) -> Bool { true }
    #endif

    static func isWelcome(_ user: UInt32) -> Bool { user == geteuid() || user == 0 }
}
