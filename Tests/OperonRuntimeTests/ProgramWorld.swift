import Logging
import NIOConcurrencyHelpers
import OperonCore
import OperonModel
import OperonPorts
import OperonRuntime

/// A program that is its own coordinator and worker. Its kinds are made known while it runs.
struct ProgramWorld: Sendable {
    static let reign = Reign(rawValue: 0xA11)
    private let known = NIOLockedValueBox<[String: RegisteredKind]>([:])

    func add(_ name: String, _ run: @escaping @Sendable (Invocation) async -> InvocationEnd) {
        known.withLockedValue { $0[name] = RegisteredKind(name: name, run: run) }
    }

    func open(
        _ store: any OperationStore = MemoryStore(reign: reign),
        limits: Limits = Limits(),
        slots: Int = 2,
        threads: OperationThreads? = nil,
        overtime: Duration = .seconds(15)
    ) async throws -> InProcessCluster {
        var configuration = InProcessCluster.Configuration(
            slots: slots,
            environment: [:],
            version: "test"
        )
        configuration.limits = limits
        configuration.overtime = overtime
        configuration.kinds = RegisteredKinds(threads: threads) { name in
            known.withLockedValue { $0[name] }
        }
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        return try await InProcessCluster.open(store, configuration, logger: logger)
    }

    /// Runs `body` while the cluster serves; then ends it.
    func serve(
        _ cluster: InProcessCluster,
        _ body: (LocalCoordinator) async throws -> Void
    ) async throws {
        let running = Task { try await cluster.run() }
        let result: Result<Void, any Error>
        do {
            result = .success(try await body(cluster.client))
        } catch {
            result = .failure(error)
        }
        await cluster.stop(drain: .zero)
        try await running.value
        try result.get()
    }

    func registered(
        _ name: String,
        kind: String,
        input: String = "",
        after dependencies: [String] = []
    ) -> OperationDescription {
        var operation = OperationDescription(
            name: name,
            work: .registered(kind: kind, input: Payload(bytes: Array(input.utf8)))
        )
        operation.dependencies = dependencies.map { DependencyDescription($0) }
        return operation
    }

    func submission(
        _ operations: OperationDescription...,
        open: Bool = false,
        key: String? = nil
    ) -> Submission {
        var submission = Submission(
            graph: GraphDescription(name: "program", operations: operations)
        )
        submission.isOpen = open
        submission.idempotencyKey = key
        return submission
    }

    /// The events of a graph from the first to the one of this kind.
    func events(
        of graph: UInt32,
        through kind: String,
        _ client: LocalCoordinator
    ) async throws -> [EventView] {
        var events: [EventView] = []
        for try await event in try await client.events(after: 0, graph: "\(graph)") {
            guard case .event(let view) = event else { continue }
            events.append(view)
            if view.kind == kind { break }
        }
        return events
    }
}
