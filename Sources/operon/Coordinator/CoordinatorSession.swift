import ArgumentParser
import Logging
import NIOCore
import NIOPosix
import OperonAMQP
import OperonArguments
import OperonCore
import OperonGraphFile
import OperonHTTP
import OperonMetrics
import OperonModel
import OperonPorts
import OperonRuntime
import OperonSQLite
import OperonTerminal
import UnixSignals

/// One run of a coordinator with a store: the store, the scheduler, the transport, the API, and
/// shutdown.
struct CoordinatorSession {
    enum Place {
        case broker(url: String, prefix: String)
        /// A worker in the same process; `drain`: how long its operations may take at shutdown.
        case thisProcess(slots: Int, drain: Duration)
    }

    private let environment: [String: String]
    private let server: HTTPServerConfiguration
    private let path: String
    private let retention: Retention
    private let say: @Sendable (String) -> Void
    private let logger: Logger
    private let metrics = PrometheusMetrics(help: CoordinatorMeters.help)

    /// - Throws: `Failure` for arguments that cannot be used.
    init(_ arguments: CoordinatorArguments, environment: [String: String]) throws(Failure) {
        self.environment = environment
        server = try arguments.server(environment: environment)
        path = try arguments.storePath(environment: environment)
        retention = arguments.retention
        (logger, say) = arguments.log.make("operon")
    }

    func run(on place: Place) async throws {
        OwnProcess.boundFreeMemory()
        let opened = try await OpenedStore.open(path: path)
        if let warning = opened.warning { say(warning) }
        do {
            switch place {
            case .broker(let url, let prefix):
                try await serve(opened, url: url, prefix: prefix)
            case .thisProcess(let slots, let drain):
                try await serve(opened, slots: slots, drain: drain)
            }
        } catch {
            await opened.close()
            throw error
        }
        await opened.close()
    }

    // MARK: - On a broker

    private func serve(
        _ opened: OpenedStore,
        url: String,
        prefix: String
    ) async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        defer { group.shutdownGracefully { _ in } }
        var random = SystemRandomNumberGenerator()
        let connection: AMQPConfiguration
        do throws(PortError) {
            connection = try AMQPConfiguration(url: url, prefix: prefix)
        } catch {
            throw Failure(ExitStatus.usage, error.message)
        }
        let transport = AMQPCoordinatorTransport(
            configuration: connection,
            epoch: opened.scheduler.epoch,
            seed: random.next(),
            logger: logger,
            group: group
        )
        let attendance = connection.attendance
        let service = CoordinatorService(
            scheduler: opened.scheduler,
            transport: transport,
            logger: logger,
            restored: opened.restored,
            meters: CoordinatorMeters(factory: metrics),
            reached: FatalPoint(environment).reached
        ) { notices, _ in
            for notice in notices {
                if case .workerJoined(let worker, _, let slots) = notice {
                    attendance.joined(worker.incarnation, slots: slots)
                }
                if case .workerLost(let worker) = notice { attendance.lost(worker.incarnation) }
            }
        }
        say("keeps its graphs in \(path), speaks to \(connection.address)")
        try await serve(service, on: LoopExecutor(group.next())) {
            await service.shutDown()
        } stopNow: {
            // Workers keep their running operations and wait for the next coordinator.
            await service.shutDown(inHaste: true)
        } services: { _ in
        }
    }

    // MARK: - In this process

    private func serve(
        _ opened: OpenedStore,
        slots: Int,
        drain: Duration
    ) async throws {
        let hub = InProcessHub()
        let worker = try InProcessWorker.stock(
            on: hub,
            slots: slots,
            stateDirectory: path + ".worker",
            environment: environment,
            logger: logger
        )
        let service = CoordinatorService(
            scheduler: opened.scheduler,
            transport: hub.makeCoordinator(),
            logger: logger,
            restored: opened.restored,
            ownWorker: worker.incarnation,
            meters: CoordinatorMeters(factory: metrics),
            reached: FatalPoint(environment).reached
        ) { _, _ in
        }
        let count = slots == 1 ? "1 operation" : "\(slots) operations"
        say("keeps its graphs in \(path), runs \(count) at once")
        let workerEnded = Latch()
        do {
            try await serve(service, on: nil) {
                worker.service.drain(timeout: drain)
                await workerEnded.wait()
                await service.shutDown()
            } stopNow: {
                // The worker returns the attempts that it kills. They count as no failure, and run
                // again later.
                worker.service.stop()
                await workerEnded.wait(within: Self.lastWordsPatience)
                await service.shutDown(kill: true, inHaste: true)
            } services: { group in
                group.addTask {
                    defer { workerEnded.open() }
                    try await worker.service.run()
                }
            }
        } catch {
            await worker.shutDown()
            throw error
        }
        await worker.shutDown()
    }

    // MARK: - Serving

    /// How long the worker in this process may take to return killed attempts.
    private static let lastWordsPatience = Duration.seconds(3)

    /// Serves until a signal arrives or a necessary part fails. `stop` runs at the first signal,
    /// `stopNow` at the second.
    private func serve(
        _ service: CoordinatorService,
        on executor: LoopExecutor?,
        stop: @escaping @Sendable () async -> Void,
        stopNow: @escaping @Sendable () async -> Void,
        services: (inout ThrowingTaskGroup<Void, any Error>) -> Void
    ) async throws {
        let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm)
        let pulse = CoordinatorPulse()
        let http = makeServer(of: service, pulse)
        let manager = ServiceManager(socket: environment["NOTIFY_SOCKET"])
        let say = say
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask(executorPreference: executor) {
                try await service.run()
                // The client that asked for the shutdown has its answer by now.
                throw Ended()
            }
            services(&group)
            group.addTask {
                do throws(HTTPServerError) {
                    try await http.run { address in
                        say("answers at \(address)")
                        Self.tell([.ready, .status("answers at \(address)")], manager, say)
                    }
                } catch {
                    throw Failure(ExitStatus.usage, error.message)
                }
            }
            group.addTask { try await pulse.run { await service.unreadiness } }
            group.addTask { [retention] in try await service.keepPruned(within: retention) }
            group.addTask {
                var isStopping = false
                for await _ in signals {
                    if isStopping {
                        await stopNow()
                        throw Ended()
                    }
                    isStopping = true
                    say("ends; what it keeps is taken up at the next start")
                    Self.tell([.stopping(within: Self.stopPatience)], manager, say)
                    http.stop()
                    Task { await stop() }
                }
            }
            defer { group.cancelAll() }
            do {
                while try await group.next() != nil {}
            } catch is Ended {
            } catch let error as StoreError {
                throw Failure(ExitStatus.failed, "\(error.message) Start it again to go on.")
            } catch let error as PortError {
                throw Failure(ExitStatus.of(error), error.message)
            }
        }
    }

    /// How long the last messages and, in this process, running operations may take at shutdown.
    private static let stopPatience = Duration.seconds(120)

    private struct Ended: Error {}

    private func makeServer(
        of service: CoordinatorService,
        _ pulse: CoordinatorPulse
    ) -> HTTPServer {
        let health = HTTPHealth {
            let trouble = pulse.stagnation
            return HealthAnswer(isGood: trouble == nil, text: trouble ?? "ok")
        } readyz: {
            let trouble = pulse.unreadiness
            return HealthAnswer(isGood: trouble == nil, text: trouble ?? "ok")
        } metrics: { [metrics] in
            let queues = await service.refreshMeters()
            return metrics.text(with: queues.families.map { PrometheusMetrics.Gauges($0) })
        }
        return HTTPServer(server, codec: GraphFileCodec(), health: health, logger: logger) { name in
            LocalCoordinator(service: service, caller: name, version: Version.text)
        }
    }

    private static func tell(
        _ news: [ServiceManager.News],
        _ manager: ServiceManager?,
        _ say: @Sendable (String) -> Void
    ) {
        do throws(PortError) {
            try manager?.tell(news)
        } catch {
            say("the service manager is not told: \(error.message)")
        }
    }
}

extension PrometheusMetrics.Gauges {
    fileprivate init(_ family: QueueMeters.Family) {
        self.init(
            label: family.label,
            values: family.values.map { queue, value in
                (dimensions: queue.map { [("queue", $0)] } ?? [], value: Double(value))
            }
        )
    }
}
