import Glibc
import OperonCore
import OperonFaultKit
import Testing

/// Workers die or leave in the middle of a run.
@Suite(.serialized) struct WorkerDeathTests {
    @Test func `a worker that is killed loses its attempts, and others run them again`()
        async throws
    {
        try await Workspace.run { workspace in
            let (file, graph) = try workspace.writeGraph(
                layers: 12,
                width: 5,
                milliseconds: 100...300,
                gates: [3: "killed"]
            )
            let workers = try workspace.startWorkers(3, slots: 2)
            let run = try workspace.startReportedRun(file)
            // Five operations on three workers with two slots each: everybody has one in hand, and
            // none of them ends before the kill.
            for column in 0..<5 { try await run.says("running o3-\(column)\n") }
            workers[1].signal(SIGKILL)
            _ = try workspace.write("killed", "")
            let ended = try await run.end()

            let report = try workspace.expectSound(ended, of: graph, limit: 6)
            #expect(!report.lost.isEmpty)
            #expect(Set(report.lost.map(\.worker)).count == 1, "one worker was lost")
            #expect(ended.errors.contains("is gone."))
        }
    }

    @Test func `each of four workers is asked to leave in turn, and nothing is lost`()
        async throws
    {
        try await Workspace.run { workspace in
            let (file, graph) = try workspace.writeGraph(
                layers: 12,
                width: 8,
                milliseconds: 100...300,
                gates: [2: "gate0", 4: "gate1", 6: "gate2", 8: "gate3"]
            )
            let workers = try workspace.startWorkers(4, slots: 2)
            let run = try workspace.startReportedRun(file)
            for (index, worker) in workers.enumerated() {
                // Eight operations on eight slots: it has two in hand.
                for column in 0..<8 { try await run.says("running o\(index * 2 + 2)-\(column)\n") }
                worker.signal(SIGTERM)
                try workspace.startWorkers(1, slots: 2)
                try await worker.says("waits for 2 to finish")
                _ = try workspace.write("gate\(index)", "")
                // Its operations take a third of a second; it would give up after 30 s.
                #expect(try await worker.end(within: .seconds(20)).end == .exit(0))
            }
            let ended = try await run.end()

            let report = try workspace.expectSound(ended, of: graph, limit: 10)
            #expect(report.lost.isEmpty)
            #expect(report.counts.failed == 0)
            // Given back is only what had not started.
            let ledger = try workspace.ledger()
            #expect(report.operations.allSatisfy { ledger.starts(of: $0.name).count == 1 })
        }
    }
}

/// What ends badly, and what does not want to end.
@Suite struct BadChildrenTests {
    private static let graph = """
        operations:
          deaf:
            timeout: 500ms
            grace: 500ms
            run: trap '' TERM; while :; do sleep 0.05; done
          twins: { run: "(setsid sleep 1000 &) ; (setsid sh -c 'sleep 1000 & wait' &) ; sleep 0.1" }
          holder: { run: sleep 1000 & }
          flood: { run: yes | head -c 200000000 }
          # Half a gibibyte of address space for what would take all there is.
          glutton: { run: ulimit -v 500000; tail /dev/zero }
          stubborn:
            timeout: 500ms
            grace: 500ms
            run: "(trap '' TERM HUP; sleep 1000 & wait) & trap '' TERM; sleep 1000 & wait; wait"
          after:
            run: touch after
            dependencies: { deaf: finished, twins: finished, holder: finished, flood: finished,
              glutton: finished, stubborn: finished }
        """

    @Test func `operations that do not behave end as asked, and their worker lives`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write("graph.yaml", Self.graph)
            let worker = try workspace.startWorkers(1, slots: 6)[0]
            let ended = try await workspace.startReportedRun(file).end()

            let report = try ended.report()
            #expect(ended.end == .exit(1))
            #expect(report["deaf"]?.error?.code == "timeout")
            #expect(report["stubborn"]?.error?.code == "timeout")
            #expect(report["twins"]?.outcome == "succeeded")
            #expect(report["holder"]?.outcome == "succeeded")
            #expect(report["flood"]?.outcome == "succeeded")
            #expect(report["glutton"]?.error?.exitCode == 1)
            #expect(report["after"]?.outcome == "succeeded")
            #expect(report.operations.allSatisfy { $0.attempts.count == 1 })
            #expect(!worker.hasEnded)
            // A hundredth of what went through it.
            #expect(try ProcessFacts.residentBytes(worker.process) < 200 << 20)
            worker.signal(SIGTERM)
            #expect(try await worker.end(within: .seconds(20)).end == .exit(0))
            try await workspace.waitUntilNoProcess()
        }
    }
}
