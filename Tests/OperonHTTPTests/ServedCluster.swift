import Foundation
import Logging
import NIOCore
import OperonCore
import OperonGraphFile
import OperonHTTP
import OperonModel
import OperonPorts
import OperonTesting
import Testing

/// A coordinator in memory whose clock stands still, the real server around it on a free port, and
/// clients of it.
struct ServedCluster: Sendable {
    let cluster: TestCluster
    /// The clock of the coordinator and of the server.
    let clock: ManualClock
    /// What the clients called.
    let tap: ClientTap
    let server: HTTPServer
    let address: ListenAddress
    let scheme: String

    var port: Int { address.tcp?.port ?? 0 }
    var url: String { "\(scheme)://\(address)" }
    /// As the server sees it.
    var coordinator: any CoordinatorClient { cluster.client(of: "") }

    /// Runs something with a server that stops at the end, however it ends.
    static func run(
        tls: TLSFiles? = nil,
        tokens: String? = nil,
        health: HTTPHealth = .good,
        limits: HTTPLimits = HTTPLimits(),
        storedEvents: Int? = nil,
        _ body: @Sendable @escaping (ServedCluster) async throws -> Void
    ) async throws {
        let tokens = try tokens.map { text in
            try AccessTokens(file: try Scratch.file("tokens", text, mode: 0o600))
        }
        var api = try TestAPI.configuration(tls: tls, tokens: tokens ?? AccessTokens())
        api.limits = limits
        let scheme = tls == nil ? "http" : "https"
        try await run(api, health, scheme: scheme, storedEvents: storedEvents, body)
    }

    static func run(
        _ api: HTTPServerConfiguration,
        _ health: HTTPHealth = .good,
        scheme: String = "unix",
        storedEvents: Int? = nil,
        _ body: @Sendable @escaping (ServedCluster) async throws -> Void
    ) async throws {
        var options = TestCluster.Options()
        let clock = ManualClock()
        options.clock = clock
        if let storedEvents { options.scheduler.limits.storedEvents = storedEvents }
        try await TestCluster.run(options) { cluster in
            let tap = ClientTap()
            try await TestAPI.serve(api, health: health, wall: { clock.now }) { caller in
                TappedClient(cluster.client(of: caller), caller: caller, tap)
            } _: { server, address in
                try await body(
                    ServedCluster(
                        cluster: cluster,
                        clock: clock,
                        tap: tap,
                        server: server,
                        address: address,
                        scheme: scheme
                    )
                )
            }
        }
    }

    /// Something with a client.
    func client<Value: Sendable>(
        token: String? = nil,
        authority: String? = nil,
        _ change: (inout HTTPCoordinatorClient.Configuration) -> Void = { _ in },
        _ body: (HTTPCoordinatorClient) async throws -> Value
    ) async throws -> Value {
        var configuration = HTTPCoordinatorClient.Configuration(url: url, token: token)
        configuration.certificateAuthority = authority
        configuration.pause = .milliseconds(5)
        change(&configuration)
        return try await Self.client(configuration, body)
    }

    static func client<Value: Sendable>(
        _ configuration: HTTPCoordinatorClient.Configuration,
        _ body: (HTTPCoordinatorClient) async throws -> Value
    ) async throws -> Value {
        let client = try HTTPCoordinatorClient(configuration, codec: GraphFileCodec())
        do {
            let value = try await body(client)
            await client.shutDown()
            return value
        } catch {
            await client.shutDown()
            throw error
        }
    }

    /// A graph whose one operation, “a”, waits to be completed.
    func submitExternal(_ name: String) async throws {
        let operation = OperationDescription(name: "a", work: .external(input: .empty))
        let graph = GraphDescription(name: name, operations: [operation])
        _ = try await coordinator.submit(Submission(graph: graph))
        try await cluster.wait(for: OperationSelector(name, "a"), .executing)
    }

    /// What a raw request gets: status, fields in lower case, and body.
    func raw(
        _ method: String,
        _ path: String,
        _ fields: [String: String] = [:],
        body: [UInt8] = []
    ) async throws -> RawAnswer {
        var head = "\(method) \(path) HTTP/1.1\r\nConnection: close\r\n"
        if fields["Host"] == nil { head += "Host: \(address)\r\n" }
        for (name, value) in fields.sorted(by: { $0.key < $1.key }) {
            head += "\(name): \(value)\r\n"
        }
        if !body.isEmpty, fields["Content-Length"] == nil {
            head += "Content-Length: \(body.count)\r\n"
        }
        return try await RawAnswer(RawSocket.ask(port, Array(head.utf8) + [13, 10] + body))
    }

    func json(
        _ method: String,
        _ path: String,
        _ text: String,
        _ fields: [String: String] = [:]
    ) async throws -> RawAnswer {
        var fields = fields
        fields["Content-Type"] = fields["Content-Type"] ?? "application/json"
        return try await raw(method, path, fields, body: Array(text.utf8))
    }
}

extension HTTPHealth {
    static let good = HTTPHealth(
        healthz: { HealthAnswer(isGood: true, text: "all is well") },
        readyz: { HealthAnswer(isGood: false, text: "the store is full") },
        metrics: { "operon_up 1\n" }
    )
}

extension GraphDescription {
    /// Operations that do nothing, each with what it depends on.
    static func of(
        _ name: String,
        _ operations: [(name: String, on: [String])]
    ) -> GraphDescription {
        GraphDescription(
            name: name,
            operations: operations.map { operation in
                var description = OperationDescription(name: operation.name, work: .nothing)
                description.dependencies = operation.on.map { DependencyDescription($0) }
                return description
            }
        )
    }

    static var diamond: GraphDescription {
        .of(
            "diamond",
            [("top", []), ("left", ["top"]), ("right", ["top"]), ("end", ["left", "right"])]
        )
    }
}

extension OperationSelector {
    init(_ graph: String, _ operation: String) {
        self.init(graph: graph, operation: operation)
    }
}

/// Files that end with the tests' process.
enum Scratch {
    static func folder() throws -> URL {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("operon-http-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        return folder
    }

    static func file(_ name: String, _ text: String, mode: Int) throws -> String {
        let file = try folder().appendingPathComponent(name)
        try text.write(to: file, atomically: false, encoding: .utf8)
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: file.path)
        return file.path
    }
}
