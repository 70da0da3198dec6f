import Foundation
import Glibc
import OperonFaultKit
import Testing

/// A value that only the worker knows is nowhere else, whatever is asked.
@Suite(.timeLimit(.minutes(5))) struct SecretTests {
    private static let canary = "canary-8d3f21b07c55"

    private static let graph = """
        name: secret
        operations:
          fill:
            run: 'echo "<$PASSWORD>" && echo "<$PASSWORD>" >&2; echo 7 > $OPERON_OUTPUT'
            environment: { PASSWORD: { secret: db } }
          fail:
            run: 'echo "it is $PASSWORD"; exit 3'
            environment: { PASSWORD: { secret: db } }
            dependencies: { fill: finished }
          absent:
            run: 'echo started'
            environment: { TOKEN: { secret: none } }
        """

    /// A folder of secrets.
    private static func secrets(in workspace: Workspace) throws -> String {
        let folder = workspace.path("secrets")
        try FileManager.default.createDirectory(
            atPath: folder,
            withIntermediateDirectories: false,
            attributes: [.posixPermissions: 0o700]
        )
        _ = try workspace.write("secrets/db", canary + "\n")
        return folder
    }

    /// The files of the workspace that have the value.
    private static func files(in workspace: Workspace) throws -> [String] {
        let all = FileManager.default.enumerator(atPath: workspace.directory)
        return (all?.allObjects as? [String] ?? []).filter { name in
            let bytes = FileManager.default.contents(atPath: workspace.path(name)) ?? Data()
            return bytes.range(of: Data(canary.utf8)) != nil
        }
    }

    @Test func `a value is in no answer, store, backup and message of a coordinator`() async throws
    {
        try await Workspace.run { workspace in
            let folder = try Self.secrets(in: workspace)
            let up = try await Up(workspace, "--secrets", folder)
            let file = try workspace.write("graph.yaml", Self.graph)
            let submitted = try await up.operon("submit", file, "--wait")
            #expect(submitted.end == .exit(1), "\(submitted.errors)")

            var said = submitted.output + submitted.errors
            for arguments in [
                ["show", "secret/fill"], ["show", "secret/fill", "--output", "json"],
                ["operations", "secret", "--output", "json"], ["logs", "secret/fill"],
                ["logs", "secret/fail"], ["watch", "secret", "--output", "json"],
                ["show", "secret/absent"], ["explain", "secret/fail"], ["dead"],
                ["report", "secret", "report.html"], ["status", "--output", "json"],
                ["workers", "--output", "json"], ["output", "secret/fill"],
            ] {
                let answer = try await up.operon(arguments)
                // It tells how the graph has ended with its exit code.
                let end = Program.End.exit(arguments[0] == "watch" ? 1 : 0)
                #expect(answer.end == end, "\(arguments): \(answer.errors)")
                said += answer.output + answer.errors
            }
            #expect(said.contains("<***>"))
            #expect(said.contains("it is ***"))
            #expect(said.contains("has no secret “none”"))
            #expect(!said.contains(Self.canary))
            try await up.act("backup", workspace.path("copy.db"))
            up.program.signal(SIGTERM)
            let ended = try await up.program.end()
            #expect(!(ended.output + ended.errors).contains(Self.canary))
            #expect(try Self.files(in: workspace) == ["secrets/db"])
        }
    }

    @Test func `a run in this process masks a value in its report, logs and trace`() async throws {
        try await Workspace.run { workspace in
            let folder = try Self.secrets(in: workspace)
            let file = try workspace.write("graph.yaml", Self.graph)
            let ended = try await workspace.operon([
                "run", file, "--local", "--secrets", folder, "--show-output=stream",
                "--report", "report.html", "--logs", "logs", "--trace", "trace.json",
                "--store", "run.db",
            ])
            #expect(ended.end == .exit(1), "\(ended.errors)")
            let said = ended.output + ended.errors
            #expect(said.contains("it is ***"), "\(said)")
            #expect(!said.contains(Self.canary))
            #expect(try workspace.read("report.html").contains("it is ***"))
            #expect(try Self.files(in: workspace) == ["secrets/db"])
        }
    }

    @Test func `credentials of the service manager need no option`() async throws {
        try await Workspace.run { workspace in
            let folder = try Self.secrets(in: workspace)
            let file = try workspace.write(
                "graph.yaml",
                "operations: { a: { run: 'test -n $P', environment: { P: { secret: db } } } }"
            )
            let ended = try await workspace.operon(
                ["run", file, "--local"],
                environment: ["CREDENTIALS_DIRECTORY": folder]
            )
            #expect(ended.end == .exit(0), "\(ended.errors)")
        }
    }

    @Test func `a run without secrets starts nothing, and says what it lacks`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "graph.yaml",
                """
                operations:
                  first: { run: touch started }
                  second: { run: x, environment: { P: { secret: db } }, dependencies: [first] }
                """
            )
            let ended = try await workspace.operon(["run", file, "--local"])
            #expect(ended.end == .exit(1))
            #expect(ended.errors.contains("“second” can never run here"), "\(ended.errors)")
            #expect(ended.errors.contains("Offer it with --secrets"), "\(ended.errors)")
            #expect(!FileManager.default.fileExists(atPath: workspace.path("started")))
            let checked = try await workspace.operon(["validate", file])
            #expect(checked.end == .exit(0))
            #expect(!(checked.output + checked.errors).contains("secret"))
        }
    }

    @Test func `a worker gets a command with a secret over the broker if it knows secrets`()
        async throws
    {
        try await Workspace.run { workspace in
            let folder = try Self.secrets(in: workspace)
            let file = try workspace.write(
                "graph.yaml",
                """
                operations:
                  a:
                    run: 'echo "<$P>" on $OPERON_ATTEMPT'
                    environment: { P: { secret: db } }
                """
            )
            // One that knows no secrets is heard first, and gets nothing.
            let plain = try workspace.startWorkers(1, slots: 4)[0]
            let run = try workspace.startRun(file, on: .broker, ["--show-output"])
            try await plain.says("welcomed by the coordinator")
            try workspace.startWorkers(1, slots: 1, ["--secrets", folder])
            let ended = try await run.end()
            #expect(ended.end == .exit(0), "\(ended.errors)")
            let said = ended.output + ended.errors
            #expect(said.contains("<***> on 1"), "\(said)")
            #expect(!said.contains(Self.canary))
        }
    }

    @Test func `a value is in no file of the broker, and in no word of a worker that crashes`()
        async throws
    {
        try await BrokerFixture.withBroker { broker in
            try await Workspace.run { workspace in
                let folder = try Self.secrets(in: workspace)
                let file = try workspace.write(
                    "graph.yaml",
                    """
                    operations:
                      a:
                        run: 'echo "<$P>"; touch printed; while ! [ -e go ]; do sleep 0.05; done'
                        environment: { P: { secret: db } }
                    """
                )
                let run = try workspace.startRun(
                    file,
                    on: .broker,
                    broker: broker.url,
                    ["--show-output", "--store", "run.db"]
                )
                let crashing = try workspace.startWorkers(
                    1,
                    slots: 1,
                    broker: broker.url,
                    // To name functions takes minutes.
                    environment: ["SWIFT_BACKTRACE": "enable=yes,symbolicate=off"],
                    ["--secrets", folder]
                )[0]
                try await workspace.waitForFile("printed")
                crashing.signal(SIGSEGV)
                // The signal came from outside, so no instruction fails again after the backtrace.
                try await crashing.says("Backtrace took ")
                crashing.signal(SIGKILL)
                let crashed = try await crashing.end()
                #expect(!(crashed.output + crashed.errors).contains(Self.canary))

                _ = try workspace.write("go", "")
                try workspace.startWorkers(
                    1,
                    slots: 1,
                    broker: broker.url,
                    ["--secrets", folder]
                )
                let ended = try await run.end()
                #expect(ended.end == .exit(0), "\(ended.errors)")
                #expect((ended.output + ended.errors).contains("<***>"))
                #expect(broker.files(with: Self.canary) == [])
                // The broker's own words are there to be found.
                #expect(!broker.files(with: "rabbit").isEmpty)
                #expect(try Self.files(in: workspace) == ["secrets/db"])
            }
        }
    }

    @Test func `a folder that others may read is refused at the start`() async throws {
        try await Workspace.run { workspace in
            let folder = try Self.secrets(in: workspace)
            chmod(folder, 0o755)
            let file = try workspace.write("graph.yaml", "operations: { a: { run: 'true' } }")
            let ended = try await workspace.operon(["run", file, "--local", "--secrets", folder])
            #expect(ended.end != .exit(0))
            #expect(ended.errors.contains("ther users may use the secrets"), "\(ended.errors)")
        }
    }
}
