import Foundation
package import Logging
import OperonAMQP
package import OperonCore
package import OperonFaultKit
import OperonGraphFile
package import OperonModel
package import OperonPorts
package import OperonRuntime
import OperonSQLite
package import OperonTesting
package import OperonTrust

/// A real coordinator in this process. Its workers run what they are given, or do what a script
/// says instead.
package final class TestCluster: Sendable {
    package enum Store: Sendable {
        /// Nothing is stored.
        case none
        case memory
        /// A new SQLite file, which is removed at the end.
        case file
    }

    package struct Options: Sendable {
        package var place = Place.inProcess
        /// Keys that programs beside it know as well; `nil`: keys of its own, if it seals messages.
        package var trust: TrustDirectory?
        /// The beginning of all names at the broker.
        package var prefix = "test.\(UUID().uuidString.prefix(13).lowercased())."
        package var store = Store.memory
        /// Whether workers run the script instead of commands and waits.
        package var isScripted = true
        /// `nil`: the machine's clock. With a clock that the test moves, the workers are silent
        /// between their reports, and no lease ends.
        package var clock: ManualClock?
        package var scheduler = Scheduler.Configuration()
        package var operationsPerMessage = CoordinatorService.defaultOperationsPerMessage
        /// How operations end that no gate holds.
        package var script: Script = { _ in .returned(.empty) }
        /// Whether every operation waits at its gate, or only those that `Gates.close` names.
        package var holdsAll = true
        package var version = "0.0.0"
        /// Whether triggers may watch the machine.
        package var watchesMachine = true

        /// Nothing is sent to a worker for which it has no slot, so that a test can count.
        package init() { scheduler.readAheadCountMax = 0 }

        /// A cluster with the defaults of the product, whose workers run what they are given.
        package static func real(_ place: Place, store: Store = .none) -> Options {
            var options = Options()
            options.scheduler = Scheduler.Configuration()
            options.place = place
            options.store = store
            options.isScripted = false
            options.holdsAll = false
            return options
        }
    }

    package typealias Script = @Sendable (Invocation) async -> InvocationEnd

    /// One connection for each of the two users of a broker.
    struct Broker {
        let users: BrokerUsers
        let coordinator: BrokerConnection
        let worker: BrokerConnection

        init(prefix: String) throws {
            users = try BrokerUsers()
            coordinator = try BrokerConnection(url: users.coordinator, prefix: prefix)
            worker = try BrokerConnection(url: users.worker, prefix: prefix)
        }

        func close() {
            coordinator.close()
            worker.close()
        }
    }

    /// The coordinator as the client “ann” sees it.
    package let client: any CoordinatorClient
    package let gates: Gates
    package let host: CoordinatorHost
    package let history: Recorder<History>
    package let options: Options
    package let hub: InProcessHub
    let broker: Broker?
    /// By what its workers know the coordinator; `nil`: messages are sent in clear.
    package let keys: CoordinatorKeys?
    let workers = Workers()
    private let transport: CuttableTransport?

    package var service: CoordinatorService { host.service }

    /// The URL with which workers log in to the broker; `nil`: there is none.
    package var workerURL: String? { broker?.users.worker }

    /// The token with which a worker may do everything; `nil`: messages are sent in clear.
    package var tokenText: String? {
        // Only a name that is too long is refused.
        keys.flatMap { keys in (try? WorkerGrant()).map { JoinToken($0, by: keys).text } }
    }

    /// The URL with which the coordinator logs in to the broker; `nil`: there is none.
    package var coordinatorURL: String? { broker?.users.coordinator }

    /// What the coordinator finds in `OPERON_WEBHOOK_TEST`.
    package static let webhookSecret = "it is a secret"

    /// A logger that drops everything.
    package static let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

    /// Runs `body` beside the coordinator, then ends its workers and the coordinator.
    package static func run(
        _ options: Options = Options(),
        isolation: isolated (any Actor)? = #isolation,
        _ body: (TestCluster) async throws -> Void
    ) async throws {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("operon-cluster-\(UUID().uuidString)")
        // benign: the system clears its temporary directory.
        defer { try? FileManager.default.removeItem(at: folder) }
        let cluster = try await TestCluster(options, folder)
        let host = cluster.host
        let serving = Task { try await host.runAndClose(beside: [.triggers]) }
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
        cluster.broker?.close()
        try result.get()
    }

    private init(_ options: Options, _ folder: URL) async throws {
        self.options = options
        let history = Recorder(History())
        let hub = InProcessHub(limits: options.scheduler.limits)
        let cuttable = CuttableTransport(hub.makeCoordinator())
        let broker = options.place == .broker ? try Broker(prefix: options.prefix) : nil
        var configuration = CoordinatorHost.Configuration()
        configuration.scheduler = options.scheduler
        configuration.operationsPerMessage = options.operationsPerMessage
        configuration.triggers = TriggerSupport(
            codec: GraphFileCodec(),
            zones: TimeZoneDirectory(),
            environment: ["OPERON_WEBHOOK_TEST": Self.webhookSecret],
            sources: Self.sources(options, broker)
        )
        if let clock = options.clock {
            configuration.time = clock.source
            configuration.scheduler.beat = .seconds(3_600)
            configuration.scheduler.lease = .seconds(36_000)
            configuration.scheduler.exclusiveLease = .seconds(36_000)
        }
        configuration.observer = { notices, _ in history.note(notices) }
        // A scripted worker reads and writes messages in clear.
        if broker != nil, !options.isScripted {
            let known = try options.trust?.keys() ?? CoordinatorKeys()
            configuration.trust = CoordinatorTrust(known)
            keys = known
        } else {
            keys = nil
        }
        host = try await CoordinatorHost.open(
            Self.store(options, folder),
            configuration,
            logger: Self.logger
        ) { scheduler, _ in
            let remote = broker?.coordinator.coordinatorTransport(
                epoch: scheduler.epoch,
                logger: Self.logger
            )
            return CoordinatorHost.Link(remote ?? cuttable)
        }
        client = LocalCoordinator(service: host.service, caller: "ann", version: options.version)
        gates = Gates(holdsAll: options.holdsAll)
        self.history = history
        self.hub = hub
        self.broker = broker
        transport = broker == nil ? cuttable : nil
    }

    private static func sources(_ options: Options, _ broker: Broker?) -> OwnSources {
        var sources = OwnSources.Configuration(
            watchesMachine: options.watchesMachine,
            environment: [:]
        )
        if let clock = options.clock { sources.time = clock.source }
        if let broker {
            sources.messages = { queue throws(TriggerSourceError) in
                try broker.coordinator.messageSource(
                    queue: queue,
                    isJSON: { (try? GraphFileCodec().checkData($0)) != nil },
                    logger: Self.logger
                )
            }
        }
        return OwnSources(sources)
    }

    private static func store(
        _ options: Options,
        _ folder: URL
    ) throws -> (any OperationStore)? {
        switch options.store {
        case .none: return nil
        case .memory: return MemoryStore(reign: .drawn(), limits: options.scheduler.limits)
        case .file:
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            return SQLiteStore(path: folder.appendingPathComponent("graphs.db").path)
        }
    }

    /// The coordinator as another client sees it.
    package func client(of caller: String) -> any CoordinatorClient {
        LocalCoordinator(service: host.service, caller: caller, version: options.version)
    }

    // MARK: - Steering

    /// Returns when the graph is stored, as far as it is.
    @discardableResult
    package func submit(_ graph: GraphDescription) async throws -> GraphID {
        GraphID(rawValue: try await client.submit(Submission(graph: graph)).id)
    }

    /// As a graph named “g”.
    @discardableResult
    package func submit(_ operations: OperationDescription...) async throws -> GraphID {
        try await submit(GraphDescription(name: "g", operations: operations))
    }

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

    /// As a coordinator that has lost its broker. Only in process.
    package func cut() async throws {
        guard let transport else { preconditionFailure("Only a link in process can be cut.") }
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
            let seen = history.changes.count
            if try await isTrue(client) { return }
            try await history.changes.wait(after: seen)
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
