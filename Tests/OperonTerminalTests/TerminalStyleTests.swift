import OperonTerminal
import Testing

@Suite struct TerminalStyleTests {
    struct Case: Sendable, CustomTestStringConvertible {
        var environment: [String: String]
        var isTerminal: Bool
        /// Overprints, colour, Unicode: a letter each.
        var expected: String

        var testDescription: String { "\(environment), terminal: \(isTerminal)" }
    }

    @Test(arguments: [
        Case(
            environment: ["TERM": "xterm", "LANG": "en_US.UTF-8"],
            isTerminal: true,
            expected: "ocu"
        ),
        Case(
            environment: ["TERM": "xterm", "LANG": "en_US.UTF-8"],
            isTerminal: false,
            expected: "u"
        ),
        Case(environment: ["TERM": "dumb", "LANG": "C.UTF-8"], isTerminal: true, expected: ""),
        Case(environment: ["LANG": "C.UTF-8"], isTerminal: true, expected: ""),
        Case(environment: ["TERM": "xterm", "LANG": "C"], isTerminal: true, expected: "oc"),
        Case(
            environment: ["TERM": "xterm", "LANG": "C.UTF-8", "LC_ALL": "C"],
            isTerminal: true,
            expected: "oc"
        ),
        Case(
            environment: ["TERM": "xterm", "LANG": "C", "LC_CTYPE": "de_DE.utf8"],
            isTerminal: true,
            expected: "ocu"
        ),
        Case(environment: ["TERM": "xterm", "NO_COLOR": "1"], isTerminal: true, expected: "o"),
        Case(environment: ["TERM": "xterm", "NO_COLOR": ""], isTerminal: true, expected: "oc"),
        Case(environment: ["TERM": "xterm", "CLICOLOR": "0"], isTerminal: true, expected: "o"),
        Case(environment: ["CLICOLOR_FORCE": "1"], isTerminal: false, expected: "c"),
        Case(environment: ["CLICOLOR_FORCE": "0"], isTerminal: false, expected: ""),
        Case(
            environment: ["CLICOLOR_FORCE": "1", "NO_COLOR": "1"],
            isTerminal: false,
            expected: ""
        ),
    ])
    func `the conventions are honoured`(_ example: Case) {
        let style = TerminalStyle(
            environment: example.environment,
            isTerminal: example.isTerminal
        )
        let letters =
            (style.overprints ? "o" : "") + (style.hasColor ? "c" : "")
            + (style.hasUnicode ? "u" : "")

        #expect(letters == example.expected)
    }
}

@Suite struct TerminalTextTests {
    @Test(arguments: [
        ("plain", "plain"),
        ("tab\there", "tab here"),
        ("\u{1B}[31mred\u{1B}[0m", "red"),
        ("\u{1B}]0;evil\u{7}after", "after"),
        ("\u{1B}]8;;http://x\u{1B}\\link\u{1B}]8;;\u{1B}\\", "link"),
        ("\u{1B}(Bcharset", "charset"),
        ("\u{1B}[31", ""),
        ("\u{1B}[3\nnext", "\\u{a}next"),
        ("bell\u{7}", "bell\\u{7}"),
        ("c1\u{9B}31m", "c1\\u{9b}31m"),
        ("over\u{202E}ride", "over\\u{202e}ride"),
        ("two\r\nlines", "two\\u{d}\\u{a}lines"),
        ("ünïcödé 数", "ünïcödé 数"),
    ])
    func `nothing that a terminal acts on is left`(text: String, expected: String) {
        #expect(TerminalText.line(text) == expected)
    }

    @Test func `a tail is the last lines, as they were last overprinted`() {
        let log = "one\ntwo\r\n10%\r50%\r100%\nlast\n\n"

        let tail = TerminalText.tail(log, limit: 3)

        #expect(tail.lines == ["two", "100%", "last"])
        #expect(tail.omitted == 1)
        #expect(TerminalText.tail("", limit: 3).lines.isEmpty)
    }

    @Test(arguments: [
        ("abcdefgh", 8, "abcdefgh"), ("abcdefgh", 7, "abc…fgh"), ("abcdefgh", 2, "a…"),
        ("abcdefgh", 1, "a"), ("数え上げる", 6, "数…る"),
    ])
    func `the middle of what is too long is left out`(text: String, width: Int, expected: String) {
        #expect(TerminalText.elided(text, to: width) == expected)
    }

    @Test(arguments: [("abc", 3), ("数", 2), ("e\u{301}", 1), ("🎉", 2), ("", 0)])
    func `width counts columns`(text: String, width: Int) {
        #expect(TerminalText.width(text) == width)
    }
}
