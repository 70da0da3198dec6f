import Foundation
import Testing

/// Outputs that are too large to travel with the operation that needs them.
@Suite(.serialized) struct FanInTests {
    /// `count` operations with an output of exactly `bytes` bytes each, no two alike, and one that
    /// counts what it is given: names, then bytes.
    private func write(
        in workspace: Workspace,
        count: Int,
        bytes: Int,
        gate: String? = nil
    ) throws -> String {
        // What is around the body: two quotes and a name of five bytes.
        _ = try workspace.write("body", String(repeating: "x", count: bytes - 7))
        var wait = ""
        var names = (0..<count).map { "o" + String(10_000 + $0).dropFirst() }
        var operations = names.map { name in
            "  \(name): { run: '(printf \"\\\"\(name)\"; cat body; printf \"\\\"\")"
                + " > $OPERON_OUTPUT' }"
        }
        if let gate {
            operations.append("  gate: { run: '\(gate)', dependencies: [\(names[0])] }")
            names.append("gate")
            // Whatever it has by then, it has not ended when its worker is killed.
            wait = "until test -e killed; do sleep 0.1; done"
        }
        operations.append(
            """
              join:
                run: |
                  \(wait)
                  tr '{,' '\\n' < $OPERON_INPUTS | grep -c '^"o[0-9]*":"o[0-9]*x*"}*$' > names
                  wc -c < $OPERON_INPUTS > bytes
                dependencies: [\(names.joined(separator: ", "))]
            """
        )
        return try workspace.write(
            "graph.yaml",
            "operations:\n" + operations.joined(separator: "\n") + "\n"
        )
    }

    private func expect(_ workspace: Workspace, count: Int, bytes: Int, gate: Bool = false) {
        #expect(workspace.lines(of: "names") == ["\(count)"])
        // {"o0000":…,…} and a line's end.
        let around = count * 9 + 2 + (gate ? #","gate":null"#.utf8.count : 0)
        #expect(workspace.lines(of: "bytes") == ["\(count * bytes + around)"])
    }

    @Test(arguments: Place.allCases)
    func `a fan-in of 1,000 outputs of 256 KiB`(place: Place) async throws {
        try await Workspace.run { workspace in
            let file = try write(in: workspace, count: 1_000, bytes: 256 << 10)
            if place == .broker { try workspace.startWorkers(2, slots: 2) }
            let run = try workspace.startRun(file, on: place, ["--output", "json"])
            let ended = try await run.end(within: .seconds(900))

            #expect(ended.end == .exit(0), "\(ended.errors)")
            try ended.report().expectSuccess(attempts: 1)
            expect(workspace, count: 1_000, bytes: 256 << 10)
        }
    }

    @Test func `a worker that is killed while it fetches costs an attempt and nothing else`()
        async throws
    {
        try await Workspace.run { workspace in
            let gate = "while [ ! -e go ]; do sleep 0.1; done"
            let file = try write(in: workspace, count: 150, bytes: 1 << 20, gate: gate)
            let workers = try workspace.startWorkers(2, slots: 2)
            let run = try workspace.startRun(file, on: .broker, ["--output", "json"])
            try await run.says("[150/152]", within: .seconds(600))
            _ = try workspace.write("go", "")
            try await run.says("succeeded gate")
            // 150 MiB are on their way to one of them.
            for worker in workers { worker.signal(SIGKILL) }
            _ = try workspace.write("killed", "")
            try workspace.startWorkers(1, slots: 1)
            let ended = try await run.end(within: .seconds(600))

            #expect(ended.end == .exit(0), "\(ended.errors)")
            let report = try ended.report()
            report.expectSuccess()
            let join = try #require(report.operations.last)
            // One of them had it, and the other may have been given it before it was given up.
            #expect(2...3 ~= join.attempts.count)
            expect(workspace, count: 150, bytes: 1 << 20, gate: true)
        }
    }
}
