import Logging
import NIOConcurrencyHelpers
import OperonCore
import OperonFaultKit
import OperonModel
import OperonPorts
import OperonRuntime
import OperonTestKit
import OperonTesting
import Testing

/// A transport whose other end is the test.
private final class OpenTransport: CoordinatorTransport {
    let events: AsyncStream<[CoordinatorTransportEvent]>
    private let continuation: AsyncStream<[CoordinatorTransportEvent]>.Continuation
    private let ended = Latch()
    private let heard = NIOLockedValueBox<[[UInt8]]>([])
    /// Opened by the first message to this incarnation, or when the coordinator ends.
    let isAnswered = Latch()
    private let last: Incarnation

    init(last: Incarnation) {
        self.last = last
        (events, continuation) = AsyncStream.makeStream()
    }

    func run() async throws {
        continuation.yield([.up])
        await ended.wait()
        continuation.finish()
    }

    func say(_ bodies: [[UInt8]]) { continuation.yield(bodies.map { .message($0) }) }

    /// What has been sent to workers since the last look.
    func takeHeard() -> [[UInt8]] {
        heard.withLockedValue { heard in
            defer { heard = [] }
            return heard
        }
    }

    func send(_ body: [UInt8], to address: WorkerAddress, priority: UInt8) async {
        if address.incarnation == last { return isAnswered.open() }
        heard.withLockedValue { $0.append(body) }
    }

    func broadcast(_ body: [UInt8]) async {}

    func sendToSelf(_ body: [UInt8], lane: WorkerLane) async { say([body]) }

    func close() async {
        ended.open()
        isAnswered.open()
    }

    var isClosed: Bool { ended.isOpen }
}

/// A hostile worker at a coordinator, without a broker between them.
@Suite(.timeLimit(.minutes(10))) struct HostileSpeechTests {
    private static let messages = 1_000
    private static let batch = 20

    private static func submission(_ name: String, queue: String) -> Submission {
        let operations = (0..<300).map { index in
            var operation = OperationDescription(name: "o\(index)", work: .nothing)
            operation.queue = queue
            return operation
        }
        return Submission(graph: GraphDescription(name: name, operations: operations))
    }

    @Test(arguments: 0..<3)
    func `a thousand messages of a hostile worker leave the coordinator as it was`(
        seed: UInt64
    ) async throws {
        let store = InMemoryStore(reign: Reign(rawValue: 5))
        // It stands still: a lease after the start, a coordinator believes the only worker it has
        // that a later coordinator rules, and ends.
        let time = ManualClock().source
        let (scheduler, restored) = try await CoordinatorService.restore(
            from: store,
            configuration: Scheduler.Configuration(),
            time: time
        )
        let last = Incarnation(rawValue: 0xFEED_FACE)
        let transport = OpenTransport(last: last)
        let service = CoordinatorService(
            scheduler: scheduler,
            transport: transport,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() },
            restored: restored,
            time: time
        ) { _, _ in }
        let client = LocalCoordinator(service: service, caller: "", version: "0")
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await service.run() }
            _ = try await client.submit(Self.submission("honest", queue: "default"))
            _ = try await client.submit(Self.submission("hostile", queue: "hostile"))
            try await Self.speak(seed, to: service, over: transport)
            // Everything before its hello has been handled when this one is welcome.
            var end = HostileWorkerSpeech(
                values: HostileValues(seed: seed),
                name: "last",
                incarnation: last.rawValue,
                queue: "nothing"
            )
            transport.say([end.soundHello().body])
            await transport.isAnswered.wait()
            try #require(!transport.isClosed, "the coordinator ended")

            let counts = try await client.graph("honest").counts
            #expect(counts.ready == 300, "nobody has been given any of it")
            _ = try await client.submit(Self.submission("later", queue: "default"))
            #expect(try await client.status().version == "0")
            await service.shutDown(kill: true)
            try await group.waitForAll()
        }
        await store.close()
    }

    private static func speak(
        _ seed: UInt64,
        to service: CoordinatorService,
        over transport: OpenTransport
    ) async throws {
        var speech = HostileWorkerSpeech(
            values: HostileValues(seed: seed),
            name: "hostile",
            incarnation: 7,
            queue: "hostile"
        )
        transport.say([speech.soundHello().body])
        while speech.epoch == 0, !transport.isClosed {
            for body in transport.takeHeard() { _ = speech.hear(body) }
            await Task.yield()
        }
        for number in 0..<messages / batch {
            speech.now += 10_000_000
            var bodies = [speech.soundBeat().body]
            for _ in 0..<batch { bodies.append(speech.next().body) }
            transport.say(bodies)
            // It hears how the coordinator answers, as far as it has come.
            _ = await service.query { $0.isGone(GraphID(rawValue: UInt32(number))) }
            for body in transport.takeHeard() { _ = speech.hear(body) }
        }
    }
}
