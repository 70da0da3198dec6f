import Foundation
import Glibc
import OperonFaultKit
import OperonHTTP
import Testing

/// Who reaches a coordinator that was started without options about it: its user, and nobody else.
@Suite(.timeLimit(.minutes(5))) struct LocalAccessTests {
    private static let folder = ".local/state/operon"

    private func start(_ workspace: Workspace, _ store: String, _ options: [String] = []) throws
        -> Program
    {
        try workspace.start(
            "operon",
            ["up", "--store", workspace.path(store), "--slots", "1"] + options
        )
    }

    private func mode(_ workspace: Workspace, _ name: String) throws -> Int? {
        let path = workspace.path(name)
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        return (attributes[.posixPermissions] as? NSNumber)?.intValue
    }

    @Test func `commands of the same user find it without a word, through every restart`()
        async throws
    {
        try await Workspace.run { workspace in
            let socket = workspace.path(Self.folder + "/operon.sock")
            var up = try start(workspace, "graphs.db")
            try await up.says("answers at unix:\(socket)")
            #expect(try mode(workspace, Self.folder) == 0o700)
            #expect(try mode(workspace, Self.folder + "/operon.sock") == 0o600)
            let file = try workspace.write("g.yaml", "operations: { a: { run: touch ran } }")
            let submitted = try await workspace.operon(["submit", file, "--wait"])
            #expect(submitted.end == .exit(0), "\(submitted.errors)")

            // A second one is told; with a socket of its own it is a coordinator, too.
            let second = try await start(workspace, "other.db").end()
            #expect(second.end == .exit(2))
            #expect(second.errors.contains("Another coordinator listens on unix:\(socket)"))
            let other = "unix:" + workspace.path("other.sock")
            let third = try start(workspace, "other.db", ["--listen", other])
            try await third.says("answers at \(other)")
            let listed = try await workspace.operon([
                "list", "--coordinator", other, "--output", "quiet",
            ])
            #expect(listed.end == .exit(0) && listed.output.isEmpty, "\(listed.output)")

            up.signal(SIGKILL)
            #expect(try await up.end().end == .signal(SIGKILL))
            let nobody = try await workspace.operon(["status"])
            #expect(nobody.end == .exit(5))
            #expect(nobody.errors.contains("unix:\(socket)"))
            up = try start(workspace, "graphs.db")
            try await up.says("answers at unix:\(socket)")
            #expect(try await workspace.operon(["wait", "@latest"]).end == .exit(0))
        }
    }

    @Test func `over TCP every route wants a token, which the user's commands find by themselves`()
        async throws
    {
        try await Workspace.run { workspace in
            let address = "127.0.0.1:\(try LoopbackPort.take())"
            let up = try start(workspace, "graphs.db", ["--listen", address])
            // The command that it names is one that works.
            let command = "operon submit FILE --coordinator "
            try await up.says(command)
            let said = up.errors.text.split(separator: "\n").first { $0.contains(command) }
            #expect(said?.hasSuffix(command + "http://\(address)") == true, "\(said ?? "")")
            let file = try workspace.write("g.yaml", "operations: { a: { run: 'true' } }")
            let submitted = try await workspace.operon([
                "submit", file, "--coordinator", "http://\(address)",
            ])
            #expect(submitted.end == .exit(0), "\(submitted.errors)")
            let token = try workspace.read(Self.folder + "/token").split(separator: "\n")[0]
            #expect(try mode(workspace, Self.folder + "/token") == 0o600)
            for route in HTTPServer.routes where route.access != .open {
                let path = route.pattern.split(separator: "/")
                    .map { $0.first == "{" ? "/1" : "/\($0)" }.joined()
                for shown in [nil, "", "garbage", "\(token)x", "\(token.dropLast())"] {
                    let answer = try RawAPI.ask(address, path, route.method, token: shown)
                    #expect(answer.status == 401, "\(route.method) \(path) \(shown ?? "none")")
                }
            }
            let environment = ["OPERON_COORDINATOR": "http://\(address)"]
            let listed = try await workspace.operon(["list"], environment: environment)
            #expect(listed.end == .exit(0), "\(listed.errors)")
            // Another user's home has another token, or none.
            let stranger = environment.merging(["HOME": workspace.path("nowhere")]) { $1 }
            let refused = try await workspace.operon(["list"], environment: stranger)
            #expect(refused.end == .exit(2))
            #expect(refused.errors.contains("requires a token"), "\(refused.errors)")
        }
    }

    @Test func `no token is asked only if that was said`() async throws {
        try await Workspace.run { workspace in
            let address = "127.0.0.1:\(try LoopbackPort.take())"
            let options = ["--listen", address, "--allow-any-user"]
            let up = try start(workspace, "graphs.db", options)
            try await up.says("answers at \(address)")
            #expect(try RawAPI.ask(address, "/v1/status").status == 200)
            #expect(!FileManager.default.fileExists(atPath: workspace.path(Self.folder + "/token")))
            let help = try await workspace.operon(["up", "--help"]).output
            #expect(
                help.split(whereSeparator: \.isWhitespace).joined(separator: " ")
                    .contains("Every user of this machine can then run commands as you")
            )
        }
    }

    /// Only root can become another user.
    @Test(.enabled(if: geteuid() == 0 && access("/usr/bin/setpriv", X_OK) == 0))
    func `another user of the machine reaches neither the socket nor the API`() async throws {
        try await Workspace.run { workspace in
            let socket = workspace.path("open.sock")
            let up = try start(workspace, "graphs.db", ["--listen", "unix:\(socket)"])
            try await up.says("answers at unix:\(socket)")
            // As if its mode had been lost: the uid alone decides.
            #expect(chmod(socket, 0o777) == 0)
            #expect(chmod(workspace.directory, 0o755) == 0)
            let curl = "curl --silent --unix-socket \(socket) http://localhost/v1/status"
            let own = try await Self.shell(curl)
            #expect(own.status == 0 && own.output.contains("\"epoch\""), "\(own)")
            let other = try await Self.shell(
                "setpriv --reuid 65534 --regid 65534 --clear-groups \(curl)"
            )
            #expect(other.status != 0 && other.output.isEmpty, "\(other)")
        }
    }

    /// Keeps no thread waiting.
    private static func shell(_ line: String) async throws -> (status: Int32, output: String) {
        let ended = try await Program(
            "/bin/sh",
            ["-c", line],
            environment: ProcessInfo.processInfo.environment,
            directory: FileManager.default.temporaryDirectory.path
        ).end()
        guard case .exit(let status) = ended.end else { return (-1, ended.output) }
        return (status, ended.output)
    }
}
