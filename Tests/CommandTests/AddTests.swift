import Foundation
import Glibc
import Testing

/// Commands that add operations to the graph that they are part of.
@Suite struct AddTests {
    /// One operation for each of three files, which notes itself in a ledger, and one behind them.
    private static let more = """
        {"name":"count-1","run":"echo count-1 >> ledger; echo 1 > $OPERON_OUTPUT"}
        {"name":"count-2","run":"echo count-2 >> ledger; echo 2 > $OPERON_OUTPUT"}
        {"name":"merge","run":"cat $OPERON_INPUTS > merged","dependencies":["count-1","count-2"]}

        """

    private static func graph(_ script: String, _ keys: String = "") throws -> String {
        let operon = try Program.executable("operon")
        let lines = script.replacing("operon add", with: "'\(operon)' add")
            .split(separator: "\n").map { "      \($0)" }.joined(separator: "\n")
        return """
            name: dynamic
            operations:
              find:
            \(keys)
                run: |
            \(lines)
            """
    }

    private static func expectMerged(_ workspace: Workspace) throws {
        #expect(workspace.lines(of: "ledger").sorted() == ["count-1", "count-2"])
        let merged = try workspace.read("merged")
        #expect(merged.contains(#""count-1":1"#), "\(merged)")
        #expect(merged.contains(#""count-2":2"#), "\(merged)")
    }

    @Test func `what a command adds runs, and what its next attempt adds again does not`()
        async throws
    {
        try await Workspace.run { workspace in
            _ = try workspace.write("more.jsonl", Self.more)
            let file = try workspace.write(
                "graph.yaml",
                try Self.graph(
                    """
                    operon add more.jsonl > added.$OPERON_ATTEMPT 2> said.$OPERON_ATTEMPT
                    test $OPERON_ATTEMPT = 2
                    """,
                    "    retry: { limit: 1, delay: 10ms }"
                )
            )

            let ended = try await workspace.operon(["run", file, "--slots", "2"])

            #expect(ended.end == .exit(0), "\(ended.errors)")
            #expect(ended.errors.contains("4 operations: 4 succeeded"), "\(ended.errors)")
            try Self.expectMerged(workspace)
            #expect(workspace.lines(of: "added.1") == ["count-1", "count-2", "merge"])
            #expect(workspace.lines(of: "said.1") == ["added 3 operations"])
            #expect(workspace.lines(of: "said.2") == ["added 0 operations; 3 existed already"])
        }
    }

    @Test func `what cannot be added is refused with its place, and nothing of it is there`()
        async throws
    {
        try await Workspace.run { workspace in
            _ = try workspace.write(
                "unknown.jsonl",
                #"{"name":"x","run":"true","dependencies":["y"]}"#
            )
            _ = try workspace.write("taken.jsonl", #"{"name":"find","run":"true"}"#)
            let file = try workspace.write(
                "graph.yaml",
                try Self.graph(
                    """
                    operon add unknown.jsonl 2> unknown; echo $? > codes
                    operon add taken.jsonl 2> taken; echo $? >> codes
                    OPERON_TOKEN=old operon add taken.jsonl 2> token; echo $? >> codes
                    OPERON_SOCKET=/none operon add taken.jsonl 2> socket; echo $? >> codes
                    """
                )
            )

            let ended = try await workspace.operon(["run", file])

            #expect(ended.end == .exit(0), "\(ended.errors)")
            #expect(ended.errors.contains("1 operation: 1 succeeded"), "\(ended.errors)")
            #expect(workspace.lines(of: "codes") == ["2", "2", "6", "5"])
            let unknown = try workspace.read("unknown")
            #expect(unknown.contains("unknown.jsonl:1:"), "\(unknown)")
            #expect(unknown.contains("“x” depends on “y”, which does not exist"), "\(unknown)")
            #expect(try workspace.read("taken").contains("has an operation “find” already"))
            #expect(try workspace.read("token").contains("does not know OPERON_TOKEN"))
            #expect(try workspace.read("socket").contains("cannot be reached"))

            let outside = try await workspace.operon(["add", workspace.path("taken.jsonl")])
            #expect(outside.end == .exit(2))
            #expect(outside.errors.contains("operon add only works inside a command"))
        }
    }

    @Test func `a value that a command gives to what it adds is no code`() async throws {
        try await Workspace.run { workspace in
            for (name, reference) in [("spliced", "${v}"), ("variable", "\"$v\"")] {
                let run = "'echo \(reference) > \(name).out'"
                _ = try workspace.write(
                    "\(name).yaml",
                    "parameters: { v: }\noperations: { \(name): { run: \(run) } }"
                )
            }
            let script = """
                operon add spliced.yaml --set 'v=$(touch touched)' 2> refused; echo $? > codes
                operon add variable.yaml --set 'v=$(touch touched)'; echo $? >> codes
                operon add spliced.yaml --set v=fine 2> taken; echo $? >> codes
                """
            let file = try workspace.write("graph.yaml", try Self.graph(script))

            let ended = try await workspace.operon(["run", file])

            #expect(ended.end == .exit(0), "\(ended.errors)")
            #expect(workspace.lines(of: "codes") == ["2", "0", "0"])
            let refused = try workspace.read("refused")
            #expect(refused.contains("write \"$v\", a variable"), "\(refused)")
            #expect(workspace.lines(of: "variable.out") == ["$(touch touched)"])
            #expect(workspace.lines(of: "spliced.out") == ["fine"])
            #expect(!FileManager.default.fileExists(atPath: workspace.path("touched")))
        }
    }

    @Test func `a run that is resumed knows what was added before`() async throws {
        try await Workspace.run { workspace in
            _ = try workspace.write("more.jsonl", Self.more)
            let script = "operon add more.jsonl; test -e fixed"
            let file = try workspace.write("graph.yaml", try Self.graph(script))
            let arguments = ["run", file, "--store", workspace.path("run.db")]
            #expect(try await workspace.operon(arguments).end == .exit(1))

            _ = try workspace.write("fixed", "")
            let ended = try await workspace.operon(arguments + ["--resume"])

            #expect(ended.end == .exit(0), "\(ended.errors)")
            #expect(ended.errors.contains("4 operations: 4 succeeded"), "\(ended.errors)")
            try Self.expectMerged(workspace)
        }
    }

    /// Adds, says so, and waits.
    private static let gated = """
        operon add more.jsonl > added.$OPERON_ATTEMPT
        touch has-added
        until test -e go; do sleep 0.05; done
        """

    @Test func `a worker that is killed behind an addition doubles nothing`() async throws {
        try await Workspace.run { workspace in
            _ = try workspace.write("more.jsonl", Self.more)
            let file = try workspace.write("graph.yaml", try Self.graph(Self.gated))
            let first = try workspace.startWorkers(1, slots: 1)
            let run = try workspace.startRun(file, on: .broker)
            // Its only slot is taken: what was added waits.
            try await workspace.waitForFile("has-added")
            first[0].signal(SIGKILL)
            _ = try workspace.write("go", "")
            try workspace.startWorkers(1, slots: 2)
            let ended = try await run.end()

            #expect(ended.end == .exit(0), "\(ended.errors)")
            #expect(ended.errors.contains("4 operations: 4 succeeded"), "\(ended.errors)")
            try Self.expectMerged(workspace)
            #expect(workspace.lines(of: "added.2") == ["count-1", "count-2", "merge"])
        }
    }

    @Test func `what was added is there after the coordinator and its worker were killed`()
        async throws
    {
        try await Workspace.run { workspace in
            // Behind the operation that adds them, so that none runs before the death.
            let behind = Self.more.replacing(#""run""#, with: #""queue":"held","run""#)
            _ = try workspace.write("more.jsonl", behind)
            let file = try workspace.write(
                "graph.yaml",
                "queues: { held: { isSuspended: true } }\n" + (try Self.graph(Self.gated))
            )
            let up = try await Up(workspace)
            #expect(try await up.operon("submit", file).end == .exit(0))
            try await workspace.waitForFile("has-added")
            try await up.restart()
            _ = try workspace.write("go", "")
            #expect(try await up.operon("resume", "--queue", "held").end == .exit(0))
            let ended = try await up.operon("wait", "dynamic")

            #expect(ended.end == .exit(0), "\(ended.errors)")
            try Self.expectMerged(workspace)
            #expect(workspace.lines(of: "added.2") == ["count-1", "count-2", "merge"])
        }
    }
}
