import Foundation
import Glibc
import OperonFaultKit
import Testing

/// The graphs of `Examples/graphs` do what their page says.
@Suite(.timeLimit(.minutes(5))) struct GraphExampleTests {
    /// Runs `body` in a copy of one of them.
    private func example(
        _ name: String,
        _ body: (Workspace) async throws -> Void
    ) async throws {
        let folder = URL(fileURLWithPath: #filePath)
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("Examples/graphs/\(name)")
        try await Workspace.run { workspace in
            for file in try FileManager.default.contentsOfDirectory(atPath: folder.path) {
                try FileManager.default.copyItem(
                    atPath: folder.appendingPathComponent(file).path,
                    toPath: workspace.path(file)
                )
            }
            try await body(workspace)
        }
    }

    private func report(_ workspace: Workspace, _ arguments: String...) async throws -> Report {
        try await workspace.operon(["run", "--output", "json"] + arguments).report()
    }

    @Test func `a program is compiled, and only what is out of date again`() async throws {
        try await example("c-build") { workspace in
            let places = [
                "/usr/bin/cc", "/usr/bin/clang", "/usr/bin/gcc", "/opt/swift/usr/bin/clang",
            ]
            let path = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
            let compiler = try #require(
                (places + path.map { "\($0)/clang" })
                    .first { FileManager.default.isExecutableFile(atPath: $0) }
            )
            func build() async throws -> [String] {
                let report = try await report(workspace, "c-build.yaml", "--set", "cc=\(compiler)")
                #expect(report.counts.succeeded == 5)
                return report.operations.filter { $0.isUpToDate != true }.map(\.name)
            }
            #expect(try await build() == ["main", "text", "table", "log", "link"])
            let program = try workspace.start(workspace.path("program"), [])
            #expect(try await program.end().output == "1.0      4\n")
            #expect(try await build() == [])
            let now = Date(timeIntervalSinceNow: 1)
            try FileManager.default.setAttributes(
                [.modificationDate: now],
                ofItemAtPath: workspace.path("version.h")
            )
            #expect(try await build() == ["main", "link"])
        }
    }

    @Test func `of 200 images one is damaged, and runs again when it is mended`() async throws {
        try await example("images") { workspace in
            let make = workspace.path("make-images")
            _ = try await workspace.start(make, ["200"]).end()
            let damaged = try workspace.read("in/image-117.pgm")
            _ = try workspace.write("in/image-117.pgm", "P2\n8 8\n255\n1 2 3\n")
            let run = ["images.yaml", "--slots", "4", "--store", "run.db"]
            let first = try await workspace.operon(["run"] + run)
            #expect(first.end == .exit(1))
            #expect(
                first.errors.contains("    in/image-117.pgm: 3 pixels instead of 64"),
                "\(first.errors)"
            )
            #expect(first.errors.contains("199 succeeded, 1 failed, 2 skipped"))
            _ = try workspace.write("in/image-117.pgm", damaged)
            let second = try await workspace.operon(["run"] + run + ["--resume"])
            #expect(second.end == .exit(0), "\(second.errors)")
            #expect(second.errors.contains("199 of 202 operations have"), "\(second.errors)")
            #expect(workspace.lines(of: "all.pgm").count == 3 + 8 * 200)
        }
    }

    @Test func `downloads that fail and hang arrive`() async throws {
        try await example("downloads") { workspace in
            let report = try await report(workspace, "downloads.yaml", "--slots", "3")
            #expect(report.counts.succeeded == 10)
            #expect(workspace.lines(of: "index.txt").count == 8)
            // The first request of each fails; the second of the last one hangs.
            let attempts = report.operations.filter { $0.name.hasPrefix("download[") }
                .map(\.attempts.count)
            #expect(attempts.count == 8)
            #expect(attempts.allSatisfy { $0 >= 2 })
            #expect(attempts.last.map { $0 >= 3 } == true)
        }
    }

    @Test func `a report is sent when somebody approves it`() async throws {
        try await example("report") { workspace in
            let up = try await Up(workspace)
            for (day, answer) in [("2026-05-01", ["--yes"]), ("2026-05-02", ["--fail", "wrong"])] {
                let file = workspace.path("report.yaml")
                try await up.act("submit", file, "--set", "day=\(day)")
                // It asks when the report is there.
                try await workspace.waitForFile("report-\(day).txt")
                while try await !up.operon("approvals").output.contains("report of \(day)?") {
                    // Nobody is told of it but who asks.
                    try await Task.sleep(for: .milliseconds(20))
                }
                let completed = try await up.operon(["complete", "@latest/approve"] + answer)
                #expect(completed.end == .exit(0), "\(completed.errors)")
                let wait = try await up.operon("wait", "@latest")
                #expect(wait.end == .exit(answer == ["--yes"] ? 0 : 1), "\(wait.errors)")
            }
            #expect(try workspace.read("sent-2026-05-01.txt") == "Report of 2026-05-01: 200 sold\n")
            #expect(!FileManager.default.fileExists(atPath: workspace.path("sent-2026-05-02.txt")))
            #expect(workspace.lines(of: "refused/report-2026-05-02.txt").count == 1)
            try await up.act("trigger", "add", workspace.path("nightly.trigger"))
        }
    }

    @Test func `what is found at run time is added, and comes before the rest`() async throws {
        try await example("fan-out") { workspace in
            _ = try workspace.write("sold-out.txt", "order-002\n")
            let run = ["run", "fan-out.yaml", "--store", "run.db"]
            // It calls `operon add`.
            let folder = URL(fileURLWithPath: try Program.executable("operon"))
                .deletingLastPathComponent().path
            let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
            let environment = ["PATH": "\(folder):\(path)"]
            let failed = try await workspace.operon(run, environment: environment)
            #expect(failed.end == .exit(1))
            #expect(failed.errors.contains("order-002: an article is sold out"), "\(failed.errors)")
            _ = try workspace.write("sold-out.txt", "")
            let mended = try await workspace.operon(
                run + ["--resume"],
                environment: environment
            )
            #expect(mended.end == .exit(0), "\(mended.errors)")
            #expect(workspace.lines(of: "all.txt") == ["5 orders are packed"])
        }
    }
}
