import OperonAMQP
import OperonCore
import OperonFaultKit
import Testing

/// Connections that come and go.
@Suite struct ReconnectTests {
    /// As short as it may be for an old connection's names to be free.
    private static func link(pause: Duration) -> LinkStateMachine.Configuration {
        var link = LinkStateMachine.Configuration()
        link.pauseMin = pause
        link.pauseMax = pause * 2
        return link
    }

    @Test func `a thousand reconnects leave no memory and no descriptor behind`() async {
        // In a process of its own, where nothing else takes memory.
        await #expect(processExitsWith: .success) {
            let link = ReconnectTests.link(pause: .milliseconds(1))
            try await TransportPair.run(link: link) { pair in
                var bytes: [Int] = []
                var descriptors: [Int] = []
                for count in 1...1_200 {
                    await pair.worker.reconnect()
                    try await pair.isUp(.worker)
                    guard count.isMultiple(of: 200) else { continue }
                    bytes.append(try ProcessFacts.residentBytes())
                    descriptors.append(try ProcessFacts.descriptorCount())
                }
                // The first two hundred fill the allocator's lists; a connection that stayed would
                // cost some hundred kibibytes.
                try #require(bytes[5] - bytes[0] < 2 << 20)
                try #require(Set(descriptors).count == 1)
            }
        }
    }

    @Test(
        .timeLimit(.minutes(5)),
        arguments: TransportPair.Side.allCases,
        FaultProxy.Direction.allCases
    )
    func `a connection that is cut at any byte of its login comes up again`(
        side: TransportPair.Side,
        direction: FaultProxy.Direction
    ) async throws {
        try await FaultProxy.withProxy(to: Workspace.testBroker()) { proxy in
            let isWorker = side == .worker
            try await TransportPair.run(
                coordinatorURL: isWorker ? nil : proxy.clientURL,
                workerURL: isWorker ? proxy.clientURL : nil,
                link: Self.link(pause: .milliseconds(20))
            ) { pair in
                await proxy.cutAll()
                try await pair.isUp(side)
                // Of the connection that came up, and not of one before it that found the lock
                // taken: a byte behind the login would only come with the heartbeats.
                let count = await proxy.state.openBytes[direction, default: 0]
                #expect(count > 400)
                // Odd, so that it comes by every kind of byte; a coordinator that was cut off may
                // have to wait two seconds for the lock of its own ghost.
                let step = max(17, count / 24 | 1)
                for offset in stride(from: 0, to: count, by: step) {
                    let cut = await proxy.arm(FaultProxy.Cut(direction, .offset(offset)))
                    await proxy.cutAll()
                    try await cut.happens(within: .seconds(30))
                    try await pair.isUp(side)
                }
                #expect(await proxy.state.open == 1)
            }
        }
    }
}
