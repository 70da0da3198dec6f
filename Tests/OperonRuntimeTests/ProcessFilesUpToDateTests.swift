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
