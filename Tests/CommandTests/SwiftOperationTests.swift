import Foundation
import Testing

/// Operations in Swift that behave badly, in workers that are processes of their own.
@Suite(.serialized, .timeLimit(.minutes(5))) struct SwiftOperationTests {
    /// A crash that is meant needs no explanation.
    private static let quiet: [String: String?] = ["SWIFT_BACKTRACE": "enable=no"]

    private static func startWorker(
        _ name: String,
        program: String = "test-worker",
        in workspace: Workspace
    ) async throws -> Program {
        let worker = try workspace.start(
            program,
            [try BrokerUsers().worker, workspace.prefix, name, "2"],
            environment: quiet
        )
        try await worker.says("worker serves")
        return worker
    }

    /// An upgrade replaces programs while they run.
    @Test(arguments: [false, true])
    func `one that traps kills a worker once, then children, and fails at the fifth death`(
        isProgramRemoved: Bool
    ) async throws {
        try await Workspace.run { workspace in
            var lines = [#"{"name": "trap", "operation": "Trap"}"#]
            for number in 0..<20 {
                lines.append(
                    #"{"name": "e\#(number)", "operation": "Echo", "input": {"text": "x"}}"#
                )
            }
            let file = try workspace.write("graph.jsonl", lines.joined(separator: "\n"))
            let program = workspace.path("worker")
            try FileManager.default.copyItem(
                atPath: try Program.executable("test-worker"),
                toPath: program
            )
            let workers = [
                try await Self.startWorker("a", program: program, in: workspace),
                try await Self.startWorker("b", program: program, in: workspace),
            ]
            if isProgramRemoved { try FileManager.default.removeItem(atPath: program) }
            let run = try workspace.startRun(file, on: .broker, ["--output", "json"])
            let ended = try await run.end()

            #expect(ended.end == .exit(1), "\(ended.errors)")
            let report = try ended.report()
            #expect(report.counts.succeeded == 20)
            let trap = try #require(report.operations.first { $0.name == "trap" })
            #expect(trap.error?.code == "workerLost")
            // Once with its worker, five times in a child.
            #expect(trap.attempts.count == 6)
            #expect(Set(trap.attempts.dropFirst().map(\.worker)).count == 1)
            #expect(workers.count(where: \.hasEnded) == 1)
            let survivor = try #require(workers.first { !$0.hasEnded })
            survivor.signal(SIGTERM)
            #expect(try await survivor.end().end == .exit(0))
        }
    }

    @Test func `a long operation beside one that traps loses an attempt, and gets no blame`()
        async throws
    {
        try await Workspace.run { workspace in
            let started = workspace.path("started")
            let go = workspace.path("go")
            let gated = #"{"started": "\#(started)", "go": "\#(go)"}"#
            let lines = [
                #"{"name": "long", "operation": "Gated", "input": \#(gated)}"#,
                #"{"name": "ready", "run": "until test -e \#(started); do sleep 0.02; done"}"#,
                #"{"name": "trap", "operation": "Trap", "dependencies": ["ready"]}"#,
                #"{"name": "last", "run": "touch \#(go)", "dependencies": {"trap": "finished"}}"#,
            ]
            let file = try workspace.write("graph.jsonl", lines.joined(separator: "\n"))
            let first = try await Self.startWorker("a", in: workspace)
            let run = try workspace.startRun(file, on: .broker, ["--output", "json"])
            // Only then somebody else comes: both were on one worker.
            _ = try await first.end()
            let second = try await Self.startWorker("b", in: workspace)
            let ended = try await run.end()

            let report = try ended.report()
            let long = try #require(report.operations.first { $0.name == "long" })
            #expect(long.outcome == "succeeded")
            #expect(long.attempts.map(\.ended) == ["lost", "succeeded"])
            let trap = try #require(report.operations.first { $0.name == "trap" })
            #expect(trap.error?.code == "workerLost")
            #expect(trap.attempts.map(\.ended) == ["lost"] + Array(repeating: "crashed", count: 5))
            #expect(report.counts.succeeded == 3)
            #expect(!second.hasEnded)
        }
    }

    @Test(arguments: [SIGTERM, SIGINT])
    func `a second signal ends a worker, whatever its operations ignore`(
        number: Int32
    ) async throws {
        try await Workspace.run { workspace in
            let started = workspace.path("started")
            let file = try workspace.write(
                "graph.jsonl",
                #"{"name": "s", "operation": "Stubborn", "input": {"started": "\#(started)"}}"#
            )
            let worker = try await Self.startWorker("a", in: workspace)
            let run = try workspace.startRun(file, on: .broker)
            try await workspace.waitForFile("started")
            worker.signal(number)
            try await worker.says("draining")
            worker.signal(number)

            #expect(try await worker.end().end == .signal(number))
            run.signal(SIGKILL)
        }
    }
}
