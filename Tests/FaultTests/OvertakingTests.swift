import OperonAMQP
import OperonFaultKit
import OperonPorts
import Testing

/// What a slow link keeps from being heard.
@Suite(.timeLimit(.minutes(5))) struct OvertakingTests {
    /// Bytes that arrive in a second on the link of these tests.
    private static let rate = 10_000_000 / 8

    @Test(arguments: [64 << 10, 1 << 20, 8 << 20])
    func `a beat is behind at most a second of events, however large they are`(
        eventBytes: Int
    ) async throws {
        try await FaultProxy.withProxy(to: Workspace.testBroker()) { proxy in
            await proxy.change(.toServer) { $0.bytesPerSecond = Self.rate }
            try await TransportPair.run(workerURL: proxy.clientURL) { pair in
                let behind = try await Self.bytesBefore(beatOf: pair, through: proxy, eventBytes)
                #expect(behind < Self.rate)
            }
        }
    }

    /// How much arrives while a beat is on its way, on a link full of events.
    private static func bytesBefore(
        beatOf pair: TransportPair,
        through proxy: FaultProxy,
        _ eventBytes: Int
    ) async throws -> Int {
        let before = await proxy.state.bytes[.toServer, default: 0]
        let event = [UInt8](repeating: 1, count: eventBytes - 512)
        for _ in 0..<max(2, (4 << 20) / eventBytes) {
            await pair.worker.send(event, lane: .events)
        }
        // The first of them is on its way, and the link is full.
        while await proxy.state.bytes[.toServer, default: 0] == before {
            // What a network carries gives no signal.
            try await Task.sleep(for: .milliseconds(1))
        }
        let sent = await proxy.state.bytes[.toServer, default: 0]
        await pair.worker.send([9], lane: .beats)
        try await pair.coordinatorReceives([9])
        return await proxy.state.bytes[.toServer, default: 0] - sent
    }
}
