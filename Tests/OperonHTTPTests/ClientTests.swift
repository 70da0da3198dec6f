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

        private func openssl(_ arguments: String) throws {
            let process = Process()
            process.executableURL = URL(fileURLWithPath: "/usr/bin/openssl")
            process.arguments = arguments.split(separator: " ").map(String.init)
            process.currentDirectoryURL = folder
            process.standardError = FileHandle.nullDevice
            try process.run()
            process.waitUntilExit()
            try #require(process.terminationStatus == 0)
        }
    }
}
