import Foundation
import NIOPosix
import OperonFaultKit
import OperonModel
import OperonPorts
import OperonRuntime
import Testing

@testable import OperonAMQP

/// Messages of a real broker's queue as occurrences.
@Suite(.serialized, .timeLimit(.minutes(5)), .ownBroker)
struct MessageSourceTests {
    /// One run of a source.
    private struct Run {
        let task: Task<Void, any Error>
        let occurrences: EventReader<Occurrence>
        let statuses: EventReader<TriggerSourceStatus>

        /// - Parameter store: Returns when an occurrence is stored.
        init(
            _ queue: String,
            store: @escaping @Sendable (Occurrence) async throws -> Void = { _ in }
        ) throws {
            guard let broker = BrokerFixture.current else { throw TestFailure("no broker") }
            var limits = Limits()
            limits.payloadBytes = 1_000
            let source = try MessageSource(
                queue: queue,
                configuration: try AMQPConfiguration(url: broker.url, limits: limits),
                isJSON: JSONCheck.isJSON,
                seed: 7,
                logger: testLogger("source"),
                group: MultiThreadedEventLoopGroup.singleton
            )
            let (occurrences, occurred) = AsyncStream<[Occurrence]>.makeStream()
            let (statuses, changed) = AsyncStream<[TriggerSourceStatus]>.makeStream()
            self.occurrences = EventReader(occurrences)
            self.statuses = EventReader(statuses)
            task = Task {
                try await source.run(
                    { occurrence in
                        occurred.yield([occurrence])
                        try await store(occurrence)
                    },
                    status: { changed.yield([$0]) }
                )
            }
        }

        func next() async throws -> Occurrence { try #require(await occurrences.next()) }

        func observing() async throws {
            try await statuses.first { $0 == .observing ? () : nil }
        }

        func stop() async {
            task.cancel()
            _ = await task.result
        }
    }

    private struct Message {
        var body: String
        /// Erlang's property list.
        var properties = ""
    }

    private func eval(_ expression: String) async throws -> String {
        guard let broker = BrokerFixture.current else { throw TestFailure("no broker") }
        return try await broker.evaluate(expression)
    }

    /// Declares a durable queue; what it rejects goes to the queue `dead` if that is named.
    private func declare(_ queue: String, dead: String? = nil) async throws {
        let arguments = dead.map {
            "{<<\"x-dead-letter-exchange\">>,longstr,<<>>},"
                + "{<<\"x-dead-letter-routing-key\">>,longstr,<<\"\($0)\">>}"
        }
        _ = try await eval(
            "rabbit_amqqueue:declare(rabbit_misc:r(<<\"/\">>, queue, <<\"\(queue)\">>), true, "
                + "false, [\(arguments ?? "")], none, <<\"test\">>)."
        )
    }

    private func publish(_ messages: [Message], to queue: String) async throws {
        let calls = messages.map {
            "rabbit_basic:publish(rabbit_misc:r(<<\"/\">>, exchange, <<>>), <<\"\(queue)\">>, "
                + "[\($0.properties)], \($0.body))"
        }
        _ = try await eval(calls.joined(separator: ", ") + ".")
    }

    /// How many messages a queue holds, those included that were delivered and not answered.
    private func count(_ queue: String) async throws -> Int? {
        let size = try await eval(
            "{ok, Q} = rabbit_amqqueue:lookup(rabbit_misc:r(<<\"/\">>, queue, <<\"\(queue)\">>)), "
                + "[{messages, N}] = rabbit_amqqueue:info(Q, [messages]), N."
        )
        return Int(size.trimmingCharacters(in: .whitespacesAndNewlines))
    }

    /// Returns when a queue holds so many messages: an answer is on its way for a moment.
    private func expect(_ queue: String, toHold wanted: Int) async throws {
        while try await count(queue) != wanted {}
    }

    @Test func `a message is an occurrence with its body, and leaves the queue when it is stored`()
        async throws
    {
        let run = try Run("in")
        let error = try await run.statuses.first {
            if case .waiting(let error) = $0 { error } else { nil }
        }
        #expect(error == TriggerSourceError(.absent, "the broker has no queue “in”"))
        try await declare("in")
        try await run.observing()
        try await publish(
            [
                Message(body: "<<\"{\\\"n\\\": 1}\">>", properties: "{message_id, <<\"a-1\">>}"),
                Message(
                    body: "<<\"12\">>",
                    properties: "{message_id, <<\"b \\n\">>}, {content_type, <<\"text/plain\">>}"
                ),
                Message(body: "<<\"no json\">>"),
                Message(body: "<<\"no json\">>"),
                Message(body: "<<>>"),
            ],
            to: "in"
        )
        var seen: [Occurrence] = []
        for _ in 0..<5 { seen.append(try await run.next()) }
        try await expect("in", toHold: 0)
        await run.stop()

        let events = seen.map { String(decoding: $0.event, as: UTF8.self) }
        #expect(events[0] == #"{"queue":"in","messageID":"a-1","body":{"n": 1}}"#)
        #expect(events[1] == #"{"queue":"in","messageID":"b \n","body":"12"}"#)
        #expect(events[2] == #"{"queue":"in","body":"no json"}"# && events[3] == events[2])
        #expect(events[4] == #"{"queue":"in","body":""}"#)
        #expect(seen[0].identity == "message:id:a-1")
        #expect(seen[1].identity.hasPrefix("message:hash:"))
        #expect(Set(seen.map(\.identity)).count == 5)
    }

    @Test func `what is no JSON, no text or too large goes to the dead letters`() async throws {
        try await declare("dead")
        try await declare("strict", dead: "dead")
        let run = try Run("strict")
        try await run.observing()
        try await publish(
            [
                Message(body: "<<\"{\">>", properties: "{content_type, <<\"application/json\">>}"),
                Message(body: "<<255, 254>>"),
                Message(body: "binary:copy(<<\"a\">>, 1001)"),
                Message(body: "binary:copy(<<\"a\">>, 1000)"),
            ],
            to: "strict"
        )
        var words: [String] = []
        for _ in 0..<3 {
            words.append(
                try await run.statuses.first {
                    if case .refused(let error) = $0 { error.message } else { nil }
                }
            )
        }
        _ = try await run.next()
        try await expect("dead", toHold: 3)
        try await expect("strict", toHold: 0)
        await run.stop()

        let what = "a message of the queue “strict”"
        #expect(
            words == [
                "\(what) is not JSON", "\(what) is not JSON or text in UTF-8",
                "\(what) has 1001 bytes; at most 1000 are possible",
            ]
        )
    }

    @Test func `a message that was not acknowledged comes again with its identity`() async throws {
        try await declare("again")
        let gate = Latch()
        let run = try Run("again") { _ in await gate.wait() }
        try await run.observing()
        try await publish(
            [
                Message(body: "<<\"x\">>"),
                Message(body: "<<1>>", properties: "{message_id, <<\"1\">>}"),
            ],
            to: "again"
        )
        let first = try await run.next()
        try await #require(BrokerFixture.current).control("close_all_connections", "a test")
        // The loss is told when the message is stored, and that before the next connection.
        gate.open()
        var seen = [first]
        try await run.observing()
        while Set(seen.map(\.identity)).count < 2 || seen.filter({ $0 == first }).count < 2 {
            seen.append(try await run.next())
        }
        try await expect("again", toHold: 0)
        await run.stop()

        #expect(Set(seen.map(\.identity)).count == 2)
        #expect(first.identity.hasPrefix("message:drawn:"))
        #expect(seen.contains { $0.identity == "message:id:1" })
    }

    @Test func `a message that could not be stored is there for the next run`() async throws {
        struct Full: Error {}
        try await declare("kept")
        try await publish(
            [Message(body: "<<\"x\">>", properties: "{message_id, <<\"1\">>}")],
            to: "kept"
        )
        let run = try Run("kept") { _ in throw Full() }
        let lost = try await run.next()
        await #expect(throws: Full.self) { try await run.task.value }
        let next = try Run("kept")
        #expect(try await next.next() == lost)
        try await expect("kept", toHold: 0)
        await next.stop()
    }

    @Test(arguments: ["", "operon.beats", String(repeating: "q", count: 256)])
    func `a queue that cannot be somebody's is refused`(name: String) throws {
        let connection = try BrokerConnection(url: "amqp://127.0.0.1", prefix: "operon.")
        defer { connection.close() }
        #expect(throws: TriggerSourceError.self) {
            try connection.messageSource(
                queue: name,
                isJSON: JSONCheck.isJSON,
                logger: testLogger("source")
            )
        }
    }
}
