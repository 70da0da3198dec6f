import Glibc
import OperonModel
import OperonRuntime
import Testing

/// How processes end, and how that is reported.
@Suite(.timeLimit(.minutes(5)))
struct ProcessEndTests {
    @Test func `a process that exits 0 has succeeded`() async throws {
        let result = try await ProcessSupport.withRunner { await $0.shell("exit 0") }

        #expect(result.attempt.end == .succeeded)
        #expect(result.status == .exited(code: 0))
        #expect(result.attempt.startedAt < result.attempt.endedAt)
    }

    @Test(arguments: [1, 2, 77, 127, 255])
    func `a process that exits with another code has failed with it`(code: Int32) async throws {
        let result = try await ProcessSupport.withRunner { await $0.shell("exit \(code)") }

        #expect(result.attempt.end == .failed(.exit(code: code)))
        #expect(result.status == .exited(code: code))
    }

    @Test(arguments: [
        ("SEGV", "SIGSEGV"), ("KILL", "SIGKILL"), ("TERM", "SIGTERM"), ("ABRT", "SIGABRT"),
        ("34", "SIGRT+2"),
    ])
    func `a process that ends by a signal has failed with its name`(
        sent: String,
        reported: String
    ) async throws {
        let result = try await ProcessSupport.withRunner { await $0.shell("kill -\(sent) $$") }

        #expect(result.attempt.end == .failed(.signal(name: reported)))
    }

    @Test func `a process that runs too long is asked to stop and has timed out`() async throws {
        let result = try await ProcessSupport.withRunner { runner in
            await runner.run(
                CommandDescription(arguments: ["sleep", "1000"]),
                // Longer than a process takes to start, also where a sanitizer slows that down.
                attempt: ProcessSupport.context(timeout: .seconds(1))
            )
        }

        #expect(result.attempt.end == .failed(.timeout))
        #expect(result.status == .signaled(SIGTERM))
    }

    @Test func `a timed out process that ignores the signal is killed after the grace`()
        async throws
    {
        let result = try await ProcessSupport.withRunner { runner in
            await runner.run(
                ProcessSupport.shell(
                    "trap '' TERM; while :; do sleep 0.01; done",
                    grace: .milliseconds(200)
                ),
                // Longer than a shell takes to come to its first line.
                attempt: ProcessSupport.context(timeout: .seconds(5))
            )
        }

        #expect(result.attempt.end == .failed(.timeout))
        #expect(result.status == .signaled(SIGKILL))
        #expect(result.attempt.endedAt - result.attempt.startedAt >= .milliseconds(5_200))
    }

    @Test func `a process that exits 0 because it timed out has timed out`() async throws {
        let result = try await ProcessSupport.withRunner { runner in
            await runner.run(
                ProcessSupport.shell("trap 'exit 0' TERM; while :; do sleep 0.01; done"),
                attempt: ProcessSupport.context(timeout: .seconds(5))
            )
        }

        #expect(result.attempt.end == .failed(.timeout))
        #expect(result.status == .exited(code: 0))
    }
}
