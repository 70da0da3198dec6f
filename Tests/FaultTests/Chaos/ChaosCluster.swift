import Foundation
import Glibc
import OperonCore
import OperonFaultKit

/// A coordinator with its store on a small disk, workers, and the broker between them, reached by
/// each program through a proxy of its own.
final class ChaosCluster {
    struct Worker {
        let name: String
        let program: Program
    }

    static let workerCount = 4
    private static let slots = 2

    let broker: BrokerFixture
    let disk: SmallDisk
    let clock: SteppedClock
    let lives: CoordinatorLives
    let client: ChaosClient
    let follower: LedgerFollower
    var schedule: FaultSchedule
    private(set) var workers: [Worker] = []
    private let workspace: Workspace
    private let proxies: [FaultProxy]
    private var started = 0

    /// Returns when the coordinator answers. `proxies`: one for each worker, and the coordinator's.
    init(
        _ workspace: Workspace,
        broker: BrokerFixture,
        proxies: [FaultProxy],
        disk: SmallDisk,
        clock: SteppedClock,
        lives: CoordinatorLives,
        client: ChaosClient,
        seed: UInt64
    ) throws {
        self.workspace = workspace
        self.broker = broker
        self.proxies = proxies
        self.disk = disk
        self.clock = clock
        self.lives = lives
        self.client = client
        schedule = FaultSchedule(seed: seed)
        follower = LedgerFollower(path: workspace.path("ledger"))
        for place in 0..<Self.workerCount { workers.append(try startWorker(place)) }
    }

    private func startWorker(_ place: Int) throws -> Worker {
        started += 1
        let program = try workspace.startWorkers(
            1,
            slots: Self.slots,
            broker: proxies[place].clientURL
        )[0]
        return Worker(name: "w\(started)", program: program)
    }

    /// Puts a new worker in the place of one that has ended.
    func replace(_ place: Int) throws { workers[place] = try startWorker(place) }

    func proxy(_ place: Int) -> FaultProxy { proxies[place] }

    var coordinatorProxy: FaultProxy { proxies[Self.workerCount] }

    // MARK: - Waiting

    /// Returns when the first operation has started.
    func waitForWork() async throws {
        let hasWork = try await follower.wait(within: FaultKind.recoveryMax) { follower.count > 0 }
        guard hasWork else { throw failure("nothing has started") }
    }

    /// Chooses a worker that runs something now.
    func busyWorker() async throws -> Int {
        let place = schedule.index(below: workers.count)
        let name = workers[place].name
        let isBusy = try await follower.wait(within: FaultKind.recoveryMax) {
            !follower.running(on: name).isEmpty
        }
        guard isBusy else { throw failure("\(name) has had nothing to do") }
        return place
    }

    /// Waits until this holds, and returns how long after `begin` that was.
    func recovery(
        since begin: Duration,
        _ what: String,
        until hasRecovered: () async throws -> Bool
    ) async throws -> Duration {
        guard try await follower.wait(within: FaultKind.recoveryMax, until: hasRecovered) else {
            throw failure("\(what): not recovered within \(FaultKind.recoveryMax.secondsText)")
        }
        return try Ledger.now() - begin
    }

    /// Waits until a worker starts something beyond what the ledger has now.
    func recoveryOfStarts(
        on place: Int,
        since begin: Duration
    ) async throws -> Duration {
        try follower.read()
        let (count, name) = (follower.count, workers[place].name)
        return try await recovery(since: begin, "\(name) starts nothing") {
            follower.hasStarted(on: name, after: count)
        }
    }

    /// Waits until something starts whose dependency ended when the ledger had `count` entries.
    func recoveryOfDependents(since begin: Duration, after count: Int) async throws -> Duration {
        try await recovery(since: begin, "no dependent starts") {
            follower.hasStartedDependent(at: begin, of: count, await client.dependencies)
        }
    }

    /// Waits until each of these attempts was followed by another one, or its operation has ended.
    func hasResolved(_ attempts: [Ledger.Entry]) async -> Bool {
        for attempt in attempts where !follower.hasStartedAgain(attempt) {
            guard await client.hasOutcome(attempt.operation) else { return false }
        }
        return true
    }

    /// How many entries the ledger has now.
    func entryCount() throws -> Int {
        try follower.read()
        return follower.count
    }

    func failure(_ what: String) -> CommandFailure {
        let said = ([("coordinator", lives.program)] + workers.map { ($0.name, $0.program) })
            .map { "\($0):\n\($1?.errors.text.suffix(3_000) ?? "")" }
        return CommandFailure("\(what)\n\(said.joined(separator: "\n"))")
    }

    // MARK: - The end

    /// Ends all programs as an operator does, and tells what was left.
    func end() async throws -> [String] {
        var left: [String] = []
        // The beats of workers are in the queues for a moment.
        if try await !messagesAreGone() { left.append("messages are left on the broker") }
        let programs = workers.map(\.program) + [lives.program].compactMap { $0 }
        for program in programs {
            program.signal(SIGTERM)
            let ended = try await program.end(within: .seconds(60))
            if ended.end != .exit(0) {
                left.append("\(program.name) ended with \(ended.end): \(ended.errors)")
            }
        }
        try await workspace.waitUntilNoProcess()
        left += try workspace.temporaryFiles().map { "a temporary file is left: \($0)" }
        left += try await broker.queues(prefix: workspace.prefix).map { "a queue is left: \($0)" }
        return left
    }

    private func messagesAreGone() async throws -> Bool {
        for _ in 0..<100 where try await broker.messageCount() == 0 { return true }
        return false
    }
}
