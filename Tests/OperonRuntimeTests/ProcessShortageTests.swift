import COperonProcess
import Glibc
import OperonModel
import Testing

@testable import OperonRuntime

/// What a worker does whose system has no descriptor left. In processes of their own, where nothing
/// else opens anything.
@Suite(.timeLimit(.minutes(5))) struct ProcessShortageTests {
    /// Takes all descriptors that are left, for the time of `body`.
    private static func withoutDescriptors(_ body: () async throws -> Void) async throws {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        limit.rlim_cur = 200
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        var taken: [Int32] = []
        while case let number = open("/dev/null", O_RDONLY | O_CLOEXEC), number >= 0 {
            taken.append(number)
        }
        try #require(errno == EMFILE)
        try await body()
        for number in taken { close(number) }
    }

    @Test func `a command for which there is no descriptor is given back, not failed`() async {
        await #expect(processExitsWith: .success) {
            let (reports, reporting) = AsyncStream<String>.makeStream()
            var configuration = ProcessRunner.Configuration(
                environment: ProcessSupport.environment
            )
            configuration.report = { reporting.yield($0) }
            let runner = try ProcessRunner(configuration)
            let inputs = [NamedInput(name: "a", output: Payload(bytes: Array("1".utf8)))]

            try await Self.withoutDescriptors {
                let ends = [
                    await runner.shell("true").attempt.end,
                    await runner.run(
                        ProcessSupport.shell("true"),
                        attempt: ProcessSupport.context(inputs: inputs)
                    ).attempt.end,
                ]
                try #require(ends == [.notYet(after: .seconds(1)), .notYet(after: .seconds(1))])
            }
            let end = await runner.shell("true").attempt.end
            try #require(end == .succeeded)
            reporting.finish()
            var said: [String] = []
            for await report in reports { said.append(report) }
            // Once, however many they were.
            try #require(said.count == 1)
            try #require(said[0].contains("Too many open files"))
            await runner.shutdown()
        }
    }

    @Test func `an output for which there is no descriptor is no failure of its operation`() async {
        await #expect(processExitsWith: .success) {
            let folder = ProcessSupport.temporaryFolder()
            let attempt = ProcessFiles.Attempt(
                inputs: "",
                output: "\(folder)/output",
                hasInputs: false
            )
            let file = open(attempt.output, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
            try #require(write(file, "7", 1) == 1)
            close(file)

            try await Self.withoutDescriptors {
                let error = #expect(throws: OperationError.self) {
                    try ProcessFiles.readOutput(attempt, limit: 10)
                }
                try #require(error.map(ProcessFiles.isShortage) == true)
            }

            try #require(try ProcessFiles.readOutput(attempt, limit: 10) == Array("7".utf8))
            unlink(attempt.output)
            rmdir(folder)
        }
    }

    @Test func `a raised limit of descriptors is not handed on to commands`() async {
        await #expect(processExitsWith: .success) {
            let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
            var limit = rlimit(rlim_cur: 123, rlim_max: 456)
            try #require(setrlimit(resource, &limit) == 0)

            OwnProcess.raiseDescriptors()

            getrlimit(resource, &limit)
            try #require(limit.rlim_cur == 456)
            let runner = try ProcessRunner(
                ProcessRunner.Configuration(environment: ProcessSupport.environment)
            )
            let lines = await runner.shell("ulimit -Sn; ulimit -Hn").lines
            try #require(lines == ["123", "456"])
            await runner.shutdown()
        }
    }

    @Test func `a group that cannot be looked at is not taken for dead, and not killed`() async {
        await #expect(processExitsWith: .success) {
            // Its number is that of nobody: only a look tells that nothing is left of it.
            let entry = ProcessGroupTable.Entry(process: pid_t.max, start: 0)
            try #require(!entry.kill(session: getsid(0)))

            try await Self.withoutDescriptors {
                try #require(KernelProcess.all() == nil)
                try #require(entry.kill(session: getsid(0)))
                try #require(operon_process_kill_marked("OPERON_TEST=nobody's") == 1)
            }
        }
    }

    @Test(arguments: [EMFILE, ENFILE, EAGAIN, ENOMEM])
    func `what the system may have again later is a shortage`(code: Int32) {
        #expect(SystemError(doing: "", code: code).isShortage)
    }

    @Test(arguments: [ENOENT, EACCES, E2BIG, ENOSPC])
    func `what the command is to blame for is none`(code: Int32) {
        #expect(!SystemError(doing: "", code: code).isShortage)
    }
}
