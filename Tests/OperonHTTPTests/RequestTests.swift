import Foundation
import NIOCore
import OperonHTTP
import OperonModel
import OperonPorts
import Testing

/// What is wrong with a request is said, as a problem, and never an error of the server.
@Suite(.timeLimit(.minutes(5))) struct RequestTests {
    private func expectProblem(
        _ answer: RawAnswer,
        _ status: Int,
        _ words: String...,
        at location: SourceLocation = #_sourceLocation
    ) {
        #expect(answer.status == status, "\(answer.text)", sourceLocation: location)
        #expect(
            answer.fields["content-type"] == "application/problem+json",
            sourceLocation: location
        )
        #expect(answer.text.hasSuffix("\n"), sourceLocation: location)
        let problem = try? JSONDecoder().decode(Problem.self, from: Data(answer.body))
        #expect(problem?.status == status, sourceLocation: location)
        #expect(problem?.title == answer.reason, sourceLocation: location)
        for word in words {
            #expect(
                problem?.detail.contains(word) == true,
                "\(answer.text)",
                sourceLocation: location
            )
        }
    }

    @Test func `what is not there, and methods that are not for it`() async throws {
        try await ServedCluster.run { (served: ServedCluster) async throws in
            expectProblem(try await served.raw("GET", "/nothing"), 404, "openapi.json")
            let greeting = try await served.raw("GET", "/")
            #expect(greeting.status == 200)
            #expect(greeting.text.hasPrefix("This is the API of an Operon coordinator. In"))
            expectProblem(try await served.raw("POST", "/"), 405, "GET, HEAD")
            expectProblem(try await served.raw("GET", "//"), 404)
            expectProblem(try await served.raw("GET", "/v1/graphs/"), 404)
            expectProblem(try await served.raw("GET", "/v1/graphs/none"), 404, "none")
            let answer = try await served.raw("DELETE", "/v1/graphs")
            expectProblem(answer, 405, "GET, HEAD, POST")
            #expect(answer.fields["allow"] == "GET, HEAD, POST")
            expectProblem(try await served.raw("OPTIONS", "/v1/graphs"), 405)
            #expect(
                try await served.raw("OPTIONS", "/v1/graphs").fields["access-control-allow-origin"]
                    == nil
            )
            let head = try await served.raw("HEAD", "/v1/graphs")
            #expect(head.status == 200)
            #expect(head.body.isEmpty)
            #expect(head.fields["content-length"] != "0")
        }
    }

    @Test func `a path or a query that makes no sense names what is wrong`() async throws {
        try await ServedCluster.run { (served: ServedCluster) async throws in
            for path in ["/v1/graphs/%", "/v1/graphs/%zz", "/v1/graphs/%ff"] {
                expectProblem(try await served.raw("GET", path), 400, "percent")
            }
            let queries = [
                ("?limit=0", "limit"), ("?limit=100000", "limit"), ("?limit=x", "limit"),
                ("?after=-1", "after"), ("?after=99999999999", "after"), ("?color=1", "color"),
                ("?status=odd", "status"), ("?name=%ff", "query"), ("?limit=1&limit=2", "limit"),
            ]
            for (query, word) in queries {
                expectProblem(try await served.raw("GET", "/v1/graphs" + query), 400, word)
            }
            for kinds in ["nosuch", "started,nosuch", "", "started,", "Started"] {
                let path = "/v1/events?kind=" + kinds
                expectProblem(try await served.raw("GET", path), 400, "kind")
            }
            expectProblem(try await served.raw("GET", "/v1/events?graph="), 400, "graph")
            for outcomes in ["nosuch", "failed,", ""] {
                let path = "/v1/events?outcome=" + outcomes
                expectProblem(try await served.raw("GET", path), 400, "outcome")
            }
            for (query, word) in [
                ("tail=-1", "tail"), ("since=yesterday", "since"), ("attempt=x", "attempt"),
                ("follow=maybe", "follow"),
            ] {
                for path in ["/v1/graphs/0/log?", "/v1/graphs/0/operations/0/log?"] {
                    expectProblem(try await served.raw("GET", path + query), 400, word)
                }
            }
        }
    }

    @Test func `a body that is not encoded as its head says is refused as a mistake of its sender`()
        async throws
    {
        try await ServedCluster.run { (served: ServedCluster) async throws in
            let head =
                "POST /v1/graphs HTTP/1.1\r\nHost: localhost\r\n"
                + "Content-Type: application/json\r\n"
            for rest in [
                "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
                "Transfer-Encoding: chunked\r\n\r\n2\r\n{}x\r\n0\r\n\r\n",
                "Transfer-Encoding: gzip\r\n\r\n{}",
                "Transfer-Encoding: chunked, gzip\r\n\r\n{}",
                "Transfer-Encoding: nonsense\r\n\r\n{}",
            ] {
                let bytes = Array((head + rest).utf8)
                let answer = RawAnswer(try await RawSocket.ask(served.port, bytes))
                expectProblem(answer, 400)
            }
            #expect(await served.tap.submissions.isEmpty)
        }
    }

    @Test func `names reach no terminal with what it would act on`() async throws {
        try await ServedCluster.run { (served: ServedCluster) async throws in
            let name = "a\u{9B}31m\u{7F}\u{202E}b"
            // The coordinator takes no such name; one of another version might.
            let json = String(decoding: try JSONEncoder().encode(name), as: UTF8.self)
            await served.tap.rewrite(#""plain""#, as: json)
            _ = try await served.coordinator.submit(Submission(graph: .of("plain", [("x", [])])))
            let answer = try await served.raw("GET", "/v1/graphs/0")
            #expect(answer.text.contains(#""name": "a\u009b31m\u007f\u202eb""#))
            let client = try await served.client { try await $0.graph("0") }
            #expect(client.name == name)
        }
    }

    @Test func `a body is read strictly`() async throws {
        try await ServedCluster.run { (served: ServedCluster) async throws in
            _ = try await served.coordinator.submit(Submission(graph: .diamond))
            let path = "/v1/graphs/diamond/suspend"
            let bodies = [
                ("{\"reasn\":\"x\"}", "reasn"), ("{\"reason\":1}", "reason"), ("[]", "object"),
                ("{\"until\":\"tomorrow\"}", "tomorrow"), ("{", "JSON"),
                ("{\"reason\":null}", "null"),
                ("{\"wait\":-1}", "wait"), ("{\"wait\":1e300}", "wait"),
                ("\u{FEFF}nonsense", "JSON"),
                (String(repeating: "[", count: 100_000), "JSON"),
            ]
            for (body, word) in bodies {
                expectProblem(try await served.json("POST", path, body), 400, word)
            }
            expectProblem(
                try await served.raw(
                    "POST",
                    path,
                    ["Content-Type": "application/json"],
                    body: [123, 34, 255, 34, 58, 49, 125]
                ),
                400
            )
            expectProblem(try await served.json("POST", "/v1/graphs/0/resume", "{}"), 400, "body")
            expectProblem(try await served.raw("PUT", "/v1/graphs/0/operations/0/priority"), 400)
            let again = "/v1/graphs/0/rerun"
            expectProblem(try await served.json("POST", again, "{}"), 400, "operations")
            let none = #"{"operations":[]}"#
            expectProblem(try await served.json("POST", again, none), 400, "Name the operations")
            expectProblem(try await served.json("POST", again, none, ["traceparent": ""]), 400)
            #expect(await served.tap.calls.contains { $0.name == "suspend" } == false)
            #expect(try await served.raw("POST", path).status == 200)
        }
    }

    @Test func `a completion is read strictly, and its output as it was written`() async throws {
        try await ServedCluster.run { (served: ServedCluster) async throws in
            try await served.submitExternal("g")
            let path = "/v1/graphs/g/operations/a/complete"
            let bodies = [
                ("{}", "outcome"), (#"{"outcome":"odd"}"#, "outcome"),
                (#"{"outcome":"failed"}"#, "error"),
                (#"{"outcome":"failed","error":{}}"#, "message"),
                (#"{"outcome":"failed","error":{"code":"deadline"}}"#, "deadline"),
                (#"{"outcome":"failed","error":{"message":"m","payload":"*"}}"#, "base 64"),
                (#"{"outcome":"failed","error":{"message":"m"},"output":1}"#, "output"),
                (#"{"outcome":"succeeded","reason":"r"}"#, "reason"),
                (#"{"outcome":"succeeded","output":1,"payload":{"base64":""}}"#, "payload"),
                (#"{"outcome":"succeeded","payload":{"base64":"","type":""}}"#, "type"),
                (#"{"outcome":"succeeded","attempt":"1"}"#, "attempt"),
                (#"{"outcome":"succeeded","outptu":1}"#, "outptu"),
            ]
            for (body, word) in bodies {
                expectProblem(try await served.json("POST", path, body), 400, word)
            }
            expectProblem(try await served.raw("POST", path), 400, "empty")
            let other = #"{"outcome":"succeeded","attempt":"9.9"}"#
            expectProblem(try await served.json("POST", path, other), 409, "9.9")
            #expect(await served.tap.completions.isEmpty)

            let outputs = [
                "1.0", "18446744073709551616", "null", #""a\"}\\""#, "{}",
                #"[{"output": 1, "b": [",", "}"]}, true]"#,
            ]
            for (index, output) in outputs.enumerated() {
                try await served.submitExternal("g\(index)")
                let body = #"{"attempt":"1.\#(index + 2)" , "ou\u0074put" : \#(output) ,"#
                let answer = try await served.json(
                    "POST",
                    "/v1/graphs/g\(index)/operations/a/complete",
                    body + #" "outcome":"succeeded"}"#
                )
                #expect(answer.status == 200, "\(answer.text)")
                let bytes = Array(output.utf8)
                let completions = await served.tap.completions
                #expect(completions.last?.completion == .succeeded(Payload(bytes: bytes)))
            }
        }
    }

    @Test func `a graph of the wrong type or form is refused with line and thing`() async throws {
        try await ServedCluster.run { (served: ServedCluster) async throws in
            let yaml = "operations:\n  a: {run: ls, colour: red}\n"
            let form = ["Content-Type": "application/x-www-form-urlencoded"]
            expectProblem(try await served.json("POST", "/v1/graphs", yaml, form), 415, "yaml")
            let latin = ["Content-Type": "application/yaml; charset=latin1"]
            expectProblem(try await served.json("POST", "/v1/graphs", yaml, latin), 415, "latin1")
            let zip = ["Content-Type": "application/yaml", "Content-Encoding": "gzip"]
            expectProblem(try await served.json("POST", "/v1/graphs", yaml, zip), 415, "gzip")
            let good = ["Content-Type": "application/yaml; charset=\"utf-8\""]
            expectProblem(
                try await served.json("POST", "/v1/graphs", yaml, good),
                400,
                "colour",
                "2:"
            )
            expectProblem(try await served.raw("POST", "/v1/graphs", good), 400, "empty")
            let cycle =
                "operations:\n  a: {run: x, dependencies: [b]}\n  b: {run: x, dependencies: [a]}\n"
            expectProblem(try await served.json("POST", "/v1/graphs", cycle, good), 400, "cycle")
            let fine = "operations:\n  a: {run: ls}\n"
            let answer = try await served.json(
                "POST",
                "/v1/graphs?name=%C3%BC+1&open=true",
                fine,
                good
            )
            #expect(answer.status == 201)
            #expect(answer.text.contains("\"name\": \"ü 1\""))
            #expect(answer.text.contains("\"isOpen\": true"))
        }
    }

    @Test func `values of parameters come in the query`() async throws {
        try await ServedCluster.run { (served: ServedCluster) async throws in
            let yaml = ["Content-Type": "application/yaml"]
            let text = """
                name: n-${day}
                parameters: { day: , width: 1 }
                operations: { a: { external: true } }

                """
            /// `values` percent-encoded.
            func submit(_ values: String) async throws -> RawAnswer {
                let query = values.utf8.map { "%" + String(0x100 | Int($0), radix: 16).dropFirst() }
                let path = "/v1/graphs?open=true&parameters=" + query.joined()
                return try await served.json("POST", path, text, yaml)
            }
            let answer = try await submit(#"{"day": "ü", "width": 2}"#)
            #expect(answer.status == 201, "\(answer.text)")
            #expect(answer.text.contains("\"name\": \"n-ü\""))
            let more = "parameters: { x: b }\noperations: { '${x}': { external: true } }\n"
            let path = "/v1/graphs/n-%C3%BC/operations?parameters=%7B%22x%22:%22c%22%7D"
            #expect(try await served.json("POST", path, more, yaml).status == 201)
            #expect(try await served.raw("GET", "/v1/graphs/n-%C3%BC/operations/c").status == 200)

            expectProblem(try await submit("{}"), 400, "graph:2:15: parameter “day” has no default")
            expectProblem(
                try await submit(#"{"day": "x", "width": "y"}"#),
                400,
                "parameters:1:23: “width” must be an integer such as 42, not “y”"
            )
            expectProblem(try await submit("[]"), 400, "a map from names to values, not a list")
            expectProblem(try await submit("day: x"), 400, "parameters:1:1:")
            expectProblem(try await submit(#"{"dya": "x"}"#), 400, "did you mean “day”?")
        }
    }

    @Test func `a body over its limit is refused, whether it says its length or not`() async throws
    {
        var limits = HTTPLimits()
        limits.graphBytes = 1_000
        limits.bodyBytes = 100
        try await ServedCluster.run(limits: limits) { (served: ServedCluster) async throws in
            let type = ["Content-Type": "application/json"]
            let long = [UInt8](repeating: 32, count: 2_000)
            expectProblem(try await served.raw("POST", "/v1/graphs", type, body: long), 413, "1000")
            expectProblem(
                try await served.raw("POST", "/v1/graphs/0/cancel", type, body: long),
                413,
                "100 "
            )
            let pieces = "7d0\r\n" + String(repeating: " ", count: 2_000) + "\r\n0\r\n\r\n"
            let request =
                "POST /v1/graphs HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                + "application/json\r\nTransfer-Encoding: chunked\r\n\r\n" + pieces
            let bytes = try await RawSocket.ask(served.port, Array(request.utf8))
            expectProblem(RawAnswer(bytes), 413, "1000")
            try await served.client { client in
                let graph = GraphDescription.of("long", (0..<1_000).map { ("operation-\($0)", []) })
                let error = await #expect(throws: ClientError.self) {
                    _ = try await client.submit(Submission(graph: graph))
                }
                #expect(error?.code == .tooLarge || error?.code == .unreachable)
            }
        }
    }

    @Test func `what is no HTTP gets a problem as well`() async throws {
        try await ServedCluster.run { (served: ServedCluster) async throws in
            for text in [
                "nonsense\r\n\r\n", "GET / HTTP/1.1\r\nX: " + String(repeating: "x", count: 99_999),
            ] {
                let bytes = try await RawSocket.ask(served.port, Array(text.utf8))
                expectProblem(RawAnswer(bytes), 400, "HTTP/1.1")
            }
        }
    }

    @Test func `a request has at most a hundred fields`() async throws {
        try await ServedCluster.run { (served: ServedCluster) async throws in
            for (count, status) in [(100, 200), (101, 400), (10_000, 400)] {
                let fields =
                    ["Host: localhost\r\n", "Connection: close\r\n"]
                    + (2..<count).map { "X\($0): 1\r\n" }
                let text = "GET /v1/status HTTP/1.1\r\n" + fields.joined() + "\r\n"
                let answer = RawAnswer(try await RawSocket.ask(served.port, Array(text.utf8)))
                #expect(answer.status == status, "\(count) fields")
            }
        }
    }

    @Test func `who says nothing is cut off`() async throws {
        var limits = HTTPLimits()
        limits.idleTime = .milliseconds(100)
        try await ServedCluster.run(limits: limits) { (served: ServedCluster) async throws in
            // Returns when the server closes.
            let bytes = try? await RawSocket.ask(
                served.port,
                Array("POST /v1/graphs HTTP/1.1\r\nHost: localhost\r\nContent-Le".utf8)
            )
            #expect(bytes?.isEmpty != false)
        }
    }

    @Test func `a client that waits to be asked for its body is asked`() async throws {
        try await ServedCluster.run { (served: ServedCluster) async throws in
            let body = "{\"operations\":{\"a\":{\"run\":\"ls\"}}}"
            let head =
                "POST /v1/graphs HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                + "Content-Type: application/json\r\nExpect: 100-continue\r\n"
                + "Content-Length: \(body.utf8.count)\r\n\r\n"
            let text = try await RawSocket.open(served.port) { inbound, outbound in
                try await outbound.write(.init(string: head))
                var text = ""
                for try await piece in inbound {
                    if text.isEmpty { try await outbound.write(.init(string: body)) }
                    text += String(buffer: piece)
                }
                return text
            }
            #expect(text.hasPrefix("HTTP/1.1 100 Continue\r\n\r\n"))
            #expect(text.contains("HTTP/1.1 201 Created"))
        }
    }

    @Test func `answers tell browsers to do nothing with them`() async throws {
        try await ServedCluster.run { (served: ServedCluster) async throws in
            _ = try await served.coordinator.submit(Submission(graph: .diamond))
            try await served.cluster.join("worker", slots: 2)
            let html = Payload(contentType: "text/html", bytes: Array("<script>".utf8))
            try await served.cluster.finish(OperationSelector("0", "top"), output: html)
            let split = Payload(contentType: "a/b\r\nX-Bad: 1", bytes: [1])
            try await served.cluster.finish(OperationSelector("0", "left"), output: split)
            let answer = try await served.raw("GET", "/v1/graphs/0/operations/top/output")
            #expect(answer.fields["content-type"] == "text/html")
            #expect(answer.fields["x-content-type-options"] == "nosniff")
            #expect(answer.fields["content-disposition"] == "attachment")
            #expect(answer.fields["content-security-policy"]?.contains("sandbox") == true)
            let bad = try await served.raw("GET", "/v1/graphs/0/operations/left/output")
            #expect(bad.fields["content-type"] == "application/octet-stream")
            #expect(bad.fields["x-bad"] == nil)
            #expect(try await served.raw("GET", "/v1/graphs/0/operations/end/output").status == 204)
        }
    }

    @Test func `an answer is pleasant to read`() async throws {
        try await ServedCluster.run { (served: ServedCluster) async throws in
            let answer = try await served.raw("GET", "/v1/workers")
            #expect(answer.text == "{\n  \"workers\": []\n}\n")
            _ = try await served.coordinator.submit(
                Submission(graph: .of("q\"[{:,\\", [("a", [])]))
            )
            let graph = try await served.raw("GET", "/v1/graphs/0")
            #expect(graph.text.contains("\n  \"name\": \"q\\\"[{:,\\\\\",\n"))
            let view = try JSONDecoder().decode(GraphView.self, from: Data(graph.body))
            #expect(view == (try await served.coordinator.graph("0")))
        }
    }
}
