import Logging
import OperonCore
import OperonModel
import OperonPorts
import OperonRuntime
import OperonSQLite
import OperonTestKit

/// A coordinator with its store, and a worker in the same process: what `operon up` runs, without
/// the server.
struct Bench: Sendable {
    let service: CoordinatorService
    let client: LocalCoordinator
    /// Opens when the first operation has started.
    let started: Latch
    private let store: SQLiteStore
    private let worker: WorkerService
    private let processes: ProcessRunner

    static func open(_ path: String) async throws -> Bench {
        let store = SQLiteStore(path: path)
        let (scheduler, restored) = try await CoordinatorService.restore(
            from: store,
            configuration: Scheduler.Configuration()
        )
        let hub = InProcessHub()
        let logger = Logger(label: "benchmark") { _ in SwiftLogNoOpLogHandler() }
        let started = Latch()
        let service = CoordinatorService(
            scheduler: scheduler,
            transport: hub.makeCoordinator(),
            logger: logger,
            restored: restored
        ) { notices, _ in
            guard !started.isOpen else { return }
            for notice in notices {
                if case .granted = notice { started.open() }
            }
        }
        let incarnation = Incarnation(
            rawValue: scheduler.reign.rawValue ^ UInt64(scheduler.epoch.rawValue)
        )
        let configuration = WorkerAgent.Configuration(
            name: "local",
            incarnation: incarnation,
            host: "here",
            processID: 1,
            slots: 2,
            kinds: Work.builtInKinds
        )
        let processes = try ProcessRunner(ProcessRunner.Configuration(environment: [:]))
        let worker = WorkerService(
            agent: WorkerAgent(configuration: configuration),
            transport: hub.makeWorker(incarnation: incarnation),
            processes: processes,
            logger: logger
        )
        return Bench(
            service: service,
            client: LocalCoordinator(service: service, caller: "", version: "benchmark"),
            started: started,
            store: store,
            worker: worker,
            processes: processes
        )
    }

    /// Runs coordinator and worker while `body` has something to do.
    func serve(_ body: @escaping (Bench) async throws -> Void) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await service.run() }
            group.addTask { try await worker.run() }
            try await body(self)
            worker.drain(timeout: .zero)
            await service.shutDown()
            try await group.waitForAll()
        }
        await store.close()
        await processes.shutdown()
    }

    func submit(
        _ arguments: GraphArguments,
        isSuspended: Bool,
        _ meter: inout Meter
    ) async throws -> GraphID {
        var submission = Submission(graph: graph(arguments))
        if isSuspended {
            var queue = QueueSettings(name: QueueSettings.defaultName)
            queue.isSuspended = true
            submission.graph.queues = [queue]
        }
        meter.lap("describe")
        meter.begin()
        let id = try await client.submit(submission).id
        meter.lap("submit")
        return GraphID(rawValue: id)
    }

    private func graph(_ arguments: GraphArguments) -> GraphDescription {
        var generator = GraphGenerator(seed: 1)
        var graph = GraphDescription(name: "benchmark")
        graph.operations.reserveCapacity(arguments.operations)
        let topology =
            arguments.shape == .layered
            ? generator.layered(operations: arguments.operations, width: 500) : nil
        for index in 0..<UInt32(arguments.operations) {
            var operation = OperationDescription(name: "operation-\(index)", work: .nothing)
            for edge in topology?.dependencies(of: index) ?? [] {
                operation.dependencies.append(DependencyDescription("operation-\(edge.operation)"))
            }
            graph.operations.append(operation)
        }
        return graph
    }
}
