import Foundation
import OperonFaultKit
import Testing

@Suite struct DrainTests {
    @Test func `a worker is drained by its coordinator, and the others do the rest`() async throws {
        try await Workspace.run { workspace in
            let (file, graph) = try workspace.writeGraph(
                layers: 8,
                width: 4,
                milliseconds: 20...60,
                gates: [2: "asked"]
            )
            let workers = try workspace.startWorkers(2, slots: 2)
            let lives = CoordinatorLives(workspace)
            try await lives.start()
            for worker in workers { try await worker.says("welcomed by the coordinator") }
            try await lives.submit(file, key: "once")
            // Two layers are done, and four operations run on four slots: it has two in hand.
            try await workspace.waitForLines(20, of: "ledger")

            let draining = try workspace.start(
                "operon",
                ["drain", "w1", "--wait", "--timeout", "100s"],
                environment: lives.environment
            )
            try await workers[0].says("waits for 2 to finish")
            _ = try workspace.write("asked", "")
            let drain = try await draining.end()
            #expect(drain.end == .exit(0), "\(drain.errors)")
            let left = try await workers[0].end()
            #expect(left.end == .exit(0), "\(left.errors)")
            try await lives.restartUntilFinished()

            #expect(lives.deaths == 0)
            let ledger = try workspace.ledger()
            let starts = ledger.entries.filter { $0.kind == .start }.map(\.operation)
            #expect(starts.count == graph.dependencies.count, "none ran twice")
            #expect(Set(starts) == Set(graph.dependencies.keys))
        }
    }

    @Test func `a worker that is not there cannot be drained`() async throws {
        try await Workspace.run { workspace in
            let lives = CoordinatorLives(workspace)
            try await lives.start()
            let drain = try await workspace.operon(["drain", "w9"], environment: lives.environment)
            #expect(drain.end == .exit(6))
            #expect(drain.errorLines.count == 2, "\(drain.errors)")
            #expect(drain.errors.contains("w9") && drain.errors.contains("operon workers"))
        }
    }
}
