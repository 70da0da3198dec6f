import Foundation
import OperonFaultKit
import Testing

/// Running operations that wait for others while coordinators die.
@Suite(.serialized, .timeLimit(.minutes(3))) struct AwaitFaultTests {
    @Test func `a wait outlives the coordinators that knew of it, in one attempt`() async throws {
        try await Workspace.run { workspace in
            let operon = try Program.executable("operon")
            let file = try workspace.write(
                "graph.yaml",
                """
                name: waiting
                queues: { held: { isSuspended: true } }
                operations:
                  parent:
                    run: |
                      echo $OPERON_ATTEMPT >> attempts
                      touch has-begun
                      '\(operon)' await gated
                      echo "parent $?" >> ledger
                  gated: { queue: held, run: "echo gated >> ledger" }
                """
            )
            let lives = CoordinatorLives(workspace)
            try await lives.start()
            try workspace.startWorkers(1, slots: 1)
            try await lives.submit(file, key: "once")
            try await workspace.waitForFile("has-begun")
            for life in 1...3 {
                try await untilItWaits(lives, workspace)
                try await lives.kill()
                try await lives.start()
                #expect(lives.deaths == life)
            }
            try await untilItWaits(lives, workspace)
            let resumed = try await workspace.operon(
                ["resume", "--queue", "held"],
                environment: lives.environment
            )
            #expect(resumed.end == .exit(0), "\(resumed.errors)")
            let ended = try await workspace.operon(
                ["wait", "waiting"],
                environment: lives.environment
            )

            #expect(ended.end == .exit(0), "\(ended.errors)")
            #expect(workspace.lines(of: "attempts") == ["1"])
            #expect(workspace.lines(of: "ledger") == ["gated", "parent 0"])
        }
    }

    /// The coordinator was told by the worker, and says so.
    private func untilItWaits(_ lives: CoordinatorLives, _ workspace: Workspace) async throws {
        let deadline = ContinuousClock.now + .seconds(60)
        while ContinuousClock.now < deadline {
            let explained = try await workspace.operon(
                ["explain", "waiting/parent"],
                environment: lives.environment
            )
            if explained.output.contains("It has started, and waits for “gated”") { return }
        }
        Issue.record("the coordinator never heard of the wait")
    }
}
