import Foundation
import Glibc
import OperonFaultKit
import OperonHTTP
import OperonModel
import Testing

/// `operon token` and `operon audit`, with a coordinator that is killed and one that reloads.
@Suite(.timeLimit(.minutes(5))) struct AccessCommandTests {
    private struct Made: Decodable { let token: String }

    @Test func `a token for submitting reaches nothing that others have submitted`() async throws {
        try await Workspace.run { workspace in
            let up = try await Up(workspace)
            let made = try await up.operon("token", "create", "ci", "--role", "submit")
            _ = try workspace.write("ci.token", made.output)
            let shown = ["--token-file", workspace.path("ci.token")]
            let deploy = try workspace.write(
                "deploy.yaml",
                "operations: { migrate: { external: true } }"
            )
            #expect(try await up.operon(["submit", deploy]).end == .exit(0))
            let sly = try workspace.write(
                "sly.yaml",
                """
                operations:
                  no: { run: "false" }
                  x: { run: "true", cancelSiblings: true, dependencies: [no, deploy/migrate] }
                """
            )
            let refused = try await up.operon(["submit", sly] + shown)
            #expect(refused.end == .exit(2))
            #expect(refused.errors.contains("cancelSiblings"), "\(refused.errors)")
            // The same of one's own is what it is for.
            let own = try workspace.write("own.yaml", "operations: { m: { external: true } }")
            #expect(try await up.operon(["submit", own] + shown).end == .exit(0))
            let honest = try workspace.write(
                "honest.yaml",
                """
                operations:
                  no: { run: "false" }
                  x: { run: "true", cancelSiblings: true, dependencies: [no, own/m] }
                """
            )
            #expect(try await up.operon(["submit", honest, "--wait"] + shown).end != .exit(2))
            let cascade = try await up.operon(["cancel", "own/m", "--cascade"] + shown)
            #expect(cascade.end == .exit(2))
            #expect(cascade.errors.contains("cascade"), "\(cascade.errors)")
            let status = try await up.operon(["show", "deploy/migrate", "--output", "json"])
            #expect(!status.output.contains("cancel"), "\(status.output)")
        }
    }

    @Test func `tokens are created, listed and revoked, and each change has its entry`()
        async throws
    {
        try await Workspace.run { workspace in
            let up = try await Up(workspace)
            let made = try await up.operon(
                "token",
                "create",
                "ci",
                "--role",
                "submit",
                "--queues",
                "small",
                "--expires",
                "30d"
            )
            #expect(made.end == .exit(0), "\(made.errors)")
            let token = made.output.trimmingCharacters(in: .whitespacesAndNewlines)
            #expect(token.utf8.count == 64)
            #expect(made.errors.contains("Created token “ci” with the role submit, until "))
            _ = try workspace.write("ci.token", token + "\n")
            #expect(chmod(workspace.path("ci.token"), 0o600) == 0)
            let file = try workspace.write("g.yaml", "operations: { a: { run: 'true' } }")
            let small = try workspace.write(
                "small.yaml",
                "operations: { a: { run: 'true', queue: small } }"
            )
            let shown = ["--token-file", workspace.path("ci.token")]
            #expect(try await up.operon(["submit", small, "--wait"] + shown).end == .exit(0))
            let refused = try await up.operon(["submit", file] + shown)
            #expect(refused.end == .exit(2))
            #expect(refused.errors.contains("may submit to “small”"), "\(refused.errors)")

            let listed = try await up.operon("token", "list")
            #expect(listed.output.contains("ci") && listed.output.contains("own user"))
            #expect(!listed.output.contains(token))
            try await up.act("token", "revoke", "ci")
            let late = try await up.operon(["list"] + shown)
            #expect(late.end == .exit(2) && late.errors.contains("was revoked at"))
            #expect(try await up.operon("token", "revoke", "ci").end == .exit(6))
            let json = try await up.operon(
                "token",
                "create",
                "tv",
                "--role",
                "view",
                "--output",
                "json"
            )
            let view = try JSONDecoder().decode(Made.self, from: Data(json.output.utf8))
            #expect(view.token.utf8.count == 64)

            let audit = try await up.operon("audit")
            #expect(audit.end == .exit(0))
            for part in [
                "POST /v1/tokens", "done token ci", "POST /v1/graphs", "done graph 0",
                "DELETE /v1/tokens/ci", "refused (401)", "user \(geteuid())",
            ] { #expect(audit.output.contains(part), "\(part) in\n\(audit.output)") }
            #expect(!audit.output.contains(token))
            let own = try await up.operon("audit", "--by", "ci", "--since", "1h")
            #expect(own.output.contains("/v1/graphs") && !own.output.contains("/v1/tokens"))
        }
    }

    @Test func `the audit is whole after the coordinator was killed, and a change is found`()
        async throws
    {
        try await Workspace.run { workspace in
            let file = try workspace.write("g.yaml", "operations: { a: { run: 'true' } }")
            let up = try await Up(workspace)
            for _ in 0..<3 {
                // It is killed while it is asked.
                let asking = try workspace.start(
                    "operon",
                    ["submit", file, "--coordinator", up.address]
                )
                try await up.restart()
                _ = try await asking.end()
                try await up.act("submit", file)
                let check = try await up.operon("audit", "--verify")
                #expect(check.end == .exit(0), "\(check.output)\(check.errors)")
                #expect(check.output.hasPrefix("The audit is whole: entries 1 to "))
            }
            let folder = workspace.path("graphs.db.audit")
            let names = try FileManager.default.contentsOfDirectory(atPath: folder)
            let path = folder + "/" + (try #require(names.first))
            let text = try String(contentsOfFile: path, encoding: .utf8)
            #expect(text.contains("own user"))
            try text.replacing("own user", with: "own uses", maxReplacements: 1)
                .write(toFile: path, atomically: false, encoding: .utf8)
            let broken = try await up.operon("audit", "--verify")
            #expect(broken.end == .exit(1))
            #expect(broken.output.contains("is not that of its bytes"), "\(broken.output)")
            // Half an entry, as a kill in the middle of a write leaves it.
            up.program.signal(SIGKILL)
            _ = try await up.program.end()
            let half = try #require(FileHandle(forWritingAtPath: path))
            try half.seekToEnd()
            try half.write(contentsOf: Data("0123".utf8))
            try half.close()
            try await up.begin()
            try await up.program.says("its 4 bytes were removed")
            let listed = try await up.operon("audit")
            #expect(listed.output.contains("4 bytes of an entry that was not whole were removed"))
        }
    }

    @Test func `what runs adds nothing to queues that its token may not submit to`() async throws {
        try await Workspace.run { workspace in
            let up = try await Up(workspace)
            let made = try await up.operon(
                "token",
                "create",
                "ci",
                "--role",
                "submit",
                "--queues",
                "small"
            )
            _ = try workspace.write("ci.token", made.output)
            #expect(chmod(workspace.path("ci.token"), 0o600) == 0)
            let operon = try Program.executable("operon")
            for queue in ["small", "large"] {
                _ = try workspace.write(
                    "\(queue).jsonl",
                    #"{"name":"more","queue":"\#(queue)","run":"true"}"# + "\n"
                )
                let file = try workspace.write(
                    "\(queue).yaml",
                    """
                    operations:
                      a: { queue: small, run: "'\(operon)' add \(queue).jsonl 2> said" }
                    """
                )
                let ended = try await up.operon(
                    "submit",
                    file,
                    "--wait",
                    "--token-file",
                    workspace.path("ci.token")
                )
                #expect(ended.end == .exit(queue == "small" ? 0 : 1), "\(queue): \(ended.errors)")
            }
            let said = try workspace.read("said")
            #expect(
                said.contains("“ci” does not allow this") && said.contains("queue “large”"),
                "\(said)"
            )
        }
    }

    @Test func `a signal lets it read the tokens again, and so does time`() async throws {
        try await Workspace.run { workspace in
            func write(_ text: String) throws {
                _ = try workspace.write("tokens", text)
                #expect(chmod(workspace.path("tokens"), 0o600) == 0)
            }
            for name in ["ann", "bob"] {
                _ = try workspace.write(name, "token-of-\(name)-0123456789\n")
                #expect(chmod(workspace.path(name), 0o600) == 0)
            }
            try write("ann:token-of-ann-0123456789 administer\n")
            let up = try await Up(
                workspace,
                "--tokens",
                workspace.path("tokens"),
                "--audit-keep",
                "90d"
            )
            func mayList(_ name: String) async throws -> Bool {
                try await up.operon("list", "--token-file", workspace.path(name)).end == .exit(0)
            }
            #expect(try await mayList("ann"))
            #expect(try await !mayList("bob"))
            try write("bob:token-of-bob-0123456789 view\n")
            up.program.signal(SIGHUP)
            try await up.program.says("read the tokens in \(workspace.path("tokens")) again")
            #expect(try await !mayList("ann"))
            #expect(try await mayList("bob"))
            try write("bob\n")
            try await up.program.says("keeps the earlier tokens in \(workspace.path("tokens"))")
            #expect(try await mayList("bob"))
            up.program.signal(SIGTERM)
            #expect(try await up.program.end().end == .exit(0))
        }
    }

    @Test func `events say by whom a change was asked for, also after a restart`() async throws {
        try await Workspace.run { workspace in
            for name in ["ann", "bob"] {
                _ = try workspace.write(name, "token-of-\(name)-0123456789\n")
                #expect(chmod(workspace.path(name), 0o600) == 0)
            }
            let lines = ["ann", "bob"].map { "\($0):token-of-\($0)-0123456789\n" }
            _ = try workspace.write("tokens", lines.joined())
            #expect(chmod(workspace.path("tokens"), 0o600) == 0)
            let file = try workspace.write(
                "g.yaml",
                "name: g\noperations: { a: { external: true } }"
            )
            let up = try await Up(workspace, "--tokens", workspace.path("tokens"))
            func act(_ name: String, _ words: String...) async throws -> String {
                let ended = try await up.operon(words + ["--token-file", workspace.path(name)])
                #expect(ended.end == .exit(0), "\(words): \(ended.errors)")
                return ended.output
            }
            _ = try await act("ann", "submit", file, "--open")
            _ = try await act("bob", "complete", "g/a", "--fail", "no")
            _ = try await act("ann", "retry", "g", "--failed")
            _ = try await act("bob", "graph", "close", "g")
            _ = try await act("ann", "queue", "set", "q", "--max", "2")
            let before = try await act("bob", "events", "--after", "0")
            for part in [
                " graphSubmitted graph 0 “g” by ann\n", " failed 0/a by bob: ",
                " reopened 0/a by ann\n", " graphClosed graph 0 “g” by bob\n",
                " queueSet queue “q” by ann\n",
            ] { #expect(before.contains(part), "\(part) in\n\(before)") }
            try await up.restart()
            #expect(try await act("bob", "events", "--after", "0").hasPrefix(before))
        }
    }

    @Test func `options that make no sense are refused`() async throws {
        try await Workspace.run { workspace in
            for line in [
                "token create x", "token create x --role king",
                "token create x --role view --queues a", "token create x --role view --expires 0",
                "audit --verify --by x", "audit --limit 0", "up --audit-keep 7",
                "up --audit-keep 0d",
            ] {
                let ended = try await workspace.operon(line.split(separator: " ").map(String.init))
                #expect(ended.end == .exit(2), "\(line)")
            }
        }
    }
}
