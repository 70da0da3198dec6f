import Foundation
import OperonCore
import OperonFaultKit
import Testing

/// Draws the moments and places of faults: the same in every run, unless `OPERON_FAULT_SEED` gives
/// another number to try.
func faultGenerator(_ seed: UInt64) -> SeededGenerator {
    let given = ProcessInfo.processInfo.environment["OPERON_FAULT_SEED"]
    return SeededGenerator(seed: given.flatMap { UInt64($0) } ?? seed)
}

/// One broker for all tests of a suite, ended with it.
struct OwnBroker: SuiteTrait, TestScoping {
    var extraConfiguration = ""

    func provideScope(
        for test: Test,
        testCase: Test.Case?,
        performing function: @Sendable () async throws -> Void
    ) async throws {
        try await BrokerFixture.withCurrent(extraConfiguration: extraConfiguration, function)
    }
}

extension Trait where Self == OwnBroker {
    static var ownBroker: OwnBroker { OwnBroker() }

    static func ownBroker(_ extraConfiguration: String) -> OwnBroker {
        OwnBroker(extraConfiguration: extraConfiguration)
    }
}

extension Workspace {
    /// A graph whose operations write into this workspace's ledger, as a file.
    func writeGraph(
        layers: Int,
        width: Int,
        milliseconds: ClosedRange<Int>,
        gates: [Int: String] = [:],
        isBraided: Bool = true
    ) throws -> (file: String, graph: LayeredGraph) {
        let graph = LayeredGraph(
            layers: layers,
            width: width,
            milliseconds: milliseconds,
            ledger: path("ledger"),
            gates: gates.mapValues { path($0) },
            isBraided: isBraided
        )
        return (try write("graph.yaml", graph.text), graph)
    }

    /// Starts a run that prints its report at its end.
    func startReportedRun(_ file: String, broker: String? = nil) throws -> Program {
        try startRun(file, on: .broker, broker: broker, ["--output", "json"])
    }

    func ledger() throws -> Ledger { try Ledger(path: path("ledger")) }

    /// Whatever was done to it: everything succeeded, and what ran is what the report tells, in its
    /// order, and once but for attempts that the run had given up.
    @discardableResult
    func expectSound(
        _ ended: Ended,
        of graph: LayeredGraph,
        limit: Int? = nil,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> Report {
        let report = try ended.report()
        let check = LedgerCheck(
            try ledger(),
            against: report,
            dependencies: graph.dependencies,
            limit: limit
        )
        #expect(ended.end == .exit(0), sourceLocation: sourceLocation)
        #expect(check.violations == [], "\(ended.errors)", sourceLocation: sourceLocation)
        return report
    }

    /// The same, and nothing ran or was handed out twice.
    func expectOnce(
        _ ended: Ended,
        of graph: LayeredGraph,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let report = try expectSound(ended, of: graph, sourceLocation: sourceLocation)
        let repeated = report.operations.filter { $0.attempts.count != 1 }.map { operation in
            "\(operation.name): \(operation.attempts.map { "\($0.worker) \($0.ended)" })"
        }
        #expect(repeated == [], "\(ended.errors)", sourceLocation: sourceLocation)
    }
}

extension Workspace {
    /// Every operation ran once, each behind the ends of what it depends on. Without a ledger: that
    /// of the workspace.
    func expectEachOnce(
        _ graph: LayeredGraph,
        in other: Ledger? = nil,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let ledger = try other ?? ledger()
        #expect(ledger.unreadable == [], sourceLocation: sourceLocation)
        var ended: Set<String> = []
        var started: Set<String> = []
        for entry in ledger.entries {
            let name = entry.operation
            switch entry.kind {
            case .start:
                let isFirst = started.insert(name).inserted
                #expect(isFirst, "\(name) ran twice", sourceLocation: sourceLocation)
                let isDue = ended.isSuperset(of: graph.dependencies[name] ?? [])
                #expect(isDue, "\(name) started early", sourceLocation: sourceLocation)
            case .end: ended.insert(name)
            }
        }
        #expect(ended == Set(graph.dependencies.keys), sourceLocation: sourceLocation)
    }
}

extension Report {
    /// How every attempt ended.
    var endings: [String] { operations.flatMap { $0.attempts.map(\.ended) } }

    var lost: [Attempt] { operations.flatMap { $0.attempts.filter { $0.ended == "lost" } } }
}
