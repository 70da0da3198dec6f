import Foundation
import Glibc
import OperonCore
import OperonFaultKit
import OperonModel
import Testing

/// `operon logs` and `operon run --show-output`, against a real coordinator and its worker.
@Suite struct LogCommandTests {
    private static let flaky = """
        name: g
        operations:
          a:
            run: 'echo begun; until [ -e go ]; do sleep 0.02; done; rm go; echo ended; exit 1'
            retry: { limit: 1, delay: 0s }
        """

    private static let milliseconds = Date.ISO8601FormatStyle(includingFractionalSeconds: true)

    /// Asks until the command prints this: output travels on its own.
    private func wait(_ up: Up, _ arguments: [String], for text: String) async throws {
        while try await up.operon(arguments).output != text {
            // Nobody is told of it but who asks.
            try await Task.sleep(for: .milliseconds(20))
        }
    }

    private func go(_ workspace: Workspace, _ program: Program, _ text: String) async throws {
        _ = try workspace.write("go", "")
        try await program.says(text)
    }

    @Test(.timeLimit(.minutes(3)))
    func `what runs shows what it printed so far, and each attempt once`() async throws {
        try await Workspace.run { workspace in
            let up = try await Up(workspace)
            let file = try workspace.write("g.yaml", Self.flaky)
            #expect(try await up.operon("submit", file).end == .exit(0))
            try await wait(up, ["logs", "g/a"], for: "begun\n")

            let arguments = ["logs", "g/a", "--follow", "--coordinator", up.address]
            let follower = try workspace.start("operon", arguments)
            try await follower.says("begun\n")
            _ = try workspace.write("go", "")
            try await follower.says("begun\n", times: 2)
            let soFar = try await up.operon("logs", "g/a")
            #expect(soFar.output == "begun\nended\nbegun\n")
            #expect(soFar.errors == "attempt 1:\nattempt 2:\n")
            #expect(try await up.operon("logs", "g/a", "--attempt", "2").output == "begun\n")
            #expect(try await up.operon("logs", "g/a", "--tail", "2").output == "ended\nbegun\n")
            #expect(try await up.operon("logs", "g/a", "--tail", "0").output == "")
            let past = try await up.operon("logs", "g/a", "--since", "1h")
            #expect(past.output == "begun\nended\nbegun\n")
            // The first attempt has ended before this moment, the second runs.
            let moment = Date.now.formatted(Self.milliseconds)
            let since = try await up.operon("logs", "g/a", "--since", moment)
            #expect(since.output == "begun\n")
            #expect(since.errors == "attempt 2:\n")
            let ofGraph = try await up.operon("logs", "g", "--since", moment)
            #expect(ofGraph.output == "a (attempt 2) | begun\n")

            _ = try workspace.write("go", "")
            let ended = try await follower.end()
            #expect(ended.end == .exit(0))
            #expect(ended.output == "begun\nended\nbegun\nended\n")
            #expect(ended.errors == "attempt 2:\n")

            let later = Date.now.formatted(Self.milliseconds)
            let nothing = try await up.operon("logs", "g/a", "--since", later)
            #expect(nothing.output == "" && nothing.errors == "" && nothing.end == .exit(0))
            let all = try await up.operon("logs", "g/a", "--since", moment, "--follow")
            #expect(all.output == "begun\nended\n")
            #expect(try await up.operon("logs", "g/a", "--since", "soon").end == .exit(2))

            let json = try await up.operon("logs", "g/a", "--output", "json")
            let numbers = try json.outputLines.map { line in
                try JSONDecoder().decode(LogView.self, from: Data(line.utf8)).number
            }
            #expect(numbers == [1, 2])
            #expect(try await up.operon("logs", "g/a", "--attempt", "0").end == .exit(2))
            #expect(try await up.operon("logs", "g/a", "--tail", "-1").end == .exit(2))
            #expect(try await up.operon("logs", "g/none").end == .exit(6))
        }
    }

    @Test func `what a worker took with it is told, and so is an attempt that never was`()
        async throws
    {
        try await Workspace.run { workspace in
            let up = try await Up(workspace)
            let file = try workspace.write("g.yaml", Self.flaky)
            #expect(try await up.operon("submit", file).end == .exit(0))
            try await wait(up, ["logs", "g/a"], for: "begun\n")
            try await up.restart()
            try await wait(up, ["logs", "g/a", "--attempt", "2"], for: "begun\n")

            let lost = "attempt 1: its worker “local” was lost, and with it what it had printed\n"
            let all = try await up.operon("logs", "g/a")
            #expect(all.output == "begun\n")
            #expect(all.errors == lost + "attempt 2:\n")
            let first = try await up.operon("logs", "g/a", "--attempt", "1")
            #expect(first.output.isEmpty)
            #expect(first.errors == lost)
            let graph = try await up.operon("logs", "g")
            #expect(graph.output == "a (attempt 2) | begun\n")
            #expect(graph.errors == lost.replacing("attempt 1", with: "a (attempt 1)"))
            let none = try await up.operon("logs", "g/a", "--attempt", "3")
            #expect(none.end == .exit(6))
            #expect(none.errors == "“a” has had 2 attempts.\n")
        }
    }

    @Test func `the logs of a repeated operation are those of all its elements`() async throws {
        try await Workspace.run { workspace in
            let up = try await Up(workspace)
            let file = try workspace.write(
                "g.yaml",
                """
                name: g
                operations:
                  list: { run: 'echo listed; echo "[4, 5]" > $OPERON_OUTPUT' }
                  part: { run: 'echo ${item}', forEach: { output: list } }
                  fixed: { run: 'echo fixed ${item}', forEach: [7, 8] }
                  still: { run: 'true', forEach: [1] }
                  plain: { run: 'true' }
                """
            )
            #expect(try await up.operon("submit", file, "--wait").end == .exit(0))
            for name in ["g/part", "g/part[*]"] {
                let follow = name == "g/part" ? ["--follow"] : []
                let logs = try await up.operon(["logs", name] + follow)
                #expect(logs.end == .exit(0), "\(logs.errors)")
                let lines = logs.outputLines.sorted()
                #expect(lines.filter { $0.hasPrefix("part[") } == ["part[4] | 4", "part[5] | 5"])
                #expect(lines.allSatisfy { $0.hasPrefix("part") }, "\(lines)")
            }
            let fixed = try await up.operon("logs", "g/fixed")
            #expect(fixed.outputLines.sorted() == ["fixed[7] | fixed 7", "fixed[8] | fixed 8"])
            let still = try await up.operon("logs", "g/still")
            #expect(still.errors == "No element of “still” in graph g printed anything.\n")
            let wrong = try await up.operon("logs", "g/prt[*]")
            #expect(wrong.end == .exit(6))
            #expect(wrong.errors.hasSuffix("Did you mean “g/part”?\n"), "\(wrong.errors)")
            let plain = try await up.operon("logs", "g/plain[*]")
            #expect(plain.end == .exit(6) && plain.errors.hasSuffix("Did you mean “g/plain”?\n"))
            let target = try await workspace.operon(["run", file, "plain[*]"])
            #expect(target.end == .exit(6), "\(target.errors)")
            let empty = try await up.operon("logs", "g/plain")
            #expect(empty.errors == "0/plain printed nothing; it succeeded.\n")
            let shown = try await up.operon("show", "g/part[*]")
            #expect(shown.errors.hasSuffix("Did you mean “g/part”?\n"), "\(shown.errors)")

            let all = try await workspace.operon(["run", file, "fixed[*]"])
            #expect(all.end == .exit(0), "\(all.errors)")
            let one = try await workspace.operon(["run", file, "part[4]"])
            #expect(one.end == .exit(6))
            #expect(
                one.errors.hasSuffix(
                    "there is no operation “part[4]”: the elements of “part” are found while it "
                        + "runs; name “part”\n"
                ),
                "\(one.errors)"
            )
        }
    }

    @Test func `on a terminal the names of a graph's operations have colours of their own`()
        async throws
    {
        try await Workspace.run { workspace in
            let up = try await Up(workspace)
            let file = try workspace.write(
                "g.yaml",
                "name: g\noperations: { a: { run: echo one }, b: { run: echo two } }"
            )
            #expect(try await up.operon("submit", file, "--wait").end == .exit(0))
            let logs = try workspace.start(
                "operon",
                ["logs", "g", "--coordinator", up.address],
                streams: .terminal(columns: 80, rows: 24)
            )
            let printed = try await logs.end().output
            let plain = printed.replacing(/\x1b\[[0-9;]*m/, with: "").replacing("\r\n", with: "\n")
            #expect(plain.split(separator: "\n").sorted() == ["a | one", "b | two"])
            let colours = printed.matches(of: /\x1b\[([0-9;]+)m(a|b)/).map(\.output.1)
            #expect(Set(colours).count == 2, "\(printed)")
        }
    }

    @Test func `a pipe gets the bytes of an operation, and a cut log says what is missing`()
        async throws
    {
        try await Workspace.run { workspace in
            let up = try await Up(workspace)
            let file = try workspace.write(
                "g.yaml",
                """
                name: g
                operations:
                  bytes: { run: 'head -c 100000 /dev/urandom | tee bytes' }
                  long: { run: 'seq -f %015.0f 1 131072' }
                """
            )
            #expect(try await up.operon("submit", file, "--wait").end == .exit(0))
            let operon = try Program.executable("operon")
            let script = "\(operon) logs g/bytes --coordinator \(up.address) | cmp - bytes"
            let compared = try workspace.start("/bin/sh", ["-c", script])
            #expect(try await compared.end().end == .exit(0))

            let long = try await up.operon("logs", "g/long")
            let limit = Limits().logBytes
            #expect(long.output.utf8.count == limit)
            #expect(long.errors == "operon: \(2 << 20 - limit) bytes are missing here\n")
            #expect(long.outputLines.first == "000000000000001")
            #expect(long.outputLines.last == "000000000131072")
        }
    }

    @Test(.timeLimit(.minutes(3)))
    func `who reads too slowly gets what came meanwhile, but for a stated gap`() async throws {
        try await Workspace.run { workspace in
            let up = try await Up(workspace)
            let printed = 16 << 20
            let file = try workspace.write(
                "g.yaml",
                """
                name: g
                operations:
                  loud:
                    run: >-
                      echo first; until [ -e go ]; do sleep 0.02; done;
                      seq -f %015.0f 1 \(printed / 16); echo last;
                      until [ -e end ]; do sleep 0.02; done
                """
            )
            try await up.act("submit", file)
            let arguments = ["logs", "g/loud", "--follow", "--coordinator", up.address]
            let follower = try workspace.start("operon", arguments)
            try await follower.says("first\n")
            try await follower.freeze()
            _ = try workspace.write("go", "")
            try await wait(up, ["logs", "g/loud", "--tail", "1"], for: "last\n")
            follower.signal(SIGCONT)
            // Not from the log that is kept when the operation has ended.
            try await follower.says("last\n")
            _ = try workspace.write("end", "")
            let ended = try await follower.end()
            #expect(ended.end == .exit(0))
            let gaps = ended.errorLines.compactMap { line in
                line.wholeMatch(of: #/operon: (\d+) bytes are missing here/#).flatMap { Int($0.1) }
            }
            #expect(gaps.count == ended.errorLines.count, "\(ended.errors)")
            let missing = gaps.reduce(0, +)
            // More than the log that is kept of an attempt that has ended.
            #expect(missing > 0 && ended.output.utf8.count > 2 * Limits().logBytes)
            #expect(ended.output.utf8.count + missing == printed + "first\nlast\n".utf8.count)
            #expect(ended.output.hasPrefix("first\n") && ended.output.hasSuffix("last\n"))
        }
    }

    @Test func `the log of a graph has the names of its operations in front`() async throws {
        try await Workspace.run { workspace in
            let up = try await Up(workspace)
            let file = try workspace.write(
                "g.yaml",
                """
                name: g
                operations:
                  one: { run: 'echo first; echo second' }
                  two: { run: 'printf "no end"', dependencies: [one] }
                  silent: { run: 'true' }
                  three: { run: 'echo last', dependencies: [two] }
                """
            )
            #expect(try await up.operon("submit", file).end == .exit(0))
            let followed = try await up.operon("logs", "g", "--follow")
            let text = "one | first\none | second\ntwo | no end\nthree | last\n"
            #expect(followed.end == .exit(0))
            // The end of a line without a line break is known when its attempt has ended.
            #expect(
                followed.output.split(separator: "\n").sorted()
                    == text.split(separator: "\n").sorted()
            )
            let stored = try await up.operon("logs", "g")
            #expect(
                stored.output.split(separator: "\n").sorted()
                    == text.split(separator: "\n").sorted()
            )
            #expect(
                try await up.operon("logs", "g", "--tail", "1").outputLines.contains("one | second")
            )
            #expect(try await up.operon("logs", "none").end == .exit(6))
        }
    }

    @Test func `who stops reading ends the command`() async throws {
        try await Workspace.run { workspace in
            let up = try await Up(workspace)
            let file = try workspace.write("g.yaml", Self.flaky)
            #expect(try await up.operon("submit", file).end == .exit(0))
            let operon = try Program.executable("operon")
            for command in ["events --follow --after 0", "logs g/a --follow"] {
                // The follower would wait for the next event for ever.
                let script = """
                    { \(operon) \(command) --coordinator \(up.address); echo $? >status; } | head -1
                    """
                let piped = try workspace.start("/bin/sh", ["-c", script])
                let ended = try await piped.end(within: .seconds(60))
                #expect(ended.end == .exit(0))
                #expect(ended.errors == "")
                #expect(try workspace.read("status") == "141\n", "\(command)")
            }
            _ = try workspace.write("go", "")
        }
    }

    @Test func `on a terminal a watch names what runs`() async throws {
        try await Workspace.run { workspace in
            let up = try await Up(workspace)
            let file = try workspace.write(
                "g.yaml",
                """
                name: g
                operations:
                  long: { run: 'until [ -e go ]; do sleep 0.02; done' }
                  next: { run: 'true', dependencies: [long] }
                """
            )
            #expect(try await up.operon("submit", file).end == .exit(0))
            let watch = try workspace.start(
                "operon",
                ["watch", "g", "--coordinator", up.address],
                streams: .terminal(columns: 60, rows: 24)
            )
            try await watch.says("  long ")
            _ = try workspace.write("go", "")
            let ended = try await watch.end()
            #expect(ended.end == .exit(0))
            let screen = TerminalScreen(columns: 60, ended.output)
            #expect(!screen.lines.contains { $0.hasPrefix("  long") }, "\(screen.lines)")
        }
    }

    @Test func `on a terminal a watch tells what goes wrong the moment it does`() async throws {
        try await Workspace.run { workspace in
            let up = try await Up(workspace)
            let file = try workspace.write(
                "g.yaml",
                """
                name: g
                operations:
                  long: { run: 'until [ -e go ]; do sleep 0.02; done' }
                  fetch:
                    run: 'until [ -e fail ]; do sleep 0.02; done; exit 3'
                    retry: { limit: 1, delay: 2s }
                  next: { run: 'true', dependencies: [fetch] }
                  last: { run: 'true', dependencies: [next] }

                """
            )
            #expect(try await up.operon("submit", file).end == .exit(0))
            let watch = try workspace.start(
                "operon",
                ["watch", "g", "--coordinator", up.address],
                streams: .terminal(columns: 60, rows: 24)
            )
            try await watch.says("running")
            _ = try workspace.write("fail", "")
            // The word before each name has a colour.
            try await watch.says(" fetch: attempt 2 of 2 ")
            try await watch.says(" fetch (")
            try await watch.says(" next: because of “fetch”")
            try await watch.says(" last: because of “next”")
            // All of that while the graph runs.
            _ = try workspace.write("go", "")
            let ended = try await watch.end()
            #expect(ended.end == .exit(1))
            let told = TerminalScreen(columns: 60, ended.output).lines.prefix(4)
            let words = told.map { $0.prefix { $0 != " " } }
            #expect(words == ["retry", "failed", "skipped", "skipped"], "\(told)")
        }
    }

    // MARK: - Without a coordinator

    @Test func `a graph comes from standard input`() async throws {
        try await Workspace.run { workspace in
            let operon = try Program.executable("operon")
            let script = """
                printf 'operations: { a: { run: pwd } }' | \(operon) run --local --show-output -
                printf '{"operations": {"a": {"run": "true"}}}' | \(operon) validate -
                printf 'operations: { a: { ran: x } }' | \(operon) validate -
                """
            let ended = try await workspace.start("/bin/sh", ["-c", script]).end()
            #expect(ended.end == .exit(2))
            #expect(ended.outputLines.first == "\(workspace.directory)")
            #expect(ended.outputLines.last == "standard input is valid: 1 operation")
            #expect(ended.errors.contains("standard input:1:"), "\(ended.errors)")
        }
    }

    @Test func `a run shows the output of each attempt in one piece, or as it comes`() async throws
    {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "g.yaml",
                """
                name: g
                operations:
                  one: { run: 'echo 1; sleep 0.05; echo 2; sleep 0.05; printf 3' }
                  two: { run: 'echo a; sleep 0.05; echo b; sleep 0.05; echo c' }
                  bad: { run: 'echo no >&2; exit 1' }
                """
            )
            let whole = try await workspace.operon(["run", "-j3", "--show-output", file])
            #expect(whole.end == .exit(1))
            for block in ["1\n2\n3", "a\nb\nc\n", "no\n"] {
                #expect(whole.output.contains(block), "\(whole.output)")
            }
            #expect(whole.output.utf8.count == 5 + 6 + 3)
            let stream = try await workspace.operon(["run", "-j3", "--show-output", "stream", file])
            let lines = [
                "one | 1", "one | 2", "one | 3", "two | a", "two | b", "two | c", "bad | no",
            ]
            #expect(stream.outputLines.sorted() == lines.map { $0[...] }.sorted())
            let none = try await workspace.operon(["run", file])
            #expect(none.output == "")
            let wrong = try await workspace.operon([
                "run", "--show-output", "--output", "json", file,
            ])
            #expect(wrong.end == .exit(2))
        }
    }

    @Test func `a mistyped mode of the shown output is no file, unless there is one`()
        async throws
    {
        try await Workspace.run { workspace in
            let graph = "operations: { a: { run: echo 1 } }"
            let file = try workspace.write("g.yaml", graph)
            let mistyped = try await workspace.operon(["run", "--show-output", "streem", file])
            #expect(mistyped.end == .exit(2))
            #expect(mistyped.errors.contains("“whole” and “stream”"), "\(mistyped.errors)")
            _ = try workspace.write("streem", graph)
            let run = try await workspace.operon(["run", "--show-output", "streem"])
            #expect(run.output == "1\n", "\(run.errors)")
            // The name of an operation is no mode, either.
            _ = try workspace.write("s.yaml", "operations: { streams: { run: echo 2 } }")
            let target = try await workspace.operon(["run", "s.yaml", "--show-output", "streams"])
            #expect(target.output == "2\n", "\(target.errors)")
        }
    }

    @Test func `a pipe gets the output of a run as it was, and what is missing is told beside it`()
        async throws
    {
        try await Workspace.run { workspace in
            var generator = SeededGenerator(seed: 1)
            let random = (0..<100_000).map { _ in UInt8.random(in: 0...255, using: &generator) }
            try Data(random).write(to: URL(fileURLWithPath: workspace.path("random")))
            let long = Array(String(repeating: "0123456789\n", count: 200_000).utf8)
            try Data(long).write(to: URL(fileURLWithPath: workspace.path("long")))
            _ = try workspace.write(
                "g.yaml",
                "operations: { a: { run: cat random }, b: { run: cat long, dependencies: [a] } }"
            )
            let run = "\(try Program.executable("operon")) run -j1 g.yaml --show-output > shown"
            let ended = try await workspace.start("/bin/sh", ["-c", run]).end()
            #expect(ended.end == .exit(0), "\(ended.errors)")
            let shown = try [UInt8](Data(contentsOf: URL(fileURLWithPath: workspace.path("shown"))))
            // The first 128 KiB and the last 896 KiB.
            #expect(shown == random + long.prefix(128 << 10) + long.suffix(896 << 10))
            let told = "\(long.count - 1 << 20) bytes are missing in the output of “b”"
            #expect(ended.errorLines.contains { $0.hasSuffix(told) }, "\(ended.errors)")
        }
    }

    @Test func `on a terminal a run names what failed at once, and shows output above it`()
        async throws
    {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "g.yaml",
                """
                name: g
                operations:
                  bad: { run: 'echo because; exit 3', retry: { limit: 1, delay: 0s } }
                  after: { run: 'true', dependencies: [bad] }
                  long: { run: 'until [ -e go ]; do sleep 0.02; done' }
                """
            )
            let run = try workspace.start(
                "operon",
                ["run", "-j2", "--show-output", file],
                streams: .terminal(columns: 60, rows: 24)
            )
            try await run.says(" bad: attempt 2 of 2 now: exit code 3")
            try await run.says(" bad (")
            try await run.says(" after: because of “bad”")
            // It is named once it has run for a second.
            try await run.says("  long ")
            _ = try workspace.write("go", "")
            let ended = try await run.end()
            #expect(ended.end == .exit(1))
            let screen = TerminalScreen(columns: 60, ended.output)
            #expect(
                screen.lines.count { $0.trimmingCharacters(in: .whitespaces) == "because" } == 3
            )
            #expect(screen.lines.contains { $0.hasPrefix("bad (attempt 2):") })
            #expect(!screen.lines.contains { $0.hasPrefix("  long 0:0") })
        }
    }
}
