import Foundation
import Glibc
import OperonFaultKit
import OperonModel
import Testing

/// Editing the file of a run or of a graph, and going on from there.
@Suite struct EditTests {
    /// Each operation writes its name into `ran`, and its output is a number.
    private static func graph(_ b: String, _ more: String = "") -> String {
        """
        name: g
        operations:
          a: { run: 'echo a >> ran; echo 7 > $OPERON_OUTPUT' }
          b: { run: '\(b)', dependencies: [a] }
          c: { run: 'echo c >> ran; cp $OPERON_INPUTS c.in', dependencies: [a, b] }
          side: { run: 'echo side >> ran' }
        \(more)
        """
    }

    private static let broken = graph("echo b >> ran; exit 3")
    private static let mended = graph("echo b >> ran; echo 8 > $OPERON_OUTPUT")

    private func run(
        _ workspace: Workspace,
        _ text: String,
        _ more: String...
    ) async throws -> Ended {
        let file = try workspace.write("g.yaml", text)
        let arguments = ["run", "--local", "-j1", file, "--store", "r.db", "--resume"]
        return try await workspace.operon(arguments + more)
    }

    @Test func `a run continues with an edited file, and runs what must run`() async throws {
        try await Workspace.run { workspace in
            #expect(try await run(workspace, Self.broken).end == .exit(1))
            #expect(workspace.lines(of: "ran").sorted() == ["a", "b", "side"])

            let plan = try await run(workspace, Self.mended, "--dry-run")
            #expect(
                plan.output == """
                    a: stays
                    b: runs, because it has changed
                    c: runs, because it was skipped
                    side: stays

                    """
            )
            let mended = try await run(workspace, Self.mended)
            #expect(mended.end == .exit(0), "\(mended.errors)")
            #expect(
                mended.errors.hasPrefix(
                    """
                    The graph has changed: 2 operations stay, 2 run.
                      changed: b
                      skipped: c

                    """
                ),
                "\(mended.errors)"
            )
            #expect(workspace.lines(of: "ran").sorted() == ["a", "b", "b", "c", "side"])
            // The output of what stays is there.
            let inputs = try workspace.read("c.in")
            #expect(inputs.contains(#""a":7"#) && inputs.contains(#""b":8"#), "\(inputs)")

            // The same file again runs nothing.
            let again = try await run(workspace, Self.mended)
            #expect(again.end == .exit(0))
            #expect(workspace.lines(of: "ran").count == 5)

            // Another priority is no reason to run; a new operation runs, and one is removed.
            let more = Self.mended.replacing("  side: { run: 'echo side >> ran' }\n", with: "")
                .replacing("a: { run", with: "a: { priority: high, run")
            let d = "  d: { run: 'cp $OPERON_INPUTS d.in; echo d >> ran', dependencies: [a, c] }\n"
            let third = try await run(workspace, more + d)
            #expect(third.end == .exit(0), "\(third.errors)")
            #expect(
                third.errors.hasPrefix(
                    "The graph has changed: 3 operations stay, 1 runs, 1 removed.\n"
                ),
                "\(third.errors)"
            )
            #expect(workspace.lines(of: "ran").last == "d")
            #expect(workspace.lines(of: "ran").count == 6)
            #expect(try workspace.read("d.in").contains(#""a":7"#))

            // What an edit removed and another brings back is known.
            let back = try await run(workspace, Self.mended)
            #expect(back.end == .exit(0), "\(back.errors)")
            #expect(workspace.lines(of: "ran").count == 6)
            let report = try await run(workspace, Self.mended, "--output", "json")
            #expect(try report.report().counts == Report.Counts(succeeded: 4, total: 4))
        }
    }

    @Test func `a stored run does again what it is asked for, and what follows`() async throws {
        try await Workspace.run { workspace in
            #expect(try await run(workspace, Self.mended).end == .exit(0))
            let plan = try await run(workspace, Self.mended, "--from", "b", "--dry-run")
            #expect(
                plan.output == """
                    a: stays
                    b: runs, as asked for
                    c: runs, because “b” runs
                    side: stays

                    """
            )
            let again = try await run(workspace, Self.mended, "--from", "b")
            #expect(again.end == .exit(0), "\(again.errors)")
            #expect(
                again.errors.hasPrefix(
                    """
                    2 operations stay, 2 run.
                      asked for: b
                      after others that run: c

                    """
                ),
                "\(again.errors)"
            )
            #expect(workspace.lines(of: "ran").sorted() == ["a", "b", "b", "c", "c", "side"])
            // Asked for once: the next continuation has nothing to do.
            #expect(try await run(workspace, Self.mended).end == .exit(0))
            #expect(workspace.lines(of: "ran").count == 6)

            let unknown = try await run(workspace, Self.mended, "--from", "nosuch")
            #expect(unknown.end == .exit(6))
            #expect(unknown.errors.contains("there is no operation “nosuch”"))
        }
    }

    @Test func `a run that continues with targets forgets nothing else`() async throws {
        try await Workspace.run { workspace in
            #expect(try await run(workspace, Self.mended).end == .exit(0))
            let plan = try await run(workspace, Self.mended, "b", "--dry-run")
            #expect(plan.output == "a: stays\nb: stays\n")
            let part = try await run(workspace, Self.mended, "b", "--from", "b")
            #expect(part.end == .exit(0), "\(part.errors)")
            #expect(
                part.errors.hasPrefix("1 operation stays, 1 runs.\n  asked for: b\n"),
                "\(part.errors)"
            )
            let other = try await run(workspace, Self.mended, "b", "--from", "side")
            #expect(other.end == .exit(2))
            #expect(other.errors.contains("The targets do not need “side”"), "\(other.errors)")
            // What the part left out has succeeded, but after an earlier end of `b`.
            let whole = try await run(workspace, Self.mended, "--dry-run")
            #expect(
                whole.output == """
                    a: stays
                    b: stays
                    c: runs, because “b” runs
                    side: stays

                    """
            )
        }
    }

    @Test func `the plan of a run that goes on is what it does`() async throws {
        try await Workspace.run { workspace in
            let file = Self.graph(
                "echo b >> ran; exit 3",
                "  mail: { run: 'echo mail >> ran', dependencies: { b: finished } }"
            )
            #expect(try await run(workspace, file).end == .exit(1))
            let plan = try await run(workspace, file, "--dry-run")
            #expect(
                plan.output == """
                    a: stays
                    b: runs, because it failed
                    c: runs, because it was skipped
                    side: stays
                    mail: runs, because “b” runs

                    """
            )
            #expect(try await run(workspace, file).end == .exit(1))
            let ran = workspace.lines(of: "ran").sorted()
            #expect(ran == ["a", "b", "b", "mail", "mail", "side"])
        }
    }

    @Test func `a run whose graph was pruned begins anew`() async throws {
        try await Workspace.run { workspace in
            #expect(try await run(workspace, Self.mended).end == .exit(0))
            let pruned = try await workspace.operon(["store", "prune", "r.db", "--keep", "0s"])
            #expect(pruned.end == .exit(0), "\(pruned.errors)")
            let again = try await run(workspace, Self.mended)
            #expect(again.end == .exit(0), "\(again.errors)")
            #expect(workspace.lines(of: "ran").count { $0 == "a" } == 2)
            let edited = try await run(workspace, Self.broken)
            #expect(edited.end == .exit(1), "\(edited.errors)")
            #expect(edited.errors.contains("2 operations stay, 2 run"), "\(edited.errors)")
        }
    }

    /// Lists two values, repeats `convert` for them, of which `b` fails without a file, and sums.
    private static func found(_ sum: String) -> String {
        """
        name: g
        operations:
          list: { run: 'echo "[\\"a\\",\\"b\\"]" > $OPERON_OUTPUT' }
          extra: { run: 'echo 5 > $OPERON_OUTPUT' }
          convert:
            run: 'echo $item >> ran; test $item = a -o -e ok || exit 3;
              cat $OPERON_INPUTS > in.$item; echo "\\"made of $item\\"" > $OPERON_OUTPUT'
            forEach: { output: list }
            dependencies: [extra]
          sum: { run: '\(sum)', dependencies: ["convert[*]"] }

        """
    }

    @Test func `of elements that are found, those run again that failed`() async throws {
        try await Workspace.run { workspace in
            let first = try await run(workspace, Self.found("cat $OPERON_INPUTS > sum"))
            #expect(first.end == .exit(1), "\(first.errors)")
            #expect(workspace.lines(of: "ran").sorted() == ["a", "b"])

            _ = try workspace.write("ok", "")
            let second = try await run(
                workspace,
                Self.found("cat $OPERON_INPUTS > sum; :"),
                "--trace",
                "trace.json"
            )
            #expect(second.end == .exit(0), "\(second.errors)")
            let trace = try workspace.read("trace.json")
            #expect(trace.contains("convert[b]") && !trace.contains("convert[a]"), "\(trace)")
            #expect(second.errors.contains("(1 up to date)"), "\(second.errors)")
            #expect(workspace.lines(of: "ran").sorted() == ["a", "b", "b"])
            // What they depend on is of the first graph.
            #expect(try workspace.read("in.b").contains(#""extra":5"#))
            let sum = try workspace.read("sum")
            #expect(sum.contains(#""convert[a]":"made of a""#), "\(sum)")
            #expect(sum.contains(#""convert[b]":"made of b""#), "\(sum)")

            // All of them stay, and what they left is still there after another edit.
            unlink(workspace.path("sum"))
            let third = try await run(workspace, Self.found("cat $OPERON_INPUTS > sum; true"))
            #expect(third.end == .exit(0), "\(third.errors)")
            #expect(workspace.lines(of: "ran").count == 3)
            #expect(try workspace.read("sum") == sum)

            // Who asks for the group, asks for all of its elements.
            let all = try await run(
                workspace,
                Self.found("cat $OPERON_INPUTS > sum; true"),
                "--from",
                "convert"
            )
            #expect(all.end == .exit(0), "\(all.errors)")
            #expect(workspace.lines(of: "ran").count == 5)

            // Another script makes others of them.
            let other = Self.found("true").replacing("exit 3", with: "exit 4")
            #expect(try await run(workspace, other).end == .exit(0))
            #expect(workspace.lines(of: "ran").count == 7)
        }
    }

    @Test func `elements that stay are found by those that depend on them one by one`() async throws
    {
        try await Workspace.run { workspace in
            let graph = """
                name: g
                operations:
                  list: { run: 'echo "[1, 2]" > $OPERON_OUTPUT' }
                  make:
                    run: 'echo "\\"made $item\\"" > $OPERON_OUTPUT'
                    forEach: { output: list }
                  check:
                    run: 'echo $item >> ran; test $item = 1 -o -e ok || exit 3;
                      cp $OPERON_INPUTS in.$item'
                    forEach: { output: list }
                    dependencies: ["make[*]"]

                """
            #expect(try await run(workspace, graph).end == .exit(1))
            #expect(workspace.lines(of: "ran").sorted() == ["1", "2"])
            _ = try workspace.write("ok", "")
            let edited = try await run(workspace, graph + "  more: { run: 'true' }\n")
            #expect(edited.end == .exit(0), "\(edited.errors)")
            #expect(workspace.lines(of: "ran").sorted() == ["1", "2", "2"])
            #expect(try workspace.read("in.2").contains(#""make[2]":"made 2""#))
        }
    }

    @Test func `what a command added before runs again with it`() async throws {
        try await Workspace.run { workspace in
            let operon = try Program.executable("operon")
            let graph = """
                name: g
                operations:
                  find:
                    run: |
                      echo find >> ran
                      \(operon) add more.yaml

                """
            _ = try workspace.write(
                "more.yaml",
                """
                operations:
                  good: { run: 'echo good >> ran' }
                  bad: { run: 'echo bad >> ran; test -e ok' }
                """
            )
            #expect(try await run(workspace, graph).end == .exit(1))
            _ = try workspace.write("ok", "")
            let edited = try await run(workspace, graph + "  other: { run: 'true' }\n")
            #expect(edited.end == .exit(0), "\(edited.errors)")
            let ran = workspace.lines(of: "ran").sorted()
            #expect(ran == ["bad", "bad", "find", "find", "good", "good"])
        }
    }

    @Test func `whoever dies between two edits, each change runs once`() async throws {
        try await Workspace.run { workspace in
            let waits = Self.graph("echo b >> ran; while ! [ -e go ]; do sleep 0.05; done; exit 3")
            let file = try workspace.write("g.yaml", waits)
            let arguments = ["run", "--local", "-j1", file, "--store", "r.db", "--resume"]
            for text in [waits, waits + "  d: { run: 'echo d >> ran', dependencies: [b] }\n"] {
                _ = try workspace.write("g.yaml", text)
                let count = workspace.lines(of: "ran").count { $0 == "b" }
                let killed = try workspace.start("operon", arguments)
                while workspace.lines(of: "ran").count(where: { $0 == "b" }) == count {
                    try #require(!killed.hasEnded)
                    // Its process tells nobody that it has written the line.
                    try await Task.sleep(for: .milliseconds(10))
                }
                killed.signal(SIGKILL)
                _ = try await killed.end()
                try await workspace.waitUntilNoProcess(named: "sleep")
            }
            let mended = try await run(workspace, Self.mended)
            #expect(mended.end == .exit(0), "\(mended.errors)")
            #expect(workspace.lines(of: "ran").count { $0 == "a" } == 1)
            #expect(workspace.lines(of: "ran").count { $0 == "b" } == 3)
            #expect(workspace.lines(of: "ran").count { $0 == "c" } == 1)
            #expect(!workspace.lines(of: "ran").contains("d"))
        }
    }

    @Test func `the edited file of a graph is submitted again, and its history stays`() async throws
    {
        try await Workspace.run { workspace in
            let up = try await Up(workspace)
            let file = try workspace.write("g.yaml", Self.broken)
            #expect(try await up.operon("submit", file, "--wait").end == .exit(1))
            _ = try workspace.write("g.yaml", Self.mended)
            let plan = try await up.operon("resubmit", "g", file, "--dry-run", "--output", "quiet")
            #expect(plan.output == "b\nc\n")
            let edited = try await up.operon("resubmit", "g", file, "--wait")
            #expect(edited.end == .exit(0), "\(edited.errors)")
            #expect(edited.output == "1\n")
            #expect(edited.errors.contains("2 operations stay, 2 run"), "\(edited.errors)")
            #expect(workspace.lines(of: "ran").sorted() == ["a", "b", "b", "c", "side"])
            #expect(try workspace.read("c.in").contains(#""a":7"#))
            // What stayed left its output in the first graph.
            #expect(try await up.operon("output", "1/a").output == "7\n")
            #expect(
                try await up.operon("list", "--status", "failed", "--output", "quiet").output
                    == "0\n"
            )

            // After a restart, another edit goes on from the second graph.
            try await up.restart()
            _ = try workspace.write(
                "g.yaml",
                Self.mended + "  d: { run: 'echo d >> ran', dependencies: [c] }\n"
            )
            let third = try await up.operon("resubmit", "1", file, "--wait", "--output", "json")
            #expect(third.end == .exit(0), "\(third.errors)")
            #expect(workspace.lines(of: "ran").count == 6)
            let same = try await up.operon("resubmit", "2", file, "--dry-run")
            #expect(!same.output.contains("runs"), "\(same.output)")

            let open = try workspace.write(
                "open.yaml",
                "name: o\noperations: { x: { external: true } }\n"
            )
            #expect(try await up.operon("submit", open).end == .exit(0))
            let early = try await up.operon("resubmit", "o", open)
            #expect(early.end == .exit(2))
            #expect(early.errors.contains("has not finished"), "\(early.errors)")
            #expect(try await up.operon("resubmit", "none", open).end == .exit(6))
        }
    }

    @Test func `what succeeded after something that runs again runs again`() async throws {
        try await Workspace.run { workspace in
            // `report` counts what is there, however `fetch` ended.
            let graph = """
                operations:
                  fetch: { run: 'echo fetch >> ran; test -e mended' }
                  report: { run: 'echo report >> ran', dependencies: { fetch: finished } }
                  after: { run: 'echo after >> ran', dependencies: [report] }
                  side: { run: 'echo side >> ran' }
                """
            #expect(try await run(workspace, graph).end == .exit(1))
            #expect(workspace.lines(of: "ran").sorted() == ["after", "fetch", "report", "side"])
            _ = try workspace.write("mended", "")
            let plan = try await run(workspace, graph, "--dry-run")
            #expect(
                plan.output == """
                    fetch: runs, because it failed
                    report: runs, because “fetch” runs
                    after: runs, because “report” runs
                    side: stays

                    """
            )
            let ended = try await run(workspace, graph)
            #expect(ended.end == .exit(0), "\(ended.errors)")
            #expect(ended.errors.hasPrefix("1 operation stays, 3 run.\n"), "\(ended.errors)")
            #expect(workspace.lines(of: "ran").count == 7)
            let again = try await run(workspace, graph)
            #expect(again.end == .exit(0), "\(again.errors)")
            #expect(workspace.lines(of: "ran").count == 7)
        }
    }

    @Test func `a failure handler that has run is no reason for a new graph`() async throws {
        try await Workspace.run { workspace in
            let graph = """
                operations:
                  work: { run: 'test -e mended' }
                  alarm: { run: 'echo alarm >> ran', dependencies: { work: failed } }
                """
            #expect(try await run(workspace, graph).end == .exit(1))
            _ = try workspace.write("mended", "")
            let ended = try await run(workspace, graph)
            #expect(ended.end == .exit(0), "\(ended.errors)")
            #expect(ended.errors.hasPrefix("Continuing the stored run: 1 of 2"), "\(ended.errors)")
            #expect(workspace.lines(of: "ran") == ["alarm"])
        }
    }

    @Test func `a resumed run asks nobody where there is no terminal`() async throws {
        try await Workspace.run { workspace in
            let graph = """
                operations:
                  build: { run: 'echo build >> ran' }
                  approve: { external: true, dependencies: [build] }
                """
            for _ in 0..<2 {
                let ended = try await run(workspace, graph)
                #expect(ended.end == .exit(1))
                #expect(ended.errors.contains("“approve” waits for a person"), "\(ended.errors)")
            }
            #expect(workspace.lines(of: "ran").isEmpty)
        }
    }
}
