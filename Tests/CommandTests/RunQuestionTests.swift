import Foundation
import Glibc
import OperonFaultKit
import Testing

/// Questions that `operon run` asks at a terminal, for external operations.
@Suite struct RunQuestionTests {
    @Test func `a run asks a person at the terminal, and refuses where nobody can be asked`()
        async throws
    {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "g.yaml",
                """
                name: g
                operations:
                  approve: { external: true, description: 'Deploy build 17?' }
                  deploy: { run: 'touch deployed', dependencies: { approve: succeeded } }
                """
            )
            let refused = try await workspace.operon(["run", file])
            #expect(refused.end == .exit(1))
            #expect(refused.errors.contains("“approve” waits for a person"), "\(refused.errors)")

            let run = try workspace.start(
                "operon",
                ["run", file],
                streams: .terminal(columns: 80, rows: 24)
            )
            try await run.says("“approve” waits for you:")
            try await run.says("Deploy build 17?")
            try await run.says("[y/n/c] ")
            try run.type("what\n")
            try await run.says("[y/n/c] ", times: 2)
            try run.type("y\n")
            #expect(try await run.end().end == .exit(0))
            #expect(FileManager.default.fileExists(atPath: workspace.path("deployed")))
        }
    }

    @Test func `what fails while a question is open is told at once`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "g.yaml",
                """
                name: g
                operations:
                  approve: { external: true }
                  bad: { run: 'until [ -e go ]; do sleep 0.02; done; exit 3' }
                """
            )
            let run = try workspace.start(
                "operon",
                ["run", "-j1", file],
                streams: .terminal(columns: 80, rows: 24)
            )
            try await run.says("[y/n/c] ")
            _ = try workspace.write("go", "")
            try await run.says(" bad (")
            try await run.says("[y/n/c] ", times: 2)
            let screen = TerminalScreen(columns: 80, run.output.text).lines
            #expect(screen.count == 3, "\(screen)")
            #expect(screen.first == "“approve” waits for you.")
            #expect(screen.last?.hasPrefix("Complete “approve”?") == true)
            try run.type("y\n")
            #expect(try await run.end().end == .exit(1))
        }
    }

    @Test func `Ctrl-C at a question is confirmed at once, whatever still runs`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "g.yaml",
                """
                name: g
                operations:
                  approve: { external: true }
                  long: { run: 'trap "" TERM; until [ -e go ]; do sleep 0.02; done' }
                """
            )
            let run = try workspace.start(
                "operon",
                ["run", "-j1", file],
                streams: .terminal(columns: 80, rows: 24)
            )
            try await run.says("[y/n/c] ")
            run.signal(SIGINT)
            try await run.says("Cancelling. Running operations were asked to stop")
            _ = try workspace.write("go", "")
            #expect(try await run.end().end == .exit(130))
        }
    }

    @Test func `a question whose time is over is taken back, and its answer is not the next one's`()
        async throws
    {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "g.yaml",
                """
                name: g
                operations:
                  first: { external: true, timeout: 500ms }
                  gate: { run: 'until [ -e go ]; do sleep 0.02; done' }
                  second: { external: true, dependencies: { first: failed, gate: succeeded } }
                """
            )
            let run = try workspace.start(
                "operon",
                ["run", file],
                streams: .terminal(columns: 80, rows: 24)
            )
            try await run.says("“first” waits for you.")
            try await run.says("[y/n/c] ")
            // Half an answer, too late.
            try run.type("y")
            try await run.says(" first (")
            _ = try workspace.write("go", "")
            try await run.says("“second” waits for you.")
            try await run.says("[y/n/c] ", times: 2)
            try run.type("n\n")
            let ended = try await run.end()
            #expect(ended.end == .exit(1))
            let screen = TerminalScreen(columns: 80, ended.output)
            #expect(screen.lines.contains { $0.hasPrefix("failed second: refused") })
        }
    }
}
