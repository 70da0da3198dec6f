import HTTPTypes
import NIOCore
import NIOHTTPTypes
import OperonPorts
import Synchronization

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

    private let state: Mutex<State>
    private let bounds: ConnectionTable.Bounds
    private let refusedMax: Int

    /// - Parameter refusedMax: the most connections without a place that are kept until they have
    ///   been refused in words.
    init(_ bounds: ConnectionTable.Bounds, refusedMax: Int) {
        self.bounds = bounds
        self.refusedMax = refusedMax
        state = Mutex(State(table: ConnectionTable(bounds)))
    }

    /// The most sockets at a time: further connections wait in the kernel until one has been
    /// refused. The server accepts a few at once, so there may be a few more: `refusedMax` leaves
    /// room for them.
    var socketsMax: Int { bounds.total + bounds.reserve + max(1, refusedMax - bounds.reserve) }

    /// How long the first request of a connection may be on its way.
    var firstRequest: Duration { bounds.firstRequest }

    var count: Int { state.withLock { $0.table.count } }

    /// `nil` if there is no room for the connection.
    func open(_ channel: any Channel, from address: String?) -> ConnectionTable.ID? {
        let (id, rival): (ConnectionTable.ID?, (any Channel)?) = state.withLock { state in
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
        state.withLock { state in
            guard state.refusedCount < refusedMax else { return false }
            state.refusedCount += 1
            return true
        }
    }

    func releasesRefused() { state.withLock { $0.refusedCount -= 1 } }

    func asks(_ id: ConnectionTable.ID, forHealth: Bool) -> Bool {
        state.withLock { $0.table.asks(id, forHealth: forHealth) }
    }

    func waits(_ id: ConnectionTable.ID) { state.withLock { $0.table.waits(id) } }

    func close(_ id: ConnectionTable.ID) {
        state.withLock { state in
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
        self.init(bounds, refusedMax: refusedMax)
    }
}

/// Guards one connection: admits it only if the server may serve the client, and closes it if no
/// request arrives in time.
///
/// A connection that is not admitted, or that loses its place before its first request, stays until
/// that request may no longer be on its way, so that it can be refused in words. One that loses its
/// place between requests is closed: its client connects again. None of them ends with an error,
/// because an error would end the server.
final class ConnectionGuard: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias InboundOut = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    /// The event for a connection whose place another one has taken.
    struct PlaceLost: Sendable {}

    private enum Standing {
        /// Not looked at yet.
        case new
        case admitted
        /// It has no place. Its first request is refused when it comes.
        case unplaced
        /// The request that is being answered is the last one.
        case last
        /// Its refusal is written. The rest of its request is dropped: a connection that is closed
        /// with unread bytes is reset, and the refusal may be lost.
        case refused
        case closed
    }

    private let connections: Connections
    private let headTime: TimeAmount
    private let isLocal: Bool
    private var standing = Standing.new
    /// `nil` while it has no place.
    private var id: ConnectionTable.ID?
    /// Whether it counts among those that are kept without a place.
    private var isKept = false
    private let openedAt = ContinuousClock.now
    private var hasAsked = false
    /// Whether the last request has been read.
    private var hasLast = false
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
        guard event is PlaceLost else {
            // Its client sends nothing more, and may be gone: whoever comes may have its place.
            if case ChannelEvent.inputClosed = event, let id { connections.waits(id) }
            return context.fireUserInboundEventTriggered(event)
        }
        // If a request has just come, it has been refused: there was no place any more.
        if standing == .admitted { losePlace(context) }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let part = unwrapInboundIn(data)
        switch standing {
        case .new, .closed: return
        case .refused:
            if case .end = part { context.close(promise: nil) }
            return
        case .last:
            if hasLast { return }
            if case .end = part { hasLast = true }
        case .unplaced:
            guard case .head(let head) = part else { return }
            guard Self.isAboutHealth(head) else { return refuse(context) }
            // Health costs little, and monitoring comes together with a crowd.
            standing = .last
            openCount += 1
            setAlarm(context, headTime)
        case .admitted:
            guard case .head(let head) = part else { break }
            guard let id, connections.asks(id, forHealth: Self.isAboutHealth(head)) else {
                return refuse(context)
            }
            alarm?.cancel()
            alarm = nil
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
        switch unwrapOutboundIn(data) {
        case .head(var head) where standing == .last && head.status.kind != .informational:
            head.headerFields[.connection] = "close"
            context.write(wrapOutboundOut(.head(head)), promise: promise)
        case .end:
            openCount -= 1
            guard openCount <= 0 else { return context.write(data, promise: promise) }
            if standing == .last {
                context.writeAndFlush(data, promise: promise)
                return context.close(promise: nil)
            }
            if let id { connections.waits(id) }
            context.write(data, promise: promise)
        case _: context.write(data, promise: promise)
        }
    }

    private func admit(_ context: ChannelHandlerContext) {
        guard standing == .new else { return }
        let channel = context.channel
        guard !isLocal || PeerUser.isWelcome(at: channel) else {
            standing = .closed
            return context.close(promise: nil)
        }
        id = connections.open(
            channel,
            from: isLocal ? nil : channel.remoteAddress?.ipAddress ?? ""
        )
        if id == nil { losePlace(context) } else { standing = .admitted }
    }

    /// Waits for the first request, if that may be on its way, to refuse it.
    private func losePlace(_ context: ChannelHandlerContext) {
        giveUpPlace()
        let left = connections.firstRequest - (.now - openedAt)
        guard !hasAsked, left > .zero, keep() else {
            standing = .closed
            return context.close(promise: nil)
        }
        standing = .unplaced
        setAlarm(context, TimeAmount(left))
    }

    /// Whether it may stay without a place.
    private func keep() -> Bool {
        isKept = isKept || connections.keepsRefused()
        return isKept
    }

    private func setAlarm(_ context: ChannelHandlerContext, _ time: TimeAmount) {
        alarm?.cancel()
        alarm = context.channel.close(in: time)
    }

    private func giveUpPlace() {
        if let id { connections.close(id) }
        id = nil
    }

    private func leave() {
        standing = .closed
        alarm?.cancel()
        alarm = nil
        giveUpPlace()
        if isKept { connections.releasesRefused() }
        isKept = false
    }

    private static func isAboutHealth(_ head: HTTPRequest) -> Bool {
        let path = (head.path ?? "").prefix { $0 != "?" }
        return path == "/healthz" || path == "/readyz" || path == "/metrics"
    }

    /// Refuses a request, because too many connections have one.
    private func refuse(_ context: ChannelHandlerContext) {
        guard openCount <= 0 else {
            // It came behind one that is being answered: a refusal would come before that answer.
            (standing, hasLast) = (.last, true)
            return
        }
        giveUpPlace()
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
        guard keep() else {
            standing = .closed
            return context.close(promise: nil)
        }
        standing = .refused
        setAlarm(context, TimeAmount(connections.firstRequest))
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
        // Already completed, because this runs on the channel's own event loop.
        let found = Mutex<UInt32?>(nil)
        credentials(at: channel)?
            .whenSuccess { peer in found.withLock { $0 = peer.user } }
        guard let user = found.withLock({ $0 }) else { return false }
        return isWelcome(user)
    }

    /// The number of the user; `nil`: it cannot be found out any more.
    static func number(at channel: any Channel) async -> UInt32? {
        try? await credentials(at: channel)?.get().user
    }

    private static func credentials(at channel: any Channel) -> EventLoopFuture<Credentials>? {
        guard let provider = channel as? any SocketOptionProvider else { return nil }
        return provider.unsafeGetSocketOption(
            level: .socket,
            name: NIOBSDSocket.Option(rawValue: SO_PEERCRED)
        )
    }
    #else
    /// On this system only the mode of the file and of its directory decide who can connect.
    static func isWelcome(at channel: any Channel) -> Bool { true }

    static func number(at channel: any Channel) async -> UInt32? { nil }
    #endif

    static func isWelcome(_ user: UInt32) -> Bool { user == geteuid() || user == 0 }
}
