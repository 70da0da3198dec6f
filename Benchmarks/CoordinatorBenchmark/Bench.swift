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
    let client: LocalCoordinator
    /// Opens when the first operation has started.
    let started: Latch
    private let host: CoordinatorHost

    var service: CoordinatorService { host.service }

    static func open(_ path: String) async throws -> Bench {
        let logger = Logger(label: "benchmark") { _ in SwiftLogNoOpLogHandler() }
        let started = Latch()
        var configuration = CoordinatorHost.Configuration()
        configuration.observer = { notices, _ in
            guard !started.isOpen else { return }
            for notice in notices {
                if case .granted = notice { started.open() }
            }
        }
        let worker = WorkerHost.Configuration(slots: 2, environment: [:]) { _ in }
        let host = try await CoordinatorHost.open(
            SQLiteStore(path: path),
            configuration,
            logger: logger
        ) { _, _ in try .inProcess(worker, logger: logger) }
        let client = LocalCoordinator(service: host.service, caller: "", version: "benchmark")
        return Bench(client: client, started: started, host: host)
    }

    /// Runs coordinator and worker while `body` has something to do.
    func serve(_ body: @escaping (Bench) async throws -> Void) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await host.runAndClose() }
            try await body(self)
            await host.stop(.drain(within: .zero))
            try await group.waitForAll()
        }
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
