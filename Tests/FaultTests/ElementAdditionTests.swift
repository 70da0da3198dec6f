import Glibc
import OperonFaultKit
import Testing

/// Workers die while they add the elements of an output.
@Suite(.serialized) struct ElementAdditionTests {
    @Test func `a worker that is killed while it adds leaves no element twice, and none out`()
        async throws
    {
        try await Workspace.run { workspace in
            let count = 60_000
            let file = try workspace.write(
                "graph.yaml",
                """
                operations:
                  list: { run: 'echo "\\"1..\(count)\\"" > $OPERON_OUTPUT' }
                  r: { operation: nothing, description: '${item}', forEach: { output: list } }
                  end: { run: touch end, dependencies: [r] }
                """
            )
            let workers = try workspace.startWorkers(2, slots: 2)
            let run = try workspace.startReportedRun(file)
            // It takes seconds to add all, piece by piece.
            try await run.says("running r.forEach")
            for worker in workers { worker.signal(SIGKILL) }
            try workspace.startWorkers(1, slots: 2)
            let ended = try await run.end(within: .seconds(300))

            #expect(ended.end == .exit(0), "\(ended.errors.suffix(2_000))")
            let report = try ended.report()
            var names: [String: Int] = [:]
            for operation in report.operations { names[operation.name, default: 0] += 1 }
            #expect(names.count == count + 4)
            #expect(names.values.allSatisfy { $0 == 1 })
            #expect((1...count).allSatisfy { names["r[\($0)]"] == 1 })
            let adding = report.operations.first { $0.name == "r.forEach" }
            #expect(adding?.attempts.count == 2)
            #expect(report.operations.allSatisfy { $0.outcome == "succeeded" })
        }
    }
}
