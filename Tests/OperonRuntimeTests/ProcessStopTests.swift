import Glibc
import OperonModel
import OperonRuntime
import Testing

/// Asking processes to stop.
@Suite(.timeLimit(.minutes(5)))
struct ProcessStopTests {
    /// Runs a line, and asks it to stop once it has printed “ready”.
    private func run(
        _ line: String,
        grace: Duration = .seconds(10),
        then ask: @Sendable (StopSignal) -> Void
    ) async throws -> ProcessResult {
        try await ProcessSupport.withRunner { runner in
            let stop = StopSignal()
            let log = LogWaiter()
            async let result = runner.run(
                ProcessSupport.shell(line, grace: grace),
                attempt: ProcessSupport.context(),
                stop: stop,
                onLog: log.handler
            )
            _ = await log.wait(for: "ready")
            ask(stop)
            return await result
        }
    }

    @Test func `a process that ends by the signal of a cancel is cancelled`() async throws {
        let result = try await run("echo ready; exec sleep 1000") { $0.cancel() }

        #expect(result.attempt.end == .cancelled)
        #expect(result.status == .signaled(SIGTERM))
    }

    @Test func `a process that exits 0 after a cancel has succeeded`() async throws {
        let line = "trap 'exit 0' TERM; echo ready; while :; do sleep 0.01; done"

        let result = try await run(line) { $0.cancel() }

        #expect(result.attempt.end == .succeeded)
    }

    @Test func `a process that exits with another code after a cancel is cancelled`() async throws {
        let line = "trap 'exit 5' TERM; echo ready; while :; do sleep 0.01; done"

        let result = try await run(line) { $0.cancel() }

        #expect(result.attempt.end == .cancelled)
        #expect(result.status == .exited(code: 5))
    }

    @Test func `a process that ignores a cancel is killed after its grace`() async throws {
        let line = "trap '' TERM; echo ready; while :; do sleep 0.01; done"

        let result = try await run(line, grace: .milliseconds(200)) { $0.cancel() }

        #expect(result.attempt.end == .cancelled)
        #expect(result.status == .signaled(SIGKILL))
        #expect(result.attempt.endedAt - result.attempt.startedAt >= .milliseconds(200))
    }

    @Test func `a kill does not wait for the grace`() async throws {
        let line = "trap '' TERM; echo ready; while :; do sleep 0.01; done"

        let result = try await run(line, grace: .seconds(1_000)) { $0.kill() }

        #expect(result.attempt.end == .cancelled)
        #expect(result.status == .signaled(SIGKILL))
    }

    @Test func `a kill after a cancel ends the grace`() async throws {
        let line = "trap 'echo asked' TERM; echo ready; while :; do sleep 0.01; done"

        let result = try await run(line, grace: .seconds(1_000)) { stop in
            stop.cancel()
            stop.kill()
        }

        #expect(result.status == .signaled(SIGKILL))
    }

    @Test func `a cancel reaches a process that is stopped`() async throws {
        let result = try await ProcessSupport.withRunner { runner in
            let stop = StopSignal()
            let log = LogWaiter()
            // Without a signal to go on it would sit there for its whole grace.
            async let result = runner.run(
                ProcessSupport.shell(
                    "trap 'exit 9' TERM; echo $$; kill -STOP $$; sleep 1000",
                    grace: .seconds(1_000)
                ),
                attempt: ProcessSupport.context(),
                stop: stop,
                onLog: log.handler
            )
            let process = await log.wait(for: "\n").dropLast()
            #expect(
                await eventually { (try? readProc("\(process)/stat"))?.contains(") T ") == true }
            )
            stop.cancel()
            return await result
        }

        #expect(result.attempt.end == .cancelled)
        #expect(result.status == .exited(code: 9))
    }

    @Test func `a cancel reaches the whole group`() async throws {
        // The shell waits in the foreground; only its child can end it.
        let result = try await run(
            "trap 'echo shell' TERM; sh -c 'echo ready; exec sleep 1000'; exit 3"
        ) {
            $0.cancel()
        }

        #expect(result.status == .exited(code: 3))
        #expect(result.attempt.end == .cancelled)
    }

    @Test func `what is asked to stop before it starts does not start`() async throws {
        let stop = StopSignal()
        stop.cancel()

        let result = try await ProcessSupport.withRunner { runner in
            await runner.run(
                ProcessSupport.shell("exit 0"),
                attempt: ProcessSupport.context(),
                stop: stop
            )
        }

        #expect(result.attempt.end == .cancelled)
        #expect(result.status == nil)
    }

    @Test func `a request after the end changes nothing`() async throws {
        let stop = StopSignal()

        let result = try await ProcessSupport.withRunner { runner in
            let result = await runner.run(
                ProcessSupport.shell("exit 4"),
                attempt: ProcessSupport.context(),
                stop: stop
            )
            stop.kill()
            return result
        }

        #expect(result.attempt.end == .failed(.exit(code: 4)))
    }

    @Test func `cancelling the task asks the process to stop`() async throws {
        let result = try await ProcessSupport.withRunner { runner in
            let log = LogWaiter()
            let task = Task {
                await runner.run(
                    ProcessSupport.shell("echo ready; exec sleep 1000"),
                    attempt: ProcessSupport.context(),
                    onLog: log.handler
                )
            }
            _ = await log.wait(for: "ready")
            task.cancel()
            return await task.value
        }

        #expect(result.attempt.end == .cancelled)
    }

    @Test func `a shutdown kills what runs and refuses what comes`() async throws {
        let runner = try ProcessRunner(
            ProcessRunner.Configuration(environment: ProcessSupport.environment)
        )
        let log = LogWaiter()
        async let running = runner.run(
            ProcessSupport.shell("trap '' TERM; echo ready; while :; do sleep 0.01; done"),
            attempt: ProcessSupport.context(),
            onLog: log.handler
        )
        _ = await log.wait(for: "ready")

        await runner.shutdown()

        #expect(await running.status == .signaled(SIGKILL))
        let late = await runner.shell("exit 0")
        #expect(late.attempt.end == .cancelled)
        #expect(late.status == nil)
    }
}
