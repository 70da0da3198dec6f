import Foundation
import Glibc
import OperonFaultKit
import Testing

/// What a person sees while something runs, and what logs and plans look like. The golden file has
/// no times, because they are different in each run.
@Suite(.timeLimit(.minutes(3))) struct ScreenGoldenTests {
    private static let file = """
        name: g
        defaults: { directory: . }
        operations:
          bad:
            run: 'until [ -e fail ]; do sleep 0.02; done; echo because; exit 3'
            retry: { limit: 1, delay: 0s }
          after: { run: 'true', dependencies: [bad] }
          last: { run: 'true', dependencies: [after] }
          long: { run: 'echo begun; until [ -e go ]; do sleep 0.02; done; echo ended' }

        """

    @Test(arguments: [UInt16(80), 60, 40])
    func `screens, logs and plans are as the golden file has them`(columns: UInt16) async throws {
        var golden = Golden("screens-\(columns).txt")
        try await Workspace.run { workspace in
            let scene = Scene(workspace: workspace, columns: columns)
            _ = try workspace.write("g.yaml", Self.file)
            try await scene.addRun(to: &golden)
            let up = try await Up(workspace)
            #expect(try await up.operon("submit", "g.yaml").end == .exit(0))
            try await scene.addWatch(of: up, to: &golden)
            try await scene.addLogsAndPlans(of: up, to: &golden)
        }
        try golden.check()
    }

    @Test(arguments: [(rows: UInt16(24), named: 20), (rows: 60, named: 40)])
    func `as many failures are named as the screen has room for`(
        rows: UInt16,
        named: Int
    ) async throws {
        try await Workspace.run { workspace in
            let elements = "\(Array(1...40))"
            _ = try workspace.write(
                "g.yaml",
                "name: g\noperations: { bad: { run: 'false', forEach: \(elements) } }\n"
            )
            let up = try await Up(workspace)
            #expect(try await up.operon("submit", "g.yaml", "--wait").end == .exit(1))
            for arguments in [["run", "g.yaml"], ["watch", "g", "--coordinator", up.address]] {
                let shown = try workspace.start(
                    "operon",
                    arguments,
                    streams: .terminal(columns: 80, rows: rows)
                )
                let screen = TerminalScreen(columns: 80, try await shown.end().output)
                // Those at the end have no duration.
                let failed = screen.lines.count {
                    $0.hasPrefix("failed ") && $0.hasSuffix("]: exit code 1")
                }
                #expect(failed == named, "\(arguments): \(screen.lines)")
                let more = screen.lines.count { $0.contains("\(40 - named) more failed") }
                #expect(more == (named < 40 ? 1 : 0))
            }
        }
    }
}

private struct Scene {
    let workspace: Workspace
    let columns: UInt16

    private func start(_ arguments: [String]) throws -> Program {
        try workspace.start(
            "operon",
            arguments,
            streams: .terminal(columns: columns, rows: 24)
        )
    }

    /// The lines of a stream that draws below what it prints. Times are taken out before,
    /// since where a line breaks depends on their lengths, and after, behind what has colours.
    private func drawn(_ text: some StringProtocol) -> String {
        let screen = TerminalScreen(columns: Int(columns), String(text).withoutAnyTimes)
        #expect(screen.unknown == [])
        return screen.lines.map { $0 + "\n" }.joined().withoutAnyTimes
    }

    /// What stands there once a program has drawn this line again.
    private func screen(of program: Program, with line: String) async throws -> String {
        // The counts come at a pace of their own.
        try await program.says("2 skipped")
        let count = program.output.text.count(of: line)
        try await program.says(line, times: count + 1)
        let stream = program.output.text
        // What follows may be half a screen.
        let end = try #require(stream.range(of: line, options: .backwards)).upperBound
        return drawn(stream[..<end] + stream[end...].prefix { !$0.isNewline })
    }

    func addRun(to golden: inout Golden) async throws {
        let run = try start(["run", "-j2", "--show-output", "g.yaml"])
        _ = try workspace.write("fail", "")
        try await run.says(" last: because of “after”")
        // It is named once it has run for a second.
        let shown = try await screen(of: run, with: "  long ")
        golden.add("$ operon run -j2 --show-output g.yaml\n\(shown)\n")
        _ = try workspace.write("go", "")
        let ended = try await run.end()
        golden.add("at the end:\n\(drawn(ended.output))\n")
        for file in ["go", "fail"] { unlink(workspace.path(file)) }
    }

    /// Also what `operon top` shows at that moment.
    func addWatch(of up: Up, to golden: inout Golden) async throws {
        let watch = try start(["watch", "g", "--coordinator", up.address])
        try await watch.says("running")
        // It tells what happens from now on.
        _ = try workspace.write("fail", "")
        try await watch.says(" last: because of “after”")
        let shown = try await screen(of: watch, with: "  long ")
        golden.add("$ operon watch g\n\(shown)\n")
        try await addTop(of: up, to: &golden)
        _ = try workspace.write("go", "")
        let ended = try await watch.end()
        golden.add("at the end:\n\(drawn(ended.output))\n")
    }

    private func addTop(of up: Up, to golden: inout Golden) async throws {
        let top = try start(["top", "--coordinator", up.address, "--interval", "100ms"])
        for (key, text, title) in [
            ("", "0/long", "operon top"), ("\r", "OPERATION", "enter"), ("e", "It is running", "e"),
        ] {
            if !key.isEmpty { try top.type(key) }
            try await top.says(text)
            let end = "\u{1B}[J"
            try await top.says(end, times: top.output.text.count(of: end) + 1)
            let screen = frame(with: text, in: top.output.text)
            golden.add("\(title):\n\(try #require(screen))\n")
        }
        try top.type("q")
        #expect(try await top.end().end == .exit(0))
    }

    /// The last whole screen with this text.
    private func frame(with text: String, in stream: String) -> String? {
        let frames = stream.components(separatedBy: "\u{1B}[H").dropFirst()
            .filter { $0.contains("\u{1B}[J") && $0.contains(text) }
        return frames.last?.replacing("\u{1B}[K", with: "").replacing("\u{1B}[J", with: "\n")
            .replacing("\r", with: "").replacing(/\x1b\[[0-9;]*m/, with: "").withoutAnyTimes
    }

    func addLogsAndPlans(of up: Up, to golden: inout Golden) async throws {
        _ = try workspace.write(
            "g.yaml",
            ScreenGoldenTests.mended
        )
        for line in [
            "logs g", "logs g/bad", "logs g/bad --attempt 2", "logs g --tail 1",
            "resubmit g g.yaml --dry-run", "retry g/long --from --dry-run",
        ] {
            let words = line.split(separator: " ").map(String.init)
            let ended = try await start(words + ["--coordinator", up.address]).end()
            golden.add("$ operon \(line)\n\(drawn(ended.output))[\(ended.end)]\n\n")
        }
    }
}

extension ScreenGoldenTests {
    fileprivate static var mended: String {
        file.replacing("exit 3", with: "true") + "  new: { run: 'true' }\n"
    }
}

extension String {
    /// Without times and durations, and without what depends on the moment: the bar, and whether
    /// an attempt has begun.
    fileprivate var withoutAnyTimes: String {
        replacing(/2\d\d\d-\d\d-\d\d \d\d:\d\d:\d\dZ/, with: "TIME")
            .replacing(/\d+:\d\d(:\d\d)?/, with: "0:00")
            .replacing(/\d+(\.\d+)? ?(ms|s)\b/, with: "0 s")
            .replacing(/\ (now|in\ 0\ s):/, with: ":")
            .replacing(" ETA 0:00", with: "")
            .replacing(/\[[█░]+\]\ /, with: "")
    }
}
