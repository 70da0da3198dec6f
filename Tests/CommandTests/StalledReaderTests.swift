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

    /// Commands that wait, act or follow, at a coordinator.
    @Test(arguments: [Program.Streams.fullOutput, .closedOutput])
    func `a command of a coordinator whose output is lost says so, or ends as by SIGPIPE`(
        streams: Program.Streams
    ) async throws {
        try await Workspace.run { workspace in
            let graph = "name: g\noperations: { a: { run: 'echo x; exit 1' } }"
            _ = try workspace.write("g.yaml", graph)
            _ = try workspace.write("h.yaml", "name: h\noperations: { b: { external: true } }")
            let up = try await Up(workspace)
            #expect(try await up.operon("submit", "g.yaml", "--wait").end == .exit(1))
            try await up.act("submit", "h.yaml")
            for line in [
                "submit g.yaml --output quiet", "submit g.yaml --wait --output json",
                "submit g.yaml --watch --output json", "submit --output quiet -- true",
                "resubmit g g.yaml --dry-run --output json", "resubmit g g.yaml --output json",
                "retry 0 --wait --output json", "wait 0 --output json",
                "logs 0/a --follow", "logs 0 --follow", "events --follow --after 0",
                "suspend h --output json", "resume h --output json",
                "complete h/b --value 1 --output json", "cancel 0 --output json",
            ] {
                var words = line.split(separator: " ").map(String.init)
                words.insert(contentsOf: ["--coordinator", up.address], at: 1)
                let ended = try await workspace.operon(words, streams: streams)
                let isFull = streams == .fullOutput
                #expect(ended.end == (isFull ? .exit(74) : .signal(SIGPIPE)), "\(line): \(ended)")
                let isTold = ended.errors.contains("Standard output cannot be written")
                #expect(isTold == isFull, "\(line): \(ended.errors)")
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
