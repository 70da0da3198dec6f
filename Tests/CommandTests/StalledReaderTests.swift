import Glibc
import OperonFaultKit
import Testing

/// A run whose standard error nobody reads.
@Suite struct StalledReaderTests {
    @Test func `a run does its work, and ends at the second signal`() async throws {
        try await Scene.play { scene in
            let file = try scene.write(
                "graph.yaml",
                """
                name: unread
                operations:
                  first: { run: 'echo first >> ran' }
                  second: { run: 'echo second >> ran; exit 1', dependencies: [first] }
                """
            )
            let run = try scene.startRun(
                file,
                on: .inProcess,
                ["--logs", "logs", "--output", "json"],
                streams: .unreadErrors
            )
            try await scene.waitForLines(2, of: "ran")
            // Nothing tells when the first was taken: two at once would be one.
            run.signal(SIGINT)
            try await Task.sleep(for: .seconds(1))
            run.signal(SIGINT)
            let ended = try await run.end()
            #expect(ended.end == .exit(130))
            let report = try ended.report()
            #expect(report.counts.succeeded == 1 && report.counts.failed == 1)
        }
    }
}
