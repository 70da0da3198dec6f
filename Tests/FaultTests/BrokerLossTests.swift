import OperonFaultKit
import Testing

/// The broker dies, freezes or loses its disk in the middle of a run.
@Suite(.serialized, .ownBroker) struct BrokerLossTests {
    @Test(arguments: [false, true])
    func `a broker that is killed and comes back costs nothing, with its disk or without`(
        losesDisk: Bool
    ) async throws {
        let broker = try #require(BrokerFixture.current)
        try await Workspace.run(broker: broker.url) { workspace in
            // The last layer waits until the broker is back: however slow the machine, the run is
            // in its middle.
            let (file, graph) = try workspace.writeGraph(
                layers: 8,
                width: 6,
                milliseconds: 100...200,
                gates: [7: "back"]
            )
            try workspace.startWorkers(3, slots: 2)
            let run = try workspace.startReportedRun(file)
            try await run.says("running o2-")
            if losesDisk { try await broker.wipe() } else { try await broker.kill9() }
            #expect(!run.hasEnded)
            try await broker.restart()
            _ = try workspace.write("back", "")
            let ended = try await run.end()

            try workspace.expectSound(ended, of: graph, limit: 6)
        }
    }

    @Test func `a run that waits for its broker says so`() async throws {
        let broker = try #require(BrokerFixture.current)
        try await Workspace.run(broker: broker.url) { workspace in
            let file = try workspace.write("graph.yaml", "operations: { a: { run: 'true' } }")
            let run = try workspace.startRun(file, on: .broker)
            try await run.says("Waiting for a worker")
            try await broker.kill9()
            try await run.says("Waiting for the broker: there is no connection to it.")
            try await broker.restart()
            try workspace.startWorkers(1, slots: 1)
            let ended = try await run.end()

            #expect(ended.end == .exit(0))
        }
    }

    @Test func `a frozen broker that thaws costs nothing`() async throws {
        let broker = try #require(BrokerFixture.current)
        try await Workspace.run(broker: broker.url) { workspace in
            let (file, graph) = try workspace.writeGraph(
                layers: 6,
                width: 4,
                milliseconds: 100...200,
                gates: [5: "thawed"]
            )
            try workspace.startWorkers(2, slots: 2)
            let run = try workspace.startReportedRun(file)
            try await run.says("running o1-")
            try await broker.freeze()
            // Longer than a beat, shorter than a lease: nobody may be given up for it.
            try await Task.sleep(for: .seconds(3))
            try await broker.thaw()
            _ = try workspace.write("thawed", "")
            let ended = try await run.end()

            try workspace.expectOnce(ended, of: graph)
        }
    }
}
