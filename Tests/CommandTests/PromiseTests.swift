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
}
