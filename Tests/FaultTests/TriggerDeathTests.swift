import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import OperonFaultKit
import OperonModel
import OperonRuntime
import OperonSystem
import Testing

/// A coordinator with triggers is killed again and again, and started on the same file.
@Suite(.serialized, .ownBroker) struct TriggerDeathTests {
    /// How many times it is killed: `OPERON_TRIGGER_KILLS=500` takes some minutes.
    private static let kills =
        ProcessInfo.processInfo.environment["OPERON_TRIGGER_KILLS"].flatMap { Int($0) } ?? 12

    private static let graph = """
        name: run
        operations:
          a: { wait: 1ms }
        """

    /// Each with what fires it.
    private static let triggers = [
        ("tick", "on: { every: 1s }\nmissed: all"), ("fire", "on: event"),
        ("queue", "on: event\noverlap: queue\nmerge: collect"),
        ("after", "on: { graph: other }"),
        (
            "hook",
            "on: { webhook: { signature: github, secretEnvironment: \(TriggerLives.secretName), "
                + "perMinute: 60000 } }"
        ),
        ("message", "on: { message: user.orders }"),
        ("file", "on: { file: { path: FOLDER, pattern: '*.in' } }"),
        // Watched by a worker, which lives on.
        ("far", "on: { file: { path: FOLDER, pattern: '*.in' }, workers: { name: w1 } }"),
    ]

    @Test func `no firing that was acknowledged is lost, and none submits two graphs`()
        async throws
    {
        let broker = try #require(BrokerFixture.current)
        try await broker.declareQueue("user.orders")
        try await Workspace.run(broker: broker.url) { workspace in
            _ = try workspace.write("run.yaml", Self.graph)
            let other = Self.graph.replacing("name: run", with: "name: other")
            let file = try workspace.write("other.yaml", other)
            let folder = workspace.path("in")
            try FileManager.default.createDirectory(
                atPath: folder,
                withIntermediateDirectories: true
            )
            for (name, on) in Self.triggers {
                let on = on.replacing("FOLDER", with: folder)
                _ = try workspace.write("\(name).yaml", "name: \(name)\ngraph: run.yaml\n\(on)\n")
            }
            try workspace.startWorkers(1, slots: 4)
            let lives = TriggerLives(workspace, broker: try BrokerUsers(broker.url).coordinator)
            try await lives.start(killAt: nil)
            for (name, _) in Self.triggers {
                try await lives.call(["trigger", "add", workspace.path("\(name).yaml")])
            }
            let points = CrashPoint.allCases.filter { ![.inHand, .requestInHand].contains($0) }
            var generator = SystemRandomNumberGenerator()
            var fired = 0
            for number in 0..<Self.kills {
                lives.kill()
                let point = points[number % points.count]
                let count = Int.random(in: 1...8, using: &generator)
                try await lives.start(killAt: "\(point.rawValue):\(count)")
                try await broker.publish("{\"n\": \(fired)}", id: "m\(fired)", to: "user.orders")
                _ = try workspace.write("in/\(fired).in", "\(fired)")
                for name in ["fire", "queue"] {
                    try await lives.call([
                        "trigger", "fire", name, "--data", "\(fired)",
                        "--idempotency-key", "k\(fired)",
                    ])
                }
                try await lives.deliver("{\"n\": \(fired)}", id: "d\(fired)", to: "hook")
                try await lives.call(["submit", file, "--idempotency-key", "o\(fired)"])
                fired += 1
            }
            lives.kill()
            try await lives.start(killAt: nil)
            try await lives.call(["trigger", "suspend", "tick"])
            for name in ["message", "file", "far"] {
                try await lives.waitForFirings(fired, of: name)
            }
            let graphs = try await lives.waitUntilDone(Self.triggers.map(\.0))
            try await check(lives, graphs, fired)
            #expect(try await broker.messageCount("user.orders") == 0)
        }
    }

    @Test func `a worker that is killed while it watches is followed by another one`()
        async throws
    {
        let broker = try #require(BrokerFixture.current)
        try await Workspace.run(broker: broker.url) { workspace in
            _ = try workspace.write("run.yaml", Self.graph)
            let folder = workspace.path("in")
            try FileManager.default.createDirectory(
                atPath: folder,
                withIntermediateDirectories: true
            )
            let trigger = """
                name: far
                graph: run.yaml
                on: { file: { path: \(folder), pattern: '*.in' }, workers: {} }
                """
            let file = try workspace.write("far.yaml", trigger)
            var workers = try workspace.startWorkers(1, slots: 2)
            let lives = TriggerLives(workspace, broker: try BrokerUsers(broker.url).coordinator)
            try await lives.start(killAt: nil)
            try await lives.call(["trigger", "add", file])
            var files = 0
            for round in 1...4 {
                _ = try workspace.write("in/\(files).in", "")
                files += 1
                try await lives.waitForFirings(files, of: "far")
                // It follows after the lease of the other one, if that does not come back.
                workers += try workspace.startWorkers(1, slots: 2)
                workers[round - 1].signal(SIGKILL)
                if round == 2 {
                    lives.kill()
                    try await lives.start(killAt: nil)
                }
                _ = try workspace.write("in/\(files).in", "")
                files += 1
                try await lives.waitForFirings(files, of: "far")
            }
            let graphs = try await lives.waitUntilDone(["far"])
            #expect(graphs["trigger/far"] == files)
            #expect(try await lives.history(of: "far").first?.number == files)
        }
    }

    @Test func `what a worker has read fires the trigger under the next coordinator`()
        async throws
    {
        let broker = try #require(BrokerFixture.current)
        try await Workspace.run(broker: broker.url) { workspace in
            _ = try workspace.write("run.yaml", Self.graph)
            let path = workspace.path("lines")
            #expect(unsafe mkfifo(path, 0o600) == 0)
            let file = try workspace.write(
                "lines.yaml",
                "name: lines\ngraph: run.yaml\non: { pipe: \(path), workers: {} }\n"
            )
            try workspace.startWorkers(2, slots: 2)
            let lives = TriggerLives(workspace, broker: try BrokerUsers(broker.url).coordinator)
            try await lives.start(killAt: nil)
            try await lives.call(["trigger", "add", file])
            try await lives.call(["trigger", "suspend", "lines"])
            // Opens when somebody reads.
            let writer = try await Task.detached {
                try FileHandle(forWritingTo: URL(fileURLWithPath: path))
            }.value
            // The pipe keeps nothing of a reader that goes.
            var lines = 0
            for _ in 0..<5 {
                for _ in 0..<10 {
                    lines += 1
                    try writer.write(contentsOf: Data("\(lines)\n".utf8))
                }
                try await lives.waitForFirings(1, of: "lines")
                lives.kill()
                try await lives.start(killAt: nil)
            }
            try await lives.call(["trigger", "resume", "lines"])
            try await lives.waitForFirings(lines, of: "lines")
            let graphs = try await lives.waitUntilDone(["lines"])
            #expect(graphs["trigger/lines"] == lines)
            try writer.close()
        }
    }

    private func check(_ lives: TriggerLives, _ graphs: [String: Int], _ fired: Int) async throws {
        for (name, _) in Self.triggers {
            let firings = try await lives.history(of: name)
            let identities = firings.map(\.identity)
            #expect(Set(identities).count == identities.count)
            let submitted = firings.compactMap(\.graph)
            #expect(Set(submitted).count == submitted.count, "\(name): a graph for two firings")
            let made = graphs["trigger/\(name)"] ?? 0
            // Only the newest firings are kept, and listed.
            if firings.count == firings.first.map({ $0.number }) {
                #expect(submitted.count == made, "\(name)")
            }
            // Ticks come by themselves, and firings of a queue merge.
            if !["tick", "queue"].contains(name) { #expect(made == fired, "\(name)") }
            for firing in firings {
                let isDone = ["ended", "merged"].contains(firing.status)
                #expect(isDone, "\(name) \(firing.number) is \(firing.status)")
            }
            // Each acknowledged call, and each end of a graph, is one firing.
            if name != "tick" { #expect(firings.first?.number == fired, "\(name)") }
        }
        let planned = try await lives.history(of: "tick").compactMap(\.plannedAt).sorted()
        let times = planned.compactMap { DateText.moment($0) }
        for (one, next) in zip(times, times.dropFirst()) {
            #expect(next - one == .seconds(1), "a tick is missing after \(one)")
        }
    }
}

/// A coordinator, from life to life.
private final class TriggerLives {
    struct Firing: Decodable {
        let number: Int
        let identity: String
        let status: String
        let graph: Int?
        let plannedAt: String?
    }

    private struct History: Decodable { let firings: [Firing] }
    private struct Graphs: Decodable {
        struct Graph: Decodable { let submittedBy: String? }
        let graphs: [Graph]
        let next: Int?
    }

    /// The variable with the secret of the webhook.
    static let secretName = "OPERON_WEBHOOK_DEATHS"
    private static let secret = "it is a secret"

    private let workspace: Workspace
    private let broker: String
    private var program: Program?

    init(_ workspace: Workspace, broker: String) {
        self.workspace = workspace
        self.broker = broker
    }

    private var socket: String { workspace.path("operon.sock") }
    private var address: String { "unix:\(socket)" }

    func start(killAt: String?) async throws {
        let program = try workspace.start(
            "operon",
            [
                "coordinator", "--broker", broker, "--prefix", workspace.prefix,
                "--store", workspace.path("graphs.db"), "--listen", address, "--watch-machine",
            ],
            environment: ["OPERON_KILL_AT": killAt, Self.secretName: Self.secret]
        )
        self.program = program
        do { try await program.says("answers at ") } catch { try await program.end() }
    }

    func kill() { program?.signal(SIGKILL) }

    /// Repeats a call, which is safe to repeat, until a coordinator has answered it.
    @discardableResult
    func call(_ arguments: [String]) async throws -> Ended {
        for _ in 0..<20 {
            let ended = try await workspace.operon(
                arguments,
                environment: ["OPERON_COORDINATOR": address]
            )
            if ended.end == .exit(0) { return ended }
            try #require(ended.end == .exit(5), "\(arguments): \(ended.errors)")
            kill()
            try await program?.end()
            try await start(killAt: nil)
        }
        throw CommandFailure("nobody took \(arguments)")
    }

    /// Sends a signed request, which is safe to repeat, until a coordinator has taken it.
    func deliver(_ body: String, id: String, to name: String) async throws {
        let code = SHA256.authenticationCode(for: Array(body.utf8), key: Array(Self.secret.utf8))
            .map { String(format: "%02x", $0) }.joined()
        var request = HTTPClientRequest(
            url: try #require(URL(httpURLWithSocketPath: socket, uri: "/v1/hooks/\(name)"))
                .absoluteString
        )
        request.method = .POST
        request.headers.add(name: "Host", value: "localhost")
        request.headers.add(name: "Content-Type", value: "application/json")
        request.headers.add(name: "X-Hub-Signature-256", value: "sha256=" + code)
        request.headers.add(name: "X-GitHub-Delivery", value: id)
        request.body = .bytes(Array(body.utf8))
        for _ in 0..<20 {
            do {
                let answer = try await HTTPClient.shared.execute(request, timeout: .seconds(30))
                if answer.status.code / 100 == 2 { return }
                try #require(answer.status.code / 100 == 5, "\(answer)")
            } catch is HTTPClientError {
            } catch is ChannelError {
            } catch is IOError {}
            kill()
            try await program?.end()
            try await start(killAt: nil)
        }
        throw CommandFailure("nobody took the request \(id)")
    }

    /// Returns when a trigger has that many firings.
    func waitForFirings(_ count: Int, of name: String) async throws {
        for _ in 0..<1_000 {
            if try await history(of: name).first?.number ?? 0 >= count { return }
        }
        throw CommandFailure("“\(name)” has not fired \(count) times")
    }

    func history(of name: String) async throws -> [Firing] {
        let ended = try await call([
            "trigger", "history", name, "--limit", "1000", "--output", "json",
        ])
        return try JSONDecoder().decode(History.self, from: Data(ended.output.utf8)).firings
    }

    /// Returns the number of graphs by their submitters, once every firing has ended.
    func waitUntilDone(_ names: [String]) async throws -> [String: Int] {
        for _ in 0..<300 {
            var isDone = true
            for name in names {
                let open = ["waiting", "accepted", "submitted"]
                if try await history(of: name).contains(where: { open.contains($0.status) }) {
                    isDone = false
                }
            }
            if isDone { break }
        }
        let ended = try await call(["list", "--limit", "10000", "--output", "json"])
        let graphs = try JSONDecoder().decode(Graphs.self, from: Data(ended.output.utf8)).graphs
        return Dictionary(grouping: graphs) { $0.submittedBy ?? "" }.mapValues(\.count)
    }
}

extension BrokerFixture {
    fileprivate func declareQueue(_ name: String) async throws {
        _ = try await control(
            "eval",
            "rabbit_amqqueue:declare(\(Self.resource(name)), true, false, [], none, <<\"test\">>)."
        )
    }

    fileprivate func publish(_ body: String, id: String, to queue: String) async throws {
        let body = body.replacing("\"", with: "\\\"")
        _ = try await control(
            "eval",
            "rabbit_basic:publish(rabbit_misc:r(<<\"/\">>, exchange, <<>>), <<\"\(queue)\">>, "
                + "[{message_id, <<\"\(id)\">>}, {delivery_mode, 2}], <<\"\(body)\">>)."
        )
    }

    /// How many messages a queue holds, those included that were delivered and not answered.
    fileprivate func messageCount(_ queue: String) async throws -> Int? {
        let size = try await control(
            "eval",
            "{ok, Q} = rabbit_amqqueue:lookup(\(Self.resource(queue))), "
                + "[{messages, N}] = rabbit_amqqueue:info(Q, [messages]), N."
        )
        return Int(size.trimmingCharacters(in: .whitespacesAndNewlines))
    }

    private static func resource(_ queue: String) -> String {
        "rabbit_misc:r(<<\"/\">>, queue, <<\"\(queue)\">>)"
    }
}
