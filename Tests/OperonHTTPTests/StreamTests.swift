import Foundation
import NIOConcurrencyHelpers
import NIOCore
import OperonHTTP
import OperonModel
import OperonPorts
import Testing

/// Streams of events and of logs, and what becomes of them when connections break.
@Suite(.timeLimit(.minutes(5))) struct StreamTests {
    private static func sequences(
        _ stream: AsyncThrowingStream<ClientEvent, any Error>,
        _ count: Int
    ) async throws -> [ClientEvent] {
        var found: [ClientEvent] = []
        for try await event in stream {
            found.append(event)
            if found.count == count { return found }
        }
        return found
    }

    /// A reader that goes on after this number gets nothing twice.
    @Test func `the position after a batch is the end of its last item, gap or event`() {
        func event(_ number: UInt64) -> ClientEvent {
            let time = TimeText(WallTime(nanosecondsSince1970: 0))
            return .event(EventView(sequence: number, at: time, kind: EventKind(.suspended)))
        }
        #expect([event(7), .gap(8, 900)].last?.last == 900)
        #expect([.gap(8, 900), event(901)].last?.last == 901)
        #expect([ClientEvent.gap(1, 5)].last?.last == 5)
        #expect(ClientEvent.gap(3, 5).first == 3 && event(7).first == 7)
    }

    @Test func `events come as they happen, of one graph if one is named`() async throws {
        try await ServedCluster.run { (served: ServedCluster) async throws in
            _ = try await served.coordinator.submit(Submission(graph: .diamond))
            try await served.client { client in
                let stream = try await client.events(after: nil, graph: nil)
                let of = try await client.events(after: 0, graph: "diamond")
                await served.tap.waitForWatchers(2)
                _ = try await served.coordinator.setQueue("q", QueueChange())
                _ = try await served.coordinator.suspend(.graph("diamond"), SuspendRequest())
                let kinds = try await Self.sequences(stream, 2).map(Self.kind)
                #expect(kinds == ["queueSet", "suspended"])
                let own = try await Self.sequences(of, 2).map(Self.kind)
                #expect(own == ["graphSubmitted", "suspended"])
                let error = await #expect(throws: ClientError.self) {
                    _ = try await client.events(after: nil, graph: "none")
                }
                #expect(error?.code == .notFound)
            }
            await served.tap.waitForWatchers(0)
        }
    }

    @Test func `a stream has only the kinds that were asked for`() async throws {
        try await ServedCluster.run { (served: ServedCluster) async throws in
            try await served.client { client in
                let stream = try await client.events(
                    after: nil,
                    graph: nil,
                    kinds: [.suspended, .graphSubmitted]
                )
                await served.tap.waitForWatchers(1)
                _ = try await served.coordinator.setQueue("q", QueueChange())
                _ = try await served.coordinator.submit(Submission(graph: .diamond))
                _ = try await served.coordinator.setQueue("q2", QueueChange())
                _ = try await served.coordinator.suspend(.graph("diamond"), SuspendRequest())
                let kinds = try await Self.sequences(stream, 2).map(Self.kind)
                #expect(kinds == ["graphSubmitted", "suspended"])
            }
        }
    }

    private static func kind(_ event: ClientEvent) -> String {
        switch event {
        case .event(let view): view.kind.rawValue
        case .gap(let first, let last): "gap \(first) to \(last)"
        }
    }

    @Test func `a stream that is cut goes on after the last event that was seen`() async throws {
        try await ServedCluster.run { (served: ServedCluster) async throws in
            let links = NIOLockedValueBox<[HTTPCoordinatorClient.Link]>([])
            try await served.client { configuration in
                configuration.onLink = { link in links.withLockedValue { $0.append(link) } }
            } _: { client in
                let stream = try await client.events(after: nil, graph: nil)
                var iterator = stream.makeAsyncIterator()
                await served.tap.waitForWatchers(1)
                for round in 0..<5 {
                    _ = try await served.coordinator.setQueue("seen-\(round)", QueueChange())
                    guard case .event(let seen)? = try await iterator.next() else {
                        Issue.record("no event")
                        return
                    }
                    #expect(seen.queue == "seen-\(round)")
                    await served.tap.endStreams()
                    // While nobody listens.
                    _ = try await served.coordinator.setQueue("missed-\(round)", QueueChange())
                    guard case .event(let missed)? = try await iterator.next() else {
                        Issue.record("no event")
                        return
                    }
                    #expect(missed.queue == "missed-\(round)")
                    #expect(missed.sequence == seen.sequence + 1)
                }
            }
            let seen = links.withLockedValue { $0 }
            #expect(seen.filter { $0 == .restored }.count == 5)
        }
    }

    @Test func `events that are not kept any more are told as a gap`() async throws {
        try await ServedCluster.run(storedEvents: 3) { (served: ServedCluster) async throws in
            for index in 1...9 {
                _ = try await served.coordinator.setQueue("\(index)", QueueChange())
            }
            try await served.client { client in
                let stream = try await client.events(after: 2, graph: nil)
                let found = try await Self.sequences(stream, 4)
                #expect(found.first == .gap(3, 6))
                #expect(found.dropFirst().map(Self.kind) == ["queueSet", "queueSet", "queueSet"])
            }
            let raw = try await Self.lines(served, "/v1/events?after=2", ["Last-Event-ID": "5"], 3)
            #expect(raw == ["id: 6", "event: gap", "data: {\"first\":6,\"last\":6}"])
        }
    }

    /// The first lines of a stream behind its greeting.
    private static func lines(
        _ served: ServedCluster,
        _ path: String,
        _ fields: [String: String],
        _ count: Int
    ) async throws -> [String] {
        let more = fields.map { "\($0.key): \($0.value)\r\n" }.joined()
        let head = "GET \(path) HTTP/1.1\r\nHost: localhost\r\n\(more)\r\n"
        return try await RawSocket.open(served.port) { inbound, outbound in
            try await outbound.write(.init(string: head))
            var text = ""
            for try await piece in inbound {
                text += String(buffer: piece)
                let parts = text.components(separatedBy: ": operon\n\n")
                // Each piece comes as a chunk, with its size before it.
                let lines = parts.dropFirst().joined().components(separatedBy: .newlines)
                    .filter { $0.contains(": ") }
                if lines.count >= count { return Array(lines.prefix(count)) }
            }
            return []
        }
    }

    @Test func `progress comes as counts, and goes on after a cut`() async throws {
        try await ServedCluster.run { (served: ServedCluster) async throws in
            _ = try await served.coordinator.submit(Submission(graph: .diamond))
            try await served.client { client in
                var updates = try await client.progress(of: "diamond").makeAsyncIterator()
                let first = try await updates.next()?.view
                #expect(first?.graph == (try await served.coordinator.graph("diamond")))
                #expect(first?.repeated == [])
                await served.tap.waitForWatchers(1)
                await served.tap.endStreams()
                // While nobody watches.
                _ = try await served.coordinator.cancel(.graph("diamond"), CancelRequest())
                let ended = try await updates.next()?.view.graph
                #expect(ended?.status == .cancelled)
                #expect(ended?.counts.cancelled == ended?.counts.total)
                let error = await #expect(throws: ClientError.self) {
                    _ = try await client.progress(of: "none")
                }
                #expect(error?.code == .notFound)
            }
            let lines = try await Self.lines(served, "/v1/graphs/diamond/progress", [:], 2)
            #expect(lines.first == "event: progress")
            #expect(lines.last?.hasPrefix(#"data: {"graph":{"cancelReason":"#) == true)
        }
    }

    @Test func `a log is followed to its end`() async throws {
        try await ServedCluster.run { (served: ServedCluster) async throws in
            let selector = OperationSelector("g/1", "a b")
            _ = try await served.coordinator.submit(Submission(graph: .of("g/1", [("a b", [])])))
            try await served.cluster.join("worker", slots: 1)
            try await served.cluster.wait(for: selector, .executing)
            try await served.client { client in
                let stream = try await client.log(
                    of: .operation(selector),
                    LogQuery(follow: true)
                )
                await served.tap.waitForFollowers(1)
                var iterator = stream.makeAsyncIterator()
                try await served.cluster.print(selector, "one\ntwo\r\n\u{1B}[1m")
                let first = try await iterator.next()
                #expect(first?.text == "one\ntwo\r\n\u{1B}[1m\n")
                #expect(first?.missedBytes == 0)
                await served.tap.endStreams(throwing: ClientError(.unavailable, "leaves"))
                await #expect(throws: ClientError(.unavailable, "leaves")) {
                    _ = try await iterator.next()
                }
                iterator = try await client.log(
                    of: .operation(selector),
                    LogQuery(follow: true)
                ).makeAsyncIterator()
                await served.tap.waitForFollowers(1)
                try await served.cluster.print(selector, "three")
                // The new stream begins with what was printed before.
                var text = ""
                while !text.hasSuffix("three\n"), let log = try await iterator.next() {
                    text += log.text
                }
                #expect(text == "one\ntwo\r\n\u{1B}[1m\nthree\n")
                try await served.cluster.finish(selector)
                #expect(try await iterator.next() == nil)
            }
        }
    }

    @Test func `a log that a client does not read takes no memory, and is told as a gap`()
        async throws
    {
        let text = String(repeating: "x", count: 60_000)
        let count = 512
        let selector = OperationSelector("g", "a")
        var options = TestCluster.Options()
        options.holdsAll = true
        try await TestCluster.run(options) { cluster in
            let coordinator = cluster.client(of: "")
            // Without a tap, which would queue everything.
            try await TestAPI.serve(try TestAPI.configuration()) { _ in
                coordinator
            } _: { _, address in
                _ = try await coordinator.submit(Submission(graph: .of("g", [("a", [])])))
                try await cluster.join("worker", slots: 1)
                try await cluster.wait(for: selector, .executing)
                let url = HTTPCoordinatorClient.Configuration(url: "http://\(address)")
                try await ServedCluster.client(url) { client in
                    let slow = try await client.log(
                        of: .operation(selector),
                        LogQuery(follow: true)
                    )
                    var fast = try await coordinator.log(
                        of: .operation(selector),
                        LogQuery(follow: true)
                    ).makeAsyncIterator()
                    var (printed, seen) = (0, 0)
                    for _ in 0..<count {
                        try await cluster.print(selector, text)
                        printed += text.utf8.count + 1
                        while seen < printed, let log = try await fast.next() {
                            seen += log.text.utf8.count
                        }
                    }
                    try await cluster.finish(selector)
                    var (read, missed) = (0, 0)
                    for try await log in slow {
                        read += log.bytes.count
                        missed += Int(log.missedBytes)
                    }
                    #expect(read + missed == printed)
                    // What sockets and the coordinator hold for it.
                    #expect(read < printed / 2)
                }
            }
        }
    }

    @Test func `a stream is opened where another has just ended`() async throws {
        try await ServedCluster.run { (served: ServedCluster) async throws in
            let selector = OperationSelector("g", "a")
            _ = try await served.coordinator.submit(Submission(graph: .of("g", [("a", [])])))
            try await served.cluster.join("worker", slots: 1)
            try await served.cluster.wait(for: selector, .executing)
            try await served.client { client in
                for _ in 0..<300 {
                    let stream = try await client.log(
                        of: .operation(selector),
                        LogQuery(follow: true)
                    )
                    await served.tap.waitForFollowers(1)
                    // Its connection is kept, and closed by the coordinator when the client may
                    // be about to use it again.
                    let why = ClientError(.unavailable, "leaves")
                    await served.tap.endStreams(throwing: why)
                    await #expect(throws: why) { for try await _ in stream {} }
                }
            }
        }
    }

    @Test func `a quiet stream shows that it lives`() async throws {
        var limits = HTTPLimits()
        limits.keepAlive = .milliseconds(10)
        try await ServedCluster.run(limits: limits) { (served: ServedCluster) async throws in
            let lines = try await Self.lines(served, "/v1/events", [:], 2)
            #expect(lines == [": keep-alive", ": keep-alive"])
        }
    }

    @Test func `more readers than there may be are refused`() async throws {
        var limits = HTTPLimits()
        limits.streams = 1
        try await ServedCluster.run(limits: limits) { (served: ServedCluster) async throws in
            try await served.client { client in
                let stream = try await client.events(after: nil, graph: nil)
                let error = await #expect(throws: ClientError.self) {
                    _ = try await client.events(after: nil, graph: nil)
                }
                #expect(error?.code == .unavailable)
                withExtendedLifetime(stream) {}
            }
        }
    }

    @Test func `a server that stops ends its streams and its readers come to another`() async throws
    {
        let configuration = NIOLockedValueBox<ListenAddress?>(nil)
        try await ServedCluster.run { (served: ServedCluster) async throws in
            configuration.withLockedValue { $0 = served.address }
            try await served.client {
                $0.patience = .zero
            } _: { client in
                let stream = try await client.events(after: nil, graph: nil)
                served.server.stop()
                let error = await #expect(throws: ClientError.self) {
                    for try await _ in stream {}
                }
                #expect(error?.code == .unreachable)
            }
        }
    }
}
