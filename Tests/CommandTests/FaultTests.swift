import Foundation
import Testing

/// Workers die in the middle of a run.
@Suite(.serialized) struct FaultTests {
    @Test func `a worker that is killed loses its attempts, and others run them again`()
        async throws
    {
        try await Scene.play { scene in
            let graph = LayeredGraph(
                layers: 12,
                width: 5,
                milliseconds: 100...300,
                ledger: scene.path("ledger"),
                gate: (layer: 3, file: scene.path("killed"))
            )
            let file = try scene.write("graph.yaml", graph.text)
            let workers = try scene.startWorkers(3, slots: 2)
            let run = try scene.startRun(file, on: .broker, ["--output", "json"])
            // Five operations on three workers with two slots each: everybody has one in hand, and
            // none of them ends before the kill.
            for column in 0..<5 { try await run.says("running o3-\(column)\n") }
            workers[1].signal(SIGKILL)
            _ = try scene.write("killed", "")
            let ended = try await run.end()

            let report = try ended.report()
            #expect(ended.end == .exit(0))
            report.expectSuccess()
            report.expectOrder(graph.dependencies)
            let lost = report.operations.flatMap { $0.attempts.filter { $0.ended == "lost" } }
            #expect(!lost.isEmpty)
            #expect(Set(lost.map(\.worker)).count == 1, "one worker was lost")
            #expect(ended.errors.contains("is gone."))
            scene.expectLedger(report)
        }
    }
}
