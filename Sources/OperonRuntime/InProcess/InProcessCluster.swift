package import Logging
import OperonCore
package import OperonModel
package import OperonPorts

/// A coordinator and its worker in this process, without a broker; how long its graphs live is up
/// to the store.
package final class InProcessCluster: Sendable {
    package struct Configuration: Sendable {
        /// How many operations run at once, 1 to 4,096.
        package var slots: Int
        /// What the worker runs beside commands and waits.
        package var kinds = RegisteredKinds.none
        /// Where the worker keeps its identity, so that its next life ends what it left running;
        /// `nil`: nowhere, which is right for a store in memory.
        package var stateDirectory: String?
        /// What processes are given a part of.
        package var environment: [String: String]
        /// The name that is stored with what the client asks for.
        package var caller = ""
        /// Of this program, as `ClusterView` shows it.
        package var version: String
        package var limits = Limits()
        /// What is kept of what has ended.
        package var retention = Retention()
        /// What delays, timeouts and pauses are told by; any other than the machine's stands still
        /// for leases: nothing is lost while it jumps.
        package var time: TimeSource?
        /// How long what was asked to stop, when its time was over, is waited for.
        package var overtime = Duration.seconds(15)
        /// A start is reported by itself after this long: a message costs next to nothing here.
        package var startReportDelay = Duration.milliseconds(10)

        package init(slots: Int, environment: [String: String], version: String) {
            self.slots = slots
            self.environment = environment
            self.version = version
        }
    }

    /// Asks the coordinator. What needs the worker is answered once `run` is called.
    package let client: LocalCoordinator
    package let service: CoordinatorService
    package let store: any OperationStore
    private let retention: Retention
    private let overtime: Duration
    private let worker: InProcessWorker
    private let workerEnded = Latch()

    /// How long the worker may take to give back what it was told to kill.
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

    /// Longer than any clock is moved by a test: a century.
    private static let longTime = Duration.seconds(100 * 365 * 86_400)

    /// Opens the store and takes up what it keeps. `run` is to be called next, or `abandon`.
    ///
    /// - Throws: `StoreError`, `StateDirectoryError`, `ProcessRunnerError`; the store is closed
    ///   again then.
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
    /// what runs. Closes the store.
    ///
    /// - Throws: what it cannot go on without: `StoreError` for a store that fails.
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
                // Whoever asked for it to end has been answered by now.
            }
        }
    }

    private struct Ended: Error {}

    /// Ends what was opened and is not run.
    package func abandon() async {
        await worker.shutDown()
        await store.close()
    }

    /// Starts nothing more, gives what runs this long to end, and ends. What has not ended by then
    /// is stopped and given back: it runs again in the next life of a store that has one. Code that
    /// ignores that is left behind after its overtime.
    ///
    /// - Parameter others: returns when nobody beside the worker needs the coordinator any more.
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

    /// Ends at once what runs, and gives it back.
    package func stopNow() async {
        worker.service.stop()
        await workerEnded.wait(within: Self.lastWordsPatience)
        await service.shutDown(kill: true, inHaste: true)
    }
}
