import Foundation
import Glibc
import OperonModel
import OperonPorts
import OperonTesting
import Testing

/// The commands that ask a coordinator, while something happens there.
@Suite(.serialized) struct ClientTests {
    // MARK: - Watching

    @Test func `watch prints a line for each change on a pipe, and ends as the work did`()
        async throws
    {
        let clock = ManualClock()
        try await LiveServer.run(clock: clock, holdsAll: true) { server in
            try await server.submitWordcount()
            try await server.join("worker", slots: 1)
            try await server.wait(for: "0/split", .executing)
            let watch = try server.start("watch wordcount")
            await server.tap.waitForAnswers("operations", 1)
            try await server.finish("0/split")
            try await watch.says("running count-b\n")
            clock.advance(by: .seconds(2))
            try await server.finish("0/count-b")
            try await watch.says("running count-a\n")
            clock.advance(by: .seconds(3))
            try await server.finish("0/count-a", .exit(code: 7))
            let ended = try await watch.end()

            #expect(ended.end == .exit(1))
            #expect(ended.errors == "")
            #expect(
                ended.output == """
                    [1/4] succeeded split
                    [1/4] running count-b
                    [2/4] succeeded count-b
                    [2/4] running count-a
                    [3/4] failed count-a: exit code 7
                    [4/4] skipped merge: because of “count-a”
                    failed 0/count-a: exit code 7
                    To see its log: operon logs 0/count-a
                    To retry the failed operations: operon retry 0 --failed
                    graph 0 “wordcount” finished. 4 operations: 2 succeeded, 1 failed, 1 skipped

                    """
            )
        }
    }

    @Test(arguments: [UInt16(80), 40])
    func `watch overprints one line on a terminal`(columns: UInt16) async throws {
        try await LiveServer.run { server in
            try await server.submitWordcount()
            let watch = try server.start(
                "watch @latest",
                streams: .terminal(columns: columns, rows: 24)
            )
            try await watch.says("0/4")
            try await server.join("worker", slots: 1)
            let ended = try await watch.end()
            let screen = TerminalScreen(columns: Int(columns), ended.output)

            #expect(ended.end == .exit(0))
            #expect(screen.unknown == [])
            #expect(screen.redraws > 0)
            #expect(screen.lines.first?.contains("4/4") == true, "\(screen.lines)")
            let last = screen.lines.dropFirst().joined()
            #expect(last == "graph 0 “wordcount” finished. 4 operations: 4 succeeded")
        }
    }

    @Test func `Ctrl-C leaves a watch, which says how to come back`() async throws {
        try await LiveServer.run { server in
            try await server.submitWordcount()
            for command in ["watch 0", "submit wordcount.yaml --watch"] {
                let watch = try server.start(command)
                await server.tap.waitForWatchers(1)
                watch.signal(SIGINT)
                let ended = try await watch.end()
                let graph = command == "watch 0" ? 0 : 1

                #expect(ended.end == .exit(0))
                let sentence = "Detached: graph \(graph) “wordcount” keeps running."
                let next = "To watch it again: operon watch \(graph)"
                #expect(ended.errorLines.last == "\(sentence) \(next)")
                await server.tap.waitForWatchers(0)
            }
            let calls = await server.tap.calls.map(\.name)
            #expect(!calls.contains("cancel"))
        }
    }

    @Test func `Ctrl-C ends a wait as a signal, and the graph goes on`() async throws {
        try await LiveServer.run { server in
            try await server.submitWordcount()
            for (graph, command) in ["wait 0", "submit wordcount.yaml --wait"].enumerated() {
                let wait = try server.start(command)
                await server.tap.waitForWatchers(1)
                wait.signal(SIGINT)
                let ended = try await wait.end()

                #expect(ended.end == .signal(SIGINT))
                let sentence = "Stopped waiting: graph \(graph) “wordcount” keeps running."
                let next = "To wait for it again: operon wait \(graph)"
                #expect(ended.errorLines.last == "\(sentence) \(next)")
                await server.tap.waitForWatchers(0)
            }
            let calls = await server.tap.calls.map(\.name)
            #expect(!calls.contains("cancel"))
        }
    }

    @Test func `a watch outlives a cut of the stream, and misses nothing`() async throws {
        try await LiveServer.run { server in
            try await server.submitWordcount()
            let watch = try server.start("watch 0")
            await server.tap.waitForCalls("operations", 1)
            await server.tap.endStreams()
            try await server.join("worker", slots: 1)
            let ended = try await watch.end()

            #expect(ended.end == .exit(0))
            let finished = ended.outputLines.filter { $0.contains("] succeeded ") }
            #expect(finished.count == 4, "\(ended.output)")
        }
    }

    @Test func `watch asks for nothing while nothing happens`() async throws {
        try await LiveServer.run(holdsAll: true) { server in
            try await server.submitWordcount()
            let watch = try server.start("watch 0 --output json")
            await server.tap.waitForWatchers(1)
            try await server.join("worker", slots: 1)
            try await watch.says(#""kind":"started""#)
            let before = await server.tap.calls.count
            try await server.finish("0/split")
            try await watch.says(#""outcome":"succeeded""#)
            let after = await server.tap.calls.count
            try await server.cluster.finishAll(of: "0")
            let ended = try await watch.end()

            #expect(after == before)
            #expect(ended.end == .exit(0))
            for line in ended.outputLines {
                _ = try JSONDecoder().decode(EventView.self, from: Data(line.utf8))
            }
        }
    }

    @Test(arguments: [(nil, Int32(0)), ("count-a", 1)])
    func `submit that waits ends as the work does`(failing: String?, code: Int32) async throws {
        try await LiveServer.run(holdsAll: true) { server in
            _ = try server.workspace.write("wordcount.yaml", LiveServer.wordcount)
            try await server.run("key set db --limit 2")
            let submit = try server.start("submit wordcount.yaml --wait --output quiet")
            await server.tap.waitForWatchers(1)
            try await server.join("worker", slots: 2)
            if let failing {
                try await server.finish("0/split")
                try await server.finish("0/\(failing)", .timeout)
            }
            try await server.cluster.finishAll(of: "0")
            let ended = try await submit.end()

            #expect(ended.end == .exit(code))
            #expect(ended.output == "0\n")
            // Warnings are printed in every format.
            let warning = "warning: There is no worker yet: the operations wait until one starts.\n"
            #expect(ended.errors == warning)
        }
    }

    @Test func `directories are those of the machine that submits`() async throws {
        try await LiveServer.run { server in
            _ = try server.workspace.write(
                "here.yaml",
                "operations: { a: { run: ls }, b: { run: ls, directory: sub } }"
            )
            _ = try await server.operon("submit here.yaml")
            let graph = await server.tap.submissions.first?.graph
            let directories = graph?.operations.map { operation -> String? in
                guard case .command(let command) = operation.work else { return nil }
                return command.directory
            }
            let directory = server.workspace.directory

            #expect(directories == [directory, directory + "/sub"])
        }
    }

    // MARK: - Following

    @Test func `logs are followed until the operation is finished`() async throws {
        try await LiveServer.run(holdsAll: true) { server in
            try await server.join("worker", slots: 1)
            let retried = "operations: { a: { run: ls, retry: { limit: 1, delay: 0s } } }"
            try await server.submit("g", retried)
            let selector = OperationSelector(path: "0/a")
            try await server.cluster.print(selector, "before")
            try await server.finish("0/a", .exit(code: 1))
            try await server.wait(for: "0/a", .executing)
            let logs = try server.start("logs 0/a --follow")
            await server.tap.waitForFollowers(1)
            try await logs.says("before\n")
            try await server.cluster.print(selector, "after\u{1B}[2J")
            try await logs.says("after")
            try await server.finish("0/a")
            let ended = try await logs.end()

            #expect(ended.end == .exit(0))
            // A pipe gets what was printed.
            #expect(ended.output == "before\nafter\u{1B}[2J\n")
            #expect(ended.errors == "attempt 1:\nattempt 2:\n")
        }
    }

    @Test func `events are followed until Ctrl-C, which says where to go on`() async throws {
        try await LiveServer.run(holdsAll: true) { server in
            try await server.submitWordcount()
            let events = try server.start("events --follow --graph wordcount")
            await server.tap.waitForWatchers(1)
            try await server.join("worker", slots: 1)
            try await events.says("started 0/split")
            events.signal(SIGINT)
            let ended = try await events.end()

            #expect(ended.end == .exit(0))
            // It was granted before.
            #expect(ended.outputLines.count == 2)
            // What is being printed when the signal comes may be told again, and is never left out.
            let sentences = [2, 4].map { "To continue: operon events --follow --after \($0)\n" }
            #expect(sentences.contains(ended.errors), "\(ended.errors)")
        }
    }

    @Test func `drain waits until the worker has left`() async throws {
        try await LiveServer.run(holdsAll: true) { server in
            try await server.join("w1", slots: 1)
            try await server.submit("g", "operations: { a: { run: ls } }")
            try await server.wait(for: "0/a", .executing)
            let late = try await server.operon("drain w1 --wait --timeout 0.05s")
            let drain = try server.start("drain w1 --wait")
            await server.tap.waitForCalls("drain", 2)
            try await server.finish("0/a")
            let ended = try await drain.end()

            #expect(late.end == .exit(4))
            #expect(late.errors.contains("Worker “w1” is still there"))
            #expect(ended.end == .exit(0))
            #expect(ended.errorLines.last?.hasSuffix("” has left.") == true)
        }
    }

    // MARK: - Strangers' names

    @Test func `names and reasons cannot speak to the terminal`() async throws {
        try await LiveServer.run(holdsAll: true) { server in
            // Names that no coordinator takes, and one of another version may send all the same.
            let name = "a\u{1B}]0;title\u{07}\u{202E}b\u{1B}[2Jc"
            let json = String(decoding: try JSONEncoder().encode(name), as: UTF8.self)
            await server.tap.rewrite(#""plain""#, as: json)
            try await server.submit("plain", "operations: { plain: { run: ls } }")
            try await server.join("plain", slots: 1)
            try await server.cluster.print(OperationSelector(path: "0/0"), name)
            let error = OperationError.thrown(type: "E", message: name, payload: [])
            try await server.finish("0/0", error)
            let commands = [
                ["list"], ["status", "0"], ["operations", "0"], ["show", "0/0"],
                ["explain", "0/0"],
                ["logs", "0/0"], ["events"], ["dead"], ["watch", "0"], ["status", "\u{1B}[2J"],
            ]
            for command in commands {
                let ended = try await server.start(
                    command,
                    environment: ["NO_COLOR": "1"],
                    streams: .terminal(columns: 200, rows: 24)
                ).end()
                // Only the progress of a watch may move the cursor.
                let shown = ended.output.replacingOccurrences(of: "\u{1B}[1A\r\u{1B}[J", with: "")
                let isClean = !shown.unicodeScalars.contains { scalar in
                    ["\u{1B}", "\u{07}", "\u{202E}"].contains(scalar)
                }
                #expect(isClean, "\(command): \(ended.output.debugDescription)")
                #expect(!ended.output.isEmpty)
            }
        }
    }

    // MARK: - JSON

    @Test func `every view is told in JSON as the API tells it`() async throws {
        // The time since the start is a part of the views.
        try await LiveServer.run(clock: ManualClock(), holdsAll: true) { server in
            try await server.submitWordcount()
            try await server.join("worker", slots: 1)
            try await server.wait(for: "0/split", .executing)
            func view<View: Decodable>(_ type: View.Type, _ command: String...) async throws -> View
            {
                let ended = try await server.start(command + ["--output", "json"]).end()
                #expect(ended.end == .exit(0))
                #expect(ended.errors == "")
                #expect(ended.outputLines.count == 1)
                return try JSONDecoder().decode(type, from: Data(ended.output.utf8))
            }
            let coordinator = server.cluster.client

            #expect(try await view(GraphView.self, "status", "0") == coordinator.graph("0"))
            #expect(try await view(ClusterView.self, "status") == coordinator.status())
            #expect(try await view(GraphPage.self, "list").graphs.map(\.id) == [0])
            let split = OperationSelector(graph: "0", operation: "split")
            let detail = try await coordinator.operation(split)
            #expect(try await view(OperationDetail.self, "show", "0/split") == detail)
            let merge = OperationSelector(graph: "0", operation: "merge")
            let explanation = try await coordinator.explain(merge)
            #expect(try await view(Explanation.self, "explain", "0/merge") == explanation)
            let page = try await view(OperationPage.self, "operations", "0", "--limit", "2")
            #expect(page.operations.map(\.name) == ["split", "count-a"])
            #expect(page.next == 2)
            let named = try await view(
                OperationPage.self,
                "operations",
                "0",
                "--name-prefix",
                "count"
            )
            #expect(named.operations.map(\.name) == ["count-a", "count-b"])
            let command = try await view(CommandView.self, "cancel", "0/count-a")
            #expect(command.affected == 1)
        }
    }

    // MARK: - Wrong calls

    static let wrong: [(command: String, sentence: String)] = [
        ("submit", "Name a graph file, or a command after --."),
        ("submit nothing.yaml", "nothing.yaml: the file cannot be read"),
        ("submit g.yaml --watch --wait", "--watch and --wait cannot be combined"),
        ("submit g.yaml --timeout 3s", "--timeout needs --wait"),
        ("submit g.yaml --graph 1 --open", "--open is for a new graph"),
        ("list --status done", "Please provide one of “running”, “suspended”, "),
        ("list --limit 0", "--limit must be at least 1"),
        ("status 1/merge", "“1/merge” is an operation; name a graph"),
        ("status --output yaml", "Please provide one of “text”, “json” or “quiet”"),
        ("operations", "Missing expected argument “<graph>”"),
        ("operations 1 --state done", "Please provide one of “pending”, “ready”"),
        ("operations 1 --state ready --outcome failed", "that is ready has no outcome yet"),
        ("show merge", "GRAPH/OPERATION, for example @latest/merge"),
        ("show /merge", "GRAPH/OPERATION, for example @latest/merge"),
        ("explain @latest", "GRAPH/OPERATION, for example @latest/merge"),
        ("logs 1/", "GRAPH/OPERATION, for example 1/merge"),
        ("output", "Missing expected argument “<operation>”"),
        ("cancel", "name a graph, an operation as GRAPH/OPERATION, or --queue NAME"),
        ("cancel 1 --queue q", "a graph or operation and --queue cannot be combined"),
        ("cancel 1 --timeout 3s", "--timeout needs --wait"),
        ("cancel 1 --wait --timeout 2h", "--timeout must be at most one hour here"),
        ("suspend 1 --until yesterday", "a date such as 2026-05-01T08:30:00Z, or a duration"),
        ("resume", "name a graph, an operation as GRAPH/OPERATION, or --queue NAME"),
        ("retry", "Missing expected argument “<graph>”"),
        ("retry 1 merge --failed", "--failed and --cancelled cannot be combined with names"),
        ("priority 1/merge urgent", "Please provide one of “veryLow”, “low”"),
        ("graph close", "Missing expected argument “<graph>”"),
        ("queue", "operon queue <subcommand>"),
        (
            "queue set q",
            "give at least one of --max, --unlimited, --rate, --no-rate and --priority"
        ),
        ("queue set q --max=-1", "--max must be from 0 to"),
        ("queue set q --max 1 --unlimited", "--max and --unlimited cannot be combined"),
        ("key", "operon key <subcommand>"),
        ("key set db", "Missing expected argument “--limit <limit>”"),
        ("key set db --limit 0", "--limit must be from 1 to"),
        ("wait 1 --timeout never", "Stop waiting after this long, for example 30s"),
        ("drain", "Missing expected argument “<worker>”"),
        ("drain w1 --timeout 3s", "--timeout needs --wait"),
        ("events --after x", "The value “x” is invalid for “--after <number>”"),
        ("workers all", "Unexpected argument “all”"),
        ("dead --limit 0", "--limit must be at least 1"),
        ("workers --token-file nothing", "nothing cannot be read"),
        ("workers --coordinator here", "here"),
        ("workers --ca-file nothing", "nothing"),
    ]

    @Test func `a wrong call says what is wrong, and asks nobody`() async throws {
        try await LiveServer.run { server in
            _ = try server.workspace.write("g.yaml", "operations: { a: { run: ls } }")
            for (line, sentence) in Self.wrong {
                let ended = try await server.operon(line)
                let said = ended.errors + ended.output

                let isHelp = line == "queue" || line == "key"
                let code: Int32 = isHelp ? 0 : 2
                #expect(ended.end == .exit(code), "\(line): \(ended.end)")
                // A sentence begins with a capital letter.
                #expect(
                    said.lowercased().contains(sentence.lowercased()),
                    "\(line): \(said)"
                )
                #expect(ended.output.isEmpty || isHelp, "\(line): \(ended.output)")
            }
            #expect(await server.tap.calls.isEmpty)
        }
    }

    @Test(arguments: [
        (ClientError.Code.conflict, Int32(2)), (.unavailable, 5), (.internal, 5), (.forbidden, 2),
    ])
    func `what a coordinator refuses ends with its code`(
        code: ClientError.Code,
        exit: Int32
    ) async throws {
        try await LiveServer.run { server in
            let error = ClientError(code, "It cannot be done: for a reason.")
            await server.tap.failNext("workers", with: error)
            let ended = try await server.operon("workers")

            #expect(ended.end == .exit(exit))
            #expect(ended.errors.contains("for a reason"))
            #expect(ended.output == "")
        }
    }
}
