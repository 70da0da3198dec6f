import Foundation
import Glibc
import Testing

/// What each exit code stands for, and that whoever fails says so on standard error alone.
@Suite(.serialized) struct ExitCodeTests {
    // MARK: - 0, 1, 3, 7: the work

    struct Work: CustomTestStringConvertible, Sendable {
        var code: Int32
        var graph: String
        var outcomes: [String: String]
        var testDescription: String { "\(code): \(graph)" }
    }

    static let works = [
        Work(
            code: 0,
            graph: "operations: { a: { run: 'true' }, b: { run: 'true', dependencies: [a] } }",
            outcomes: ["a": "succeeded", "b": "succeeded"]
        ),
        Work(
            code: 1,
            graph: "operations: { a: { run: 'false' }, b: { run: 'true' } }",
            outcomes: ["a": "failed", "b": "succeeded"]
        ),
        Work(
            code: 1,
            graph: "operations: { a: { run: 'false' }, b: { run: 'true', dependencies: [a] } }",
            outcomes: ["a": "failed", "b": "skipped"]
        ),
        Work(
            code: 1,
            graph:
                "operations: { a: { run: 'false' }, b: { run: ':', dependencies: {a: failed} } }",
            outcomes: ["a": "failed", "b": "succeeded"]
        ),
        // A handler of a failure that did not happen is no loss.
        Work(
            code: 0,
            graph: "operations: { a: { run: ':' }, b: { run: ':', dependencies: {a: failed} } }",
            outcomes: ["a": "succeeded", "b": "skipped"]
        ),
        // Skipped for want of a success, and nothing failed: what c waits for was not needed.
        Work(
            code: 7,
            graph: """
                operations:
                  a: { run: ':' }
                  b: { run: ':', dependencies: {a: failed} }
                  c: { run: ':', dependencies: {b: succeeded} }
                """,
            outcomes: ["a": "succeeded", "b": "skipped", "c": "skipped"]
        ),
    ]

    @Test(arguments: works)
    func `the work decides the exit code`(work: Work) async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write("graph.yaml", work.graph)
            let ended = try await workspace.run(file, on: .inProcess, ["--output", "json"])

            #expect(ended.end == .exit(work.code))
            #expect(try ended.report().outcomes == work.outcomes)
        }
    }

    @Test func `the work decides the exit code over a broker too`() async throws {
        try await Workspace.run { workspace in
            try workspace.startWorkers(2, slots: 2)
            for work in Self.works {
                let file = try workspace.write("graph.yaml", work.graph)
                let ended = try await workspace.run(file, on: .broker, ["--output", "json"])

                #expect(ended.end == .exit(work.code), "\(work.graph)")
                #expect(try ended.report().outcomes == work.outcomes)
            }
        }
    }

    // MARK: - 2: the call, the file

    @Test(arguments: [
        (["frobnicate"], "frobnicate"), (["run"], "Missing expected argument “<file>”"),
        (["run", "graph.yaml", "--slots", "0"], "--slots must be from 1 to 4096"),
        (["run", "graph.yaml", "--slots", "4097"], "--slots must be from 1 to 4096"),
        (["run", "graph.yaml", "--slots", "many"], "many"),
        (["run", "graph.yaml", "--output", "xml"], "xml"),
        (["run", "graph.yaml", "--unheard-of"], "--unheard-of"),
        (["run", "graph.yaml", "--replay", "-1"], "--replay"),
        (["run", "graph.yaml", "--replay", "2"], "replay"),
        (["run", "graph.yaml", "--keep-going", "--fail-fast"], "--fail-fast"),
        (["run", "graph.yaml", "--local", "--broker", "amqp://h"], "--local"),
        (
            ["run", "graph.yaml", "--broker", "amqp://h", "--broker-file", "x"],
            "cannot be combined"
        ),
        (["run", "graph.yaml", "--broker", "http://h"], "http"),
        (["run", "graph.yaml", "--broker", "amqp://host:70000"], "1 to 65535"),
        (["run", "graph.yaml", "--broker-file", "absent.url"], "absent.url cannot be read"),
        (["run", "graph.yaml", "--broker-file", "empty.url"], "has no URL in its first line"),
        (["run", "absent.yaml"], "absent.yaml"), (["run", "."], "."),
        (["run", "cycle.yaml"], "cycle.yaml:2:"), (["validate", "cycle.yaml"], "a → b → a"),
        (["graph", "cycle.yaml"], "a → b → a"),
        (["graph", "graph.yaml", "--format", "x"], "tree"),
        (["run", "graph.yaml", "--connect-timeout", "0"], "--connect-timeout"),
        (["run", "graph.yaml", "--connect-timeout", "86401"], "--connect-timeout"),
        (["validate", "key.yaml"], "key.yaml:1:26: unknown key “rum”; did you mean “run”?"),
        (["run", "graph.yaml", "--logs", "graph.yaml"], "logs, graph.yaml, cannot be created"),
        (["completion", "tcsh"], "tcsh"),
        (["up", "--drain-timeout", "1e30"], "from 0 to 604800 seconds"),
        (["up", "--drain-timeout", "inf"], "from 0 to 604800 seconds"),
        (["up", "--slots", "99999999999"], "--slots must be from 1 to 4096"),
        (["cancel", "nightly", "--cascade"], "--cascade needs a single operation"),
        (["cancel", "--queue", "q", "--cascade"], "--cascade needs a single operation"),
    ])
    func `a wrong call or file is explained on standard error`(
        arguments: [String],
        says: String
    ) async throws {
        try await Workspace.run { workspace in
            _ = try workspace.write("graph.yaml", "operations: { a: { run: touch ran } }")
            _ = try workspace.write("key.yaml", "operations: { a: { x: 1, rum: ls } }")
            _ = try workspace.write(
                "cycle.yaml",
                """
                operations:
                  a: { run: touch ran, dependencies: [b] }
                  b: { run: touch ran, dependencies: [a] }
                """
            )
            _ = try workspace.write("empty.url", "\n")
            let ended = try await workspace.operon(arguments)

            #expect(ended.end == .exit(2))
            #expect(ended.errors.contains(says), "\(ended.errors)")
            #expect(ended.output == "")
            #expect(!FileManager.default.fileExists(atPath: workspace.path("ran")))
        }
    }

    @Test(arguments: [
        ([], "Give the URL of the broker"), (["--broker", "http://h"], "http"),
        (["--broker", "amqp://h", "--slots", "0"], "--slots must be from 1 to 4096"),
        (["--broker", "amqp://h", "--slots", "4097"], "--slots must be from 1 to 4096"),
        (["--broker", "amqp://h", "--name", ""], "--name must have 1 to 256 bytes"),
        (
            ["--broker", "amqp://h", "--name", String(repeating: "n", count: 257)],
            "--name must have 1 to 256 bytes"
        ),
        (["--broker", "amqp://h", "--drain-timeout", "-1"], "--drain-timeout"),
        (["--broker", "amqp://h", "--drain-timeout", "1e30"], "from 0 to 604800 seconds"),
        (["--broker", "amqp://h", "--drain-timeout", "nan"], "from 0 to 604800 seconds"),
        (["--broker", "amqp://h", "--broker-file", "x"], "cannot be combined"),
        (["--broker-file", "absent.url"], "absent.url cannot be read"),
        (["--broker-file", "empty.url"], "has no URL in its first line"),
        (["--supervize"], "--supervize"),
    ])
    func `a wrong call of the worker is explained on standard error`(
        arguments: [String],
        says: String
    ) async throws {
        try await Workspace.run { workspace in
            _ = try workspace.write("empty.url", "\n")
            let ended = try await workspace.start("operon-worker", arguments).end()

            #expect(ended.end == .exit(2))
            #expect(ended.errors.contains(says), "\(ended.errors)")
            #expect(ended.output == "")
        }
    }

    // MARK: - 5: the broker

    @Test func `a broker that is not there ends the run and says why`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write("graph.yaml", "operations: { a: { run: touch ran } }")
            // Nobody may listen on port 1 but root's tcpmux, of long ago.
            let url = "amqp://guest:secret@127.0.0.1:1"
            let options = ["--connect-timeout", "1", "--output", "json"]
            let run = try workspace.startRun(file, on: .broker, broker: url, options)
            let ended = try await run.end()

            #expect(ended.end == .exit(5))
            #expect(ended.errors.contains("could not be reached within 1"))
            #expect(ended.errors.contains("refused"))
            #expect(!ended.errors.contains("secret"))
            #expect(ended.output == "")
        }
    }

    @Test func `a broker that refuses the password ends the run and the worker`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write("graph.yaml", "operations: { a: { run: touch ran } }")
            let url = try BrokerUsers().worker.replacing(/:[^:@\/]+@/, with: ":secret@")
            let run = try workspace.startRun(file, on: .broker, broker: url)
            let worker = try workspace.startWorkers(1, slots: 1, broker: url)[0]

            for ended in [try await run.end(), try await worker.end()] {
                #expect(ended.end == .exit(5))
                #expect(ended.errors.contains("refuse"), "\(ended.errors)")
                #expect(!ended.errors.contains("secret"))
                #expect(ended.output == "")
            }
        }
    }

    // MARK: - 6, 8

    @Test func `a target that is not there is no such object`() async throws {
        try await Workspace.run { workspace in
            let text = "operations: { compile: { run: touch ran } }"
            let file = try workspace.write("graph.yaml", text)
            let ended = try await workspace.operon(["run", file, "compiel"])

            #expect(ended.end == .exit(6))
            let message = "there is no operation “compiel”; did you mean “compile”?\n"
            #expect(ended.errors.hasSuffix(message), "\(ended.errors)")
            #expect(ended.output == "")
            #expect(!FileManager.default.fileExists(atPath: workspace.path("ran")))
        }
    }

    @Test func `a second run with the same prefix is told who has it`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write("graph.yaml", "operations: { a: { wait: 1000s } }")
            let first = try workspace.startRun(file, on: .broker)
            try await first.says("Waiting for a worker")
            let ended = try await workspace.startRun(file, on: .broker).end()

            #expect(ended.end == .exit(8))
            #expect(ended.errors.contains("\(first.process)"), "\(ended.errors)")
            #expect(ended.output == "")
            #expect(!first.hasEnded)
        }
    }

    @Test func `a run takes the prefix over from one that is frozen`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write("graph.yaml", "operations: { a: { run: touch ran } }")
            let first = try workspace.startRun(file, on: .broker)
            try await first.says("Waiting for a worker")
            try await first.freeze()
            try workspace.startWorkers(1, slots: 1)
            let ended = try await workspace.startRun(file, on: .broker).end()

            #expect(ended.end == .exit(0), "\(ended.errors)")
        }
    }
}
