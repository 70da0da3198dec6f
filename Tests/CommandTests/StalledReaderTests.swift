import Glibc
import OperonFaultKit
import Testing

/// Programs whose output nobody reads, or no disk takes.
@Suite struct StalledReaderTests {
    @Test(arguments: [
        ["validate", "graph.yaml"], ["validate", "--output", "json", "graph.yaml"],
        ["graph", "graph.yaml"], ["graph", "--format", "html", "graph.yaml"],
        ["run", "--dry-run", "graph.yaml"], ["run", "--output", "json", "graph.yaml"],
        ["run", "--show-output=stream", "graph.yaml"], ["--help"], ["run", "--help"],
        ["map", "--dry-run", "echo", "{}", ":::", "1"], ["--version"], ["completion", "bash"],
    ])
    func `output that a full disk does not take fails the command`(
        _ arguments: [String]
    ) async throws {
        try await Workspace.run { workspace in
            _ = try workspace.write("graph.yaml", "name: g\noperations:\n  a: { run: 'echo a' }\n")
            let ended = try await workspace.operon(arguments, streams: .fullOutput)
            #expect(ended.end == .exit(74))
            #expect(ended.errors.contains("Standard output cannot be written"))
        }
    }

    /// How operations ended, which is what these commands otherwise end with.
    @Test(arguments: [
        (["run", "--output", "json"], "exit 1"), (["run", "--show-output"], "echo x; exit 1"),
        (["run", "--show-output=stream"], "echo x; exit 1"), (["run", "--output", "json"], "true"),
    ])
    func `lost output is told, however the operations ended`(
        _ arguments: [String],
        command: String
    ) async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write("g.yaml", "operations: { a: { run: '\(command)' } }")
            let ended = try await workspace.operon(arguments + [file], streams: .fullOutput)
            #expect(ended.end == .exit(74))
            #expect(ended.errors.contains("Standard output cannot be written"))
        }
    }

    /// Commands that wait, act, follow or look, at a coordinator.
    @Test(arguments: [Program.Streams.fullOutput, .closedOutput])
    func `a command of a coordinator whose output is lost says so, or ends as by SIGPIPE`(
        streams: Program.Streams
    ) async throws {
        try await Workspace.run { workspace in
            let graph = "name: g\noperations: { a: { run: 'echo x; exit 1' } }"
            _ = try workspace.write("g.yaml", graph)
            _ = try workspace.write("h.yaml", "name: h\noperations: { b: { external: true } }")
            _ = try workspace.write("t.yaml", "name: t\ngraph: g.yaml\non: { cron: '0 3 1 1 *' }")
            _ = try workspace.write("u.yaml", "name: u\ngraph: g.yaml\non: event")
            _ = try workspace.write("e.yaml", "name: e\ngraph: g.yaml\non: event")
            let up = try await Up(workspace)
            #expect(try await up.operon("submit", "g.yaml", "--wait").end == .exit(1))
            try await up.act("submit", "h.yaml")
            try await up.act("token", "create", "reader", "--role", "view")
            try await up.act("trigger", "add", "t.yaml")
            try await up.act("trigger", "add", "e.yaml")
            try await up.act("trigger", "fire", "e")
            try await up.act("key", "set", "k", "--limit", "2")
            for line in Self.looks + Self.acts {
                let ended = try await workspace.operon(
                    line.split(separator: " ").map(String.init),
                    environment: ["OPERON_COORDINATOR": up.address],
                    streams: streams
                )
                Self.expectLost(line, ended, streams)
            }
        }
    }

    private static let looks = [
        "list", "status", "status 0", "operations 0", "show 0/a", "explain h/b", "watch 0",
        "logs 0/a", "queue list", "queue show default", "key list", "workers", "dead", "approvals",
        "events --after 0", "report 0 -", "trigger list", "trigger show t",
        "trigger next t", "trigger history e", "audit", "audit --verify", "token list",
    ]

    private static let acts = [
        "submit g.yaml --output quiet", "submit g.yaml --wait --output json",
        "submit g.yaml --watch --output json", "submit --output quiet -- true",
        "resubmit g g.yaml --dry-run --output json", "resubmit g g.yaml --output json",
        "retry 0 --wait --output json", "wait 0 --output json",
        "logs 0/a --follow", "logs 0 --follow", "events --follow --after 0",
        "suspend h --output json", "resume h --output json",
        "key set k --limit 3 --output json", "queue set default --max 4 --output json",
        "trigger add u.yaml --output json", "trigger fire u --output json",
        "trigger suspend t --output json", "trigger resume t --output json",
        "trigger remove u --output json", "token create two --role view --output json",
        "token revoke two --output json", "backup copy.db --output json",
        "complete h/b --value 1 --output json", "cancel 0 --output json",
    ]

    private static func expectLost(_ line: String, _ ended: Ended, _ streams: Program.Streams) {
        let isFull = streams == .fullOutput
        #expect(ended.end == (isFull ? .exit(74) : .signal(SIGPIPE)), "\(line): \(ended)")
        let isTold = ended.errors.contains("Standard output cannot be written")
        #expect(isTold == isFull, "\(line): \(ended.errors)")
    }

    @Test(arguments: [Program.Streams.fullOutput, .closedOutput])
    func `a command without a coordinator whose output is lost says so, too`(
        streams: Program.Streams
    ) async throws {
        try await Workspace.run { workspace in
            _ = try workspace.write("t.yaml", "name: t\ngraph: g.yaml\non: event")
            _ = try workspace.write("g.yaml", "operations: { a: { run: 'true' } }")
            let run = try await workspace.operon(["run", "--store", "r.db", "g.yaml"])
            #expect(run.end == .exit(0))
            let broker = try Workspace.testBroker()
            for line in [
                "doctor --broker \(broker) --prefix \(workspace.prefix)",
                "validate t.yaml", "store check r.db", "store prune r.db --count 1",
                "store vacuum r.db", "store backup r.db copy.db --output json",
            ] {
                let words = line.split(separator: " ").map(String.init)
                Self.expectLost(line, try await workspace.operon(words, streams: streams), streams)
            }
        }
    }

    @Test func `a run does its work, and ends at the second signal`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "graph.yaml",
                """
                name: unread
                operations:
                  first: { run: 'echo first >> ran' }
                  second: { run: 'echo second >> ran; exit 1', dependencies: [first] }
                """
            )
            let run = try workspace.startRun(
                file,
                on: .inProcess,
                ["--logs", "logs", "--output", "json"],
                streams: .unreadErrors
            )
            try await workspace.waitForLines(2, of: "ran")
            // Nothing tells that a signal was taken, and two at once are one.
            let signals = Task {
                while !Task.isCancelled {
                    run.signal(SIGINT)
                    try await Task.sleep(for: .milliseconds(200))
                }
            }
            let ended = try await run.end()
            signals.cancel()
            #expect([.exit(130), .signal(SIGINT)].contains(ended.end))
        }
    }
}
