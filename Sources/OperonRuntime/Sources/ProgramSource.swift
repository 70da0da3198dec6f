import Glibc
package import OperonCore
package import OperonModel
import OperonPorts

/// The lines that a program prints to its standard output, each of them an occurrence. The program
/// is started again, after a growing pause, whenever it ends.
///
/// It runs as commands of operations do: in a process group of its own, which gets SIGTERM and,
/// after the grace, SIGKILL when the source ends, and by the guard process if this process dies. It
/// writes to a named pipe, so a program that prints faster than its lines are stored waits.
///
/// An identity is drawn for each line when it is read. What the program prints while nobody watches
/// is not known, and neither are the lines in the pipe when the watching process dies. A program
/// that can begin where it stopped has to remember that by itself. The end of its errors (standard
/// error) is told when it ends.
package struct ProgramSource: TriggerSource {
    private let command: CommandDescription
    private let runner: ProcessRunner
    private let threads: SourceThreads
    private let time: TimeSource
    private let restarts: RestartPolicy

    /// The bytes of standard error that are kept for the message about an end.
    private static let errorBytesMax = 1_024
    /// Every end is followed by another start.
    package static var pauses: RestartPolicy.Configuration {
        var pauses = RestartPolicy.Configuration()
        pauses.finalCodes = []
        return pauses
    }

    /// - Parameter seed: Determines the pauses between `pauses.pauseMin` and `pauses.pauseMax`.
    /// - Throws: `invalid` for a command without a program.
    package init(
        _ command: CommandDescription,
        runner: ProcessRunner,
        threads: SourceThreads,
        seed: UInt64,
        time: TimeSource = .system,
        pauses: RestartPolicy.Configuration = ProgramSource.pauses
    ) throws(TriggerSourceError) {
        guard let program = command.arguments.first, !program.isEmpty else {
            throw TriggerSourceError(.invalid, "the command names no program")
        }
        self.command = command
        self.runner = runner
        self.threads = threads
        self.time = time
        restarts = RestartPolicy(configuration: pauses, seed: seed)
    }

    package func run(
        _ report: @escaping @Sendable (Occurrence) async throws -> Void,
        status: @escaping @Sendable (TriggerSourceStatus) -> Void
    ) async throws {
        var restarts = restarts
        while true {
            let started = time.now()
            let end: (RestartPolicy.End, String)
            switch await makePipe() {
            case .success(let pipe):
                status(.observing)
                let result: Result<ProcessResult, any Error>
                do {
                    result = .success(try await run(pipe, report, status))
                } catch {
                    result = .failure(error)
                }
                await threads.files.perform { _ = unsafe unlink(pipe.path) }
                end = Self.explained(try result.get(), command)
            case .failure(let error): end = (.notStarted, error.message)
            }
            try Task.checkCancellation()
            let step = restarts.ended(end.0, after: time.now() - started, wasAsked: false)
            guard case .restart(let pause) = step else { return }
            status(.waiting(TriggerSourceError(.ended, end.1)))
            try await time.sleep(time.now() + pause)
        }
    }

    private func makePipe() async -> Result<PipeReader, TriggerSourceError> {
        let path = "\(runner.filesDirectory)/\(LineOccurrence.drawn()).pipe"
        return await threads.files.perform {
            Result { () throws(TriggerSourceError) in
                guard unsafe mkfifo(path, 0o600) == 0 else {
                    throw TriggerSourceError(.current("making \(path)"), "no pipe can be made")
                }
                do throws(TriggerSourceError) {
                    return try PipeReader(path, lineBytesMax: LineOccurrence.bytesMax)
                } catch {
                    unsafe unlink(path)
                    throw error
                }
            }
        }
    }

    /// One run of the program, and all of its lines.
    private func run(
        _ pipe: PipeReader,
        _ report: @escaping @Sendable (Occurrence) async throws -> Void,
        _ status: @escaping @Sendable (TriggerSourceStatus) -> Void
    ) async throws -> ProcessResult {
        // A shell opens the pipe and becomes the program.
        var command = command
        command.arguments =
            CommandDescription.shell("exec \"$@\" >\"$0\"") + [pipe.path] + command.arguments
        var limits = Limits()
        limits.logBytes = Self.errorBytesMax
        let context = ProcessContext(
            graph: "trigger",
            operation: "source",
            ordinal: 1,
            limits: limits
        )
        let over = Latch()
        return try await withThrowingTaskGroup(of: ProcessResult?.self) { group in
            group.addTask { [command] in
                let result = await runner.run(command, attempt: context)
                over.open()
                return result
            }
            group.addTask {
                try await read(pipe, until: over, report, status)
                return nil
            }
            var result: ProcessResult?
            while let next = try await group.next() { result = next ?? result }
            guard let result else { throw CancellationError() }
            return result
        }
    }

    /// Reads until the last writer has closed the pipe. When the program and its group have ended,
    /// all that they wrote is in the pipe; a process that left the group may hold it open.
    private func read(
        _ pipe: PipeReader,
        until over: Latch,
        _ report: @escaping @Sendable (Occurrence) async throws -> Void,
        _ status: @escaping @Sendable (TriggerSourceStatus) -> Void
    ) async throws {
        while true {
            let isOver = over.isOpen
            if !isOver {
                let isReadable = try await threads.readiness.readable(pipe.number) {
                    await over.wait()
                }
                guard isReadable else { continue }
            }
            switch pipe.read() {
            case .lines(let items):
                for item in items { try await pass(item, report, status) }
            case .empty:
                if isOver { return }
            case .ended(let last):
                if let last { try await pass(last, report, status) }
                return
            }
        }
    }

    private func pass(
        _ item: LineSplitter.Item,
        _ report: @escaping @Sendable (Occurrence) async throws -> Void,
        _ status: @escaping @Sendable (TriggerSourceStatus) -> Void
    ) async throws {
        try Task.checkCancellation()
        switch LineOccurrence.make(item, of: "“\(command.arguments[0])”") {
        case .success(let occurrence): try await report(occurrence)
        case .failure(let error): status(.refused(error))
        }
    }

    // MARK: - Ends

    private static func explained(
        _ result: ProcessResult,
        _ command: CommandDescription
    ) -> (RestartPolicy.End, String) {
        let program = "the program “\(command.arguments[0])”"
        let tail = result.attempt.log.tail.split(separator: UInt8(ascii: "\n")).last ?? []
        let said = tail.isEmpty ? "" : ": \(String(decoding: tail, as: UTF8.self))"
        switch result.status {
        // As shells say it.
        case .exited(code: 127): return (.exit(code: 127), "\(program) does not exist\(said)")
        case .exited(code: 126):
            return (.exit(code: 126), "\(program) may not be executed\(said)")
        case .exited(let code):
            return (.exit(code: code), "\(program) ended with exit code \(code)\(said)")
        case .signaled(let number):
            return (.signal(number), "\(program) was ended by \(SignalName.of(number))\(said)")
        case .unknown: return (.notStarted, "the end of \(program) is unknown")
        case nil:
            var why = "the system has no process, descriptor or memory left"
            if case .failed(let error) = result.attempt.end { why = error.description }
            return (.notStarted, "\(program) cannot be started: \(why)")
        }
    }
}
