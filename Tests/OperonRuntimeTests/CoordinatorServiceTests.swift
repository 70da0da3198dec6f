import OperonCore
import OperonModel
import OperonPorts
import OperonRuntime
import Testing

@Suite(.timeLimit(.minutes(5))) struct CoordinatorServiceTests {
    private func service(_ transport: ManualTransport) async throws -> CoordinatorService {
        try await ManualCluster.open(nil, transport).service
    }

    private func submit(to service: CoordinatorService) async throws -> GraphID {
        let graph = GraphDescription(
            name: "g",
            operations: [OperationDescription(name: "a", work: .nothing)]
        )
        return await service.submit(graph, compiled: try CompiledGraph.compile(graph))
    }

    @Test func `a transport that gives up ends everybody who waits, with its reason`() async throws
    {
        let reason = PortError(.prefixHeld, "somebody else has it")
        let transport = ManualTransport()
        let service = try await service(transport)
        let running = Task { try await service.run() }
        try await service.waitUntilConnected(within: .seconds(30))
        let graph = try await submit(to: service)
        let waiting = Task { await service.waitUntilFinished(graph) }
        transport.end(throwing: reason)

        await waiting.value
        await #expect(throws: reason) { try await running.value }
        // Nothing is left to be said, and nobody to say it to.
        await service.shutDown()
    }

    @Test func `a broker that takes nothing does not keep a run that was killed`() async throws {
        let transport = ManualTransport(isTaking: false)
        let service = try await service(transport)
        let running = Task { try await service.run() }
        try await service.waitUntilConnected(within: .seconds(30))
        let graph = try await submit(to: service)
        let waiting = Task { await service.waitUntilFinished(graph) }
        await service.shutDown(kill: true)

        await waiting.value
        try await running.value
        #expect(transport.isClosed)
    }

    @Test func `nobody there within the limit is unreachable`() async throws {
        let service = try await service(ManualTransport())

        await #expect(throws: PortError.self) {
            try await service.waitUntilConnected(within: .milliseconds(1))
        }
    }
}
