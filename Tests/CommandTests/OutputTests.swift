import Foundation
import Testing

/// What `operon run` shows: to a program, to a pipe, to terminals of several kinds.
@Suite(.serialized) struct OutputTests {
    /// One of each outcome, in an order that one slot makes certain. The waits are long enough to
    /// be shown as running.
    private static let graph = """
        name: mixed
        operations:
          a: { wait: 0.3s, priority: veryHigh }
          b: { run: "sleep 0.3; echo said; echo why >&2; exit 3", dependencies: [a] }
          c: { run: "true", dependencies: [b] }
        """

    /// Durations differ from run to run.
    private static func masked(_ text: String) -> String {
        text.replacing(/\d+(\.\d+)? ?(ms|s)\b/, with: "TIME")
    }

    // MARK: - Pipes

    @Test func `on a pipe there is one line per change of state`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write("graph.yaml", Self.graph)
            let ended = try await workspace.run(file, on: .inProcess, slots: 1)

            #expect(ended.end == .exit(1))
            #expect(ended.output == "")
            #expect(
                Self.masked(ended.errors) == """
                    [0/3] running a
                    [1/3] succeeded a (TIME)
                    [1/3] running b
                    [2/3] failed b (TIME): exit code 3
                    [3/3] skipped c: because of “b”
                    failed b: exit code 3
                        said
                        why
                    1 skipped because “b” failed
                    mixed: 3 operations: 1 succeeded, 1 failed, 1 skipped
                    took TIME; the shortest possible on 1 slot is TIME

                    """
            )
        }
    }

    @Test func `quiet says nothing`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write("graph.yaml", Self.graph)
            let ended = try await workspace.run(file, on: .inProcess, ["--output", "quiet"])

            #expect(ended.end == .exit(1))
            #expect(ended.output == "")
            #expect(ended.errors == "")
        }
    }

    @Test(arguments: Place.allCases)
    func `the JSON form has the same shape wherever the graph ran`(place: Place) async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write("graph.yaml", Self.graph)
            if place == .broker { try workspace.startWorkers(1, slots: 1) }
            let ended = try await workspace.run(file, on: place, slots: 1, ["--output", "json"])

            let worker = place == .broker ? "w1" : "local"
            let text = ended.output.replacing(/"startedAt":"[^"]*"/, with: "\"startedAt\":\"T\"")
                .replacing(/"([a-zA-Z]+)":-?\d+\.\d+/) { "\"\($0.output.1)\":0.5" }
            #expect(
                text == """
                    {"version":1,"graph":"mixed","startedAt":"T","counts":{"succeeded":1,\
                    "failed":1,"cancelled":0,"skipped":1,"unfinished":0,"total":3},\
                    "makespan":0.5,"lowerBound":0.5,"criticalPath":0.5,"work":0.5,"slots":1,\
                    "operations":[
                    {"name":"a","outcome":"succeeded","start":0.5,"end":0.5,"worker":"\(worker)",\
                    "attempts":[{"number":1,"worker":"\(worker)","start":0.5,"end":0.5,\
                    "ended":"succeeded"}]},
                    {"name":"b","outcome":"failed","error":{"code":"exit","message":"exit code 3",\
                    "exitCode":3},"start":0.5,"end":0.5,"worker":"\(worker)","attempts":[\
                    {"number":1,"worker":"\(worker)","start":0.5,"end":0.5,"ended":"failed",\
                    "error":{"code":"exit","message":"exit code 3","exitCode":3}}],\
                    "log":"said\\nwhy\\n"},
                    {"name":"c","outcome":"skipped","start":null,"end":0.5,"worker":null,\
                    "attempts":[],"cause":{"dependency":"b","root":"b","rootOutcome":"failed"}}
                    ]}

                    """
            )
        }
    }

    @Test func `the numbers of a report agree with one another`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "graph.yaml",
                """
                operations:
                  a: { wait: 200ms }
                  b: { wait: 100ms, dependencies: [a] }
                  c: { wait: 50ms }
                """
            )
            let ended = try await workspace.run(file, on: .inProcess, ["--output", "json"])

            let report = try ended.report()
            let spans = report.operations.map { ($0.end ?? 0) - ($0.start ?? 0) }
            #expect(zip(spans, [0.2, 0.1, 0.05]).allSatisfy { $0 >= $1 })
            #expect(abs(report.work - spans.reduce(0, +)) < 1e-4)
            #expect(abs(report.criticalPath - (spans[0] + spans[1])) < 1e-4)
            #expect(report.lowerBound == max(report.criticalPath, report.work / 4))
            #expect(report.makespan >= report.lowerBound)
            #expect(report.startedAt.contains(/^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/))
        }
    }

    // MARK: - Terminals

    private static func steps(_ count: Int) -> String {
        let lines = (1...count).map { "  step-\($0): { wait: 120ms }\n" }
        return "name: a name that is longer than it should be\noperations:\n" + lines.joined()
    }

    @Test(arguments: [80, 30, 12])
    func `a terminal shows one line that is overprinted in place`(columns: UInt16) async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write("graph.yaml", Self.steps(12))
            let run = try workspace.startRun(
                file,
                on: .inProcess,
                slots: 1,
                streams: .terminal(columns: columns, rows: 24)
            )
            let ended = try await run.end()

            let screen = TerminalScreen(columns: Int(columns), ended.output)
            #expect(ended.end == .exit(0))
            #expect(screen.unknown == [])
            #expect(screen.redraws >= 3)
            // Had one line been wider than the terminal, a piece of it would be left above.
            let first = screen.lines.first ?? ""
            #expect(first.contains("12/12"), "\(screen.lines)")
            #expect(first.count < Int(columns))
            let rest = screen.lines.dropFirst().joined()
            #expect(rest.hasPrefix("a name"))
            #expect(rest.contains("12 succeeded"))
            #expect(!rest.contains("/12"))
        }
    }

    @Test func `a failure's last lines stand above nothing that is drawn later`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write("graph.yaml", Self.graph)
            let run = try workspace.startRun(
                file,
                on: .inProcess,
                streams: .terminal(columns: 100, rows: 24)
            )
            let ended = try await run.end()

            let screen = TerminalScreen(columns: 100, ended.output)
            #expect(ended.end == .exit(1))
            let counts = try #require(screen.lines.firstIndex { $0.contains("3/3") })
            #expect(screen.lines[..<counts].last == "skipped c: because of “b”")
            #expect(
                Array(screen.lines[(counts + 1)...].prefix(3)) == [
                    "failed b: exit code 3", "    said", "    why",
                ]
            )
            #expect(screen.lines.last?.hasPrefix("took ") == true)
        }
    }

    @Test(arguments: [
        ([:] as [String: String], true, true), (["NO_COLOR": "1"], false, true),
        (["NO_COLOR": ""], true, true), (["CLICOLOR": "0"], false, true),
        (["TERM": "dumb"], false, false),
    ])
    func `the environment decides about colours and overprinting`(
        environment: [String: String],
        hasColors: Bool,
        overprints: Bool
    ) async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write("graph.yaml", Self.steps(3))
            let run = try workspace.startRun(
                file,
                on: .inProcess,
                slots: 1,
                environment: environment,
                streams: .terminal(columns: 80, rows: 24)
            )
            let ended = try await run.end()

            let screen = TerminalScreen(columns: 80, ended.output)
            #expect(screen.unknown == [])
            #expect((screen.colors > 0) == hasColors)
            #expect((screen.redraws > 0) == overprints)
            if !overprints {
                #expect(!ended.output.contains("\u{1B}"))
                #expect(ended.output.allSatisfy { $0.isASCII })
                #expect(screen.lines.contains("[0/3] running step-1"))
            }
        }
    }

    @Test func `a pipe has colours if they are forced`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write("graph.yaml", Self.graph)
            let forced: [String: String?] = ["CLICOLOR_FORCE": "1"]
            let ended = try await workspace.run(file, on: .inProcess, environment: forced)

            let screen = TerminalScreen(columns: 200, ended.errors)
            #expect(screen.colors > 0)
            #expect(screen.redraws == 0)
        }
    }

    @Test func `names and output cannot speak to the terminal`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "graph.yaml",
                """
                name: "\u{202E}graph"
                operations:
                  a: { run: 'printf "\\033[2Jgone\\n\\007" ; exit 1' }
                """
            )
            let run = try workspace.startRun(
                file,
                on: .inProcess,
                streams: .terminal(columns: 80, rows: 24)
            )
            let ended = try await run.end()

            #expect(!ended.output.contains("\u{1B}[2J"))
            #expect(!ended.output.contains("\u{7}"))
            #expect(!ended.output.contains("\u{202E}"))
            #expect(ended.output.contains("gone"))
        }
    }
}
