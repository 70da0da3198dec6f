import Foundation
import NIOConcurrencyHelpers
import NIOCore
import NIOPosix
import OperonHTTP
import OperonModel
import OperonPorts
import Testing

/// Clients that are slow, silent or too many: each costs what its limit says, and no more.
@Suite(.timeLimit(.minutes(5))) struct LoadTests {
    private static let graph = "{\"operations\":{\"a\":{\"run\":\"ls\"}}}"

    /// The head of a submission whose body comes in pieces.
    private static let head =
        "POST /v1/graphs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        + "Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n"

    private static func piece(_ text: String) -> ByteBuffer {
        ByteBuffer(string: String(text.utf8.count, radix: 16) + "\r\n" + text + "\r\n")
    }

    private static let end = ByteBuffer(string: "0\r\n\r\n")

    // MARK: - Bodies

    @Test func `a body that comes too slowly is refused, and one in time is taken`() async throws {
        var limits = HTTPLimits()
        // Long enough for the one in time, however busy the machine is.
        limits.bodyTime = .seconds(3)
        limits.bodyBytesPerSecond = 1 << 20
        try await ServedCluster.run(limits: limits) { (served: ServedCluster) async throws in
            let answer = try await RawSocket.open(served.port) { inbound, outbound in
                try await outbound.write(.init(string: Self.head))
                let dripping = Task {
                    while true {
                        try await outbound.write(Self.piece(" "))
                        try await Task.sleep(for: .milliseconds(20))
                    }
                }
                defer { dripping.cancel() }
                return RawAnswer(try await inbound.bytes())
            }
            #expect(answer.status == 408)
            #expect(answer.text.contains("The body came too slowly."))
            #expect(answer.fields["connection"] == "close")

            let quick = try await served.json("POST", "/v1/graphs", Self.graph)
            #expect(quick.status == 201)
            #expect(await served.tap.submissions.count == 1)
        }
    }

    @Test func `a large body may take longer than a small one`() async throws {
        var limits = HTTPLimits()
        limits.bodyTime = .zero
        limits.bodyBytesPerSecond = 1
        try await ServedCluster.run(limits: limits) { (served: ServedCluster) async throws in
            // A second for each byte: an hour for this one.
            let answer = try await served.json("POST", "/v1/graphs", Self.graph)
            #expect(answer.status == 201)
        }
    }

    @Test func `a body that never ends is given up, with what it took`() async throws {
        var limits = HTTPLimits()
        limits.idleTime = .seconds(3)
        limits.bodyBytesInAll = 1_000
        try await ServedCluster.run(limits: limits) { (served: ServedCluster) async throws in
            // Returns when the server closes.
            let bytes = try await RawSocket.open(served.port) { inbound, outbound in
                try await outbound.write(.init(string: Self.head))
                let most = String(repeating: " ", count: 990)
                try await outbound.write(Self.piece(most))
                return try await inbound.bytes()
            }
            #expect(bytes.isEmpty)
            try await Self.waitForBodies(of: 0, in: served)
            #expect(try await served.json("POST", "/v1/graphs", Self.graph).status == 201)
        }
    }

    @Test func `bodies that are too much together are refused until one has been answered`()
        async throws
    {
        var limits = HTTPLimits()
        limits.bodyBytesInAll = 1_000
        try await ServedCluster.run(limits: limits) { (served: ServedCluster) async throws in
            try await RawSocket.open(served.port) { inbound, outbound in
                try await outbound.write(.init(string: Self.head))
                try await outbound.write(Self.piece(String(repeating: " ", count: 990)))
                try await Self.waitForBodies(of: 990, in: served)
                let refused = try await served.json("POST", "/v1/graphs", Self.graph)
                #expect(refused.status == 503)
                #expect(refused.text.contains("The coordinator reads too much at once"))
                #expect(refused.fields["retry-after"] == "5")
                // What was there first is finished all the same, with what fits.
                try await outbound.write(Self.piece("{}"))
                try await outbound.write(Self.end)
                #expect(RawAnswer(try await inbound.bytes()).status == 400)
            }
            try await Self.waitForBodies(of: 0, in: served)
            #expect(try await served.json("POST", "/v1/graphs", Self.graph).status == 201)
        }
    }

    @Test func `a body whose client goes away gives back what it took`() async throws {
        var limits = HTTPLimits()
        limits.bodyBytesInAll = 1_000
        try await ServedCluster.run(limits: limits) { (served: ServedCluster) async throws in
            for _ in 0..<3 {
                try await RawSocket.open(served.port) { _, outbound in
                    try await outbound.write(.init(string: Self.head))
                    try await outbound.write(Self.piece(String(repeating: " ", count: 990)))
                    try await Self.waitForBodies(of: 990, in: served)
                }
                try await Self.waitForBodies(of: 0, in: served)
            }
            #expect(try await served.json("POST", "/v1/graphs", Self.graph).status == 201)
        }
    }

    /// Returns when the server has so much of bodies in memory.
    private static func waitForBodies(of bytes: Int, in served: ServedCluster) async throws {
        // How far a server has read gives no signal.
        while served.server.bodyBytes != bytes { try await Task.sleep(for: .milliseconds(1)) }
    }

    // MARK: - Connections

    @Test func `connections that say nothing keep nobody out`() async throws {
        var limits = HTTPLimits()
        limits.connections = 20
        limits.reservedConnections = 2
        try await ServedCluster.run(limits: limits) { (served: ServedCluster) async throws in
            let port = served.port
            try await withThrowingTaskGroup(of: Void.self) { group in
                for index in 0..<200 {
                    group.addTask {
                        try await RawSocket.open(port) { inbound, outbound in
                            // Half of them begin a request.
                            if index % 2 == 0 {
                                try await outbound.write(.init(string: "GET /v1/status HT"))
                            }
                            _ = try await inbound.bytes()
                        }
                    }
                }
                while served.server.connectionCount < 20 {
                    // How many a server has accepted gives no signal.
                    try await Task.sleep(for: .milliseconds(1))
                }
                #expect(try await served.raw("GET", "/healthz").status == 200)
                #expect(try await served.raw("GET", "/v1/status").status == 200)
                #expect(served.server.connectionCount <= 22)
                group.cancelAll()
            }
        }
    }

    @Test func `while all connections are busy, health is answered, and whatever else is told so`()
        async throws
    {
        var limits = HTTPLimits()
        limits.connections = 2
        limits.reservedConnections = 1
        try await ServedCluster.run(limits: limits) { (served: ServedCluster) async throws in
            try await served.client { client in
                let first = try await client.events(after: nil, graph: nil)
                let second = try await client.events(after: nil, graph: nil)
                await served.tap.waitForWatchers(2)
                #expect(try await served.raw("GET", "/healthz").status == 200)
                #expect(try await served.raw("GET", "/metrics").status == 200)
                let refused = try await served.raw("GET", "/v1/status")
                #expect(refused.status == 503)
                #expect(refused.fields["retry-after"] == "5")
                #expect(refused.text.contains("Too many connections"))
                withExtendedLifetime((first, second)) {}
            }
        }
    }

    /// A server with two connections, both busy, and one more for health.
    private static func busy(_ body: @escaping @Sendable (_ port: Int) async throws -> Void)
        async throws
    {
        var limits = HTTPLimits()
        limits.connections = 2
        limits.reservedConnections = 1
        // However busy the machine is, the requests come in time.
        limits.firstRequestTime = .seconds(60)
        limits.headTime = .seconds(60)
        try await ServedCluster.run(limits: limits) { (served: ServedCluster) async throws in
            try await served.client { client in
                let first = try await client.events(after: nil, graph: nil)
                let second = try await client.events(after: nil, graph: nil)
                await served.tap.waitForWatchers(2)
                try await body(served.port)
                withExtendedLifetime((first, second)) {}
            }
        }
    }

    private static func get(_ path: String) -> String {
        "GET \(path) HTTP/1.1\r\nHost: localhost\r\n\r\n"
    }

    private static func expectRefusal(_ answer: RawAnswer) {
        #expect(answer.status == 503)
        #expect(answer.fields["retry-after"] == "5")
        #expect(answer.text.contains("Too many connections"))
    }

    @Test func `a crowd beyond all busy connections is refused in words, and health is answered`()
        async throws
    {
        try await Self.busy { port in
            for (index, answer) in try await Self.crowd(of: 20, at: port) {
                if index == 0 {
                    #expect(answer.status == 200)
                } else {
                    Self.expectRefusal(answer)
                }
            }
        }
    }

    /// So many connections at once, which ask when all of them have been made; the first for
    /// health.
    private static func crowd(
        of count: Int,
        at port: Int
    ) async throws -> [(index: Int, answer: RawAnswer)] {
        let connected = NIOLockedValueBox(0)
        let all = NIOSingletons.posixEventLoopGroup.any().makePromise(of: Void.self)
        return try await withThrowingTaskGroup(of: (Int, RawAnswer).self) { group in
            for index in 0..<count {
                group.addTask {
                    let bytes = try await RawSocket.open(port) { inbound, outbound in
                        let number = connected.withLockedValue {
                            $0 += 1
                            return $0
                        }
                        if number == count { all.succeed() }
                        try await all.futureResult.get()
                        let path = index == 0 ? "/healthz" : "/v1/status"
                        try await outbound.write(ByteBuffer(string: Self.get(path)))
                        return try await inbound.bytes()
                    }
                    return (index, RawAnswer(bytes))
                }
            }
            var answers: [(index: Int, answer: RawAnswer)] = []
            for try await (index, answer) in group { answers.append((index, answer)) }
            return answers
        }
    }

    @Test func `who is refused may send the rest of a body, which is dropped`() async throws {
        // The connection was closed at once. Bytes that nobody reads reset it, and a client that
        // reads only after it has sent all finds no refusal.
        try await Self.busy { port in
            let answer = try await RawSocket.open(port) { inbound, outbound in
                let pieces = 64
                let piece = ByteBuffer(repeating: UInt8(ascii: " "), count: 1 << 16)
                let head =
                    "POST /v1/graphs HTTP/1.1\r\nHost: localhost\r\n"
                    + "Content-Type: application/json\r\n"
                    + "Content-Length: \(pieces * piece.readableBytes)\r\n\r\n"
                try await outbound.write(ByteBuffer(string: head))
                var bytes: [UInt8] = []
                for try await some in inbound {
                    if bytes.isEmpty {
                        // It is refused now.
                        for _ in 0..<pieces { try await outbound.write(piece) }
                    }
                    bytes += some.readableBytesView
                }
                return RawAnswer(bytes)
            }
            Self.expectRefusal(answer)
        }
    }

    @Test func `who has left while its request waits makes room`() async throws {
        // Its request went on to wait, and kept the place for as long.
        var limits = HTTPLimits()
        limits.connections = 1
        limits.reservedConnections = 1
        try await ServedCluster.run(limits: limits) { (served: ServedCluster) async throws in
            try await served.client { client in
                let work = Work.external(input: .empty)
                var operation = OperationDescription(name: "a", work: work)
                operation.queue = "held"
                let graph = GraphDescription(name: "g", operations: [operation])
                _ = try await client.submit(Submission(graph: graph))
            }
            @Sendable func status() async throws -> Int {
                try await served.raw("GET", "/v1/status").status
            }
            // Another connection may take the place before the request has come, which is refused
            // then: it has the place once several others are refused.
            var refused = 0
            while refused < 3 {
                refused = try await RawSocket.open(served.port) { _, outbound in
                    let asked = Self.get("/v1/queues/held?wait=60")
                    try await outbound.write(ByteBuffer(string: asked))
                    var refused = 0
                    for _ in 0..<100 where refused < 3 {
                        refused = try await status() == 503 ? refused + 1 : 0
                    }
                    return refused
                }
            }
            let deadline = ContinuousClock.now + .seconds(30)
            while try await status() != 200, ContinuousClock.now < deadline {}
            #expect(try await status() == 200)
        }
    }

    @Test func `a connection without a place answers about health once`() async throws {
        // What came behind it was refused in the middle of its answer.
        try await Self.busy { port in
            let bytes = try await RawSocket.open(port) { inbound, outbound in
                // Takes the place of the first one.
                let other = try await RawSocket.open(port) { inbound, outbound in
                    let asked = Self.get("/healthz")
                    try await outbound.write(ByteBuffer(string: asked))
                    for try await piece in inbound where piece.readableBytes > 0 { return true }
                    return false
                }
                #expect(other)
                let both = Self.get("/metrics") + Self.get("/v1/status")
                try await outbound.write(ByteBuffer(string: both))
                return try await inbound.bytes()
            }
            let answer = RawAnswer(bytes)
            #expect(answer.status == 200)
            #expect(answer.fields["connection"] == "close")
            #expect(answer.text.contains("operon_"))
            #expect(!answer.text.contains("HTTP/1.1"))
        }
    }

    @Test(arguments: [false, true])
    func `a connection without a request is closed in time, whatever it should speak`(
        isTLS: Bool
    ) async throws {
        var limits = HTTPLimits()
        limits.headTime = .milliseconds(100)
        let certificates = isTLS ? try ClientTests.Certificates() : nil
        let tls = certificates.map { TLSFiles(certificate: $0.server, key: $0.key) }
        try await ServedCluster.run(
            tls: tls,
            tokens: AccessTests.tokens,
            limits: limits
        ) { (served: ServedCluster) async throws in
            #expect(try await Self.untilClosed(served.port, saying: "").isEmpty)
            guard !isTLS else { return }
            let half = "GET /healthz HTTP/1.1\r\nHost: a"
            #expect(try await Self.untilClosed(served.port, saying: half).isEmpty)
        }
    }

    /// What comes until the server closes, which otherwise waits for bytes for a minute.
    private static func untilClosed(_ port: Int, saying text: String) async throws -> [UInt8] {
        do {
            return try await RawSocket.open(port) { inbound, outbound in
                if !text.isEmpty { try await outbound.write(.init(string: text)) }
                return try await inbound.bytes()
            }
        } catch ChannelError.ioOnClosedChannel {
            // It may close before we have written, or while we close.
            return []
        }
    }

    @Test func `a connection that was answered may wait longer than for its first request`()
        async throws
    {
        var limits = HTTPLimits()
        // Long enough to ask for the first time, however busy the machine is.
        limits.headTime = .seconds(2)
        try await ServedCluster.run(limits: limits) { (served: ServedCluster) async throws in
            let kept = try await Kept(served.port)
            // Another one, opened later, is closed for its silence: so much time has passed.
            #expect(try await Self.untilClosed(served.port, saying: "").isEmpty)
            try await kept.ask()
            try await kept.close()
        }
    }
}

/// A connection that has been answered, and stays open until it is closed.
private final class Kept: Sendable {
    private let task: Task<Void, any Error>
    private let asking: AsyncStream<Void>.Continuation
    private let answered: AsyncThrowingStream<Void, any Error>

    init(_ port: Int) async throws {
        let (asks, asking) = AsyncStream<Void>.makeStream()
        let (answered, answering) = AsyncThrowingStream<Void, any Error>.makeStream()
        self.asking = asking
        self.answered = answered
        task = Task {
            do {
                try await RawSocket.open(port) { inbound, outbound in
                    var iterator = inbound.makeAsyncIterator()
                    for await _ in asks {
                        let ask = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
                        try await outbound.write(ByteBuffer(string: ask))
                        var answer: [UInt8] = []
                        while RawAnswer(answer).body.isEmpty, let piece = try await iterator.next()
                        {
                            answer += piece.readableBytesView
                        }
                        answering.yield()
                    }
                }
                answering.finish()
            } catch {
                answering.finish(throwing: error)
                throw error
            }
        }
        try await ask()
    }

    func ask() async throws {
        asking.yield()
        for try await _ in answered { return }
        throw CancellationError()
    }

    func close() async throws {
        asking.finish()
        try await task.value
    }
}

extension NIOAsyncChannelInboundStream<ByteBuffer> {
    /// Until the other side closes, orderly or not.
    fileprivate func bytes() async throws -> [UInt8] {
        var bytes: [UInt8] = []
        do {
            for try await piece in self { bytes += piece.readableBytesView }
        } catch is IOError {}
        return bytes
    }
}
