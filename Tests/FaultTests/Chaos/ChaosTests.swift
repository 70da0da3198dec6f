import Foundation
import OperonFaultKit
import Testing

/// A cluster of real programs that is given work and faults for minutes. scripts/chaos runs it.
@Suite(.serialized) struct ChaosTests {
    private static let minutes = number("OPERON_CHAOS_MINUTES")
    private static let seed = UInt64(number("OPERON_CHAOS_SEED") ?? 1)
    /// Times of unoptimised programs say nothing about those that users have.
    private static let isRelease = environment["OPERON_TEST_PROGRAMS"] != nil
    private static let environment = ProcessInfo.processInfo.environment

    private static func number(_ variable: String) -> Int? {
        ProcessInfo.processInfo.environment[variable].flatMap { Int($0) }
    }

    @Test(.enabled(if: minutes != nil, "scripts/chaos runs it"))
    func `nothing is lost, runs early or changes its outcome, whatever fails meanwhile`()
        async throws
    {
        let length = Duration.seconds(60 * (Self.minutes ?? 0))
        try await Self.withCluster { cluster in
            var faults = FaultLog()
            try await cluster.waitForWork()
            let begin = try Ledger.now()
            let rounds = FaultKind.allCases.count
            // Every kind once at least.
            while try Ledger.now() - begin < length || faults.entries.count < rounds {
                let kind = cluster.schedule.next()
                let fault = try await cluster.inject(kind)
                try await cluster.client.check()
                faults.append(
                    FaultLog.Entry(
                        kind,
                        worker: fault.worker,
                        begin: fault.begin,
                        end: fault.end,
                        recovery: fault.recovery
                    )
                )
                try Self.tell(kind, fault, at: fault.begin - begin)
            }
            return faults
        }
    }

    /// Shows a line at once: the test runner keeps what is printed until it is much.
    private static func say(_ line: String) throws {
        guard let path = environment["OPERON_CHAOS_LINES"] else { return print(line) }
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
        try file.seekToEnd()
        try file.write(contentsOf: Data((line + "\n").utf8))
        try file.close()
    }

    private static func tell(
        _ kind: FaultKind,
        _ fault: InjectedFault,
        at time: Duration
    ) throws {
        var line = "\(time.secondsText): \(kind.rawValue)"
        if let worker = fault.worker { line += ", \(worker)" }
        if !fault.detail.isEmpty { line += ", \(fault.detail)" }
        line +=
            fault.recovery.map { "; recovered after \($0.secondsText)" } ?? "; nothing to recover"
        try say(line)
    }

    /// Runs `body` with a cluster that has work, and checks everything when all of it has ended.
    private static func withCluster(
        _ body: (ChaosCluster) async throws -> FaultLog
    ) async throws {
        try say("seed \(seed)")
        try await BrokerFixture.withBroker { broker in
            let count = ChaosCluster.workerCount + 1
            try await FaultProxy.withProxies(count, to: broker.url) { proxies in
                try await Workspace.run(broker: broker.url) { workspace in
                    let path = workspace.path("disk")
                    try await SmallDisk.withDisk(at: path, mebibytes: 256) { disk in
                        try await run(workspace, broker, proxies, disk, body)
                    }
                }
            }
        }
    }

    private static func run(
        _ workspace: Workspace,
        _ broker: BrokerFixture,
        _ proxies: [FaultProxy],
        _ disk: SmallDisk,
        _ body: (ChaosCluster) async throws -> FaultLog
    ) async throws {
        let clock = try await SteppedClock(in: workspace.directory)
        let lives = CoordinatorLives(
            workspace,
            broker: proxies[ChaosCluster.workerCount].clientURL,
            store: "disk/graphs.db",
            variables: clock.environment
        )
        try await lives.start()
        var faults = FaultLog()
        var all: ChaosCluster?
        try await ChaosClient.withClient(
            of: lives.address,
            ledger: workspace.path("ledger"),
            seed: seed
        ) { client in
            let cluster = try ChaosCluster(
                workspace,
                broker: broker,
                proxies: proxies,
                disk: disk,
                clock: clock,
                lives: lives,
                client: client,
                seed: seed
            )
            all = cluster
            faults = try await body(cluster)
        }
        let cluster = try #require(all)
        try await cluster.client.check()
        try await check(cluster, faults)
    }

    private static func check(_ cluster: ChaosCluster, _ faults: FaultLog) async throws {
        try cluster.follower.read()
        let ledger = cluster.follower.ledger
        let violations = await cluster.client.violations(ledger, faults)
        if !violations.isEmpty { try say(cluster.failure("what the programs said").description) }
        let left = try await cluster.end()
        for line in faults.table { try say(line) }
        let operations = await cluster.client.operationCount
        let graphs = await cluster.client.graphCount
        let endings = await cluster.client.endings
        let readings = await cluster.client.history.readings
        try say("seed \(seed): \(operations) operations in \(graphs) graphs, \(endings)")
        try say("\(faults.entries.count) faults; \(readings) outcomes read again")
        for violation in violations + left { try say("violation: \(violation)") }
        #expect(violations == [])
        #expect(left == [])
        #expect(readings > operations, "outcomes were read twice")
        if isRelease { #expect(faults.overLimit == []) }
    }
}
