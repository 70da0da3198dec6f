import Foundation
import OperonFaultKit
import Testing

/// A coordinator with its file, from life to life.
final class CoordinatorLives {
    private let workspace: Workspace
    private(set) var program: Program?
    /// The same in every life.
    let address: String
    private(set) var deaths = 0
    private let broker: String?
    private let store: String
    private let variables: [String: String?]

    /// `broker`: its URL; the one of all tests if there is none. `variables`: what each life is
    /// given besides.
    init(
        _ workspace: Workspace,
        broker: String? = nil,
        store: String = "graphs.db",
        variables: [String: String?] = [:]
    ) {
        self.workspace = workspace
        self.broker = broker
        self.store = store
        self.variables = variables
        address = "unix:\(workspace.path("operon.sock"))"
    }

    private func arguments() throws -> [String] {
        [
            "coordinator", "--broker", try BrokerUsers(broker).coordinator,
            "--prefix", workspace.prefix, "--store", workspace.path(store), "--listen", address,
        ]
    }

    func start(killAt: String? = nil) async throws {
        let program = try workspace.start(
            "operon",
            try arguments(),
            environment: variables.merging(["OPERON_KILL_AT": killAt]) { _, new in new }
        )
        self.program = program
        do {
            try await program.says("answers at ")
        } catch {
            // It died: that its streams have ended may be known before its own end is.
            try await program.end()
        }
    }

    func second() async throws -> Ended { try await workspace.operon(try arguments()) }

    func kill() async throws {
        program?.signal(SIGKILL)
        try await died()
    }

    func waitForDeath() async throws { try await died() }

    /// Until it ends by itself, however that is.
    func waitForEnd() async throws -> Ended {
        let ended = try await #require(program).end()
        deaths += 1
        return ended
    }

    private func died() async throws {
        let ended = try await program?.end()
        #expect(ended?.end == .signal(SIGKILL), "\(ended?.errors ?? "")")
        deaths += 1
    }

    var environment: [String: String?] { ["OPERON_COORDINATOR": address] }

    /// Until somebody says that it is kept: with a key, twice is once.
    func submit(_ file: String, key: String) async throws {
        for _ in 0..<3 {
            let ended = try await workspace.operon(
                ["submit", file, "--idempotency-key", key],
                environment: environment
            )
            if ended.end == .exit(0) { return }
            try #require(ended.end == .exit(5), "\(ended.errors)")
            try await died()
            try await start()
        }
        throw CommandFailure("nobody took the graph")
    }

    /// One client waits through all lives, if there is a coordinator when it comes.
    func restartUntilFinished() async throws {
        var ended = try await waitOnce()
        for _ in 0..<3 where ended.end == .exit(5) { ended = try await waitOnce() }
        #expect(ended.end == .exit(0), "\(ended.errors)")
        // What it still came to.
        if program?.hasEnded == true {
            try await died()
            try await start()
        }
        let list = try await workspace.operon(
            ["list", "--output", "quiet"],
            environment: environment
        )
        #expect(list.outputLines == ["0"], "\(list.errors)")
    }

    private func waitOnce() async throws -> Ended {
        if program?.hasEnded == true {
            try await died()
            try await start()
        }
        let client = try workspace.start(
            "operon",
            ["wait", "@latest", "--timeout", "120s"],
            environment: environment
        )
        while !client.hasEnded {
            if program?.hasEnded == true {
                try await died()
                try await start()
            }
            // Which of both ends first gives no signal.
            try await Task.sleep(for: .milliseconds(10))
        }
        return try await client.end()
    }

    /// Returns when so many entries have come, or there are `end` of them.
    func waitForLedger(toGrowBy count: Int, upTo end: Int) async throws {
        let before = workspace.lines(of: "ledger").count
        try await workspace.waitForLines(min(before + count, end), of: "ledger")
    }
}
