import Logging
import OperonCore
import OperonModel
import OperonPorts
import OperonRuntime
import OperonTestKit
import Testing

/// A transport whose other end is the test.
private final class OpenTransport: CoordinatorTransport {
    let events: AsyncStream<[CoordinatorTransportEvent]>
    let continuation: AsyncStream<[CoordinatorTransportEvent]>.Continuation
    private let ended = Latch()

    init() { (events, continuation) = AsyncStream.makeStream() }

    func run() async throws { await ended.wait() }
    func send(_ body: [UInt8], to address: WorkerAddress, priority: UInt8) async {}
    func broadcast(_ body: [UInt8]) async {}
    func sendToSelf(_ body: [UInt8], lane: WorkerLane) async {}
    func close() async {
        continuation.finish()
        ended.open()
    }
}

/// What clients are told is on the disk by then.
@Suite(.timeLimit(.minutes(5))) struct DurableAnswerTests {
    private static let worker = WorkerIdentity(
        name: "w",
        incarnation: Incarnation(rawValue: 1),
        connection: 1
    )

    private func withService(
        _ body: (InMemoryStore, CoordinatorService, LocalCoordinator, OpenTransport) async throws ->
            Void
    ) async throws {
        let store = InMemoryStore(reign: Reign(rawValue: 5))
        var configuration = Scheduler.Configuration()
        // The worker says only what the test makes it say.
        configuration.lease = .seconds(3_600)
        let (scheduler, restored) = try await CoordinatorService.restore(
            from: store,
            configuration: configuration
        )
        let transport = OpenTransport()
        let service = CoordinatorService(
            scheduler: scheduler,
            transport: transport,
            logger: Logger(label: "test"),
            restored: restored
        ) { _, _ in }
        let client = LocalCoordinator(service: service, caller: "", version: "0")
        let running = Task { try await service.run() }
        let result: Result<Void, any Error>
        do {
            result = .success(try await body(store, service, client, transport))
        } catch {
            result = .failure(error)
        }
        await store.letSyncGo(all: true)
        await service.shutDown(kill: true)
        try await running.value
        try result.get()
    }

    private func say(
        _ body: WorkerMessage,
        to service: CoordinatorService,
        over transport: OpenTransport
    ) async {
        let (reign, epoch) = await service.query { ($0.reign, $0.epoch) }
        let envelope = WorkerEnvelope(
            reign: reign,
            epoch: epoch,
            sequence: 0,
            sender: Self.worker,
            body: body
        )
        transport.continuation.yield([.envelope(envelope)])
    }

    private func join(_ service: CoordinatorService, over transport: OpenTransport) async {
        transport.continuation.yield([.up])
        let hello = Hello(
            sentAt: SystemClock.now(),
            host: "test",
            processID: 1,
            slots: 1,
            queues: [],
            kinds: Work.builtInKinds,
            held: [],
            firstEvent: 1,
            lastEvent: 0,
            isDraining: false
        )
        await say(.hello(hello), to: service, over: transport)
    }

    /// Nobody tells of what the scheduler has decided.
    private func reached(
        _ service: CoordinatorService,
        _ isTrue: @Sendable (Scheduler) -> Bool
    ) async throws {
        while await !service.query(isTrue) { try await Task.sleep(for: .milliseconds(1)) }
    }

    @Test func `cancel with a wait is answered when the end is on the disk`() async throws {
        try await withService { store, service, client, transport in
            await join(service, over: transport)
            let wait = OperationDescription(name: "a", work: .wait(.seconds(3_600)))
            let graph = GraphDescription(name: "g", operations: [wait])
            _ = try await client.submit(Submission(graph: graph))
            let id = OperationID(graph: GraphID(rawValue: 0), index: 0)
            try await reached(service) { $0.attempt(of: id) != nil }
            let attempt = try #require(await service.query { $0.attempt(of: id)?.id })
            let held = HeldAttempt(attempt: attempt, operation: id)
            // It runs: cancelling it ends nothing.
            let start = WorkerEvent.started(held, at: SystemClock.now())
            await say(events(1, start), to: service, over: transport)
            try await reached(service) { $0.state(of: id) == .executing }
            try await service.kept()

            await store.holdSyncs()
            let answered = Latch()
            let answer = Task {
                defer { answered.open() }
                var request = CancelRequest()
                request.wait = 3_600
                return try await client.cancel(.graph("g"), request)
            }
            // The first sync has the request, and only that.
            await store.waitForHeldSync(number: 1)
            let now = SystemClock.now()
            let result = AttemptResult(end: .cancelled, startedAt: now, endedAt: now)
            await say(events(2, .finished(held, result)), to: service, over: transport)
            try await reached(service) { $0.outcome(of: id) != nil }
            await store.letSyncGo()
            await store.waitForHeldSync(number: 2)

            // It waits for the second, or has not.
            while await service.waiterCount == 0, !answered.isOpen {
                try await Task.sleep(for: .milliseconds(1))
            }
            #expect(!answered.isOpen)
            await store.letSyncGo(all: true)
            #expect(try await answer.value.isEffective)
        }
    }

    private func events(_ number: UInt64, _ event: WorkerEvent) -> WorkerMessage {
        .events(EventBatch(firstNumber: number, sentAt: SystemClock.now(), events: [event]))
    }

    @Test func `a refusal is told when what it tells is on the disk`() async throws {
        try await withService { store, service, client, _ in
            let approve = OperationDescription(name: "a", work: .external(input: .empty))
            let graph = GraphDescription(name: "g", operations: [approve])
            _ = try await client.submit(Submission(graph: graph))
            let selector = OperationSelector(graph: "g", operation: "a")
            let id = OperationID(graph: GraphID(rawValue: 0), index: 0)

            await store.holdSyncs()
            let first = Task {
                try await client.complete(selector, attempt: nil, with: .succeeded(.empty))
            }
            await store.waitForHeldSync(number: 1)
            #expect(await service.query { $0.outcome(of: id) } == .succeeded)
            let waiting = await service.waiterCount
            let refused = Latch()
            let second = Task {
                defer { refused.open() }
                return try await client.complete(
                    selector,
                    attempt: nil,
                    with: .cancelled(reason: "late")
                )
            }
            while await service.waiterCount <= waiting, !refused.isOpen {
                try await Task.sleep(for: .milliseconds(1))
            }
            #expect(!refused.isOpen)
            await store.letSyncGo(all: true)
            _ = try await first.value
            let error = await #expect(throws: ClientError.self) { try await second.value }
            #expect(error?.refusal == .alreadyFinished(name: "0/a"))
        }
    }

    @Test func `whoever waits no longer leaves nothing behind`() async throws {
        try await withService { _, service, client, _ in
            let wait = OperationDescription(name: "a", work: .wait(.seconds(3_600)))
            let graph = GraphDescription(name: "g", operations: [wait])
            _ = try await client.submit(Submission(graph: graph))
            let queue = try #require(try await client.queues().first?.name)
            for _ in 0..<10 {
                _ = try await client.waitUntilEmpty(queue: queue, within: 0.01)
            }
            let reader = Task {
                var events = try await client.events(after: nil, graph: nil).makeAsyncIterator()
                return try await events.next()
            }
            while await service.waiterCount == 0 { try await Task.sleep(for: .milliseconds(1)) }
            #expect(await service.waiterCount == 1)
            reader.cancel()
            _ = await reader.result

            #expect(await service.waiterCount == 0)
        }
    }

    @Test func `suspend with a wait is answered when the last recall is on the disk`()
        async throws
    {
        try await withService { store, service, client, transport in
            await join(service, over: transport)
            let wait = OperationDescription(name: "a", work: .wait(.seconds(3_600)))
            let graph = GraphDescription(name: "g", operations: [wait])
            _ = try await client.submit(Submission(graph: graph))
            let id = OperationID(graph: GraphID(rawValue: 0), index: 0)
            try await reached(service) { $0.attempt(of: id) != nil }
            let attempt = try #require(await service.query { $0.attempt(of: id)?.id })
            let held = HeldAttempt(attempt: attempt, operation: id)
            try await service.kept()

            await store.holdSyncs()
            let answered = Latch()
            let answer = Task {
                defer { answered.open() }
                var request = SuspendRequest()
                request.wait = 3_600
                return try await client.suspend(.graph("g"), request)
            }
            // The first sync has the request, and only that.
            await store.waitForHeldSync(number: 1)
            await say(events(1, .returned(held)), to: service, over: transport)
            try await reached(service) { $0.isEffective(.graph(id.graph)) }
            await store.letSyncGo()
            await store.waitForHeldSync(number: 2)

            // It waits for the second, or has not.
            while await service.waiterCount == 0, !answered.isOpen {
                try await Task.sleep(for: .milliseconds(1))
            }
            #expect(!answered.isOpen)
            await store.letSyncGo(all: true)
            #expect(try await answer.value.isEffective)
        }
    }
}
