import Foundation
import Glibc
import OperonFaultKit
import OperonModel
import Testing

/// `operon run --store`, and going on with it.
@Suite struct RunStoreTests {
    /// `slow` runs until there is a file `go`; everything writes its name into `ran`.
    private static let graph = """
        name: kept
        operations:
          first: { run: 'echo first >> ran' }
          slow:
            run: 'echo slow >> ran; while ! [ -e go ]; do sleep 0.05; done'
            dependencies: [first]
          last: { run: 'echo last >> ran', dependencies: [slow] }
        """

    private static func arguments(_ file: String, _ more: String...) -> [String] {
        [file, "--store", "kept.db"] + more
    }

    @Test func `a run that was killed goes on where it was`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write("graph.yaml", Self.graph)
            let run = try workspace.start("operon", ["run", "--local"] + Self.arguments(file))
            try await run.says("running slow\n")
            // Said of its process, which may not have come so far yet.
            try await workspace.waitForLines(2, of: "ran")
            run.signal(SIGKILL)
            _ = try await run.end()
            try await workspace.waitUntilNoProcess(named: "sleep")

            _ = try workspace.write("go", "")
            let again = try await workspace.operon(
                ["run", "--local"] + Self.arguments(file, "--resume", "--output", "json")
            )
            #expect(again.end == .exit(0), "\(again.errors)")
            #expect(try again.report().counts == Report.Counts(succeeded: 3, total: 3))
            #expect(workspace.lines(of: "ran") == ["first", "slow", "slow", "last"])
            // Before anything that happens, and with no word of a worker that ended with the run.
            #expect(
                again.errors.hasPrefix(
                    "Continuing the stored run: 1 of 3 operations have succeeded.\n"
                ),
                "\(again.errors)"
            )
            #expect(!again.errors.contains("is gone"), "\(again.errors)")

            // Nothing is left: that is said again, and nothing runs.
            let third = try await workspace.operon(
                ["run", "--local"] + Self.arguments(file, "--resume")
            )
            #expect(third.end == .exit(0), "\(third.errors)")
            #expect(workspace.lines(of: "ran").count == 4)
        }
    }

    @Test func `what runs on a worker meanwhile is not run again`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write("graph.yaml", Self.graph)
            try workspace.startWorkers(1, slots: 2)
            let run = try workspace.startRun(file, on: .broker, ["--store", "kept.db"])
            try await run.says("running slow\n")
            run.signal(SIGKILL)
            _ = try await run.end()

            let again = try workspace.startRun(
                file,
                on: .broker,
                ["--store", "kept.db", "--resume", "--output", "json"]
            )
            try await again.says("Continuing the stored run")
            _ = try workspace.write("go", "")
            let ended = try await again.end()
            #expect(ended.end == .exit(0), "\(ended.errors)")
            #expect(try ended.report().counts == Report.Counts(succeeded: 3, total: 3))
            #expect(workspace.lines(of: "ran") == ["first", "slow", "last"])
        }
    }

    @Test func `what failed, and what was skipped for that, runs again`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "graph.yaml",
                """
                operations:
                  good: { run: 'echo good >> ran' }
                  bad: { run: 'echo bad >> ran; [ -e fixed ]', dependencies: [good] }
                  after: { run: 'echo after >> ran', dependencies: [bad] }
                """
            )
            let first = try await workspace.operon(["run", "--local"] + Self.arguments(file))
            #expect(first.end == .exit(1), "\(first.errors)")
            #expect(first.errors.contains("the same command with --resume"), "\(first.errors)")
            _ = try workspace.write("fixed", "")

            let again = try await workspace.operon(
                ["run", "--local"] + Self.arguments(file, "--resume")
            )
            #expect(again.end == .exit(0), "\(again.errors)")
            #expect(workspace.lines(of: "ran") == ["good", "bad", "bad", "after"])
        }
    }

    @Test func `what Ctrl-C cancelled runs again`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write("graph.yaml", Self.graph)
            let run = try workspace.start("operon", ["run", "--local"] + Self.arguments(file))
            try await run.says("running slow\n")
            // Said of its process, which may not have come so far yet.
            try await workspace.waitForLines(2, of: "ran")
            run.signal(SIGINT)
            #expect(try await run.end().end == .exit(130))

            _ = try workspace.write("go", "")
            let again = try await workspace.operon(
                ["run", "--local"] + Self.arguments(file, "--resume")
            )
            #expect(again.end == .exit(0), "\(again.errors)")
            #expect(workspace.lines(of: "ran") == ["first", "slow", "slow", "last"])
        }
    }

    @Test func `what was cancelled before the run was killed is not told as news`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "graph.yaml",
                """
                operations:
                  slow:
                    run: |
                      trap 'touch asked' TERM
                      echo slow >> ran
                      while ! [ -e go ]; do sleep 0.05; done
                  last: { run: 'echo last >> ran', dependencies: [slow] }
                """
            )
            let run = try workspace.start("operon", ["run", "--local"] + Self.arguments(file))
            try await workspace.waitForLines(1, of: "ran")
            run.signal(SIGINT)
            // The cancel is stored before the operation is asked to end.
            try await workspace.waitForFile("asked")
            run.signal(SIGKILL)
            _ = try await run.end()
            try await workspace.waitUntilNoProcess(named: "sleep")

            _ = try workspace.write("go", "")
            let again = try await workspace.operon(
                ["run", "--local"] + Self.arguments(file, "--resume")
            )
            #expect(again.end == .exit(0), "\(again.errors)")
            #expect(workspace.lines(of: "ran") == ["slow", "slow", "last"])
            #expect(!again.errors.contains("cancelled"), "\(again.errors)")
            #expect(!again.errors.contains("skipped"), "\(again.errors)")
            #expect(
                again.errors.hasPrefix(
                    "Continuing the stored run: 0 of 2 operations have succeeded.\n"
                ),
                "\(again.errors)"
            )
        }
    }

    @Test func `a store with something else is left alone`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write("graph.yaml", "operations: { a: { run: 'true' } }")
            let run = ["run", "--local"] + Self.arguments(file)
            #expect(try await workspace.operon(run).end == .exit(0))

            let without = try await workspace.operon(run)
            #expect(without.end == .exit(2))
            #expect(without.errors.contains("--resume"), "\(without.errors)")

            let up = try await Up(workspace)
            #expect(try await up.operon("submit", file).end == .exit(0))
            _ = try await up.interruptTwice()
            let other = [
                "run", "--local", file, "--store", workspace.path("graphs.db"), "--resume",
            ]
            let refused = try await workspace.operon(other)
            #expect(refused.end == .exit(2))
            #expect(refused.errors.contains("graphs of a coordinator"), "\(refused.errors)")
        }
    }

    @Test func `logs of a resumed run stand beside those of the earlier one`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "graph.yaml",
                "operations: { a: { run: 'date +%N; test -e mended' } }"
            )
            let run = ["run", "--local", file, "--store", "run.db", "--logs", "logs"]
            #expect(try await workspace.operon(run).end == .exit(1))
            let first = try workspace.read("logs/0-a.1.log")
            _ = try workspace.write("mended", "")
            #expect(try await workspace.operon(run + ["--resume"]).end == .exit(0))
            #expect(try workspace.read("logs/0-a.1.log") == first)
            let second = try workspace.read("logs/0-a.2.log")
            #expect(!second.isEmpty && second != first)
        }
    }

    @Test func `resume without a store is a wrong call`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write("graph.yaml", "operations: { a: { run: 'true' } }")
            let run = try await workspace.operon(["run", file, "--resume"])
            #expect(run.end == .exit(2))
            #expect(run.errors.contains("--resume needs --store"), "\(run.errors)")
        }
    }

    /// A container may have root and no right to mount.
    static let canMount: Bool = {
        let probe = Process()
        probe.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        probe.arguments = ["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
        probe.standardError = FileHandle.nullDevice
        do {
            try probe.run()
        } catch {
            return false
        }
        probe.waitUntilExit()
        return probe.terminationStatus == 0
    }()

    /// Starts a run whose store is on a file system of this size, in the folder `disk`.
    private static func start(
        _ file: String,
        onDiskOf size: String,
        in workspace: Workspace
    ) throws -> Program {
        try FileManager.default.createDirectory(
            atPath: workspace.path("disk"),
            withIntermediateDirectories: false
        )
        let script = """
            mount -t tmpfs -o size=\(size) tmpfs disk || exit 1
            exec "$0" run --local "$1" --slots 2 --store disk/kept.db
            """
        return try workspace.start(
            "/usr/bin/env",
            ["unshare", "-m", "sh", "-c", script, try Program.executable("operon"), file]
        )
    }

    /// A file system of four mebibytes, which the operation fills, needs the right to mount one.
    @Test(
        .enabled(if: canMount, "nobody here may mount a file system"),
        arguments: [
            SIGINT, SIGTERM,
        ]
    )
    func `on a full disk the first signal ends the run, which says what is not stored`(
        signal: Int32
    ) async throws {
        // What SQLite has of its log stays and is written again, so that a small commit may fit
        // however full the disk is. That of so many cancellations does not.
        let waiting = (0..<20_000)
            .map { "  waits\($0): { run: 'true', dependencies: [ends] }\n" }.joined()
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "graph.yaml",
                """
                operations:
                  fills:
                    run: |
                      while :; do
                        cat /dev/zero >>disk/filler
                        touch full
                        sleep 0.05
                      done
                  ends: { run: 'while ! [ -e full ]; do sleep 0.05; done' }

                """ + waiting
            )
            let run = try Self.start(file, onDiskOf: "4m", in: workspace)
            try await run.says("is full: nothing new starts until there is room")
            run.signal(signal)
            let ended = try await run.end()
            #expect(ended.end == .exit(128 + signal), "\(ended.errors)")
            #expect(ended.errors.contains("The cancel is not stored"), "\(ended.errors)")
            #expect(ended.errors.contains("--resume"), "\(ended.errors)")
            // Logged once, however often the store refuses.
            let told = ended.errorLines.count { $0.contains("the store takes no records") }
            #expect(told == 1, "\(ended.errors)")
            try await workspace.waitUntilNoProcess(named: "sleep")
        }
    }

    @Test(.enabled(if: canMount, "nobody here may mount a file system"))
    func `on a full disk a run waits for no result that cannot be stored`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "g.yaml",
                """
                operations:
                  prints:
                    forEach: \(Array(1...60))
                    run: sleep 0.1; head -c 30000 /dev/urandom | base64
                """
            )
            let run = try Self.start(file, onDiskOf: "600k", in: workspace)
            try await run.says("is full: nothing new starts until there is room")
            try await workspace.waitUntilNoProcess(named: "sleep")
            let signalled = ContinuousClock.now
            run.signal(SIGINT)
            let ended = try await run.end()
            #expect(ended.end == .exit(130), "\(ended.errors)")
            // What has ended is not waited for as long as what must be stopped.
            #expect(ContinuousClock.now - signalled < CommandDescription.defaultGrace)
            #expect(
                ended.errors.contains("ran without a stored result: prints["),
                "\(ended.errors)"
            )
            #expect(!ended.errors.contains("still running"), "\(ended.errors)")
        }
    }
}
