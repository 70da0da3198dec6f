import Logging
import OperonCore
import OperonModel
import OperonPorts
import OperonTestKit
import OperonWire
import Testing

@testable import OperonRuntime

/// The scheduler refuses by number; clients and workers read names.
@Suite(.timeLimit(.minutes(5))) struct RefusalNameTests {
    /// A transport that records the verdicts for a worker whose messages the test makes.
    private final class VerdictTransport: CoordinatorTransport {
        let events: AsyncStream<[CoordinatorTransportEvent]>
        let said: AsyncStream<[CoordinatorTransportEvent]>.Continuation
        let verdicts: AsyncStream<Verdict>
        private let sent: AsyncStream<Verdict>.Continuation
        private let ended = Latch()

        init() {
            (events, said) = AsyncStream.makeStream()
            (verdicts, sent) = AsyncStream.makeStream()
        }

        func run() async throws { await ended.wait() }
        func broadcast(_ body: [UInt8]) async {}
        func sendToSelf(_ body: [UInt8], lane: WorkerLane) async {}

        func send(_ body: [UInt8], to address: WorkerAddress, priority: UInt8) async {
            guard case .control(let control)? = try? Wire.decodeCoordinator(body).body else {
                return
            }
            for verdict in control.verdicts { sent.yield(verdict) }
        }

        func close() async {
            said.finish()
            sent.finish()
            ended.open()
        }
    }

    private func play(
        _ operations: [OperationDescription],
        _ body: (LocalCoordinator, CoordinatorService, VerdictTransport) async throws -> Void
    ) async throws {
        let transport = VerdictTransport()
        let service = CoordinatorService(
            scheduler: Scheduler(
                configuration: Scheduler.Configuration(),
                reign: Reign(rawValue: 5),
                epoch: Epoch(rawValue: 1)
            ),
            transport: transport,
            logger: Logger(label: "test")
        ) { _, _ in }
        let client = LocalCoordinator(service: service, caller: "", version: "0")
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await service.run() }
            let graph = GraphDescription(name: "g", operations: operations)
            _ = try await client.submit(Submission(graph: graph))
            try await body(client, service, transport)
            await service.shutDown(kill: true)
            try await group.waitForAll()
        }
    }

    /// Starts the first operation on a worker, which then says this.
    private func say(
        _ event: (HeldAttempt) throws -> WorkerEvent,
        to service: CoordinatorService,
        over transport: VerdictTransport
    ) async throws -> Verdict? {
        let (reign, epoch) = await service.query { ($0.reign, $0.epoch) }
        let sender = WorkerIdentity(
            name: "w",
            incarnation: Incarnation(rawValue: 1),
            connection: 1
        )
        func envelope(_ body: WorkerMessage) -> CoordinatorTransportEvent {
            .envelope(
                WorkerEnvelope(
                    reign: reign,
                    epoch: epoch,
                    sequence: 0,
                    sender: sender,
                    body: body
                )
            )
        }
        let hello = Hello(
            sentAt: .zero,
            host: "h",
            processID: 1,
            slots: 1,
            queues: [],
            kinds: Work.builtInKinds,
            held: [],
            firstEvent: 1,
            lastEvent: 0,
            isDraining: false
        )
        transport.said.yield([.up, envelope(.hello(hello))])
        let first = OperationID(graph: GraphID(rawValue: 0), index: 0)
        var attempt: AttemptID?
        while attempt == nil {
            try await Task.sleep(for: .milliseconds(1))
            attempt = await service.query { $0.attempt(of: first)?.id }
        }
        let held = HeldAttempt(attempt: try #require(attempt), operation: first)
        let batch = EventBatch(
            firstNumber: 1,
            sentAt: .zero,
            events: [.started(held, at: .zero), try event(held)]
        )
        transport.said.yield([envelope(.events(batch))])
        var verdicts = transport.verdicts.makeAsyncIterator()
        return await verdicts.next()
    }

    private func operation(_ name: String, after others: String...) -> OperationDescription {
        var operation = OperationDescription(name: name, work: .wait(.seconds(100)))
        operation.dependencies = others.map { DependencyDescription($0) }
        return operation
    }

    @Test func `a wait cycle refused to a worker names the operations`() async throws {
        let operations = [
            operation("parent"), operation("after", after: "parent"),
            operation("last", after: "after"),
        ]
        try await play(operations) { _, service, transport in
            let verdict = try await say(
                { .yielded($0, WaitRequest(number: 1, names: ["last"])) },
                to: service,
                over: transport
            )

            let path = ["parent", "last", "after", "parent"]
            #expect(verdict?.content == .refused(.dependencyCycle(path: path)))
        }
    }

    @Test func `names that look like numbers stay as they are`() async throws {
        try await play([operation("parent"), operation("other")]) { _, service, transport in
            let added = GraphDescription(
                name: "added",
                operations: [operation("0/0", after: "0/1"), operation("0/1", after: "0/0")]
            )
            let body = try StoreFormat.encode(added, failFast: false)
            let verdict = try await say(
                { .added($0, AdditionRequest(number: 1, operations: body)) },
                to: service,
                over: transport
            )

            guard case .refused(.dependencyCycle(let path)) = verdict?.content else {
                Issue.record("\(String(describing: verdict))")
                return
            }
            #expect(Set(path) == ["0/0", "0/1"])
        }
    }

    @Test func `a client reads names, also in a sentence`() async throws {
        let operations = [operation("a"), operation("b", after: "a"), operation("c", after: "b")]
        try await play(operations) { client, _, _ in
            func selector(_ name: String) -> OperationSelector {
                OperationSelector(graph: "g", operation: name)
            }
            let cycle = await #expect(throws: ClientError.self) {
                try await client.addDependency(of: selector("a"), on: selector("c"), .finished)
            }
            #expect(cycle?.refusal == .dependencyCycle(path: ["0/a", "0/c", "0/b", "0/a"]))

            _ = try await client.cancel(.operation(selector("c")), CancelRequest())
            var retry = RetryRequest()
            retry.operations = ["a"]
            let unfinished = await #expect(throws: ClientError.self) {
                try await client.retry(graph: "g", retry)
            }
            let why = "it has not finished"
            #expect(unfinished?.refusal == .invalid(field: "retry of “0/a”", why: why))
            let finished = await #expect(throws: ClientError.self) {
                try await client.setPriority(of: selector("c"), to: .high)
            }
            #expect(finished?.refusal == .alreadyFinished(name: "0/c"))
        }
    }
}
