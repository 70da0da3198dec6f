import Glibc
import OperonModel
import OperonPorts
import Testing

@testable import OperonRuntime

/// Lines of named pipes and of programs.
@Suite(.timeLimit(.minutes(1))) struct LineSourceTests {
    @Test func `bytes are cut into lines wherever they are split`() {
        let text = Array("one\r\n\ntoo long for it\nlast".utf8)
        for size in 1...text.count {
            var splitter = LineSplitter(bytesMax: 8)
            var items: [LineSplitter.Item] = []
            for start in stride(from: 0, to: text.count, by: size) {
                items += splitter.append(text[start..<min(start + size, text.count)])
            }
            #expect(
                items == [.line(Array("one".utf8)), .line([]), .tooLong]
            )
            #expect(splitter.finish() == .line(Array("last".utf8)))
            #expect(splitter.finish() == nil)
        }
    }

    // MARK: - Named pipes

    private func pipe(_ folder: SourceFolder) throws -> PipeSource {
        try PipeSource(path: folder.at("pipe"), threads: folder.threads, time: .impatient)
    }

    /// Opens the pipe, writes and closes it.
    private func write(_ folder: SourceFolder, _ text: [UInt8]) {
        let number = open(folder.at("pipe"), O_WRONLY | O_NONBLOCK)
        #expect(number >= 0)
        #expect(Glibc.write(number, text, text.count) == text.count)
        close(number)
    }

    @Test func `writers come and go, and the last line needs no end`() async throws {
        try await SourceFolder.with { folder in
            let run = SourceRun(try pipe(folder))
            let absent = try await run.waiting()
            #expect(absent.code == .absent && absent.message.contains("mkfifo makes one"))
            #expect(mkfifo(folder.at("pipe"), 0o600) == 0)
            try await run.observing()
            write(folder, Array("a\n\nb\r\n".utf8))
            var lines = try await run.next(3)
            write(folder, Array("no end".utf8))
            lines.append(try await run.next())
            write(folder, Array("a\n".utf8))
            lines.append(try await run.next())
            await run.stop()

            #expect(lines.map { $0["line"] } == ["a", "", "b", "no end", "a"])
            #expect(Set(lines.map(\.identity)).count == 5)
        }
    }

    @Test func `a line that is too long or no UTF-8 is left out, and the next one is not`()
        async throws
    {
        try await SourceFolder.with { folder in
            #expect(mkfifo(folder.at("pipe"), 0o600) == 0)
            let run = SourceRun(try pipe(folder))
            try await run.observing()
            write(folder, [0x61, 0xFF, 0x0A])
            #expect(try await run.refused().code == .unreadable)
            let writer = open(folder.at("pipe"), O_WRONLY)
            let part = [UInt8](repeating: 0x61, count: 4_096)
            for _ in 0..<17 { #expect(Glibc.write(writer, part, part.count) == part.count) }
            #expect(try await run.refused().code == .limitExceeded)
            #expect(Glibc.write(writer, "\nnext\n", 6) == 6)
            close(writer)
            #expect(try await run.next()["line"] == "next")
            await run.stop()
        }
    }

    @Test func `writers wait while a line is not stored`() async throws {
        try await SourceFolder.with { folder in
            #expect(mkfifo(folder.at("pipe"), 0o600) == 0)
            let gate = Latch()
            let run = SourceRun(try pipe(folder)) { _ in await gate.wait() }
            try await run.observing()
            write(folder, Array("held\n".utf8))
            _ = try await run.next()
            let writer = open(folder.at("pipe"), O_WRONLY | O_NONBLOCK)
            var lines = 0
            let line = [UInt8](repeating: 0x61, count: 4_095) + [0x0A]
            while Glibc.write(writer, line, line.count) == line.count { lines += 1 }
            #expect(errno == EAGAIN && lines > 0)
            close(writer)
            gate.open()
            #expect(try await run.next(lines).allSatisfy { $0["line"]?.count == 4_095 })
            await run.stop()
        }
    }

    @Test func `a pipe that is replaced is read again, and a file is no pipe`() async throws {
        try await SourceFolder.with { folder in
            try folder.write("pipe")
            let run = SourceRun(try pipe(folder))
            let error = try await run.waiting()
            #expect(error.code == .invalid && error.message.contains("is not a named pipe"))
            #expect(unlink(folder.at("pipe")) == 0)
            #expect(mkfifo(folder.at("pipe"), 0o600) == 0)
            try await run.observing()
            #expect(unlink(folder.at("pipe")) == 0)
            #expect(try await run.waiting().code == .absent)
            #expect(mkfifo(folder.at("pipe"), 0o600) == 0)
            try await run.observing()
            write(folder, Array("new\n".utf8))
            #expect(try await run.next()["line"] == "new")
            await run.stop()
        }
    }

    // MARK: - Programs

    private func program(
        _ arguments: [String],
        _ runner: ProcessRunner,
        _ folder: SourceFolder
    ) throws -> ProgramSource {
        try ProgramSource(
            CommandDescription(arguments: arguments, grace: .seconds(5)),
            runner: runner,
            threads: folder.threads,
            seed: 7,
            time: .impatient
        )
    }

    @Test func `a program that ends is started again, and its last words are told`() async throws {
        try await SourceFolder.with { folder in
            try await ProcessSupport.withRunner { runner in
                let line = "printf 'one\\ntwo'; echo why >&2; exit 3"
                let run = SourceRun(
                    try program(CommandDescription.shell(line), runner, folder)
                )
                let lines = try await run.next(4).map { $0["line"] }
                let end = try await run.waiting()
                await run.stop()
                #expect(lines == ["one", "two", "one", "two"])
                #expect(end.code == .ended)
                #expect(
                    end.message == "the program “/bin/sh” ended with exit code 3: why"
                )
            }
        }
    }

    @Test func `a program and its children end with the source`() async throws {
        try await SourceFolder.with { folder in
            try await ProcessSupport.withRunner { runner in
                let line = "sleep 1000 & echo $!; echo $$; wait"
                let run = SourceRun(
                    try program(CommandDescription.shell(line), runner, folder)
                )
                let processes = try await run.next(2).compactMap { pid_t($0["line"] ?? "") }
                #expect(processes.count == 2 && processes.allSatisfy(isAlive))
                await run.stop()
                #expect(!isAlive(processes[1]))
                // Killed with its group, but nobody waits for it: it is gone a moment later.
                #expect(await eventually { !isAlive(processes[0]) })
            }
        }
    }

    @Test func `a program that does not exist is named`() async throws {
        try await SourceFolder.with { folder in
            try await ProcessSupport.withRunner { runner in
                let run = SourceRun(try program(["no-such-program"], runner, folder))
                let end = try await run.waiting()
                await run.stop()
                #expect(end.message.hasPrefix("the program “no-such-program” does not exist"))
            }
        }
    }
}
