import OperonModel
import OperonPorts
import OperonTesting
import Testing

/// What somebody sees who is asked: by `approvals`, `complete` and `run`.
@Suite struct QuestionGoldenTests {
    private static let graph = """
        name: asks
        operations:
          first:
            external: true
            input: { build: 17, of: [a, b], changes: "A line that is longer than any terminal." }
          second: { external: true, description: 'Send the report?', timeout: 2d }
        """

    @Test(arguments: [UInt16(80), 40])
    func `questions and answers are as the golden file has them`(columns: UInt16) async throws {
        var golden = Golden("questions-\(columns).txt")
        let clock = ManualClock()
        try await LiveServer.run(clock: clock, holdsAll: true) { server in
            _ = try server.workspace.write("asks.yaml", Self.graph)
            try await server.run("submit asks.yaml")
            try await server.wait(for: "0/first", .executing)
            try await server.wait(for: "0/second", .executing)
            for (line, answers) in [
                ("approvals", []), ("show asks/first", []),
                ("complete asks/first", ["maybe", "y"]), ("complete asks/second", ["N"]),
                ("complete asks/second", []), ("approvals", []),
                ("run --local asks.yaml", ["y", "c"]),
            ] {
                let program = try server.start(
                    line,
                    streams: .terminal(columns: columns, rows: 24)
                )
                for (index, answer) in answers.enumerated() {
                    try await program.says("[y/n/c] ", times: index + 1)
                    try program.type(answer + "\n")
                }
                let ended = try await program.end()
                let screen = TerminalScreen(columns: Int(columns), ended.output)
                #expect(screen.unknown == [], "\(line)")
                golden.add("$ operon \(line)\n")
                let lines = screen.lines.map {
                    $0.replacing(#/took \d.*/#, with: "took TIME")
                        .replacing(#/ \d+:\d\d$/#, with: " 0:00") + "\n"
                }
                golden.add(lines.joined() + "[\(ended.end)]\n\n")
            }
        }
        try golden.check()
    }
}
