import Foundation
import OperonHTTP
import OperonModel
import Testing

/// What the commands say to somebody who uses them wrongly, or where nobody can answer: whole, so
/// that a person can judge it.
@Suite(.timeLimit(.minutes(5))) struct WrongCallTests {
    /// Every command that asks a coordinator, with names that it does not know.
    private static let asking = [
        "submit g.yaml --graph nosuch", "list --status running --name nosuch", "status nosuch",
        "watch nosuch", "wait nosuch", "cancel nosuch", "cancel nosuch/a", "cancel --queue nosuch",
        "suspend nosuch", "suspend nosuch/a", "resume nosuch", "retry nosuch", "dead nosuch",
        "operations nosuch", "show nosuch/a", "explain nosuch/a", "logs nosuch/a",
        "logs nosuch/a --follow", "output nosuch/a", "priority nosuch/a high",
        "queue show nosuch", "drain nosuch", "events --graph nosuch", "graph close nosuch",
        "queue list", "queue set q --max 1", "queue suspend q", "queue resume q", "key show nosuch",
        "key list", "key set k --limit 2", "backup nosuch.db", "workers",
        "dependency add nosuch/a --on nosuch/b", "dependency remove nosuch/a --on nosuch/b",
    ]

    /// They find nothing, or make what they name.
    private static let content: Set<String> = [
        "list --status running --name nosuch", "queue list", "queue set q --max 1",
        "queue suspend q", "key list", "key set k --limit 2", "backup nosuch.db",
        "workers",
    ]

    private static func arguments(_ line: String) -> [String] {
        line.split(separator: " ").map(String.init)
    }

    // MARK: - The command line

    @Test func `every command refuses what it does not have, and says how it is used`() async throws
    {
        try await Workspace.run { workspace in
            let help = try await workspace.operon(["--experimental-dump-help"])
            let tree = try JSONDecoder().decode(HelpTree.self, from: Data(help.output.utf8))
            let commands = tree.command.leaves(below: [])
            #expect(commands.count >= 42, "\(commands)")
            for command in commands {
                let ended = try await workspace.operon(command + ["--nosuch"])
                let line = command.joined(separator: " ")

                // GNU parallel's code: the lower ones count failed operations.
                #expect(ended.end == .exit(line == "map" ? 255 : 2), "\(line)")
                #expect(ended.output == "", "\(line)")
                let unknown = "Unknown option “--nosuch”."
                #expect(ended.errors.hasPrefix(unknown), "\(line): \(ended.errors)")
                let hint = "To list the options: operon \(line) --help"
                #expect(ended.errors.contains(hint), "\(line): \(ended.errors)")
            }
        }
    }

    @Test func `wrong calls are answered as the golden file has it`() async throws {
        var golden = Golden("wrong-calls.txt")
        try await Workspace.run { workspace in
            _ = try workspace.write("g.yaml", "operations: { a: { run: ls } }")
            _ = try workspace.write("bad.yaml", "operations: { a: { ruin: ls } }")
            let trigger = "{ name: t, graph: g.yaml, on: { cron: '0 3 * * *' } }"
            _ = try workspace.write("t.yaml", trigger)
            // A key that no graph has makes it no trigger.
            _ = try workspace.write("on.yaml", "{ on: x, operations: { a: { run: ls } } }")
            for line in Self.calls {
                let ended = try await workspace.operon(
                    Self.arguments(line),
                    environment: ["OPERON_COORDINATOR": "http://127.0.0.1:1"]
                )
                golden.add(refused: line, ended)
            }
        }
        try golden.check()
    }

    /// One or more for each command; most of what the parser says by itself is the same for all.
    private static let calls = [
        "run --bogus", "submit --aftr a/b -- ls", "logs --folow", "retry a/b --from --set x=5",
        "up --listen 7351x", "submit --set x=1 -- ls",
        "frobnicate", "lst", "ps", "queue lst", "store backups", "help frobnicate",
        "run", "run nosuch.yaml", "run bad.yaml", "run g.yaml nosuch", "run g.yaml --slots 0",
        "run g.yaml --slots many", "run g.yaml --keep-going --fail-fast",
        "run g.yaml --broker nohost", "run g.yaml --from merge", "map --resume ls a",
        "map --retries 2 ls a", "map echo {} a",
        "map echo {%} ::: a",
        "validate", "validate bad.yaml", "graph draw",
        "graph g.yaml --format png", "doctor --broker nohost", "completion", "completion tcsh",
        "submit", "submit nosuch.yaml", "submit bad.yaml", "submit g.yaml --watch --wait",
        "submit g.yaml --timeout 3s", "submit g.yaml --graph 1 --open", "list --status done",
        "list --limit 0", "status 1/merge", "status 1 2", "status --output yaml", "watch",
        "watch 1/a", "wait", "wait 1 --timeout never", "cancel", "cancel 1 --queue q",
        "cancel 1 --timeout 3s", "cancel 1/", "suspend", "suspend 1 --until yesterday",
        "suspend 1 --until 2001-01-01T00:00:00Z", "resume", "retry", "retry 1 merge --failed",
        "dead 1/a", "dead --limit 0", "operations", "operations 1 --state done",
        "operations 1 --state ready --outcome failed", "show merge", "show /merge",
        "explain @latest", "logs 1/", "output", "priority 1/merge", "priority 1/merge urgent",
        "queue set", "queue set q", "queue set q --max=-1", "queue set q --max 1 --unlimited",
        "queue show", "queue suspend", "queue resume", "queue list all",
        "key set", "key set db", "key set db --limit 0", "key show", "workers all", "drain",
        "drain w1 --timeout 3s", "events --after x", "events --graph 1/a", "graph close",
        "coordinator", "coordinator --broker nohost", "up --slots 0", "up --keep never",
        "up --listen 1.2.3.4:1", "up --listen nowhere:x", "up --tls-key key.pem",
        "up --tokens nosuch", "up --store g.yaml --listen 127.0.0.1:0", "store check",
        "store check nosuch.db", "store check g.yaml", "store backup nosuch.db",
        "store backup nosuch.db copy.db", "store vacuum nosuch.db", "store prune nosuch.db",
        "dependency add 1/a", "dependency add 1/a --on b",
        "dependency add 1/a --on 1/b --when ready", "dependency remove 1/a",
        "submit t.yaml", "submit on.yaml", "trigger add g.yaml",
        "store prune nosuch.db --keep soon", "backup", "backup g.yaml",
        "workers --token-file nosuch",
        "workers --coordinator here", "workers --ca-file nosuch",
        "workers --coordinator ftp://localhost",
    ]

    // MARK: - A coordinator

    @Test func `what a coordinator does not have is answered as the golden file has it`()
        async throws
    {
        var golden = Golden("unknown.txt")
        try await LiveServer.run { server in
            try await server.submit("wordcount", "operations: { merge: { operation: Play } }")
            _ = try server.workspace.write("g.yaml", "operations: { a: { run: ls } }")
            for line in Self.asking where !Self.content.contains(line) {
                let ended = try await server.operon(line)
                #expect(ended.end == .exit(6), "\(line): \(ended.end)")
                golden.add(refused: line, ended)
                guard line.hasSuffix("/a") else { continue }
                // Who asked for JSON gets no data either, and the same sentences in it.
                let json = try await server.operon(line + " --output json")
                #expect(json.end == .exit(6) && json.output == "", "\(line): \(json.output)")
                #expect(try JSONFailure.of(json).message + "\n" == ended.errors, "\(line)")
            }
            for line in [
                "show wordcount/mrege", "show wordcont/merge", "explain 7/merge", "status 7",
                "output wordcount/merge", "retry wordcount nosuch", "priority wordcount/7 high",
                "queue show defualt",
            ] {
                let ended = try await server.operon(line)
                #expect(ended.end == .exit(6), "\(line): \(ended.end)")
                golden.add(refused: line, ended)
            }
        }
        try golden.check()
    }

    private static let waiting = """
        operations:
          a: { operation: Play, queue: idle }
          b: { operation: Play, queue: idle }
          c: { operation: Play, queue: idle, dependencies: [b] }
        queues: { idle: { isSuspended: true } }

        """

    @Test func `what a coordinator refuses is answered as the golden file has it`() async throws {
        var golden = Golden("refused.txt")
        try await LiveServer.run { server in
            try await server.join("worker", slots: 1)
            try await server.submit("done", "operations: { a: { operation: Play } }")
            try await server.wait(for: "done/a", .finished)
            _ = try server.workspace.write("g.yaml", "operations: { a: { run: ls } }")
            _ = try server.workspace.write(
                "lost.yaml",
                "operations: { a: { run: ls, dependencies: [done/b] } }"
            )
            for line in [
                "submit g.yaml --graph done", "submit lost.yaml", "priority done/a high",
                "graph close done", "dependency add done/a --on done/a",
            ] {
                golden.add(refused: line, try await server.operon(line))
            }
            try await server.submit("waiting", Self.waiting)
            for line in [
                "dependency add waiting/b --on waiting/c", "dependency add waiting/b --on done/b",
                "dependency add waiting/b --on waiting/b",
                "dependency add waiting/c --on waiting/b --when failed",
                "dependency remove waiting/b --on done/a", "retry waiting c", "retry done a",
            ] {
                golden.add(refused: line, try await server.operon(line))
            }
            try await server.run("submit g.yaml --idempotency-key k")
            _ = try server.workspace.write("g.yaml", "operations: { b: { run: ls } }")
            let line = "submit g.yaml --idempotency-key k"
            golden.add(refused: line, try await server.operon(line))
        }
        try golden.check()
    }

    @Test func `where nobody answers, every command says so in one sentence`() async throws {
        try await Workspace.run { workspace in
            _ = try workspace.write("g.yaml", "operations: { a: { run: ls } }")
            for line in Self.asking {
                for output in line.hasPrefix("queue") ? ["text", "json"] : ["json"] {
                    let ended = try await workspace.operon(
                        Self.arguments(line) + ["--output", output],
                        environment: ["OPERON_COORDINATOR": "http://127.0.0.1:1"]
                    )
                    #expect(ended.end == .exit(5), "\(line): \(ended.end)")
                    #expect(ended.output == "", "\(line)")
                    let isJSON = output == "json"
                    let said = isJSON ? try JSONFailure.of(ended).message + "\n" : ended.errors
                    #expect(
                        said == """
                            Cannot connect to http://127.0.0.1:1: no coordinator answers. Start \
                            one with “operon up” or “operon coordinator”, or give the address of \
                            another one.

                            """,
                        "\(line)"
                    )
                }
            }
        }
    }

    @Test func `who has no token, a wrong one or a weak one is told so`() async throws {
        var golden = Golden("tokens.txt")
        var tokens = AccessTokens()
        tokens.add("ann", token: "the-token-of-ann-0123")
        tokens.add("eve", token: "the-token-of-eve-0123", role: .view)
        try await LiveServer.run(tokens: tokens) { server in
            let workspace = server.workspace
            _ = try workspace.write("g.yaml", "operations: { a: { run: ls } }")
            _ = try workspace.write("wrong", "the-token-of-nobody-1\n")
            _ = try workspace.write("reader", "the-token-of-eve-0123\n")
            _ = try workspace.write("none", "")
            for file in ["wrong", "reader", "none"] {
                let attributes = [FileAttributeKey.posixPermissions: 0o600]
                try FileManager.default.setAttributes(
                    attributes,
                    ofItemAtPath: workspace.path(file)
                )
            }
            for line in [
                "list", "list --token-file wrong", "list --token-file none",
                "cancel 1 --token-file reader", "submit g.yaml --token-file reader",
            ] {
                let ended = try await server.operon(line)
                #expect(ended.end == .exit(2), "\(line): \(ended.end)")
                golden.add(refused: line, ended)
            }
            for line in Self.asking where line.hasSuffix("nosuch") {
                let ended = try await server.operon(
                    line + " --token-file wrong --output json"
                )
                #expect(ended.end == .exit(2) && ended.output == "", "\(line)")
                let failure = try JSONFailure.of(ended)
                #expect(failure.exitCode == 2)
                #expect(failure.message.split(separator: "\n").count == 2, "\(line)")
            }
        }
        try golden.check()
    }
}

/// An error with `--output json`: one line on standard error.
private struct JSONFailure: Decodable {
    private struct Document: Decodable {
        let error: JSONFailure
        let version: Int
    }

    let exitCode: Int32
    let message: String

    static func of(_ ended: Ended) throws -> JSONFailure {
        try #require(ended.errorLines.count == 1, "\(ended.errors)")
        let document = try JSONDecoder().decode(Document.self, from: Data(ended.errors.utf8))
        #expect(document.version == 1)
        #expect(ended.end == .exit(document.error.exitCode))
        return document.error
    }
}

/// As the parser prints it for other programs.
private struct HelpTree: Decodable {
    struct Command: Decodable {
        var commandName: String
        var subcommands: [Command]?
        var defaultSubcommand: String?

        func leaves(below path: [String]) -> [[String]] {
            guard let subcommands, !subcommands.isEmpty else { return [path] }
            return subcommands.filter { $0.commandName != "help" }.flatMap {
                $0.leaves(below: path + [$0.commandName])
            }
        }
    }

    var command: Command
}
