import ClusterKit
import Foundation
import Logging
import OperonHTTP
import OperonModel
import OperonPorts
import OperonSystem
import Testing

/// Who may use the API, and from where.
@Suite(.timeLimit(.minutes(5))) struct AccessTests {
    static let token = "3e1c4d2f6a7b8c9d0e1f"
    static let readToken = "aaaaaaaaaaaaaaaaaaaa"

    static var tokens: String {
        let digest = SHA256.hash(of: Array(token.utf8)).map { String(format: "%02x", $0) }.joined()
        return "# who may\n\nalice:sha256:\(digest)\n  viewer:\(readToken) read\n"
    }

    static func path(_ route: Route) -> String {
        let parts = route.pattern.split(separator: "/")
        return parts.isEmpty ? "/" : parts.map { $0.first == "{" ? "/1" : "/\($0)" }.joined()
    }

    @Test func `a client that was there before its user's token finds it, and a new one`()
        async throws
    {
        try await ServedCluster.run(tokens: Self.tokens) { (served: ServedCluster) async throws in
            let state = try Scratch.folder().path
            let file = state + "/operon/token"
            let configuration = try HTTPCoordinatorClient.Configuration(
                url: served.url,
                token: nil,
                environment: ["XDG_STATE_HOME": state]
            )
            func write(_ token: String) throws {
                try FileManager.default.createDirectory(
                    atPath: state + "/operon",
                    withIntermediateDirectories: true
                )
                try Data(token.utf8).write(to: URL(fileURLWithPath: file))
                #expect(chmod(file, 0o600) == 0)
            }
            try await ServedCluster.client(configuration) { client in
                func mayAsk() async throws -> Bool {
                    do throws(ClientError) {
                        _ = try await client.queues()
                        return true
                    } catch {
                        guard error.code == .unauthorized else { throw error }
                        return false
                    }
                }
                #expect(try await !mayAsk())
                try write("of-another-coordinator-0")
                #expect(try await !mayAsk())
                try write(Self.token)
                #expect(try await mayAsk())
            }
        }
    }

    @Test func `the name of the token is noted with what is done`() async throws {
        try await ServedCluster.run(tokens: Self.tokens) { (served: ServedCluster) async throws in
            try await served.client(token: Self.token) { client in
                let view = try await client.submit(Submission(graph: .diamond))
                #expect(view.submittedBy == "alice")
                _ = try await client.suspend(.graph("diamond"), SuspendRequest())
                #expect(try await client.graph("diamond").suspension?.by == "alice")
            }
            for (token, code) in [
                (nil, ClientError.Code.unauthorized), (Self.token + "0", .unauthorized),
                (Self.readToken, .forbidden),
            ] {
                try await served.client(token: token) { client in
                    let error = await #expect(throws: ClientError.self) {
                        _ = try await client.close(graph: "0")
                    }
                    #expect(error?.code == code)
                }
            }
        }
    }

    @Test func `health says no more than needed to those who may not look`() async throws {
        try await ServedCluster.run(tokens: Self.tokens) { (served: ServedCluster) async throws in
            let blind = try await served.raw("GET", "/readyz")
            #expect(blind.status == 503)
            #expect(blind.text == "not ready\n")
            let seeing = try await served.raw(
                "GET",
                "/readyz",
                ["Authorization": "Bearer \(Self.readToken)"]
            )
            #expect(seeing.text == "the store is full\n")
            #expect(try await served.raw("GET", "/metrics").status == 401)
        }
        try await ServedCluster.run { (served: ServedCluster) async throws in
            #expect(try await served.raw("GET", "/healthz").text == "all is well\n")
            #expect(try await served.raw("GET", "/metrics").text == "operon_up 1\n")
        }
    }

    @Test func `a request to another name is refused unless it shows a token`() async throws {
        try await ServedCluster.run { (served: ServedCluster) async throws in
            let port = served.port
            for host in [
                "localhost", "localhost:\(port)", "127.0.0.1", "[::1]:\(port)", "LOCALHOST",
            ] {
                #expect(try await served.raw("GET", "/v1/status", ["Host": host]).status == 200)
            }
            for host in [
                "evil.example", "evil.example:\(port)", "127.0.0.1.evil.example", "localhost.",
            ] {
                #expect(try await served.raw("GET", "/v1/status", ["Host": host]).status == 403)
            }
        }
        try await ServedCluster.run(tokens: Self.tokens) { (served: ServedCluster) async throws in
            let fields = ["Host": "operon.example", "Authorization": "Bearer \(Self.token)"]
            #expect(try await served.raw("GET", "/v1/status", fields).status == 200)
            let wrong = ["Host": "operon.example", "Authorization": "Bearer wrong"]
            #expect(try await served.raw("GET", "/", wrong).status == 403)
            // Its signature shows who sent it.
            let signed = ["Host": "hooks.example", "Content-Type": "application/json"]
            let hook = try await served.raw(
                "POST",
                "/v1/hooks/none",
                signed,
                body: Array("{}".utf8)
            )
            #expect(hook.status != 403, "\(hook.text)")
            // A browser would show its page, in which somebody may type a token.
            for (host, status) in [
                ("evil.example", 403), ("localhost", 200), ("127.0.0.1:1", 200), ("10.1.2.3", 200),
                ("", 403),
            ] {
                #expect(try await served.raw("GET", "/", ["Host": host]).status == status)
            }
        }
    }

    @Test func `a coordinator may be given names`() async throws {
        var tokens = AccessTokens()
        tokens.add("alice", token: Self.token)
        var api = try TestAPI.configuration(tokens: tokens)
        try api.add(host: "Operon.example")
        try await ServedCluster.run(api, scheme: "http") { (served: ServedCluster) async throws in
            for (host, status) in [
                ("operon.example", 200), ("operon.example:7350", 200), ("localhost", 200),
                ("other.example", 403), ("x.operon.example", 403),
            ] {
                #expect(try await served.raw("GET", "/", ["Host": host]).status == status)
            }
        }
        for wrong in ["", "operon.example:7350", "http://operon.example", "a b", "*"] {
            #expect(throws: HTTPServerError.self) { try api.add(host: wrong) }
        }
        // One that other machines reach knows its names when it is given one.
        var exposed = try HTTPServerConfiguration(
            listen: HTTPAddress(host: "0.0.0.0", port: 0),
            tls: TLSFiles(certificate: "c", key: "k"),
            tokens: tokens
        )
        #expect(!exposed.knowsItsNames)
        try exposed.add(host: "operon.example")
        #expect(exposed.knowsItsNames)
    }

    @Test func `a page of another site changes nothing`() async throws {
        try await ServedCluster.run { (served: ServedCluster) async throws in
            var submission = Submission(graph: .diamond)
            submission.isOpen = true
            _ = try await served.coordinator.submit(submission)
            let foreign = [
                "https://evil.example", "null", "http://localhost:1", "http://evil.localhost",
                "file://", "",
            ]
            for origin in foreign {
                let answer = try await served.raw("POST", "/v1/graphs/0/close", ["Origin": origin])
                #expect(answer.status == 403, "\(origin)")
                #expect(answer.fields["access-control-allow-origin"] == nil)
            }
            let site = ["Sec-Fetch-Site": "cross-site"]
            #expect(try await served.raw("POST", "/v1/graphs/0/close", site).status == 403)
            #expect(await served.tap.calls.contains { $0.name == "close" } == false)
            let own = ["Origin": "http://\(served.address)"]
            #expect(try await served.raw("POST", "/v1/graphs/0/close", own).status == 200)
        }
    }

    @Test func `an address that others reach needs TLS and tokens`() throws {
        let tls = TLSFiles(certificate: "c", key: "k")
        var tokens = AccessTokens()
        tokens.add("alice", token: Self.token)
        for host in ["0.0.0.0", "::", "10.1.2.3", "operon.example", "1.127.0.0"] {
            let address = HTTPAddress(host: host, port: 0)
            for (tls, tokens) in [(nil, AccessTokens()), (tls, AccessTokens()), (nil, tokens)] {
                let error = #expect(throws: HTTPServerError.self) {
                    _ = try HTTPServerConfiguration(listen: address, tls: tls, tokens: tokens)
                }
                #expect(error?.code == .unsafe)
            }
            _ = try HTTPServerConfiguration(listen: address, tls: tls, tokens: tokens)
        }
        for host in ["127.0.0.1", "127.1.2.3", "::1", "localhost"] {
            let address = HTTPAddress(host: host, port: 0)
            _ = try HTTPServerConfiguration(listen: address, tokens: tokens)
            let error = #expect(throws: HTTPServerError.self) {
                _ = try HTTPServerConfiguration(listen: address)
            }
            #expect(error?.code == .unsafe)
            #expect(error?.message.contains("could run commands as you") == true)
            _ = try HTTPServerConfiguration(listen: address, allowsAnyUser: true)
        }
    }

    @Test func `an address is read as people write it`() throws {
        #expect(try HTTPAddress("127.0.0.1:80") == HTTPAddress(host: "127.0.0.1", port: 80))
        #expect(try HTTPAddress("[::1]:80") == HTTPAddress(host: "::1", port: 80))
        #expect(try HTTPAddress(":80") == HTTPAddress(host: "127.0.0.1", port: 80))
        #expect(try HTTPAddress("localhost") == HTTPAddress(host: "localhost", port: 7350))
        for text in ["a:b", "a:99999", "a:", "a b:1", "[::1", "a:1 ", "http://a:1", "[]:1", "a:-1"]
        {
            #expect(throws: HTTPServerError.self) { _ = try HTTPAddress(text) }
        }
    }

    @Test func `a file of tokens that is not safe or not right is refused by its line`() throws {
        let good = try Scratch.file("tokens", Self.tokens, mode: 0o600)
        let read = try AccessTokens(file: good)
        #expect(read.count == 2)
        let bad = [
            ("alice", "line 1"), ("ok:\(Self.token)\nalice:short", "line 2"),
            ("a:sha256:12", "line 1"), ("a:\(Self.token) write", "none of"), ("", "no token"),
            ("a:\(Self.token) view submit", "too much"),
            ("a:\(Self.token) color=1", "unknown option"),
            ("a:\(Self.token) expires=tomorrow", "expires="), ("a: \(Self.token)", "none of"),
            ("# a\r\nb: \(Self.token)\r\n", "line 2"), ("a:b \(Self.token)=", "unknown option"),
            ("a:\(Self.token) queues=a", "only for the role submit"),
            ("a:\(Self.token) submit queues=a,,b", "percent-encoded"),
            ("a:\(Self.token) submit queues=a queues=b", "twice"),
            ("a:\(Self.token)\na:\(Self.readToken)", "twice"), (":\(Self.token)", "name"),
        ]
        for (text, word) in bad {
            let file = try Scratch.file("tokens", text, mode: 0o600)
            let error = #expect(throws: HTTPServerError.self) { _ = try AccessTokens(file: file) }
            #expect(error?.message.contains(word) == true, "\(error?.message ?? "")")
            #expect(error?.message.contains(Self.token) == false)
        }
        let open = try Scratch.file("tokens", Self.tokens, mode: 0o640)
        let error = #expect(throws: HTTPServerError.self) { _ = try AccessTokens(file: open) }
        #expect(error?.message.contains("chmod 600") == true)
        let none = #expect(throws: HTTPServerError.self) {
            _ = try AccessTokens(file: "/nowhere/tokens")
        }
        #expect(
            none?.message
                == "The tokens in /nowhere/tokens cannot be read: No such file or directory."
        )
        let large = try Scratch.file(
            "tokens",
            String(repeating: "#\n", count: 1 << 20),
            mode: 0o600
        )
        let tooLarge = #expect(throws: HTTPServerError.self) {
            _ = try AccessTokens(file: large)
        }
        #expect(tooLarge?.message.hasSuffix("cannot be read: the file is too large.") == true)
    }

    @Test func `it listens on this machine only`() async throws {
        try await ServedCluster.run { (served: ServedCluster) async throws in
            let port = String(served.port, radix: 16, uppercase: true)
            let padded = String(repeating: "0", count: 4 - port.count) + port
            var addresses: [Substring] = []
            for file in ["/proc/net/tcp", "/proc/net/tcp6"] {
                // Such a file has no length, so it is read to its end.
                guard let handle = FileHandle(forReadingAtPath: file) else { continue }
                let table = String(decoding: handle.readDataToEndOfFile(), as: UTF8.self)
                for line in table.split(separator: "\n").dropFirst() {
                    let fields = line.split(separator: " ")
                    // 0A: it listens.
                    guard fields[3] == "0A", fields[1].hasSuffix(":" + padded) else { continue }
                    addresses.append(fields[1].dropLast(5))
                }
            }
            #expect(addresses == ["0100007F"])
        }
    }

    @Test func `a port that is taken is said`() async throws {
        try await ServedCluster.run { (served: ServedCluster) async throws in
            let configuration = try HTTPServerConfiguration(
                listen: try #require(served.address.tcp),
                allowsAnyUser: true
            )
            let server = HTTPServer(
                configuration,
                codec: NoCodec(),
                health: .good,
                logger: .init(label: "test"),
                wall: { WallTime(nanosecondsSince1970: 0) },
                client: { _ in preconditionFailure("Nobody calls it.") }
            )
            let error = await #expect(throws: HTTPServerError.self) { try await server.run() }
            #expect(error?.code == .addressInUse)
            #expect(error?.message.contains("another coordinator perhaps") == true)
        }
    }

    /// It would be said before the reason why it was.
    @Test func `a server that is cancelled does not complain of it`() async throws {
        let said = Recorder<[String]>([])
        let server = HTTPServer(
            try HTTPServerConfiguration(
                listen: HTTPAddress(host: "127.0.0.1", port: 0),
                allowsAnyUser: true
            ),
            codec: NoCodec(),
            health: .good,
            logger: said.logger,
            wall: { WallTime(nanosecondsSince1970: 0) },
            client: { _ in preconditionFailure("Nobody calls it.") }
        )
        let (listening, address) = AsyncStream<ListenAddress>.makeStream()
        let running = Task { try await server.run { address.yield($0) } }
        for await _ in listening { break }
        running.cancel()
        _ = await running.result
        #expect(said.current == [])
    }

    private struct NoCodec: GraphCodec {
        func encode(_ graph: GraphDescription) throws -> any Sequence<[UInt8]> & Sendable { [] }

        func decode(
            _ bytes: [UInt8],
            contentType: String,
            name: String,
            parameters: String?
        ) throws -> GraphDescription { GraphDescription(name: name) }
    }
}
