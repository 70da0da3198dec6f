import Foundation
import OperonFaultKit
import OperonModel
import OperonRuntime
import Testing

/// A coordinator with triggers is killed again and again, and started on the same file.
@Suite(.serialized) struct TriggerDeathTests {
    /// How many times it is killed: `OPERON_TRIGGER_KILLS=500` takes some minutes.
    private static let kills =
        ProcessInfo.processInfo.environment["OPERON_TRIGGER_KILLS"].flatMap { Int($0) } ?? 12

    private static let graph = """
        name: run
        operations:
          a: { wait: 1ms }
        """

    @Test func `no firing that was acknowledged is lost, and none submits two graphs`()
        async throws
    {
        try await Workspace.run { workspace in
            _ = try workspace.write("run.yaml", Self.graph)
            let other = Self.graph.replacing("name: run", with: "name: other")
            let file = try workspace.write("other.yaml", other)
            for (name, on) in [
                ("tick", "on: { every: 1s }\nmissed: all"), ("fire", "on: event"),
                ("queue", "on: event\noverlap: queue\nmerge: collect"),
                ("after", "on: { graph: other }"),
            ] {
                _ = try workspace.write("\(name).yaml", "name: \(name)\ngraph: run.yaml\n\(on)\n")
            }
            let lives = TriggerLives(workspace)
            try await lives.start(killAt: nil)
            for name in ["tick", "fire", "queue", "after"] {
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
                for name in ["fire", "queue"] {
                    try await lives.call([
                        "trigger", "fire", name, "--data", "\(fired)",
                        "--idempotency-key", "k\(fired)",
                    ])
                }
                try await lives.call(["submit", file, "--idempotency-key", "o\(fired)"])
                fired += 1
            }
            lives.kill()
            try await lives.start(killAt: nil)
            try await lives.call(["trigger", "suspend", "tick"])
            let graphs = try await lives.waitUntilDone(["tick", "fire", "queue", "after"])
            try await check(lives, graphs, fired)
        }
    }

    private func check(_ lives: TriggerLives, _ graphs: [String: Int], _ fired: Int) async throws {
        for name in ["tick", "fire", "queue", "after"] {
            let firings = try await lives.history(of: name)
            let identities = firings.map(\.identity)
            #expect(Set(identities).count == identities.count)
            let submitted = firings.compactMap(\.graph)
            #expect(Set(submitted).count == submitted.count, "\(name): a graph for two firings")
            // Only the newest firings are listed.
            if firings.count < 200 {
                #expect(submitted.count == graphs["trigger/\(name)"] ?? 0, "\(name)")
            }
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

/// A coordinator with a worker in its process, from life to life.
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

    private let workspace: Workspace
    private var program: Program?

    init(_ workspace: Workspace) { self.workspace = workspace }

    private var address: String { "unix:\(workspace.path("operon.sock"))" }

    func start(killAt: String?) async throws {
        let program = try workspace.start(
            "operon",
            ["up", "--store", workspace.path("graphs.db"), "--listen", address],
            environment: ["OPERON_KILL_AT": killAt]
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
