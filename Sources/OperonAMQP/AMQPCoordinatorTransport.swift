package import Logging
package import NIOCore
package import OperonCore
package import OperonModel
package import OperonPorts

/// The coordinator's connection to the broker: holds the prefix, receives from all workers, and
/// sends to each of them.
package final class AMQPCoordinatorTransport: CoordinatorTransport {
    package let events: AsyncStream<[CoordinatorTransportEvent]>
    private let link: AMQPLink<CoordinatorRole>

    /// `seed` determines the pauses between attempts to connect; `link` sets their lengths and all
    /// deadlines.
    package init(
        configuration: AMQPConfiguration,
        epoch: Epoch,
        seed: UInt64,
        logger: Logger,
        group: any EventLoopGroup,
        link: LinkStateMachine.Configuration = LinkStateMachine.Configuration()
    ) {
        let names = Topology(prefix: configuration.prefix)
        self.link = AMQPLink(
            role: CoordinatorRole(names: names, epoch: epoch, beat: configuration.beat),
            configuration: configuration,
            machine: link,
            seed: seed,
            logger: logger,
            group: group
        )
        events = self.link.inbox.stream
    }

    package func run() async throws { try await link.run() }

    package func send(_ body: [UInt8], to address: WorkerAddress, priority: UInt8) async {
        await link.send(
            Outbox.Message(destination: .worker(address), priority: priority, body: body)
        )
    }

    package func sendBulk(_ body: [UInt8], to address: WorkerAddress) async {
        await link.send(
            Outbox.Message(
                destination: .worker(address),
                priority: 0,
                body: body,
                isBulk: true
            )
        )
    }

    package func broadcast(_ body: [UInt8]) async {
        await link.send(Outbox.Message(destination: .broadcast, priority: 0, body: body))
    }

    package func sendToSelf(_ body: [UInt8], lane: WorkerLane) async {
        await link.send(Outbox.Message(destination: .init(lane), priority: 0, body: body))
    }

    package func close() async { await link.close() }
}

private struct CoordinatorRole: LinkRole {
    let names: Topology
    let epoch: Epoch
    let beat: Duration

    func preparation(number: UInt32) -> [OutgoingMethod] {
        names.coordinator(epoch: epoch, connection: number, beat: beat)
    }

    func up(number: UInt32) -> CoordinatorTransportEvent { .up }

    func down(reason: String) -> CoordinatorTransportEvent { .down(reason: reason) }

    /// A coordinator declares everything itself.
    func absent() -> CoordinatorTransportEvent? { nil }

    func message(_ body: [UInt8]) -> CoordinatorTransportEvent { .message(body) }

    func returned(routingKey: String, exchange: String) -> CoordinatorTransportEvent? {
        names.worker(queue: routingKey).map { .returned($0) }
    }

    func blocked(_ isBlocked: Bool, reason: String) -> CoordinatorTransportEvent {
        .blocked(isBlocked, reason: reason)
    }
}
