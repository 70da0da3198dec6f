import Foundation
import FoundationNetworking
import Glibc
import OperonHTTP
import OperonModel
import Testing

/// `operon page`: the address of the page, and a login with it.
@Suite struct BrowserPageTests {
    private static func logIn(_ url: String, _ code: String) async throws -> Int {
        var request = URLRequest(url: try #require(URL(string: url + "/v1/session")))
        request.httpMethod = "POST"
        // As the page does, which has a cookie the second time.
        request.setValue("1", forHTTPHeaderField: "Operon-Page")
        request.setValue("application/json", forHTTPHeaderField: "Content-Type")
        request.httpBody = Data(#"{"code": "\#(code)"}"#.utf8)
        let (_, answer) = try await URLSession.shared.data(for: request)
        return (answer as? HTTPURLResponse)?.statusCode ?? 0
    }

    @Test func `the address logs one browser in`() async throws {
        var tokens = AccessTokens()
        tokens.add("ann", token: "the-token-of-ann-0123")
        try await LiveServer.run(tokens: tokens) { server in
            _ = try server.workspace.write("token", "the-token-of-ann-0123\n")
            let shown = try await server.operon("page --token-file token")
            #expect(shown.end == .exit(0), "\(shown.errors)")
            let address = try #require(shown.outputLines.first)
            #expect(address.hasPrefix(server.url + "/#code="), "\(address)")
            let code = String(address.drop { $0 != "=" }.dropFirst())
            let statuses = [
                try await Self.logIn(server.url, code), try await Self.logIn(server.url, code),
            ]
            #expect(statuses == [200, 401])
            let refused = try await server.operon("page")
            #expect(refused.end == .exit(2) && refused.output == "", "\(refused.errors)")
        }
    }

    @Test func `without tokens it is the address alone, and a socket has none`() async throws {
        try await LiveServer.run { server in
            let shown = try await server.operon("page")
            #expect(shown.output == server.url + "/\n", "\(shown.errors)")
            let json = try await server.operon("page --output json")
            #expect(json.output.contains(#""url":""# + server.url), "\(json.output)")
        }
        try await Workspace.run { workspace in
            let up = try await Up(workspace)
            let socket = try await up.operon("page")
            #expect(socket.end == .exit(2))
            #expect(socket.errors.contains("--listen"), "\(socket.errors)")
        }
    }

    @Test func `operon up has a page, on which every request needs a login`() async throws {
        try await Workspace.run { workspace in
            let up = try workspace.start("operon", ["up", "--slots", "1"])
            try await up.says("in a browser: operon page")
            let said = try #require(up.errors.text.firstMatch(of: /see (http:\S+) in/)?.output.1)
            let url = String(said)
            let address = String(url.dropFirst("http://".count))
            #expect(try RawAPI.ask(address, "/").status == 200)
            for route in HTTPServer.routes where route.access != .open {
                let path = route.pattern.split(separator: "/")
                    .map { $0.first == "{" ? "/1" : "/\($0)" }.joined()
                for shown in [nil, "garbage"] {
                    let answer = try RawAPI.ask(address, path, route.method, token: shown)
                    #expect(answer.status == 401, "\(route.method) \(path) \(shown ?? "none")")
                }
            }
            let page = try await workspace.operon(["page", "--output", "quiet"])
            #expect(page.output.hasPrefix(url + "/#code="), "\(page)")
            let code = String(page.output.drop { $0 != "=" }.dropFirst().dropLast())
            #expect(try await Self.logIn(url, code) == 200)
            // With the cookie of that login.
            let status = try #require(URL(string: url + "/v1/status"))
            let (_, answer) = try await URLSession.shared.data(from: status)
            #expect((answer as? HTTPURLResponse)?.statusCode == 200)
            #expect(try await Self.logIn(url, code) == 401)
            up.signal(SIGTERM)
            #expect(try await up.end().end == .exit(0))
        }
    }

    @Test func `after a restart the page has the same address, unless somebody else has its port`()
        async throws
    {
        try await Workspace.run { workspace in
            func address() async throws -> (up: Program, url: String) {
                let up = try workspace.start("operon", ["up", "--store", "s.db"])
                try await up.says("in a browser: operon page")
                let match = up.errors.text.firstMatch(of: #/to see (http:\S+) in a browser/#)
                return (up, String(try #require(match).1))
            }
            let first = try await address()
            first.up.signal(SIGKILL)
            _ = try await first.up.end()
            let second = try await address()
            #expect(second.url == first.url)
            second.up.signal(SIGTERM)
            #expect(try await second.up.end().end == .exit(0))

            for text in ["22\n", "70000\n", "x\n", "\(Int.max)0\n", ""] {
                _ = try workspace.write("s.db.page", text)
                let other = try await address()
                other.up.signal(SIGTERM)
                #expect(try await other.up.end().end == .exit(0), "\(text)")
            }
            // What others may put there is neither waited for nor written through.
            let victim = try workspace.write("victim", "precious\n")
            for make in [
                {
                    try FileManager.default.createSymbolicLink(
                        atPath: $0,
                        withDestinationPath: victim
                    )
                },
                { #expect(mkfifo($0, 0o600) == 0) },
            ] as [(String) throws -> Void] {
                let place = workspace.path("s.db.page")
                unlink(place)
                try make(place)
                let other = try await address()
                other.up.signal(SIGTERM)
                #expect(try await other.up.end().end == .exit(0))
                #expect(try workspace.read("victim") == "precious\n")
                #expect(try workspace.read("s.db.page").hasSuffix("\n"))
            }
            let port = try LoopbackPort.take()
            let holder = try LoopbackListener(at: port)
            _ = try workspace.write("s.db.page", "\(port)\n")
            let last = try await address()
            #expect(last.url != "http://127.0.0.1:\(port)")
            last.up.signal(SIGTERM)
            #expect(try await last.up.end().end == .exit(0))
            withExtendedLifetime(holder) {}
        }
    }

    @Test func `operon up with tokens has a page that takes them`() async throws {
        try await Workspace.run { workspace in
            let token = "the-token-of-ann-0123"
            _ = try workspace.write("tokens", "ann:\(token)\n")
            _ = try workspace.write("token", token + "\n")
            let up = try workspace.start("operon", ["up", "--slots", "1", "--tokens", "tokens"])
            try await up.says("in a browser: operon page")
            let said = try #require(up.errors.text.firstMatch(of: /see (http:\S+) in/)?.output.1)
            let address = String(said.dropFirst("http://".count))
            #expect(try RawAPI.ask(address, "/v1/status").status == 401)
            #expect(try RawAPI.ask(address, "/v1/status", token: token).status == 200)
            let page = try await workspace.operon(
                ["page", "--output", "quiet", "--token-file", "token"]
            )
            #expect(page.output.hasPrefix(said + "/#code="), "\(page)")
            let code = String(page.output.drop { $0 != "=" }.dropFirst().dropLast())
            #expect(try await Self.logIn(String(said), code) == 200)
            up.signal(SIGTERM)
            #expect(try await up.end().end == .exit(0))
        }
    }
}
