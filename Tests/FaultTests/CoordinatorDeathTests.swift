import Foundation
import OperonCore
import OperonFaultKit
import OperonRuntime
import Testing

/// A coordinator that keeps its graphs is killed, and started again on the same file.
@Suite(.serialized) struct CoordinatorDeathTests {
    /// The operations of this graph ask for nothing.
    @Test(arguments: CrashPoint.allCases.filter { $0 != .requestInHand })
    func `a coordinator that dies between two steps loses nothing and repeats nothing`(
        point: CrashPoint
    ) async throws {
        try await Workspace.run { workspace in
            let (file, graph) = try workspace.writeGraph(
                layers: 4,
                width: 3,
                milliseconds: 50...150
            )
            try workspace.startWorkers(2, slots: 2)
            let lives = CoordinatorLives(workspace)
            // Early enough for everything to be in the middle, late enough for workers to be there.
            // The first answer is to the submission, and no other comes for certain.
            let time = point == .answered ? 1 : 4
            try await lives.start(killAt: "\(point.rawValue):\(time)")
            try await lives.submit(file, key: "once")
            try await lives.restartUntilFinished()

            #expect(lives.deaths == 1, "it came to \(point) at all")
            try workspace.expectEachOnce(graph)
        }
    }

    @Test func `twenty deaths in a graph of two thousand operations`() async throws {
        try await Workspace.run { workspace in
            let (file, graph) = try workspace.writeGraph(
                layers: 100,
                width: 20,
                milliseconds: 10...30,
                // However far it has come, it is not at its end.
                gates: [99: "died"]
            )
            let before = 99 * 20 * 2
            try workspace.startWorkers(3, slots: 2)
            let lives = CoordinatorLives(workspace)
            var generator = faultGenerator(4)
            try await lives.start()
            try await lives.submit(file, key: "once")
            for _ in 0..<20 {
                // Some more have started or ended: anywhere between two of them.
                try await lives.waitForLedger(
                    toGrowBy: Int(generator.next() % 120) + 1,
                    upTo: before
                )
                try await lives.kill()
                try await lives.start()
            }
            _ = try workspace.write("died", "")
            try await lives.restartUntilFinished()

            #expect(lives.deaths == 20)
            try workspace.expectEachOnce(graph)
        }
    }

    @Test
    func `what ends the coordinator three times in a row is set aside, and only its sender fails`()
        async throws
    {
        try await Workspace.run { workspace in
            let operon = try Program.executable("operon")
            _ = try workspace.write("more.jsonl", #"{"name": "child", "run": "true"}"# + "\n")
            let file = try workspace.write(
                "graph.yaml",
                """
                name: poison
                operations:
                  poison:
                    run: |
                      touch has-begun
                      while [ ! -e go ]; do sleep 0.05; done
                      '\(operon)' add more.jsonl
                  other: { run: "while [ ! -e done ]; do sleep 0.05; done" }
                """
            )
            let lives = CoordinatorLives(workspace)
            try await lives.start()
            try workspace.startWorkers(1, slots: 2)
            try await lives.submit(file, key: "once")
            try await workspace.waitForFile("has-begun")
            try await lives.kill()
            _ = try workspace.write("go", "")
            for _ in 1...3 {
                try await lives.start(killAt: "requestInHand:1")
                try await lives.waitForDeath()
            }
            try await lives.start()
            _ = try workspace.write("done", "")
            let ended = try await workspace.operon(
                ["wait", "poison", "--timeout", "120s"],
                environment: lives.environment
            )
            let list = try await workspace.operon(
                ["operations", "poison", "--output", "json"],
                environment: lives.environment
            )

            #expect(ended.end == .exit(1), "\(ended.errors)")
            #expect(lives.deaths == 4)
            #expect(list.output.contains("undecodable"), "\(list.output)")
            #expect(list.output.contains("succeeded"), "\(list.output)")
            #expect(!list.output.contains("child"), "\(list.output)")
        }
    }

    @Test func `a coordinator that runs out of memory loses nothing that it has answered`()
        async throws
    {
        try await Workspace.run { workspace in
            let (file, graph) = try workspace.writeGraph(
                layers: 4,
                width: 3,
                milliseconds: 50...150,
                gates: [2: "back"]
            )
            let more = (0..<50_000).map { #"{"name": "more \#($0)", "operation": "nothing"}"# }
            let large = try workspace.write("large.jsonl", more.joined(separator: "\n"))
            try workspace.startWorkers(2, slots: 2)
            let lives = CoordinatorLives(workspace)
            try await lives.start()
            try await lives.submit(file, key: "once")
            // It is in the middle of the graph: what begins the third layer waits.
            try await lives.waitForLedger(toGrowBy: 12, upTo: 12)

            let process = try #require(lives.program).process
            let bytes = try ProcessFacts.dataBytes(process) + 4 << 20
            let limits = try workspace.start(
                "/usr/bin/prlimit",
                ["--pid", "\(process)", "--data=\(bytes)"]
            )
            try #require(try await limits.end().end == .exit(0))
            let refused = try await workspace.operon(
                ["submit", large],
                environment: lives.environment
            )
            #expect(refused.end != .exit(0), "\(refused.errors)")
            let ended = try await lives.waitForEnd()
            #expect(ended.end != .exit(0), "\(ended.errors)")

            try await lives.start()
            _ = try workspace.write("back", "")
            try await lives.restartUntilFinished()
            #expect(lives.deaths == 1)
            try workspace.expectEachOnce(graph)
        }
    }

    @Test func `a second coordinator on the same file says who has it`() async throws {
        try await Workspace.run { workspace in
            let lives = CoordinatorLives(workspace)
            try await lives.start()
            let second = try await lives.second()
            #expect(second.end == .exit(8))
            #expect(second.errors.contains("graphs.db"), "\(second.errors)")
            #expect(second.errorLines.count == 1, "\(second.errors)")
        }
    }
}
