import ClusterKit
import Foundation
import Operon
import OperonFaultKit
import OperonModel
import OperonPorts
import OperonRuntime
import OperonWire

/// A worker, and a coordinator that the test speaks for: it says that operations are to be
/// isolated, whatever the scheduler would.
final class ManualCoordinator: Sendable {
    private let transport: InProcessCoordinatorTransport
    private let events: AsyncStream<WorkerEnvelope>
    private let log = Recorder<[UInt8]>([])

    /// What operations print, once so many bytes of it have been heard.
    func printed(_ count: Int) async throws -> String {
        try await log.wait { $0.count >= count }
        return String(decoding: log.current, as: UTF8.self)
    }

    /// Runs `body` when the worker is there; then everything is closed. `kinds` are what the
    /// parent knows; `program` is what it starts.
    static func run(
        kinds: [OperationKind],
        program: ChildProgram? = nil,
        isolation: isolated (any Actor)? = #isolation,
        _ body: (ManualCoordinator) async throws -> Void
    ) async throws {
        let hub = InProcessHub()
        let coordinator = ManualCoordinator(hub.makeCoordinator())
        let coordinating = Task { try await coordinator.transport.run() }
        let listening = Task { await coordinator.listen() }
        let speaking = Task { await coordinator.speak() }
        let worker = Worker(
            hub: hub,
            name: "parent",
            slots: 2,
            logger: TestCluster.logger,
            child: try program ?? testWorker(),
            kinds: kinds
        )
        let working = Task { try await worker.run() }
        let result: Result<Void, any Error>
        do {
            result = .success(try await body(coordinator))
        } catch {
            result = .failure(error)
        }
        working.cancel()
        _ = await working.result
        await coordinator.transport.close()
        _ = await coordinating.result
        await listening.value
        coordinator.outgoing.finish()
        await speaking.value
        try result.get()
    }

    /// The test worker, built beside the tests.
    static func testWorker() throws -> ChildProgram {
        let own = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        let places = [own] + Bundle.allBundles.map(\.bundleURL)
        for folder in places.flatMap({ [$0, $0.deletingLastPathComponent()] }) {
            let path = folder.appendingPathComponent("test-worker").path
            guard FileManager.default.isExecutableFile(atPath: path) else { continue }
            var environment = ProcessInfo.processInfo.environment
            // A crash that is meant needs no explanation.
            environment["SWIFT_BACKTRACE"] = "enable=no"
            return ChildProgram(path: path, arguments: [], environment: environment)
        }
        throw CommandFailure("no test-worker beside the tests: swift build --build-tests makes it")
    }

    private init(_ transport: InProcessCoordinatorTransport) {
        self.transport = transport
        (events, continuation) = AsyncStream.makeStream()
        (toSend, outgoing) = AsyncStream.makeStream()
    }

    private let continuation: AsyncStream<WorkerEnvelope>.Continuation
    private let toSend: AsyncStream<(CoordinatorMessage, WorkerIdentity)>
    private let outgoing: AsyncStream<(CoordinatorMessage, WorkerIdentity)>.Continuation

    // MARK: - What a coordinator hears

    private func listen() async {
        for await batch in transport.events {
            for case .envelope(let envelope) in batch {
                switch envelope.body {
                case .hello(let hello): welcome(hello, of: envelope)
                case .beat(let beat):
                    guard !isSilent.isOpen else { continue }
                    let answer = Control(answers: beat.sentAt, acknowledged: 0)
                    send(.control(answer), to: envelope.sender)
                case .log(let chunk): log.change { $0 += chunk.bytes }
                case .events: continuation.yield(envelope)
                case .tick, .fetch, .progress, .watched: break
                }
            }
        }
        continuation.finish()
    }

    private func welcome(_ hello: Hello, of envelope: WorkerEnvelope) {
        let welcome = Welcome(
            answers: hello.sentAt,
            lease: .seconds(60),
            beat: .milliseconds(100),
            eventWindow: 8 << 20,
            orphanAfter: .seconds(60),
            acknowledged: 0
        )
        send(.welcome(welcome), to: envelope.sender)
        worker.change { $0 = envelope.sender }
    }

    // MARK: - What a coordinator says

    private let isSilent = Latch()

    /// From here on nothing is answered.
    func fallSilent() { isSilent.open() }

    private let worker = Recorder<WorkerIdentity?>(nil)

    private func send(_ body: CoordinatorMessage) async throws {
        try await worker.wait { $0 != nil }
        if let worker = worker.current { send(body, to: worker) }
    }

    private func send(_ body: CoordinatorMessage, to sender: WorkerIdentity) {
        outgoing.yield((body, sender))
    }

    /// One after the other: a worker drops what arrives behind a higher number.
    private func speak() async {
        var sequence: UInt64 = 0
        for await (body, sender) in toSend {
            sequence += 1
            let envelope = CoordinatorEnvelope(
                reign: Reign(rawValue: 7),
                epoch: Epoch(rawValue: 1),
                sequence: sequence,
                sender: .none,
                body: body
            )
            guard let bytes = try? Wire.encode(envelope) else { continue }
            let address = WorkerAddress(
                incarnation: sender.incarnation,
                connection: sender.connection
            )
            await transport.send(bytes, to: address, priority: 0)
        }
    }

    private func held(_ number: UInt64) -> HeldAttempt {
        HeldAttempt(
            attempt: AttemptID(epoch: Epoch(rawValue: 1), number: number),
            operation: OperationID(graph: GraphID(rawValue: 0), index: UInt32(number))
        )
    }

    /// Gives the worker an operation; `input` is JSON.
    func dispatch(
        _ number: UInt64,
        _ kind: String,
        _ input: String = "{}",
        isIsolated: Bool = true,
        timeout: Duration? = nil,
        exclusiveLease: Duration? = nil,
        qualityOfService: OperonModel.QualityOfService = .default
    ) async throws {
        let operation = DispatchedOperation(
            held: held(number),
            ordinal: 3,
            graphName: "g",
            name: "o\(number)",
            queue: "default",
            work: .registered(kind: kind, input: Payload(bytes: Array(input.utf8))),
            priority: .normal,
            rank: 0,
            timeout: timeout,
            qualityOfService: qualityOfService,
            inputs: [],
            isIsolated: isIsolated,
            exclusiveLease: exclusiveLease
        )
        let dispatch = Dispatch(acknowledged: 0, operations: [operation])
        try await send(.dispatch(dispatch))
    }

    func order(_ order: (HeldAttempt) -> Order, _ number: UInt64) async throws {
        let control = Control(acknowledged: 0, orders: [order(held(number))])
        try await send(.control(control))
    }

    /// The end of this attempt, when it comes.
    func result(_ number: UInt64) async throws -> AttemptResult {
        for await envelope in events {
            guard case .events(let batch) = envelope.body else { continue }
            for case .finished(let held, let result) in batch.events
            where held.attempt.number == number {
                return result
            }
        }
        throw CommandFailure("the worker ended before its operation")
    }
}
