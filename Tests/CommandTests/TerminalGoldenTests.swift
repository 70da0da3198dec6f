import OperonModel
import OperonPorts
import OperonTestKit
import Testing

/// What the commands show on a terminal, of usual width and narrow.
@Suite struct TerminalGoldenTests {
    @Test(arguments: [UInt16(80), 40])
    func `the commands fit a terminal as the golden file has it`(columns: UInt16) async throws {
        var golden = Golden("terminal-\(columns).txt")
        try await FakeServer.play { server in
            try await Self.prepare(server)
            for line in [
                "list", "status", "status wordcount", "operations wordcount", "show 0/count-a",
                "explain 0/merge", "workers", "queue list", "key list", "dead",
                "events --after 8",
                "watch wordcount",
            ] {
                let ended = try await server.operon(
                    line.split(separator: " ").map(String.init),
                    streams: .terminal(columns: columns, rows: 24)
                )
                let screen = TerminalScreen(columns: Int(columns), ended.output)
                #expect(screen.unknown == [], "\(line)")
                golden.add("$ operon \(line)\n")
                golden.add(screen.lines.map { $0 + "\n" }.joined() + "\n")
            }
        }
        try golden.check()
    }

    /// Something of everything, with names that do not fit.
    private static func prepare(_ server: FakeServer) async throws {
        try await server.submitWordcount()
        _ = try server.scene.write(
            "long.yaml",
            "name: a-name-that-is-too-long-for-any-terminal-of-eighty-columns-and-then-some\n"
                + "operations: { only: { run: ls } }"
        )
        _ = try await server.operon(["submit", "long.yaml"])
        _ = try await server.operon(["suspend", "@latest", "--reason", "the disk is full"])
        try await server.start("split", of: "wordcount")
        try await server.finish("split", of: "wordcount")
        try await server.start("count-a", of: "wordcount")
        try await server.finish("count-a", of: "wordcount", .failed(.exit(code: 2)))
        try await server.start("count-b", of: "wordcount")
        try await server.finish("count-b", of: "wordcount")
        try await server.change { truth throws(ClientError) in
            truth.workers = [
                worker("worker-1", host: "node-1.example.org", busy: 1, kinds: []),
                worker(
                    "a-worker-with-quite-a-long-name",
                    host: "node-2.example.org",
                    busy: 0,
                    kinds: ["MergeCounts", "RenderFrame"]
                ),
            ]
        }
    }

    private static func worker(
        _ name: String,
        host: String,
        busy: Int,
        kinds: [String]
    ) -> WorkerView {
        WorkerView(
            id: "00000000000000a1",
            name: name,
            host: host,
            slots: 8,
            busySlots: busy,
            held: busy,
            status: "alive",
            queues: ["default", "licensed"],
            kinds: ["command", "nothing", "wait"] + kinds,
            heardSecondsAgo: 0.8
        )
    }
}
