import Foundation
import OperonFaultKit
import OperonModel
import Testing

/// Operations that somebody outside completes, as a person does.
@Suite(.timeLimit(.minutes(5))) struct CompleteTests {
    @Test func `an approval waits through a restart, and its output goes to what waits for it`()
        async throws
    {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "release.yaml",
                """
                name: release
                operations:
                  build: { run: touch built }
                  approve:
                    external: true
                    input: { who: ops }
                    dependencies: [build]
                  deploy: { run: 'cat $OPERON_INPUTS > deploy.in', dependencies: [approve] }
                """
            )
            let up = try await Up(workspace)
            #expect(try await up.operon("submit", file).end == .exit(0))
            let early = try await up.operon("complete", "release/deploy", "--yes")
            #expect(early.end == .exit(2))
            #expect(early.errors.contains("it is not external"), "\(early.errors)")
            let mute = try await up.operon("complete", "release/approve")
            #expect(mute.end == .exit(2))
            #expect(
                mute.errors.contains("give --yes, --value, --fail or --cancel"),
                "\(mute.errors)"
            )
            try await workspace.waitForFile("built")
            try await waitUntilExecuting("release/approve", up)
            try await up.restart()

            let explained = try await up.operon("explain", "release/approve")
            #expect(explained.output.contains("complete it: operon complete 0/approve\n"))
            let detail = try await detail("release/approve", up)
            let attempt = try #require(detail.attempts.last)
            #expect(attempt.worker.isEmpty && attempt.ending == nil)
            let value = ["--value", #"{"by": "me"}"#]
            let stale = try await up.operon(["complete", "0/approve", "--attempt", "1.99"] + value)
            #expect(stale.end == .exit(2))
            #expect(stale.errors.contains("attempt id 1.99"), "\(stale.errors)")
            let done = try await up.operon(
                ["complete", "release/approve", "--attempt", attempt.id] + value
            )
            #expect(done.end == .exit(0))
            #expect(done.errors == "0/approve succeeded.\n")
            let again = try await up.operon(["complete", "release/approve"] + value)
            #expect(again.end == .exit(2))
            #expect(again.errors.contains("has finished already"), "\(again.errors)")
            #expect(try await up.operon("wait", "release").end == .exit(0))
            #expect(try workspace.read("deploy.in").contains(#""approve":{"by": "me"}"#))
            #expect(try await up.operon("output", "0/approve").output == #"{"by": "me"}"#)
        }
    }

    @Test func `it fails, is tried again, and is given up, as it is told`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "asks.yaml",
                """
                name: asks
                operations:
                  twice: { external: true, retry: { limit: 1, delay: 0s } }
                  no: { external: true }
                """
            )
            let up = try await Up(workspace)
            #expect(try await up.operon("submit", file).end == .exit(0))
            let first = try await up.operon("complete", "asks/twice", "--fail", "busy")
            #expect(first.end == .exit(0), "\(first.errors)")
            #expect(first.errors.contains("will be tried again"), "\(first.errors)")
            let second = try await up.operon("complete", "asks/twice", "--fail", "busy")
            #expect(second.errors == "0/twice failed: busy.\n")
            let given = try await up.operon("complete", "asks/no", "--cancel", "--reason", "later")
            #expect(given.errors == "0/no was cancelled: later.\n")
            #expect(try await up.operon("wait", "asks").end == .exit(1))
            let shown = try await detail("asks/twice", up)
            #expect(shown.attempts.map(\.ending) == ["failed", "failed"])
            for line in [["--value", "1", "--cancel"], ["--value", "yes"], ["--reason", "x"]] {
                let wrong = try await up.operon(["complete", "asks/no"] + line)
                #expect(wrong.end == .exit(2), "\(line)")
            }
        }
    }

    @Test func `what waits for people is listed, and answered at a terminal`() async throws {
        try await Workspace.run { workspace in
            let up = try await Up(workspace)
            let file = try workspace.write(
                "graph.yaml",
                """
                name: asks
                operations:
                  first: { external: true, input: { build: 17 } }
                  second: { external: true, description: 'Send the report?', timeout: 2d }
                """
            )
            let none = try await up.operon("approvals")
            #expect(none.output == "" && none.errors == "Nothing waits for anybody.\n")
            #expect(try await up.operon("submit", file).end == .exit(0))
            try await waitUntilExecuting("asks/first", up)
            try await waitUntilExecuting("asks/second", up)
            let listed = try await up.operon("approvals")
            #expect(listed.output.contains("\n  build: 17\n"), "\(listed.output)")
            #expect(listed.output.contains("\n  Send the report?\n"))
            #expect(listed.output.contains("TIMES OUT"))
            let all = try await up.operon("list")
            #expect(all.output.contains(#/asks +running +2 /#), "\(all.output)")
            let status = try await up.operon("status", "asks")
            #expect(status.output.contains("2; to list them: operon approvals"), "\(status.output)")
            #expect(try await up.operon("approvals", "--output", "quiet").outputLines.count == 2)
            // Whoever waits for the graph learns what it waits for.
            let waited = try await up.operon("wait", "asks", "--timeout", "2s")
            #expect(waited.end == .exit(4))
            let people = "2 operations wait for somebody: operon approvals."
            #expect(waited.errors.hasPrefix("graph 0 “asks”: \(people)\n"), "\(waited.errors)")
            #expect(
                waited.errors.hasSuffix("operations. \(people) To keep waiting: operon wait 0\n"),
                "\(waited.errors)"
            )
            let long = try workspace.write(
                "long.yaml",
                "name: long\noperations: { x: { external: true, input: \"first\\r\\n"
                    + String(repeating: "more\\n", count: 30) + "\" } }"
            )
            #expect(try await up.operon("submit", long).end == .exit(0))
            try await waitUntilExecuting("long/x", up)
            let cut = try await up.operon("approvals")
            #expect(cut.output.contains("\n  first"), "\(cut.output)")
            #expect(cut.output.contains("… and 12 more lines: operon show"), "\(cut.output)")
            #expect(try await up.operon("cancel", "long").end == .exit(0))
            let shown = try await up.operon("show", "asks/first")
            #expect(shown.output.contains(#"input       {"build":17}"#), "\(shown.output)")

            let arguments = ["complete", "asks/first", "--coordinator", up.address]
            let asked = try workspace.start(
                "operon",
                arguments,
                streams: .terminal(columns: 80, rows: 24)
            )
            try await asked.says("[y/n/c] ")
            try asked.type("n\n")
            #expect(try await asked.end().end == .exit(0))
            #expect(try await detail("asks/first", up).operation.outcome == .failed)
            #expect(try await up.operon("complete", "asks/second", "--yes").end == .exit(0))
            #expect(try await up.operon("wait", "asks").end == .exit(1))
            let graphs = try await up.operon("list", "--status", "failed", "--output", "quiet")
            #expect(graphs.output == "0\n")
            #expect(try await up.operon("list", "--status", "finished").output.contains("failed"))
        }
    }

    @Test func `a question that is interrupted stays on a line of its own`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write("g.yaml", "operations: { ask: { external: true } }")
            let run = try workspace.start(
                "operon",
                ["run", "--local", file],
                streams: .terminal(columns: 80, rows: 24)
            )
            try await run.says("[y/n/c] ")
            run.signal(SIGINT)
            let ended = try await run.end()
            #expect(ended.end == .exit(130))
            #expect(ended.output.contains("[y/n/c] \r\nCancelling. "), "\(ended.output)")
        }
    }

    @Test(arguments: [
        (timeout: "1s", typed: "", code: 1), (timeout: "1h", typed: "\u{4}", code: 3),
    ])
    func `so does one that times out, or whose answers have ended`(
        timeout: String,
        typed: String,
        code: Int32
    ) async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "g.yaml",
                "operations: { ask: { external: true, timeout: \(timeout) } }"
            )
            let run = try workspace.start(
                "operon",
                ["run", "--local", file],
                streams: .terminal(columns: 80, rows: 24)
            )
            try await run.says("[y/n/c] ")
            try run.type(typed)
            let ended = try await run.end()
            #expect(ended.end == .exit(code))
            #expect(ended.output.contains("[y/n/c] \r\n"), "\(ended.output)")
        }
    }

    private func detail(_ operation: String, _ up: Up) async throws -> OperationDetail {
        let shown = try await up.operon("show", operation, "--output", "json")
        return try JSONDecoder().decode(OperationDetail.self, from: Data(shown.output.utf8))
    }

    private func waitUntilExecuting(_ operation: String, _ up: Up) async throws {
        while try await detail(operation, up).operation.state != .executing {
            // Nobody is told of it but who asks.
            try await Task.sleep(for: .milliseconds(20))
        }
    }
}
