import Foundation
import OperonPorts
import Testing

/// `operon backup`, of a coordinator that has work to do.
@Suite struct BackupTests {
    private static func graph(_ name: String, _ count: Int) -> String {
        "name: \(name)\noperations:\n"
            + (0..<count).map { "  o\($0): { wait: 0s }\n" }.joined()
            + "  last: { run: 'until test -e open; do sleep 0.05; done' }\n"
    }

    @Test func `a copy is made while operations run, is sound, and can be gone on with`()
        async throws
    {
        try await Workspace.run { workspace in
            let up = try await Up(workspace)
            let told = try workspace.write("told.yaml", "operations: { a: { run: 'true' } }\n")
            #expect(try await up.operon("submit", told, "--wait").end == .exit(0))
            let busy = try workspace.write("busy.yaml", Self.graph("busy", 5_000))
            #expect(try await up.operon("submit", busy).end == .exit(0))
            for number in 0..<3 {
                let copy = workspace.path("copy-\(number).db")
                let made = try await up.operon("backup", copy, "--output", "quiet")
                #expect(made.end == .exit(0) && made.output == copy + "\n", "\(made.errors)")
                let mode = try FileManager.default.attributesOfItem(atPath: copy)
                #expect(mode[.posixPermissions] as? Int == 0o600)
                let checked = try await workspace.operon(["store", "check", copy])
                #expect(checked.end == .exit(0), "\(checked.errors)")
                let words = " has no problems: 2 graphs, 1 of them not finished,"
                #expect(checked.output.contains(words), "\(checked.output)")
            }
            let left = try FileManager.default.contentsOfDirectory(atPath: workspace.directory)
            #expect(left.filter { $0.contains(".new-") || $0.contains("draft") } == [])

            // In the place of what was lost.
            up.program.signal(SIGKILL)
            _ = try await up.program.end()
            try FileManager.default.removeItem(atPath: workspace.path("graphs.db"))
            try FileManager.default.removeItem(atPath: workspace.path("graphs.db-wal"))
            try FileManager.default.moveItem(
                atPath: workspace.path("copy-0.db"),
                toPath: workspace.path("graphs.db")
            )
            _ = try workspace.write("open", "")
            try await up.begin()
            let ended = try await up.operon("wait", "busy")
            #expect(ended.end == .exit(0), "\(ended.errors)")
            #expect(try await up.operon("wait", "told").end == .exit(0))
            let held = try await workspace.operon([
                "store", "backup", workspace.path("graphs.db"), "x",
            ])
            #expect(held.end == .exit(8))
        }
    }

    @Test func `a file that is there stays as it is, and what cannot be written is said`()
        async throws
    {
        try await Workspace.run { workspace in
            let up = try await Up(workspace)
            let there = try workspace.write("there", "mine")
            let taken = try await up.operon("backup", there)
            #expect(taken.end == .exit(2))
            #expect(taken.errors.contains("exists already"))
            #expect(try workspace.read("there") == "mine")
            let nowhere = try await up.operon("backup", workspace.path("no/folder.db"))
            #expect(nowhere.end == .exit(1))
            #expect(nowhere.errors.contains("No such file or directory"), "\(nowhere.errors)")
        }
    }

    /// The draft of a copy that has begun.
    private static func draft(in workspace: Workspace) async throws -> String {
        let deadline = ContinuousClock.now + .seconds(60)
        while ContinuousClock.now < deadline {
            let files = try FileManager.default.contentsOfDirectory(atPath: workspace.directory)
            if let draft = files.first(where: { $0.contains(".new-") }) { return draft }
            try await Task.sleep(for: .milliseconds(10))
        }
        throw CommandFailure("no copy was begun")
    }

    @Test(arguments: [SIGINT, SIGTERM])
    func `a copy that a signal interrupts leaves nothing`(signal: Int32) async throws {
        try await LiveServer.run { server in
            await server.tap.answerBackup(with: [UInt8](repeating: 7, count: 4_096), isWhole: false)
            let workspace = server.workspace
            let program = try server.start("backup \(workspace.path("copy.db"))")
            let draft = try await Self.draft(in: workspace)
            #expect(draft.hasPrefix("copy.db.new-"))
            program.signal(signal)
            let ended = try await program.end()
            #expect(ended.end == .exit(128 + signal), "\(ended.errors)")
            let left = try FileManager.default.contentsOfDirectory(atPath: workspace.directory)
            #expect(left.filter { $0.hasPrefix("copy.db") } == [])
        }
    }
}
