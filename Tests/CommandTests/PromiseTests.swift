import Foundation
import OperonFaultKit
import Testing

/// What the documents promise of many commands at once: JSON, checks before a run, facts of `show`.
@Suite struct PromiseTests {
    private static let graph = """
        name: g
        operations:
          a:
            run: echo a >> ran
            environment: { WORD: x, OTHER: secret }
            timeout: 5m
            retry: { limit: 2, delay: 3s }
        """

    private static func json(_ ended: Ended) throws -> [String: Any] {
        #expect(ended.end == .exit(0), "\(ended.errors)")
        let value = try JSONSerialization.jsonObject(with: Data(ended.output.utf8))
        return try #require(value as? [String: Any], "\(ended.output)")
    }

    @Test func `validate, graph and store have JSON`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write("g.yaml", Self.graph)
            let valid = try Self.json(
                try await workspace.operon(["validate", file, "--output", "json"])
            )
            #expect(valid["kind"] as? String == "graph" && valid["operations"] as? Int == 1)
            let drawn = try Self.json(
                try await workspace.operon(["graph", file, "--format", "json"])
            )
            #expect((drawn["operations"] as? [String: Any])?["a"] != nil)
            let run = try await workspace.operon(["run", "--local", file, "--store", "r.db"])
            #expect(run.end == .exit(0), "\(run.errors)")
            let checked = try Self.json(
                try await workspace.operon(["store", "check", "r.db", "--output", "json"])
            )
            #expect(checked["graphs"] as? Int == 1 && checked["unfinished"] as? Int == 0)
            for command in [
                ["prune", "r.db", "--count", "1"], ["vacuum", "r.db"],
                ["backup", "r.db", "copy.db"],
            ] {
                _ = try Self.json(
                    try await workspace.operon(["store"] + command + ["--output", "json"])
                )
            }
        }
    }

    private struct Refused: Decodable {
        struct Failure: Decodable {
            struct Problem: Decodable, Equatable {
                let code: String
                let file: String
                let line: Int
                let column: Int
            }
            let problems: [Problem]
        }
        let error: Failure
    }

    @Test func `each problem of a file is in the JSON of the error, with its place`() async throws {
        try await Workspace.run { workspace in
            _ = try workspace.write("bad.yaml", "operations: { a: { ruin: ls } }")
            let ended = try await workspace.operon(["validate", "bad.yaml", "--output", "json"])
            #expect(ended.end == .exit(2))
            let refused = try JSONDecoder().decode(Refused.self, from: Data(ended.errors.utf8))
            #expect(
                refused.error.problems == [
                    .init(code: "unknownKey", file: "bad.yaml", line: 1, column: 20),
                    .init(code: "missingKey", file: "bad.yaml", line: 1, column: 18),
                ]
            )
        }
    }

    @Test func `a trace that cannot be written is refused before anything runs`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write("g.yaml", Self.graph)
            let trace = workspace.path("nosuch/trace.json")
            let ended = try await workspace.operon(["run", "--local", file, "--trace", trace])
            #expect(ended.end == .exit(2))
            #expect(ended.errors.contains("No such file or directory"), "\(ended.errors)")
            #expect(!FileManager.default.fileExists(atPath: workspace.path("ran")))
        }
    }

    @Test(arguments: ["run", "coordinator", "doctor"])
    func `help shows the form of a broker's URL whole`(command: String) async throws {
        try await Workspace.run { workspace in
            let help = try await workspace.operon([command, "--help"])
            #expect(help.output.contains("amqp://user:password@host:5672/vhost"))
        }
    }

    @Test func `who waits for a graph gets its last view, and show says how an operation runs`()
        async throws
    {
        try await Workspace.run { workspace in
            let file = try workspace.write("g.yaml", Self.graph)
            let up = try await Up(workspace)
            let last = try Self.json(
                try await up.operon("submit", file, "--wait", "--output", "json")
            )
            #expect(last["status"] as? String == "finished" && last["exitCode"] as? Int == 0)
            #expect(last["finishedAt"] is String)

            let shown = try await up.operon("show", "g/a")
            #expect(!shown.output.contains("secret"))
            for line in [
                "  environment  OTHER, WORD", "  timeout      5:00",
                "  retry        up to 2 more attempts, the first after 3.0s",
            ] {
                #expect(shown.output.contains(line + "\n"), "\(shown.output)")
            }
        }
    }

    @Test func `the status says how long dispatches and syncs take`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write("g.yaml", Self.graph)
            let up = try await Up(workspace)
            try await up.act("submit", file, "--wait")
            let status = try Self.json(try await up.operon("status", "--output", "json"))
            let latency = try #require(status["latency"] as? [String: [String: Any]])
            #expect(latency["dispatch"]?["count"] as? Int == 1)
            #expect((latency["sync"]?["count"] as? Int ?? 0) > 0)
            for sum in latency.values {
                let seconds = try #require(sum["seconds"] as? Double)
                #expect(seconds >= 0 && seconds < 60)
            }
        }
    }

    // MARK: - Pipes

    private static func shell(_ script: String, in workspace: Workspace) async throws -> Ended {
        let operon = try Program.executable("operon")
        let function = "operon() { \(operon) \"$@\"; }; "
        return try await workspace.start("/bin/bash", ["-c", function + script]).end()
    }

    @Test func `a coordinator takes a graph from standard input`() async throws {
        try await Workspace.run { workspace in
            let up = try await Up(workspace)
            let ended = try await Self.shell(
                """
                printf 'name: piped\noperations: { a: { run: touch ran } }' \\
                    | operon submit --wait --coordinator \(up.address) -
                """,
                in: workspace
            )
            #expect(ended.end == .exit(0), "\(ended.errors)")
            #expect(ended.errors.contains("graph 0 “piped” finished"), "\(ended.errors)")
            #expect(FileManager.default.fileExists(atPath: workspace.path("ran")))
        }
    }

    @Test(arguments: ["--show-output", "--show-output=stream"])
    func `a reader that goes away ends a run as SIGPIPE does`(option: String) async throws {
        try await Workspace.run { workspace in
            // The second one prints when nobody reads any more.
            _ = try workspace.write(
                "g.yaml",
                """
                operations:
                  a: { run: 'echo first' }
                  b: { run: 'until [ -e read ]; do sleep 0.02; done; yes | head -c 1000000' }
                  c: { run: 'sleep 600', dependencies: [b] }
                """
            )
            let ended = try await Self.shell(
                "operon run --local \(option) g.yaml | { head -n 1; touch read; exec <&-; }; "
                    + "echo ${PIPESTATUS[0]}",
                in: workspace
            )
            #expect(ended.outputLines.last == "141", "\(ended)")
            // Progress alone, and no word about the pipe.
            let lines = ended.errors.split(separator: "\n")
            #expect(lines.allSatisfy { $0.hasPrefix("[") }, "\(ended.errors)")
        }
    }

    // MARK: - Words

    @Test func `without a broker nothing speaks of one, and skipped operations are in order`()
        async throws
    {
        try await Workspace.run { workspace in
            // The order in which the scheduler finds them is another one.
            let file = try workspace.write(
                "g.yaml",
                """
                operations:
                  last: { run: 'true', dependencies: [far, near] }
                  far: { run: 'true', dependencies: [middle] }
                  near: { run: 'true', dependencies: [bad] }
                  middle: { run: 'true', dependencies: [bad] }
                  bad: { run: exit 3 }
                """
            )
            let ended = try await workspace.operon(["run", "--local", file])
            #expect(ended.end == .exit(1))
            for word in ["broker", "connect", "AMQP", "coordinator"] {
                #expect(!ended.errors.contains(word), "\(word): \(ended.errors)")
            }
            let names = ended.errors.matches(of: /(\w+): because of/).map { String($0.output.1) }
            #expect(names == ["last", "far", "near", "middle"], "\(ended.errors)")
        }
    }

    @Test func `a long line of an error is cut, and says by how much`() async throws {
        try await Workspace.run { workspace in
            let path = String(repeating: "x/", count: 1_900) + "g.yaml"
            let ended = try await workspace.operon(["validate", path])
            #expect(ended.end == .exit(2))
            let longest = try #require(ended.errors.split(separator: "\n").map(\.count).max())
            #expect((2_000..<2_100).contains(longest), "\(longest)")
            #expect(ended.errors.contains("more characters)"))
        }
    }
}
