import Glibc
import OperonModel
import Testing

@testable import OperonRuntime

/// Limits of memory and CPU time, with real children that go beyond them.
@Suite(.timeLimit(.minutes(5))) struct ProcessLimitTests {
    private func command(
        _ line: String,
        memory: Int? = nil,
        cpuTime: Duration? = nil,
        grace: Duration = .seconds(10)
    ) -> CommandDescription {
        CommandDescription(
            arguments: CommandDescription.shell(line),
            grace: grace,
            memory: memory,
            cpuTime: cpuTime
        )
    }

    private func run(_ command: CommandDescription) async throws -> ProcessResult {
        try await ProcessSupport.withRunner { runner in
            let result = await runner.run(command, attempt: ProcessSupport.context())
            // The worker lives, and the next one has no limits.
            #expect(await runner.shell("ulimit -v; ulimit -t").lines == ["unlimited", "unlimited"])
            return result
        }
    }

    @Test func `a process has the limits that were asked for, CPU time in whole seconds`()
        async throws
    {
        let result = try await run(
            command(
                "ulimit -S -v; ulimit -H -v; ulimit -S -t; ulimit -H -t",
                memory: 512 << 20,
                cpuTime: .milliseconds(1_001),
                grace: .milliseconds(2_500)
            )
        )

        #expect(result.lines == ["524288", "524288", "2", "5"])
        #expect(result.attempt.end == .succeeded)
    }

    @Test func `the least limits are a second of CPU time, and one more until it is killed`()
        async throws
    {
        let result = try await run(
            command("ulimit -S -t; ulimit -H -t", cpuTime: .nanoseconds(1), grace: .zero)
        )

        #expect(result.lines == ["1", "2"])
    }

    @Test func `a program that asks for more memory than it may have is refused it`() async throws {
        let result = try await run(
            command(
                "head -c 200000000 /dev/zero | tail -c 150000000 | wc -c; exit 3",
                memory: 100 << 20
            )
        )

        #expect(result.text.contains("memory exhausted"))
        #expect(result.attempt.end == .failed(.exit(code: 3)))
        #expect(
            result.lines.last
                == "operon: each of its processes may have 100 MiB of memory (address space); "
                + "one that asks for more is refused it, and may fail so"
        )
    }

    @Test func `within its memory it succeeds and nothing is added to its log`() async throws {
        let result = try await run(
            command("head -c 20000000 /dev/zero | tail -c 15000000 | wc -c", memory: 100 << 20)
        )

        #expect(result.attempt.end == .succeeded)
        #expect(result.lines == ["15000000"])
    }

    @Test func `memory too little for any program is a failure that says so`() async throws {
        let result = try await run(command("true", memory: 1))

        guard case .failed(let error) = result.attempt.end else {
            Issue.record("it ran: \(result)")
            return
        }
        switch error {
        case .signal, .exit: #expect(result.text.contains("may have 1 B of memory"))
        case .thrown(_, let message, _): #expect(message.contains("cannot be executed"))
        default: Issue.record("\(error)")
        }
    }

    @Test func `a program that burns CPU time is ended by SIGXCPU`() async throws {
        let result = try await run(command("while :; do :; done", cpuTime: .seconds(1)))

        #expect(result.attempt.end == .failed(.signal(name: "SIGXCPU")))
        #expect(result.lines.last == "operon: its cpuTime of 1 s was used up (SIGXCPU)")
        #expect(
            OperationError.signal(name: "SIGXCPU").description
                == "ended by SIGXCPU: its CPU time was used up"
        )
    }

    @Test func `a child of the shell that burns CPU time is told from any bad exit`() async throws {
        let result = try await run(
            command("sh -c 'while :; do :; done'; exit $?", cpuTime: .seconds(1))
        )

        #expect(result.attempt.end == .failed(.exit(code: 128 + SIGXCPU)))
        #expect(result.lines.last == "operon: its cpuTime of 1 s was used up (SIGXCPU)")
    }

    @Test func `one that ignores SIGXCPU is killed after its grace`() async throws {
        let result = try await run(
            command(
                "trap '' XCPU; while :; do :; done",
                cpuTime: .seconds(1),
                grace: .seconds(1)
            )
        )

        #expect(result.attempt.end == .failed(.signal(name: "SIGKILL")))
        let note = try #require(result.lines.last)
        #expect(note.hasPrefix("operon: killed with "))
        #expect(note.hasSuffix(" s of CPU time used, of a cpuTime of 1 s"))
    }

    @Test func `a note makes room for itself in the log`() {
        var result = AttemptResult(
            end: .succeeded,
            startedAt: .zero,
            endedAt: .zero,
            log: KeptLog(head: [65], missing: 5, tail: Array("0123456789".utf8))
        )

        result.add("why", logBytes: 14)

        #expect(result.log.head == [65])
        #expect(String(decoding: result.log.tail, as: UTF8.self) == "\noperon: why\n")
        #expect(result.log.missing == 15)
    }
}
