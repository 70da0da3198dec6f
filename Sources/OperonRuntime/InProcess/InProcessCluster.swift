package import Logging
import OperonCore
package import OperonModel
package import OperonPorts

/// A coordinator and its worker in this process, without a broker. The store determines how long
/// its graphs live.
package final class InProcessCluster: Sendable {
    package struct Configuration: Sendable {
        /// The number of operations that may run at once, 1 to 4,096.
        package var slots: Int
        /// The kinds that the worker runs in addition to commands and waits.
        package var kinds = RegisteredKinds.none
        /// Where the worker keeps its identity, so that its next run ends what this run leaves
        /// running; `nil`: nowhere, which is right for a store in memory.
        package var stateDirectory: String?
        /// The variables of which processes inherit a part.
        package var environment: [String: String]
        /// The name that is stored with the client's requests.
        package var caller = ""
        /// The version of this program, as `ClusterView` shows it.
        package var version: String
        package var limits = Limits()
        /// How much of what has finished the store keeps.
        package var retention = Retention()
        /// The clock for delays, timeouts and pauses. With any other clock than the machine's,
        /// leases never expire, so that no worker is lost while the clock jumps.
        package var time: TimeSource?
        /// How long to wait for operations that were asked to stop because the drain time was over.
        package var overtime = Duration.seconds(15)
        /// The worker reports a start by itself after this long: a message costs next to nothing
        /// here.
        package var startReportDelay = Duration.milliseconds(10)

        package init(slots: Int, environment: [String: String], version: String) {
            self.slots = slots
            self.environment = environment
            self.version = version
        }
    }

    /// Sends requests to the coordinator. Requests that need the worker are answered once `run` is
    /// called.
    package let client: LocalCoordinator
    package let service: CoordinatorService
    package let store: any OperationStore
    private let retention: Retention
    private let overtime: Duration
    private let worker: InProcessWorker
    private let workerEnded = Latch()

    /// How long the worker may take to give back the operations it was told to kill.
    private static let lastWordsPatience = Duration.seconds(3)

    private init(
        store: any OperationStore,
        _ configuration: Configuration,
        worker: InProcessWorker,
        service: CoordinatorService,
        client: LocalCoordinator
    ) {
        self.store = store
        retention = configuration.retention
        overtime = configuration.overtime
        self.worker = worker
        self.service = service
        self.client = client
    }

    /// A century: longer than any test moves a clock.
    private static let longTime = Duration.seconds(100 * 365 * 86_400)

    /// Opens the store and resumes its graphs. `run` or `abandon` must be called next.
    ///
    /// - Throws: `StoreError`, `StateDirectoryError`, `ProcessRunnerError`; then the store is
    ///   closed again.
    package static func open(
        _ store: any OperationStore,
        _ configuration: Configuration,
        logger: Logger,
        observer: @escaping CoordinatorService.Observer = { _, _ in }
    ) async throws -> InProcessCluster {
        var random = SystemRandomNumberGenerator()
        var rules = Scheduler.Configuration()
        rules.seed = random.next()
        rules.limits = configuration.limits
        if configuration.time != nil {
            rules.lease = longTime
            rules.exclusiveLease = longTime
        }
        let time = configuration.time ?? .system
        let (scheduler, restored) = try await CoordinatorService.restore(
            from: store,
            configuration: rules,
            time: time
        )
        let hub = InProcessHub(limits: configuration.limits)
        let worker: InProcessWorker
        do {
            worker = try InProcessWorker(
                on: hub,
                slots: configuration.slots,
                kinds: configuration.kinds,
                stateDirectory: configuration.stateDirectory,
                environment: configuration.environment,
                logger: logger
            ) { agent in
                agent.startReportDelay = configuration.startReportDelay
                agent.limits = configuration.limits
            }
        } catch {
            await store.close()
            throw error
        }
        let service = CoordinatorService(
            scheduler: scheduler,
            transport: hub.makeCoordinator(),
            logger: logger,
            restored: restored,
            ownWorker: worker.incarnation,
            time: time,
            observer: observer
        )
        let client = LocalCoordinator(
            service: service,
            caller: configuration.caller,
            version: configuration.version,
            limits: configuration.limits
        )
        return InProcessCluster(
            store: store,
            configuration,
            worker: worker,
            service: service,
            client: client
        )
    }

    /// Serves until `stop` or `stopNow` is done, or until its task is cancelled, which ends at once
    /// everything that runs. Closes the store.
    ///
    /// - Throws: An error after which it cannot continue, such as `StoreError` for a store that
    ///   fails.
    package func run() async throws {
        let result: Result<Void, any Error>
        do {
            try await serve()
            result = .success(())
        } catch {
            result = .failure(error)
        }
        await abandon()
        try result.get()
    }

    private func serve() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { [service] in
                try await service.run()
                throw Ended()
            }
            group.addTask { [worker, workerEnded] in
                defer { workerEnded.open() }
                try await worker.service.run()
            }
            group.addTask { [service, retention] in
                try await service.keepPruned(within: retention)
            }
            defer { group.cancelAll() }
            do {
                while try await group.next() != nil {}
            } catch is Ended {
                // The caller that requested the end has been answered by now.
            }
        }
    }

    private struct Ended: Error {}

    /// Ends a cluster that was opened but is not run.
    package func abandon() async {
        await worker.shutDown()
        await store.close()
    }

    /// Starts nothing more, gives running operations this long to finish, and ends. Operations that
    /// have not finished by then are stopped and given back: they run again at the next start, if
    /// the store is on a disk. Code that ignores the stop is left behind after `overtime`.
    ///
    /// - Parameter others: Returns when no client except the worker needs the coordinator any more.
    package func stop(drain: Duration, behind others: () async -> Void = {}) async {
        worker.service.drain(timeout: drain)
        await workerEnded.wait(within: drain + overtime)
        if !workerEnded.isOpen {
            worker.service.stop()
            await workerEnded.wait(within: Self.lastWordsPatience)
        }
        await others()
        await service.shutDown()
    }

    /// Ends everything that runs at once, and gives it back.
    package func stopNow() async {
        worker.service.stop()
        await workerEnded.wait(within: Self.lastWordsPatience)
        await service.shutDown(kill: true, inHaste: true)
    }
}
