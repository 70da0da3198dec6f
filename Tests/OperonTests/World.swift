import ClusterKit
import Foundation
import Logging
import NIOPosix
import Operon
import OperonAMQP
import OperonCore
import OperonFaultKit
import OperonModel
import OperonPorts
import OperonRuntime

/// A coordinator and workers of the library in this process, with a broker between them or without.
final class World: Sendable {
    /// What is between them.
    enum Way: String, CaseIterable, Sendable {
        case inProcess
        case broker
    }

    /// A worker of the world: its name, its slots, and what it knows.
    struct Member: Sendable {
        var name: String
        var slots = 2
        var kinds: [OperationKind]

        init(_ name: String, slots: Int = 2, _ kinds: OperationKind...) {
            self.name = name
            self.slots = slots
            self.kinds = kinds
        }
    }

    let way: Way
    let coordinator: CoordinatorService
    let record: Recorder<Record>
    private let hub: InProcessHub
    private let prefix: String

    /// Runs `body` when all members are welcome; then everything is closed.
    static func play(
        _ way: Way,
        _ members: Member...,
        isolation: isolated (any Actor)? = #isolation,
        _ body: (World) async throws -> Void
    ) async throws {
        let world = try World(way)
        let services = Task {
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await world.coordinator.run() }
                for member in members {
                    group.addTask { try await world.serve(member) }
                }
                try await group.waitForAll()
            }
        }
        let result: Result<Void, any Error>
        do {
            try await world.record.wait { $0.workers.count == members.count }
            result = .success(try await body(world))
        } catch {
            result = .failure(error)
        }
        await world.coordinator.shutDown(kill: true)
        services.cancel()
        _ = await services.result
        try result.get()
    }

    private init(_ way: Way) throws {
        self.way = way
        let record = Recorder(Record())
        self.record = record
        hub = InProcessHub()
        prefix = "test.\(UUID().uuidString.prefix(13))."
        let transport: any CoordinatorTransport =
            switch way {
            case .inProcess: hub.makeCoordinator()
            case .broker:
                AMQPCoordinatorTransport(
                    configuration: try AMQPConfiguration(
                        url: try BrokerUsers().coordinator,
                        prefix: prefix
                    ),
                    epoch: Epoch(rawValue: 1),
                    seed: 1,
                    logger: Self.logger,
                    group: MultiThreadedEventLoopGroup.singleton
                )
            }
        coordinator = CoordinatorService(
            scheduler: Scheduler(
                configuration: Scheduler.Configuration(),
                reign: Reign(rawValue: 1),
                epoch: Epoch(rawValue: 1)
            ),
            transport: transport,
            logger: Self.logger
        ) { notices, _ in
            record.change { record in for notice in notices { record.note(notice) } }
        }
    }

    /// Runs a worker until its task is cancelled, or it has drained.
    func serve(_ member: Member) async throws {
        try await worker(member).run()
    }

    func worker(
        _ member: Member,
        drainTimeout: Duration = .seconds(30),
        grace: Duration = .seconds(10)
    ) throws -> Worker {
        let hub: InProcessHub? =
            switch way {
            case .inProcess: hub
            case .broker: nil
            }
        return Worker(
            hub: hub,
            broker: way == .broker ? try BrokerUsers().worker : nil,
            prefix: prefix,
            name: member.name,
            slots: member.slots,
            drainTimeout: drainTimeout,
            grace: grace,
            logger: Self.logger,
            kinds: member.kinds
        )
    }

    static let logger: Logger = {
        var logger = Logger(label: "operon-tests") { StreamLogHandler.standardError(label: $0) }
        logger.logLevel = .critical
        return logger
    }()

    // MARK: - What a client does

    @discardableResult
    func submit(_ operations: OperationDescription...) async throws -> GraphID {
        let graph = GraphDescription(name: "g", operations: operations)
        return await coordinator.submit(graph, compiled: try CompiledGraph.compile(graph))
    }

    /// Runs one operation to its end.
    func run(_ operation: OperationDescription) async throws -> Record.Entry {
        let graph = try await submit(operation)
        await coordinator.waitUntilFinished(graph)
        return record.current[OperationID(graph: graph, index: 0)]
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

struct WorldFailure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

/// What the coordinator said.
struct Record: Sendable {
    struct Entry: Sendable {
        var outcome: Outcome?
        /// Of its last attempt.
        var result: AttemptResult?
        var worker: Incarnation?
        var hasStarted = false
        var log = ""

        var output: String { String(decoding: result?.output.bytes ?? [], as: UTF8.self) }

        var tail: String { String(decoding: result?.logTail ?? [], as: UTF8.self) }
    }

    var workers: [String] = []
    var names: [Incarnation: String] = [:]
    var entries: [OperationID: Entry] = [:]

    subscript(operation: OperationID) -> Entry { entries[operation] ?? Entry() }

    /// By its place in the first graph.
    subscript(index: Int) -> Entry {
        self[OperationID(graph: GraphID(rawValue: 0), index: UInt32(index))]
    }
}

extension Record {
    mutating func note(_ notice: Scheduler.Notice) {
        switch notice {
        case .workerJoined(let worker, _, _):
            workers.append(worker.name)
            names[worker.incarnation] = worker.name
        case .granted(let operation, _, let worker):
            entries[operation, default: Record.Entry()].worker = worker
        case .started(let operation, _, _):
            entries[operation, default: Record.Entry()].hasStarted = true
        case .result(let operation, _, let result):
            entries[operation, default: Record.Entry()].result = result
        case .finished(let operation, let outcome):
            entries[operation, default: Record.Entry()].outcome = outcome
        case .log(let chunk):
            entries[chunk.held.operation, default: Record.Entry()].log +=
                String(decoding: chunk.bytes, as: UTF8.self)
        default: break
        }
    }
}
