import Foundation
import FoundationNetworking
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
            let socket = try await server.workspace.operon(["page"])
            #expect(socket.end == .exit(2))
            #expect(socket.errors.contains("--listen"), "\(socket.errors)")
        }
    }
}
