import Logging
import OperonCore
import OperonModel
import OperonPorts
import OperonTestKit
import OperonWire
import Testing

@testable import OperonRuntime

/// What a worker's login lets anybody say, to a coordinator that keeps its graphs.
@Suite(.timeLimit(.minutes(5))) struct HostileWorkerTests {
    /// A transport whose other end is the test.
    private final class ScriptedTransport: CoordinatorTransport {
        let events: AsyncStream<[CoordinatorTransportEvent]>
        private let said: AsyncStream<[CoordinatorTransportEvent]>.Continuation
        /// What workers would read.
        let heard: AsyncStream<CoordinatorEnvelope>
        private let sent: AsyncStream<CoordinatorEnvelope>.Continuation
        private let ended = Latch()

        init() {
            (events, said) = AsyncStream.makeStream()
            (heard, sent) = AsyncStream.makeStream()
        }

        func say(_ envelope: WorkerEnvelope) throws {
            said.yield([.message(try Wire.encode(envelope))])
        }

        func run() async throws {
            said.yield([.up])
            await ended.wait()
            said.finish()
        }

        func send(_ body: [UInt8], to address: WorkerAddress, priority: UInt8) async {
            do throws(WireError) {
                sent.yield(try Wire.decodeCoordinator(body))
            } catch {
                Issue.record("a worker cannot read it: \(error)")
            }
        }

        func broadcast(_ body: [UInt8]) async {}
        func sendToSelf(_ body: [UInt8], lane: WorkerLane) async {}

        func close() async {
            sent.finish()
            ended.open()
        }
    }

    /// A worker that says what the test says.
    private struct Rogue {
        let transport: ScriptedTransport
        let epoch: Epoch
        let reign: Reign
        var incarnation = Incarnation(rawValue: 7)
        var next: UInt64 = 1

        private func envelope(_ body: WorkerMessage) -> WorkerEnvelope {
            WorkerEnvelope(
                reign: reign,
                epoch: epoch,
                sequence: 0,
                sender: WorkerIdentity(name: "rogue", incarnation: incarnation, connection: 1),
                body: body
            )
        }

        func hello(slots: UInt32 = 64) throws {
            let hello = Hello(
                sentAt: Timestamp(nanoseconds: 1),
                host: "h",
                processID: 1,
                slots: slots,
                queues: [],
                kinds: Work.builtInKinds,
                held: [],
                firstEvent: 1,
                lastEvent: 0,
                isDraining: false
            )
            try transport.say(envelope(.hello(hello)))
        }

        mutating func tell(_ events: [WorkerEvent]) throws {
            let batch = EventBatch(
                firstNumber: next,
                sentAt: Timestamp(nanoseconds: 1),
                events: events
            )
            next += UInt64(events.count)
            try transport.say(envelope(.events(batch)))
        }

        /// The operations of the next dispatches, until there are so many.
        func dispatched(
            _ count: Int,
            from heard: inout AsyncStream<CoordinatorEnvelope>.AsyncIterator
        ) async -> [DispatchedOperation] {
            var operations: [DispatchedOperation] = []
            while operations.count < count, let envelope = await heard.next() {
                guard case .dispatch(let dispatch) = envelope.body else { continue }
                operations += dispatch.operations
            }
            return operations
        }

        func verdict(
            from heard: inout AsyncStream<CoordinatorEnvelope>.AsyncIterator
        ) async -> Verdict? {
            while let envelope = await heard.next() {
                guard case .control(let control) = envelope.body,
                    let verdict = control.verdicts.first
                else { continue }
                return verdict
            }
            return nil
        }
    }

    private func withCoordinator(
        _ store: InMemoryStore = InMemoryStore(reign: Reign(rawValue: 5)),
        limits: Limits = Limits(),
        _ body: (
            LocalCoordinator, Rogue, inout AsyncStream<CoordinatorEnvelope>.AsyncIterator
        ) async throws -> Void
    ) async throws {
        var configuration = Scheduler.Configuration()
        configuration.limits = limits
        let (scheduler, restored) = try await CoordinatorService.restore(
            from: store,
            configuration: configuration
        )
        let transport = ScriptedTransport()
        let service = CoordinatorService(
            scheduler: scheduler,
            transport: transport,
            logger: Logger(label: "test"),
            restored: restored
        ) { _, _ in }
        let client = LocalCoordinator(service: service, caller: "", version: "0")
        let rogue = Rogue(
            transport: transport,
            epoch: scheduler.epoch,
            reign: scheduler.reign
        )
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await service.run() }
            var heard = transport.heard.makeAsyncIterator()
            try await body(client, rogue, &heard)
            await service.shutDown(kill: true)
            try await group.waitForAll()
        }
    }

    private func submission(_ operations: [OperationDescription]) -> Submission {
        Submission(graph: GraphDescription(name: "g", operations: operations))
    }

    private func wait(_ name: String) -> OperationDescription {
        OperationDescription(name: name, work: .wait(.seconds(100)))
    }

    /// An operation of a graph that there cannot be.
    private func strayAddition() throws -> [UInt8] {
        var dependency = DependencyDescription("4000000000/x")
        dependency.elsewhere = OperationID(graph: GraphID(rawValue: 4_000_000_000), index: 7)
        var child = OperationDescription(
            name: "c",
            work: .command(CommandDescription(arguments: ["true"]))
        )
        child.dependencies = [dependency]
        let graph = GraphDescription(name: "added", operations: [child])
        return try StoreFormat.encode(graph, failFast: false)
    }

    @Test func `an addition that names graph 4,000,000,000 as a store would is refused`()
        async throws
    {
        try await withCoordinator { client, rogue, heard in
            var rogue = rogue
            try rogue.hello()
            _ = try await client.submit(submission([wait("a")]))
            let held = await rogue.dispatched(1, from: &heard)[0].held
            try rogue.tell([
                .started(held, at: .zero),
                .added(held, AdditionRequest(number: 1, operations: try strayAddition())),
            ])

            guard case .refused(let refusal)? = await rogue.verdict(from: &heard)?.content else {
                Issue.record("it was not refused")
                return
            }
            #expect("\(refusal)".contains("elsewhere"))
            #expect(try await client.graph("g").counts.total == 1)
        }
    }

    @Test func `what is asked in the name of no attempt, or of another's, is not looked at`()
        async throws
    {
        try await withCoordinator { client, rogue, heard in
            var rogue = rogue
            try rogue.hello()
            _ = try await client.submit(submission([wait("a")]))
            let held = await rogue.dispatched(1, from: &heard)[0].held
            var nobody = held
            nobody.operation = OperationID(graph: GraphID(rawValue: .max), index: 0)
            var other = held
            other.operation = OperationID(graph: held.operation.graph, index: .max)
            let stray = AdditionRequest(number: 1, operations: try strayAddition())
            let read = ReadRequest(number: 2, name: "4000000000/x")
            try rogue.tell([
                .added(nobody, stray), .added(other, stray), .read(nobody, read),
                .read(other, read), .yielded(nobody, WaitRequest(number: 3, names: ["a"])),
                .started(held, at: .zero),
                .read(held, ReadRequest(number: 4, name: "4000000000/x")),
            ])

            // The first verdict is on the first request that was the sender's to ask.
            #expect(await rogue.verdict(from: &heard)?.number == 4)
        }
    }

    @Test func `a verdict quotes little of a name that has millions of bytes`() async throws {
        try await withCoordinator { client, rogue, heard in
            var rogue = rogue
            try rogue.hello()
            _ = try await client.submit(submission([wait("a")]))
            let held = await rogue.dispatched(1, from: &heard)[0].held
            let name = String(repeating: "n", count: 7_000_000)
            try rogue.tell([
                .started(held, at: .zero), .read(held, ReadRequest(number: 1, name: name)),
            ])

            guard case .refused(let refusal)? = await rogue.verdict(from: &heard)?.content else {
                Issue.record("it was not refused")
                return
            }
            #expect("\(refusal)".utf8.count < 4_096)
        }
    }

    @Test func `an operation that no message can carry fails alone`() async throws {
        // It was taken when the rules were others, as it were: messages were larger.
        var limits = Limits()
        limits.messageBytes = 100_000
        try await withCoordinator(limits: limits) { client, rogue, heard in
            let big = String(repeating: "d", count: 200_000)
            var operations = (0..<16).map { wait("w\($0)") }
            operations.insert(
                OperationDescription(
                    name: "big",
                    work: .command(CommandDescription(arguments: ["true"], directory: big))
                ),
                at: 5
            )
            _ = try await client.submit(submission(operations))
            try rogue.hello()

            let names = await rogue.dispatched(16, from: &heard).map(\.name)
            #expect(Set(names) == Set((0..<16).map { "w\($0)" }))
            let view = try await client.operation(
                OperationSelector(graph: "g", operation: "big")
            )
            #expect(view.operation.outcome == .failed)
            #expect(try await client.graph("g").counts.failed == 1)
        }
    }
}
