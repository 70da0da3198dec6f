import Logging
import OperonCore
import OperonModel
import OperonPorts
import OperonTrust
import OperonWire
import Testing

@testable import OperonRuntime

/// What a worker that has joined may say. Here the worker says what ours never says.
@Suite struct SealedServiceTests {
    /// A transport that carries what the test gives it, and keeps what is sent.
    private actor Sent {
        var frames: [[UInt8]] = []
        func add(_ frame: [UInt8]) { frames.append(frame) }
    }

    private struct ThiefTransport: CoordinatorTransport {
        let events: AsyncStream<[CoordinatorTransportEvent]>
        let sent = Sent()

        func run() async throws {}
        func send(_ body: [UInt8], to address: WorkerAddress, priority: UInt8) async {
            await sent.add(body)
        }
        func broadcast(_ body: [UInt8]) async {}
        func sendToSelf(_ body: [UInt8], lane: WorkerLane) async {}
        func close() async {}
    }

    private final class Thief {
        let service: CoordinatorService
        let transport: ThiefTransport
        var seals: WorkerSeals
        let identity: WorkerTrust

        init(_ grant: WorkerGrant) async throws {
            let keys = CoordinatorKeys()
            transport = ThiefTransport(events: AsyncStream { $0.finish() })
            service = CoordinatorService(
                scheduler: Scheduler(
                    configuration: Scheduler.Configuration(),
                    reign: Reign(rawValue: 7),
                    epoch: Epoch(rawValue: 3)
                ),
                transport: transport,
                logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() },
                trust: CoordinatorTrust(keys),
                observer: { _, _ in }
            )
            identity = WorkerTrust(JoinToken(grant, by: keys))
            seals = WorkerSeals(identity)
            seals.connected(1)
            let hello = try envelope(.hello(hello))
            let sealed = seals.seal(hello, lane: 0)
            let knock = try #require(sealed)
            #expect(await service.translate(knock) == nil)
            let offer = try #require(await transport.sent.frames.last)
            _ = try seals.receive(offer)
        }

        var hello: Hello {
            var hello = Hello(
                sentAt: .zero,
                host: "h",
                processID: 1,
                slots: 1,
                queues: [],
                kinds: Work.builtInKinds.sorted(),
                held: [],
                firstEvent: 1,
                lastEvent: 0,
                isDraining: false
            )
            hello.offer.watches = true
            return hello
        }

        func envelope(
            _ body: WorkerMessage,
            sender: Incarnation? = nil
        ) throws -> [UInt8] {
            try Wire.encode(
                WorkerEnvelope(
                    reign: Reign(rawValue: 7),
                    epoch: Epoch(rawValue: 3),
                    sequence: 1,
                    sender: WorkerIdentity(
                        name: "w",
                        incarnation: sender ?? identity.incarnation,
                        connection: 1
                    ),
                    body: body
                )
            )
        }

        /// What of this reaches the scheduler.
        func says(_ body: [UInt8]) async throws -> WorkerEnvelope? {
            let sealed = seals.seal(body, lane: 0)
            let frame = try #require(sealed)
            guard case .workerMessage(let envelope)? = await service.translate(frame) else {
                return nil
            }
            return envelope
        }
    }

    private func beat() -> WorkerMessage {
        .beat(Beat(sentAt: .zero, received: 0, sent: 0, held: [], isDraining: false))
    }

    @Test func `a worker speaks for itself alone`() async throws {
        let thief = try await Thief(try WorkerGrant())
        #expect(try await thief.says(thief.envelope(.hello(thief.hello))) != nil)
        #expect(try await thief.says(thief.envelope(beat())) != nil)
        let other = Incarnation(rawValue: 99)
        #expect(try await thief.says(thief.envelope(beat(), sender: other)) == nil)
        #expect(try await thief.says(thief.envelope(beat())) != nil)
    }

    @Test func `a tick of a worker is not taken for one of the coordinator`() async throws {
        let thief = try await Thief(try WorkerGrant())
        _ = try await thief.says(thief.envelope(.hello(thief.hello)))
        for way in [Tick.Way.events, .beats] {
            let tick = try thief.envelope(.tick(Tick(number: 1, way: way)))
            #expect(try await thief.says(tick) == nil)
        }
    }

    @Test func `a worker that is limited to queues watches nothing`() async throws {
        let thief = try await Thief(try WorkerGrant(queues: ["a"], kinds: ["Play"]))
        let heard = try await thief.says(thief.envelope(.hello(thief.hello)))
        guard case .hello(let hello)? = heard?.body else {
            Issue.record("no greeting: \(String(describing: heard))")
            return
        }
        #expect(hello.queues == ["a"])
        #expect(!hello.offer.watches)
        #expect(hello.kinds == Work.builtInKinds.sorted())
        #expect(heard?.rights == SenderRights(queues: ["a"], kinds: ["Play"]))
        let report = WatchReport.holds([])
        #expect(try await thief.says(thief.envelope(.watched([report]))) == nil)
    }

    @Test func `what an older connection has said keeps its rights`() async throws {
        let thief = try await Thief(try WorkerGrant(queues: ["a"]))
        _ = try await thief.says(thief.envelope(.hello(thief.hello)))
        let heard = try await thief.says(thief.envelope(beat()))
        // Whatever becomes of its session, the message has them with it.
        #expect(heard?.rights == SenderRights(queues: ["a"], kinds: []))
    }
}
