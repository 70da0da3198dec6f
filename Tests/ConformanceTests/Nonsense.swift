import Logging
import NIOPosix
import OperonCore
import OperonPorts

@testable import OperonAMQP

/// Somebody at the broker who has no idea of the protocol.
struct Nonsense: LinkRole {
    let names: Topology

    /// Whatever happens on its connection is all the same to it, but that it is up.
    func preparation(number: UInt32) -> [OutgoingMethod] { [] }
    func up(number: UInt32) -> Bool { true }
    func down(reason: String) -> Bool { false }
    func absent() -> Bool? { nil }
    func message(_ body: [UInt8]) -> Bool { false }
    func returned(routingKey: String, exchange: String) -> Bool? { nil }
    func blocked(_ isBlocked: Bool, reason: String) -> Bool { false }

    /// To the coordinator and to all workers.
    static func speak(at url: String, prefix: String) async throws {
        let link = AMQPLink(
            role: Nonsense(names: Topology(prefix: prefix)),
            configuration: try AMQPConfiguration(url: url, prefix: prefix),
            machine: LinkStateMachine.Configuration(),
            seed: 1,
            logger: Logger(label: "nonsense"),
            group: MultiThreadedEventLoopGroup.singleton
        )
        let running = Task { try await link.run() }
        let body = Array("nobody understands this".utf8)
        for await events in link.inbox.stream {
            guard events.contains(true) else { continue }
            for destination in [Outbox.Destination.events, .broadcast] {
                await link.send(
                    Outbox.Message(destination: destination, priority: 0, body: body)
                )
            }
            break
        }
        await link.close()
        try await running.value
    }
}
