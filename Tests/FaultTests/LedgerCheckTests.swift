import Foundation
import OperonFaultKit
import Testing

/// A checker that finds nothing may be blind: every violation is planted once, and must be found.
@Suite struct LedgerCheckTests {
    /// Three operations, the last behind the others; the second was lost once.
    private static let attempts = [
        "a": ["succeeded"], "b": ["lost", "succeeded"], "c": ["succeeded"],
    ]
    private static let dependencies = ["c": ["a", "b"]]
    private static let sound: [Ledger.Entry] = [
        .init(.start, "a"), .init(.start, "b"), .init(.end, "a"), .init(.start, "b", attempt: 2),
        .init(.end, "b", attempt: 2), .init(.start, "c"), .init(.end, "c"),
    ]

    private static func report(
        _ attempts: [String: [String]] = attempts,
        outcomes: [String: String] = [:]
    ) throws -> Report {
        let operations = attempts.sorted { $0.key < $1.key }.map { name, endings in
            let attempts = endings.enumerated().map { index, ended in
                "{\"number\": \(index + 1), \"worker\": \"w\", \"ended\": \"\(ended)\"}"
            }
            return "{\"name\": \"\(name)\", \"outcome\": \"\(outcomes[name] ?? "succeeded")\", "
                + "\"attempts\": [\(attempts.joined(separator: ", "))]}"
        }
        let text = """
            {"version": 1, "graph": "g", "startedAt": "", "makespan": 0, "lowerBound": 0,
            "criticalPath": 0, "work": 0, "slots": 1, "counts": {"succeeded": 0, "failed": 0,
            "cancelled": 0, "skipped": 0, "unfinished": 0, "total": 0},
            "operations": [\(operations.joined(separator: ", "))]}
            """
        return try JSONDecoder().decode(Report.self, from: Data(text.utf8))
    }

    private static func check(
        _ entries: [Ledger.Entry],
        _ report: Report,
        limit: Int? = 2
    ) -> LedgerCheck {
        LedgerCheck(Ledger(entries), against: report, dependencies: dependencies, limit: limit)
    }

    @Test func `a sound run has no violation, and its repetitions are counted`() throws {
        let check = Self.check(Self.sound, try Self.report())

        #expect(check.violations == [])
        #expect(check.duplicates == ["b": 1])
        // The lost attempt has no end, so nobody knows whether it still ran.
        #expect(check.atOnceMax == 1)
    }

    @Test func `an end without which nothing can have succeeded is missed`() throws {
        let check = Self.check(Array(Self.sound.dropLast()), try Self.report())

        #expect(check.violations == [.noEnd("c", attempt: 1)])
    }

    @Test func `the end of a lost attempt is not the end of the operation`() throws {
        var entries = Self.sound
        entries[4].attempt = 1

        let check = Self.check(entries, try Self.report())

        #expect(
            check.violations == [
                .noEnd("b", attempt: 2), .startedEarly("c", attempt: 1, dependency: "b"),
            ]
        )
    }

    @Test func `a start before the end of a dependency is found`() throws {
        var entries = Self.sound
        entries.swapAt(4, 5)

        let check = Self.check(entries, try Self.report())

        #expect(check.violations == [.startedEarly("c", attempt: 1, dependency: "b")])
    }

    @Test func `an attempt that starts twice is found`() throws {
        let check = Self.check([.init(.start, "a")] + Self.sound, try Self.report())

        #expect(check.violations == [.startedTwice("a", attempt: 1)])
        #expect(check.duplicates == ["a": 1, "b": 1])
    }

    @Test func `an attempt that the report does not know is found`() throws {
        let stray = Ledger.Entry(.start, "a", attempt: 7)

        let check = Self.check(Self.sound + [stray], try Self.report())

        #expect(check.violations == [.unknownAttempt("a", attempt: 7)])
    }

    @Test func `an outcome other than success is found`() throws {
        let check = Self.check(Self.sound, try Self.report(outcomes: ["a": "failed"]))

        #expect(check.violations == [.notSucceeded("a", outcome: "failed")])
    }

    @Test func `an attempt behind one that succeeded is found`() throws {
        var attempts = Self.attempts
        attempts["b"] = ["succeeded", "succeeded"]

        let check = Self.check(Self.sound, try Self.report(attempts))

        #expect(check.violations == [.repeated("b", attempt: 2, after: "succeeded")])
    }

    @Test func `an owner that came back in time ends the operation`() throws {
        var attempts = Self.attempts
        attempts["b"] = ["succeeded", "returned"]
        let entries: [Ledger.Entry] = [
            .init(.start, "a"), .init(.start, "b"), .init(.end, "a"), .init(.end, "b"),
            .init(.start, "c"), .init(.end, "c"),
        ]

        let check = Self.check(entries, try Self.report(attempts))

        #expect(check.violations == [])
        #expect(check.duplicates == [:])
        #expect(check.atOnceMax == 2)
    }

    @Test func `an attempt beside one that was given back is found`() throws {
        var attempts = Self.attempts
        attempts["b"] = ["returned", "succeeded"]
        var entries = Self.sound
        entries.insert(.init(.end, "b"), at: 4)

        let check = Self.check(entries, try Self.report(attempts))

        #expect(check.violations == [.ranBeside("b", attempt: 2, earlier: 1)])
    }

    @Test func `more at once than may be is found`() throws {
        let entries: [Ledger.Entry] = [
            .init(.start, "a"), .init(.start, "b", attempt: 2), .init(.end, "b", attempt: 2),
            .init(.end, "a"), .init(.start, "c"), .init(.end, "c"),
        ]

        let check = Self.check(entries, try Self.report(), limit: 1)

        #expect(check.violations == [.tooManyAtOnce(2, limit: 1)])
    }

    @Test func `an operation that was submitted and is not told is found`() throws {
        var attempts = Self.attempts
        attempts["c"] = nil

        let check = Self.check(Array(Self.sound.dropLast(2)), try Self.report(attempts))

        #expect(check.violations == [.missing("c")])
    }

    /// The second operation starts again at 20 s.
    private static func reasons(
        _ endings: [String],
        faults: [FaultLog.Entry] = [],
        failing: Set<String> = []
    ) throws -> [LedgerCheck.Violation] {
        var attempts = attempts
        attempts["b"] = endings
        var entries = sound
        entries[3].time = .seconds(20)
        return LedgerCheck(
            Ledger(entries),
            against: try report(attempts).operations,
            dependencies: dependencies,
            faults: FaultLog(faults),
            failing: failing
        ).violations
    }

    @Test(arguments: ["lost", "returned", "crashed"])
    func `an attempt that is given up without a fault of its worker is found`(
        ended: String
    ) throws {
        func fault(_ worker: String?, at time: Int) -> FaultLog.Entry {
            FaultLog.Entry(
                .workerKilled,
                worker: worker,
                begin: .seconds(time),
                end: .seconds(time),
                recovery: nil
            )
        }
        let found = [LedgerCheck.Violation.givenUp("b", attempt: 1, ended: ended)]
        let endings = [ended, "succeeded"]
        #expect(try Self.reasons(endings) == found)
        #expect(try Self.reasons(endings, faults: [fault("other", at: 10)]) == found)
        #expect(try Self.reasons(endings, faults: [fault("w", at: 21)]) == found)
        #expect(try Self.reasons(endings, faults: [fault("w", at: 10)]) == [])
        #expect(try Self.reasons(endings, faults: [fault(nil, at: 10)]) == [])
    }

    @Test func `an attempt that fails although nothing makes it fail is found`() throws {
        let endings = ["failed", "succeeded"]
        #expect(try Self.reasons(endings) == [.failed("b", attempt: 1)])
        #expect(try Self.reasons(endings, failing: ["b"]) == [])
    }

    @Test(arguments: [
        "start 1.00 a 1", "started 1.00 a 1 7", "start one a 1 7", "start 1.00 a b 1 7 w", "x",
    ])
    func `a line that no operation writes is found`(line: String) throws {
        let text = "start 1.00 a 1 7\n\(line)\nend 2.50 a 1 7\n"
        let ledger = Ledger(text: text)

        let check = LedgerCheck(ledger, against: try Self.report(["a": ["succeeded"]]))

        #expect(check.violations == [.unreadable(line)])
        #expect(ledger.entries[1].time - ledger.entries[0].time == .seconds(1.5))
    }

    @Test func `what the script writes is read`() async throws {
        try await Workspace.run { workspace in
            let before = try Ledger.now()
            let file = try workspace.write(
                "graph.yaml",
                "operations:\n"
                    + LayeredGraph.operation(
                        "a",
                        Ledger.script("test \"$1\" = \"\"", in: workspace.path("ledger"))
                    )
            )
            let ended = try await workspace.startRun(file, on: .inProcess, ["--output", "json"])
                .end()

            let ledger = try Ledger(path: workspace.path("ledger"))
            #expect(ledger.unreadable == [])
            #expect(ledger.entries.map(\.kind) == [.start, .end])
            #expect(ledger.entries.map(\.operation) == ["a", "a"])
            #expect(Set(ledger.entries.map(\.process)).count == 1)
            let after = try Ledger.now()
            #expect(ledger.entries.allSatisfy { before <= $0.time && $0.time <= after })
            #expect(LedgerCheck(ledger, against: try ended.report()).violations == [])
        }
    }
}
