import Foundation
import Glibc
import OperonFaultKit
import Testing

/// A worker that is stopped for longer than its lease, as if its host had been suspended, and goes
/// on. What it runs is not stopped with it.
@Suite struct FrozenWorkerTests {
    /// One operation that waits for a file, one that is given to the same worker once another
    /// worker has ended the third.
    private static func graph(_ workspace: Workspace) -> String {
        func operation(_ name: String, queue: String, gate: String?, after: [String] = []) -> String
        {
            let work =
                gate.map { "while [ ! -e \(workspace.path($0)) ]; do sleep 0.05; done" } ?? ":"
            return LayeredGraph.operation(
                name,
                Ledger.script(work, in: workspace.path("ledger")),
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
        try await Workspace.run { workspace in
            let file = try workspace.write("graph.yaml", Self.graph(workspace))
            let worker = try workspace.startWorkers(1, slots: 2, ["--queues", "left"])[0]
            try workspace.startWorkers(1, slots: 1, ["--queues", "right"])
            let run = try workspace.startReportedRun(file)
            try await run.says("running long\n")
            try await run.says("running first\n")
            try await worker.freeze()
            _ = try workspace.write("frozen", "")
            // It has a slot for the second, so that lies in its socket from now on.
            try await run.says("succeeded first ")
            try workspace.startWorkers(1, slots: 2, ["--queues", "left"])
            try await run.says("succeeded second ")
            try await run.says("running long\n", times: 2)
            worker.signal(SIGCONT)

            let old = try #require(try workspace.ledger().starts(of: "long").first)
            try await workspace.waitUntilGone(old.process)
            _ = try workspace.write("done", "")
            let ended = try await run.end()

            let report = try ended.report()
            let ledger = try workspace.ledger()
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
        try await Workspace.run { workspace in
            let file = try workspace.write("graph.yaml", Self.graph(workspace))
            let worker = try workspace.startWorkers(1, slots: 2)[0]
            let run = try workspace.startReportedRun(file)
            try await run.says("running long\n")
            try await run.says("running first\n")
            try await worker.freeze()
            try await run.says("is gone")
            worker.signal(SIGCONT)
            _ = try workspace.write("frozen", "")
            try await run.says("is back")
            _ = try workspace.write("done", "")
            let ended = try await run.end()

            let report = try ended.report()
            let check = LedgerCheck(try workspace.ledger(), against: report)
            #expect(ended.end == .exit(0))
            #expect(check.violations == [])
            #expect(check.duplicates == [:])
        }
    }
}
