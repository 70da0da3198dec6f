import Foundation
import Logging
import OperonCore
import OperonGraphFile
import OperonHTTP
import OperonModel
import OperonPorts
import OperonRuntime
import OperonTestKit
import Testing

/// A real coordinator behind the real API, with workers whose operations end when the test lets
/// them, for the real commands. Its clients are called ann.
final class LiveServer {
    let scene: Scene
    private let client: LocalCoordinator
    private let transport: CuttableTransport
    private let service: CoordinatorService
    private let hub: InProcessHub
    private let url: String
    private let stage = LiveStage()
    private let news: News

    /// Serves until `body` is done. `dispatchedBytes`: what may be dispatched at a time.
    static func play(
        dispatchedBytes: Int? = nil,
        isolation: isolated (any Actor)? = #isolation,
        _ body: (LiveServer) async throws -> Void
    ) async throws {
        var configuration = Scheduler.Configuration()
        // Whatever is sent has a slot, so that a test can count.
        configuration.readAheadCountMax = 0
        if let dispatchedBytes { configuration.limits.dispatchedBytes = dispatchedBytes }
        let store = InMemoryStore(reign: Reign(rawValue: 1))
        let (scheduler, restored) = try await CoordinatorService.restore(
            from: store,
            configuration: configuration
        )
        let hub = InProcessHub()
        let transport = CuttableTransport(hub.makeCoordinator())
        let news = News()
        let service = CoordinatorService(
            scheduler: scheduler,
            transport: transport,
            logger: FakeServer.logger,
            restored: restored
        ) { _, _ in news.tell() }
        let serving = Task { try await service.run() }
        defer { serving.cancel() }
        let client = LocalCoordinator(service: service, caller: "ann", version: "0.0.0")
        try await FakeServer.serve(client) { url in
            try await Scene.play { scene in
                let server = LiveServer(scene, client, transport, service, hub, url, news)
                do {
                    try await body(server)
                } catch {
                    await server.end()
                    throw error
                }
                await server.end()
            }
        }
    }

    private init(
        _ scene: Scene,
        _ client: LocalCoordinator,
        _ transport: CuttableTransport,
        _ service: CoordinatorService,
        _ hub: InProcessHub,
        _ url: String,
        _ news: News
    ) {
        self.scene = scene
        self.client = client
        self.transport = transport
        self.service = service
        self.hub = hub
        self.url = url
        self.news = news
    }

    private func end() async {
        await stage.end()
        await service.shutDown(kill: true)
    }

    func shutDown() async { await service.shutDown() }

    // MARK: - Workers

    /// Starts a worker that knows `Play` besides commands; returns when it is welcome.
    @discardableResult
    func join(
        _ name: String,
        slots: Int,
        queues: [String] = [],
        plays: Bool = true
    ) async throws -> LiveWorker {
        let incarnation = Incarnation(rawValue: .random(in: 1...UInt64.max))
        let stage = stage
        let play = RegisteredKind(name: "Play") { await stage.play($0) }
        let kinds = RegisteredKinds(plays ? [play] : [], threads: nil, program: nil)
        var configuration = WorkerAgent.Configuration(
            name: name,
            incarnation: incarnation,
            host: "node",
            processID: 1,
            slots: slots,
            kinds: kinds.names
        )
        configuration.queues = queues
        configuration.startReportDelay = .milliseconds(1)
        let transport = HoldingTransport(hub.makeWorker(incarnation: incarnation))
        let processes = try ProcessRunner(ProcessRunner.Configuration(environment: [:]))
        let service = WorkerService(
            agent: WorkerAgent(configuration: configuration),
            transport: transport,
            processes: processes,
            kinds: kinds,
            logger: FakeServer.logger
        )
        let task = Task {
            try await service.run()
            await processes.shutdown()
        }
        let worker = LiveWorker(service: service, transport: transport, task: task)
        await stage.add(worker)
        try await wait { client in
            try await client.workers().contains { $0.name == name && $0.status == "alive" }
        }
        return worker
    }

    // MARK: - What happens

    /// Operations of these names run until `open`, or until they are asked to stop.
    func gate(_ names: String...) async { for name in names { await stage.gate(name) } }

    func open(_ name: String) async { await stage.open(name) }

    func drain(_ worker: LiveWorker) async throws {
        worker.service.drain(timeout: .seconds(600))
        try await wait { client in
            try await client.workers().contains { $0.status == "draining" }
        }
    }

    /// As a coordinator that has lost its broker.
    func cut() async throws {
        transport.cut()
        while try await client.status().broker == "ok" {
            // Nobody is told of it but who asks.
            try await Task.sleep(for: .milliseconds(2))
        }
    }

    /// Returns when this holds; asks whenever something has happened.
    func wait(until isTrue: (LocalCoordinator) async throws -> Bool) async throws {
        while try await !isTrue(client) { await news.next() }
    }

    func wait(for operation: String, _ state: OperationState) async throws {
        let parts = operation.split(separator: "/").map(String.init)
        let selector = OperationSelector(graph: parts[0], operation: parts[1])
        try await wait { try await $0.operation(selector).operation.state == state }
    }

    /// Returns when it has failed, and is to be tried again.
    func waitForRetry(_ graph: String, _ operation: String) async throws {
        try await wait(for: "\(graph)/\(operation)", reason: "retryAt")
    }

    /// Returns when it waits for this.
    func wait(for operation: String, reason: String) async throws {
        let parts = operation.split(separator: "/").map(String.init)
        let selector = OperationSelector(graph: parts[0], operation: parts[1])
        try await wait { client in
            try await client.operation(selector).reasons.contains { $0.code == reason }
        }
    }

    // MARK: - Commands

    func operon(_ line: String, streams: Program.Streams = .pipes) async throws -> Ended {
        try await scene.operon(
            line.split(separator: " ").map(String.init),
            environment: ["OPERON_COORDINATOR": url],
            streams: streams
        )
    }

    /// A command that must succeed; what it printed.
    @discardableResult
    func run(_ line: String) async throws -> String {
        let ended = try await operon(line)
        #expect(ended.end == .exit(0), "\(line): \(ended.errors)")
        return ended.output
    }

    func submit(_ name: String, _ text: String) async throws {
        _ = try scene.write("\(name).yaml", "name: \(name)\n" + text)
        try await run("submit \(name).yaml")
    }
}

/// A worker of a `LiveServer`.
struct LiveWorker: Sendable {
    let service: WorkerService
    let transport: HoldingTransport
    let task: Task<Void, any Error>
}

/// Says that something has happened, to one who waits.
final class News: Sendable {
    private let stream: AsyncStream<Void>
    private let continuation: AsyncStream<Void>.Continuation

    init() {
        // What came while nobody waited is one piece of news.
        (stream, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    func tell() { continuation.yield() }

    func next() async { for await _ in stream { return } }
}

/// Where the operations of a `LiveServer` are played.
private actor LiveStage {
    private var gates: [String: Latch] = [:]
    private var workers: [LiveWorker] = []

    func add(_ worker: LiveWorker) { workers.append(worker) }

    func gate(_ name: String) { gates[name] = Latch() }

    func open(_ name: String) { gates[name]?.open() }

    /// One whose name begins with “bad” fails, any other succeeds; one whose name begins with
    /// “for-” waits before for the operation of the rest, and one called “early” finds that it came
    /// an hour too early.
    func play(_ invocation: Invocation) async -> InvocationEnd {
        let name = invocation.operation.name
        if let gate = gates[name] {
            await gate.wait()
            guard gate.isOpen else { return .stopped }
        }
        if name.hasPrefix("for-") {
            _ = await invocation.ask(.wait([String(name.dropFirst("for-".count))]))
        }
        if name == "early" { return .notYet(after: .seconds(3_600)) }
        let isBad = name.hasPrefix("bad")
        return isBad
            ? .failed(.thrown(type: "Rain", message: "it rains", payload: [])) : .returned(.empty)
    }

    func end() async {
        for gate in gates.values { gate.open() }
        for worker in workers {
            worker.service.stop()
            // Whatever became of it: the test is over.
            _ = await worker.task.result
        }
    }
}

/// What is between a coordinator and its workers, and can be cut on the coordinator's side.
final class CuttableTransport: CoordinatorTransport {
    let events: AsyncStream<[CoordinatorTransportEvent]>
    private let continuation: AsyncStream<[CoordinatorTransportEvent]>.Continuation
    private let inner: any CoordinatorTransport

    init(_ inner: any CoordinatorTransport) {
        self.inner = inner
        (events, continuation) = AsyncStream.makeStream()
    }

    func cut() { continuation.yield([.down(reason: "the test cut it")]) }

    func run() async throws {
        let forwarding = Task { [inner, continuation] in
            for await batch in inner.events { continuation.yield(batch) }
            continuation.finish()
        }
        defer { forwarding.cancel() }
        try await inner.run()
        await forwarding.value
    }

    func send(_ body: [UInt8], to address: WorkerAddress, priority: UInt8) async {
        await inner.send(body, to: address, priority: priority)
    }

    func broadcast(_ body: [UInt8]) async { await inner.broadcast(body) }

    func sendToSelf(_ body: [UInt8], lane: WorkerLane) async {
        await inner.sendToSelf(body, lane: lane)
    }

    func close() async { await inner.close() }
}

/// A worker's end that can stop handing on what it is sent.
final class HoldingTransport: WorkerTransport, @unchecked Sendable {
    let events: AsyncStream<[WorkerTransportEvent]>
    private let continuation: AsyncStream<[WorkerTransportEvent]>.Continuation
    private let inner: any WorkerTransport
    // Protects `isHolding`.
    private let lock = NSLock()
    private var isHolding = false

    init(_ inner: any WorkerTransport) {
        self.inner = inner
        (events, continuation) = AsyncStream.makeStream()
    }

    /// From now on nothing reaches the worker.
    func hold() { lock.withLock { isHolding = true } }

    func run() async throws {
        let forwarding = Task { [self] in
            for await batch in inner.events where !lock.withLock({ isHolding }) {
                continuation.yield(batch)
            }
            continuation.finish()
        }
        defer { forwarding.cancel() }
        try await inner.run()
        await forwarding.value
    }

    func send(_ body: [UInt8], lane: WorkerLane) async { await inner.send(body, lane: lane) }

    func reconnect() async { await inner.reconnect() }

    func close() async { await inner.close() }
}
