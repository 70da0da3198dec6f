import OperonHTTP
import OperonModel
import OperonPorts
import Testing

/// `operon key`, against a coordinator that dies.
@Suite struct KeyTests {
    private static func holding(_ names: String..., of graph: String, limit: Int? = nil) -> String {
        let keys = limit.map { "keys: { db: { limit: \($0) } }\n" } ?? ""
        return "name: \(graph)\n" + keys + "operations:\n"
            + names.map { name in
                "  \(name): { run: 'until test -e open; do sleep 0.05; done', exclusive: db }\n"
            }.joined()
    }

    @Test func `how many may hold a key is set for good, and takes nothing from who has it`()
        async throws
    {
        try await Workspace.run { workspace in
            func key(_ up: Up, _ command: String...) async throws -> String {
                let ended = try await up.operon(["key"] + command)
                #expect(ended.end == .exit(0), "\(command): \(ended.errors)")
                return ended.output + ended.errors
            }
            let up = try await Up(workspace)
            let none = "There are no keys: no operation has “exclusive”.\n"
            #expect(try await key(up, "list") == none)
            #expect(
                try await key(up, "set", "db", "--limit", "2") == """
                    key “db”
                      limit    2 at once
                      held by  none
                      waiting  0 operations

                    """
            )
            try await up.restart()
            let first = try workspace.write(
                "first.yaml",
                Self.holding("a", "b", "c", of: "first", limit: 1)
            )
            #expect(try await up.operon("submit", first).end == .exit(0))
            // Two at once, whatever the graph says.
            for name in ["a", "b"] {
                let selector = OperationSelector(graph: "first", operation: name)
                try await up.client { client in
                    for try await _ in try await client.events(after: 0, graph: nil) {
                        let state = try await client.operation(selector).operation.state
                        if state == .executing { return }
                    }
                }
            }
            #expect(
                try await key(up, "list") == """
                    KEY  LIMIT  HELD  WAITING  HELD BY
                    db       2     2        1  0/a, 0/b

                    """
            )
            #expect(
                try await key(up, "set", "db", "--limit", "1") == """
                    key “db”
                      limit    1 at once
                      held by  0/a, 0/b
                      waiting  1 operation: 0/c
                    Operations that hold the key keep it. The next one gets it when 2 of them have \
                    finished.

                    """
            )
            _ = try workspace.write("open", "")
            #expect(try await up.operon("wait", "first").end == .exit(0))
            try await up.restart()
            #expect(
                try await key(up, "list") == "KEY  LIMIT  HELD  WAITING\n"
                    + "db       1     0        0\n"
            )
            let events = try await up.operon("events").output
            #expect(events.split(separator: "\n").count { $0.hasSuffix(" keySet key “db”") } == 2)
        }
    }

    @Test func `a limit that is taken back is one, and what nobody names is gone`() async throws {
        try await Workspace.run { workspace in
            let up = try await Up(workspace)
            let file = try workspace.write("g.yaml", Self.holding("a", of: "g", limit: 3))
            _ = try workspace.write("open", "")
            #expect(try await up.operon("submit", file, "--wait").end == .exit(0))
            let reset = try await up.operon("key", "reset", "db")
            #expect(
                reset.output + reset.errors == """
                    key “db”
                      limit    1 at once
                      held by  none
                      waiting  0 operations

                    """
            )
            for command in [
                ["key", "set", "k", "--limit", "4"], ["queue", "set", "q", "--max", "4"],
            ] {
                let set = try await up.operon(command)
                #expect(set.end == .exit(0), "\(set.errors)")
                let names = try await up.operon(command[0], "list", "--output", "quiet").output
                #expect(names.contains("\(command[2])\n"))
                let end = try await up.operon(command[0], "reset", command[2]).end
                #expect(end == .exit(0))
                let left = try await up.operon(command[0], "list", "--output", "quiet").output
                #expect(!left.contains("\(command[2])\n"))
                let none = try await up.operon(command[0], "reset", command[2])
                #expect(none.end == .exit(6), "\(none.errors)")
            }
        }
    }
}
