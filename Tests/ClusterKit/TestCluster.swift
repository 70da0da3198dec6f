package import Logging
package import OperonCore
package import OperonModel
package import OperonPorts
package import OperonRuntime
package import OperonTesting

/// A real coordinator in this process, with workers that run what a script says instead of
/// commands.
package final class TestCluster: Sendable {
    package struct Options: Sendable {
        /// `nil`: the machine's clock. With a clock that the test moves, the workers are silent
        /// between their reports, and no lease ends.
        package var clock: ManualClock?
        package var scheduler = Scheduler.Configuration()
        /// `nil`: a store in memory.
        package var store: (any OperationStore)?
        /// How operations end that no gate holds.
        package var script: Script = { _ in .returned(.empty) }
        /// Whether every operation waits at its gate, or only those that `Gates.close` names.
        package var holdsAll = true
        package var version = "0.0.0"

        /// Nothing is sent to a worker for which it has no slot, so that a test can count.
        package init() { scheduler.readAheadCountMax = 0 }
    }

    package typealias Script = @Sendable (Invocation) async -> InvocationEnd

    /// The coordinator as the client “ann” sees it.
    package let client: any CoordinatorClient
    package let gates: Gates
    package let host: CoordinatorHost
    package let changes: Changes
    let hub: InProcessHub
    let options: Options
    let workers = Workers()
    private let transport: CuttableTransport

    /// A logger that drops everything.
    package static let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

    /// Runs `body` beside the coordinator, then ends its workers and the coordinator.
    package static func run(
        _ options: Options = Options(),
        isolation: isolated (any Actor)? = #isolation,
        _ body: (TestCluster) async throws -> Void
    ) async throws {
        let cluster = try await TestCluster(options)
        let host = cluster.host
        let serving = Task { try await host.runAndClose() }
        let result: Result<Void, any Error>
        do {
            result = .success(try await body(cluster))
        } catch {
            result = .failure(error)
        }
        await cluster.gates.openAll()
        await cluster.workers.end()
        await host.stop(.forGood(kill: true))
        // The test decides about its end; a coordinator that failed has ended its calls.
        _ = await serving.result
        try result.get()
    }

    private init(_ options: Options) async throws {
        self.options = options
        let changes = Changes()
        let hub = InProcessHub(limits: options.scheduler.limits)
        let transport = CuttableTransport(hub.makeCoordinator())
        var configuration = CoordinatorHost.Configuration()
        configuration.scheduler = options.scheduler
        if let clock = options.clock {
            configuration.time = clock.source
            configuration.scheduler.beat = .seconds(3_600)
            configuration.scheduler.lease = .seconds(36_000)
            configuration.scheduler.exclusiveLease = .seconds(36_000)
        }
        configuration.observer = { _, _ in changes.note() }
        let memory = MemoryStore(reign: .drawn(), limits: options.scheduler.limits)
        host = try await CoordinatorHost.open(
            options.store ?? memory,
            configuration,
            logger: Self.logger
        ) { _, _ in CoordinatorHost.Link(transport) }
        client = LocalCoordinator(service: host.service, caller: "ann", version: options.version)
        gates = Gates(holdsAll: options.holdsAll)
        self.changes = changes
        self.hub = hub
        self.transport = transport
    }

    /// The coordinator as another client sees it.
    package func client(of caller: String) -> any CoordinatorClient {
        LocalCoordinator(service: host.service, caller: caller, version: options.version)
    }

    // MARK: - Steering

    /// Ends an operation as soon as it runs on a worker. Returns when the coordinator knows it.
    package func finish(
        _ operation: OperationSelector,
        _ failure: OperationError? = nil,
        output: Payload = .empty
    ) async throws {
        let end = failure.map { InvocationEnd.failed($0) } ?? .returned(output)
        let attempt = try await gates.open(id(of: operation), end)
        try await wait { client in
            try await client.operation(operation).attempts.contains {
                $0.id == "\(attempt)" && $0.endedAt != nil
            }
        }
    }

    /// Prints for an operation as soon as it runs on a worker.
    package func print(_ operation: OperationSelector, _ text: String) async throws {
        try await gates.invocation(of: id(of: operation)).log(text)
    }

    /// Opens all gates for good; returns when the graph has finished.
    package func finishAll(of graph: String) async throws {
        await gates.openAll()
        try await wait { try await $0.graph(graph).finishedAt != nil }
    }

    package func id(of operation: OperationSelector) async throws -> OperationID {
        let view = try await client.operation(operation).operation
        return OperationID(graph: GraphID(rawValue: view.graph), index: view.index)
    }

    /// As a coordinator that has lost its broker.
    package func cut() async throws {
        transport.cut()
        while try await client.status().broker == "ok" {
            // Nobody is told of it but those who ask.
            try await Task.sleep(for: .milliseconds(2))
        }
    }

    // MARK: - Waiting

    /// Returns when this holds; asks whenever something has happened.
    package func wait(until isTrue: (any CoordinatorClient) async throws -> Bool) async throws {
        while true {
            let seen = changes.count
            if try await isTrue(client) { return }
            try await changes.wait(after: seen)
        }
    }

    package func wait(for operation: OperationSelector, _ state: OperationState) async throws {
        try await wait { try await $0.operation(operation).operation.state == state }
    }
}

extension OperationSelector {
    /// From `GRAPH/OPERATION`.
    package init(path: String) {
        let parts = path.split(separator: "/", maxSplits: 1).map(String.init)
        self.init(graph: parts[0], operation: parts.count > 1 ? parts[1] : "")
    }
}
