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

    private static let taking = """
          told: { run: touch rendered, dependencies: [render] }
          gate: { run: 'while [ ! -e go ]; do sleep 0.02; done' }
          merge:
            run: 'cat "$OPERON_INPUTS" > inputs; echo merge >> merged'
            dependencies: ["render[*]", gate]
        """

    private static func collecting() -> String {
        graph(#"echo "[\"b\", \"a c\"]" > $OPERON_OUTPUT"#, taking)
            .replacing(
                #"echo "$item" >> ledger"#,
                with: #"echo "$item" >> ledger; echo "\"of $item\"" > $OPERON_OUTPUT"#
            )
    }

    private static let collected = [
        "render[b]": "of b", "render[a c]": "of a c", "gate": nil,
    ]

    private static func inputs(_ workspace: Workspace) throws -> [String: String?] {
        let inputs = Data(try workspace.read("inputs").utf8)
        return try JSONDecoder().decode([String: String?].self, from: inputs)
    }

    @Test func `an operation takes the outputs of all elements`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write("sweep.yaml", Self.collecting())
            _ = try workspace.write("go", "")
            let ended = try await workspace.operon(["run", file])
            #expect(ended.end == .exit(0), "\(ended.errors)")
            #expect(try Self.inputs(workspace) == Self.collected)
        }
    }

    @Test func `it takes them after a restart, a retry, and in a graph that goes on`()
        async throws
    {
        try await Workspace.run { workspace in
            let file = try workspace.write("sweep.yaml", Self.collecting())
            let up = try await Up(workspace)
            #expect(try await up.operon("submit", file).end == .exit(0))
            try await workspace.waitForFile("rendered")
            try await up.restart()
            _ = try workspace.write("go", "")
            try await up.act("wait", "sweep")
            #expect(try Self.inputs(workspace) == Self.collected)

            // The elements and their outputs are those of the first graph.
            try FileManager.default.removeItem(atPath: workspace.path("inputs"))
            try await up.act("retry", "sweep/merge", "--from", "--wait")
            #expect(try Self.inputs(workspace) == Self.collected)
            #expect(workspace.lines(of: "ledger").count == 2)

            // The elements are added again.
            try FileManager.default.removeItem(atPath: workspace.path("inputs"))
            try await up.act("retry", "1/list", "--from", "--wait")
            #expect(try Self.inputs(workspace) == Self.collected)
            #expect(workspace.lines(of: "ledger").count == 4)
            #expect(workspace.lines(of: "merged").count == 3)
        }
    }

    @Test func `what was added after an element runs again with all that depends on it`()
        async throws
    {
        try await Workspace.run { workspace in
            let file = try workspace.write("sweep.yaml", Self.collecting())
            let up = try await Up(workspace)
            #expect(try await up.operon("submit", file, "--open").end == .exit(0))
            try await workspace.waitForFile("rendered")
            let more = try workspace.write(
                "more.yaml",
                """
                operations:
                  more:
                    run: 'cat "$OPERON_INPUTS" > inputs; echo more >> mored'
                    dependencies: ["render[b]"]
                """
            )
            try await up.act("submit", more, "--graph", "sweep")
            try await up.act("graph", "close", "sweep")
            _ = try workspace.write("go", "")
            try await up.act("wait", "sweep")

            let plan = try await up.operon("retry", "sweep/more", "--from", "--dry-run")
            #expect(plan.output.contains("more: runs, as asked for"), "\(plan.output)")
            #expect(plan.output.contains("merge: stays"), "\(plan.output)")
            for operation in ["more", "list"] {
                try await up.act("retry", "sweep/" + operation, "--from", "--wait")
                let inputs = try Self.inputs(workspace)
                #expect(inputs["render[b]"] == "of b", "\(inputs)")
            }
            #expect(workspace.lines(of: "mored").count == 3)
            #expect(workspace.lines(of: "ledger").count == 4)
        }
    }

    @Test func `a dry run says which elements of the stored run will run`() async throws {
        try await Workspace.run { workspace in
            let text = Self.graph(#"echo "[1, 2]" > $OPERON_OUTPUT"#)
                .replacing(#"echo "$item" >> ledger"#, with: #"test "$item" = 1 || test -e go"#)
            let file = try workspace.write("graph.yaml", text)
            let run = ["run", "--local", file, "--store", "r.db", "--resume"]
            #expect(try await workspace.operon(run).end == .exit(1))
            let plan = try await workspace.operon(run + ["--dry-run"])
            #expect(
                plan.outputLines == [
                    "list: stays", "render.forEach: stays", "render: runs, because it was skipped",
                    "after: runs, because it was skipped", "render[1]: stays",
                    "render[2]: runs, because it failed",
                ]
            )
            _ = try workspace.write("go", "")
            #expect(try await workspace.operon(run).end == .exit(0))
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
