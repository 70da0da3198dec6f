import Logging
import OperonCore
import OperonModel
import OperonPorts
import OperonRuntime
import Testing

/// A transport that is up at once, takes what it is told to take, and ends when the test says so.
private final class ScriptedTransport: CoordinatorTransport {
    let events: AsyncStream<[CoordinatorTransportEvent]>
    let continuation: AsyncStream<[CoordinatorTransportEvent]>.Continuation
    let ended = Latch()
    /// Open: messages are taken. Closed: the broker takes nothing.
    let isTaking = Latch()
    let closed = Latch()
    let failure: PortError?

    init(failure: PortError? = nil) {
        self.failure = failure
        (events, continuation) = AsyncStream.makeStream()
    }

    func run() async throws {
        continuation.yield([.up])
        await ended.wait()
        continuation.finish()
        if let failure { throw failure }
    }

    func send(_ body: [UInt8], to address: WorkerAddress, priority: UInt8) async {
        await isTaking.wait()
    }

    func broadcast(_ body: [UInt8]) async { await isTaking.wait() }

    func sendToSelf(_ body: [UInt8], lane: WorkerLane) async { await isTaking.wait() }

    func close() async {
        closed.open()
        ended.open()
    }
}

@Suite(.timeLimit(.minutes(5))) struct CoordinatorServiceTests {
    private func service(_ transport: ScriptedTransport) -> CoordinatorService {
        let scheduler = Scheduler(
            configuration: Scheduler.Configuration(),
            reign: Reign(rawValue: 1),
            epoch: Epoch(rawValue: 1)
        )
        return CoordinatorService(
            scheduler: scheduler,
            transport: transport,
            logger: Logger(label: "test")
        ) { _, _ in }
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
        let transport = ScriptedTransport(failure: reason)
        transport.isTaking.open()
        let service = service(transport)
        let running = Task { try await service.run() }
        try await service.waitUntilConnected(within: .seconds(30))
        let graph = try await submit(to: service)
        let waiting = Task { await service.waitUntilFinished(graph) }
        transport.ended.open()

        await waiting.value
        await #expect(throws: reason) { try await running.value }
        // Nothing is left to be said, and nobody to say it to.
        await service.shutDown()
    }

    @Test func `a broker that takes nothing does not keep a run that was killed`() async throws {
        let transport = ScriptedTransport()
        let service = service(transport)
        let running = Task { try await service.run() }
        try await service.waitUntilConnected(within: .seconds(30))
        let graph = try await submit(to: service)
        let waiting = Task { await service.waitUntilFinished(graph) }
        await service.shutDown(kill: true)

        #expect(transport.closed.isOpen)
        await waiting.value
        try await running.value
    }

    @Test func `nobody there within the limit is unreachable`() async throws {
        let service = service(ScriptedTransport())

        await #expect(throws: PortError.self) {
            try await service.waitUntilConnected(within: .milliseconds(1))
        }
    }
}
