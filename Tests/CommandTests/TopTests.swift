import Foundation
import Glibc
import OperonFaultKit
import Testing

/// `operon top` on a terminal.
@Suite struct TopTests {
    /// Returns when it shows something.
    private func open(_ up: Up, _ workspace: Workspace) async throws -> Program {
        let top = try workspace.start(
            "operon",
            ["top", "--coordinator", up.address, "--interval", "100ms"],
            streams: .terminal(columns: 80, rows: 24)
        )
        try await top.says("0 of 2 slots busy")
        return top
    }

    @Test func `somebody looks, asks why, cancels and quits`() async throws {
        try await Workspace.run { workspace in
            let up = try await Up(workspace)
            let file = try workspace.write(
                "g.yaml",
                """
                name: slow
                operations:
                  gate: { external: true }
                  after: { run: 'true', dependencies: [gate] }
                """
            )
            #expect(try await up.operon("submit", file).end == .exit(0))
            let top = try await open(up, workspace)
            try await top.says("slow")
            // The graph, its operations, the second of them.
            try top.type("\r")
            try await top.says("Graph 0 slow")
            try top.type("\u{1B}[B")
            try top.type("e")
            try await top.says("0/after")
            try await top.says("waits for")
            try top.type("\u{1B}")
            try top.type("\u{1B}[A")
            try top.type("c")
            try await top.says("Cancel 0/gate? y: yes, any other key: no")
            try top.type("y")
            try await top.says("0/gate is being cancelled.")
            #expect(try await up.operon("wait", "slow").end == .exit(3))
            try top.type("\u{1B}")
            try await top.says("No graph is unfinished.")
            try top.type("q")
            let ended = try await top.end()
            #expect(ended.end == .exit(0))
            // The screen of the shell is back, with a cursor.
            #expect(ended.output.hasSuffix("\u{1B}[?25h\u{1B}[?1049l"))
        }
    }

    @Test func `what it explains is brought up to date`() async throws {
        try await Workspace.run { workspace in
            let up = try await Up(workspace)
            let file = try workspace.write("g.yaml", "operations: { gate: { external: true } }")
            #expect(try await up.operon("submit", file).end == .exit(0))
            let top = try await open(up, workspace)
            try top.type("\r")
            try await top.says("OPERATION")
            try top.type("e")
            try await top.says("0/gate is executing")
            #expect(try await up.operon("complete", "0/gate", "--yes").end == .exit(0))
            try await top.says("0/gate succeeded")
            try top.type("q")
            #expect(try await top.end().end == .exit(0))
        }
    }

    @Test(arguments: [SIGINT, SIGTERM, SIGQUIT, 0])
    func `it ends while the coordinator does not answer`(signal: Int32) async throws {
        try await Workspace.run { workspace in
            let up = try await Up(workspace)
            let top = try await open(up, workspace)
            up.program.signal(SIGSTOP)
            defer { up.program.signal(SIGCONT) }
            if signal == 0 { try top.type("q") } else { top.signal(signal) }
            let ended = try await top.end(within: .seconds(30))
            #expect(ended.end == .exit(signal == SIGTERM || signal == SIGQUIT ? 143 : 0))
            #expect(ended.output.hasSuffix("\u{1B}[?25h\u{1B}[?1049l"))
        }
    }

    @Test func `without a terminal or a coordinator it says so`() async throws {
        try await Workspace.run { workspace in
            let piped = try await workspace.operon(["top"])
            #expect(piped.end == .exit(2))
            #expect(piped.errors.contains("needs a terminal"), "\(piped.errors)")
            let alone = try workspace.start(
                "operon",
                ["top", "--coordinator", "unix:\(workspace.path("none.sock"))"],
                streams: .terminal(columns: 80, rows: 24)
            )
            let ended = try await alone.end()
            #expect(ended.end == .exit(5))
            #expect(!ended.output.contains("\u{1B}[?1049h"), "\(ended.output)")
        }
    }
}
