import Foundation
import Testing

/// The commands beside `run`: what they print, and that their help knows every option.
@Suite(.serialized) struct ToolTests {
    private static let graph = """
        name: tools
        queues: { licensed: { maxConcurrentOperationCount: 1 } }
        operations:
          a: { run: "true" }
          b: { run: "true", dependencies: [a], queue: licensed }
          c: { run: "true", dependencies: [a] }
        """

    @Test func `validate counts what is sound`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write("graph.yaml", Self.graph)
            let ended = try await workspace.operon(["validate", file])

            #expect(ended.end == .exit(0))
            #expect(
                ended.output == """
                    \(file) is valid: 3 operations, 2 dependencies, 2 queues

                    """
            )
            #expect(ended.errors == "")
        }
    }

    @Test func `validate checks a trigger file and the graph that it names`() async throws {
        try await Workspace.run { workspace in
            _ = try workspace.write("graph.yaml", Self.graph)
            _ = try workspace.write("bad.yaml", "operations: { a: { rum: x } }")
            let trigger = "name: nightly\non: { cron: '0 3 * * *', timezone: Europe/Berlin }\n"
            _ = try workspace.write("good.yaml", trigger + "graph: graph.yaml\n")
            _ = try workspace.write("wrong.yaml", trigger + "graph: bad.yaml\nmised: once\n")
            _ = try workspace.write(
                "zone.yaml",
                trigger.replacing("Berlin", with: "Atlantis") + "graph: graph.yaml\n"
            )

            let good = try await workspace.operon(["validate", "good.yaml"])
            let wrong = try await workspace.operon(["validate", "wrong.yaml"])
            let zone = try await workspace.operon(["validate", "zone.yaml"])

            #expect(good.end == .exit(0), "\(good.errors)")
            #expect(good.output == "good.yaml: trigger “nightly” is valid: it fires on “cron”\n")
            #expect(wrong.end == .exit(2))
            #expect(wrong.errors.contains("wrong.yaml:4:1: unknown key “mised”"), "\(wrong.errors)")
            #expect(zone.end == .exit(2))
            #expect(
                zone.errors.contains("zone.yaml:2:36: there is no time zone “Europe/Atlantis”"),
                "\(zone.errors)"
            )
        }
    }

    @Test(arguments: [
        ("{ dya: x }", "t.yaml:4:8: “set”: the graph has no parameter “dya”; did you mean “day”?"),
        // What an event will have is not known, but the name is wrong for all of them.
        (
            "{ dya: \"${event.date}\" }",
            "t.yaml:4:8: “set”: the graph has no parameter “dya”; did you mean “day”?"
        ),
        ("{ count: x }", "t.yaml:4:15: “set”: "),
    ]) func `a wrong value of a trigger is told with its place`(
        values: String,
        message: String
    ) async throws {
        try await Workspace.run { workspace in
            _ = try workspace.write(
                "g.yaml",
                """
                parameters: { day: x, count: { type: integer, default: 1 } }
                operations: { a: { run: 'true' } }
                """
            )
            _ = try workspace.write(
                "t.yaml",
                "name: t\non: { every: 1h }\ngraph: g.yaml\nset: \(values)\n"
            )
            for command in [["validate"], ["trigger", "add"]] {
                let ended = try await workspace.operon(command + ["t.yaml"])
                #expect(ended.end == .exit(2))
                #expect(ended.errors.hasPrefix(message), "\(ended.errors)")
            }
        }
    }

    @Test func `what a recorded workflow loses is told on the standard error`() async throws {
        try await Workspace.run { workspace in
            let text = #"{"workflow": {"tasks": [{"name": "a", "parents": ["gone\u001b[2J"]}]}}"#
            let file = try workspace.write("w.json", text)
            for command in ["validate", "run"] {
                let ended = try await workspace.operon([command, file, "--replay", "0"])
                #expect(ended.end == .exit(0), "\(ended.errors)")
                let warning = try #require(ended.errorLines.first)
                #expect(warning.hasPrefix("warning: \(file):1:"), "\(warning)")
                #expect(warning.contains("task “a” does not wait for its parent “gone"))
                #expect(!ended.errors.contains("\u{1B}"))
            }
        }
    }

    @Test func `a value that a shell would interpret is told on the standard error`()
        async throws
    {
        try await Workspace.run { workspace in
            let text = "parameters: { v: a b }\noperations: { a: { run: 'true ${v}' } }"
            let file = try workspace.write("g.yaml", text)
            for command in ["validate", "run"] {
                let ended = try await workspace.operon([command, file])
                #expect(ended.end == .exit(0), "\(ended.errors)")
                let warning = try #require(ended.errorLines.first)
                #expect(warning.hasPrefix("warning: \(file):2:25: ${v} in “run”"), "\(warning)")
                #expect(!ended.output.contains("${v}"))
            }
        }
    }

    @Test func `validate names every problem with its place`() async throws {
        try await Workspace.run { workspace in
            _ = try workspace.write(
                "bad.yaml",
                """
                operations:
                  a: { run: ls, priority: urgent }
                  b: { run: ls, timeout: -1s }
                  c: { run: ls, queue: 7, dependancies: [a] }
                """
            )
            let ended = try await workspace.operon(["validate", "bad.yaml"])

            #expect(ended.end == .exit(2))
            #expect(ended.errorLines.count == 3)
            #expect(
                ended.errorLines.map { $0.prefix(11) } == [
                    "bad.yaml:2:", "bad.yaml:3:", "bad.yaml:4:",
                ]
            )
            #expect(ended.errors.contains("did you mean “dependencies”?"))
        }
    }

    @Test func `graph draws the same arrows in every format`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write("graph.yaml", Self.graph)
            let tree = try await workspace.operon(["graph", file])
            let dot = try await workspace.operon(["graph", file, "--format", "dot"])
            let mermaid = try await workspace.operon(["graph", file, "--format", "mermaid"])

            #expect(tree.output == "b\n└─ a\nc\n└─ a\n")
            #expect(dot.output.hasPrefix("digraph"))
            #expect(dot.output.matches(of: /->/).count == 2)
            #expect(mermaid.output.contains("flowchart"))
            #expect(mermaid.output.matches(of: /-->/).count == 2)
            for ended in [tree, dot, mermaid] {
                #expect(ended.end == .exit(0))
                #expect(ended.errors == "")
                #expect(!ended.output.contains("\u{1B}"))
            }
        }
    }

    @Test(arguments: ["bash", "zsh", "fish"])
    func `completion prints a script that its shell can read`(shell: String) async throws {
        try await Workspace.run { workspace in
            let ended = try await workspace.operon(["completion", shell])

            #expect(ended.end == .exit(0))
            #expect(ended.errors == "")
            for word in [
                "validate", "graph", "completion", "dry-run", "fail-fast", "submit", "suspend",
                "idempotency-key", "veryLow", "cascade", "unlimited",
            ] {
                #expect(ended.output.contains(word))
            }
            // The shells that are not there cannot judge.
            let path = try workspace.write("script", ended.output)
            let judge = ["/bin", "/usr/bin"].map { "\($0)/\(shell)" }
                .first { FileManager.default.isExecutableFile(atPath: $0) }
            if let judge {
                let process = Process()
                process.executableURL = URL(fileURLWithPath: judge)
                process.arguments = ["-n", path]
                try process.run()
                process.waitUntilExit()
                #expect(process.terminationStatus == 0)
            } else {
                #expect(shell != "bash", "bash is needed for the scripts anyway")
            }
        }
    }

    @Test func `both programs tell the same version`() async throws {
        try await Workspace.run { workspace in
            let operon = try await workspace.operon(["--version"])
            let worker = try await workspace.start("operon-worker", ["--version"]).end()

            #expect(operon.end == .exit(0))
            #expect(operon.output.contains(/^\d+\.\d+\.\d+\n$/))
            #expect(worker.output == operon.output)
            #expect(operon.errors + worker.errors == "")
        }
    }

    @Test func `a file with a password that others can read is refused`() async throws {
        try await Workspace.run { workspace in
            let path = try workspace.write("url", "amqp://me:s3cret@127.0.0.1:1/\n")
            let manager = FileManager.default
            try manager.setAttributes([.posixPermissions: 0o644], ofItemAtPath: path)

            let ended = try await workspace.start("operon-worker", ["--broker-file", "url"]).end()

            #expect(ended.end == .exit(2))
            #expect(ended.errors.contains("Other users can read the URL in url (mode 644)"))
            #expect(!ended.errors.contains("s3cret"))
        }
    }

    @Test func `commands cannot read the broker's password in the environment of what runs them`()
        async throws
    {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "graph.yaml",
                "operations: { look: "
                    + "{ run: \"tr '\\\\0' '\\\\n' < /proc/$PPID/environ > seen || true\" } }\n"
            )
            let ended = try await workspace.start(
                "operon",
                ["run", file, "--local"],
                environment: ["OPERON_BROKER": "amqp://me:s3cret@broker/"]
            ).end()

            #expect(ended.end == .exit(0), "\(ended.errors)")
            let seen = try workspace.read("seen")
            // Only who may trace every process can read it at all.
            #expect(seen.isEmpty || seen.contains("HOME="))
            #expect(!seen.contains("s3cret"))
        }
    }

    @Test(arguments: [
        ("operon", ["run", "graph.yaml", "--brocker", "amqp://me:s3cr@t@host/"]),
        ("operon", ["validate", "graph.yaml", "amqp://me:s3cr@t@host/"]),
        ("operon-worker", ["amqp://me:s3cr@t@host/"]),
        ("operon-worker", ["--broker", "amqp://me:s3cr@t@host:port/"]),
        ("operon-worker", ["--broker-file", "url"]),
    ])
    func `a password is not shown in what is said of a wrong call`(
        name: String,
        arguments: [String]
    ) async throws {
        try await Workspace.run { workspace in
            _ = try workspace.write("graph.yaml", Self.graph)
            _ = try workspace.write("url", "http://me:s3cr@t@host/\n")
            let ended = try await workspace.start(name, arguments).end()

            #expect(ended.end == .exit(2))
            #expect(ended.output == "")
            #expect(ended.errors != "")
            #expect(!ended.errors.contains("s3cr"))
        }
    }

    @Test(arguments: [
        (["--broker", "amqp://a/", "--broker-file", "url"], "cannot be combined"),
        (["--broker-file", "gone"], "gone cannot be read"),
        (["--broker-file", "empty"], "empty has no URL in its first line"),
        ([], "Give the URL of the broker: --broker, --broker-file or OPERON_BROKER."),
    ])
    func `a worker that is not told its broker says what is missing`(
        arguments: [String],
        sentence: String
    ) async throws {
        try await Workspace.run { workspace in
            _ = try workspace.write("empty", "\n\n")
            let ended = try await workspace.start("operon-worker", arguments).end()

            #expect(ended.end == .exit(2))
            #expect(ended.output == "")
            #expect(ended.errors.contains(sentence))
        }
    }

    static let options: [(command: [String], options: [String])] = [
        (
            [],
            [
                "run", "map", "validate", "graph", "doctor", "store", "completion", "Exit codes:",
                "--version",
            ]
        ),
        (
            ["run"],
            [
                "<file>", "<targets>", "--replay", "-j, --slots", "--broker ", "--broker-file",
                "OPERON_BROKER", "--prefix", "--connect-timeout", "--local", "--keep-going",
                "--fail-fast", "--dry-run", "--output", "text, json", "--logs", "--trace",
                "Ctrl-C",
            ]
        ),
        (["validate"], ["<file>", "--replay", "--set", "--parameters"]),
        (["graph"], ["operon graph FILE", "draw (default)", "close", "operon graph ./close"]),
        (["graph", "draw"], ["<file>", "--replay", "--set", "--format", "tree, dot"]),
        (
            ["submit"],
            [
                "<file>", "--replay", "--graph", "--open", "--watch", "--wait", "--timeout",
                "--idempotency-key", "--coordinator", "OPERON_COORDINATOR", "operon.sock",
                "--token-file", "OPERON_TOKEN_FILE", "--ca-file", "--output",
            ]
        ),
        (["list"], ["--status", "--name", "--limit", "--after"]),
        (["watch"], ["<graph>", "@latest", "Ctrl-C"]),
        (["wait"], ["<graph>", "--timeout", "30s"]),
        (["operations"], ["<graph>", "--state", "--outcome", "--queue"]),
        (["logs"], ["<operation>", "-f, --follow"]),
        (["cancel"], ["<target>", "--queue", "--cascade", "--reason", "--wait", "--timeout"]),
        (["suspend"], ["<target>", "--queue", "--until", "--reason", "--wait", "--timeout"]),
        (["retry"], ["<graph>", "<operations>", "--failed", "--cancelled"]),
        (["priority"], ["<operation>", "<level>", "veryLow"]),
        (["queue"], ["list", "show", "set", "suspend", "resume"]),
        (["queue", "set"], ["<name>", "--max", "--unlimited", "--priority"]),
        (["drain"], ["<worker>", "--wait", "--timeout"]),
        (["events"], ["-f, --follow", "--after", "--graph"]),
        (["dead"], ["<graph>", "--retry", "--limit"]),
        (
            ["doctor"],
            [
                "--broker ", "--broker-file", "OPERON_BROKER", "--prefix", "--role", "coordinator",
                "--timeout", "--output", "Exit codes:",
            ]
        ),
        (["completion"], ["bash", "zsh", "fish"]),
    ]

    @Test(arguments: options)
    func `help tells every option`(command: [String], options: [String]) async throws {
        try await Workspace.run { workspace in
            let ended = try await workspace.operon(command + ["--help"])

            #expect(ended.end == .exit(0))
            #expect(ended.errors == "")
            for option in options { #expect(ended.output.contains(option), "\(option)") }
            #expect(ended.outputLines.allSatisfy { $0.count <= 80 })
        }
    }

    @Test func `help of the worker tells every option`() async throws {
        try await Workspace.run { workspace in
            let ended = try await workspace.start("operon-worker", ["--help"]).end()

            #expect(ended.end == .exit(0))
            for option in [
                "--broker ", "--broker-file", "OPERON_BROKER", "--prefix", "--name", "-j, --slots",
                "--queues", "--drain-timeout", "--state-directory", "STATE_DIRECTORY",
                "--control-group", "--supervise",
                "--verbose", "SIGTERM", "Exit codes:",
            ] { #expect(ended.output.contains(option), "\(option)") }
        }
    }
}
