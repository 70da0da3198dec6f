import Foundation
import OperonFaultKit
import Testing

/// What a command says whose change waits for the coordinator's disk.
@Suite(.timeLimit(.minutes(3))) struct FullDiskCommandTests {
    /// A file system of 32 MiB, which is filled and emptied on request. It waits for less than the
    /// limit of the suite, so that it is gone if the test ends early.
    private static let script = """
        mount -t tmpfs -o size=32m tmpfs disk || exit 1
        (
            timeout 170 sh -c 'until [ -e fill ]; do sleep 0.02; done' || exit 1
            cat /dev/zero >disk/filler 2>/dev/null
            touch full
            timeout 170 sh -c 'until [ -e empty ]; do sleep 0.02; done' || exit 1
            rm disk/filler
        ) &
        exec "$0" up --store disk/kept.db --listen "unix:$PWD/operon.sock"
        """

    @Test(.enabled(if: RunStoreTests.canMount, "nobody here may mount a file system"))
    func `a submission that waits for a full disk says so, and is kept when there is room`()
        async throws
    {
        try await Workspace.run { workspace in
            let operations = (0..<20_000).map { "  o\($0): { run: 'true', queue: never }\n" }
            let queues = "queues: { never: { isSuspended: true } }\n"
            let file = try workspace.write(
                "large.yaml",
                "name: large\n" + queues + "operations:\n" + operations.joined()
            )
            try FileManager.default.createDirectory(
                atPath: workspace.path("disk"),
                withIntermediateDirectories: false
            )
            let up = try workspace.start(
                "/usr/bin/env",
                ["unshare", "-m", "sh", "-c", Self.script, try Program.executable("operon")]
            )
            try await up.says("answers at")
            _ = try workspace.write("fill", "")
            try await workspace.waitForFile("full")
            let address = "unix:" + workspace.path("operon.sock")
            let submit = try workspace.start("operon", ["submit", file, "--coordinator", address])
            try await submit.says("The coordinator waits for its store: The disk that holds ")
            _ = try workspace.write("empty", "")
            let ended = try await submit.end()
            #expect(ended.end == .exit(0), "\(ended.errors)")
            #expect(ended.output == "0\n")
            #expect(ended.errors.contains("Submitted graph 0 “large”"), "\(ended.errors)")
        }
    }
}
