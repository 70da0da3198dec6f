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
    let record: Record
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
        let record = Record()
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
        ) { notices, _ in record.note(notices) }
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

/// What the coordinator said, and those who wait until it has said something.
final class Record: @unchecked Sendable {
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

    struct State: Sendable {
        var workers: [String] = []
        var names: [Incarnation: String] = [:]
        var entries: [OperationID: Entry] = [:]

        subscript(operation: OperationID) -> Entry { entries[operation] ?? Entry() }

        /// By its place in the first graph.
        subscript(index: Int) -> Entry {
            self[OperationID(graph: GraphID(rawValue: 0), index: UInt32(index))]
        }
    }

    // Everything below is touched under this lock alone.
    private let lock = NSLock()
    private var state = State()
    private var waiters: [UInt64: Waiter] = [:]
    private var nextWaiter: UInt64 = 0

    private struct Waiter {
        let isDone: @Sendable (State) -> Bool
        let continuation: CheckedContinuation<Bool, Never>
    }

    var current: State { lock.withLock { state } }

    func note(_ notices: [Scheduler.Notice]) {
        let done = lock.withLock {
            for notice in notices { state.note(notice) }
            let done = waiters.filter { $0.value.isDone(state) }
            for waiter in done { waiters[waiter.key] = nil }
            return done
        }
        for waiter in done { waiter.value.continuation.resume(returning: true) }
    }

    /// Returns when this holds.
    ///
    /// - Throws: `WorldFailure` after two minutes.
    func wait(until isDone: @escaping @Sendable (State) -> Bool) async throws {
        let id = lock.withLock {
            nextWaiter += 1
            return nextWaiter
        }
        let timeout = Task {
            try await Task.sleep(for: .seconds(120))
            lock.withLock { waiters.removeValue(forKey: id) }?.continuation
                .resume(returning: false)
        }
        defer { timeout.cancel() }
        let isInTime = await withCheckedContinuation { continuation in
            let isDone = lock.withLock {
                if isDone(state) { return true }
                waiters[id] = Waiter(isDone: isDone, continuation: continuation)
                return false
            }
            if isDone { continuation.resume(returning: true) }
        }
        guard isInTime else { throw WorldFailure("it did not happen within two minutes") }
    }
}

extension Record.State {
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
