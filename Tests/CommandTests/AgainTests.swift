import Foundation
import Testing

/// Running what succeeded again, and submitting single commands.
@Suite struct AgainTests {
    /// Each operation writes its name into `ran`.
    private static func graph(_ b: String = "cat $OPERON_INPUTS > b.in") -> String {
        """
        name: g
        parameters: { word: hello }
        operations:
          a: { run: 'echo a >> ran; echo 7 > $OPERON_OUTPUT' }
          b: { run: 'echo b >> ran; \(b)', dependencies: [a] }
          c: { run: 'echo c ${word} >> ran', dependencies: [b] }
          side: { run: 'echo side >> ran' }
        """
    }

    @Test func `what succeeded runs again with all that depends on it, in a new graph`()
        async throws
    {
        try await Workspace.run { workspace in
            let up = try await Up(workspace)
            let file = try workspace.write("g.yaml", Self.graph())
            #expect(try await up.operon("submit", file, "--wait").end == .exit(0))
            let plan = try await up.operon("retry", "g/b", "--from", "--dry-run")
            #expect(
                plan.output == """
                    a: stays
                    b: runs, as asked for
                    c: runs, because “b” runs
                    side: stays

                    """
            )
            let again = try await up.operon("retry", "g/b", "--from", "--wait")
            #expect(again.end == .exit(0), "\(again.errors)")
            #expect(again.output == "1\n")
            #expect(again.errors.hasPrefix("2 operations stay, 2 run.\n"), "\(again.errors)")
            let ran = workspace.lines(of: "ran")
            #expect(ran.sorted() == ["a", "b", "b", "c hello", "c hello", "side"])
            #expect(try workspace.read("b.in").contains(#""a":7"#))

            // Of the second graph, whose `a` is that of the first; after a restart.
            try await up.restart()
            let third = try await up.operon("retry", "1/a", "--from", "--wait")
            #expect(third.end == .exit(0), "\(third.errors)")
            let last = Array(workspace.lines(of: "ran").suffix(3))
            #expect(last == ["a", "b", "c hello"])
            #expect(workspace.lines(of: "ran").count == 9)
            // The first graph is as it was.
            let first = try await up.operon("show", "0/b")
            #expect(first.output.contains("succeeded"), "\(first.output)")
        }
    }

    @Test func `one operation runs with what the file says now`() async throws {
        try await Workspace.run { workspace in
            let up = try await Up(workspace)
            let file = try workspace.write("g.yaml", Self.graph())
            #expect(try await up.operon("submit", file, "--wait").end == .exit(0))
            _ = try workspace.write("g.yaml", Self.graph("true"))
            let arguments = ["retry", "g/side", "--with", file]
            let again = try await up.operon(arguments + ["--wait"])
            #expect(again.end == .exit(0), "\(again.errors)")
            #expect(again.errors.contains("  asked for: side\n"), "\(again.errors)")
            #expect(again.errors.contains("  changed: b\n"), "\(again.errors)")
            let ran = workspace.lines(of: "ran").dropFirst(4)
            #expect(ran.sorted() == ["b", "c hello", "side"])
            // A parameter is a variable of each process.
            let set = try await up.operon(arguments + ["--set", "word=bye", "--dry-run"])
            #expect(set.output.split(separator: "\n").allSatisfy { $0.contains("has changed") })
            let bye = try await up.operon(arguments + ["--set", "word=bye", "--wait"])
            #expect(bye.end == .exit(0), "\(bye.errors)")
            let last = workspace.lines(of: "ran").dropFirst(7)
            #expect(last.sorted() == ["a", "b", "c bye", "side"])
        }
    }

    /// “x” and “hold” wait for somebody.
    private static let held = """
        name: g
        operations:
          x: { external: true }
          hold: { external: true }
          y: { run: 'true', dependencies: [x] }
          z: { run: 'true', dependencies: [hold] }

        """

    private static func expect(
        _ up: Up,
        _ arguments: [String],
        plans plan: String...
    ) async throws {
        let said = try await up.operon(arguments + ["--dry-run"])
        #expect(said.end == .exit(0), "\(said.errors)")
        #expect(said.outputLines.map(String.init) == plan, "\(arguments)")
    }

    @Test func `dependencies count as they are now, not as they were submitted`() async throws {
        try await Workspace.run { workspace in
            let up = try await Up(workspace)
            let file = try workspace.write("g.yaml", Self.held)
            try await up.act("submit", file)
            try await up.act("dependency", "remove", "g/y", "--on", "g/x")
            try await up.act("dependency", "add", "g/z", "--on", "g/x")
            try await up.act("complete", "g/x", "--yes")
            try await up.act("complete", "g/hold", "--yes")
            try await up.act("wait", "g")
            try await Self.expect(
                up,
                ["retry", "g/x", "--from"],
                plans: "x: runs, as asked for",
                "hold: stays",
                "y: stays",
                "z: runs, because “x” runs"
            )
            // The file knows nothing of these changes.
            try await Self.expect(
                up,
                ["resubmit", "g", file],
                plans: "x: stays",
                "hold: stays",
                "y: runs, because it has changed",
                "z: runs, because it has changed"
            )

            // “x” and “y” stay; a dependency on what stands for “y” is one on “y”.
            try await up.act("retry", "g/hold", "--from")
            try await up.act("dependency", "add", "1/z", "--on", "1/y")
            try await up.act("complete", "1/hold", "--yes")
            try await up.act("wait", "1")
            try await Self.expect(
                up,
                ["retry", "1/hold", "--from"],
                plans: "x: stays",
                "hold: runs, as asked for",
                "y: stays",
                "z: runs, because “hold” runs"
            )
            try await Self.expect(
                up,
                ["retry", "1/y", "--from"],
                plans: "x: stays",
                "hold: stays",
                "y: runs, as asked for",
                "z: runs, because “y” runs"
            )
        }
    }

    @Test func `a dependency on an element of an output is one on all of them`() async throws {
        try await Workspace.run { workspace in
            let up = try await Up(workspace)
            let file = try workspace.write(
                "g.yaml",
                """
                name: g
                operations:
                  hold: { external: true }
                  list: { run: 'echo "[1]" > $OPERON_OUTPUT' }
                  e: { forEach: { output: list }, run: 'true' }
                  done: { run: 'touch done', dependencies: [e] }
                  z: { run: 'true', dependencies: [hold] }

                """
            )
            try await up.act("submit", file)
            while !FileManager.default.fileExists(atPath: workspace.path("done")) {
                try await Task.sleep(for: .milliseconds(20))
            }
            try await up.act("dependency", "add", "g/z", "--on", "g/e[1]")
            try await up.act("complete", "g/hold", "--yes")
            try await up.act("wait", "g")
            let plan = try await up.operon("retry", "g/list", "--from", "--dry-run")
            #expect(plan.output.contains("z: runs, because “e” runs\n"), "\(plan.output)")
        }
    }

    @Test func `a repeated operation runs again as a whole, and under one key once`() async throws {
        try await Workspace.run { workspace in
            let up = try await Up(workspace)
            let file = try workspace.write(
                "g.yaml",
                """
                name: g
                order: submission
                operations:
                  r: { forEach: [a, b], run: 'echo ${item} >> ran' }
                  list: { run: 'echo "[1]" > $OPERON_OUTPUT' }
                  e: { forEach: { output: list }, run: 'echo e${item} >> ran' }

                """
            )
            #expect(try await up.operon("submit", file, "--wait").end == .exit(0))
            let plan = ["retry", "0/r", "--from", "--dry-run"]
            #expect(try await up.operon(plan).output.contains("r[*]: 2 elements run, as asked for"))
            let each = try await up.operon(plan + ["--elements"]).output
            #expect(each.contains("r[a]: runs") && each.contains("r[b]: runs"), "\(each)")
            for _ in 0..<2 {
                let again = try await up.operon(
                    ["retry", "0/r", "e", "--from", "--idempotency-key", "k", "--wait"]
                )
                #expect(again.end == .exit(0), "\(again.errors)")
                #expect(again.output == "1\n")
            }
            #expect(workspace.lines(of: "ran").sorted() == ["a", "a", "b", "b", "e1", "e1"])
            let element = try await up.operon("retry", "g/e[1]", "--from")
            #expect(element.end == .exit(2), "\(element.errors)")
            #expect(
                element.errors.contains(
                    "“e[1]” was added by “e.forEach” while that ran: run “e.forEach” again."
                ),
                "\(element.errors)"
            )
        }
    }

    @Test func `what cannot run again is refused with a reason`() async throws {
        try await Workspace.run { workspace in
            let up = try await Up(workspace)
            let file = try workspace.write(
                "g.yaml",
                "name: g\noperations: { x: { external: true }, y: { run: 'true' } }\n"
            )
            #expect(try await up.operon("submit", file).end == .exit(0))
            let early = try await up.operon("retry", "g/y", "--from")
            #expect(early.end == .exit(2))
            #expect(early.errors.contains("has not finished"), "\(early.errors)")
            #expect(try await up.operon("complete", "g/x", "--yes").end == .exit(0))
            #expect(try await up.operon("wait", "g").end == .exit(0))
            let unknown = try await up.operon("retry", "g/none", "--from")
            #expect(unknown.end == .exit(6))
            #expect(unknown.errors.contains("has no operation “none”"), "\(unknown.errors)")
            for wrong in [
                ["g", "--from"], ["g/y", "--dry-run"], ["g/y", "--set", "a=b"],
                ["g/y", "--from", "--wait", "--watch"], ["g/y", "--idempotency-key", "k"],
                ["g/y", "--from", "--replay", "1"], ["g/y", "--from", "--elements"],
            ] {
                let refused = try await up.operon(["retry"] + wrong)
                #expect(refused.end == .exit(2), "\(wrong)")
            }
        }
    }

    @Test(arguments: ["--wait", "--watch"])
    func `a retry is waited for`(option: String) async throws {
        try await Workspace.run { workspace in
            let up = try await Up(workspace)
            let file = try workspace.write(
                "g.yaml",
                "name: g\noperations: { a: { run: 'echo a >> ran; test -e mended' } }\n"
            )
            #expect(try await up.operon("submit", file, "--wait").end == .exit(1))
            #expect(try await up.operon("retry", "g", option).end == .exit(1))
            _ = try workspace.write("mended", "")
            let retried = try await up.operon("retry", "g", option)
            #expect(retried.end == .exit(0), "\(retried.errors)")
            #expect(
                retried.errors.contains("graph 0 “g” finished. 1 operation: 1 succeeded"),
                "\(retried.errors)"
            )
            #expect(!retried.errors.contains("To watch"), "\(retried.errors)")
            #expect(workspace.lines(of: "ran").count == 3)
        }
    }

    @Test func `a command is submitted without a file`() async throws {
        try await Workspace.run { workspace in
            let up = try await Up(workspace)
            let file = try workspace.write(
                "g.yaml",
                "name: g\noperations: { x: { external: true } }\n"
            )
            #expect(try await up.operon("submit", file).end == .exit(0))
            let line = "printf '%s|' \"$@\" > said; echo $PWD > where"
            let submitted = try await up.operon([
                "submit", "--name", "say", "--queue", "words", "--after", "g/x", "--", "sh", "-c",
                line, "sh", "a b", "--wait", "",
            ])
            #expect(submitted.end == .exit(0), "\(submitted.errors)")
            #expect(submitted.output == "1\n")
            let waiting = try await up.operon("explain", "1/say")
            #expect(waiting.output.contains("g/x") || waiting.output.contains("0/x"))
            #expect(try await up.operon("complete", "g/x", "--yes").end == .exit(0))
            #expect(try await up.operon("wait", "say").end == .exit(0))
            #expect(try workspace.read("said") == "a b|--wait||")
            let list = try await up.operon("operations", "say", "--output", "json")
            #expect(list.output.contains(#""queue":"words""#), "\(list.output)")

            let failed = try await up.operon("submit", "--wait", "--", "/bin/false")
            #expect(failed.end == .exit(1), "\(failed.errors)")
            #expect(failed.errors.contains("“false”"), "\(failed.errors)")
            let unknown = try await up.operon("submit", "--after", "g/none", "--", "true")
            #expect(unknown.end == .exit(2) || unknown.end == .exit(6))
            #expect(unknown.errors.contains("none"), "\(unknown.errors)")
            // In its own graph, an operation may be named with the graph or without it.
            #expect(try await up.operon("submit", "--open", file).end == .exit(0))
            for (name, after) in [("a", "3/x"), ("b", "x")] {
                let added = try await up.operon(
                    "submit",
                    "--graph",
                    "3",
                    "--name",
                    name,
                    "--after",
                    after,
                    "--",
                    "true"
                )
                #expect(added.end == .exit(0), "\(added.errors)")
                let waits = try await up.operon("explain", "3/\(name)")
                #expect(waits.output.contains("3/x"), "\(waits.output)")
            }
            for wrong in [
                [], [file, "--", "true"], [file, "--name", "n"], ["--after", "x", "--", "true"],
                ["--set", "a=b", "--", "true"],
            ] {
                let refused = try await up.operon(["submit"] + wrong)
                #expect(refused.end == .exit(2), "\(wrong)")
            }
        }
    }
}
