import Foundation
import Logging
import NIOPosix
import OperonAMQP
import OperonCore
import OperonFaultKit
import OperonModel
import OperonPorts
import Testing

/// Connections that come and go for ever.
@Suite struct ReconnectTests {
    @Test func `a thousand reconnects leave no memory and no descriptor behind`() async {
        // In a process of its own, where nothing else takes memory.
        await #expect(processExitsWith: .success) {
            let name = "test.\(UUID().uuidString.prefix(13))."
            let configuration = try AMQPConfiguration(url: Scene.testBroker(), prefix: name)
            let coordinator = AMQPCoordinatorTransport(
                configuration: configuration,
                epoch: Epoch(rawValue: 1),
                seed: 1,
                logger: Logger(label: "test"),
                group: MultiThreadedEventLoopGroup.singleton
            )
            let serving = Task { try await coordinator.run() }
            for await batch in coordinator.events where batch.contains(.up) { break }
            var link = LinkStateMachine.Configuration()
            link.pauseMin = .milliseconds(1)
            link.pauseMax = .milliseconds(2)
            let worker = AMQPWorkerTransport(
                configuration: configuration,
                incarnation: Incarnation(rawValue: 1),
                seed: 2,
                logger: Logger(label: "test"),
                group: MultiThreadedEventLoopGroup.singleton,
                link: link
            )
            let running = Task { try await worker.run() }
            var connections: UInt32 = 0
            var bytes: [Int] = []
            var descriptors: [Int] = []
            for await batch in worker.events {
                guard batch.contains(where: { if case .up = $0 { true } else { false } }) else {
                    continue
                }
                connections += 1
                if connections.isMultiple(of: 200) {
                    bytes.append(try ProcessFacts.residentBytes())
                    descriptors.append(try ProcessFacts.descriptorCount())
                }
                if connections == 1_200 { break }
                await worker.reconnect()
            }
            // The first two hundred fill the allocator's lists; a connection that stayed would cost
            // some hundred kibibytes.
            try #require(bytes[5] - bytes[0] < 2 << 20)
            try #require(Set(descriptors).count == 1)
            await worker.close()
            try await running.value
            await coordinator.close()
            try await serving.value
        }
    }
}
