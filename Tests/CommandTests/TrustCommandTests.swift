import Foundation
import Glibc
import OperonFaultKit
import Testing

/// `operon trust`, and clusters that are made with it, as a user sees them.
@Suite(.timeLimit(.minutes(5))) struct TrustCommandTests {
    /// Without what a workspace names.
    private static let unnamed: [String: String?] = ["OPERON_TRUST": nil]

    private static let graph = """
        defaults: { directory: / }
        operations:
          a: { run: "true" }
          b: { run: "true", dependencies: [a] }
        """

    /// The environment of another machine.
    private static func elsewhere(_ workspace: Workspace) throws -> [String: String?] {
        let home = workspace.path("elsewhere")
        try FileManager.default.createDirectory(
            atPath: home,
            withIntermediateDirectories: true
        )
        return ["OPERON_TRUST": nil, "HOME": home]
    }

    @Test func `three commands make a sealed cluster and run a graph on it`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write("graph.yaml", Self.graph)
            let token = try await workspace.operon(
                ["trust", "token", "--file", "token"],
                environment: Self.unnamed
            )
            #expect(token.end == .exit(0))
            #expect(token.output == "wrote a token to token\n")
            #expect(
                token.errors.hasPrefix("made keys in \(workspace.path(".config/operon/trust"))\n")
            )
            let environment = try Self.elsewhere(workspace)
            let stranger = try workspace.startWorkers(1, slots: 1, environment: environment)[0]
            let refused = try await stranger.end()
            #expect(refused.end == .exit(2))
            #expect(refused.errors.contains("operon trust token"), "\(refused.errors)")
            try workspace.startWorkers(
                1,
                slots: 1,
                environment: environment,
                ["--trust", workspace.path("token")]
            )
            let run = try await workspace.startRun(
                file,
                on: .broker,
                environment: Self.unnamed
            ).end()
            #expect(run.end == .exit(0), "\(run.errors)")
            #expect(!run.errors.contains("not sealed"))
        }
    }

    @Test func `a worker follows a replaced key, and is refused once its token is revoked`()
        async throws
    {
        try await Workspace.run { workspace in
            let file = try workspace.write("graph.yaml", Self.graph)
            let made = try await workspace.operon(["trust", "token", "--output", "json"])
            let view = try #require(
                try JSONSerialization.jsonObject(with: Data(made.output.utf8)) as? [String: Any]
            )
            let id = try #require(view["id"] as? String)
            let token = try #require(view["token"] as? String)
            _ = try workspace.write("token", token + "\n")
            let before = try await workspace.operon(["trust", "show"])
            let rotated = try await workspace.operon(["trust", "rotate"])
            #expect(rotated.output.hasPrefix("replaced the key in \(workspace.directory).trust\n"))
            let after = try await workspace.operon(["trust", "show"])
            #expect(before.outputLines.count == 4)
            #expect(before.outputLines[1] != after.outputLines[1])
            let environment = try Self.elsewhere(workspace)
            let options = ["--trust", workspace.path("token")]
            let worker = try workspace.startWorkers(
                1,
                slots: 1,
                environment: environment,
                options
            )[0]
            let run = try await workspace.startRun(file, on: .broker).end()
            #expect(run.end == .exit(0), "\(run.errors)")
            worker.signal(SIGTERM)
            try await worker.end()
            let revoked = try await workspace.operon(["trust", "revoke", id])
            #expect(revoked.output == "revoked \(id)\n")
            let again = try await workspace.operon(["trust", "revoke", id])
            #expect(again.output == "\(id) was revoked already\n")
            let waiting = try workspace.startRun(file, on: .broker)
            let late = try workspace.startWorkers(
                1,
                slots: 1,
                environment: environment,
                options
            )[0]
            let ended = try await late.end()
            #expect(ended.end != .exit(0))
            #expect(ended.errors.contains("its join token was revoked"), "\(ended.errors)")
            // With the token in the variable, as services have it.
            try workspace.startWorkers(1, slots: 1)
            #expect(try await waiting.end().end == .exit(0))
        }
    }

    @Test func `a list of what is revoked counts once it can be read, as it is`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "graph.yaml",
                "defaults: { directory: / }\noperations: { a: { run: sleep 3600 } }"
            )
            let made = try await workspace.operon(["trust", "token", "--file", "token"])
            let id = try #require(made.errors.split(whereSeparator: \.isWhitespace).last)
            let worker = try workspace.startWorkers(
                1,
                slots: 1,
                environment: try Self.elsewhere(workspace),
                ["--trust", workspace.path("token")]
            )[0]
            let run = try workspace.startRun(file, on: .broker)
            try await run.says("running a")
            // The rights change alone afterwards: neither the size nor the time of the file does.
            let list = workspace.directory + ".trust/revoked"
            let lent = list + ".new"
            try "\(id)\n".write(toFile: lent, atomically: false, encoding: .utf8)
            #expect(chmod(lent, 0o644) == 0)
            #expect(rename(lent, list) == 0)
            try await run.says("the keys stay as they were")
            #expect(chmod(list, 0o600) == 0)
            let ended = try await worker.end()
            #expect(ended.errors.contains("its join token was revoked"), "\(ended.errors)")
        }
    }

    @Test func `a directory that is named gets no keys by the way`() async throws {
        try await Workspace.run(isSealed: false) { workspace in
            let named = ["--trust", workspace.path("keys")]
            for command in [["token"], ["show"], ["rotate"], ["revoke", "00"]] {
                let ended = try await workspace.operon(["trust"] + command + named)
                #expect(ended.end == .exit(2), "\(command)")
                #expect(
                    ended.errors.contains(command.count == 1 ? "operon trust init" : "hexadecimal"),
                    "\(command): \(ended.errors)"
                )
            }
            #expect(!FileManager.default.fileExists(atPath: workspace.path("keys")))
            #expect(try await workspace.operon(["trust", "init"] + named).end == .exit(0))
            let again = try await workspace.operon(["trust", "init"] + named)
            #expect(again.end == .exit(2))
            #expect(again.errors.contains("operon trust rotate"), "\(again.errors)")
            let token = try await workspace.operon(["trust", "token"] + named)
            #expect(token.output.hasPrefix("operon-join-1."))
            for wrong in [
                ["--expires", "0h"], ["--expires", "soon"], ["--queues", ""], ["--kinds", ","],
            ] {
                let ended = try await workspace.operon(["trust", "token"] + wrong + named)
                #expect(ended.end == .exit(2), "\(wrong)")
            }
        }
    }
}
