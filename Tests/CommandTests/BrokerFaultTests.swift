import OperonTestKit
import Testing

/// The broker dies or freezes in the middle of a run.
@Suite(.serialized, .ownBroker) struct BrokerFaultTests {
    @Test func `a broker that is killed and comes back costs nothing`() async throws {
        let broker = try #require(BrokerFixture.current)
        try await Scene.play { scene in
            let graph = LayeredGraph(
                layers: 10,
                width: 6,
                milliseconds: 100...200,
                ledger: scene.path("ledger")
            )
            let file = try scene.write("graph.yaml", graph.text)
            try scene.startWorkers(3, slots: 2, broker: broker.url)
            let options = ["--output", "json"]
            let run = try scene.startRun(file, on: .broker, broker: broker.url, options)
            try await run.says("running o2-")
            try await broker.kill9()
            #expect(!run.hasEnded)
            try await broker.restart()
            let ended = try await run.end()

            let report = try ended.report()
            #expect(ended.end == .exit(0))
            report.expectSuccess()
            report.expectOrder(graph.dependencies)
            scene.expectLedger(report)
        }
    }

    @Test func `a frozen broker that thaws costs nothing`() async throws {
        let broker = try #require(BrokerFixture.current)
        try await Scene.play { scene in
            let graph = LayeredGraph(
                layers: 6,
                width: 4,
                milliseconds: 100...200,
                ledger: scene.path("ledger")
            )
            let file = try scene.write("graph.yaml", graph.text)
            try scene.startWorkers(2, slots: 2, broker: broker.url)
            let options = ["--output", "json"]
            let run = try scene.startRun(file, on: .broker, broker: broker.url, options)
            try await run.says("running o1-")
            try await broker.freeze()
            // Longer than a beat, shorter than a lease: nobody may be given up for it.
            try await Task.sleep(for: .seconds(3))
            try await broker.thaw()
            let ended = try await run.end()

            let report = try ended.report()
            #expect(ended.end == .exit(0))
            report.expectSuccess(attempts: 1)
            report.expectOrder(graph.dependencies)
            scene.expectLedger(report)
        }
    }
}

/// One broker for all tests of a suite, ended with it.
struct OwnBroker: SuiteTrait, TestScoping {
    func provideScope(
        for test: Test,
        testCase: Test.Case?,
        performing function: @Sendable () async throws -> Void
    ) async throws {
        try await BrokerFixture.withBroker { broker in
            try await BrokerFixture.$current.withValue(broker) { try await function() }
        }
    }
}

extension Trait where Self == OwnBroker {
    static var ownBroker: OwnBroker { OwnBroker() }
}
