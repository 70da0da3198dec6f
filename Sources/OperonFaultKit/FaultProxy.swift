import Foundation
import NIOCore
import NIOPosix

/// A TCP proxy that does to connections what networks do: it cuts them at a chosen byte, lets
/// nothing through in one direction, is slow, or hands bytes on one by one.
///
/// What it does changes while it runs, for all connections at once. Everything below is used on one
/// event loop, which is why it may be shared.
package final class FaultProxy: @unchecked Sendable {
    package enum Direction: String, CaseIterable, Hashable, Sendable {
        /// From whoever connects to the proxy.
        case toServer
        case toClient
    }

    /// What happens to the bytes of one direction.
    package struct Conditions: Hashable, Sendable {
        /// Nothing arrives, as if every packet were lost: not the end of a connection either. What
        /// was sent meanwhile arrives afterwards if the connection is still there, since TCP sends
        /// it again.
        package var isDropping = false
        /// How much later everything arrives.
        package var delay = Duration.zero
        /// At most so many bytes in a second, for each connection.
        package var bytesPerSecond: Int?
        /// Bytes arrive one by one with this pause between them.
        package var bytePause: Duration?

        package init() {}
    }

    /// A connection that is reset before a certain byte of it arrives.
    package struct Cut: Hashable, Sendable {
        package enum Place: Hashable, Sendable {
            /// So many bytes of the connection arrive.
            case offset(Int)
            /// Before a byte of this kind, once so many others of it have arrived.
            case byte(AMQPByteScanner.Kind, skipping: Int)
        }

        package var direction: Direction
        package var place: Place

        package init(_ direction: Direction, _ place: Place) {
            self.direction = direction
            self.place = place
        }
    }

    package struct Counts: Hashable, Sendable {
        /// Connections that were ever made to the proxy.
        package var connections = 0
        package var open = 0
        package var cuts = 0
        /// Bytes that were let through.
        package var bytes: [Direction: Int] = [.toServer: 0, .toClient: 0]
        /// Those of the connections that are open.
        package var openBytes: [Direction: Int] = [.toServer: 0, .toClient: 0]

        package init() {}
    }

    /// Where it listens, on the loopback interface.
    package let port: Int
    private let url: URLComponents
    private let loop: any EventLoop
    private let server: (host: String, port: Int)
    private var listener: (any Channel)?
    private var conditions: [Direction: Conditions] = [:]
    private var isRefusing = false
    private var armed: [ArmedCut] = []
    private var links: [ObjectIdentifier: ProxyLink] = [:]
    private var counts = Counts()

    /// A cut that waits for its byte.
    package final class ArmedCut: @unchecked Sendable {
        package let cut: Cut
        /// Used on the proxy's event loop.
        fileprivate var skipped = 0
        private let latch = Latch<Bool>()

        fileprivate init(_ cut: Cut) { self.cut = cut }

        fileprivate func happened() { latch.open(true) }

        /// Returns when it has cut a connection.
        package func happens(within limit: Duration = .seconds(120)) async throws {
            guard await latch.wait(until: ContinuousClock.now + limit) != nil else {
                throw CommandFailure("\(cut) did not happen within \(limit)")
            }
        }
    }

    /// Listens in front of the server of a URL (amqp://…, http://…) while `body` runs.
    package static func withProxy<Result>(
        to url: String,
        isolation: isolated (any Actor)? = #isolation,
        _ body: (FaultProxy) async throws -> Result
    ) async throws -> Result {
        try await withProxies(1, to: url) { try await body($0[0]) }
    }

    /// The same with several, so that each connection can have faults of its own.
    package static func withProxies<Result>(
        _ count: Int,
        to url: String,
        isolation: isolated (any Actor)? = #isolation,
        _ body: ([FaultProxy]) async throws -> Result
    ) async throws -> Result {
        var proxies: [FaultProxy] = []
        for _ in 0..<count { proxies.append(try await start(to: url)) }
        do {
            let result = try await body(proxies)
            for proxy in proxies { await proxy.stop() }
            return result
        } catch {
            for proxy in proxies { await proxy.stop() }
            throw error
        }
    }

    private static func start(to url: String) async throws -> FaultProxy {
        guard let components = URLComponents(string: url), let host = components.host,
            let port = components.port
        else { throw CommandFailure("“\(url)” names no host and port") }
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let holder = ProxyHolder()
        let listener = try await ServerBootstrap(group: loop)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .serverChannelOption(.socketOption(.so_rcvbuf), value: ProxyLink.receiveBufferBytes)
            .childChannelOption(.autoRead, value: false)
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .childChannelOption(.recvAllocator, value: ProxyLink.allocator)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try holder.proxy?.accept(channel) }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let proxy = FaultProxy(
            listener: listener,
            url: components,
            server: (host, port),
            loop: loop
        )
        try await loop.submit { holder.proxy = proxy }.get()
        return proxy
    }

    /// The proxy that accepts, once there is one. Used on the event loop.
    private final class ProxyHolder: @unchecked Sendable {
        weak var proxy: FaultProxy?
    }

    private init(
        listener: any Channel,
        url: URLComponents,
        server: (host: String, port: Int),
        loop: any EventLoop
    ) {
        self.listener = listener
        self.url = url
        self.server = server
        self.loop = loop
        port = listener.localAddress?.port ?? 0
    }

    /// The server's URL, with the proxy in its place.
    package var clientURL: String {
        var copy = url
        copy.host = "127.0.0.1"
        copy.port = port
        return copy.string ?? ""
    }

    // MARK: - Faults

    /// Changes what happens to the bytes of a direction.
    package func change(
        _ direction: Direction,
        _ change: @escaping @Sendable (inout Conditions) -> Void
    ) async {
        await onLoop { proxy in
            change(&proxy.conditions[direction, default: Conditions()])
            proxy.pumpAll()
        }
    }

    /// From now on nothing arrives in this direction, or everything again.
    package func drop(_ direction: Direction, _ isDropping: Bool) async {
        await change(direction) { $0.isDropping = isDropping }
    }

    /// Resets every connection, and refuses new ones until told otherwise: a cable that is out.
    package func unplug(_ isUnplugged: Bool) async {
        await onLoop { proxy in
            proxy.isRefusing = isUnplugged
            if isUnplugged { proxy.resetAll() }
        }
    }

    /// Resets every connection there is.
    package func cutAll() async { await onLoop { $0.resetAll() } }

    /// Cuts the next connection that has such a byte, once.
    package func arm(_ cut: Cut) async -> ArmedCut {
        let armedCut = ArmedCut(cut)
        await onLoop { $0.armed.append(armedCut) }
        return armedCut
    }

    package var state: Counts {
        get async {
            await onLoop { proxy in
                var counts = proxy.counts
                counts.open = proxy.links.count
                for direction in Direction.allCases {
                    counts.openBytes[direction] = proxy.links.values.reduce(0) {
                        $0 + $1.passedBytes(direction)
                    }
                }
                return counts
            }
        }
    }

    private func stop() async {
        await onLoop { proxy in
            proxy.isRefusing = true
            proxy.resetAll()
            proxy.listener?.close(promise: nil)
            proxy.listener = nil
        }
    }

    private func onLoop<Result: Sendable>(
        _ body: @escaping @Sendable (FaultProxy) -> Result
    ) async -> Result {
        await withCheckedContinuation { continuation in
            loop.execute { continuation.resume(returning: body(self)) }
        }
    }

    private func resetAll() { for link in Array(links.values) { link.reset() } }

    private func pumpAll() { for link in Array(links.values) { link.pump() } }

    // MARK: - Connections, on the loop

    private func accept(_ client: any Channel) throws {
        guard !isRefusing else { return ProxyLink.reset(client) }
        counts.connections += 1
        let link = ProxyLink(proxy: self, client: client)
        links[ObjectIdentifier(link)] = link
        try link.connect(to: server, on: loop)
    }

    func ended(_ link: ProxyLink) { links[ObjectIdentifier(link)] = nil }

    func conditions(of direction: Direction) -> Conditions {
        conditions[direction] ?? Conditions()
    }

    func passed(_ count: Int, _ direction: Direction) {
        counts.bytes[direction, default: 0] += count
    }

    /// How many of the next bytes arrive before a cut, if one is due in them.
    func cut(
        _ direction: Direction,
        from offset: Int,
        count: Int,
        marks: [AMQPByteScanner.Mark]
    ) -> Int? {
        for (index, armedCut) in armed.enumerated() where armedCut.cut.direction == direction {
            let place: Int?
            switch armedCut.cut.place {
            case .offset(let wanted):
                place = (offset..<offset + count).contains(wanted) ? wanted - offset : nil
            case .byte(let kind, let skipping):
                let ofKind = marks.filter { $0.kind == kind }
                let left = skipping - armedCut.skipped
                place = left < ofKind.count ? ofKind[left].offset : nil
                armedCut.skipped += ofKind.count
            }
            guard let place else { continue }
            armed.remove(at: index)
            counts.cuts += 1
            armedCut.happened()
            return place
        }
        return nil
    }
}
