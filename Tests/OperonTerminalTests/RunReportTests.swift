import Foundation
import OperonModel
import OperonTerminal
import Testing

@Suite struct RunReportTests {
    /// One of everything.
    static let report = RunReport(
        graph: "wordcount",
        startedAt: WallTime(nanosecondsSince1970: 1_795_231_386_250_000_000),
        makespan: .milliseconds(4_000),
        criticalPath: .milliseconds(2_500),
        work: .milliseconds(6_400),
        slots: 2,
        operations: [
            OperationReport(
                name: "split",
                outcome: .succeeded,
                start: .milliseconds(5),
                end: .milliseconds(1_005),
                worker: "w1",
                attempts: [
                    AttemptReport(
                        number: 1,
                        worker: "w0",
                        start: .milliseconds(1),
                        end: nil,
                        ended: .lost
                    ),
                    AttemptReport(
                        number: 2,
                        worker: "w1",
                        start: .milliseconds(5),
                        end: .milliseconds(1_005),
                        ended: .succeeded
                    ),
                ]
            ),
            OperationReport(
                name: "count \"a\"\u{1B}[2J",
                outcome: .failed,
                error: .exit(code: 3),
                start: .seconds(1),
                end: .seconds(2),
                worker: "w1",
                attempts: [
                    AttemptReport(
                        number: 1,
                        worker: "w1",
                        start: .seconds(1),
                        end: .seconds(2),
                        ended: .failed,
                        error: .exit(code: 3)
                    )
                ],
                log: "first\n\u{1B}[31mno such file\u{1B}[0m\n"
            ),
            OperationReport(
                name: "merge",
                outcome: .skipped,
                end: .seconds(2),
                cause: SkipCause(
                    dependency: "count \"a\"",
                    root: "count \"a\"",
                    rootOutcome: .failed
                )
            ),
            OperationReport(
                name: "check",
                outcome: .skipped,
                end: .seconds(2),
                cause: SkipCause(dependency: "merge", root: "count \"a\"", rootOutcome: .failed)
            ),
            OperationReport(
                name: "tidy",
                outcome: .cancelled,
                reason: "not needed",
                end: .seconds(3)
            ),
            OperationReport(name: "late", outcome: nil),
        ]
    )

    // MARK: - JSON

    struct Decoded: Decodable {
        struct Failure: Decodable {
            var code: String
            var message: String
            var exitCode: Int?
        }
        struct Attempt: Decodable {
            var number: Int
            var worker: String
            var start: Double?
            var end: Double?
            var ended: String
            var error: Failure?
        }
        struct Cause: Decodable {
            var dependency: String
            var root: String
            var rootOutcome: String
        }
        struct Operation: Decodable {
            var name: String
            var outcome: String?
            var error: Failure?
            var reason: String?
            var start: Double?
            var end: Double?
            var worker: String?
            var attempts: [Attempt]
            var cause: Cause?
            var log: String?
        }
        var version: Int
        var graph: String
        var startedAt: String
        var counts: [String: Int]
        var makespan: Double
        var lowerBound: Double
        var criticalPath: Double
        var work: Double
        var slots: Int
        var operations: [Operation]
    }

    func decoded(_ report: RunReport) throws -> Decoded {
        try JSONDecoder().decode(Decoded.self, from: Data(report.json()))
    }

    @Test func `the JSON form says everything`() throws {
        let decoded = try decoded(Self.report)

        #expect(decoded.version == 1)
        #expect(decoded.graph == "wordcount")
        #expect(decoded.startedAt == "2026-11-21T03:23:06.250Z")
        #expect(
            decoded.counts == [
                "succeeded": 1, "failed": 1, "cancelled": 1, "skipped": 2, "unfinished": 1,
                "total": 6,
            ]
        )
        #expect(decoded.makespan == 4)
        #expect(decoded.criticalPath == 2.5)
        #expect(decoded.work == 6.4)
        #expect(decoded.lowerBound == 3.2)
        #expect(decoded.slots == 2)
        #expect(decoded.operations.map(\.name) == Self.report.operations.map(\.name))
        #expect(
            decoded.operations.map(\.outcome) == [
                "succeeded", "failed", "skipped", "skipped", "cancelled", nil,
            ]
        )
    }

    @Test func `the JSON form tells every attempt`() throws {
        let split = try decoded(Self.report).operations[0]

        #expect(split.worker == "w1")
        #expect(split.start == 0.005)
        #expect(split.end == 1.005)
        #expect(split.attempts.map(\.number) == [1, 2])
        #expect(split.attempts.map(\.worker) == ["w0", "w1"])
        #expect(split.attempts.map(\.ended) == ["lost", "succeeded"])
        #expect(split.attempts[0].start == 0.001)
        #expect(split.attempts[0].end == nil)
    }

    @Test func `the JSON form says why`() throws {
        let operations = try decoded(Self.report).operations

        #expect(operations[1].error?.code == "exit")
        #expect(operations[1].error?.message == "exit code 3")
        #expect(operations[1].error?.exitCode == 3)
        #expect(operations[1].attempts[0].error?.code == "exit")
        #expect(operations[1].log == "first\n\u{1B}[31mno such file\u{1B}[0m\n")
        #expect(operations[3].cause?.dependency == "merge")
        #expect(operations[3].cause?.root == "count \"a\"")
        #expect(operations[3].cause?.rootOutcome == "failed")
        #expect(operations[4].reason == "not needed")
    }

    @Test func `every character survives the JSON form`() throws {
        var text = String(String.UnicodeScalarView((0..<0x250).compactMap(Unicode.Scalar.init)))
        text += "\u{2028}\u{2029}\u{FEFF}数🎉\u{10FFFF}"
        var report = Self.report
        report.graph = text

        #expect(try decoded(report).graph.unicodeScalars.elementsEqual(text.unicodeScalars))
    }

    @Test(arguments: [
        OperationError.kindUnknown("k"), .thrown(type: "T", message: "m", payload: [1]),
        .exit(code: 1), .signal(name: "SIGSEGV"), .timeout, .deadline, .workerLost,
        .inputTooLarge(bytes: 2, limit: 1), .outputTooLarge(bytes: 2, limit: 1),
        .undecodable("u"), .versionUnsupported("v"), .conditionFailed(name: "c"),
    ])
    func `every error has its code and sentence in the JSON form`(error: OperationError) throws {
        var report = Self.report
        report.change { $0[1].error = error }

        let decoded = try decoded(report).operations[1].error

        #expect(decoded?.code == error.code)
        #expect(decoded?.message == error.description)
    }

    @Test func `a large report is written in pieces that make one document`() throws {
        var report = Self.report
        let operation = report.operations[0]
        report.operations = OperationReports(count: 100_000) { index in
            var copy = operation
            copy.name = "operation \(index)"
            return copy
        }
        var longest = 0
        var pieces = 0
        var bytes: [UInt8] = []

        report.writeJSON { piece in
            longest = max(longest, piece.count)
            pieces += 1
            bytes += piece
        }

        #expect(pieces > 100)
        #expect(longest < 128 << 10)
        let object = try JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any]
        let operations = object?["operations"] as? [[String: Any]]
        #expect(operations?.count == 100_000)
        #expect(operations?.last?["name"] as? String == "operation 99999")
    }

    @Test func `a report of nothing is a document too`() throws {
        var report = Self.report
        report.operations = []
        report.work = .zero
        report.criticalPath = .zero
        report.slots = 0

        let decoded = try decoded(report)

        #expect(decoded.operations.isEmpty)
        #expect(decoded.lowerBound == 0)
    }

    @Test func `an operation that was up to date has succeeded, and says so`() throws {
        var report = Self.report
        report.change { $0[0].isUpToDate = true }

        let json = String(decoding: report.json(), as: UTF8.self)
        #expect(json.components(separatedBy: "\"isUpToDate\":true").count == 2)
        #expect(try decoded(report).counts["succeeded"] == 1)
        let counts = report.summary(style: unicode).last { $0.hasPrefix("wordcount") }
        #expect(counts?.contains(": 1 succeeded (1 up to date), 1 failed") == true)
    }

    // MARK: - Text

    @Test func `the summary says what failed, what did not run and why`() {
        #expect(
            Self.report.summary(style: unicode) == [
                "failed count \"a\": exit code 3",
                "    first",
                "    no such file",
                "2 skipped because “count \"a\"” failed",
                "1 cancelled: not needed",
                "wordcount: 6 operations: 1 succeeded, 1 failed, 1 cancelled, 2 skipped,"
                    + " 1 unfinished",
                "took 4.0 s; the shortest possible on 2 slots is 3.2 s",
            ]
        )
    }

    @Test(arguments: [
        (1, "1 was still running: op1"),
        (7, "7 were still running: op1, op2, op3, op4, op5, … and 2 more"),
    ])
    func `what still ran when the run ended is named`(count: Int, line: String) {
        var report = Self.report
        report.operations = OperationReports(
            (1...count).map { number in
                let attempt = AttemptReport(
                    number: 1,
                    worker: "w",
                    start: .zero,
                    end: nil,
                    ended: .unfinished
                )
                return OperationReport(name: "op\(number)", outcome: nil, attempts: [attempt])
            } + [OperationReport(name: "late", outcome: nil)]
        )
        #expect(report.summary(style: unicode).first == line)
    }

    @Test func `a run that went well is two lines`() {
        var report = Self.report
        report.operations = [report.operations[0]]
        report.slots = 1

        #expect(
            report.summary(style: .plain) == [
                "wordcount: 1 operation: 1 succeeded",
                "took 4.0 s; the shortest possible on 1 slot is 6.4 s",
            ]
        )
    }

    @Test func `of many failures few are shown, each with its last lines`() {
        var report = Self.report
        let failed = OperationReport(
            name: "f",
            outcome: .failed,
            error: .timeout,
            log: (1...30).map { "line \($0)\n" }.joined()
        )
        report.operations = OperationReports(count: 23) { _ in failed }

        let lines = report.summary(style: unicode)

        #expect(lines.count(where: { $0.hasPrefix("failed f: timed out") }) == 20)
        #expect(lines[1] == "    … 10 lines before")
        #expect(lines[2] == "    line 11")
        #expect(lines[21] == "    line 30")
        let rest = [
            "… and 3 more failed: --output json names all",
            "… 18 more logs are not shown: --logs DIR keeps all logs of a run",
        ]
        #expect(lines.contains(rest))
        let kept = report.summary(style: unicode, limits: .init(logs: "in logs"))
        #expect(kept.contains("… 18 more logs are in logs"))
    }

    @Test(arguments: [
        (0, 20, nil), (0, 21, "… 1 line before"), (1, 20, "… 1 byte before"),
        (70_000, 25, "… 5 lines before, and 70000 bytes before those"),
    ])
    func `of a log whose end is shown, the summary says how much came before`(
        bytes: UInt64,
        lines: Int,
        note: String?
    ) {
        var failed = OperationReport(
            name: "f",
            outcome: .failed,
            error: .timeout,
            log: (1...lines).map { "line \($0)\n" }.joined()
        )
        failed.logBytesBefore = bytes
        var report = Self.report
        report.operations = OperationReports(count: 1) { [failed] _ in failed }

        let shown = report.summary(style: unicode)

        #expect(shown[1] == "    " + (note ?? "line 1"))
        var json = ""
        report.writeJSON { json += String(decoding: $0, as: UTF8.self) }
        #expect(json.contains("\"isLogCut\":true") == (bytes > 0))
    }

    /// The logs of very many failures are not kept, but counted.
    @Test func `a log of which nothing is kept is one that is not shown`() {
        var failed = OperationReport(name: "f", outcome: .failed, error: .timeout)
        failed.logBytesBefore = 70_000
        var report = Self.report
        report.operations = OperationReports(count: 7) { [failed] _ in failed }

        let shown = report.summary(style: unicode)

        #expect(shown[1] == "    … 70000 bytes before")
        #expect(shown.contains("… 2 more logs are not shown: --logs DIR keeps all logs of a run"))
    }

    @Test func `skipped operations are grouped by what they are skipped for`() {
        var report = Self.report
        func skipped(_ root: String, _ outcome: OutcomeKind) -> OperationReport {
            OperationReport(
                name: "s",
                outcome: .skipped,
                cause: SkipCause(dependency: "d", root: root, rootOutcome: outcome)
            )
        }
        report.change { operations in
            operations = [skipped("first", .cancelled)]
            operations += Array(repeating: skipped("most", .failed), count: 12)
            operations += [skipped("handler", .succeeded)]
            operations += (0..<20).map { skipped("r\($0)", .failed) }
        }

        let lines = report.summary(style: unicode)

        #expect(lines[0] == "12 skipped because “most” failed")
        #expect(lines[1] == "1 skipped because “first” was cancelled")
        #expect(lines[2] == "1 skipped because “handler” succeeded")
        #expect(lines[10] == "… and 13 more, for 13 other reasons")
    }

    @Test func `nothing untrusted reaches the terminal as it is`() {
        var report = Self.report
        report.graph = "g\u{1B}[1m"
        report.change { operations in
            operations[1].error = .thrown(type: "T", message: "m\u{1B}[5m", payload: [])
            operations[2].cause?.root = "r\u{1B}[5m"
            operations[4].reason = "why\u{1B}[5m"
        }

        let text = report.summary(style: unicode).joined()

        #expect(!text.contains("\u{1B}"))
    }

    @Test func `an ASCII terminal gets ASCII`() {
        let text = Self.report.summary(style: ascii).joined()

        #expect(text.utf8.allSatisfy { $0 < 0x80 })
        #expect(text.contains("2 skipped because \"count \"a\"\" failed"))
    }
}

extension RunReport {
    fileprivate mutating func change(_ body: (inout [OperationReport]) -> Void) {
        var reports = Array(operations)
        body(&reports)
        operations = OperationReports(reports)
    }
}
