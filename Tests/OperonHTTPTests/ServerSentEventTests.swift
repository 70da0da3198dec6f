import OperonModel
import Testing

@testable import OperonHTTP

/// Streams that a client reads: bytes in pieces, as a connection brings them.
struct ServerSentEventTests {
    private static let stream = Array(
        """
        : a comment
        id: 1
        event: gap
        data: {"first":1}

        id:2\r
        data:one\r
        data: two\r
        \r
        retry: 5
        data
        id: 3\r\r
        id: 4

        data: not ended
        """.utf8
    )

    private static var expected: [ServerSentEvent] {
        var events = [ServerSentEvent(), ServerSentEvent(), ServerSentEvent(), ServerSentEvent()]
        events[0] = ServerSentEvent(id: "1", event: "gap", data: Array(#"{"first":1}"#.utf8))
        events[1] = ServerSentEvent(id: "2", data: Array("one\ntwo".utf8))
        events[2] = ServerSentEvent(id: "3")
        events[3] = ServerSentEvent(id: "4")
        return events
    }

    @Test func `pieces of every size give the same events`() throws {
        for size in 1...Self.stream.count {
            var parser = ServerSentEventParser()
            var found: [ServerSentEvent] = []
            for start in stride(from: 0, to: Self.stream.count, by: size) {
                found += try parser.read(Array(Self.stream[start...].prefix(size)))
            }
            #expect(found == Self.expected, "in pieces of \(size) bytes")
        }
    }

    @Test func `an event beyond the limit is refused, in one piece and in many`() throws {
        let line = Array("data: ".utf8) + [UInt8](repeating: 0x61, count: 1 << 20)
        var parser = ServerSentEventParser()
        let lines = ServerSentEventParser.eventBytesMax >> 20
        for _ in 1..<lines { _ = try parser.read(line + [0x0A]) }
        #expect(throws: ServerSentEventParser.EventTooLarge.self) { try parser.read(line) }
        var whole = ServerSentEventParser()
        let all = [UInt8](repeating: 0x61, count: ServerSentEventParser.eventBytesMax + 1)
        #expect(throws: ServerSentEventParser.EventTooLarge.self) { try whole.read(all) }
    }
}
