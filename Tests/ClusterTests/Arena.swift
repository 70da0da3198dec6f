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
import OperonSQLite

/// A coordinator that keeps its graphs in a file, a client of it, and a worker whose operations
/// end when the test lets them: for commands that meet what they are about in the middle.
struct Arena: Sendable {
    /// What is between coordinator and worker.
    enum Way: String, CaseIterable, Sendable {
        case inProcess
        case broker
    }

    let client: LocalCoordinator
    let service: CoordinatorService
    let stage: Stage
    let history: Recorder<History>

    /// Runs `body` when the worker is welcome; then everything is closed.
    static func play(
        _ way: Way,
        slots: Int,
        isolation: isolated (any Actor)? = #isolation,
        _ body: (Arena) async throws -> Void
    ) async throws {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("operon-arena-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let store = SQLiteStore(path: folder.appendingPathComponent("graphs.db").path)
        let (scheduler, restored) = try await CoordinatorService.restore(
            from: store,
            configuration: Scheduler.Configuration()
        )
        let incarnation = Incarnation(rawValue: .random(in: 1...UInt64.max))
        let wire = try Wire(way, epoch: scheduler.epoch, incarnation)
        let history = Recorder(History())
        let service = CoordinatorService(
            scheduler: scheduler,
            transport: wire.coordinator,
            logger: logger,
            restored: restored
        ) { notices, _ in history.note(notices) }
        let arena = Arena(
            client: LocalCoordinator(service: service, caller: "ann", version: "0"),
            service: service,
            stage: Stage(),
            history: history
        )
        let processes = try ProcessRunner(ProcessRunner.Configuration(environment: [:]))
        let worker = arena.worker(incarnation, slots, wire.worker, processes)
        let services = Task {
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await service.run() }
                group.addTask { try await worker.run() }
                try await group.waitForAll()
            }
        }
        let result: Result<Void, any Error>
        do {
            try await history.wait { $0.workerCount == 1 }
            result = .success(try await body(arena))
        } catch {
            result = .failure(error)
        }
        arena.stage.openAll()
        worker.stop()
        await service.shutDown(kill: true)
        services.cancel()
        _ = await services.result
        await processes.shutdown()
        await store.close()
        try result.get()
    }

    /// The two ends of what is between them.
    private struct Wire {
        let coordinator: any CoordinatorTransport
        let worker: any WorkerTransport

        init(_ way: Way, epoch: Epoch, _ incarnation: Incarnation) throws {
            switch way {
            case .inProcess:
                let hub = InProcessHub()
                coordinator = hub.makeCoordinator()
                worker = hub.makeWorker(incarnation: incarnation)
            case .broker:
                let users = try BrokerUsers()
                let prefix = "test.\(UUID().uuidString.prefix(13).lowercased())."
                coordinator = AMQPCoordinatorTransport(
                    configuration: try AMQPConfiguration(url: users.coordinator, prefix: prefix),
                    epoch: epoch,
                    seed: 1,
                    logger: logger,
                    group: MultiThreadedEventLoopGroup.singleton
                )
                worker = AMQPWorkerTransport(
                    configuration: try AMQPConfiguration(url: users.worker, prefix: prefix),
                    incarnation: incarnation,
                    seed: 2,
                    logger: logger,
                    group: MultiThreadedEventLoopGroup.singleton
                )
            }
        }
    }

    private func worker(
        _ incarnation: Incarnation,
        _ slots: Int,
        _ transport: any WorkerTransport,
        _ processes: ProcessRunner
    ) -> WorkerService {
        let stage = stage
        let kind = RegisteredKind(name: Stage.kind) { await stage.play($0) }
        let kinds = RegisteredKinds([kind], threads: nil, program: nil)
        var configuration = WorkerAgent.Configuration(
            name: "w",
            incarnation: incarnation,
            host: "here",
            processID: 1,
            slots: slots,
            kinds: kinds.names
        )
        configuration.startReportDelay = .milliseconds(10)
        return WorkerService(
            agent: WorkerAgent(configuration: configuration),
            transport: transport,
            processes: processes,
            kinds: kinds,
            logger: Self.logger
        )
    }

    private static let logger: Logger = {
        var logger = Logger(label: "arena") { StreamLogHandler.standardError(label: $0) }
        logger.logLevel = .critical
        return logger
    }()

    // MARK: - What a client does

    /// Operations of the stage, each with what it depends on.
    @discardableResult
    func submit(
        _ name: String,
        _ operations: [(name: String, after: [String], queue: String?)]
    ) async throws -> GraphView {
        let described = operations.map { operation in
            var description = OperationDescription(
                name: operation.name,
                work: .registered(kind: Stage.kind, input: .empty)
            )
            description.dependencies = operation.after.map { DependencyDescription($0) }
            if let queue = operation.queue { description.queue = queue }
            return description
        }
        return try await client.submit(
            Submission(graph: GraphDescription(name: name, operations: described))
        )
    }
}

/// Where operations are played: it notes each start, and an operation of a name that has a gate
/// ends when that is opened, or when it is asked to stop.
final class Stage: @unchecked Sendable {
    static let kind = "play"

    // Everything below is touched under this lock alone.
    private let lock = NSLock()
    private var gates: [String: Latch] = [:]
    private var starts: [String: Int] = [:]
    private var startCount = 0
    private var waiters: [(count: Int, latch: Latch)] = []
    private var isOver = false

    /// To be called before it can start.
    func gate(_ operation: String) -> Latch {
        lock.withLock {
            let gate = gates[operation] ?? Latch()
            gates[operation] = gate
            if isOver { gate.open() }
            return gate
        }
    }

    func openAll() {
        let gates = lock.withLock {
            isOver = true
            return Array(self.gates.values)
        }
        for gate in gates { gate.open() }
    }

    func starts(of operation: String) -> Int { lock.withLock { starts[operation] ?? 0 } }

    var allStarts: [String: Int] { lock.withLock { starts } }

    /// Returns when there have been so many starts in all.
    func waitForStarts(_ count: Int) async throws {
        let latch = lock.withLock {
            let latch = Latch()
            if startCount >= count { latch.open() } else { waiters.append((count, latch)) }
            return latch
        }
        await latch.wait(within: .seconds(120))
        guard latch.isOpen else { throw ClusterFailure("\(allStarts.count) of \(count) started") }
    }

    func play(_ invocation: Invocation) async -> InvocationEnd {
        let gate = lock.withLock {
            starts[invocation.operation.name, default: 0] += 1
            startCount += 1
            for waiter in waiters where waiter.count <= startCount { waiter.latch.open() }
            waiters.removeAll { $0.count <= startCount }
            return gates[invocation.operation.name]
        }
        guard let gate else { return .returned(.empty) }
        await gate.wait()
        // Whatever came first: what has been let go has done its work.
        return gate.isOpen ? .returned(.empty) : .stopped
    }
}
