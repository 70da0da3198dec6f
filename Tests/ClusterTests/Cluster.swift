import ClusterKit
import Foundation
import Logging
import NIOPosix
import OperonAMQP
import OperonCore
import OperonFaultKit
import OperonModel
import OperonPorts
import OperonRuntime

/// A coordinator and workers of this process, which know one another through the broker alone.
struct Cluster: Sendable {
    let coordinator: CoordinatorService
    let history: Recorder<History>

    /// Runs `body` when all workers are welcome; then everything is closed.
    static func play(
        workers count: Int,
        slots: Int = 1,
        prefix: String = "test.\(UUID().uuidString.prefix(13).lowercased()).",
        isolation: isolated (any Actor)? = #isolation,
        _ body: (Cluster) async throws -> Void
    ) async throws {
        let users = try BrokerUsers()
        let configuration = try AMQPConfiguration(url: users.coordinator, prefix: prefix)
        let workerConfiguration = try AMQPConfiguration(url: users.worker, prefix: prefix)
        let history = Recorder(History())
        let coordinator = CoordinatorService(
            scheduler: Scheduler(
                configuration: Scheduler.Configuration(),
                reign: Reign(rawValue: 1),
                epoch: Epoch(rawValue: 1)
            ),
            transport: AMQPCoordinatorTransport(
                configuration: configuration,
                epoch: Epoch(rawValue: 1),
                seed: 1,
                logger: logger,
                group: MultiThreadedEventLoopGroup.singleton
            ),
            logger: logger
        ) { notices, _ in history.note(notices) }
        let processes = try ProcessRunner(ProcessRunner.Configuration(environment: [:]))
        let workers = (0..<count).map {
            worker(
                number: $0,
                slots: slots,
                configuration: workerConfiguration,
                processes: processes
            )
        }
        let services = Task {
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await coordinator.run() }
                for worker in workers { group.addTask { try await worker.run() } }
                try await group.waitForAll()
            }
        }
        let result: Result<Void, any Error>
        do {
            try await history.wait { $0.workerCount == count }
            result = .success(
                try await body(Cluster(coordinator: coordinator, history: history))
            )
        } catch {
            result = .failure(error)
        }
        await coordinator.shutDown(kill: true)
        for worker in workers { worker.stop() }
        services.cancel()
        _ = await services.result
        await processes.shutdown()
        try result.get()
    }

    private static func worker(
        number: Int,
        slots: Int,
        configuration: AMQPConfiguration,
        processes: ProcessRunner
    ) -> WorkerService {
        let incarnation = Incarnation(rawValue: .random(in: 1...UInt64.max))
        return WorkerService(
            agent: WorkerAgent(
                configuration: WorkerAgent.Configuration(
                    name: "w\(number)",
                    incarnation: incarnation,
                    host: "here",
                    processID: Int32(number),
                    slots: slots,
                    kinds: Work.builtInKinds
                )
            ),
            transport: AMQPWorkerTransport(
                configuration: configuration,
                incarnation: incarnation,
                seed: UInt64(number),
                logger: logger,
                group: MultiThreadedEventLoopGroup.singleton
            ),
            processes: processes,
            logger: logger
        )
    }

    private static let logger: Logger = {
        var logger = Logger(label: "cluster") { StreamLogHandler.standardError(label: $0) }
        logger.logLevel = .critical
        return logger
    }()

    // MARK: - What a client does

    func submit(_ graph: GraphDescription) async throws -> GraphID {
        await coordinator.submit(graph, compiled: try CompiledGraph.compile(graph))
    }
}

struct ClusterFailure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

/// What the coordinator said.
struct History: Sendable {
    struct Attempt: Sendable {
        let operation: OperationID
        let id: AttemptID
        let worker: Incarnation
        /// The limit that was in force when it was granted, as the test noted it.
        let limit: Int
        var start: Timestamp?
        var end: Timestamp?
        var ending: Scheduler.AttemptEnding?
    }

    var workerCount = 0
    /// In the order of their grants.
    var attempts: [Attempt] = []
    var finished: [OperationID] = []
    /// The last outcome of each that has one.
    var outcomes: [OperationID: OutcomeKind] = [:]
    /// In order, once for each attempt.
    var started: [OperationID] = []
    var resumed: [OperationID] = []
    var limit = 0
}

extension Recorder<History> {
    func note(_ notices: [Scheduler.Notice]) {
        change { history in for notice in notices { history.note(notice) } }
    }
}

extension History {
    mutating func note(_ notice: Scheduler.Notice) {
        switch notice {
        case .workerJoined: workerCount += 1
        case .workerLost: workerCount -= 1
        case .granted(let operation, let attempt, let worker):
            attempts.append(
                History.Attempt(operation: operation, id: attempt, worker: worker, limit: limit)
            )
        case .attemptEnded(_, let attempt, let ending, let start, let end):
            guard let index = attempts.lastIndex(where: { $0.id == attempt }) else { return }
            attempts[index].start = start
            attempts[index].end = end
            attempts[index].ending = ending
        case .finished(let operation, let outcome):
            finished.append(operation)
            outcomes[operation] = outcome.kind
        case .started(let operation, _, _): started.append(operation)
        case .resumed(let operation, _, _): resumed.append(operation)
        case .ready, .result, .retry, .yielded, .waitEnded, .graphFinished, .workerDraining,
            .workerBusy,
            .operationsAdded, .graphClosedIdle, .superseded, .eventRefused, .log, .progress:
            return
        }
    }
}
