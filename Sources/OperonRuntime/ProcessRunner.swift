import COperonProcess
import Glibc
import NIOConcurrencyHelpers
package import OperonModel

/// Runs the commands of operations as processes, each in a group of its own, and leaves nothing of
/// them behind.
///
/// Owned by a worker, one per worker process. Three threads: one spawns, one watches and reads, one
/// does files; none of them is a cooperative one. And one process, which sleeps until this one is
/// gone and then kills what is left of its operations. It never retries and never decides about
/// attempts: it reports how each run ended.
package final class ProcessRunner: Sendable {
    package struct Configuration: Sendable {
        /// What commands may inherit by name: the variables of the worker.
        package var environment: [String: String]
        /// Where the directory for inputs and outputs is made.
        package var temporaryDirectory: String
        /// Where the next life of this worker finds what this one ran; `nil`: nowhere.
        package var stateDirectory: StateDirectory?

        /// The directory, if none is named, is where `TMPDIR` says, as for every program.
        package init(environment: [String: String], temporaryDirectory: String? = nil) {
            let named = environment["TMPDIR"].flatMap { $0.isEmpty ? nil : $0 }
            self.environment = environment
            self.temporaryDirectory = temporaryDirectory ?? named ?? "/tmp"
        }
    }

    private struct State {
        var lastID: UInt64 = 0
        var isShutDown = false
    }

    private let configuration: Configuration
    private let state = NIOLockedValueBox(State())
    private let files: ProcessFiles
    private let guardian: ProcessGuard
    private let spawnThread: SerialThread
    private let filesThread: SerialThread
    private let loop: ProcessLoop
    /// Where its processes reach the worker; `nil`: they cannot, because the path of the directory
    /// is too long for a socket.
    let inside: InsideSocket?
    /// `/dev/null`.
    private let input: Descriptor

    /// Starts the threads and the guard, makes the directory. Throws when the system refuses.
    package init(_ configuration: Configuration) throws(ProcessRunnerError) {
        operon_process_keep_children()
        self.configuration = configuration
        do throws(SystemError) {
            let number = unsafe open("/dev/null", O_RDONLY | O_CLOEXEC)
            guard number >= 0 else { throw .current("opening /dev/null") }
            input = Descriptor(owning: number)
            files = try ProcessFiles(in: configuration.temporaryDirectory)
            try configuration.stateDirectory?.begin(marker: files.marker, files: files.directory)
            guardian = try ProcessGuard(of: files)
            inside = try Self.insideSocket(in: files.directory)
            loop = try ProcessLoop()
            spawnThread = try SerialThread(name: "operon-spawn")
            filesThread = try SerialThread(name: "operon-files")
        } catch {
            throw ProcessRunnerError(message: "Processes cannot be run: \(error).")
        }
    }

    private static func insideSocket(in directory: String) throws(SystemError) -> InsideSocket? {
        do throws(SystemError) {
            return try InsideSocket(in: directory)
        } catch {
            guard error.code == ENAMETOOLONG else { throw error }
            return nil
        }
    }

    /// Runs a command to its end and reports it; never throws, whatever the command is.
    ///
    /// - Parameters:
    ///   - inputs: those that were stored before, in place of the context's.
    ///   - stop: asks it to stop; for this run only. Cancelling the task asks `cancel()`.
    ///   - onLog: gets what it prints, while it runs.
    @concurrent package func run(
        _ command: CommandDescription,
        attempt context: ProcessContext,
        inputs: StoredInputs? = nil,
        stop: StopSignal = StopSignal(),
        onLog: ProcessOutputHandler? = nil
    ) async -> ProcessResult {
        guard let id = inputs?.id ?? nextID() else {
            return Report.notStarted(.cancelled).value
        }
        if let inputs, let error = await finish(inputs) {
            return Report.notStarted(.failed(error)).value
        }
        var context = context
        if inputs != nil { context.inputs = [] }
        let attempt =
            inputs?.attempt ?? files.attempt(id, hasInputs: !context.inputs.isEmpty)
        let result = await withTaskCancellationHandler {
            await run(command, context, attempt, id, stop, onLog)
        } onCancel: {
            stop.cancel()
        }
        // An attempt without files costs no visit to the files thread.
        if attempt.hasInputs || result.hasOutput {
            await filesThread.perform { ProcessFiles.remove(attempt) }
        }
        return result.value
    }

    /// The number of the next run; `nil`: there is none any more.
    private func nextID() -> UInt64? {
        state.withLockedValue { state in
            guard !state.isShutDown else { return nil }
            state.lastID += 1
            return state.lastID
        }
    }

    /// Kills what still runs, waits for its end, kills what left its group, ends the threads,
    /// removes the files. Later runs are refused as cancelled.
    package func shutdown() async {
        let isFirst = state.withLockedValue { state in
            defer { state.isShutDown = true }
            return !state.isShutDown
        }
        guard isFirst else { return }
        // What is being started gets to the loop first.
        await spawnThread.perform {}
        await withCheckedContinuation { continuation in
            loop.close { continuation.resume() }
        }
        spawnThread.stop()
        inside?.close()
        await filesThread.perform { [files, guardian] in
            guardian.release()
            // The guard does it; unless somebody has killed it.
            files.removeAll()
        }
        filesThread.stop()
    }
}

// MARK: - One run

extension ProcessRunner {
    /// A result, and whether the process wrote a file that must be removed.
    fileprivate struct Report {
        var value: ProcessResult
        var hasOutput = false
    }

    private func run(
        _ command: CommandDescription,
        _ context: ProcessContext,
        _ attempt: ProcessFiles.Attempt,
        _ id: UInt64,
        _ stop: StopSignal,
        _ onLog: ProcessOutputHandler?
    ) async -> Report {
        let variables: [String: String]
        do throws(SpawnFailure) {
            try ProcessEnvironment.check(arguments: command.arguments)
            variables = try ProcessEnvironment.variables(
                of: command,
                context: context,
                worker: configuration.environment,
                files: attempt
            )
        } catch {
            return .notStarted(.failed(error.operationError))
        }
        if let error = await writeInputs(context, to: attempt) {
            return .notStarted(.failed(error))
        }
        let outcome = await withCheckedContinuation { continuation in
            let request = SpawnRequest(
                id: id,
                arguments: command.arguments,
                environment: ProcessEnvironment.lines(variables),
                path: variables["PATH"] ?? ProcessSpawn.defaultPath,
                directory: command.directory,
                niceness: context.niceness,
                timeout: context.timeout,
                grace: command.grace,
                limits: ProcessLimits(command),
                logBytes: context.limits.logBytes,
                outputPath: attempt.output,
                stopSignal: stop,
                onLog: onLog,
                state: configuration.stateDirectory,
                completion: { continuation.resume(returning: $0) }
            )
            let spawn = ProcessSpawn(input: input.number, loop: loop)
            spawnThread.submit { spawn.start(request) }
        }
        switch outcome {
        case .stopped: return .notStarted(.cancelled)
        case .failed(let failure): return .notStarted(.failed(failure.operationError))
        case .ended(let end):
            var report = await report(end, attempt, context.limits.payloadBytes)
            if let note = ProcessLimits(command).note(on: end, report.value.attempt.end) {
                report.value.attempt.add(note, logBytes: context.limits.logBytes)
            }
            return report
        }
    }

    /// Returns why it could not.
    private func writeInputs(
        _ context: ProcessContext,
        to attempt: ProcessFiles.Attempt
    ) async -> OperationError? {
        guard !context.inputs.isEmpty else { return nil }
        let bytes = context.inputs.reduce(0) { $0 + ($1.output?.bytes.count ?? 0) }
        guard bytes <= context.limits.inputsBytes else {
            return .inputTooLarge(bytes: bytes, limit: context.limits.inputsBytes)
        }
        let inputs = context.inputs
        return await filesThread.perform {
            do throws(SystemError) {
                try ProcessFiles.write(inputs, to: attempt.inputs)
                return nil
            } catch {
                return StoredInputs.failure(error)
            }
        }
    }

    private func report(
        _ end: RunningProcess.End,
        _ attempt: ProcessFiles.Attempt,
        _ payloadBytes: Int
    ) async -> Report {
        var result = AttemptResult(
            end: ProcessRunner.attemptEnd(of: end),
            startedAt: end.startedAt,
            endedAt: end.endedAt,
            logTail: end.logTail,
            logBytesDropped: end.logBytesDropped
        )
        // Only success has an output.
        if end.hasOutput, result.end == .succeeded {
            do throws(OperationError) {
                result.output = try await readOutput(attempt, limit: payloadBytes)
            } catch {
                result.end = .failed(error)
            }
        }
        return Report(
            value: ProcessResult(attempt: result, status: end.status),
            hasOutput: end.hasOutput
        )
    }

    private func readOutput(
        _ attempt: ProcessFiles.Attempt,
        limit: Int
    ) async throws(OperationError) -> Payload {
        let read: Result<[UInt8], OperationError> = await filesThread.perform {
            Result { () throws(OperationError) in
                try ProcessFiles.readOutput(attempt, limit: limit)
            }
        }
        let bytes = try read.get()
        // An empty file is no output, as if it had not been written.
        guard !bytes.isEmpty else { return .empty }
        do throws(JSONText.Malformed) {
            try JSONText.check(bytes)
        } catch {
            throw ProcessFiles.outputError("it is not JSON: \(error)")
        }
        return Payload(bytes: bytes)
    }

    /// What an attempt reports for the end of its process.
    private static func attemptEnd(of end: RunningProcess.End) -> AttemptEnd {
        switch (end.status, end.stopReason) {
        case (_, .timeout): .failed(.timeout)
        // It did its work, or all it was meant to do on SIGTERM.
        case (.exited(code: 0), _): .succeeded
        case (_, .request): .cancelled
        case (.exited(let code), nil): .failed(.exit(code: code))
        case (.signaled(let number), nil): .failed(.signal(name: SignalName.of(number)))
        case (.unknown, nil), (nil, nil):
            .failed(SpawnFailure(message: "How the process ended is unknown.").operationError)
        }
    }
}

// MARK: - Inputs that come before the run

/// The file of inputs of an attempt that is not running yet, filled piece by piece in the order of
/// its dependencies. Whoever made it runs the attempt with it, or discards it.
package final class StoredInputs: Sendable {
    fileprivate let id: UInt64
    fileprivate let attempt: ProcessFiles.Attempt
    /// Made by the first piece. Only the files thread looks.
    private let writer = NIOLockedValueBox<InputsWriter?>(nil)

    fileprivate init(id: UInt64, attempt: ProcessFiles.Attempt) {
        self.id = id
        self.attempt = attempt
    }

    fileprivate func write(_ inputs: [NamedInput], isLast: Bool) -> OperationError? {
        do throws(SystemError) {
            let opened = self.writer.withLockedValue { $0 }
            let writer = if let opened { opened } else { try InputsWriter(attempt.inputs) }
            self.writer.withLockedValue { $0 = isLast ? nil : writer }
            for input in inputs { try writer.append(input) }
            if isLast { try writer.finish() }
            return nil
        } catch {
            return Self.failure(error)
        }
    }

    fileprivate static func failure(_ error: SystemError) -> OperationError {
        SpawnFailure(message: "The process could not be given its inputs: \(error).")
            .operationError
    }
}

extension ProcessRunner {
    /// Room for the inputs of one attempt; `nil` when nothing is run any more.
    package func makeInputs() -> StoredInputs? {
        nextID().map { StoredInputs(id: $0, attempt: files.attempt($0, hasInputs: true)) }
    }

    /// Appends to them. `done` gets why that failed, on a thread of ours; not at all once the
    /// runner is shut down.
    package func store(
        _ inputs: [NamedInput],
        in stored: StoredInputs,
        done: @escaping @Sendable (OperationError?) -> Void
    ) {
        filesThread.submit { done(stored.write(inputs, isLast: false)) }
    }

    /// They will not be used.
    package func discard(_ inputs: StoredInputs) {
        filesThread.submit { ProcessFiles.remove(inputs.attempt) }
    }

    private func finish(_ inputs: StoredInputs) async -> OperationError? {
        guard !state.withLockedValue({ $0.isShutDown }) else { return nil }
        return await filesThread.perform { inputs.write([], isLast: true) }
    }
}

extension ProcessRunner.Report {
    fileprivate static func notStarted(_ end: AttemptEnd) -> Self {
        let now = SystemClock.now()
        let attempt = AttemptResult(end: end, startedAt: now, endedAt: now)
        return Self(value: ProcessResult(attempt: attempt, status: nil))
    }
}

/// Why a runner could not be made: a sentence for the person who starts the worker.
package struct ProcessRunnerError: Error, Hashable, Sendable, CustomStringConvertible {
    package let message: String

    package var description: String { message }
}
