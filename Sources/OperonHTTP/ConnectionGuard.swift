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

/// The connections of a server, and how each of them is closed.
final class Connections: Sendable {
    private struct State {
        var table: ConnectionTable
        var channels: [ConnectionTable.ID: any Channel] = [:]
    }

    private let state: NIOLockedValueBox<State>

    init(_ bounds: ConnectionTable.Bounds) {
        state = NIOLockedValueBox(State(table: ConnectionTable(bounds)))
    }

    var count: Int { state.withLockedValue { $0.table.count } }

    /// `nil`: there is no room for it.
    func open(_ channel: any Channel, from address: String?) -> ConnectionTable.ID? {
        let (id, rival): (ConnectionTable.ID?, (any Channel)?) = state.withLockedValue { state in
            switch state.table.open(from: address) {
            case .refused: return (nil, nil)
            case .admitted(let id, let rival):
                state.channels[id] = channel
                return (id, rival.flatMap { state.channels.removeValue(forKey: $0) })
            }
        }
        rival?.close(promise: nil)
        return id
    }

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

    /// What of a limit on connections this process can serve: half of its descriptors.
    static func bounds(_ limits: HTTPLimits) -> ConnectionTable.Bounds {
        var limit = rlimit()
        #if os(Linux)
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        #else
        let resource = RLIMIT_NOFILE
        #endif
        let isKnown = unsafe getrlimit(resource, &limit) == 0
        let descriptors = isKnown ? Int(clamping: limit.rlim_cur) : 1_024
        let most = max(1, descriptors / 2 - limits.reservedConnections)
        return ConnectionTable.Bounds(
            total: min(limits.connections, most),
            // However few there are, one address does not take them all.
            perAddress: min(limits.connectionsPerAddress, max(1, most / 2)),
            reserve: limits.reservedConnections
        )
    }
}

/// Stands at one connection: lets in only whom it may serve, and closes it if no request comes in
/// time.
///
/// A connection that is refused is closed and not failed: a failed one would end the server.
final class ConnectionGuard: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias InboundOut = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    private let connections: Connections
    private let headTime: TimeAmount
    private let isLocal: Bool
    /// `nil`: before it was let in, and after it was refused.
    private var id: ConnectionTable.ID?
    private var alarm: Scheduled<Void>?
    /// Requests whose answer has not ended.
    private var openCount = 0

    /// - Parameter isLocal: It listens on a file, whose other end has a uid.
    init(_ connections: Connections, headTime: Duration, isLocal: Bool) {
        self.connections = connections
        self.headTime = TimeAmount(headTime)
        self.isLocal = isLocal
    }

    func handlerAdded(context: ChannelHandlerContext) {
        // TLS shakes hands before anything of HTTP comes: the time of both runs from here.
        let channel = context.channel
        alarm = context.eventLoop.scheduleTask(in: headTime) { channel.close(promise: nil) }
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

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard let id else { return }
        if case .head(let head) = unwrapInboundIn(data) {
            alarm?.cancel()
            alarm = nil
            guard connections.asks(id, forHealth: Self.isAboutHealth(head)) else {
                return refuse(context)
            }
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
        id = isWelcome ? connections.open(channel, from: address) : nil
        if id == nil { context.close(promise: nil) }
    }

    private func leave() {
        alarm?.cancel()
        alarm = nil
        guard let id else { return }
        connections.close(id)
        self.id = nil
    }

    private static func isAboutHealth(_ head: HTTPRequest) -> Bool {
        let path = (head.path ?? "").prefix { $0 != "?" }
        return path == "/healthz" || path == "/readyz" || path == "/metrics"
    }

    /// Too many requests are being answered, and this is none about health.
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

/// Who is at the other end of a socket that is a file.
enum PeerUser {
    #if os(Linux)
    /// `struct ucred` (unix(7)), which the kernel fills with the peer as it was when it connected.
    private struct Credentials: Sendable {
        var process: Int32 = 0
        var user: UInt32 = 0
        var group: UInt32 = 0
    }

    /// Whether it is this user or root.
    static func isWelcome(at channel: any Channel) -> Bool {
        guard let provider = channel as? any SocketOptionProvider else { return false }
        let asked: EventLoopFuture<Credentials> = provider.unsafeGetSocketOption(
            level: .socket,
            name: NIOBSDSocket.Option(rawValue: SO_PEERCRED)
        )
        // Completed already: it was asked on the channel's own event loop.
        let found = NIOLockedValueBox<UInt32?>(nil)
        asked.whenSuccess { peer in found.withLockedValue { $0 = peer.user } }
        guard let user = found.withLockedValue({ $0 }) else { return false }
        return isWelcome(user)
    }
    #else
    /// Here the mode of the file and its directory alone decides who connects.
    static func isWelcome(at channel: any Channel) -> Bool { true }
    #endif

    static func isWelcome(_ user: UInt32) -> Bool { user == geteuid() || user == 0 }
}
