import ClusterKit
import Operon
import OperonFaultKit
import OperonModel
import OperonRuntime

/// A worker of the library: its name, its slots, and what it knows.
struct LibraryWorker: Sendable {
    var name: String
    var slots = 2
    var kinds: [OperationKind]

    init(_ name: String, slots: Int = 2, _ kinds: OperationKind...) {
        self.name = name
        self.slots = slots
        self.kinds = kinds
    }
}

extension TestCluster {
    /// Runs `body` when all workers are welcome; then everything is closed.
    static func run(
        _ place: Place,
        _ workers: LibraryWorker...,
        isolation: isolated (any Actor)? = #isolation,
        _ body: (TestCluster) async throws -> Void
    ) async throws {
        try await run(.real(place)) { cluster in
            let serving = workers.map { worker in Task { try await cluster.serve(worker) } }
            let result: Result<Void, any Error>
            do {
                try await cluster.history.wait { $0.workers.count == workers.count }
                result = .success(try await body(cluster))
            } catch {
                result = .failure(error)
            }
            for task in serving {
                task.cancel()
                _ = await task.result
            }
            try result.get()
        }
    }

    /// Runs a worker until its task is cancelled, or it has drained.
    func serve(_ worker: LibraryWorker) async throws { try await make(worker).run() }

    func make(
        _ worker: LibraryWorker,
        drainTimeout: Duration = .seconds(30),
        grace: Duration = .seconds(10)
    ) -> Operon.Worker {
        Operon.Worker(
            hub: options.place == .inProcess ? hub : nil,
            broker: workerURL,
            prefix: options.prefix,
            trust: tokenText,
            name: worker.name,
            slots: worker.slots,
            drainTimeout: drainTimeout,
            grace: grace,
            logger: Self.logger,
            kinds: worker.kinds
        )
    }

    /// Runs one operation to its end.
    func runToEnd(_ operation: OperationDescription) async throws -> History.Operation {
        let graph = try await submit(operation)
        await service.waitUntilFinished(graph)
        return history.current[OperationID(graph: graph, index: 0)]
    }
}

extension OperationDescription {
    /// An operation of a registered kind; `input` is JSON.
    init(
        _ name: String,
        _ kind: String,
        _ input: String = "",
        after dependencies: [String] = []
    ) {
        let payload = input.isEmpty ? Payload.empty : Payload(bytes: Array(input.utf8))
        self.init(name: name, work: .registered(kind: kind, input: payload))
        self.dependencies = dependencies.map { DependencyDescription($0) }
    }
}
