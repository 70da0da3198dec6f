import Foundation
import OperonCore
import OperonTestKit
import Testing

@testable import OperonSQLite

/// The simulated cluster, whose coordinator keeps what it decides in a real store, and dies at the
/// crash points of the journal.
struct JournalSimulationTests {
    /// `OPERON_JOURNAL_SEEDS=1000` takes some minutes.
    private static let seeds =
        ProcessInfo.processInfo.environment["OPERON_JOURNAL_SEEDS"].flatMap { UInt64($0) } ?? 24
    /// Within so many seeds a broken rule must be noticed.
    private static let mutationSeeds: UInt64 = 12

    /// One run, in files that are removed afterwards.
    private func run(
        _ seed: UInt64,
        _ mutation: JournalMutation? = nil
    ) throws -> (broken: String?, hash: UInt64, coverage: JournalCoverage) {
        let disk = try JournalDisk(seed: seed, mutation: mutation)
        defer { disk.remove() }
        var simulator = Simulator(seed: seed, journal: disk)
        let broken = simulator.run()
        return (broken, simulator.ledger.hash, disk.coverage)
    }

    @Test func `after a death at any point a journal has exactly what was answered`() throws {
        var coverage = JournalCoverage()
        for seed in 1...Self.seeds {
            let run = try run(seed)
            if let broken = run.broken { Issue.record("seed \(seed): \(broken)") }
            coverage.add(run.coverage)
        }

        for point in JournalPoint.allCases {
            #expect(coverage.deaths[point] ?? 0 > 0, "no coordinator died at \(point)")
        }
        for event in JournalCoverage.Event.allCases {
            #expect(coverage.events[event] ?? 0 > 0, "\(event) never happened")
        }
    }

    @Test func `the same seed gives the same run on a real store`() throws {
        let (first, second, other) = (try run(6), try run(6), try run(7))

        #expect(first == second)
        #expect(first.hash != other.hash)
    }

    @Test func `a key has the same limit in every store, whatever its rate`() throws {
        // The image had the rate with the limit, too, and the table of keys did not.
        #expect(try run(74).broken == nil)
    }

    @Test(arguments: JournalMutation.allCases)
    func `a journal that breaks a rule is noticed`(mutation: JournalMutation) throws {
        let seed = try (1...Self.mutationSeeds).first { try run($0, mutation).broken != nil }
        #expect(seed != nil)
    }
}
