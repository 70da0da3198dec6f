import ClusterKit
import Logging
import OperonCore
import OperonModel
import OperonPorts
import OperonRuntime
import OperonTestKit
import OperonWire

/// A real coordinator whose workers are the test: it writes their messages, and reads what is sent
/// to them.
struct ManualCluster: Sendable {
    static let worker = WorkerIdentity(
        name: "w",
        incarnation: Incarnation(rawValue: 9),
        connection: 1
    )

    let host: CoordinatorHost
    let client: LocalCoordinator
    let transport: ManualTransport
    let reign: Reign
    let epoch: Epoch
    /// What the coordinator tells its operator.
    let log: Recorder<[String]>
    private let isEncoded: Bool

    var service: CoordinatorService { host.service }

    /// Runs `body` beside the coordinator, then ends it and closes its store.
    ///
    /// - Parameters:
    ///   - store: `nil`: nothing is stored.
    ///   - isEncoded: Whether workers send bytes.
    /// - Throws: an error of `body`; any other with which the coordinator ended.
    static func run(
        _ store: InMemoryStore?,
        isConnected: Bool = true,
        isEncoded: Bool = false,
        scheduler: Scheduler.Configuration = Scheduler.Configuration(),
        time: TimeSource = .system,
        isolation: isolated (any Actor)? = #isolation,
        _ body: (ManualCluster) async throws -> Void
    ) async throws {
        let transport = ManualTransport(isUp: isConnected)
        let log = Recorder<[String]>([])
        let host = try await open(
            store,
            transport,
            scheduler: scheduler,
            time: time,
            logger: log.logger
        )
        let (reign, epoch) = await host.service.query { ($0.reign, $0.epoch) }
        let cluster = ManualCluster(
            host: host,
            client: LocalCoordinator(service: host.service, caller: "", version: "0"),
            transport: transport,
            reign: reign,
            epoch: epoch,
            log: log,
            isEncoded: isEncoded
        )
        let running = Task { try await host.runAndClose() }
        let result: Result<Void, any Error>
        do {
            result = .success(try await body(cluster))
        } catch {
            result = .failure(error)
        }
        await store?.letSyncGo(all: true)
        await host.stop(.forGood(kill: true))
        let end = await running.result
        try result.get()
        try end.get()
    }

    static func open(
        _ store: (any OperationStore)?,
        _ transport: ManualTransport,
        scheduler: Scheduler.Configuration = Scheduler.Configuration(),
        time: TimeSource = .system,
        logger: Logger = TestCluster.logger
    ) async throws -> CoordinatorHost {
        var configuration = CoordinatorHost.Configuration()
        configuration.scheduler = scheduler
        configuration.time = time
        return try await CoordinatorHost.open(store, configuration, logger: logger) { _, _ in
            CoordinatorHost.Link(transport)
        }
    }

    // MARK: - What workers say

    /// Returns when the coordinator has handled it.
    func say(
        _ body: WorkerMessage,
        from sender: WorkerIdentity = worker,
        of reign: Reign? = nil
    ) async throws {
        let envelope = WorkerEnvelope(
            reign: reign ?? self.reign,
            epoch: epoch,
            sequence: 0,
            sender: sender,
            body: body
        )
        await transport.handle(
            isEncoded ? .message(try Wire.encode(envelope)) : .envelope(envelope)
        )
    }

    /// A worker comes that has heard of no coordinator.
    func join(
        _ sender: WorkerIdentity = worker,
        slots: UInt32 = 4,
        kinds: [String] = Work.builtInKinds,
        offer: WorkerOffer = WorkerOffer()
    ) async throws {
        var hello = Hello(
            sentAt: SystemClock.now(),
            host: "test",
            processID: 1,
            slots: slots,
            queues: [],
            kinds: kinds,
            held: [],
            firstEvent: 1,
            lastEvent: 0,
            isDraining: false
        )
        hello.offer = offer
        try await say(.hello(hello), from: sender, of: Reign(rawValue: 0))
    }

    func report(_ first: UInt64, _ events: WorkerEvent...) async throws {
        try await say(.events(EventBatch(firstNumber: first, sentAt: .zero, events: events)))
    }

    // MARK: - What workers hear

    func dispatched(_ name: String) async throws -> DispatchedOperation {
        try await transport.find { envelope in
            guard case .dispatch(let dispatch) = envelope.body else { return nil }
            return dispatch.operations.first { $0.name == name }
        }
    }

    /// The verdict on the request of this number; `nil`: the first of all.
    func verdict(_ number: UInt64? = nil) async throws -> Verdict {
        try await transport.find { envelope in
            guard case .control(let control) = envelope.body else { return nil }
            return control.verdicts.first { number == nil || $0.number == number }
        }
    }
}
