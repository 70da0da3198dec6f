import Glibc
import OperonModel
import OperonRuntime
import Testing

/// Commands whose directory lies on a file system that does not answer.
@Suite(.timeLimit(.minutes(5)), .enabled(if: HungDirectory.isPossible), .serialized)
struct ProcessHangTests {
    /// Runs a command in a directory that hangs, and `body` while it does. `isTaken`: the server
    /// has its request, so that not even a kill ends its child.
    private func hang(
        isTaken: Bool,
        timeout: Duration? = nil,
        stop: StopSignal = StopSignal(),
        _ body: (ProcessRunner) async throws -> Void
    ) async throws -> ProcessResult {
        let directory = try HungDirectory()
        return try await ProcessSupport.withRunner { runner in
            var command = CommandDescription(arguments: ["true"])
            command.directory = directory.path
            async let hanging = runner.run(
                command,
                attempt: ProcessSupport.context(timeout: timeout),
                stop: stop
            )
            #expect(await eventually { directory.isVisited })
            if isTaken { directory.take() }
            try await body(runner)
            let result = await hanging
            directory.release()
            return result
        }
    }

    @Test(arguments: [false, true])
    func `a directory that does not answer keeps no other command from starting`(
        isTaken: Bool
    ) async throws {
        let stop = StopSignal()
        let result = try await hang(isTaken: isTaken, stop: stop) { runner in
            for _ in 0..<3 { #expect(await runner.shell("echo well").text == "well\n") }
            stop.kill()
        }

        #expect(result.attempt.end == .cancelled)
        #expect(result.status == nil)
    }

    @Test(arguments: [false, true])
    func `a command in a directory that does not answer ends with its time and says why`(
        isTaken: Bool
    ) async throws {
        let result = try await hang(isTaken: isTaken, timeout: .milliseconds(200)) { _ in }

        #expect(result.attempt.end == .failed(.timeout))
        #expect(result.text.hasPrefix("operon: the process had not started when its time was over"))
        #expect(result.text.hasSuffix("” does not answer\n"))
    }

    @Test(arguments: [false, true])
    func `a shutdown waits for no directory that does not answer`(isTaken: Bool) async throws {
        let result = try await hang(isTaken: isTaken) { await $0.shutdown() }

        #expect(result.attempt.end == .cancelled)
    }
}
