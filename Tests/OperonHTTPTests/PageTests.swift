import Foundation
import OperonHTTP
import OperonModel
import OperonPorts
import Testing

/// The page and its login.
@Suite(.timeLimit(.minutes(5))) struct PageTests {
    private static let html = ["Accept": "text/html,application/xhtml+xml"]

    @Test func `a browser gets the page, and a program the greeting`() async throws {
        try await ServedCluster.run(tokens: AccessTests.tokens) {
            (served: ServedCluster) async throws in
            let page = try await served.raw("GET", "/", Self.html)
            #expect(page.fields["content-type"] == "text/html; charset=utf-8")
            let policy = try #require(page.fields["content-security-policy"])
            #expect(policy.contains("default-src 'none'") && !policy.contains("unsafe"))
            #expect(policy.contains("frame-ancestors 'none'"))
            #expect(page.fields["x-content-type-options"] == "nosniff")
            #expect(page.fields["set-cookie"] == nil)
            let greeting = try await served.raw("GET", "/")
            #expect(greeting.fields["content-type"]?.hasPrefix("text/plain") == true)

            // Everything that the page names is there, and nothing else is.
            let text = String(decoding: page.body, as: UTF8.self)
            let names = text.matches(of: #/"/page/([\w.-]+)"/#).map { String($0.1) }
            #expect(names.contains("page.js") && names.contains("page.css"))
            for name in names {
                #expect(try await served.raw("GET", "/page/" + name).status == 200, "\(name)")
            }
            for path in ["/page/nothing.js", "/page/..%2Ffiles.c", "/page/%2e%2e"] {
                #expect(try await served.raw("GET", path).status == 404, "\(path)")
            }
        }
    }

    @Test func `a file that the browser has is not sent again`() async throws {
        try await ServedCluster.run { (served: ServedCluster) async throws in
            let first = try await served.raw("GET", "/page/page.js")
            let tag = try #require(first.fields["etag"])
            let again = try await served.raw("GET", "/page/page.js", ["If-None-Match": tag])
            #expect(again.status == 304 && again.body.isEmpty)
            let other = try await served.raw("GET", "/page/page.js", ["If-None-Match": "\"x\""])
            #expect(other.status == 200 && other.body == first.body)
        }
    }

    /// Logs in, and returns the cookie as a browser sends it back.
    private static func logIn(_ served: ServedCluster, _ body: String) async throws -> String {
        let answer = try await served.json("POST", "/v1/session", body)
        #expect(answer.status == 200)
        let cookie = try #require(answer.fields["set-cookie"])
        #expect(cookie.contains("; HttpOnly") && cookie.contains("; SameSite=Strict"))
        return String(cookie.prefix { $0 != ";" })
    }

    private static func scope(_ answer: RawAnswer) throws -> String? {
        let value = try JSONSerialization.jsonObject(with: Data(answer.body)) as? [String: Any]
        #expect(value?["needsToken"] as? Bool == true)
        return value?["scope"] as? String
    }

    @Test func `a browser logs in with a token, changes something, and logs out`() async throws {
        try await ServedCluster.run(tokens: AccessTests.tokens) {
            (served: ServedCluster) async throws in
            _ = try await served.coordinator.submit(Submission(graph: .diamond))
            #expect(try Self.scope(try await served.raw("GET", "/v1/session")) == nil)
            for body in [#"{"token": "wrong"}"#, #"{"code": "wrong"}"#] {
                let refused = try await served.json("POST", "/v1/session", body)
                #expect(refused.status == 401 && refused.fields["set-cookie"] == nil)
            }
            for body in ["{}", #"{"token": "a", "code": "b"}"#, #"{"tokens": "a"}"#, "[]"] {
                #expect(try await served.json("POST", "/v1/session", body).status == 400, "\(body)")
            }
            // Who is not known yet sends little, and no form.
            let long = #"{"token": "\#(String(repeating: "a", count: 10_000))"}"#
            #expect(try await served.json("POST", "/v1/session", long).status == 413)
            let form = ["Content-Type": "text/plain"]
            #expect(try await served.json("POST", "/v1/session", "{}", form).status == 415)
            let cookie = try await Self.logIn(served, #"{"token": "\#(AccessTests.token)"}"#)
            let fields = ["Cookie": "other=1; \(cookie)"]
            #expect(try Self.scope(try await served.raw("GET", "/v1/session", fields)) == "operate")
            #expect(try await served.raw("GET", "/v1/graphs", fields).status == 200)

            // Without the header that only the page sends, nothing is changed.
            let path = "/v1/graphs/diamond/suspend"
            #expect(try await served.json("POST", path, "{}", fields).status == 403)
            let page = fields.merging(["Operon-Page": "1"]) { $1 }
            #expect(try await served.json("POST", path, "{}", page).status == 200)
            #expect(try await served.coordinator.graph("diamond").suspension?.by == "alice")

            let left = try await served.raw("DELETE", "/v1/session", page)
            #expect(left.fields["set-cookie"]?.contains("Max-Age=0") == true)
            #expect(try await served.raw("GET", "/v1/graphs", fields).status == 401)
        }
    }

    @Test func `a session allows what its token allows, and pages of others may use none`()
        async throws
    {
        try await ServedCluster.run(tokens: AccessTests.tokens) {
            (served: ServedCluster) async throws in
            _ = try await served.coordinator.submit(Submission(graph: .diamond))
            let cookie = try await Self.logIn(served, #"{"token": "\#(AccessTests.readToken)"}"#)
            let page = ["Cookie": cookie, "Operon-Page": "1"]
            let path = "/v1/graphs/diamond/suspend"
            #expect(try await served.json("POST", path, "{}", page).status == 403)
            #expect(try await served.raw("GET", "/v1/graphs", page).status == 200)
            for foreign in [
                ["Origin": "http://127.0.0.1:1"], ["Origin": "https://example.com"],
                ["Origin": "null"], ["Sec-Fetch-Site": "same-site"],
                ["Sec-Fetch-Site": "cross-site"],
            ] {
                let fields = page.merging(foreign) { $1 }
                #expect(try await served.raw("GET", "/v1/graphs", fields).status == 403)
            }
            // A link on such a page leads to ours.
            for path in ["/", "/page/page.js"] {
                let fields = ["Cookie": cookie, "Sec-Fetch-Site": "same-site"]
                let answer = try await served.raw("GET", path, fields.merging(Self.html) { $1 })
                #expect(answer.status == 200, "\(path)")
            }
            // Two cookies of one name: one of them may be another's.
            let twice = ["Cookie": "\(cookie); \(cookie)x"]
            #expect(try await served.raw("GET", "/v1/graphs", twice).status == 401)
            // A wrong token is not made good by a cookie.
            let mixed = page.merging(["Authorization": "Bearer wrong"]) { $1 }
            #expect(try await served.raw("GET", "/v1/graphs", mixed).status == 401)
        }
    }

    @Test func `whoever logs in often ends sessions of their own`() async throws {
        try await ServedCluster.run(tokens: AccessTests.tokens) {
            (served: ServedCluster) async throws in
            let alice = try await Self.logIn(served, #"{"token": "\#(AccessTests.token)"}"#)
            let body = #"{"token": "\#(AccessTests.readToken)"}"#
            let first = try await Self.logIn(served, body)
            for _ in 0..<100 { _ = try await Self.logIn(served, body) }
            #expect(try await served.raw("GET", "/v1/graphs", ["Cookie": first]).status == 401)
            #expect(try await served.raw("GET", "/v1/graphs", ["Cookie": alice]).status == 200)
        }
    }

    @Test func `a code logs a browser in once`() async throws {
        try await ServedCluster.run(tokens: AccessTests.tokens) {
            (served: ServedCluster) async throws in
            #expect(try await served.raw("POST", "/v1/session/codes").status == 401)
            let reader = ["Authorization": "Bearer \(AccessTests.readToken)"]
            let answer = try await served.raw("POST", "/v1/session/codes", reader)
            #expect(answer.status == 201)
            let made = try JSONDecoder().decode(SessionCodeView.self, from: Data(answer.body))
            let body = #"{"code": "\#(made.code)"}"#
            let cookie = try await Self.logIn(served, body)
            let session = try await served.raw("GET", "/v1/session", ["Cookie": cookie])
            #expect(try Self.scope(session) == "read")
            let again = try await served.json("POST", "/v1/session", body)
            #expect(again.status == 401)
            #expect(String(decoding: again.body, as: UTF8.self).contains("operon page"))
        }
    }

    @Test func `where no token is needed, nobody logs in`() async throws {
        try await ServedCluster.run { (served: ServedCluster) async throws in
            let answer = try await served.raw("GET", "/v1/session")
            #expect(String(decoding: answer.body, as: UTF8.self).contains(#""needsToken": false"#))
            let logIn = try await served.json("POST", "/v1/session", #"{"token": "x"}"#)
            #expect(logIn.status == 200 && logIn.fields["set-cookie"] == nil)
            #expect(try await served.raw("POST", "/v1/session/codes").status == 409)
            let rebound = ["Host": "evil.example", "Accept": "text/html"]
            #expect(try await served.raw("GET", "/", rebound).status == 403)
        }
    }
}
