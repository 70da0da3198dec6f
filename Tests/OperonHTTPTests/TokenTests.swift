import ClusterKit
import Foundation
import OperonHTTP
import OperonModel
import OperonPorts
import OperonSystem
import OperonTesting
import Testing

/// Tokens that are created and revoked, and files that are read again, while the server runs.
@Suite(.timeLimit(.minutes(5))) struct TokenTests {
    private static func run(
        _ clock: ManualClock = ManualClock(),
        created: String? = nil,
        _ body: @Sendable @escaping (ServedCluster, String) async throws -> Void
    ) async throws {
        let created = try created ?? Scratch.folder().path + "/graphs.db.tokens"
        let file = try Scratch.file("tokens", RoleTests.tokens, mode: 0o600)
        var api = try TestAPI.configuration(tokens: try AccessTokens(file: file))
        api.tokensFile = file
        api.book = try TokenBook(
            file: api.tokens,
            filePath: file,
            createdPath: created,
            now: { clock.now }
        )
        try await ServedCluster.run(api, scheme: "http") { served in
            try await body(served, created)
        }
    }

    private static func status(
        _ served: ServedCluster,
        _ token: String
    ) async throws -> RawAnswer {
        try await served.raw("GET", "/v1/status", ["Authorization": "Bearer \(token)"])
    }

    @Test func `nothing that prints tokens, callers and a client's settings shows a token`() {
        let token = "the-token-of-ann-0123"
        let digest = SHA256.hash(of: Array(token.utf8))
        var tokens = AccessTokens()
        tokens.add("ann", token: token)
        let client = HTTPCoordinatorClient.Configuration(url: "https://a.example", token: token)
        let caller = Caller(name: "ann", role: .operate, digest: digest)
        for (value, shown) in [
            (tokens as Any, "ann"), (caller, "ann"), (client, "a.example"),
            (HTTPServerConfiguration(socket: "/a", tokens: tokens), "ann"),
        ] {
            var dumped = ""
            dump(value, to: &dumped)
            for text in ["\(value)", String(reflecting: value), dumped] {
                #expect(text.contains(shown) && text.contains("***"), "\(text)")
                #expect(!text.contains(token))
                let numbers = text.split { !$0.isNumber }.map { Int($0) ?? -1 }
                #expect(numbers.firstRange(of: digest.prefix(8).map(Int.init)) == nil)
            }
        }
    }

    @Test func `a token is valid when it is created, and is not any more when it is revoked`()
        async throws
    {
        try await Self.run { served, path in
            try await served.client(token: RoleTests.token("root")) { client in
                var request = TokenRequest(name: "ci", role: .submit)
                request.queues = ["small", "night, run"]
                let made = try await client.createToken(request)
                let token = try #require(made.token)
                #expect(made.status == .valid && made.createdBy == "root")
                #expect(try await Self.status(served, token).status == 200)
                // Only the hash is kept, for this user alone.
                let text = try String(contentsOfFile: path, encoding: .utf8)
                #expect(text.contains("ci:sha256:") && !text.contains(token))
                let attributes = try FileManager.default.attributesOfItem(atPath: path)
                #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == 0o600)

                let login = try await served.json(
                    "POST",
                    "/v1/session",
                    #"{"token":"\#(token)"}"#
                )
                let field = try #require(login.fields["set-cookie"]?.split(separator: ";").first)
                let cookie = ["Cookie": String(field)]
                #expect(try await served.raw("GET", "/v1/status", cookie).status == 200)

                let listed = try await client.tokens().first { $0.name == "ci" }
                #expect(listed?.queues == ["small", "night, run"] && listed?.token == nil)
                #expect(try await client.revokeToken("ci").status == .revoked)
                let refused = try await Self.status(served, token)
                #expect(refused.status == 401)
                #expect(refused.text.contains("The token of “ci” was revoked at 2026-01-01"))
                #expect(try await served.raw("GET", "/v1/status", cookie).status == 401)
                // The name is free, and the old token stays what it is.
                let other = try await client.createToken(TokenRequest(name: "ci", role: .view))
                #expect(other.token != token)
                #expect(try await Self.status(served, token).status == 401)
                #expect(try await Self.status(served, other.token ?? "").status == 200)
            }
        }
    }

    @Test func `created and revoked tokens are the same after a restart`() async throws {
        let path = try Scratch.folder().path + "/graphs.db.tokens"
        let clock = ManualClock()
        let tokens = Recorder<[String]>([])
        try await Self.run(clock, created: path) { served, _ in
            try await served.client(token: RoleTests.token("root")) { client in
                for name in ["one", "two", "three"] {
                    var request = TokenRequest(name: name, role: .operate)
                    if name == "three" { request.expiresInSeconds = 60 }
                    let made = try await client.createToken(request)
                    tokens.change { $0.append(made.token ?? "") }
                }
                _ = try await client.revokeToken("two")
            }
        }
        try await Self.run(clock, created: path) { served, _ in
            let tokens = tokens.current
            #expect(try await Self.status(served, tokens[0]).status == 200)
            #expect(try await Self.status(served, tokens[1]).text.contains("was revoked"))
            #expect(try await Self.status(served, tokens[2]).status == 200)
            clock.advance(by: .seconds(60))
            #expect(try await Self.status(served, tokens[2]).text.contains("expired at"))
            try await served.client(token: RoleTests.token("root")) { client in
                let views = try await client.tokens().filter { $0.source == .created }
                #expect(views.map(\.name) == ["one", "two", "three"])
                #expect(views.map(\.status) == [.valid, .revoked, .expired])
            }
        }
        // Nobody else may have had the file, or put something in its place.
        #expect(chmod(path, 0o644) == 0)
        #expect(throws: HTTPServerError.self) {
            _ = try TokenBook(file: AccessTokens(), createdPath: path, now: { clock.now })
        }
        #expect(chmod(path, 0o600) == 0)
        #expect(symlink(path, path + ".link") == 0)
        #expect(mkfifo(path + ".pipe", 0o600) == 0)
        for other in [".link", ".pipe"] {
            let error = #expect(throws: HTTPServerError.self) {
                _ = try TokenBook(
                    file: AccessTokens(),
                    createdPath: path + other,
                    now: { clock.now }
                )
            }
            #expect(error?.message.contains("not a regular file of this user") == true)
        }
    }

    @Test func `a stream ends when its token is revoked`() async throws {
        try await Self.run { served, _ in
            try await served.client(token: RoleTests.token("root")) { client in
                let made = try await client.createToken(TokenRequest(name: "tv", role: .view))
                try await served.client(token: made.token) {
                    $0.patience = .zero
                } _: { viewer in
                    let updates = try await viewer.statusUpdates()
                    var iterator = updates.makeAsyncIterator()
                    _ = try await iterator.next()
                    _ = try await client.revokeToken("tv")
                    let error = await #expect(throws: ClientError.self) {
                        while try await iterator.next() != nil {}
                    }
                    #expect(error?.code == .unauthorized)
                }
            }
        }
    }

    @Test func `a token that cannot be is refused in words`() async throws {
        try await Self.run { served, _ in
            try await served.client(token: RoleTests.token("root")) { client in
                func refusal(_ request: TokenRequest) async -> ClientError? {
                    await #expect(throws: ClientError.self) {
                        _ = try await client.createToken(request)
                    }
                }
                let taken = await refusal(TokenRequest(name: "ann", role: .view))
                #expect(taken?.code == .conflict)
                for name in ["", "a b", "ü", String(repeating: "a", count: 65)] {
                    let bad = await refusal(TokenRequest(name: name, role: .view))
                    #expect(bad?.code == .invalid, "\(name)")
                }
                var request = TokenRequest(name: "x", role: .operate)
                request.queues = ["q"]
                #expect(await refusal(request)?.code == .invalid)
                request.role = .submit
                request.queues = []
                #expect(await refusal(request)?.code == .invalid)
                request.queues = nil
                for seconds in [0, -1, TokenRequest.secondsMax + 1, Int.max] {
                    request.expiresInSeconds = seconds
                    #expect(await refusal(request)?.code == .invalid)
                }
                let inFile = await #expect(throws: ClientError.self) {
                    _ = try await client.revokeToken("ann")
                }
                #expect(inFile?.message.hasSuffix("remove its line there.") == true)
                let nobody = await #expect(throws: ClientError.self) {
                    _ = try await client.revokeToken("nobody")
                }
                #expect(nobody?.code == .notFound)
            }
        }
    }

    @Test func `the file of tokens is read again, and a wrong one changes nothing`() async throws {
        let file = try Scratch.file("tokens", "ann:\(RoleTests.token("ann"))", mode: 0o600)
        var api = try TestAPI.configuration(tokens: try AccessTokens(file: file))
        api.tokensFile = file
        try await ServedCluster.run(api, scheme: "http") { served in
            func write(_ text: String) throws {
                try text.write(toFile: file, atomically: false, encoding: .utf8)
            }
            func statuses() async throws -> [Int] {
                [
                    try await Self.status(served, RoleTests.token("ann")).status,
                    try await Self.status(served, RoleTests.token("bob")).status,
                ]
            }
            #expect(try await statuses() == [200, 401])
            try write("bob:\(RoleTests.token("bob")) view")
            #expect(try await statuses() == [200, 401])
            #expect(await served.server.reload() == ["read the tokens in \(file) again: 1 token"])
            #expect(try await statuses() == [401, 200])
            try write("bob:short")
            let said = await served.server.reload()
            #expect(said.count == 1)
            #expect(said[0].hasPrefix("keeps the earlier tokens in \(file): \(file), line 1:"))
            #expect(try await statuses() == [401, 200])

            // Without a signal, a change is noticed.
            try write("ann:\(RoleTests.token("ann"))")
            let (lines, continuation) = AsyncStream<String>.makeStream()
            let watching = Task {
                try await served.server.reloadChangedFiles(pace: .milliseconds(20)) {
                    continuation.yield($0)
                }
            }
            defer { watching.cancel() }
            var seen = lines.makeAsyncIterator()
            #expect(await seen.next() == "read the tokens in \(file) again: 1 token")
            #expect(try await statuses() == [200, 401])
        }
    }

    @Test func `new connections get the certificate that was read again`() async throws {
        let (old, new) = (try ClientTests.Certificates(), try ClientTests.Certificates())
        let tls = TLSFiles(certificate: old.server, key: old.key)
        try await ServedCluster.run(tls: tls, tokens: AccessTests.tokens) {
            (served: ServedCluster) async throws in
            func isTrusted(_ certificates: ClientTests.Certificates) async throws -> Bool {
                var configuration = HTTPCoordinatorClient.Configuration(
                    url: "https://localhost:\(served.port)",
                    token: AccessTests.token
                )
                configuration.certificateAuthority = certificates.authority
                return try await ServedCluster.client(configuration) { client in
                    do throws(ClientError) {
                        return try await client.status().epoch == 1
                    } catch {
                        guard error.code == .unreachable else { throw error }
                        return false
                    }
                }
            }
            func replace(_ old: String, with new: String) throws {
                let data = try Data(contentsOf: URL(fileURLWithPath: new))
                try data.write(to: URL(fileURLWithPath: old))
                #expect(chmod(old, 0o600) == 0)
            }
            #expect(try await [isTrusted(old), isTrusted(new)] == [true, false])
            // A certificate without its key is of no use.
            try replace(old.server, with: new.server)
            let kept = await served.server.reload()
            #expect(kept.first?.hasPrefix("keeps the earlier certificate in \(old.server)") == true)
            #expect(try await [isTrusted(old), isTrusted(new)] == [true, false])
            try replace(old.key, with: new.key)
            let said = await served.server.reload()
            #expect(said == ["read the certificate in \(old.server) again: new connections get it"])
            #expect(try await [isTrusted(old), isTrusted(new)] == [false, true])
        }
    }
}
