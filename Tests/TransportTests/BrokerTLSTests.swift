import Foundation
import OperonFaultKit
import OperonModel
import OperonPorts
import Testing

/// The same code over TLS, with certificates made for the test.
@Suite(.timeLimit(.minutes(5)))
struct BrokerTLSTests {
    @Test func `messages pass over TLS, and a certificate of somebody else does not`() async throws
    {
        let certificates = try Certificates()
        defer { certificates.remove() }
        let port = try LoopbackPort.take()
        let configuration = """
            listeners.ssl.1 = 127.0.0.1:\(port)
            ssl_options.cacertfile = \(certificates.path("ca.pem"))
            ssl_options.certfile = \(certificates.path("server.pem"))
            ssl_options.keyfile = \(certificates.path("server.key"))

            """
        try await BrokerFixture.withBroker(extraConfiguration: configuration) { _ in
            let authority = certificates.path("ca.pem")
            let url = "amqps://guest:guest@localhost:\(port)?cacertfile="
            let sides = try TransportSides(.broker, url: url + authority)

            let (coordinator, workers) = try await sides.connected()
            let body = [UInt8](repeating: 3, count: 300_000)
            await workers[0].transport.send(body, lane: .events)
            #expect(try await coordinator.message() == body)
            await coordinator.transport.send(body, to: workers[0].firstAddress, priority: 0)
            #expect(try await workers[0].message() == body)

            let (logger, reasons) = HeardLog.reasons()
            let stranger = try sides.with(url: url + certificates.path("other.pem"))
                .worker(logger: logger)
            let reason = await reasons.first { _ in true }
            #expect(reason?.contains("CERTIFICATE_VERIFY_FAILED") == true)
            try await stranger.close()
            #expect(await stranger.events.next() == nil)
            try await workers[0].close()
            try await coordinator.close()
        }
    }

    /// A server that a client over TLS must not talk to.
    enum WrongServer: String, CaseIterable, Sendable {
        case expired
        case otherHost
        case strangeAuthority
        case plaintext
        case oldVersion
    }

    /// The login is the first thing that is sent, so that refusing comes before any password.
    @Test(arguments: WrongServer.allCases)
    func `a server with a wrong certificate, an old version or no TLS is refused before the login`(
        server: WrongServer
    ) async throws {
        let certificates = try Certificates()
        defer { certificates.remove() }
        let port = try LoopbackPort.take()
        var url = "amqps://guest:s3cret@localhost:\(port)"
        let program: Process?
        switch server {
        case .expired:
            program = try certificates.serve("expired.pem", on: port)
        case .otherHost:
            program = try certificates.serve("server.pem", on: port)
            url = "amqps://guest:s3cret@127.0.0.1:\(port)"
        case .strangeAuthority:
            program = try certificates.serve("server.pem", on: port)
        case .oldVersion:
            // OpenSSL speaks it only without its own level of security.
            let version = "-tls1_1 -cipher ALL:@SECLEVEL=0"
            program = try certificates.serve("server.pem", on: port, version)
        case .plaintext:
            program = nil
            let plain = try Workspace.testBroker()
            url = plain.replacing(/^amqp:/, with: "amqps:")
        }
        defer { if let program { Certificates.end(program) } }
        let authority = server == .strangeAuthority ? "other.pem" : "ca.pem"
        url += "?cacertfile=" + certificates.path(authority)

        let (logger, reasons) = HeardLog.reasons()
        let worker = try TransportSides(.broker, url: url).worker(logger: logger)
        let reason = try #require(await reasons.first { _ in true })
        try await worker.close()

        // A broker in plain text answers with its own protocol and closes. Whether the answer
        // arrives before the reset is up to the kernel.
        let expected =
            switch server {
            case .expired, .strangeAuthority: ["CERTIFICATE_VERIFY_FAILED"]
            case .otherHost: ["the certificate of the broker is for another host"]
            case .plaintext:
                ["the broker broke off the TLS handshake", "the broker does not speak TLS"]
            case .oldVersion: ["PROTOCOL_VERSION"]
            }
        #expect(expected.contains { reason.contains($0) }, "\(reason)")
        #expect(!reason.contains("s3cret"))
        #expect(await worker.events.next() == nil)
    }

    @Test func `a broker that speaks TLS is not spoken to in plain text`() async throws {
        let certificates = try Certificates()
        defer { certificates.remove() }
        let port = try LoopbackPort.take()
        let program = try certificates.serve("server.pem", on: port)
        defer { Certificates.end(program) }
        let (logger, reasons) = HeardLog.reasons()
        let url = "amqp://guest:s3cret@localhost:\(port)"
        let worker = try TransportSides(.broker, url: url).worker(logger: logger)
        let reason = try #require(await reasons.first { _ in true })
        try await worker.close()
        #expect(!reason.contains("s3cret"))
        #expect(await worker.events.next() == nil)
    }

    @Test func `a broker that asks for a certificate gets ours, as proof or as login`() async throws
    {
        let certificates = try Certificates()
        defer { certificates.remove() }
        let port = try LoopbackPort.take()
        let configuration = """
            listeners.ssl.1 = 127.0.0.1:\(port)
            ssl_options.cacertfile = \(certificates.path("ca.pem"))
            ssl_options.certfile = \(certificates.path("server.pem"))
            ssl_options.keyfile = \(certificates.path("server.key"))
            ssl_options.verify = verify_peer
            ssl_options.fail_if_no_peer_cert = true
            ssl_cert_login_from = common_name
            auth_mechanisms.1 = PLAIN
            auth_mechanisms.2 = EXTERNAL

            """
        try await BrokerFixture.withBroker(
            extraConfiguration: configuration,
            plugins: ["rabbitmq_auth_mechanism_ssl"]
        ) { _ in
            let authority = "cacertfile=" + certificates.path("ca.pem")
            let certificate =
                "&certfile=\(certificates.path("client.pem"))"
                + "&keyfile=\(certificates.path("client.key"))"
            let password = "amqps://guest:guest@localhost:\(port)?\(authority)"
            let external = "amqps://localhost:\(port)?\(authority)&auth_mechanism=external"
            for url in [password + certificate, external + certificate] {
                let sides = try TransportSides(.broker, url: url)
                let (coordinator, workers) = try await sides.connected()
                await workers[0].transport.send([7], lane: .events)
                #expect(try await coordinator.message() == [7])
                try await workers[0].close()
                try await coordinator.close()
            }

            let (logger, reasons) = HeardLog.reasons()
            let stranger = try TransportSides(.broker, url: password).worker(logger: logger)
            let reason = await reasons.first { _ in true }
            #expect(reason?.contains("CERTIFICATE_REQUIRED") == true, "\(reason ?? "none")")
            try await stranger.close()
        }
    }
}

/// An authority, certificates of it for `localhost` and for the user `guest`, and an authority that
/// signed nothing.
private struct Certificates {
    /// Made in no time, unlike one for RSA.
    private static let newKey = "-newkey ec -pkeyopt ec_paramgen_curve:P-256"
    private let directory: URL

    init() throws {
        directory = FileManager.default.temporaryDirectory
            .appendingPathComponent("operon-tls-\(UUID().uuidString)")
        try FileManager.default.createDirectory(
            at: directory,
            withIntermediateDirectories: true
        )
        for name in ["ca", "other"] { try makeAuthority(name) }
        try openssl(
            "req \(Self.newKey) -nodes -subj /CN=localhost -keyout server.key -out server.csr"
        )
        try "subjectAltName=DNS:localhost\n".write(
            toFile: path("extensions"),
            atomically: true,
            encoding: .utf8
        )
        try openssl(
            "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 "
                + "-extfile extensions -out server.pem"
        )
        // Its end lies a day before its beginning.
        try openssl(
            "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days -1 "
                + "-extfile extensions -out expired.pem"
        )
        try openssl(
            "req \(Self.newKey) -nodes -subj /CN=guest -keyout client.key -out client.csr"
        )
        try openssl(
            "x509 -req -in client.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 "
                + "-out client.pem"
        )
    }

    /// A server that does nothing but handshakes, when it listens.
    func serve(_ certificate: String, on port: Int, _ options: String = "") throws -> Process {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/openssl")
        process.arguments =
            "s_server -accept 127.0.0.1:\(port) -cert \(certificate) -key server.key \(options)"
            .split(separator: " ").map(String.init)
        process.currentDirectoryURL = directory
        let output = Pipe()
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        // It ends with its input.
        process.standardInput = Pipe()
        try process.run()
        var said = ""
        while !said.contains("ACCEPT") {
            let bytes = output.fileHandleForReading.availableData
            guard !bytes.isEmpty else { throw TestFailure("openssl does not serve: \(said)") }
            said += String(decoding: bytes, as: UTF8.self)
        }
        return process
    }

    /// By a signal that nobody can block: a child inherits what its parent's thread blocks.
    static func end(_ server: Process) {
        kill(server.processIdentifier, SIGKILL)
        server.waitUntilExit()
    }

    func path(_ name: String) -> String { directory.appendingPathComponent(name).path }

    func remove() { try? FileManager.default.removeItem(at: directory) }

    private func makeAuthority(_ name: String) throws {
        try openssl(
            "req -x509 \(Self.newKey) -nodes -days 2 -subj /CN=\(name) -keyout \(name).key "
                + "-out \(name).pem -addext basicConstraints=critical,CA:TRUE"
        )
    }

    private func openssl(_ arguments: String) throws {
        _ = try Self.run(
            "/usr/bin/openssl",
            arguments.split(separator: " ").map(String.init),
            in: directory
        )
    }

    static func run(_ program: String, _ arguments: [String], in directory: URL? = nil) throws
        -> String
    {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = arguments
        if let directory { process.currentDirectoryURL = directory }
        let output = Pipe()
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        try process.run()
        let text = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            throw TestFailure("\(program) ended with \(process.terminationStatus)")
        }
        return String(decoding: text, as: UTF8.self)
            .trimmingCharacters(in: .whitespacesAndNewlines)
    }
}
