import Foundation
import Glibc
import Testing

/// The pages that teach show what happens: a test saves their files and runs their commands, in the
/// order of the page, in a fresh folder.
@Suite(.serialized, .timeLimit(.minutes(5))) struct PageTests {
    private static let pages = ["RECIPES", "TROUBLESHOOTING", "TUTORIAL"]

    /// Blocks that no test runs, by page, with their reasons. It should stay empty.
    private static let notRun: [String: [String]] = [:]

    private static func blocks(_ page: String) throws -> [PageBlock] {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let file = root.appendingPathComponent("docs/\(page).md")
        return PageBlock.blocks(of: try String(contentsOf: file, encoding: .utf8))
    }

    @Test(arguments: pages)
    func `what a page shows is what happens`(page: String) async throws {
        let blocks = try Self.blocks(page)
        try await Workspace.run { workspace in
            let reader = try PageReader(workspace)
            for block in blocks {
                for problem in try await reader.follow(block) {
                    Issue.record("docs/\(page).md:\(block.line): \(problem)")
                }
            }
            for problem in try await reader.stopAll() { Issue.record("\(page): \(problem)") }
        }
    }

    @Test(arguments: pages)
    func `every block is a file or a session, or says why it is not run`(page: String) throws {
        let blocks = try Self.blocks(page)
        #expect(blocks.count > 10)
        let unknown = blocks.filter { $0.content == .unknown }.map(\.line)
        #expect(unknown == [], "docs/\(page).md has blocks that nobody runs")
        let reasons = blocks.compactMap { block -> String? in
            if case .notRun(let reason) = block.content { reason } else { nil }
        }
        #expect(reasons == Self.notRun[page] ?? [], "\(reasons.count) blocks are not run")
    }

    // MARK: - The comparison finds what it is for

    @Test func `a page is taken apart`() {
        let page = """
            Save this as `a.yaml`:

            ```yaml
            operations: {}
            ```

            <!-- terminal: second -->

            ```console
            $ operon up
            …
            $ echo $?
            1
            ```

            <!-- stop: second -->

            <!-- not run: it needs a network -->

            ```console
            $ ssh a1
            ```

            ```sh
            lost
            ```
            """
        #expect(
            PageBlock.blocks(of: page) == [
                PageBlock(line: 3, content: .file(name: "a.yaml", text: "operations: {}\n")),
                PageBlock(
                    line: 9,
                    content: .session(
                        [
                            PageCommand(text: "operon up", output: ["…"]),
                            PageCommand(text: "echo $?", output: ["1"]),
                        ],
                        .terminal("second")
                    )
                ),
                PageBlock(line: 16, content: .stop("second")),
                PageBlock(line: 20, content: .notRun("it needs a network")),
                PageBlock(line: 24, content: .unknown),
            ]
        )
    }

    @Test(arguments: [
        ("a", "a", true), ("a", "b", false), ("a", "a\nb", false), ("…", "", true),
        ("…\nb", "a\nx\nb", true), ("a\n…", "a", true), ("a\n…\nc", "a\nb", false),
        ("a … c", "a b c", true), ("a … c", "a b d", false), ("a  b", "a b", true),
        ("took 21ms", "took 1.5s", true), ("took 21 ms", "took 1.5 s", true),
        ("took 21ms", "took long", false),
        ("2026-05-01 10:00:00Z x", "2027-01-01 00:00:00Z x", true), ("0:01", "12:34", true),
        ("/home/ann/a", "/tmp/b/a", true), ("3 left", "4 left", false),
    ])
    func `output that differs is found`(shown: String, printed: String, fits: Bool) {
        let command = PageCommand(
            text: "",
            output: shown.split(separator: "\n").map(String.init)
        )
        #expect(command.fits(printed, home: "/tmp/b") == fits)
    }
}

/// A command line of a page, and what the page shows of its output; nothing if it shows none.
struct PageCommand: Equatable {
    var text: String
    var output: [String]

    /// Whether this was printed. `…` stands for any lines, or for any part of a line. Times,
    /// durations and the width of columns do not count.
    func fits(_ printed: String, home: String) -> Bool {
        var lines = printed.split(separator: "\n", omittingEmptySubsequences: false)
        while lines.last?.isEmpty == true { lines.removeLast() }
        return Self.fits(
            lines.map { Self.plain(String($0), home: home) }[...],
            output.map { Self.plain($0, home: home) }[...]
        )
    }

    private static func fits(_ lines: ArraySlice<String>, _ shown: ArraySlice<String>) -> Bool {
        guard let first = shown.first else { return lines.isEmpty }
        let rest = shown.dropFirst()
        if first == "…" {
            return (lines.startIndex...lines.endIndex).contains { fits(lines[$0...], rest) }
        }
        guard let line = lines.first, matches(line, first) else { return false }
        return fits(lines.dropFirst(), rest)
    }

    private static func matches(_ line: String, _ pattern: String) -> Bool {
        let parts = pattern.components(separatedBy: "…")
        guard parts.count > 1 else { return line == pattern }
        guard line.hasPrefix(parts[0]) else { return false }
        var rest = line.dropFirst(parts[0].count)
        for part in parts.dropFirst().dropLast() {
            guard let range = rest.range(of: part) else { return false }
            rest = rest[range.upperBound...]
        }
        return rest.hasSuffix(parts[parts.count - 1])
    }

    private static func plain(_ line: String, home: String) -> String {
        var line = line.replacingOccurrences(of: home, with: "/home/ann")
        let patterns = [
            (#"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?"#, "TIME"),
            (#"\d{4}-\d\d-\d\d"#, "DATE"),
            (#"\b\d+(\.\d+)? ?(ns|us|µs|ms|s|m)\b"#, "0s"),
            (#"\b\d+:\d\d(:\d\d)?\b"#, "0:00"),
            (#" +"#, " "),
            (#" $"#, ""),
        ]
        for (pattern, plain) in patterns {
            line = line.replacingOccurrences(
                of: pattern,
                with: plain,
                options: .regularExpression
            )
        }
        return line
    }
}

/// A fenced block of a page, or an instruction to whoever runs it.
struct PageBlock: Equatable {
    enum Content: Equatable {
        case file(name: String, text: String)
        case session([PageCommand], Way)
        /// Ctrl-C in this terminal.
        case stop(String)
        case notRun(String)
        case unknown
    }

    /// How a session runs.
    enum Way: Equatable {
        case once
        /// Until it prints what the page shows: it waits for something else.
        case repeated
        /// In a terminal of its own, where its last command keeps running.
        case terminal(String)
    }

    var line: Int
    var content: Content

    /// A block is a file if the line before it ends with its name, “as `NAME`:”, and a session if
    /// its language is `console`. A comment before it says how it runs.
    static func blocks(of page: String) -> [PageBlock] {
        var blocks: [PageBlock] = []
        var (comment, before) = ("", "")
        var open: (line: Int, language: String, body: [String])?
        let lines = page.split(separator: "\n", omittingEmptySubsequences: false)
        for (index, line) in lines.enumerated() {
            if let block = open {
                if line != "```" {
                    open?.body.append(String(line))
                    continue
                }
                let content = content(block.language, block.body, comment, before)
                blocks.append(PageBlock(line: block.line, content: content))
                open = nil
                (comment, before) = ("", "")
            } else if line.hasPrefix("```") {
                open = (index + 1, String(line.dropFirst(3)), [])
            } else if line.hasPrefix("<!-- "), line.hasSuffix(" -->") {
                comment = String(line.dropFirst(5).dropLast(4))
                if let name = comment.rest(after: "stop: ") {
                    blocks.append(PageBlock(line: index + 1, content: .stop(name)))
                    comment = ""
                }
            } else if !line.isEmpty {
                before = String(line)
            }
        }
        return blocks
    }

    private static func content(
        _ language: String,
        _ body: [String],
        _ comment: String,
        _ before: String
    ) -> Content {
        if let reason = comment.rest(after: "not run: ") { return .notRun(reason) }
        if language == "console" {
            if let name = comment.rest(after: "terminal: ") {
                return .session(commands(body), .terminal(name))
            }
            return .session(commands(body), comment == "repeat" ? .repeated : .once)
        }
        let parts = before.split(separator: "`", omittingEmptySubsequences: false)
        guard parts.count >= 3, parts.last == ":" else { return .unknown }
        let text = body.joined(separator: "\n") + "\n"
        return .file(name: String(parts[parts.count - 2]), text: text)
    }

    private static func commands(_ body: [String]) -> [PageCommand] {
        var commands: [PageCommand] = []
        for line in body {
            if let text = line.rest(after: "$ ") {
                commands.append(PageCommand(text: text, output: []))
            } else if !commands.isEmpty {
                commands[commands.count - 1].output.append(line)
            }
        }
        return commands
    }
}

extension String {
    fileprivate func rest(after prefix: String) -> String? {
        hasPrefix(prefix) ? String(dropFirst(prefix.count)) : nil
    }
}

/// Does what a page says: as its user, with shells in their home folder.
private final class PageReader {
    private let workspace: Workspace
    private let path: String
    /// What later sessions of a terminal start with: its `cd` and `export`; "" is the first one.
    private var preludes: [String: [String]] = [:]
    private var servers: [(name: String, program: Program)] = []

    init(_ workspace: Workspace) throws {
        self.workspace = workspace
        let own = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
        path = workspace.path("bin") + ":" + own
        try FileManager.default.createDirectory(
            atPath: workspace.path("bin"),
            withIntermediateDirectories: true
        )
        for (name, text) in try programs() {
            chmod(try workspace.write("bin/\(name)", "#!/bin/sh\n" + text), 0o755)
        }
    }

    /// The programs, with a prefix of the test's own on its broker, and stand-ins for what is not
    /// installed: they check their options and run the command here.
    private func programs() throws -> [(String, String)] {
        let operon = try Program.executable("operon")
        let worker = try Program.executable("operon-worker")
        let prefix = "--prefix '\(workspace.prefix)'"
        return [
            (
                "operon",
                """
                case $1 in
                    run | coordinator | doctor) exec '\(operon)' "$@" \(prefix) ;;
                esac
                exec '\(operon)' "$@"

                """
            ),
            ("operon-worker", "exec '\(worker)' \"$@\" \(prefix)\n"),
            (
                "podman",
                """
                [ "$1 $2 $3 $4" = "run --rm --replace --name" ] || exit 125
                until [ "$1" = docker.io/library/debian:12 ]; do shift || exit 125; done
                shift
                exec "$@"

                """
            ),
            (
                "conda",
                """
                [ "$1 $2 $3 $4" = "run --no-capture-output --name stats" ] || exit 1
                shift 4
                exec "$@"

                """
            ),
        ]
    }

    /// What was not as the page says.
    func follow(_ block: PageBlock) async throws -> [String] {
        switch block.content {
        case .file(let name, let text):
            _ = try workspace.write(name, text)
            return []
        case .session(let commands, .terminal(let name)):
            let program = try start(commands, terminal: name, line: block.line)
            servers.append((name, program))
            return try await wait(for: commands, of: program)
        case .session(let commands, let way):
            let deadline = ContinuousClock.now + .seconds(60)
            while true {
                let program = try start(commands, line: block.line)
                let ended = try await program.end(within: .seconds(120))
                let problems = problems(commands, ended.output)
                let isLast = way == .once || ContinuousClock.now >= deadline
                if problems.isEmpty || isLast { return problems }
            }
        case .stop(let name): return try await stop(name)
        case .notRun, .unknown: return []
        }
    }

    func stopAll() async throws -> [String] {
        var problems: [String] = []
        for name in servers.map(\.name).reversed() { problems += try await stop(name) }
        return problems
    }

    private func stop(_ name: String) async throws -> [String] {
        guard let index = servers.firstIndex(where: { $0.name == name }) else {
            return ["nothing runs in the terminal “\(name)”"]
        }
        let program = servers.remove(at: index).program
        program.signal(SIGINT)
        let ended = try await program.end(within: .seconds(60))
        return ended.end == .exit(0) ? [] : ["“\(name)” ended with \(ended.end)"]
    }

    // MARK: - Sessions

    /// A shell that runs them. It announces each command, and tells how it ended. In a terminal of
    /// its own, the last command takes the place of the shell, so that it gets the signals.
    private func start(
        _ commands: [PageCommand],
        terminal: String? = nil,
        line: Int
    ) throws -> Program {
        let name = terminal ?? ""
        var lines = ["exec 2>&1"] + (preludes[name] ?? [])
        for (index, command) in commands.enumerated() {
            lines.append(#"printf '\001\n'"#)
            if index > 0 { lines.append("(exit $status)") }
            let isServer = terminal != nil && index == commands.count - 1
            lines.append((isServer ? "exec " : "") + command.text)
            lines += ["status=$?", #"printf '\002%d\n' "$status""#]
            if command.text.hasPrefix("cd ") || command.text.hasPrefix("export ") {
                preludes[name, default: []].append(command.text)
            }
        }
        var text = lines.joined(separator: "\n") + "\n"
        if text.contains("@broker.example") {
            let users = try BrokerUsers()
            for (user, url) in [("coordinator", users.coordinator), ("worker", users.worker)] {
                let shown = "amqp://operon-\(user):PASSWORD@broker.example/operon"
                text = text.replacingOccurrences(of: shown, with: url)
            }
        }
        let script = try workspace.write("bin/session-\(line)", text)
        return try workspace.start("/bin/bash", [script], environment: ["PATH": path])
    }

    /// Returns when a server has said what the page shows.
    private func wait(for commands: [PageCommand], of program: Program) async throws -> [String] {
        let deadline = ContinuousClock.now + .seconds(60)
        while true {
            let hasEnded = program.hasEnded
            let problems = problems(commands, program.output.text)
            if hasEnded { return problems + ["the last command has ended"] }
            if problems.isEmpty || ContinuousClock.now >= deadline { return problems }
            // What it says is compared as a whole, which gives no signal.
            try await Task.sleep(for: .milliseconds(20))
        }
    }

    private func problems(_ commands: [PageCommand], _ output: String) -> [String] {
        let printed = output.components(separatedBy: "\u{1}\n").dropFirst()
            .map { $0.components(separatedBy: "\u{2}") }
        var problems: [String] = []
        for (index, command) in commands.enumerated() {
            guard index < printed.count else {
                problems.append("$ \(command.text)\nwas not run")
                continue
            }
            let (text, code) = (printed[index][0], printed[index].dropFirst().first)
            let isShown = index + 1 < commands.count && commands[index + 1].text == "echo $?"
            if let code, code != "0\n", !isShown {
                problems.append("$ \(command.text)\n\(text)ended with exit code \(code)")
            } else if !command.output.isEmpty, !command.fits(text, home: workspace.directory) {
                problems.append("$ \(command.text)\nprinted:\n\(text)")
            }
        }
        return problems
    }
}
