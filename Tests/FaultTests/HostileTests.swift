import Foundation
import Glibc
import OperonFaultKit
import Testing

/// A coordinator and its honest work beside an operation, a worker and a client that send whatever
/// their logins let them send.
@Suite(.serialized, .ownBroker) struct HostileTests {
    /// `scripts/test-hostile` gives more.
    static let seconds = number("OPERON_HOSTILE_SECONDS") ?? 20
    static let seed = number("OPERON_HOSTILE_SEED") ?? 1
    static let isLong = number("OPERON_HOSTILE_SECONDS") != nil

    private static func number(_ variable: String) -> Int? {
        ProcessInfo.processInfo.environment[variable].flatMap { Int($0) }
    }

    @Test(.enabled(if: !isLong))
    func `a hostile operation harms neither the coordinator nor other work`() async throws {
        try await Self.besiege([.operation])
    }

    @Test(.enabled(if: !isLong))
    func `a hostile worker harms neither the coordinator nor other work`() async throws {
        try await Self.besiege([.worker])
    }

    @Test(.enabled(if: !isLong))
    func `a hostile client harms neither the coordinator nor other work`() async throws {
        try await Self.besiege([.client])
    }

    @Test(.enabled(if: isLong))
    func `all three at once harm neither the coordinator nor other work`() async throws {
        try await Self.besiege(Besieger.allCases)
    }

    /// The coordinator's memory may have grown by this much at the end.
    private static let growthMax = 64 << 20

    /// After so many further rounds of work, memory that is not given back counts as lost.
    private static let settlingRounds = 10

    private static func besiege(_ besiegers: [Besieger]) async throws {
        let broker = try #require(BrokerFixture.current)
        // A worker whose messages are refused unread would harm nothing.
        let isSealed = !besiegers.contains(.worker)
        try await Workspace.run(broker: broker.url, isSealed: isSealed) { workspace in
            let cluster = try await HonestCluster(workspace, broker: broker.url)
            // Twice: the first time of anything takes memory that stays.
            for _ in 0..<2 { try await cluster.work() }
            let before = try cluster.residentBytes
            var most = before
            for besieger in besiegers {
                try await cluster.start(besieger, seed: seed, seconds: seconds)
            }
            while !cluster.isOver {
                try await cluster.work()
                most = max(most, try cluster.residentBytes)
            }
            for _ in 0..<2 { try await cluster.work() }
            var after = try cluster.residentBytes
            // What it was still busy with at the end of the attack goes away; what it lost stays.
            for _ in 0..<settlingRounds where after - before >= growthMax {
                try await cluster.work()
                after = try cluster.residentBytes
            }

            let tallies = try await cluster.tallies()
            for line in tallies { print(line) }
            // An attack that did not take place harms nobody.
            let totals = tallies.filter { $0.contains(" in all, ") }
            #expect(totals.count == besiegers.count)
            #expect(totals.allSatisfy { !$0.hasPrefix("sent 0 ") })
            #expect(tallies.contains { $0.hasPrefix("got ") })
            print(
                "seed \(seed), \(seconds) s: \(cluster.rounds) rounds of honest work; memory of "
                    + "the coordinator \(before >> 20) MiB before, \(most >> 20) at most, "
                    + "\(after >> 20) after"
            )
            #expect(!cluster.coordinator.hasEnded)
            #expect(!cluster.worker.hasEnded)
            #expect(after - before < growthMax)
        }
    }
}

private enum Besieger: String, CaseIterable {
    case operation
    case worker
    case client
}

/// A coordinator with a store, a worker for the queue `default`, and work for both.
private final class HonestCluster {
    let coordinator: Program
    let worker: Program
    private(set) var rounds = 0
    private let workspace: Workspace
    private let broker: String
    private let address: String
    private var besiegers: [Program] = []
    private var hasOperation = false

    private static let token = "honest-and-allowed-to-operate"
    private static let hostileToken = "hostile-and-allowed-to-operate"
    private static let readToken = "hostile-and-allowed-to-read"
    /// Where a hostile operation leaves its tally at its end.
    private static let tally = "tally"

    /// Returns when the coordinator answers and the worker is welcome.
    init(_ workspace: Workspace, broker: String) async throws {
        self.workspace = workspace
        self.broker = broker
        let tokens = try workspace.write(
            "tokens",
            """
            honest:\(Self.token)
            hostile:\(Self.hostileToken)
            reader:\(Self.readToken) read

            """
        )
        let own = try workspace.write("token", Self.token + "\n")
        for file in [tokens, own] { chmod(file, 0o600) }
        address = "127.0.0.1:\(try LoopbackPort.take())"
        coordinator = try workspace.start(
            "operon",
            [
                "coordinator", "--broker", try BrokerUsers(broker).coordinator,
                "--prefix", workspace.prefix, "--store", workspace.path("graphs.db"),
                "--listen", address, "--tokens", tokens,
            ]
        )
        try await coordinator.says("answers at ")
        worker = try workspace.startWorkers(1, slots: 4, ["--queues", "default"])[0]
        try await worker.says("welcomed by the coordinator")
    }

    var residentBytes: Int { get throws { try ProcessFacts.residentBytes(coordinator.process) } }

    // MARK: - Honest work

    /// A graph from its submission to its end: everything in it runs once and in order, and the
    /// coordinator answers.
    func work() async throws {
        rounds += 1
        let ledger = "ledger\(rounds)"
        let graph = LayeredGraph(
            layers: 3,
            width: 3,
            milliseconds: 20...200,
            ledger: workspace.path(ledger)
        )
        let file = try workspace.write("honest\(rounds).yaml", graph.text)
        let submitted = try await operon("submit", file, "--output", "quiet")
        let id = try #require(submitted.outputLines.first.map(String.init))
        try await operon("status")
        let waited = try await ask("wait", id, "--timeout", "120s")
        guard waited.end == .exit(0) else {
            var why = waited.errors + ProcessFacts.diagnosis(coordinator.process)
            let explained = graph.dependencies.keys.sorted().map { ["explain", "\(id)/\($0)"] }
            for question in [["operations", id], ["workers"], ["queue", "list"]] + explained {
                let answer = try await ask(question)
                why += answer.output + answer.errors
                // Who does not answer one question answers no other.
                if answer.end == .exit(4) { break }
            }
            throw CommandFailure(why + coordinator.errors.text.suffix(4_000))
        }
        try workspace.expectEachOnce(graph, in: Ledger(path: workspace.path(ledger)))
    }

    private func ask(_ arguments: String...) async throws -> Ended { try await ask(arguments) }

    private func ask(_ arguments: [String]) async throws -> Ended {
        try await workspace.operon(
            arguments,
            environment: [
                "OPERON_COORDINATOR": "http://\(address)",
                "OPERON_TOKEN_FILE": workspace.path("token"),
            ]
        )
    }

    @discardableResult
    private func operon(_ arguments: String...) async throws -> Ended {
        let ended = try await ask(arguments)
        try #require(
            ended.end == .exit(0),
            """
            \(arguments): \(ended.errors)
            \(coordinator.errors.text.suffix(4_000))
            \(ended.end == .exit(0) ? "" : ProcessFacts.diagnosis(coordinator.process))
            """
        )
        return ended
    }

    // MARK: - The others

    func start(_ besieger: Besieger, seed: Int, seconds: Int) async throws {
        let plan = ["--seed", "\(seed)", "--seconds", "\(seconds)"]
        let names = ["--name", "default", "--name", "w1", "--name", "o0-0"]
        switch besieger {
        case .operation:
            let program = try Program.executable("hostile")
            let command = [program, "operation", "--queue", "default"] + plan + names
            let tally = workspace.path(Self.tally)
            let script =
                "\(command.joined(separator: " ")) >\(tally).part && mv \(tally).part \(tally)"
            let text = "operations:\n" + LayeredGraph.operation("hostile", script)
            try await operon("submit", try workspace.write("hostile-operation.yaml", text))
            hasOperation = true
        case .worker:
            // What it is given, and may do with as it likes.
            let operations = (0..<2_000).map { "  h\($0): { queue: hostile, run: \"true\" }\n" }
            let text = "operations:\n" + operations.joined()
            try await operon("submit", try workspace.write("hostile-worker.yaml", text))
            let login = [
                "--broker", try BrokerUsers(broker).worker, "--prefix", workspace.prefix,
            ]
            besiegers.append(try workspace.start("hostile", ["worker"] + login + plan + names))
        case .client:
            let login = [
                "--address", address, "--token", Self.hostileToken, "--read-token", Self.readToken,
            ]
            besiegers.append(try workspace.start("hostile", ["client"] + login + plan + names))
        }
    }

    /// Whether all of them have come to their end.
    var isOver: Bool {
        besiegers.allSatisfy(\.hasEnded)
            && (!hasOperation || FileManager.default.fileExists(atPath: workspace.path(Self.tally)))
    }

    /// How much of each kind they sent.
    func tallies() async throws -> [String] {
        var lines: [String] = []
        for program in besiegers {
            let ended = try await program.end()
            try #require(ended.end == .exit(0), "\(ended.errors)")
            lines += ended.outputLines.map(String.init)
        }
        return lines + (hasOperation ? workspace.lines(of: Self.tally) : [])
    }
}
