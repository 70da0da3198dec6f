import ClusterKit
import Foundation
import OperonHTTP
import OperonModel
import OperonPorts
import OperonTesting
import Testing

/// What each role allows, at each route, and until when.
@Suite(.timeLimit(.minutes(5))) struct RoleTests {
    /// One token of each role, one that expired, and one that is bound to queues.
    static let tokens = """
        old:\(token("old"))
        seer:\(token("seer")) read
        ann:\(token("ann")) submit
        bob:\(token("bob")) submit queues=small,night%20run
        operator:\(token("operator")) operate expires=2026-03-01T00:00:00Z
        root:\(token("root")) administer
        gone:\(token("gone")) administer expires=2026-01-01T00:00:00Z
        """

    static func token(_ name: String) -> String { "token-of-\(name)-0123456789" }

    private static func bearer(_ name: String) -> [String: String] {
        ["Authorization": "Bearer \(token(name))", "Content-Type": "application/json"]
    }

    /// What each holder of a token may do.
    private static let roles: [(name: String, role: AccessRole)] = [
        ("seer", .view), ("ann", .submit), ("bob", .submit), ("old", .operate),
        ("operator", .operate), ("root", .administer),
    ]

    @Test func `every route wants a valid token, of a role that is high enough`() async throws {
        try await ServedCluster.run(tokens: Self.tokens) { (served: ServedCluster) async throws in
            for route in HTTPServer.routes {
                func status(_ authorization: String?) async throws -> Int {
                    var fields = ["Content-Type": "application/json"]
                    fields["Authorization"] = authorization
                    return try await served.raw(route.method, AccessTests.path(route), fields)
                        .status
                }
                guard let needed = route.access.role else {
                    try await Self.checkOpen(route, status)
                    continue
                }
                let token = Self.token("root")
                let wrong = [
                    nil, "", "Bearer", "Bearer ", "Bearer x", "Basic \(token)",
                    "Bearer \(token)x", "Bearer \(token.dropLast())", token,
                    "Bearer \(token.uppercased())", "Bearer \(Self.token("gone"))",
                ]
                for authorization in wrong {
                    let status = try await status(authorization)
                    #expect(status == 401, "\(route.method) \(route.pattern) \(status)")
                }
                for (name, role) in Self.roles where role < needed {
                    let status = try await status("Bearer \(Self.token(name))")
                    #expect(status == 403, "\(name) \(route.method) \(route.pattern) \(status)")
                }
                // A stream has no end; what is asked without its body is checked the same.
                guard !["/v1/events", "/v1/progress"].contains(route.pattern) else { continue }
                for (name, role) in Self.roles where role >= needed {
                    let status = try await status("bearer \(Self.token(name))")
                    let isMeant = ![401, 403].contains(status)
                    #expect(isMeant, "\(name) \(route.method) \(route.pattern) \(status)")
                }
            }
        }
    }

    private static func checkOpen(
        _ route: Route,
        _ status: (String?) async throws -> Int
    ) async throws {
        if route.access == .signed {
            // A token is no signature.
            #expect(try await status("Bearer \(token("root"))") == 401)
            return
        }
        // Nothing was sent to log in with, and no file is called “1”.
        let allowed = [200, 503, route.body == .none ? 404 : 400]
        #expect(allowed.contains(try await status(nil)), "\(route.pattern)")
    }

    @Test func `an address that is no route tells nothing without a token`() async throws {
        try await ServedCluster.run(tokens: Self.tokens) { (served: ServedCluster) async throws in
            let reader = Self.bearer("seer")
            #expect(try await served.raw("HEAD", "/v1/events", reader).status == 200)
            #expect(try await served.raw("GET", "/nothing").status == 401)
            #expect(try await served.raw("DELETE", "/v1/graphs").status == 401)
            let refused = try await served.raw("GET", "/v1/status?token=\(Self.token("root"))")
            #expect(refused.status == 401)
            #expect(refused.fields["www-authenticate"] == "Bearer realm=\"operon\"")
        }
    }

    @Test func `a refusal says which role is needed, and which the token has`() async throws {
        try await ServedCluster.run(tokens: Self.tokens) { (served: ServedCluster) async throws in
            try await served.client(token: Self.token("seer")) { client in
                let error = await #expect(throws: ClientError.self) {
                    _ = try await client.resume(.graph("0"))
                }
                #expect(error?.code == .forbidden)
                #expect(
                    error?.message == "This needs the role “operate”. "
                        + "The token of “seer” has the role “view”."
                )
            }
            try await served.client(token: Self.token("gone")) { client in
                let error = await #expect(throws: ClientError.self) {
                    _ = try await client.queues()
                }
                #expect(error?.code == .unauthorized)
                #expect(
                    error?.message == "The token of “gone” expired at 2026-01-01T00:00:00Z: "
                        + "ask for a new one."
                )
            }
        }
    }

    @Test func `a token stops at the second in which it expires, and so does its session`()
        async throws
    {
        try await ServedCluster.run(tokens: Self.tokens) { (served: ServedCluster) async throws in
            let login = try await served.json(
                "POST",
                "/v1/session",
                #"{"token":"\#(Self.token("operator"))"}"#
            )
            let cookie = try #require(login.fields["set-cookie"]?.split(separator: ";").first)
            func statuses() async throws -> [Int] {
                [
                    try await served.raw("GET", "/v1/status", Self.bearer("operator")).status,
                    try await served.raw("GET", "/v1/status", ["Cookie": String(cookie)]).status,
                ]
            }
            #expect(try await statuses() == [200, 200])
            let expires = try #require(DateText.moment("2026-03-01T00:00:00Z"))
            served.clock.advance(by: expires - served.clock.now - .nanoseconds(1))
            #expect(try await statuses() == [200, 200])
            served.clock.advance(by: .nanoseconds(1))
            #expect(try await statuses() == [401, 401])
            let again = try await served.json(
                "POST",
                "/v1/session",
                #"{"token":"\#(Self.token("operator"))"}"#
            )
            #expect(again.status == 401)
            #expect(again.text.contains("expired at 2026-03-01T00:00:00Z"))
        }
    }

    @Test func `a stream ends when its token expires`() async throws {
        let seconds = Int64(Date().timeIntervalSince1970) + 2
        let soon = DateText.text(WallTime(nanosecondsSince1970: seconds * 1_000_000_000))
        let tokens = "soon:\(Self.token("soon")) view expires=\(soon)"
        let file = try Scratch.file("tokens", tokens, mode: 0o600)
        let api = try TestAPI.configuration(tokens: try AccessTokens(file: file))
        try await TestCluster.run { cluster in
            try await TestAPI.serve(api) {
                cluster.client(of: $0)
            } _: { server, address in
                var configuration = HTTPCoordinatorClient.Configuration(
                    url: "http://\(address)",
                    token: Self.token("soon")
                )
                configuration.patience = .zero
                try await ServedCluster.client(configuration) { client in
                    let error = await #expect(throws: ClientError.self) {
                        for try await _ in try await client.statusUpdates() {}
                    }
                    #expect(error?.code == .unauthorized)
                }
                #expect(server.streamCount == 0)
            }
        }
    }

    @Test func `who may only submit changes the graphs of its own token alone`() async throws {
        try await ServedCluster.run(tokens: Self.tokens) { (served: ServedCluster) async throws in
            var submission = Submission(graph: .diamond)
            submission.isOpen = true
            let ofOther = try await served.client(token: Self.token("operator")) {
                [submission] in try await $0.submit(submission)
            }
            try await served.client(token: Self.token("ann")) { [submission] client in
                let own = try await client.submit(submission)
                let more = Submission(graph: .of("more", [("later", [])]))
                _ = try await client.add(more, to: "diamond")
                _ = try await client.cancel(
                    .operation(OperationSelector("diamond", "later")),
                    CancelRequest()
                )
                #expect(try await client.close(graph: "@latest").id == own.id)
                _ = try await client.cancel(.graph("\(own.id)"), CancelRequest())
                for change in [
                    { _ = try await client.add(more, to: "\(ofOther.id)") },
                    { _ = try await client.close(graph: "\(ofOther.id)") },
                    { _ = try await client.cancel(.graph("\(ofOther.id)"), CancelRequest()) },
                    {
                        let operation = OperationSelector("\(ofOther.id)", "top")
                        _ = try await client.cancel(.operation(operation), CancelRequest())
                    },
                ] as [() async throws -> Void] {
                    let error = await #expect(throws: ClientError.self) { try await change() }
                    #expect(error?.code == .forbidden)
                    #expect(error?.message.hasSuffix("graph 0 is not one.") == true)
                }
                let error = await #expect(throws: ClientError.self) {
                    _ = try await client.suspend(.graph("\(own.id)"), SuspendRequest())
                }
                #expect(error?.message.contains("needs the role “operate”") == true)
            }
            #expect(try await served.coordinator.graph("\(ofOther.id)").isOpen)
        }
    }

    @Test func `a token submits to its queues alone`() async throws {
        try await ServedCluster.run(tokens: Self.tokens) { (served: ServedCluster) async throws in
            try await served.client(token: Self.token("bob")) { client in
                func graph(_ queues: String...) -> GraphDescription {
                    var graph = GraphDescription.of("g", queues.map { ("of \($0)", []) })
                    for (place, queue) in queues.enumerated() {
                        graph.operations[place].queue = queue
                    }
                    return graph
                }
                var submission = Submission(graph: graph("small", "night run"))
                submission.isOpen = true
                let made = try await client.submit(submission)
                var more = graph("small")
                more.operations[0].name = "later"
                _ = try await client.add(Submission(graph: more), to: "\(made.id)")
                let error = await #expect(throws: ClientError.self) {
                    _ = try await client.submit(Submission(graph: graph("small", "large")))
                }
                #expect(error?.code == .forbidden)
                #expect(
                    error?.message == "The token of “bob” does not allow this: it may submit to "
                        + "“small”, “night run”, and “of large” is in the queue “large”."
                )
                var settings = graph("small")
                settings.queues = [QueueSettings(name: "large", maxConcurrentOperationCount: 0)]
                var keys = graph("small")
                keys.keys = [KeySettings(name: "database", limit: 1_000)]
                for refused in [settings, keys, graph("default"), graph("Small"), graph("small ")] {
                    let submission = Submission(graph: refused)
                    for change in [
                        { _ = try await client.submit(submission) },
                        { _ = try await client.add(submission, to: "\(made.id)") },
                        {
                            _ = try await client.resubmit(
                                submission,
                                of: "\(made.id)",
                                ResubmitOptions()
                            )
                        },
                    ] as [() async throws -> Void] {
                        let error = await #expect(throws: ClientError.self) { try await change() }
                        #expect(error?.code == .forbidden)
                    }
                }
            }
            #expect(try await served.coordinator.graphs(GraphQuery()).graphs.count == 1)
        }
    }

    @Test func `where no token is needed, any user operates and the own user administers`()
        async throws
    {
        try await ServedCluster.run { (served: ServedCluster) async throws in
            let answer = try await served.raw("GET", "/v1/session")
            let session = try JSONDecoder().decode(SessionView.self, from: Data(answer.body))
            #expect(session.role == .operate)
        }
        let socket = try Scratch.folder().path + "/operon.sock"
        try await ServedCluster.run(HTTPServerConfiguration(socket: socket)) {
            (served: ServedCluster) async throws in
            let head = "GET /v1/session HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            let answer = RawAnswer(try await RawSocket.ask(socket, head))
            let session = try JSONDecoder().decode(SessionView.self, from: Data(answer.body))
            #expect(session.role == .administer)
        }
    }
}
