import Foundation
import Glibc
import OperonFaultKit
import Testing

/// A worker that is stopped for longer than its lease, as if its host had been suspended, and goes
/// on. What it runs is not stopped with it.
@Suite struct FrozenWorkerTests {
    /// One operation that waits for a file, one that is given to the same worker once another
    /// worker has ended the third.
    private static func graph(_ scene: Scene) -> String {
        func operation(_ name: String, queue: String, gate: String?, after: [String] = []) -> String
        {
            let work = gate.map { "while [ ! -e \(scene.path($0)) ]; do sleep 0.05; done" } ?? ":"
            return LayeredGraph.operation(
                name,
                Ledger.script(work, in: scene.path("ledger")),
                after: after
            ) + "    queue: \(queue)\n"
        }
        return "queues: { left: {}, right: {} }\noperations:\n"
            + operation("long", queue: "left", gate: "done")
            + operation("first", queue: "right", gate: "frozen")
            + operation("second", queue: "left", gate: nil, after: ["first"])
    }

    @Test func `what was given to others is stopped, and what it had not started it never starts`()
        async throws
    {
        try await Scene.play { scene in
            let file = try scene.write("graph.yaml", Self.graph(scene))
            let worker = try scene.startWorkers(1, slots: 2, ["--queues", "left"])[0]
            try scene.startWorkers(1, slots: 1, ["--queues", "right"])
            let run = try scene.startReportedRun(file)
            try await run.says("running long\n")
            try await run.says("running first\n")
            try await worker.freeze()
            _ = try scene.write("frozen", "")
            // It has a slot for the second, so that lies in its socket from now on.
            try await run.says("succeeded first ")
            try scene.startWorkers(1, slots: 2, ["--queues", "left"])
            try await run.says("succeeded second ")
            try await run.says("running long\n", times: 2)
            worker.signal(SIGCONT)

            let old = try #require(try scene.ledger().starts(of: "long").first)
            try await scene.waitUntilGone(old.process)
            _ = try scene.write("done", "")
            let ended = try await run.end()

            let report = try ended.report()
            let ledger = try scene.ledger()
            let check = LedgerCheck(ledger, against: report, dependencies: ["second": ["first"]])
            #expect(ended.end == .exit(0))
            #expect(check.violations == [])
            #expect(check.duplicates == ["long": 1])
            #expect(report["long"]?.attempts.map(\.ended) == ["lost", "succeeded"])
            #expect(report["long"]?.attempts.map(\.worker) == ["w1", "w3"])
            #expect(report["second"]?.worker == "w3")
            #expect(!worker.hasEnded)
        }
    }

    @Test func `what nobody else has started goes on`() async throws {
        try await Scene.play { scene in
            let file = try scene.write("graph.yaml", Self.graph(scene))
            let worker = try scene.startWorkers(1, slots: 2)[0]
            let run = try scene.startReportedRun(file)
            try await run.says("running long\n")
            try await run.says("running first\n")
            try await worker.freeze()
            try await run.says("is gone")
            worker.signal(SIGCONT)
            _ = try scene.write("frozen", "")
            _ = try scene.write("done", "")
            let ended = try await run.end()

            let report = try ended.report()
            let check = LedgerCheck(try scene.ledger(), against: report)
            #expect(ended.end == .exit(0))
            #expect(check.violations == [])
            #expect(check.duplicates == [:])
        }
    }
}
