import Foundation
import OperonFaultKit
import Testing

/// What a coordinator lets others see of it: metrics, traces, logs.
@Suite struct ObservationTests {
    private static let graph = """
        name: seen
        operations:
          a: { run: 'echo "$TRACEPARENT" > trace.a' }
          b: { run: 'echo "$TRACEPARENT" > trace.b; false', dependencies: [a] }
        """

    private static let plainDemandReady =
        #"operon_demand_ready{enforce="false",resources="",workers=""}"#

    @Test func `metrics count outcomes and measure runs and commits`() async throws {
        try await Workspace.run { workspace in
            let up = try await Up(workspace)
            let file = try workspace.write("seen.yaml", Self.graph)
            #expect(try await up.operon("submit", file, "--wait").end == .exit(1))

            let text = try RawAPI.ask(up.address, "/metrics").body
            let lines = Set(text.split(separator: "\n").map(String.init))
            #expect(lines.contains("operon_outcomes_total{outcome=\"succeeded\"} 1"))
            #expect(lines.contains("operon_outcomes_total{outcome=\"failed\"} 1"))
            #expect(lines.contains("operon_attempts_total{end=\"failed\"} 1"))
            #expect(lines.contains("operon_run_seconds_count 2"))
            #expect(lines.contains("operon_dispatch_seconds_count 2"))
            #expect(lines.contains("operon_operations{state=\"executing\"} 0"))
            #expect(lines.contains("operon_queue_ready{queue=\"default\"} 0"))
            #expect(lines.contains(Self.plainDemandReady + " 0"))
            #expect(lines.contains("# TYPE operon_resource_free gauge"))
            let memory = lines.first { $0.hasPrefix("operon_resource_offered{resource=\"memory") }
            #expect(memory?.hasSuffix("} 0") == false)
            #expect(lines.contains("operon_workers 1"))
            #expect(lines.contains("# TYPE operon_store_commit_seconds histogram"))
            #expect(!lines.contains("operon_store_commit_seconds_count 0"))
            #expect(!lines.contains("operon_store_sync_seconds_count 0"))
        }
    }

    @Test func `a trace goes from the submission to the processes, over a restart`() async throws {
        try await Workspace.run { workspace in
            let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
            let up = try await Up(workspace)
            let file = try workspace.write("seen.yaml", Self.graph)
            let submitted = try await workspace.operon(
                ["submit", file, "--wait"],
                environment: [
                    "OPERON_COORDINATOR": up.address, "TRACEPARENT": parent,
                ]
            )
            #expect(submitted.end == .exit(1), "\(submitted.errors)")
            #expect(try workspace.read("trace.a") == parent + "\n")
            _ = try workspace.write("trace.b", "")

            try await up.restart()
            #expect(try await up.operon("retry", "@latest", "--failed").end == .exit(0))
            #expect(try await up.operon("wait", "@latest").end == .exit(1))
            #expect(try workspace.read("trace.b") == parent + "\n")
        }
    }

    @Test func `a run hands its trace on, and none if it has none`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write("seen.yaml", Self.graph)
            _ = try await workspace.operon(
                ["run", "--local", file],
                environment: ["TRACEPARENT": "00-1-2-01"]
            )
            #expect(try workspace.read("trace.a") == "00-1-2-01\n")

            _ = try await workspace.operon(
                ["run", "--local", file],
                environment: ["TRACEPARENT": nil]
            )
            #expect(try workspace.read("trace.a") == "\n")
        }
    }

    @Test func `the log is an object a line if that is asked for`() async throws {
        struct Line: Decodable {
            let time: String
            let level: String
            let label: String
            let message: String
            let metadata: [String: String]?
        }

        try await Workspace.run { workspace in
            let up = try await Up(workspace, "--log-format", "json")
            let file = try workspace.write("seen.yaml", Self.graph)
            #expect(try await up.operon("submit", file, "--wait").end == .exit(1))
            try await up.program.says("graph finished")

            let lines = try up.program.errors.text.split(separator: "\n").map { line in
                try JSONDecoder().decode(Line.self, from: Data(line.utf8))
            }
            #expect(lines.allSatisfy { $0.label == "operon" && $0.time.hasSuffix("Z") })
            let submitted = try #require(lines.first { $0.message == "graph submitted" })
            #expect(submitted.level == "info")
            #expect(submitted.metadata?["name"] == "seen")
            #expect(submitted.metadata?["operations"] == "2")
            let finished = try #require(lines.first { $0.message == "graph finished" })
            #expect(finished.metadata?["succeeded"] == "1")
            #expect(finished.metadata?["failed"] == "1")
            #expect(lines.contains { $0.message == "worker joined" })
        }
    }
}
