import Foundation
import OperonModel
import Testing

/// Attempts and events name their workers, whoever died since.
@Suite struct WorkerNameTests {
    private func names(_ up: Up) async throws -> (attempts: [String], events: [String]) {
        let shown = try await up.operon("show", "0/a", "--output", "json")
        let detail = try JSONDecoder().decode(
            OperationDetail.self,
            from: Data(shown.output.utf8)
        )
        let events = try await up.operon("events", "--graph", "0", "--output", "json")
        let named = try events.output.split(separator: "\n").compactMap { line in
            try JSONDecoder().decode(EventView.self, from: Data(line.utf8)).worker
        }
        return (detail.attempts.map(\.worker), named)
    }

    @Test func `an attempt of an earlier life is shown with the name of its worker`() async throws {
        try await Workspace.run { workspace in
            let up = try await Up(workspace)
            let file = try workspace.write("g.yaml", "operations: { a: { run: 'false' } }")
            #expect(try await up.operon("submit", file, "--wait").end == .exit(1))
            let before = try await names(up)
            let workers = try await up.operon("workers", "--output", "quiet").output
            #expect(before.attempts.map { $0 + "\n" } == [workers])
            #expect(Set(before.events) == Set(before.attempts))

            try await up.restart()
            #expect(try await names(up) == before)
            #expect(try await up.operon("retry", "0", "--failed").end == .exit(0))
            #expect(try await up.operon("wait", "0").end == .exit(1))
            try await up.restart()
            let after = try await names(up)
            #expect(after.attempts == before.attempts + before.attempts)
            #expect(Set(after.events) == Set(before.events))
        }
    }
}
