import Foundation
import Glibc
import Testing

/// Commands that wait for others of their graph.
@Suite struct AwaitTests {
    private static let more = """
        {"name":"one","run":"echo one >> ledger"}
        {"name":"two","run":"echo two >> ledger; exit 3","dependencies":["one"]}
        {"name":"three","run":"echo three >> ledger","dependencies":["two"]}

        """

    /// The parent comes first, whatever waits.
    private static func graph(_ script: String, others: String = "") throws -> String {
        let operon = try Program.executable("operon")
        let lines = script.replacing("operon a", with: "'\(operon)' a")
            .split(separator: "\n").map { "      \($0)" }.joined(separator: "\n")
        return """
            name: waiting
            operations:
              parent:
                priority: veryHigh
                run: |
            \(lines)
            \(others)
            """
    }

    @Test func `on one slot it goes on when all that it added has ended`() async throws {
        try await Workspace.run { workspace in
            _ = try workspace.write("more.jsonl", Self.more)
            let script = """
                operon add more.jsonl --wait > added 2> errors; echo $? > code
                echo parent >> ledger
                operon await one three > ended; echo $? >> code
                operon await one --output json > json; echo $? >> code
                """
            let file = try workspace.write("graph.yaml", try Self.graph(script))

            let ended = try await workspace.operon(["run", file, "--slots", "1"])

            #expect(ended.end == .exit(1), "\(ended.errors)")
            #expect(ended.errors.contains("2 succeeded, 1 failed, 1 skipped"), "\(ended.errors)")
            #expect(workspace.lines(of: "ledger") == ["one", "two", "parent"])
            #expect(workspace.lines(of: "added") == ["one", "two", "three"])
            let said = ["added 3 operations", "failed: two", "skipped: three"]
            #expect(workspace.lines(of: "errors") == said)
            #expect(workspace.lines(of: "ended") == ["one succeeded", "three skipped"])
            let json = #"{"operations":[{"name":"one","outcome":"succeeded"}],"version":1}"#
            #expect(workspace.lines(of: "json") == [json])
            #expect(workspace.lines(of: "code") == ["1", "7", "0"])
            // What it waited for is not counted twice: no run is shorter than its bound.
            #expect(ended.errors.contains(" the shortest possible"), "\(ended.errors)")
            #expect(!ended.errors.contains(#/\b0\.[0-9]+ times/#), "\(ended.errors)")
        }
    }

    @Test func `what could never end is refused by name, and so is what is not there`()
        async throws
    {
        try await Workspace.run { workspace in
            let script = """
                operon await parent 2> itself; echo $? > codes
                operon await last 2> last; echo $? >> codes
                operon await nobody 2> nobody; echo $? >> codes
                OPERON_TOKEN=old operon await last 2> token; echo $? >> codes
                operon await 2> none; echo $? >> codes
                """
            let others = """
                  after: { run: "true", dependencies: [parent] }
                  last: { run: "true", dependencies: [after] }
                """
            let file = try workspace.write("graph.yaml", try Self.graph(script, others: others))

            let ended = try await workspace.operon(["run", file, "--slots", "1"])

            #expect(ended.end == .exit(0), "\(ended.errors)")
            #expect(workspace.lines(of: "codes") == ["2", "2", "2", "6", "2"])
            #expect(try workspace.read("itself").contains("parent → parent"))
            let last = try workspace.read("last")
            #expect(last.contains("parent → last → after → parent"), "\(last)")
            #expect(try workspace.read("nobody").contains("no operation “nobody”"))
            #expect(try workspace.read("token").contains("does not know OPERON_TOKEN"))

            let outside = try await workspace.operon(["await", "x"])
            #expect(outside.end == .exit(2))
            #expect(outside.errors.contains("operon wait GRAPH"))
        }
    }

    @Test func `an operation whose command gives up waiting runs on, and may wait again`()
        async throws
    {
        try await Workspace.run { workspace in
            // Two of three run on two slots beside the parent, which thus has none.
            let script = """
                operon await one & waiting=$!
                until test -e has-two; do sleep 0.05; done
                kill -9 $waiting
                touch end-two
                wait $waiting
                operon await two > ended
                touch end-one
                """
            let others = """
                  one: { run: "touch has-one; until test -e end-one; do sleep 0.05; done" }
                  two: { run: "touch has-two; until test -e end-two; do sleep 0.05; done" }
                """
            let file = try workspace.write("graph.yaml", try Self.graph(script, others: others))

            let ended = try await workspace.operon(["run", file, "--slots", "2"])

            #expect(ended.end == .exit(0), "\(ended.errors)")
            #expect(ended.errors.contains("3 operations: 3 succeeded"), "\(ended.errors)")
            #expect(workspace.lines(of: "ended") == ["two succeeded"])
        }
    }

    /// Waits for what is held up, on the only slot there is.
    private static let held = """
        echo $OPERON_ATTEMPT >> attempts
        touch has-begun
        operon await gated
        echo "parent $?" >> ledger
        """
    private static let gated = """
          gated: { queue: held, run: "echo gated >> ledger" }
        """

    /// The worker has told the coordinator, which says so.
    private static func untilItWaits(_ explain: () async throws -> Ended) async throws {
        let deadline = ContinuousClock.now + .seconds(60)
        while ContinuousClock.now < deadline {
            let explained = try await explain()
            if explained.output.contains("It has started, and waits for “gated”") { return }
        }
        Issue.record("the coordinator never heard of the wait")
    }

    @Test func `explain says what it waits for, and another attempt waits again`()
        async throws
    {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "graph.yaml",
                "queues: { held: { isSuspended: true } }\n"
                    + (try Self.graph(Self.held, others: Self.gated))
            )
            let up = try await Up(workspace)
            #expect(try await up.operon("submit", file).end == .exit(0))
            try await workspace.waitForFile("has-begun")
            try await Self.untilItWaits { try await up.operon("explain", "waiting/parent") }

            try await up.restart()
            #expect(try await up.operon("resume", "--queue", "held").end == .exit(0))
            let ended = try await up.operon("wait", "waiting")

            #expect(ended.end == .exit(0), "\(ended.errors)")
            #expect(workspace.lines(of: "ledger").suffix(2) == ["gated", "parent 0"])
        }
    }

    @Test func `a worker that is killed under a wait costs its operation an attempt`()
        async throws
    {
        try await Workspace.run { workspace in
            let script = Self.held.replacing(
                "operon await gated",
                with: "operon await slow; operon await gated"
            )
            let others = """
                  slow: { run: "touch slow; until test -e go; do sleep 0.05; done" }
                  gated: { run: "echo gated >> ledger", dependencies: [slow] }
                """
            let file = try workspace.write("graph.yaml", try Self.graph(script, others: others))
            let first = try workspace.startWorkers(1, slots: 1)
            let run = try workspace.startRun(file, on: .broker)
            // It runs on the slot that was given back.
            try await workspace.waitForFile("slow")
            first[0].signal(SIGKILL)
            _ = try workspace.write("go", "")
            try workspace.startWorkers(1, slots: 1)
            let ended = try await run.end()

            #expect(ended.end == .exit(0), "\(ended.errors)")
            #expect(ended.errors.contains("3 operations: 3 succeeded"), "\(ended.errors)")
            #expect(workspace.lines(of: "attempts").last == "2")
            #expect(workspace.lines(of: "ledger") == ["gated", "parent 0"])
        }
    }
}
