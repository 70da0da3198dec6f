import OperonModel
import OperonPorts
import OperonTesting
import Testing

/// What the commands show on a terminal, of usual width and narrow.
@Suite struct TerminalGoldenTests {
    @Test(arguments: [UInt16(80), 40])
    func `the commands fit a terminal as the golden file has it`(columns: UInt16) async throws {
        var golden = Golden("terminal-\(columns).txt")
        let clock = ManualClock()
        try await LiveServer.run(clock: clock, holdsAll: true) { server in
            try await Self.prepare(server, clock)
            for line in [
                "list", "status", "status wordcount", "operations wordcount", "show 0/count-a",
                "explain 0/merge", "workers", "queue list", "key list", "dead",
                "events --after 8",
                "watch wordcount",
            ] {
                let ended = try await server.operon(
                    line,
                    streams: .terminal(columns: columns, rows: 24)
                )
                let screen = TerminalScreen(columns: Int(columns), ended.output)
                #expect(screen.unknown == [], "\(line)")
                golden.add("$ operon \(line)\n")
                // The last message of a worker that joined may arrive before the clock moves or
                // after it.
                let lines = screen.lines.map {
                    $0.replacing(#/[0-9]\.0s ago/#, with: "2.0s ago") + "\n"
                }
                golden.add(lines.joined() + "\n")
            }
        }
        try golden.check()
    }

    /// Something of everything, with names that do not fit.
    private static func prepare(_ server: LiveServer, _ clock: ManualClock) async throws {
        // The same directory on every machine.
        let wordcount = LiveServer.wordcount.replacing(
            "queues:",
            with: "defaults: { directory: /srv/books }\nqueues:"
        )
        _ = try server.workspace.write("wordcount.yaml", wordcount)
        try await server.run("submit wordcount.yaml")
        try await server.submit(
            "a-name-that-is-too-long-for-any-terminal-of-eighty-columns-and-then-some",
            "operations: { only: { run: ls } }"
        )
        try await server.run("suspend @latest --reason \"the disk is full\"")
        for (name, host, kinds) in [
            ("worker-1", "node-1.example.org", []),
            ("a-worker-with-quite-a-long-name", "node-2.example.org", ["Count", "RenderFrame"]),
        ] {
            try await server.cluster.join(
                name,
                slots: 8,
                host: host,
                queues: ["default", "licensed"],
                kinds: kinds
            )
        }
        let ends: [(String, OperationError?)] = [
            ("split", nil), ("count-b", nil), ("count-a", .exit(code: 2)),
        ]
        for (name, failure) in ends {
            try await server.wait(for: "wordcount/\(name)", .executing)
            clock.advance(by: .seconds(1))
            try await server.finish("wordcount/\(name)", failure)
        }
    }
}
