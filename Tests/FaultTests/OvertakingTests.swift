import Foundation
import Logging
import NIOPosix
import OperonAMQP
import OperonCore
import OperonFaultKit
import OperonModel
import OperonPorts
import Testing

/// What a slow link keeps from being heard.
@Suite(.timeLimit(.minutes(2))) struct OvertakingTests {
    /// Bytes that arrive in a second on the link of these tests.
    private static let rate = 10_000_000 / 8

    @Test(arguments: [64 << 10, 1 << 20, 8 << 20])
    func `a beat is behind at most a second of events, however large they are`(
        eventBytes: Int
    ) async throws {
        try await FaultProxy.withProxy(to: Scene.testBroker()) { proxy in
            await proxy.change(.toServer) { $0.bytesPerSecond = Self.rate }
            let prefix = "test.\(UUID().uuidString.prefix(13))."
            let coordinator = AMQPCoordinatorTransport(
                configuration: try AMQPConfiguration(url: Scene.testBroker(), prefix: prefix),
                epoch: Epoch(rawValue: 1),
                seed: 1,
                logger: Logger(label: "test"),
                group: MultiThreadedEventLoopGroup.singleton
            )
            let worker = AMQPWorkerTransport(
                configuration: try AMQPConfiguration(url: proxy.clientURL, prefix: prefix),
                incarnation: Incarnation(rawValue: 1),
                seed: 2,
                logger: Logger(label: "test"),
                group: MultiThreadedEventLoopGroup.singleton
            )
            let serving = Task { try await coordinator.run() }
            let running = Task { try await worker.run() }
            for await batch in coordinator.events where batch.contains(.up) { break }
            for await batch in worker.events where batch.contains(.up(connection: 1)) { break }
            let before = await proxy.state.bytes[.toServer, default: 0]
            let event = [UInt8](repeating: 1, count: eventBytes - 512)
            for _ in 0..<max(2, (4 << 20) / eventBytes) {
                await worker.send(event, lane: .events)
            }
            // The first of them is on its way, and the link is full.
            while await proxy.state.bytes[.toServer, default: 0] == before {
                try await Task.sleep(for: .milliseconds(1))
            }

            let sent = await proxy.state.bytes[.toServer, default: 0]
            await worker.send([9], lane: .beats)

            var isThere = false
            for await batch in coordinator.events where batch.contains(.message([9])) {
                isThere = true
                break
            }
            let arrived = await proxy.state.bytes[.toServer, default: 0]
            #expect(isThere)
            #expect(arrived - sent < Self.rate)
            running.cancel()
            serving.cancel()
            _ = try? await running.value
            _ = try? await serving.value
        }
    }
}
