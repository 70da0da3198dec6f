import Glibc
import OperonFaultKit
import Testing

/// `operon run --report`, and graphs as pictures.
@Suite struct ReportFileTests {
    private static let graph = """
        name: nightly
        operations:
          fetch: { run: 'true' }
          load: { run: 'echo "no <space> left"; exit 3', dependencies: [fetch] }
          after: { run: 'true', dependencies: [load] }
        """

    @Test(arguments: Place.allCases)
    func `a run leaves a page that says what happened`(place: Place) async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write("graph.yaml", Self.graph)
            if place == .broker { try workspace.startWorkers(1, slots: 2) }
            let run = try workspace.startRun(file, on: place, ["--report", "report.html"])
            #expect(try await run.end().end == .exit(1))
            let page = try workspace.read("report.html")
            for part in [
                "<title>nightly: failed</title>", "✗ load</h3>", "no &lt;space&gt; left",
                "<td>because of “load”", "class=\"timeline\"", "class=\"box skipped",
            ] {
                #expect(page.contains(part), "\(part)")
            }
            // The broker has a password.
            #expect(!page.contains("amqp:"))
        }
    }

    @Test func `elements that were found at run time are in the picture and on the path`()
        async throws
    {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "graph.yaml",
                """
                operations:
                  list: { run: 'echo "[1, 2]" > $OPERON_OUTPUT' }
                  part:
                    run: sleep 0.3
                    forEach: { output: list }
                  last: { run: sleep 0.3, dependencies: ["part[*]"] }
                """
            )
            let run = try workspace.startRun(
                file,
                on: .inProcess,
                ["--report", "report.html", "--output", "json"]
            )
            let report = try await run.end().report()
            #expect(report.criticalPath >= 0.6)
            let page = try workspace.read("report.html")
            // From the list over an element and the group to the last.
            #expect(page.split(separator: "<path class=\"arrow critical\"").count > 3)
            #expect(page.contains("<title>part[1]: succeeded"))
        }
    }

    @Test func `the report of a graph says what happened, also after a restart`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write("graph.yaml", Self.graph)
            let up = try await Up(workspace)
            #expect(try await up.operon("submit", file).end == .exit(0))
            #expect(try await up.operon("wait", "nightly").end == .exit(1))
            try await up.restart()
            let written = try await up.operon("report", "nightly", "nightly report.html")
            #expect(written.end == .exit(0), "\(written.errors)")
            #expect(
                written.errors.hasPrefix("Wrote the report of graph 0 to nightly report.html: ")
            )
            let page = try workspace.read("nightly report.html")
            for part in [
                "<title>nightly: failed</title>", "✗ load</h3>", "no &lt;space&gt; left",
                "exit code 3", "<td>because of “load”", "class=\"timeline\"",
                "class=\"box skipped", "<dt>critical path</dt>",
            ] {
                #expect(page.contains(part), "\(part)")
            }
            #expect(try await up.operon("report", "0").end == .exit(0))
            #expect(try workspace.read("nightly.html") == page)
            let printed = try await up.operon("report", "0", "-")
            #expect(printed.end == .exit(0) && printed.output == page && printed.errors == "")
            #expect(try await up.operon("report", "none").end == .exit(6))
            let refused = try await up.operon("report", "0", "none/report.html")
            #expect(refused.end == .exit(2))
            #expect(refused.errors.hasPrefix("The report cannot be written to none/report.html: "))
        }
    }

    @Test func `the report of a graph that runs shows it as it is`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "graph.yaml",
                """
                name: asks
                operations:
                  first: { run: 'true' }
                  ask: { external: true, dependencies: [first] }
                  last: { run: 'true', dependencies: [ask] }
                """
            )
            let up = try await Up(workspace)
            #expect(try await up.operon("submit", file).end == .exit(0))
            #expect(try await up.operon("approvals").end == .exit(0))
            let written = try await up.operon("report", "asks", "asks.html", "--output", "json")
            #expect(written.output.contains(#""path":"asks.html""#), "\(written.output)")
            let page = try workspace.read("asks.html")
            #expect(page.contains("<title>asks: still running</title>"))
            for fact in ["coordinator", "workers", "written by"] {
                #expect(page.contains("<dt>\(fact)</dt>"), "\(fact)")
            }
            // One operation has run: however many slots there are, one was busy.
            #expect(page.contains("<dt>slots</dt><dd>1</dd>"))
        }
    }

    @Test func `a run that is interrupted leaves it, too`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "graph.yaml",
                "operations: { long: { run: sleep 1000 } }"
            )
            let run = try workspace.startRun(file, on: .inProcess, ["--report", "report.html"])
            try await run.says("running long\n")
            run.signal(SIGINT)
            #expect(try await run.end().end == .exit(130))
            #expect(try workspace.read("report.html").contains("⊘ cancelled"))
        }
    }

    @Test func `a place that cannot be written is refused before anything runs`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write("graph.yaml", "operations: { a: { run: touch ran } }")
            let ended = try await workspace.operon(["run", file, "--report", "none/report.html"])
            #expect(ended.end == .exit(2))
            #expect(ended.errors.hasPrefix("The report cannot be written to none/report.html: "))
            for (option, what) in [("--report", "The report"), ("--trace", "The timeline")] {
                let lost = try await workspace.operon(["run", option, "-", file])
                #expect(lost.end == .exit(2))
                #expect(lost.errors.hasPrefix("\(what) goes to a file, not to standard output."))
            }
            #expect(workspace.lines(of: "ran") == [])
        }
    }

    @Test func `a report that cannot be written after the run is lost output`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "graph.yaml",
                """
                parameters: { code: { default: "0" } }
                operations: { a: { run: "rm -r out; exit ${code}" } }
                """
            )
            for (option, what) in [("--report", "The report"), ("--trace", "The timeline")] {
                for (code, end) in [("0", Int32(74)), ("3", 1)] {
                    try #require(mkdir(workspace.path("out"), 0o755) == 0)
                    let ended = try await workspace.operon(
                        ["run", file, option, "out/file", "--set", "code=\(code)"]
                    )
                    #expect(ended.end == .exit(end), "\(ended.errors)")
                    let begin = "\(what) cannot be written to out/file: "
                    #expect(ended.errorLines.contains { $0.hasPrefix(begin) }, "\(ended.errors)")
                }
            }
        }
    }

    @Test(arguments: ["svg", "html"])
    func `a graph is drawn`(format: String) async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write("graph.yaml", Self.graph)
            let drawn = try await workspace.operon(["graph", file, "--format", format])
            #expect(drawn.end == .exit(0))
            #expect(drawn.output.hasPrefix(format == "svg" ? "<?xml" : "<!DOCTYPE html>"))
            #expect(drawn.output.split(separator: "<g class=\"box plain\"").count == 4)
            #expect(drawn.output.split(separator: "<path class=\"arrow\"").count == 3)
        }
    }
}
