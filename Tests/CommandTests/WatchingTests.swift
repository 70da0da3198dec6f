import OperonModel
import OperonPorts
import OperonTesting
import Testing

/// What `operon watch` asks of the coordinator, and what it shows.
@Suite struct WatchingTests {
    private static func names(_ server: LiveServer) async -> [String] {
        await server.tap.calls.map(\.name)
    }

    @Test func `on a terminal, counts and what goes wrong are all that is asked for`() async throws
    {
        try await LiveServer.run(holdsAll: true) { server in
            try await server.submitWordcount()
            try await server.join("worker", slots: 1)
            let watch = try server.start("watch 0", streams: .terminal(columns: 80, rows: 24))
            await server.tap.waitForCalls("progress", 1)
            // The coordinator goes away, and comes back: one stream of counts, and one of events.
            await server.tap.waitForWatchers(2)
            await server.tap.endStreams()
            await server.tap.waitForCalls("progress", 2)
            await server.tap.waitForCalls("events", 2)
            for name in ["split", "count-b", "count-a"] {
                try await server.finish("0/\(name)", name == "count-a" ? .exit(code: 2) : nil)
            }
            let ended = try await watch.end()

            #expect(ended.end == .exit(1))
            let lines = TerminalScreen(columns: 80, ended.output).lines
            #expect(lines.contains { $0.contains("4/4 1 failed 1 skipped") }, "\(lines)")
            #expect(lines.contains { $0.contains("failed 0/count-a: exit code 2") }, "\(lines)")
            #expect(lines.contains("Reconnected to the coordinator."), "\(lines)")
            let calls = await Self.names(server)
            // What goes wrong is told across the cut, and its details alone are asked for.
            #expect(lines.contains { $0.hasPrefix("failed count-a") }, "\(lines)")
            #expect(lines.contains("skipped merge: because of “count-a”"), "\(lines)")
            #expect(calls.count { $0 == "operation" } == 2, "\(calls)")
            #expect(lines.count { $0 == "Reconnected to the coordinator." } == 1, "\(lines)")
            // The operations that have failed.
            #expect(calls.count { $0 == "operations" } == 1)
        }
    }

    @Test func `a repeated operation has a line on a terminal while it runs`() async throws {
        try await LiveServer.run(holdsAll: true) { server in
            try await server.submit("sweep", "operations: { r: { run: ls, forEach: [a, b, c] } }")
            try await server.join("worker", slots: 3)
            try await server.wait(for: "0/r[b]", .executing)
            let watch = try server.start("watch 0", streams: .terminal(columns: 80, rows: 24))
            let plain = try server.start(
                "watch 0 --elements",
                streams: .terminal(columns: 80, rows: 24)
            )
            // Each has two streams.
            await server.tap.waitForWatchers(4)
            try await server.finish("0/r[a]")
            try await server.finish("0/r[b]", .exit(code: 1))
            try await server.finish("0/r[c]")
            let ended = try await watch.end()
            #expect(ended.end == .exit(1))
            let lines = TerminalScreen(columns: 80, ended.output).lines
            let row = lines.first { $0.hasPrefix("r[*] ") }
            #expect(row?.contains("3/3 1 failed") == true, "\(lines)")
            #expect(!(try await plain.end().output.contains("r[*]")))
        }
    }

    @Test func `a quiet watch is told the end only`() async throws {
        try await LiveServer.run(holdsAll: true) { server in
            try await server.submit("one", "operations: { only: { run: ls } }")
            try await server.join("worker", slots: 1)
            let watch = try server.start("watch 0 --output quiet")
            await server.tap.waitForWatchers(1)
            try await server.finish("0/only")
            let ended = try await watch.end()
            #expect(ended.end == .exit(0))
            #expect(ended.output == "")
            let calls = await Self.names(server)
            #expect(!calls.contains("operations") && !calls.contains("progress"))
        }
    }

    /// The coordinator goes away after an event, before it is asked whether that was the end.
    @Test(arguments: ["wait 0", "watch 0"])
    func `who follows a graph asks again while the coordinator is away`(
        command: String
    ) async throws {
        try await LiveServer.run(holdsAll: true) { server in
            try await server.submit("one", "operations: { only: { run: ls } }")
            try await server.join("worker", slots: 1)
            let client = try server.start(command)
            await server.tap.waitForWatchers(1)
            await server.tap.failNext("graph", with: ClientError(.unavailable, "It starts."))
            try await server.finish("0/only")
            let ended = try await client.end()

            #expect(ended.end == .exit(0), "\(ended.errors)")
            let said = ended.errors + ended.output
            #expect(said.contains("Lost the connection"), "\(said)")
        }
    }

    @Test func `a range that is cancelled is read once, on a pipe`() async throws {
        try await LiveServer.run(holdsAll: true) { server in
            let names = (0..<100).map { "  n\($0): { run: ls }\n" }.joined()
            try await server.submit("many", "operations:\n" + names)
            let watch = try server.start("watch 0")
            await server.tap.waitForAnswers("operations", 1)
            // After the event of a cancelled graph it would know the end already.
            try await server.run("cancel --queue default --reason enough")
            let ended = try await watch.end()

            #expect(ended.end == .exit(3), "\(ended.errors)")
            #expect(ended.output.contains("cancelled n77"), "\(ended.output)")
            #expect(await Self.names(server).count { $0 == "operations" } == 2)
        }
    }

    @Test func `events that nobody sends are not waited for`() async throws {
        try await LiveServer.run { server in
            let nowhere = ["OPERON_COORDINATOR": "unix:\(server.workspace.path("nobody.sock"))"]
            let client = try server.start("events --follow", environment: nowhere)
            let ended = try await client.end()
            #expect(ended.end == .exit(5), "\(ended.errors)")
        }
    }
}
