import Foundation
import OperonFaultKit
import Testing

/// `operon doctor`: what it finds, and that it disturbs nobody.
@Suite(.serialized) struct DoctorTests {
    private struct Report: Decodable {
        struct Finding: Decodable {
            let mark: String
            let subject: String
            let text: String
            let advice: String
        }

        let version: Int
        let mark: String
        let findings: [Finding]

        subscript(subject: String) -> [Finding] { findings.filter { $0.subject == subject } }
    }

    private static func examine(
        _ workspace: Workspace,
        _ url: String,
        _ options: [String] = []
    ) async throws -> (report: Report, end: Program.End) {
        let arguments = ["doctor", "--broker", url, "--prefix", workspace.prefix]
        let ended = try await workspace.operon(arguments + ["--output", "json"] + options)
        #expect(ended.errors == "")
        #expect(!ended.output.contains("s3cret"))
        let report = try JSONDecoder().decode(Report.self, from: Data(ended.output.utf8))
        #expect(report.version == 1)
        let marks = report.findings.map(\.mark)
        let worst = ["failure", "warning", "fine"].first { marks.contains($0) }
        #expect(report.mark == worst)
        #expect(ended.end == .exit(report.mark == "failure" ? 5 : 0))
        return (report, ended.end)
    }

    private static func url(_ url: String, login: String) -> String {
        url.replacing(/:\/\/.*@/, with: "://\(login)@")
    }

    @Test func `a broker that nobody uses is fine, and has no workers`() async throws {
        try await Workspace.run { workspace in
            let (report, end) = try await Self.examine(workspace, try Workspace.testBroker())

            #expect(end == .exit(0))
            for subject in ["broker", "version", "login", "permissions", "coordinator"] {
                #expect(report[subject].map(\.mark) == ["fine"], "\(subject)")
            }
            #expect(report["version"].first?.text.hasPrefix("RabbitMQ ") == true)
            #expect(report["coordinator"].first?.text.hasPrefix("none holds") == true)
            #expect(report["workers"].map(\.mark) == ["warning"])
            #expect(report["workers"].first?.advice.contains("operon-worker") == true)
        }
    }

    @Test(arguments: [true, false])
    func `workers without a coordinator are heard, and go on as before`(
        isSealed: Bool
    ) async throws {
        try await Workspace.run(isSealed: isSealed) { workspace in
            let workers = try workspace.startWorkers(2, slots: 3)
            for worker in workers { try await worker.says("serves") }
            let url = try Workspace.testBroker()
            let (report, end) = try await Self.examine(workspace, url)

            #expect(end == .exit(0))
            let text = report["workers"].first?.text ?? ""
            if isSealed {
                #expect(text.hasPrefix("2: "), "\(text)")
                #expect(text.hasSuffix("(sealed)"), "\(text)")
            } else {
                #expect(text.hasPrefix("2, with 6 slots: w1 on "), "\(text)")
                #expect(text.contains("w2 on "))
            }
            let file = try workspace.write("graph.yaml", "operations: { a: { run: 'true' } }")
            #expect(try await workspace.startRun(file, on: .broker).end().end == .exit(0))
        }
    }

    @Test func `a coordinator is named with its workers, and is not disturbed`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "graph.yaml",
                "operations: { a: { run: 'touch r; until test -e go; do sleep 0.05; done' } }"
            )
            try workspace.startWorkers(1, slots: 2)
            let run = try workspace.startRun(file, on: .broker, ["--output", "json"])
            try await workspace.waitForFile("r")
            let (report, end) = try await Self.examine(workspace, try Workspace.testBroker())
            _ = try workspace.write("go", "")
            let ended = try await run.end()

            #expect(end == .exit(0))
            let coordinator = report["coordinator"].first?.text ?? ""
            #expect(coordinator.contains("process \(run.process), since "), "\(coordinator)")
            #expect(report["workers"].map(\.text) == ["1, with 2 slots"])
            #expect(report["permissions"].map(\.mark) == ["fine"])
            #expect(ended.end == .exit(0))
            #expect(ended.errorLines.filter { $0.contains("message") } == [])
            #expect(try ended.report()["a"]?.attempts.count == 1)
        }
    }

    @Test func `a login that is refused is told from a virtual host that is not there`()
        async throws
    {
        try await Workspace.run { workspace in
            let url = try Workspace.testBroker()
            let (login, _) = try await Self.examine(workspace, Self.url(url, login: "guest:s3cret"))
            let (host, _) = try await Self.examine(workspace, url + "/nowhere")

            #expect(login["login"].map(\.mark) == ["failure"])
            #expect(login["login"].first?.text.contains("“guest” is refused") == true)
            #expect(login["version"].map(\.mark) == ["fine"])
            #expect(login["permissions"].isEmpty)
            #expect(host["login"].map(\.mark) == ["failure"])
            #expect(host["login"].first?.text.contains("virtual host “nowhere”") == true)
            #expect(host["login"].first?.advice.contains("list_vhosts") == true)
        }
    }

    @Test func `a port where nobody listens cannot be reached`() async throws {
        try await Workspace.run { workspace in
            let (report, end) = try await Self.examine(
                workspace,
                "amqp://guest:s3cret@127.0.0.1:1/"
            )

            #expect(end == .exit(5))
            #expect(report["broker"].map(\.mark) == ["failure"])
            #expect(report["broker"].first?.text.contains("Connection refused") == true)
            #expect(report["login"].isEmpty)
        }
    }

    @Test func `a wrong call is a wrong call`() async throws {
        try await Workspace.run { workspace in
            for arguments in [
                [], ["--broker", "http://x/"], ["--broker", "amqp://x/", "--timeout", "0"],
                ["--broker", "amqp://x/", "--role", "king"],
            ] as [[String]] {
                let ended = try await workspace.operon(["doctor"] + arguments)
                #expect(ended.end == .exit(2))
                #expect(ended.output == "")
                #expect(ended.errors != "")
            }
        }
    }

    @Test func `on a terminal each finding is a line, with a sign that the locale has`()
        async throws
    {
        try await Workspace.run { workspace in
            let arguments = ["doctor", "--broker", "amqp://guest:s3cret@127.0.0.1:1/"]
            let terminal = Program.Streams.terminal(columns: 240, rows: 24)
            let unicode = try await workspace.operon(arguments, streams: terminal)
            let plain = try await workspace.operon(arguments, environment: ["LANG": "C"])

            let screen = TerminalScreen(columns: 240, unicode.output)
            #expect(screen.unknown == [])
            #expect(screen.colors > 0)
            #expect(screen.lines.first?.hasPrefix("✗ broker: 127.0.0.1:1 cannot") == true)
            #expect(screen.lines.dropFirst().first?.hasPrefix("    → Is the broker") == true)
            #expect(plain.outputLines.first?.hasPrefix("x  broker: 127.0.0.1:1") == true)
            #expect(plain.output.utf8.allSatisfy { $0 < 0x80 })
            #expect(plain.end == .exit(5))
        }
    }

    @Test func `what a user may not do is named, with the command that allows it`() async throws {
        try await BrokerFixture.withBroker { broker in
            try await broker.control("add_user", "poor", "s3cret")
            try await broker.control("set_permissions", "poor", "", "", "")
            let url = Self.url(broker.url, login: "poor:s3cret")
            try await Workspace.run { workspace in
                let (coordinator, _) = try await Self.examine(workspace, url)
                let (worker, _) = try await Self.examine(workspace, url, ["--role", "worker"])
                for report in [coordinator, worker] {
                    #expect(report["login"].map(\.mark) == ["fine"])
                    let refused = report["permissions"].filter { $0.mark == "failure" }
                    #expect(!refused.isEmpty)
                    #expect(refused.allSatisfy { $0.text.contains("ACCESS_REFUSED") })
                }
                // What it advises is enough: with it the role can do all it needs.
                for role in ["coordinator", "worker"] {
                    let report = role == "worker" ? worker : coordinator
                    let advice = try #require(report["permissions"].first?.advice)
                    let words = advice.split(separator: " ").map {
                        $0.trimmingCharacters(in: ["'"])
                    }
                    #expect(words[1...4] == ["set_permissions", "-p", "/", "poor"])
                    try await broker.control(
                        words[1],
                        "-p",
                        "/",
                        "poor",
                        words[5],
                        words[6],
                        words[7]
                    )
                    let (after, _) = try await Self.examine(workspace, url, ["--role", role])
                    #expect(after["permissions"].map(\.mark) == ["fine"], "\(role)")
                }
            }
        }
    }

    @Test func `what a user may do beyond its needs is named, with the command that forbids it`()
        async throws
    {
        try await BrokerFixture.withBroker { broker in
            try await broker.control("add_user", "rich", "s3cret")
            let url = Self.url(broker.url, login: "rich:s3cret")
            try await Workspace.run { workspace in
                // The first one declares the exchanges that the second one tries.
                for role in ["coordinator", "worker"] {
                    try await broker.control("set_permissions", "rich", ".*", ".*", ".*")
                    let (before, end) = try await Self.examine(workspace, url, ["--role", role])
                    #expect(end == .exit(0))
                    #expect(before["permissions"].map(\.mark) == ["fine", "warning"])
                    let finding = try #require(before["permissions"].last)
                    var beyond = "“rich” may do what no \(role) needs: declare queues of any name"
                    if role == "worker" {
                        beyond += ", publish to any queue, publish to \(workspace.prefix)dispatch"
                    }
                    #expect(finding.text == beyond)
                    let command = try #require(finding.advice.split(separator: ": ").last)
                    let words = command.split(separator: " ").map {
                        $0.trimmingCharacters(in: ["'"])
                    }
                    try await broker.control(
                        "set_permissions",
                        "rich",
                        words[5],
                        words[6],
                        words[7]
                    )
                    let (after, _) = try await Self.examine(workspace, url, ["--role", role])
                    #expect(after["permissions"].map(\.mark) == ["fine"], "\(role)")
                }
            }
        }
    }

    @Test func `over TLS the certificate is looked at, and one of a stranger is refused`()
        async throws
    {
        let folder = try await Self.makeCertificates()
        // benign: the system clears its temporary directory.
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let port = try LoopbackPort.take()
        let configuration = """
            listeners.ssl.1 = 127.0.0.1:\(port)
            ssl_options.cacertfile = \(folder)/ca.pem
            ssl_options.certfile = \(folder)/server.pem
            ssl_options.keyfile = \(folder)/server.key

            """
        try await BrokerFixture.withBroker(extraConfiguration: configuration) { broker in
            let url = "amqps://guest:guest@localhost:\(port)?cacertfile=\(folder)/"
            let plain = broker.url.replacing("amqp:", with: "amqps:")
            try await Workspace.run { workspace in
                let (good, _) = try await Self.examine(workspace, url + "ca.pem")
                let (bad, _) = try await Self.examine(workspace, url + "other.pem")
                let (none, _) = try await Self.examine(workspace, plain)

                // It ends in two days.
                #expect(good["TLS"].map(\.mark) == ["warning"])
                #expect(good["TLS"].first?.text.contains("is trusted, and valid until 20") == true)
                #expect(good["TLS"].first?.advice.hasPrefix("Renew it within ") == true)
                #expect(good["login"].map(\.mark) == ["fine"])
                #expect(bad["TLS"].map(\.mark) == ["failure"])
                #expect(bad["TLS"].first?.text.contains("CERTIFICATE_VERIFY_FAILED") == true)
                #expect(bad["TLS"].first?.advice.contains("cacertfile") == true)
                #expect(none["TLS"].map(\.mark) == ["failure"])
                #expect(none["login"].isEmpty)
            }
        }
    }

    /// An authority, a certificate of it for `localhost`, and an authority that signed nothing.
    private static func makeCertificates() async throws -> String {
        try await shell(
            """
            cd $(mktemp -d)
            exec 3>&1 1>&2
            new_key="-newkey ec -pkeyopt ec_paramgen_curve:P-256"
            for name in ca other; do
                openssl req -x509 $new_key -nodes -days 2 -subj /CN=$name \
                    -keyout $name.key -out $name.pem -addext basicConstraints=critical,CA:TRUE
            done
            openssl req $new_key -nodes -subj /CN=localhost \
                -keyout server.key -out server.csr
            echo subjectAltName=DNS:localhost > extensions
            openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 \
                -extfile extensions -out server.pem
            pwd >&3
            """
        )
    }

    /// Keeps no thread waiting.
    private static func shell(_ line: String) async throws -> String {
        let ended = try await Program(
            "/bin/sh",
            ["-ec", line],
            environment: ProcessInfo.processInfo.environment,
            directory: FileManager.default.temporaryDirectory.path
        ).end()
        guard ended.end == .exit(0) else { throw CommandFailure(ended.errors) }
        return ended.output.trimmingCharacters(in: .whitespacesAndNewlines)
    }
}
