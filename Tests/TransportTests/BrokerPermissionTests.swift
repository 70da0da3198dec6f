import NIOCore
import NIOPosix
import OperonCore
import OperonFaultKit
import OperonModel
import OperonPorts
import Testing

@testable import OperonAMQP

/// What each side's user may not do on the broker: every one of these is refused with 403. What
/// they may do is what all other tests do.
@Suite(.serialized, .timeLimit(.minutes(5)), .ownBroker)
struct BrokerPermissionTests {
    private static let own = "worker.00000000000000aa.1"
    private static let another = "worker.00000000000000bb.1"

    /// Names without their prefix; the broker's own begin with `amq.`.
    enum Action: Hashable, CustomTestStringConvertible {
        case queue(String)
        case exchange(String)
        case consume(String)
        /// A queue to an exchange: messages for others would come to it.
        case bind(String, String)

        var testDescription: String {
            switch self {
            case .queue(let name): "declaring the queue \(name)"
            case .exchange(let name): "declaring the exchange \(name)"
            case .consume(let name): "consuming \(name)"
            case .bind(let queue, let exchange): "binding \(queue) to \(exchange)"
            }
        }

        func method(_ prefix: String) -> OutgoingMethod {
            func full(_ name: String) -> String { name.hasPrefix("amq.") ? name : prefix + name }
            return switch self {
            case .queue(let name): .queueDeclare(name: full(name), arguments: [])
            case .exchange(let name): .exchangeDeclare(name: full(name), kind: .direct)
            case .consume(let name): .consume(queue: full(name), consumer: .worker)
            case .bind(let queue, let exchange):
                .queueBind(queue: full(queue), exchange: full(exchange), routingKey: "k")
            }
        }
    }

    @Test(arguments: [
        Action.queue("coordinator"), .queue("events.1.2"), .queue("beats.1.2"), .queue("asks.1"),
        .queue("other"), .exchange("dispatch"), .exchange("other"), .exchange("worker"),
        .consume("coordinator"), .consume("events.00000001.1"), .consume("asks.1"),
        .bind(own, "events"), .bind(own, "beats"), .bind(own, "amq.direct"),
        .bind("coordinator", "dispatch"),
    ])
    func `a worker is refused`(action: Action) async throws {
        try await withCoordinator { sides, broker in
            let probe = try Probe(\.worker, sides, broker, [.queue(Self.own), action])
            try await probe.expectRefusal()
        }
    }

    @Test(arguments: [
        Action.queue(another), .queue("other"), .exchange("other"), .exchange("worker.x"),
        .consume(another), .bind(another, "events"), .bind("events.1.2", "dispatch"),
        .bind("events.1.2", "broadcast"),
    ])
    func `a coordinator is refused`(action: Action) async throws {
        try await withCoordinator { sides, broker in
            let probe = try Probe(\.coordinator, sides, broker, [.queue("events.1.2"), action])
            try await probe.expectRefusal()
        }
    }

    private static let address = WorkerAddress(
        incarnation: Incarnation(rawValue: 0xBB),
        connection: 1
    )

    @Test(arguments: [Outbox.Destination.worker(address), .broadcast])
    func `a worker that speaks to workers is refused`(destination: Outbox.Destination) async throws
    {
        try await withCoordinator { sides, broker in
            let probe = try Probe(\.worker, sides, broker, [.queue(Self.own)])
            try await probe.expectRefusal { link in
                await link.send(
                    Outbox.Message(destination: destination, priority: 0, body: [1])
                )
            }
        }
    }

    @Test func `a worker that goes round the exchanges is refused`() async throws {
        try await withCoordinator { sides, broker in
            let probe = try Probe(\.worker, sides, broker, [.queue(Self.own)])
            try await probe.expectRefusal { link in
                link.loop.execute {
                    let queue = sides.prefix + "coordinator"
                    link.connection?.publish([1], to: queue, replyTo: nil, isMandatory: true)
                }
            }
        }
    }

    @Test func `a worker is refused under another prefix`() async throws {
        try await withCoordinator { _, broker in
            let url = BrokerUsers(url: broker.url).worker
            let configuration = try AMQPConfiguration(url: url, prefix: "another.")
            try await Probe(configuration, [.queue(Self.own)]).expectRefusal()
        }
    }

    @Test func `what a worker needs is not refused`() async throws {
        try await withCoordinator { sides, broker in
            let probe = try Probe(
                \.worker,
                sides,
                broker,
                [
                    .queue(Self.own), .bind(Self.own, "dispatch"), .bind(Self.own, "broadcast"),
                    .consume(Self.own),
                ]
            )
            try await probe.expectNoRefusal()
        }
    }

    /// With the exchanges in place, so that nothing is refused for want of them.
    private func withCoordinator(
        _ body: (TransportSides, BrokerFixture) async throws -> Void
    ) async throws {
        let broker = try #require(BrokerFixture.current)
        let sides = try TransportSides(.broker, url: broker.url)
        let coordinator = try sides.coordinator()
        try await coordinator.up()
        try await body(sides, broker)
        try await coordinator.close()
    }
}

/// A link that declares and consumes whatever a test wants.
private struct Probe {
    private let link: AMQPLink<Role>

    init(
        _ user: KeyPath<BrokerUsers, String>,
        _ sides: TransportSides,
        _ broker: BrokerFixture,
        _ actions: [BrokerPermissionTests.Action]
    ) throws {
        let url = BrokerUsers(url: broker.url)[keyPath: user]
        self.init(try AMQPConfiguration(url: url, prefix: sides.prefix), actions)
    }

    init(_ configuration: AMQPConfiguration, _ actions: [BrokerPermissionTests.Action]) {
        link = AMQPLink(
            role: Role(
                names: Topology(prefix: configuration.prefix),
                methods: actions.map { $0.method(configuration.prefix) }
            ),
            configuration: configuration,
            machine: LinkStateMachine.Configuration(),
            seed: 1,
            logger: testLogger("probe"),
            group: MultiThreadedEventLoopGroup.singleton
        )
    }

    /// `act` comes when the link is up; without it, it must not come up.
    func expectRefusal(
        _ act: ((AMQPLink<Role>) async -> Void)? = nil,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let link = link
        let running = Task { try await link.run() }
        let first = await EventReader(link.inbox.stream).next()
        #expect((first == .up) == (act != nil), sourceLocation: sourceLocation)
        if let act, first == .up { await act(link) }
        if first == .up, act == nil { await link.close() }
        let error = await #expect(throws: PortError.self, sourceLocation: sourceLocation) {
            try await running.value
        }
        #expect(error?.code == .accessRefused, sourceLocation: sourceLocation)
        #expect(
            error?.message.contains("ACCESS_REFUSED") == true,
            "\(String(describing: error))",
            sourceLocation: sourceLocation
        )
    }

    func expectNoRefusal() async throws {
        let link = link
        let running = Task { try await link.run() }
        #expect(await EventReader(link.inbox.stream).next() == .up)
        await link.close()
        try await running.value
    }

    enum Event: Hashable, Sendable {
        case up
        case other
    }

    struct Role: LinkRole {
        let names: Topology
        let methods: [OutgoingMethod]

        func preparation(number: UInt32) -> [OutgoingMethod] { methods }
        func up(number: UInt32) -> Event { .up }
        func down(reason: String) -> Event { .other }
        func absent() -> Event? { .other }
        func message(_ body: [UInt8]) -> Event { .other }
        func returned(routingKey: String, exchange: String) -> Event? { .other }
        func blocked(_ isBlocked: Bool, reason: String) -> Event { .other }
    }
}
