import Logging
import OperonCore
import OperonModel
import OperonPorts
import OperonRuntime
import OperonTestKit
import Testing

/// A transport without anybody at its other end.
private final class QuietTransport: CoordinatorTransport {
    let events = AsyncStream<[CoordinatorTransportEvent]> { $0.finish() }
    private let ended = Latch()

    func run() async throws { await ended.wait() }
    func send(_ body: [UInt8], to address: WorkerAddress, priority: UInt8) async {}
    func broadcast(_ body: [UInt8]) async {}
    func sendToSelf(_ body: [UInt8], lane: WorkerLane) async {}
    func close() async { ended.open() }
}

/// What a running coordinator drops from its store, it forgets.
@Suite(.timeLimit(.minutes(5))) struct PruningTests {
    /// A coordinator on this store without workers, until `body` is done.
    static func withService(
        _ store: InMemoryStore,
        time: TimeSource = .system,
        isolation: isolated (any Actor)? = #isolation,
        _ body: (CoordinatorService, LocalCoordinator) async throws -> Void
    ) async throws {
        let (scheduler, restored) = try await CoordinatorService.restore(
            from: store,
            configuration: Scheduler.Configuration(),
            time: time
        )
        let service = CoordinatorService(
            scheduler: scheduler,
            transport: QuietTransport(),
            logger: Logger(label: "test"),
            restored: restored,
            time: time
        ) { _, _ in }
        let client = LocalCoordinator(service: service, caller: "", version: "0")
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await service.run() }
            try await body(service, client)
            await service.shutDown(kill: true)
            try await group.waitForAll()
        }
        await store.close()
    }

    private func graph(_ name: String, after dependencies: [String] = []) -> Submission {
        let command = CommandDescription(arguments: ["true"])
        let operations = (0..<1_000).map { index in
            var operation = OperationDescription(name: "o\(index)", work: .command(command))
            operation.dependencies = dependencies.map { DependencyDescription($0) }
            return operation
        }
        return Submission(graph: GraphDescription(name: name, operations: operations))
    }

    @Test func `what is dropped leaves the memory, and what depends on it later is resolved`()
        async throws
    {
        let store = InMemoryStore(reign: Reign(rawValue: 5))
        try await Self.withService(store) { service, client in
            _ = try await client.submit(graph("old"))
            _ = try await client.cancel(.graph("old"), CancelRequest())
            try await service.prune(beyond: Retention(graphs: 0))

            let id = GraphID(rawValue: 0)
            #expect(await service.query { $0.isGone(id) && $0.compiled(id).policy.isEmpty })
            #expect(try await client.graphs(GraphQuery()).graphs.isEmpty)
            // None of these may reach the store, which has nothing of it that could be changed.
            await #expect(throws: ClientError.self) {
                try await client.suspend(.graph("old"), SuspendRequest())
            }
            await #expect(throws: ClientError.self) {
                try await client.operation(OperationSelector(graph: "old", operation: "o1"))
            }
            _ = try await client.submit(graph("new", after: ["0/7", "old/8"]))
            let explanation = try await client.explain(
                OperationSelector(graph: "new", operation: "o3")
            )
            #expect(explanation.reasons.map(\.code) == ["disconnected", "noWorkerForKind"])
            // What it depends on is shown by what its own graph calls it.
            _ = try await client.submit(graph("named", after: ["0/9/o9", "old/8"]))
            let detail = try await client.operation(
                OperationSelector(graph: "named", operation: "o3")
            )
            #expect(detail.dependencies.map(\.operation.name) == ["o9", "8"])
            #expect(detail.dependencies.map(\.outcome) == [.cancelled, .cancelled])
            #expect(try await client.graph("old").counts.cancelled == 1_000)
            let error = await #expect(throws: ClientError.self) {
                try await client.operations(of: "old", OperationQuery())
            }
            #expect(error?.code == .notFound)
            try await service.prune(beyond: Retention(graphs: 0))
        }
        // And the same from what the store has.
        try await Self.withService(store) { service, _ in
            #expect(await service.query { $0.isGone(GraphID(rawValue: 0)) })
            #expect(await service.query { $0.unfinishedCount(of: GraphID(rawValue: 1)) } == 1_000)
        }
    }
}
