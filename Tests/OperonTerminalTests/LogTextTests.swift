import OperonModel
import OperonTerminal
import Testing

/// How logs are printed.
@Suite struct LogTextTests {
    private let style = TerminalStyle(overprints: true, hasColor: false, hasUnicode: true)

    private func log(
        _ text: String,
        of index: UInt32 = 0,
        number: UInt32 = 1,
        missed: UInt64 = 0
    ) -> LogView {
        LogView(
            operation: OperationName(graph: 3, index: index, name: "op\(index)"),
            attempt: AttemptID(epoch: Epoch(rawValue: 1), number: UInt64(number)),
            number: number,
            offset: 0,
            bytes: Array(text.utf8),
            missedBytes: missed
        )
    }

    private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

    @Test func `a pipe gets the bytes of one log unchanged`() {
        var printer = LogText(style: style, isTerminal: false, isPrefixed: false)
        var view = log("")
        view.bytes = (0...255).map { UInt8($0) }
        #expect(printer.text(of: view) == view.bytes)
        #expect(printer.end() == [])
    }

    @Test func `on a terminal no sequence of a log acts, even one that comes in parts`() {
        var printer = LogText(style: style, isTerminal: true, isPrefixed: false)
        let parts = ["50 %\r100 %\u{1B}", "[31", "mred\u{1B}]0;title", "\u{7}\u{8}\n"]
        let printed = parts.map { text(printer.text(of: log($0))) }.joined()
        #expect(printed == "50 %\r100 %red\\u{8}\n")
        #expect(!printer.isMidLine)
        _ = printer.text(of: log("no end"))
        #expect(text(printer.end()) == "\n")
    }

    @Test func `lines of several operations are not mixed, and have the names in front`() {
        var printer = LogText(style: style, isTerminal: false, isPrefixed: true)
        var printed = printer.text(of: log("one\ntw", of: 0))
        printed += printer.text(of: log("other\n", of: 1))
        printed += printer.text(of: log("o\nthree", of: 0))
        // The next attempt begins a line of its own.
        printed += printer.text(of: log("again", of: 0, number: 2))
        printed += printer.text(of: log("later\n", of: 1, missed: 70))
        printed += printer.end()
        #expect(
            text(printed) == """
                op0 | one
                op1 | other
                op0 | two
                op0 | three
                op1 | operon: 70 bytes are missing here
                op1 | later
                op0 (attempt 2) | again

                """
        )
    }

    @Test func `with colours the names of neighbours differ, and a line is cleaned`() {
        let colored = TerminalStyle(overprints: true, hasColor: true, hasUnicode: true)
        var printer = LogText(style: colored, isTerminal: true, isPrefixed: true)
        let printed = [0, 1].map { text(printer.text(of: log("1 %\r2 %\u{1B}[2J\n", of: $0))) }
        #expect(printed[0] == "\u{1B}[36mop0\u{1B}[0m | 2 %\n")
        #expect(printed[1] == "\u{1B}[33mop1\u{1B}[0m | 2 %\n")
    }

    @Test func `a line without an end takes no memory without bound`() {
        var printer = LogText(style: style, isTerminal: false, isPrefixed: true)
        let piece = String(repeating: "x", count: 1 << 16)
        var printed = 0
        for _ in 0..<64 { printed += printer.text(of: log(piece)).count }
        #expect(printed > 60 << 16)
    }
}
