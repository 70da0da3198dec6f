import Foundation
import Logging
import NIOPosix
import OperonAMQP
import OperonCore
import OperonFaultKit
import OperonModel
import OperonPorts
import OperonRuntime

enum TransportKind: String, CaseIterable {
    case memory
    case broker
}

/// Makes the two sides of one kind of transport, apart from all other tests.
struct TransportSides {
    let limits: Limits
    let prefix: String
    private var users: BrokerUsers
    let link: LinkStateMachine.Configuration
    private let hub: InProcessHub?

    init(
        _ kind: TransportKind,
        url: String? = nil,
        limits: Limits = Limits(),
        link: LinkStateMachine.Configuration = .init()
    ) throws {
        self.limits = limits
        self.link = link
        prefix = "test.\(UUID().uuidString.prefix(13))."
        switch kind {
        case .memory:
            users = BrokerUsers(url: "")
            hub = InProcessHub(limits: limits)
        case .broker:
            users = try BrokerUsers(url)
            hub = nil
        }
    }

    /// The same names, as somebody else.
    func with(url: String) -> TransportSides {
        var copy = self
        copy.users = BrokerUsers(url: url)
        return copy
    }

    private func configuration(_ url: String) throws -> AMQPConfiguration {
        try AMQPConfiguration(url: url, prefix: prefix, limits: limits)
    }

    func coordinator(epoch: UInt32 = 1) throws -> CoordinatorSide {
        let transport: any CoordinatorTransport =
            if let hub {
                hub.makeCoordinator()
            } else {
                AMQPCoordinatorTransport(
                    configuration: try configuration(users.coordinator),
                    epoch: Epoch(rawValue: epoch),
                    seed: 7,
                    logger: testLogger("coordinator"),
                    group: MultiThreadedEventLoopGroup.singleton,
                    link: link
                )
            }
        return CoordinatorSide(transport)
    }

    func worker(logger: Logger = testLogger("worker")) throws -> WorkerSide {
        let incarnation = Incarnation(rawValue: .random(in: 1...UInt64.max))
        let transport: any WorkerTransport =
            if let hub {
                hub.makeWorker(incarnation: incarnation)
            } else {
                AMQPWorkerTransport(
                    configuration: try configuration(users.worker),
                    incarnation: incarnation,
                    seed: incarnation.rawValue,
                    logger: logger,
                    group: MultiThreadedEventLoopGroup.singleton,
                    link: link
                )
            }
        return WorkerSide(transport, incarnation: incarnation)
    }

    /// A coordinator and workers, all up.
    func connected(workers count: Int = 1) async throws -> (CoordinatorSide, [WorkerSide]) {
        let coordinator = try coordinator()
        try await coordinator.up()
        var workers: [WorkerSide] = []
        for _ in 0..<count {
            let worker = try worker()
            _ = try await worker.up()
            workers.append(worker)
        }
        return (coordinator, workers)
    }
}

struct TestFailure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

func testLogger(_ label: String) -> Logger {
    var logger = Logger(label: label) { StreamLogHandler.standardError(label: $0) }
    let level = ProcessInfo.processInfo.environment["OPERON_TEST_LOG"]
    logger.logLevel = level.flatMap(Logger.Level.init(rawValue:)) ?? .critical
    return logger
}

/// Hands to a test what a program logs.
struct HeardLog: LogHandler {
    var metadata: Logger.Metadata = [:]
    var logLevel: Logger.Level
    let hear: @Sendable (LogEvent) -> Void

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) { hear(event) }

    /// The reasons why a link is not connected.
    static func reasons() -> (Logger, AsyncStream<String>) {
        let (stream, continuation) = AsyncStream<String>.makeStream()
        let logger = Logger(label: "test") { _ in
            HeardLog(logLevel: .debug) { event in
                if let reason = event.metadata?["reason"] { continuation.yield("\(reason)") }
            }
        }
        return (logger, stream)
    }

    /// What a user of a program reads: warnings and worse.
    static func warnings() -> (Logger, AsyncStream<String>, AsyncStream<String>.Continuation) {
        let (stream, continuation) = AsyncStream<String>.makeStream()
        let logger = Logger(label: "test") { _ in
            HeardLog(logLevel: .warning) { continuation.yield("\($0.message)") }
        }
        return (logger, stream, continuation)
    }
}

/// Reads one stream of events, an event at a time.
actor EventReader<Event: Sendable> {
    private var iterator: AsyncStream<[Event]>.Iterator
    private var waiting: ArraySlice<Event> = []

    init(_ events: AsyncStream<[Event]>) { iterator = events.makeAsyncIterator() }

    /// `nil`: the stream has ended.
    func next() async -> Event? {
        while waiting.isEmpty {
            var copy = iterator
            guard let batch = await copy.next(isolation: self) else { return nil }
            iterator = copy
            waiting = batch[...]
        }
        return waiting.removeFirst()
    }

    /// The first event that `choose` wants; others are passed over.
    func first<Result: Sendable>(
        _ choose: @Sendable (Event) -> Result?
    ) async throws -> Result {
        while let event = await next() {
            if let result = choose(event) { return result }
        }
        throw TestFailure("the events ended before the awaited one")
    }
}

struct CoordinatorSide: Sendable {
    let transport: any CoordinatorTransport
    let events: EventReader<CoordinatorTransportEvent>
    let running: Task<Void, any Error>

    init(_ transport: any CoordinatorTransport) {
        self.transport = transport
        events = EventReader(transport.events)
        running = Task { try await transport.run() }
    }

    /// Throws what ended `run()` if it does not come up.
    func up() async throws {
        do {
            _ = try await events.first { $0 == .up ? true : nil }
        } catch {
            try await running.value
            throw error
        }
    }

    func down() async throws {
        _ = try await events.first { if case .down(let reason) = $0 { reason } else { nil } }
    }

    func message() async throws -> [UInt8] {
        try await events.first { if case .message(let body) = $0 { body } else { nil } }
    }

    func returned() async throws -> WorkerAddress {
        try await events.first { if case .returned(let address) = $0 { address } else { nil } }
    }

    func close() async throws {
        await transport.close()
        try await running.value
    }
}

struct WorkerSide: Sendable {
    let transport: any WorkerTransport
    let incarnation: Incarnation
    let events: EventReader<WorkerTransportEvent>
    let running: Task<Void, any Error>

    init(_ transport: any WorkerTransport, incarnation: Incarnation) {
        self.transport = transport
        self.incarnation = incarnation
        events = EventReader(transport.events)
        running = Task { try await transport.run() }
    }

    func up() async throws -> WorkerAddress {
        let connection = try await events.first {
            if case .up(let connection) = $0 { connection } else { nil }
        }
        return WorkerAddress(incarnation: incarnation, connection: connection)
    }

    func down() async throws -> String {
        try await events.first { if case .down(let reason) = $0 { reason } else { nil } }
    }

    func message() async throws -> [UInt8] {
        try await events.first { if case .message(let body) = $0 { body } else { nil } }
    }

    func returned() async throws -> WorkerLane {
        try await events.first { if case .returned(let lane) = $0 { lane } else { nil } }
    }

    func close() async throws {
        await transport.close()
        try await running.value
    }
}

/// The first connection of a worker.
extension WorkerSide {
    var firstAddress: WorkerAddress { WorkerAddress(incarnation: incarnation, connection: 1) }
}

func numbered(_ number: Int, bytes: Int = 8) -> [UInt8] {
    let head = withUnsafeBytes(of: UInt64(number).bigEndian, Array.init)
    return head + [UInt8](repeating: 0x5A, count: max(0, bytes - head.count))
}

func number(_ body: [UInt8]) -> Int {
    Int(body.prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
}
