import Foundation
import FoundationXML
import OperonModel
import OperonTerminal
import Testing

@testable import OperonReport

/// What stands in reports and pictures, and that nothing of it is markup.
@Suite struct ReportPageTests {
    private static func report(_ operations: [OperationReport]) -> RunReport {
        RunReport(
            graph: "nightly",
            startedAt: WallTime(nanosecondsSince1970: 1_700_000_000_000_000_000),
            makespan: .seconds(4),
            criticalPath: .seconds(3),
            work: .seconds(6),
            slots: 2,
            operations: OperationReports(operations)
        )
    }

    private static func operation(
        _ name: String,
        _ outcome: OutcomeKind?,
        from start: Int64 = 0,
        to end: Int64 = 1_000,
        worker: String = "w1"
    ) -> OperationReport {
        let (start, end) = (Duration.milliseconds(start), Duration.milliseconds(end))
        let ended: AttemptReport.End = outcome == .failed ? .failed : .succeeded
        return OperationReport(
            name: name,
            outcome: outcome,
            start: start,
            end: end,
            worker: worker,
            attempts: [
                AttemptReport(number: 1, worker: worker, start: start, end: end, ended: ended)
            ]
        )
    }

    private static func graph(_ names: [String]) -> GraphDescription {
        GraphDescription(
            name: "nightly",
            operations: names.enumerated().map { number, name in
                var operation = OperationDescription(name: name, work: .nothing)
                if number > 0 {
                    operation.dependencies = [DependencyDescription(names[number - 1])]
                }
                return operation
            }
        )
    }

    private static func page(_ operations: [OperationReport]) -> String {
        let page = ReportPage(
            report(operations),
            of: graph(operations.map(\.name)),
            facts: [("machine", "m1")]
        )
        return String(decoding: page.html(), as: UTF8.self)
    }

    @Test func `a report has the outcome, the failure with its log, and where it ran`() {
        var failed = Self.operation("load", .failed, from: 1_000, to: 4_000)
        failed.error = .exit(code: 3)
        failed.log = "line 1\nno space left\n"
        let page = Self.page([Self.operation("fetch", .succeeded), failed])
        for part in [
            "<h1>nightly</h1>", "✗ failed", "started 2023-11-14T22:13:20.000Z",
            "<dt>took</dt><dd>4.0s</dd>", "✗ load</h3>", "line 1\nno space left</pre>",
            "<dt>machine</dt><dd>m1</dd>", "class=\"timeline\"", "class=\"picture\"",
            "<tr><td>load<td class=failed>failed<td class=n>1<td class=n>1.0s<td class=n>3.0s",
        ] {
            #expect(page.contains(part), "\(part)")
        }
    }

    /// Texts that would do something in a page if they were markup.
    private static let hostile = [
        "<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "'onmouseover='alert(1)",
        "</title><script>alert(1)</script>", "</style><script>1</script>", "]]><svg onload=1>",
        "<!--", "&lt;script&gt;", "javascript:alert(1)", "\u{202E}txt.exe", "a\u{0}b\u{1B}[31m",
        "</pre></div><iframe src=//x>", "${x}{{y}}", "\u{FFFE}\u{FFFF}",
        String(repeating: "<", count: 200),
    ]

    @Test func `what comes from operations is text`() throws {
        let operations = Self.hostile.enumerated().map { number, text in
            var operation = Self.operation(
                text,
                number % 2 == 0 ? .failed : .cancelled,
                worker: text
            )
            operation.error = .thrown(type: text, message: text, payload: [])
            operation.log = text
            operation.reason = text
            operation.cause = SkipCause(dependency: text, root: text, rootOutcome: .failed)
            return operation
        }
        let page = Self.page(operations)
        let allowed: Set = [
            "!DOCTYPE", "html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "p",
            "strong", "dl", "div", "dt", "dd", "pre", "svg", "g", "rect", "text", "path", "table",
            "thead", "tbody", "tr", "th", "td",
        ]
        let names = page.split(separator: "<", omittingEmptySubsequences: false).dropFirst().map {
            String($0.drop { $0 == "/" }.prefix { $0.isLetter || $0.isNumber || $0 == "!" })
        }
        #expect(Set(names).subtracting(allowed) == [])
        #expect(!page.contains("\u{202E}") && !page.contains("\u{1B}") && !page.contains("\u{0}"))
        // No attribute but those that this module writes.
        for tag in page.split(separator: "<").dropFirst() {
            let inside = tag.prefix { $0 != ">" }
            #expect(!inside.contains("onerror") && !inside.contains("onload"), "\(inside)")
        }
    }

    @Test func `the style is the only one that the page may have, and no script`() {
        let page = Self.page([Self.operation("a", .succeeded)])
        #expect(page.contains("default-src 'none'; style-src 'sha256-"))
        #expect(!page.contains("<script") && !page.contains(" style="))
        #expect(page.split(separator: "<style").count == 2)
    }

    @Test func `a picture is a file of XML, whatever the names are`() throws {
        let graph = Self.graph(Self.hostile)
        let picture = Picture(
            graph.operations.map { Picture.Operation(name: $0.name, state: .failed) },
            GraphShape(graph),
            groups: [],
            title: Self.hostile[0]
        )
        let parser = XMLParser(data: Data(PictureDrawing(picture).svgFile()))
        #expect(parser.parse(), "\(parser.parserError.debugDescription)")
    }

    // MARK: - Large reports

    @Test(arguments: [10_000, 30_000])
    func `a report of many operations can be sent by mail`(count: Int) {
        let operations = (0..<count).map { number in
            let start = Int64(number / 16 * 50)
            let outcome: OutcomeKind = number == count - 1 ? .failed : .succeeded
            return Self.operation(
                "render[frame-\(number).png]",
                outcome,
                from: start,
                to: start + 49
            )
        }
        let page = Self.page(operations)
        #expect(page.utf8.count < 2 << 20, "\(page.utf8.count)")
        // The failure is there however many there are.
        #expect(page.contains("<tr><td>render[frame-\(count - 1).png]<td class=failed>"))
        #expect(page.split(separator: "<tr><td>").count - 1 == min(count, ReportPage.rowsMax))
    }

    @Test func `so can one of many failures whose logs take more room than they have`() {
        let operations = (0..<10_000).map { number in
            var operation = Self.operation("op\(number)", number < 61 ? .failed : .succeeded)
            if operation.outcome == .failed {
                let line = String(repeating: "<&", count: 200)
                operation.log = Array(repeating: line, count: 60).joined(separator: "\n")
            }
            return operation
        }
        let page = Self.page(operations)
        #expect(page.utf8.count < 2 << 20, "\(page.utf8.count)")
        #expect(page.contains("&lt;&amp;") && page.contains("Its log is left out"))
    }

    @Test func `long names end the table, and it says so`() {
        let long = String(repeating: "n", count: 250)
        let operations = (0..<10_000).map { number in
            Self.operation("\(long)\(number)", number > 9_900 ? .failed : .succeeded)
        }
        let page = Self.page(operations)
        // Those that failed come first.
        #expect(page.contains("\(long)9999<td class=failed>"))
        #expect(page.utf8.count < 2 << 20, "\(page.utf8.count)")
        #expect(page.contains(" more operations.</p>"))
    }

    @Test func `a row has no two attempts at once, and there are as many rows as were busy`() {
        let bars = [(0, 4), (1, 3), (3, 5), (4, 6), (2, 3)].map { start, end in
            Timeline.Bar(
                name: "\(start)",
                worker: "w",
                start: .seconds(start),
                end: .seconds(end),
                state: .succeeded
            )
        }
        let timeline = Timeline(bars, length: .seconds(6))
        #expect(timeline.rows.count == 3)
        #expect(timeline.rows.map { $0.bars.map(\.name) } == [["0", "4"], ["1", "3"], ["2"]])
    }

    @Test func `a timeline has a line where an attempt was waiting`() throws {
        func timeline(_ attempts: [AttemptReport], _ first: OperationReport) throws -> Substring {
            var second = Self.operation("second", .succeeded)
            second.attempts = attempts
            let report = Self.report([first, second])
            let shape = GraphShape(dependencies: [[], [0]])
            let page = ReportPage(report, shape: shape, facts: []).html()
            let text = String(decoding: page, as: UTF8.self)
            let start = try #require(text.firstRange(of: "class=\"timeline\"")?.upperBound)
            return text[start...]
        }
        func attempt(_ number: Int, _ start: Int64, _ end: Int64) -> AttemptReport {
            AttemptReport(
                number: number,
                worker: "w1",
                start: .milliseconds(start),
                end: .milliseconds(end),
                ended: .succeeded
            )
        }
        // Half of the four seconds of the report, which are 1,050 wide, and a quarter of them.
        let first = Self.operation("first", .succeeded)
        #expect(try timeline([attempt(1, 3_000, 4_000)], first).contains("h525\"/>"))
        #expect(
            try timeline([attempt(1, 1_000, 2_000), attempt(2, 3_000, 4_000)], first)
                .contains("h262.5\"/>")
        )
        #expect(try !timeline([attempt(1, 1_000, 2_000)], first).contains("class=\"wait\""))
        // It ran again after the second had: when that was ready is not known.
        let again = Self.operation("first", .succeeded, to: 4_000)
        #expect(
            try !timeline([attempt(1, 3_000, 4_000)], again).contains("class=\"wait\"")
        )
    }

    @Test(arguments: [
        (12, "10s"), (0.004, "2.0ms"), (70, "30s"), (5_400, "30:00"), (200_000, "12:00:00"),
    ])
    func `the marks of a timeline are at times that are easy to read`(seconds: Double, mark: String)
    {
        let length = Duration.nanoseconds(Int64(seconds * 1e9))
        let bar = Timeline.Bar(name: "a", worker: "", start: .zero, end: length, state: .failed)
        let drawing = TimelineDrawing(Timeline([bar], length: length)).svg()
        let text = String(decoding: drawing.bytes, as: UTF8.self)
        #expect(text.contains(">\(mark)</text>"), "\(text)")
        #expect((3...10).contains(text.split(separator: "class=\"time\"").count - 1))
    }
}
