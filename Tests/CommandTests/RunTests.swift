import Foundation
import Glibc
import Testing

/// What `operon run` does with a graph, by its options and the keys of its operations, wherever the
/// operations run.
@Suite(.serialized) struct RunTests {
    // MARK: - Which operations

    private static let diamond = """
        operations:
          fetch: { run: echo fetch >> ledger }
          left: { run: echo left >> ledger, dependencies: [fetch] }
          right: { command: [touch, right], dependencies: [fetch] }
          join: { wait: 1500ms, dependencies: [left, right] }
          other: { operation: nothing }
        """

    @Test func `a dry run prints what would run, and runs nothing`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write("graph.yaml", Self.diamond)
            let all = try await workspace.operon(["run", "--dry-run", file])
            let part = try await workspace.operon(["run", "--dry-run", file, "right", "left"])

            #expect(all.end == .exit(0))
            #expect(Set(all.outputLines.suffix(5)).count == 5)
            #expect(all.outputLines.contains("join: wait 1.5s"))
            #expect(all.outputLines.contains("other: nothing"))
            let names = all.outputLines.compactMap { $0.split(separator: ":").first }
            #expect(names.firstIndex(of: "fetch")! < names.firstIndex(of: "left")!)
            #expect(names.firstIndex(of: "left")! < names.firstIndex(of: "join")!)
            #expect(
                part.output == """
                    fetch: echo fetch >> ledger
                    left: echo left >> ledger
                    right: touch right

                    """
            )
            #expect(workspace.lines(of: "ledger") == [])
        }
    }

    @Test func `a dry run prints scripts as they are, and JSON for programs`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "graph.yaml",
                """
                operations:
                  list: { run: 'echo 1' }
                  each:
                    forEach: { output: list }
                    run: 'echo "$item"'
                  script:
                    run: |
                      set -e
                      touch a
                    dependencies: [each]
                """
            )
            let text = try await workspace.operon(["run", "--dry-run", file])
            #expect(
                text.output == """
                    list: echo 1
                    each.forEach: adds an operation for each element that it finds
                    each: nothing
                    script:
                        set -e
                        touch a

                    """
            )
            let json = try await workspace.operon(["run", "--dry-run", "--output", "json", file])
            #expect(json.end == .exit(0))
            #expect(
                json.output.hasPrefix(
                    #"{"operations":[{"command":["/bin/sh","-c","echo 1"],"isUpToDate":false,"#
                        + #""kind":"command","name":"list"},"#
                ),
                "\(json.output)"
            )
            let names = try await workspace.operon(["run", "--dry-run", "--output", "quiet", file])
            #expect(names.output == "list\neach.forEach\neach\nscript\n")
        }
    }

    @Test func `targets run with what they need, and nothing else`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write("graph.yaml", Self.diamond)
            let options = ["left", "--output", "json"]
            let ended = try await workspace.run(file, on: .inProcess, options)

            #expect(ended.end == .exit(0))
            #expect(try ended.report().outcomes == ["fetch": "succeeded", "left": "succeeded"])
            #expect(workspace.lines(of: "ledger") == ["fetch", "left"])
        }
    }

    @Test func `options are taken up to their limits`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "graph.yaml",
                "operations: { a: { operation: nothing } }"
            )
            let name = String(repeating: "n", count: 256)
            try workspace.startWorkers(1, slots: 4_096, ["--name", name])
            let options = ["--connect-timeout", "86400", "--output", "json"]
            let remote = try await workspace.run(file, on: .broker, options)
            let local = try await workspace.run(file, on: .inProcess, slots: 4_096, options)

            #expect(try remote.report()["a"]?.worker == name)
            #expect(try remote.report().slots == 4_096)
            #expect(try local.report().slots == 4_096)
        }
    }

    @Test func `a kind that no worker knows waits and keeps nothing else from running`()
        async throws
    {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "graph.yaml",
                "operations: { a: { operation: MergeCounts }, b: { operation: nothing } }"
            )
            let run = try workspace.startRun(file, on: .inProcess, ["--output", "json"])
            try await run.says("succeeded b")
            run.signal(SIGINT)
            let ended = try await run.end()

            #expect(ended.end == .exit(130))
            #expect(try ended.report().outcomes == ["a": "cancelled", "b": "succeeded"])
            #expect(try ended.report()["a"]?.attempts.count == 0)
        }
    }

    // MARK: - Failures

    private static let failing = """
        operations:
          bad: { run: exit 7 }
          after: { run: "true", dependencies: [bad] }
          slow: { wait: 300ms }
          later: { run: echo later >> ledger, dependencies: [slow] }
        """

    @Test(arguments: Place.allCases)
    func `after a failure the rest goes on`(place: Place) async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write("graph.yaml", Self.failing)
            let ended = try await workspace.run(file, on: place, ["--output", "json"])

            let outcomes = try ended.report().outcomes
            #expect(ended.end == .exit(1))
            #expect(
                outcomes == [
                    "bad": "failed", "after": "skipped", "slow": "succeeded", "later": "succeeded",
                ]
            )
            #expect(workspace.lines(of: "ledger") == ["later"])
        }
    }

    @Test(arguments: Place.allCases)
    func `with fail-fast a failure cancels the rest`(place: Place) async throws {
        try await Workspace.run { workspace in
            // However long the failure takes to come, this one still runs.
            let text = Self.failing.replacing("wait: 300ms", with: "wait: 1000s")
            let file = try workspace.write("graph.yaml", text)
            let options = ["--fail-fast", "--output", "json"]
            let ended = try await workspace.run(file, on: place, options)

            let report = try ended.report()
            #expect(ended.end == .exit(1))
            #expect(report["bad"]?.outcome == "failed")
            #expect(report["slow"]?.outcome == "cancelled")
            #expect(report["later"]?.outcome == "cancelled")
            #expect(report.counts.succeeded == 0)
            #expect(workspace.lines(of: "ledger") == [])
        }
    }

    @Test(arguments: Place.allCases)
    func `what fails twice and has two retries succeeds at the third attempt`(
        place: Place
    ) async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "graph.yaml",
                """
                operations:
                  flaky:
                    run: echo $OPERON_ATTEMPT >> ledger; test $OPERON_ATTEMPT -eq 3
                    retry: { limit: 2, delay: 100ms, factor: 2, jitter: 0 }
                  hopeless:
                    run: exit 9
                    retry: { limit: 1, delay: 0 }
                """
            )
            let ended = try await workspace.run(file, on: place, ["--output", "json"])

            let report = try ended.report()
            let flaky = try #require(report["flaky"])
            #expect(flaky.outcome == "succeeded")
            #expect(flaky.attempts.map(\.number) == [1, 2, 3])
            #expect(flaky.attempts.map(\.ended) == ["failed", "failed", "succeeded"])
            #expect(flaky.attempts[0].error?.exitCode == 1)
            let pauses = zip(flaky.attempts.dropFirst(), flaky.attempts).map { next, last in
                (next.start ?? 0) - (last.end ?? .infinity)
            }
            #expect(pauses[0] >= 0.1 && pauses[1] >= 0.2, "\(pauses)")
            #expect(workspace.lines(of: "ledger") == ["1", "2", "3"])
            #expect(report["hopeless"]?.outcome == "failed")
            #expect(report["hopeless"]?.error?.exitCode == 9)
            #expect(report["hopeless"]?.attempts.count == 2)
        }
    }

    @Test(arguments: Place.allCases)
    func `each way to fail has its name`(place: Place) async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "graph.yaml",
                """
                operations:
                  exit: { run: exit 3 }
                  signal: { run: "kill -SEGV $$" }
                  timeout: { run: sleep 1000, timeout: 200ms }
                  wait: { wait: 1000s, timeout: 100ms }
                  absent: { command: [no-such-program] }
                  directory: { run: ls, directory: absent }
                  output: { run: "echo '{' > $OPERON_OUTPUT" }
                  deadline: { run: sleep 1000, deadline: 2020-01-01T00:00:00Z }
                """
            )
            let ended = try await workspace.run(file, on: place, ["--output", "json"])

            let report = try ended.report()
            #expect(report.counts == Report.Counts(failed: 8, total: 8))
            #expect(report["exit"]?.error?.exitCode == 3)
            #expect(report["signal"]?.error?.signal == "SIGSEGV")
            #expect(report["timeout"]?.error?.code == "timeout")
            #expect(report["wait"]?.error?.code == "timeout")
            #expect(report["absent"]?.error?.message.contains("no-such-program") == true)
            #expect(report["directory"]?.error?.message.contains("absent") == true)
            #expect(report["output"]?.error?.message.contains("OPERON_OUTPUT") == true)
            #expect(report["deadline"]?.error?.code == "deadline")
            try await workspace.waitUntilNoProcess(named: "sleep")
        }
    }

    @Test(arguments: Place.allCases)
    func `the summary has the last lines of what failed`(place: Place) async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "graph.yaml",
                "operations: { a: { run: \"seq 1 30; exit 2\" } }"
            )
            let ended = try await workspace.run(file, on: place)

            let lines = ended.errorLines
            let start = try #require(lines.firstIndex(of: "failed a: exit code 2"))
            #expect(lines[start + 1] == "    … 10 lines before")
            #expect(lines[(start + 2)...].prefix(20) == (11...30).map { "    \($0)" }[...])
        }
    }

    @Test func `the summary says how much of a long log it leaves out, and cuts its lines`()
        async throws
    {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "graph.yaml",
                """
                operations:
                  many: { run: "seq 1 100000; exit 2" }
                  wide: { run: "head -c 50000 /dev/zero | tr '\\\\0' x; exit 2" }
                """
            )
            let report = workspace.path("report.html")
            let ended = try await workspace.operon(["run", file, "--report", report])

            // The last 64 KiB are kept: lines of six bytes and their ends.
            let lines = ended.errorLines
            let many = try #require(lines.firstIndex(of: "failed many: exit code 2"))
            let words = lines[many + 1].split(separator: " ")
            try #require(words.count == 9, "\(words)")
            let count = try #require(Int(words[1]))
            let bytes = try #require(Int(words[5]))
            let said = "… \(count) lines before, and \(bytes) bytes before those"
            #expect(words.joined(separator: " ") == said)
            let printed = (1...100_000).reduce(0) { $0 + String($1).utf8.count + 1 }
            #expect(bytes == printed - 64 << 10)
            // Of the bytes that are kept, the lines that are not shown.
            #expect((9_000...11_000).contains(count))
            let wide = try #require(lines.firstIndex(of: "failed wide: exit code 2"))
            #expect(lines[wide + 1].hasSuffix("x… (48000 more characters)"))
            let page = try workspace.read("report.html")
            for note in [
                " lines before, and \(bytes) bytes before those", "… (48000 more characters)",
            ] {
                #expect(page.contains(note), "\(note)")
            }
        }
    }

    // MARK: - Files

    @Test(arguments: Place.allCases)
    func `logs are kept, the end of what is too long`(place: Place) async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "graph.yaml",
                """
                operations:
                  quiet: { run: "true" }
                  both: { run: echo out; echo err >&2 }
                  "a/b c": { run: echo "$OPERON_ATTEMPT"; exit 1, retry: { limit: 1, delay: 0 } }
                  long: { run: "yes 0123456789abcde | head -c 2097152; echo; echo the end" }
                """
            )
            let ended = try await workspace.run(file, on: place, ["--logs", "logs/deep"])

            let names = try FileManager.default
                .contentsOfDirectory(atPath: workspace.path("logs/deep")).sorted()
            #expect(ended.end == .exit(1))
            #expect(names == ["1-both.1.log", "2-a_b_c.1.log", "2-a_b_c.2.log", "3-long.1.log"])
            #expect(
                try workspace.read("logs/deep/1-both.1.log").split(separator: "\n").sorted() == [
                    "err", "out",
                ]
            )
            #expect(try workspace.read("logs/deep/2-a_b_c.1.log") == "1\n")
            #expect(try workspace.read("logs/deep/2-a_b_c.2.log") == "2\n")
            let long = try workspace.read("logs/deep/3-long.1.log")
            #expect(long.utf8.count >= 1 << 20)
            #expect(long.hasSuffix("0123456789abcde\n\nthe end\n"))
        }
    }

    @Test func `logs are not written through links that others put into the directory`()
        async throws
    {
        try await Workspace.run { workspace in
            let file = try workspace.write("graph.yaml", "operations: { a: { run: echo printed } }")
            _ = try workspace.write("victim", "mine")
            try FileManager.default.createDirectory(
                atPath: workspace.path("logs"),
                withIntermediateDirectories: false
            )
            try FileManager.default.createSymbolicLink(
                atPath: workspace.path("logs/0-a.1.log"),
                withDestinationPath: workspace.path("victim")
            )
            let ended = try await workspace.run(file, on: .inProcess, ["--logs", "logs"])
            #expect(ended.end == .exit(0), "\(ended.errors)")
            #expect(try workspace.read("victim") == "mine")
            #expect(try workspace.read("logs/0-a.1.log") == "printed\n")
        }
    }

    @Test func `a trace replaces a file, and is written to where a link leads`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write("graph.yaml", "operations: { a: { wait: 1ms } }")
            let old = String(repeating: "old ", count: 10_000)
            _ = try workspace.write("trace.json", old)
            _ = try workspace.write("elsewhere", old)
            try FileManager.default.createSymbolicLink(
                atPath: workspace.path("link"),
                withDestinationPath: workspace.path("elsewhere")
            )
            for name in ["trace.json", "link"] {
                let ended = try await workspace.run(file, on: .inProcess, ["--trace", name])
                #expect(ended.end == .exit(0), "\(ended.errors)")
            }
            for name in ["trace.json", "elsewhere"] {
                let text = try workspace.read(name)
                #expect(text.hasPrefix("[") && text.hasSuffix("]\n") && !text.contains("old"))
            }
            let link = workspace.path("link")
            let target = try FileManager.default.destinationOfSymbolicLink(atPath: link)
            #expect(target == workspace.path("elsewhere"))
        }
    }

    @Test(arguments: Place.allCases)
    func `a trace is JSON with every attempt in a slot of its worker`(place: Place) async throws {
        struct Event: Decodable {
            let name: String
            let ph: String
            let pid: Int
            let ts: Double?
            let dur: Double?
            let tid: Int?
        }
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "graph.yaml",
                """
                operations:
                  a: { wait: 50ms }
                  b: { wait: 50ms }
                  "c \\"quoted\\"": { wait: 50ms, dependencies: [a, b] }
                """
            )
            let ended = try await workspace.run(file, on: place, ["--trace", "trace.json"])

            let data = try Data(contentsOf: URL(fileURLWithPath: workspace.path("trace.json")))
            let events = try JSONDecoder().decode([Event].self, from: data)
            let runs = events.filter { $0.ph == "X" }
            #expect(ended.end == .exit(0))
            #expect(Set(runs.map(\.name)) == ["a", "b", "c \"quoted\""])
            #expect(runs.allSatisfy { ($0.dur ?? 0) >= 50_000 })
            #expect(runs.allSatisfy { (1...4).contains($0.tid ?? 0) })
            for run in runs {
                let others = runs.filter { $0.pid == run.pid && $0.tid == run.tid }
                let later = others.filter { ($0.ts ?? 0) > (run.ts ?? 0) }
                #expect(later.allSatisfy { $0.ts ?? 0 >= (run.ts ?? 0) + (run.dur ?? 0) - 1 })
            }
        }
    }
}
