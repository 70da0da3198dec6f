import OperonCore
import OperonFaultKit
import OperonModel
import OperonPorts
import OperonRuntime
import OperonTestKit
import OperonTesting
import Testing

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
        try await ManualCluster.run(store, time: time) { cluster in
            let client = cluster.client
            _ = try await client.submit(Self.submission("honest", queue: "default"))
            _ = try await client.submit(Self.submission("hostile", queue: "hostile"))
            try await Self.speak(seed, to: cluster)
            let last = Incarnation(rawValue: 0xFEED_FACE)
            var end = HostileWorkerSpeech(
                values: HostileValues(seed: seed),
                name: "last",
                incarnation: last.rawValue,
                queue: "nothing"
            )
            await cluster.transport.handle(.message(end.soundHello().body))
            try #require(!cluster.transport.isClosed, "the coordinator ended")
            #expect(await cluster.service.query { $0.knows(last) }, "this one is welcome")

            let counts = try await client.graph("honest").counts
            #expect(counts.ready == 300, "nobody has been given any of it")
            _ = try await client.submit(Self.submission("later", queue: "default"))
            #expect(try await client.status().version == "0")
        }
    }

    private static func speak(_ seed: UInt64, to cluster: ManualCluster) async throws {
        let transport = cluster.transport
        var speech = HostileWorkerSpeech(
            values: HostileValues(seed: seed),
            name: "hostile",
            incarnation: 7,
            queue: "hostile"
        )
        transport.say([.message(speech.soundHello().body)])
        try await transport.find { envelope in
            if case .welcome = envelope.body { () } else { nil }
        }
        for body in transport.takeBodies() { _ = speech.hear(body) }
        try #require(speech.epoch != 0)
        for number in 0..<messages / batch {
            speech.now += 10_000_000
            var bodies = [speech.soundBeat().body]
            for _ in 0..<batch { bodies.append(speech.next().body) }
            transport.say(bodies.map { .message($0) })
            // It hears how the coordinator answers, as far as it has come.
            _ = await cluster.service.query { $0.isGone(GraphID(rawValue: UInt32(number))) }
            for body in transport.takeBodies() { _ = speech.hear(body) }
        }
    }
}
