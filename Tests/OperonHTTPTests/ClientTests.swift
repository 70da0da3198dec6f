import Foundation
import OperonHTTP
import OperonModel
import OperonPorts
import Testing

/// What a client says when nobody answers, or the wrong one does.
@Suite(.timeLimit(.minutes(5))) struct ClientTests {
    private func failure(
        _ configuration: HTTPCoordinatorClient.Configuration
    ) async throws -> ClientError? {
        try await ServedCluster.client(configuration) { client in
            await #expect(throws: ClientError.self) { _ = try await client.status() }
        }
    }

    @Test func `nobody answers`() async throws {
        // Nobody may listen there but root's tcpmux, of long ago.
        let url = "http://127.0.0.1:1"
        let error = try await failure(.init(url: url))
        #expect(error?.code == .unreachable)
        #expect(error?.message.hasPrefix("Cannot connect to \(url): no coordinator") == true)
    }

    @Test func `an address that is none is said before anything is asked`() async throws {
        for url in [
            "", "localhost:7350", "ftp://a", "http://", "http://a:x", "http://u:p@a", "http://a/x",
        ] {
            let error = #expect(throws: ClientError.self) {
                _ = try HTTPCoordinatorClient(.init(url: url), codec: FakeCodec())
            }
            #expect(error?.code == .invalid)
        }
        let error = #expect(throws: ClientError.self) {
            _ = try HTTPCoordinatorClient(
                .init(url: "http://operon.example", token: "secret"),
                codec: FakeCodec()
            )
        }
        #expect(error?.message.contains("in the clear") == true)
        #expect(error?.message.contains("secret") == false)
    }

    private struct FakeCodec: GraphCodec {
        func encode(_ graph: GraphDescription) throws -> any Sequence<[UInt8]> & Sendable { [] }

        func decode(
            _ bytes: [UInt8],
            contentType: String,
            name: String,
            parameters: String?
        ) throws -> GraphDescription { GraphDescription(name: name) }
    }

    @Test func `TLS is spoken with those whose authority is known, and with no other`() async throws
    {
        let certificates = try Certificates()
        let tls = TLSFiles(certificate: certificates.server, key: certificates.key)
        try await ServedCluster.run(tls: tls, tokens: AccessTests.tokens) {
            (served: ServedCluster) async throws in
            let url = "https://localhost:\(served.port)"
            func configuration(_ url: String, _ authority: String?)
                -> HTTPCoordinatorClient.Configuration
            {
                var made = HTTPCoordinatorClient.Configuration(url: url, token: AccessTests.token)
                made.certificateAuthority = authority
                return made
            }
            try await ServedCluster.client(configuration(url, certificates.authority)) { client in
                #expect(try await client.status().epoch == 1)
                let stream = try await client.events(after: nil, graph: nil)
                await served.tap.waitForWatchers(1)
                _ = try await client.setQueue("q", QueueChange())
                var iterator = stream.makeAsyncIterator()
                #expect(try await iterator.next() != nil)
            }
            let stranger = try await failure(configuration(url, nil))
            #expect(stranger?.code == .unreachable)
            let untrusted = "signed by no authority that is trusted here"
            #expect(stranger?.message.contains(untrusted) == true, "\(stranger?.message ?? "")")
            // No place in the source of a library.
            #expect(stranger?.message.contains(".cc:") == false)
            let misnamed = try await failure(
                configuration("https://127.0.0.1:\(served.port)", certificates.authority)
            )
            #expect(misnamed?.code == .unreachable)
            #expect(misnamed?.message.contains("is for another host") == true)
            let plain = try await failure(
                configuration("http://127.0.0.1:\(served.port)", certificates.authority)
            )
            #expect(plain?.code == .unreachable)
        }
        let bad = TLSFiles(certificate: certificates.key, key: certificates.server)
        let error = await #expect(throws: HTTPServerError.self) {
            try await ServedCluster.run(tls: bad, tokens: AccessTests.tokens) { _ in }
        }
        #expect(error?.code == .file)
        let mixed = TLSFiles(certificate: certificates.authority, key: certificates.key)
        let noPair = await #expect(throws: HTTPServerError.self) {
            try await ServedCluster.run(tls: mixed, tokens: AccessTests.tokens) { _ in }
        }
        #expect(noPair?.message.contains("the key does not belong to the certificate") == true)
        try FileManager.default.setAttributes(
            [.posixPermissions: 0o640],
            ofItemAtPath: certificates.key
        )
        let exposed = await #expect(throws: HTTPServerError.self) {
            try await ServedCluster.run(tls: tls, tokens: AccessTests.tokens) { _ in }
        }
        let key = certificates.key
        #expect(
            exposed?.message
                == "Other users can read the key in \(key) (mode 640): chmod 600 \(key)"
        )
        #expect(exposed?.code == .file)
    }

    /// The server of the API, then the client, with a program that speaks only one version.
    @Test func `a version of TLS before 1.2 is spoken by neither the server nor the client`()
        async throws
    {
        let certificates = try Certificates()
        let tls = TLSFiles(certificate: certificates.server, key: certificates.key)
        try await ServedCluster.run(tls: tls, tokens: AccessTests.tokens) {
            (served: ServedCluster) async throws in
            let connect = "s_client -connect 127.0.0.1:\(served.port) "
            let current = try certificates.output(of: connect + "-tls1_2")
            #expect(current.contains("Protocol  : TLSv1.2"), "\(current)")
            let old = try certificates.output(of: connect + Certificates.oldVersion)
            #expect(old.contains("alert protocol version"), "\(old)")
        }
        for (version, words) in [
            (Certificates.oldVersion, "PROTOCOL_VERSION"), ("-tls1_2", "cannot read the answer"),
        ] {
            let (server, port) = try certificates.serve(version)
            defer { Certificates.end(server) }
            var configuration = HTTPCoordinatorClient.Configuration(
                url: "https://localhost:\(port)",
                token: AccessTests.token
            )
            configuration.certificateAuthority = certificates.authority
            let error = try await failure(configuration)
            #expect(error?.message.contains(words) == true, "\(error?.message ?? "")")
        }
    }

    /// An authority, and a certificate of it for `localhost`.
    struct Certificates {
        /// Made in no time, unlike one for RSA.
        private static let newKey = "-newkey ec -pkeyopt ec_paramgen_curve:P-256"
        private let folder = try? Scratch.folder()
        var authority: String { path("ca.pem") }
        var server: String { path("server.pem") }
        var key: String { path("server.key") }

        private func path(_ name: String) -> String {
            folder?.appendingPathComponent(name).path ?? ""
        }

        init() throws {
            try openssl(
                "req -x509 \(Self.newKey) -nodes -days 2 -subj /CN=authority -keyout ca.key "
                    + "-out ca.pem -addext basicConstraints=critical,CA:TRUE"
            )
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
        }

        /// OpenSSL speaks it only without its own level of security.
        static let oldVersion = "-tls1_1 -cipher ALL:@SECLEVEL=0"

        /// A server of web pages that speaks one version of TLS, when it listens.
        func serve(_ version: String) throws -> (Process, port: Int) {
            let listen = "s_server -www -accept 127.0.0.1:0 -cert server.pem -key server.key "
            let process = command(listen + version)
            let output = Pipe()
            process.standardOutput = output
            try process.run()
            var said = ""
            while true {
                let bytes = output.fileHandleForReading.availableData
                try #require(!bytes.isEmpty, "openssl does not serve: \(said)")
                said += String(decoding: bytes, as: UTF8.self)
                if let match = said.firstMatch(of: /ACCEPT 127\.0\.0\.1:(\d+)\n/) {
                    return (process, try #require(Int(match.1)))
                }
            }
        }

        /// By a signal that nobody can block: a child inherits what its parent's thread blocks.
        static func end(_ server: Process) {
            kill(server.processIdentifier, SIGKILL)
            server.waitUntilExit()
        }

        /// What openssl says to a command, whether it succeeds or not.
        func output(of arguments: String) throws -> String {
            let process = command(arguments)
            let output = Pipe()
            process.standardOutput = output
            process.standardError = output
            process.standardInput = FileHandle.nullDevice
            try process.run()
            let bytes = output.fileHandleForReading.readDataToEndOfFile()
            process.waitUntilExit()
            return String(decoding: bytes, as: UTF8.self)
        }

        private func openssl(_ arguments: String) throws {
            let process = command(arguments)
            try process.run()
            process.waitUntilExit()
            try #require(process.terminationStatus == 0)
        }

        private func command(_ arguments: String) -> Process {
            let process = Process()
            process.executableURL = URL(fileURLWithPath: "/usr/bin/openssl")
            process.arguments = arguments.split(separator: " ").map(String.init)
            process.currentDirectoryURL = folder
            process.standardError = FileHandle.nullDevice
            return process
        }
    }
}
