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
                ledger: scene.path("ledger")
            )
            let file = try scene.write("graph.yaml", graph.text)
            let workers = try scene.startWorkers(3, slots: 2)
            let run = try scene.startRun(file, on: .broker, ["--output", "json"])
            // The second worker runs something now, and it lasts 100 ms at least.
            try await run.says("running o3-")
            let victim = try await Self.busyWorker(workers, scene)
            victim.signal(SIGKILL)
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

    /// A worker that has a child process that runs an operation.
    private static func busyWorker(_ workers: [Program], _ scene: Scene) async throws -> Program {
        let deadline = ContinuousClock.now + .seconds(20)
        while ContinuousClock.now < deadline {
            for worker in workers where hasOperation(worker) { return worker }
            // Processes of another process give no signal.
            try await Task.sleep(for: .milliseconds(1))
        }
        throw CommandFailure("no worker runs anything")
    }

    private static func hasOperation(_ worker: Program) -> Bool {
        let path = "/proc/\(worker.process)/task"
        let threads = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
        return threads.contains { thread in
            let children = try? String(
                contentsOfFile: "\(path)/\(thread)/children",
                encoding: .utf8
            )
            return (children ?? "").split(separator: " ").contains { child in
                let line = try? String(contentsOfFile: "/proc/\(child)/cmdline", encoding: .utf8)
                return line?.contains("OPERON_OPERATION") == true
            }
        }
    }
}
