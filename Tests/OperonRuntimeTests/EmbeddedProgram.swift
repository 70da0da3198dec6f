import Logging
import NIOConcurrencyHelpers
import OperonCore
import OperonModel
import OperonPorts
import OperonRuntime

/// A program that is its own coordinator and worker. Its kinds are made known while it runs.
struct EmbeddedProgram: Sendable {
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
    ) async throws -> CoordinatorHost {
        var configuration = CoordinatorHost.Configuration()
        configuration.scheduler.limits = limits
        configuration.overtime = overtime
        var worker = WorkerHost.Configuration(slots: slots, environment: [:]) { _ in }
        worker.kinds = RegisteredKinds(threads: threads) { name in
            known.withLockedValue { $0[name] }
        }
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        return try await CoordinatorHost.open(store, configuration, logger: logger) { _, _ in
            try .inProcess(worker, limits: limits, logger: logger)
        }
    }

    /// Runs `body` while the cluster serves; then ends it.
    func serve(
        _ host: CoordinatorHost,
        _ body: (LocalCoordinator) async throws -> Void
    ) async throws {
        let running = Task { try await host.runAndClose() }
        let client = client(of: host)
        let result: Result<Void, any Error>
        do {
            result = .success(try await body(client))
        } catch {
            result = .failure(error)
        }
        await host.stop(.drain(within: .zero))
        try await running.value
        try result.get()
    }

    func client(of host: CoordinatorHost) -> LocalCoordinator {
        LocalCoordinator(service: host.service, caller: "", version: "test")
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
        through kind: ClusterEvent.Kind,
        _ client: LocalCoordinator
    ) async throws -> [EventView] {
        var events: [EventView] = []
        for try await event in try await client.events(after: 0, graph: "\(graph)") {
            guard case .event(let view) = event else { continue }
            events.append(view)
            if view.kind.known == kind { break }
        }
        return events
    }
}
