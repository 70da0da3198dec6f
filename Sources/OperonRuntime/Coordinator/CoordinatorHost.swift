package import Logging
package import OperonCore
package import OperonModel
package import OperonPorts
import OperonTrust

/// A coordinator with everything that belongs to it: the leadership, the store, the transport, the
/// worker in the same process if there is one, and its background activities.
///
/// A coordinator starts in this order: leadership, store, restored state, transport, service. It
/// ends in the opposite order.
package final class CoordinatorHost: Sendable {
    package struct Configuration: Sendable {
        /// The rules of the scheduler. The host draws the seed.
        package var scheduler = Scheduler.Configuration()
        package var time = TimeSource.system
        /// `nil`: the coordinator has no triggers.
        package var triggers: TriggerSupport?
        package var operationsPerMessage = CoordinatorService.defaultOperationsPerMessage
        /// `nil`: nothing is measured.
        package var meters: CoordinatorMeters?
        /// Takes the spans of graphs; `nil`: they are not recorded.
        package var spans: (any SpanSink)?
        /// How long `stop` waits for operations in this process that were asked to stop because the
        /// drain time was over; `nil`: until they end. Processes are killed, so they always end.
        package var overtime: Duration?
        /// By what workers know it; `nil`: messages are sent in clear.
        package var trust: CoordinatorTrust?
        /// The bounds of a client by its name, which is stored with its graphs. They also hold for
        /// what operations of such a graph add to it.
        package var boundsOfSubmitter: @Sendable (String) -> SubmitterBounds = { _ in .none }
        /// Called at each step of the order of effects, for tests of crashes.
        package var passed: @Sendable (CrashPoint) -> Void = { _ in }
        package var growthObserver: CoordinatorService.GrowthObserver = { _, _ in }
        package var observer: CoordinatorService.Observer = { _, _ in }

        package init() {}
    }

    /// The connection of a coordinator to its workers.
    package struct Link: Sendable {
        let transport: any CoordinatorTransport
        let worker: WorkerHost?
        let executor: (any TaskExecutor)?

        /// - Parameters:
        ///   - worker: The worker in the same process; `nil`: workers are other processes.
        ///   - executor: Runs the coordinator where its transport runs; `nil`: anywhere.
        package init(
            _ transport: any CoordinatorTransport,
            worker: WorkerHost? = nil,
            on executor: (any TaskExecutor)? = nil
        ) {
            self.transport = transport
            self.worker = worker
            self.executor = executor
        }
    }

    /// Something that a coordinator does beside its service. It ends with the coordinator. If it
    /// throws, the coordinator ends with that error.
    package struct Activity: Sendable {
        let run: @Sendable (CoordinatorHost) async throws -> Void

        package init(_ run: @escaping @Sendable (CoordinatorHost) async throws -> Void) {
            self.run = run
        }

        /// Drops finished graphs that exceed the retention.
        package static func pruning(within retention: Retention) -> Activity {
            Activity { try await $0.service.keepPruned(within: retention) }
        }

        /// Checks whether the coordinator responds.
        package static func checking(_ pulse: CoordinatorPulse) -> Activity {
            Activity { host in try await pulse.run { await host.service.unreadiness } }
        }
    }

    package enum Stop: Sendable {
        /// Nothing new starts in this process, and what runs has this long to finish. What has not
        /// finished by then is stopped and given back: it runs again after the next start, if the
        /// store is on a disk. Workers elsewhere continue and wait for the next coordinator.
        case drain(within: Duration)
        /// The same without any time to finish.
        case now
        /// For a coordinator whose graphs end with it. `kill`: every worker kills what it runs.
        case forGood(kill: Bool)
    }

    package let service: CoordinatorService
    package let store: (any OperationStore)?
    private let leadership: (any Leadership)?
    private let link: Link
    private let overtime: Duration?
    /// `nil`: messages are sent in clear.
    private let trust: CoordinatorTrust?
    private let logger: Logger
    private let workerEnded = Latch()

    /// How long the worker in this process may take to give back the operations that it was told to
    /// kill.
    private static let lastWordsPatience = Duration.seconds(3)

    private init(
        _ start: Start,
        _ link: Link,
        _ configuration: Configuration,
        _ store: (any OperationStore)?,
        _ leadership: (any Leadership)?,
        _ logger: Logger
    ) {
        self.store = store
        self.leadership = leadership
        self.link = link
        overtime = configuration.overtime
        trust = configuration.trust
        self.logger = logger
        service = CoordinatorService(
            scheduler: start.scheduler,
            transport: link.transport,
            logger: logger,
            operationsPerMessage: configuration.operationsPerMessage,
            restored: start.restored,
            triggers: configuration.triggers,
            ownWorker: link.worker?.incarnation,
            trust: link.transport.isWithinProcess ? nil : configuration.trust,
            meters: configuration.meters,
            spans: configuration.spans,
            time: configuration.time,
            boundsOfSubmitter: configuration.boundsOfSubmitter,
            passed: configuration.passed,
            growthObserver: configuration.growthObserver,
            observer: configuration.observer
        )
    }

    /// Acquires the leadership, opens the store and resumes its graphs. `close` must be called when
    /// the host is not needed any more.
    ///
    /// - Parameters:
    ///   - store: `nil`: the graphs end with this process, and nothing is stored.
    ///   - leadership: `nil`: no other process can open the store.
    ///   - link: Creates the link. May refuse the restored state by an error.
    /// - Throws: Any error of the leadership, the store and `link`; then nothing stays open.
    package static func open(
        _ store: (any OperationStore)?,
        leadership: (any Leadership)? = nil,
        _ configuration: Configuration,
        logger: Logger,
        link: (Scheduler, CoordinatorService.Restored?) async throws -> Link
    ) async throws -> CoordinatorHost {
        var configuration = configuration
        var random = SystemRandomNumberGenerator()
        configuration.scheduler.seed = random.next()
        try await leadership?.acquire()
        do {
            let start = try await begin(with: store, configuration)
            do {
                let link = try await link(start.scheduler, start.restored)
                return CoordinatorHost(start, link, configuration, store, leadership, logger)
            } catch {
                await store?.close()
                throw error
            }
        } catch {
            await leadership?.release()
            throw error
        }
    }

    /// What a coordinator begins with.
    private typealias Start = (scheduler: Scheduler, restored: CoordinatorService.Restored?)

    private static func begin(
        with store: (any OperationStore)?,
        _ configuration: Configuration
    ) async throws -> Start {
        guard let store else {
            return (
                Scheduler(
                    configuration: configuration.scheduler,
                    reign: .drawn(),
                    epoch: Epoch(rawValue: 1)
                ),
                nil
            )
        }
        return try await CoordinatorService.restore(
            from: store,
            configuration: configuration.scheduler,
            triggers: configuration.triggers,
            time: configuration.time
        )
    }

    /// Serves until `stop` is done, or until its task is cancelled, which ends at once everything
    /// that runs in this process.
    ///
    /// - Throws: An error after which the coordinator cannot continue, such as `StoreError` for a
    ///   store that fails, or `PortError` for a broker that refuses it; any error of an activity.
    package func run(beside activities: [Activity] = []) async throws {
        let result: Result<Void, any Error>
        do {
            result = .success(try await serve(activities))
        } catch {
            result = .failure(error)
        }
        await link.worker?.shutDown()
        try result.get()
    }

    /// Runs, and closes in any case.
    package func runAndClose(beside activities: [Activity] = []) async throws {
        let result: Result<Void, any Error>
        do {
            result = .success(try await run(beside: activities))
        } catch {
            result = .failure(error)
        }
        await close()
        try result.get()
    }

    private func serve(_ activities: [Activity]) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask(executorPreference: link.executor) { [service] in
                try await service.run()
                // Whoever asked for the end has an answer by now.
                throw Ended()
            }
            if let worker = link.worker {
                group.addTask { [workerEnded] in
                    defer { workerEnded.open() }
                    try await worker.service.run()
                }
            }
            if let trust, let keys = trust.directory {
                group.addTask { try await self.follow(keys, since: trust.stamp) }
            }
            for activity in activities {
                group.addTask { try await activity.run(self) }
            }
            defer { group.cancelAll() }
            do {
                while try await group.next() != nil {}
            } catch is Ended {}
        }
    }

    private struct Ended: Error {}

    /// Reads the keys again whenever their files have changed.
    private func follow(_ keys: TrustDirectory, since stamp: [String]) async throws {
        var stamp = stamp
        var told = ""
        while true {
            let now = keys.stamp
            if now != stamp {
                do throws(TrustError) {
                    service.replace(try CoordinatorTrust(keys))
                    // Only now: what could not be read may be readable later, as it is.
                    stamp = now
                    told = ""
                } catch {
                    let why = "\(error)"
                    if why != told {
                        logger.error("the keys stay as they were", metadata: ["reason": "\(why)"])
                    }
                    told = why
                }
            }
            // Nothing tells of changes on all file systems.
            try await Task.sleep(for: .seconds(1))
        }
    }

    /// Ends `run`. Returns when the last messages have been sent.
    ///
    /// - Parameter others: Returns when no client except the worker needs the coordinator any more.
    ///   Only a drain waits for it.
    package func stop(_ stop: Stop, behind others: () async -> Void = {}) async {
        switch stop {
        case .drain(let limit):
            drainWorker(within: limit)
            await waitForWorker(within: overtime.map { limit + $0 })
            if let worker = link.worker, !workerEnded.isOpen {
                worker.service.stop()
                await waitForWorker(within: Self.lastWordsPatience)
            }
            await others()
            await service.shutDown()
        case .now:
            link.worker?.service.stop()
            await waitForWorker(within: Self.lastWordsPatience)
            await service.shutDown(kill: link.worker != nil, inHaste: true)
        case .forGood(let kill):
            await service.shutDown(kill: kill)
            if kill { link.worker?.service.stop() } else { drainWorker(within: .zero) }
        }
    }

    /// The worker in this process starts nothing more.
    package func drainWorker(within limit: Duration) {
        link.worker?.service.drain(timeout: limit)
    }

    /// The worker in this process stops what it runs. Returns when nothing runs any more, or after
    /// this time.
    package func stopOperations(within limit: Duration) async {
        drainWorker(within: .zero)
        await link.worker?.service.waitUntilIdleForGood(within: limit)
    }

    private func waitForWorker(within limit: Duration?) async {
        guard link.worker != nil else { return }
        if let limit { await workerEnded.wait(within: limit) } else { await workerEnded.wait() }
    }

    /// Ends everything that still runs in this process, closes the store and ends the leadership.
    package func close() async {
        await link.worker?.shutDown()
        await store?.close()
        await leadership?.release()
    }
}
