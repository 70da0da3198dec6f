import Foundation
import Glibc
import OperonModel
import Testing

@testable import OperonRuntime

/// What real files decide about a process: whether it is started, and whether it succeeded.
@Suite(.timeLimit(.minutes(5))) struct ProcessFilesUpToDateTests {
    private static func withFolder(
        _ body: (_ folder: String, ProcessRunner) async throws -> Void
    ) async throws {
        let folder = ProcessSupport.temporaryFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try await ProcessSupport.withRunner { try await body(folder, $0) }
    }

    /// Makes a file that was modified at this time.
    private static func make(_ path: String, _ seconds: Int, _ nanoseconds: Int = 0) {
        #expect(FileManager.default.createFile(atPath: path, contents: nil))
        touch(path, seconds, nanoseconds)
    }

    private static func touch(_ path: String, _ seconds: Int, _ nanoseconds: Int = 0) {
        let time = timespec(tv_sec: seconds, tv_nsec: nanoseconds)
        #expect(utimensat(AT_FDCWD, path, [time, time], AT_SYMLINK_NOFOLLOW) == 0)
    }

    private static func command(
        in folder: String,
        _ line: String = "echo ran",
        produces: [String] = ["p"],
        consumes: [String] = ["c"],
        skips: Bool = true
    ) -> CommandDescription {
        CommandDescription(
            arguments: CommandDescription.shell(line),
            directory: folder,
            produces: produces,
            consumes: consumes,
            skipsIfUpToDate: skips
        )
    }

    private static func isUpToDate(_ result: ProcessResult) -> Bool {
        if result.attempt.isUpToDate {
            #expect(result.attempt.end == .succeeded)
            #expect(result.status == nil && result.lines.isEmpty)
        } else {
            #expect(result.lines == ["ran"])
        }
        return result.attempt.isUpToDate
    }

    private static func failure(_ result: ProcessResult) -> String {
        guard case .failed(let error) = result.attempt.end else { return "\(result.attempt.end)" }
        return error.description
    }

    @Test func `a process is started only if a product is older, by a nanosecond or more`()
        async throws
    {
        try await Self.withFolder { folder, runner in
            let command = Self.command(in: folder)
            Self.make("\(folder)/c", 1_000, 500)
            for (seconds, nanoseconds, expected) in [
                (1_000, 500, true), (1_000, 499, false), (1_000, 501, true), (999, 999, false),
            ] {
                Self.make("\(folder)/p", seconds, nanoseconds)
                let result = await runner.run(command, attempt: ProcessSupport.context())
                #expect(Self.isUpToDate(result) == expected, "\(seconds).\(nanoseconds)")
            }
        }
    }

    @Test func `an absolute path is that file, and a directory is as good as any other file`()
        async throws
    {
        try await Self.withFolder { folder, runner in
            let product = "\(folder)/out"
            try FileManager.default.createDirectory(
                atPath: product,
                withIntermediateDirectories: false
            )
            Self.make("\(folder)/c", 1_000)
            Self.touch(product, 1_001)
            let command = Self.command(in: "/", produces: [product], consumes: ["\(folder)/c"])
            let result = await runner.run(command, attempt: ProcessSupport.context())
            #expect(Self.isUpToDate(result))

            Self.touch(product, 999)
            let stale = await runner.run(command, attempt: ProcessSupport.context())
            #expect(!Self.isUpToDate(stale))
        }
    }

    @Test func `a link counts as the file that it leads to, and as missing if it leads nowhere`()
        async throws
    {
        try await Self.withFolder { folder, runner in
            Self.make("\(folder)/c", 1_000)
            Self.make("\(folder)/target", 1_001)
            #expect(symlink("target", "\(folder)/p") == 0)
            Self.touch("\(folder)/p", 1)
            let command = Self.command(in: folder)
            let result = await runner.run(command, attempt: ProcessSupport.context())
            #expect(Self.isUpToDate(result))

            #expect(unlink("\(folder)/target") == 0)
            let dangling = await runner.run(command, attempt: ProcessSupport.context())
            #expect(dangling.lines == ["ran"])
            #expect(Self.failure(dangling).contains("“p”, which it produces, does not exist"))
        }
    }

    @Test(arguments: [true, false])
    func `without a consumed file nothing is started`(skips: Bool) async throws {
        try await Self.withFolder { folder, runner in
            Self.make("\(folder)/p", 1_000)
            Self.make("\(folder)/file", 1_000)
            let consumes = ["file/below", "gone"]
            let command = Self.command(in: folder, consumes: consumes, skips: skips)
            let result = await runner.run(command, attempt: ProcessSupport.context())
            #expect(result.status == nil && result.lines.isEmpty)
            #expect(
                Self.failure(result) == "the file “file/below”, which it consumes, does not exist"
                    + " (and 1 more of its files)"
            )
        }
    }

    @Test func `a process that succeeds without a product has failed, and its output is dropped`()
        async throws
    {
        try await Self.withFolder { folder, runner in
            let line = "echo 1 > $OPERON_OUTPUT; echo ran"
            let command = Self.command(in: folder, line, produces: ["p", "q"], consumes: [])
            Self.make("\(folder)/p", 1_000)
            let result = await runner.run(command, attempt: ProcessSupport.context())
            #expect(
                Self.failure(result)
                    == "the file “q”, which it produces, does not exist after its success"
            )
            #expect(result.attempt.output == .empty && result.lines == ["ran"])

            let made = Self.command(in: folder, "touch q; \(line)", consumes: [], skips: false)
            let good = await runner.run(made, attempt: ProcessSupport.context())
            #expect(good.attempt.end == .succeeded && !good.attempt.isUpToDate)
            #expect(good.attempt.output == Payload(bytes: Array("1\n".utf8)))
        }
    }

    @Test func `a failure of the process is told before that of its files`() async throws {
        try await Self.withFolder { folder, runner in
            let command = Self.command(in: folder, "exit 3", consumes: [])
            let result = await runner.run(command, attempt: ProcessSupport.context())
            #expect(result.attempt.end == .failed(.exit(code: 3)))
        }
    }

    @Test(arguments: ["exit 3", "kill -9 $$"])
    func `what a process wrote that did not succeed is removed, and nothing else`(
        end: String
    ) async throws {
        try await Self.withFolder { folder, runner in
            Self.make("\(folder)/c", 1_000)
            for name in ["old", "kept", "target"] { Self.make("\(folder)/\(name)", 999) }
            #expect(symlink("target", "\(folder)/link") == 0)
            let command = Self.command(
                in: folder,
                "echo part > new; echo part > old; echo part > link; mkdir made; \(end)",
                produces: ["new", "old", "kept", "link", "made", "never"]
            )
            let result = await runner.run(command, attempt: ProcessSupport.context())

            guard case .failed = result.attempt.end else {
                Issue.record("\(result.attempt.end)")
                return
            }
            let left = try FileManager.default.contentsOfDirectory(atPath: folder).sorted()
            #expect(left == ["c", "kept", "made", "target"])
            #expect(
                result.lines == [
                    "operon: the file “new” (and 2 more of its files) was removed, because it is "
                        + "unfinished",
                    "operon: the file “made” may be unfinished, and was left: it is not a regular "
                        + "file",
                ]
            )
        }
    }

    /// Asks a process to stop that has begun to write, and returns whether its file is there.
    private static func isLeft(
        after ask: (StopSignal) -> Void,
        in folder: String,
        _ runner: ProcessRunner
    ) async -> Bool {
        let command = Self.command(
            in: folder,
            "echo part > p; echo begun; sleep 1000",
            consumes: []
        )
        let (stop, waiter) = (StopSignal(), LogWaiter())
        let context = ProcessSupport.context()
        async let result = runner.run(
            command,
            attempt: context,
            stop: stop,
            onLog: waiter.handler
        )
        _ = await waiter.wait(for: "begun")
        ask(stop)
        #expect(await result.attempt.end == .cancelled)
        return access("\(folder)/p", F_OK) == 0
    }

    @Test func `what was cancelled leaves no part of a file, and what was killed is not touched`()
        async throws
    {
        try await Self.withFolder { folder, runner in
            #expect(await !Self.isLeft(after: { $0.cancel() }, in: folder, runner))
            // Another attempt may be writing the same file.
            #expect(await Self.isLeft(after: { $0.kill() }, in: folder, runner))
        }
    }

    @Test func `a file that an earlier attempt may have left is not up to date`() async throws {
        try await Self.withFolder { folder, runner in
            Self.make("\(folder)/p", 1_000)
            var context = ProcessSupport.context()
            context.isRepeat = true
            let command = Self.command(in: folder, consumes: [])
            let again = await runner.run(command, attempt: context)
            #expect(!Self.isUpToDate(again))
        }
    }

    @Test func `what was asked to stop before its start is cancelled, not up to date`()
        async throws
    {
        try await Self.withFolder { folder, runner in
            Self.make("\(folder)/p", 1_000)
            let stop = StopSignal()
            stop.cancel()
            let command = Self.command(in: folder, consumes: [])
            let context = ProcessSupport.context()
            let result = await runner.run(command, attempt: context, stop: stop)
            #expect(result.attempt.end == .cancelled && !result.attempt.isUpToDate)
        }
    }
}
