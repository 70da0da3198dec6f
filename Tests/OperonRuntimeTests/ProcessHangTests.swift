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

    /// Looks at a file that hangs, before the start or after the end of a process, and runs `body`
    /// while it does.
    private func hangLooking(
        produces: Bool,
        timeout: Duration? = nil,
        stop: StopSignal = StopSignal(),
        _ body: (ProcessRunner) async throws -> Void
    ) async throws -> ProcessResult {
        let directory = try HungDirectory()
        return try await ProcessSupport.withRunner { runner in
            var command = ProcessSupport.shell("echo ran")
            let files = ["\(directory.path)/file"]
            if produces { command.produces = files } else { command.consumes = files }
            let hung = command
            async let hanging = runner.run(
                hung,
                attempt: ProcessSupport.context(timeout: timeout),
                stop: stop
            )
            #expect(await eventually { directory.isVisited })
            try await body(runner)
            let result = await hanging
            directory.release()
            return result
        }
    }

    @Test(arguments: [false, true])
    func `a look at files that hangs delays no command without files, and ends when asked to`(
        produces: Bool
    ) async throws {
        let stop = StopSignal()
        let result = try await hangLooking(produces: produces, stop: stop) { runner in
            let line = "echo 1 > $OPERON_OUTPUT; echo well"
            for _ in 0..<3 { #expect(await runner.shell(line).text == "well\n") }
            // One that waits for its turn ends by itself, too.
            let later = StopSignal()
            var command = ProcessSupport.shell("true")
            command.consumes = ["/"]
            let waiting = command
            async let second = runner.run(
                waiting,
                attempt: ProcessSupport.context(),
                stop: later
            )
            later.cancel()
            #expect(await second.attempt.end == .cancelled)
            stop.cancel()
        }

        #expect(result.attempt.end == .cancelled)
        #expect(result.lines == (produces ? ["ran"] : []))
    }

    @Test(arguments: [false, true])
    func `a look at files that hangs ends with the time of the attempt, and says why`(
        produces: Bool
    ) async throws {
        let time = Duration.milliseconds(500)
        let result = try await hangLooking(produces: produces, timeout: time) { _ in }

        #expect(result.attempt.end == .failed(.timeout))
        #expect(result.text.hasSuffix("produces or consumes does not answer\n"))
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
