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
            #expect(ended.errors.contains("standard output cannot be written"))
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
