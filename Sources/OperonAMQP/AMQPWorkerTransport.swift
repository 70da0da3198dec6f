package import Logging
package import NIOCore
package import OperonCore
package import OperonModel
package import OperonPorts

/// A worker's connection to the broker: it has a queue of its own and sends to the current
/// coordinator.
package final class AMQPWorkerTransport: WorkerTransport {
    package let events: AsyncStream<[WorkerTransportEvent]>
    private let link: AMQPLink<WorkerRole>

    /// `seed` determines the pauses between attempts to connect; `link` sets their lengths and all
    /// deadlines.
    package init(
        configuration: AMQPConfiguration,
        incarnation: Incarnation,
        seed: UInt64,
        logger: Logger,
        group: any EventLoopGroup,
        link: LinkStateMachine.Configuration = LinkStateMachine.Configuration()
    ) {
        self.link = AMQPLink(
            role: WorkerRole(
                names: Topology(prefix: configuration.prefix),
                incarnation: incarnation
            ),
            configuration: configuration,
            machine: link,
            seed: seed,
            logger: logger,
            group: group
        )
        events = self.link.inbox.stream
    }

    package func run() async throws { try await link.run() }

    package func send(_ body: [UInt8], lane: WorkerLane) async {
        await link.send(Outbox.Message(destination: .init(lane), priority: 0, body: body))
    }

    package func reconnect() async { await link.reconnect() }

    package func close() async { await link.close() }
}

private struct WorkerRole: LinkRole {
    let names: Topology
    let incarnation: Incarnation

    func preparation(number: UInt32) -> [OutgoingMethod] {
        names.worker(WorkerAddress(incarnation: incarnation, connection: number))
    }

    func up(number: UInt32) -> WorkerTransportEvent { .up(connection: number) }

    func down(reason: String) -> WorkerTransportEvent { .down(reason: reason) }

    func absent() -> WorkerTransportEvent? { .noCoordinator }

    func message(_ body: [UInt8]) -> WorkerTransportEvent { .message(body) }

    func returned(routingKey: String, exchange: String) -> WorkerTransportEvent? {
        .returned(lane: exchange == names.beats ? .beats : .events)
    }

    func blocked(_ isBlocked: Bool, reason: String) -> WorkerTransportEvent {
        .blocked(isBlocked, reason: reason)
    }
}
