import Foundation
import OperonFaultKit
import Testing

/// `forEach: { output: … }`, as users run it.
@Suite struct OutputElementTests {
    private static func graph(_ list: String, _ more: String = "") -> String {
        """
        name: sweep
        operations:
          list: { run: '\(list)' }
          render:
            run: echo "$item" >> ledger
            forEach: { output: list }
        \(more)
          after: { run: touch after, dependencies: [render] }
        """
    }

    private static func isThere(_ name: String, _ workspace: Workspace) -> Bool {
        FileManager.default.fileExists(atPath: workspace.path(name))
    }

    @Test func `an output becomes elements, which others follow one by one and all together`()
        async throws
    {
        try await Workspace.run { workspace in
            let more = """
                  send:
                    run: jq -r ".[]" $OPERON_INPUTS >> sent || sed "s/.*://" $OPERON_INPUTS >> sent
                    forEach: { output: list }
                    dependencies: ["render[*]"]
                """
            let text = Self.graph(#"echo "[\"a b\", 2, true]" > $OPERON_OUTPUT"#, more)
                .replacing(
                    #"echo "$item" >> ledger"#,
                    with: #"echo "$item" >> ledger; echo "\"$item\"" > $OPERON_OUTPUT"#
                )
            let file = try workspace.write("graph.yaml", text)
            let ended = try await workspace.operon(["run", file, "--slots", "2"])
            #expect(ended.end == .exit(0), "\(ended.errors)")
            // The list, three elements twice, what adds them and their groups, and the last one.
            #expect(ended.errors.contains("12 operations: 12 succeeded"), "\(ended.errors)")
            #expect(workspace.lines(of: "ledger").sorted() == ["2", "a b", "true"])
            #expect(workspace.lines(of: "sent").count == 3)
            #expect(Self.isThere("after", workspace))
        }
    }

    @Test(arguments: [
        ("true", "“list” left no output"), ("echo {} > $OPERON_OUTPUT", "is a map"),
        ("echo [1,[]] > $OPERON_OUTPUT", "element 1 (counted from 0)"),
    ])
    func `an output that is no list fails what adds the elements, and adds nothing`(
        list: String,
        message: String
    ) async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write("graph.yaml", Self.graph(list))
            let ended = try await workspace.operon(["run", file])
            #expect(ended.end == .exit(1), "\(ended.errors)")
            #expect(ended.errors.contains("failed render.forEach: "), "\(ended.errors)")
            #expect(ended.errors.contains(message), "\(ended.errors)")
            #expect(ended.errors.contains("4 operations:"), "\(ended.errors)")
            #expect(!Self.isThere("after", workspace))
        }
    }

    @Test func `an element that no graph may have fails what adds the elements, and adds nothing`()
        async throws
    {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "graph.yaml",
                Self.graph("echo [false,true] > $OPERON_OUTPUT", "    enforce: ${item}")
            )
            let ended = try await workspace.operon(["run", file])
            #expect(ended.end == .exit(1), "\(ended.errors)")
            let why = "enforce of “render[true]”: its resources have neither cpus nor memory"
            #expect(ended.errors.contains(why), "\(ended.errors)")
            #expect(ended.errors.contains("4 operations:"), "\(ended.errors)")
            #expect(!Self.isThere("ledger", workspace))
        }
    }

    @Test func `no elements are a success`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write("graph.yaml", Self.graph("echo [] > $OPERON_OUTPUT"))
            let ended = try await workspace.operon(["run", file])
            #expect(ended.end == .exit(0), "\(ended.errors)")
            #expect(Self.isThere("after", workspace))
        }
    }

    @Test func `inFlight bounds the elements that are added`() async throws {
        try await Workspace.run { workspace in
            let text = Self.graph(#"echo "\"1..40\"" > $OPERON_OUTPUT"#, "    inFlight: 2")
                .replacing(
                    #"echo "$item" >> ledger"#,
                    with: "mkdir a 2>/dev/null || mkdir b || touch third; sleep 0.02;"
                        + " rmdir b 2>/dev/null || rmdir a; echo $item >> ledger"
                )
            let file = try workspace.write("graph.yaml", text)
            let ended = try await workspace.operon(["run", file, "--slots", "8"])
            #expect(ended.end == .exit(0), "\(ended.errors)")
            #expect(workspace.lines(of: "ledger").count == 40)
            #expect(!Self.isThere("third", workspace))
        }
    }

    @Test func `a coordinator folds the elements, and its retry of the group runs what failed`()
        async throws
    {
        try await Workspace.run { workspace in
            let text = Self.graph(#"echo "[\"a\", \"b\", \"c\"]" > $OPERON_OUTPUT"#)
                .replacing(
                    #"echo "$item" >> ledger"#,
                    with: #"echo "$item" >> ledger; test -e fixed -o $item = a"#
                )
            let file = try workspace.write("sweep.yaml", text)
            let up = try await Up(workspace)
            #expect(try await up.operon("submit", file, "--wait").end == .exit(1))
            let listed = try await up.operon("operations", "sweep")
            #expect(listed.output.contains("3: 1 succeeded, 2 failed"), "\(listed.output)")
            #expect(!listed.output.contains("render[a]"), "\(listed.output)")
            // No page lists the elements again one by one.
            let first = try await up.operon("operations", "sweep", "--limit", "2")
            #expect(first.output.contains("3: 1 succeeded, 2 failed"), "\(first.output)")
            #expect(first.errors.contains("--after 2"), "\(first.errors)")
            let second = try await up.operon("operations", "sweep", "--after", "2")
            #expect(second.output.contains("/after"), "\(second.output)")
            #expect(!second.output.contains("render["), "\(second.output)")
            let status = try await up.operon("status", "sweep")
            #expect(status.output.contains("render[*]"), "\(status.output)")

            try await up.restart()
            _ = try workspace.write("fixed", "")
            let retried = try await up.operon("retry", "sweep/render")
            #expect(retried.end == .exit(0), "\(retried.errors)")
            #expect(try await up.operon("wait", "sweep").end == .exit(0))
            #expect(workspace.lines(of: "ledger").sorted() == ["a", "b", "b", "c", "c"])
            #expect(Self.isThere("after", workspace))
        }
    }
}
