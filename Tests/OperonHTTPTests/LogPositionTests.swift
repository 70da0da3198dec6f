import OperonModel
import Testing

@testable import OperonHTTP

/// What a client has read of a log, when the stream begins anew.
@Suite struct LogPositionTests {
    private func log(
        _ text: String,
        at offset: UInt64,
        attempt number: UInt32 = 1,
        of index: UInt32 = 0,
        missed: UInt64 = 0
    ) -> LogView {
        LogView(
            operation: OperationName(graph: 0, index: index, name: "a"),
            attempt: AttemptID(epoch: Epoch(rawValue: 1), number: UInt64(number)),
            number: number,
            offset: offset,
            bytes: Array(text.utf8),
            missedBytes: missed
        )
    }

    @Test func `each byte is new once, whatever is sent again`() {
        var position = LogPosition()
        #expect(position.isAtStart)
        #expect(position.new(in: log("abc", at: 0))?.text == "abc")
        #expect(!position.isAtStart)
        // The same again, and a piece that goes on.
        #expect(position.new(in: log("abc", at: 0)) == nil)
        #expect(position.new(in: log("abcde", at: 0))?.text == "de")
        #expect(position.new(in: log("de", at: 3)) == nil)
        // Another operation, and the next attempt.
        #expect(position.new(in: log("x", at: 0, of: 1))?.text == "x")
        #expect(position.new(in: log("again", at: 0, attempt: 2))?.text == "again")
        #expect(position.new(in: log("late", at: 5, attempt: 1)) == nil)
    }

    @Test func `a gap has the size that it has for this client`() {
        var position = LogPosition()
        _ = position.new(in: log("abc", at: 0))
        // The coordinator has sent it to nobody else.
        let gap = position.new(in: log("z", at: 10, missed: 2))
        #expect(gap?.missedBytes == 7)
        let empty = position.new(in: log("", at: 20, missed: 9))
        #expect(empty?.missedBytes == 9)
        #expect(position.new(in: log("", at: 20, missed: 9)) == nil)
        // Nothing that a stranger sends is a trap.
        #expect(position.new(in: log("ab", at: .max)) == nil)
    }

    @Test func `bytes that are no text survive JSON`() throws {
        var view = log("", at: 3)
        view.bytes = [0xFF, 0x00, 0x41]
        let bytes = try JSONBytes.line(view)
        #expect(try JSONBytes.decode(LogView.self, bytes) == view)
        #expect(
            !String(decoding: try JSONBytes.line(log("é", at: 0)), as: UTF8.self).contains("base64")
        )
    }
}
