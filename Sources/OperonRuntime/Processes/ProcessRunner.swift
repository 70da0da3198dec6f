import COperonProcess
import Glibc
package import OperonCore
package import OperonModel
import Synchronization

/// Runs the commands of operations as processes, each in a group of its own, and leaves none of
/// them behind.
///
/// Owned by a worker, one per worker process. Its threads are those of a `StartPool`, one that
/// watches and reads running processes, one for its own files, and one that looks at the files of
/// commands; none is a cooperative thread. It also has one guard process, which sleeps until this
/// process has ended and then kills what is left of its operations. The runner never retries and
/// never decides about attempts: it reports how each run ended.
package final class ProcessRunner: Sendable {
    package struct Configuration: Sendable {
        /// The worker's variables, which commands may inherit by name.
        package var environment: [String: String]
        /// The directory in which the directory for inputs and outputs is made.
        package var temporaryDirectory: String
        /// Where the next run of this worker finds the processes of this run; `nil`: nowhere.
        package var stateDirectory: StateDirectory?
        /// Holds commands to their resources; `nil`: commands that ask for that are refused.
        package var controlGroups: ControlGroups?
        /// Where it finds the values of secrets.
        package var secrets = SecretPlaces()
        /// The users as which it runs commands.
        package var users = OperationUsers.none
        /// Whether commands can get no more rights by executing a program, such as `sudo`. Those of
        /// other users never can.
        package var hasNoNewPrivileges = false
        /// The name of its worker, for messages.
        package var workerName = ""
        /// Receives messages for the administrator: the system has no resources left to start
        /// processes, or the runner's own files were removed.
        package var report: @Sendable (_ sentence: String) -> Void = { _ in }

        /// Without a named directory, uses the one in `TMPDIR`, as other programs do.
        package init(environment: [String: String], temporaryDirectory: String? = nil) {
            let named = environment["TMPDIR"].flatMap { $0.isEmpty ? nil : $0 }
            self.environment = environment
            self.temporaryDirectory = temporaryDirectory ?? named ?? "/tmp"
        }
    }

    private struct State {
        var lastID: UInt64 = 0
        /// Shortages of descriptors, processes and memory.
        var shortage = ShortagePause()
        /// Shortages of disk space, during which processes without inputs still start.
        var diskShortage = ShortagePause()
        var isShutDown = false
    }

    let configuration: Configuration
    private let state = Mutex(State())
    let common: CommonFiles
    private let guardian: ProcessGuard
    let starts: StartPool
    private let filesThread: SerialThread
    /// Only looks at the files that commands produce and consume. Their file system may not answer:
    /// that delays other such looks, but nothing else.
    let looksThread: SerialThread
    /// Only reads secrets: their file system may not answer either. `nil`: there are none.
    let secretsThread: SerialThread?
    private let loop: ProcessLoop
    /// The socket through which processes reach the worker; `nil`: there is none, because the path
    /// of the directory is too long for a socket.
    var socket: OperationSocket? { common.socket }
    /// The private directory, which is removed with the runner.
    var filesDirectory: String { common.files.directory }
    var isShutDown: Bool { state.withLock { $0.isShutDown } }
    /// `/dev/null`.
    private let input: Descriptor

    /// Starts the threads and the guard, and makes the directory. Throws if the system refuses.
    package init(_ configuration: Configuration) throws(ProcessRunnerError) {
        operon_process_keep_children()
        self.configuration = configuration
        do throws(SystemError) {
            let number = unsafe open("/dev/null", O_RDONLY | O_CLOEXEC)
            guard number >= 0 else { throw .current("opening /dev/null") }
            input = Descriptor(owning: number)
            let users = configuration.users.all
            let files = try ProcessFiles(in: configuration.temporaryDirectory, users: users)
            try configuration.stateDirectory?.begin(marker: files.marker, files: files.directory)
            guardian = try ProcessGuard(
                of: files,
                controlGroup: configuration.controlGroups?.path
            )
            let common = CommonFiles(
                files: files,
                socket: try Self.operationSocket(in: files.directory, users),
                report: configuration.report
            )
            self.common = common
            loop = try ProcessLoop()
            let spawn = ProcessSpawn(input: input.number, files: common)
            starts = try StartPool(
                spawn: { spawn.start($0, $1) },
                deliver: { [loop] in loop.add($0) }
            )
            filesThread = try SerialThread(name: "operon-files")
            looksThread = try SerialThread(name: "operon-looks")
            secretsThread =
                configuration.secrets.isEmpty ? nil : try SerialThread(name: "operon-secrets")
        } catch {
            throw ProcessRunnerError(message: "Processes cannot be run: \(error).")
        }
    }

    private static func operationSocket(
        in directory: String,
        _ users: [OperationUser]
    ) throws(SystemError) -> OperationSocket? {
        do throws(SystemError) {
            return try OperationSocket(in: directory, users: users.map(\.id))
        } catch {
            guard error.code == ENAMETOOLONG else { throw error }
            return nil
        }
    }

    /// Runs a command to its end and returns its result; never throws, whatever the command is.
    ///
    /// - Parameters:
    ///   - inputs: Inputs that were stored before; they replace those of the context.
    ///   - stop: Asks this run to stop. Cancelling the task calls its `cancel()`.
    ///   - onLog: Receives the output while the command runs.
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
        if let inputs, let end = await finish(inputs) {
            await filesThread.perform { ProcessFiles.remove(inputs.attempt) }
            return Report.notStarted(end).value
        }
        if let problem = configuration.users.problem(ofQueue: context.queue) {
            if let inputs {
                await filesThread.perform { ProcessFiles.remove(inputs.attempt) }
            }
            let end = AttemptEnd.failed(SpawnFailure(message: problem).operationError)
            return Report.notStarted(end).value
        }
        var context = context
        if inputs != nil { context.inputs = [] }
        let user = configuration.users.user(ofQueue: context.queue)
        let attempt =
            inputs?.attempt
            ?? common.files.attempt(id, hasInputs: !context.inputs.isEmpty, user: user)
        var command = command
        let event: EventFile?
        switch await writeEvent(of: command, id, user) {
        case .failure(let error):
            let end = AttemptEnd(failure(toWriteInputs: error))
            return Report.notStarted(end).value
        case .success(let file):
            event = file
            if let file { command.environment[ProcessEnvironment.event] = file.path }
        }
        let ready = command
        let result = await withTaskCancellationHandler {
            await run(ready, context, attempt, id, stop, onLog)
        } onCancel: {
            stop.cancel()
        }
        if let event { await filesThread.perform { event.remove() } }
        // For an attempt without files, the files thread is not used at all.
        if attempt.hasInputs || result.hasOutput {
            await filesThread.perform { ProcessFiles.remove(attempt) }
        }
        return result.value
    }

    /// The number of the next run; `nil`: the runner was shut down.
    func nextID() -> UInt64? {
        state.withLock { state in
            guard !state.isShutDown else { return nil }
            state.lastID += 1
            return state.lastID
        }
    }

    /// Kills what still runs and waits for its end, kills processes that left their groups, ends
    /// the threads, and removes the files. Later runs are refused as cancelled.
    package func shutdown() async {
        let isFirst = state.withLock { state in
            defer { state.isShutDown = true }
            return !state.isShutDown
        }
        guard isFirst else { return }
        // Processes that are being started are handed to the loop first, or given up.
        await withCheckedContinuation { continuation in
            starts.close { continuation.resume() }
        }
        await withCheckedContinuation { continuation in
            loop.close { continuation.resume() }
        }
        starts.stop()
        socket?.close()
        await filesThread.perform { [common, configuration, guardian] in
            guardian.release()
            configuration.controlGroups?.close()
            // The guard has removed the files, unless it was killed.
            common.files.removeAll()
        }
        filesThread.stop()
        looksThread.stop()
        secretsThread?.stop()
    }
}

// MARK: - One run

extension ProcessRunner {
    /// A result, and whether the process wrote an output file that must be removed.
    struct Report {
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
        let ready: Ready
        switch await prepare(command, context, attempt, stop) {
        case .end(let report): return report
        case .start(let prepared): ready = prepared
        }
        let group = context.enforced.flatMap { amounts in
            configuration.controlGroups.map {
                SpawnRequest.Group(groups: $0, limits: ControlGroupLimits(amounts))
            }
        }
        let outcome = await withCheckedContinuation { continuation in
            let request = SpawnRequest(
                id: id,
                arguments: command.arguments,
                environment: ProcessEnvironment.lines(ready.variables),
                path: ready.variables["PATH"] ?? ProcessSpawn.defaultPath,
                directory: command.directory,
                niceness: context.niceness,
                timeout: context.timeout,
                grace: command.grace,
                limits: ProcessLimits(command, processors: context.processors),
                group: group,
                logBytes: context.limits.logBytes,
                mask: ready.mask,
                dumpsNoCore: !command.secrets.isEmpty || attempt.user != nil,
                user: attempt.user,
                hasNoNewPrivileges: configuration.hasNoNewPrivileges || attempt.user != nil,
                outputPath: attempt.output,
                stopSignal: stop,
                onLog: onLog,
                state: configuration.stateDirectory,
                completion: { continuation.resume(returning: $0) }
            )
            starts.submit(request)
        }
        // Also if nothing has started: the group may have been made.
        let groupEnd = await group?.groups.end(id) ?? ControlGroups.End()
        var report = await report(outcome, of: command, context, attempt, groupEnd, stop)
        if case .ended(let end) = outcome, end.isUnfinished, stop.requested != .kill {
            let user = attempt.user
            await removeUnfinished(
                ready.products,
                of: command,
                context,
                user,
                stop,
                &report.value.attempt
            )
        }
        return report
    }

    /// What a process is started with.
    private struct Ready {
        let variables: [String: String]
        /// What must not appear in what it prints.
        let mask: SecretMask?
        /// The files that it produces as they are before, if they may be up to date.
        let products: [ObservedFile]
    }

    private enum Preparation {
        case start(Ready)
        /// It is not started.
        case end(Report)
    }

    private func prepare(
        _ command: CommandDescription,
        _ context: ProcessContext,
        _ attempt: ProcessFiles.Attempt,
        _ stop: StopSignal
    ) async -> Preparation {
        var variables: [String: String]
        do throws(SpawnFailure) {
            try ProcessEnvironment.check(arguments: command.arguments)
            variables = try self.variables(of: command, context, attempt)
        } catch {
            return .end(.notStarted(.failed(error.operationError)))
        }
        if context.enforced != nil, configuration.controlGroups == nil {
            let why = "Its resources are to be enforced, and the worker makes no control groups."
            return .end(.notStarted(.failed(SpawnFailure(message: why).operationError)))
        }
        let products: [ObservedFile]
        switch await lookBeforeStart(of: command, context, attempt.user, stop) {
        case .end(let report): return .end(report)
        case .start(let found): products = found
        }
        var mask: SecretMask?
        if !command.secrets.isEmpty {
            do throws(SecretFailure) {
                (variables, mask) = try await self.variables(of: command, context, attempt, stop)
            } catch {
                return .end(.notStarted(end(for: error)))
            }
        }
        if let end = await writeInputs(context, to: attempt) {
            return .end(.notStarted(end))
        }
        return .start(Ready(variables: variables, mask: mask, products: products))
    }

    private func report(
        _ outcome: SpawnRequest.Outcome,
        of command: CommandDescription,
        _ context: ProcessContext,
        _ attempt: ProcessFiles.Attempt,
        _ group: ControlGroups.End,
        _ stop: StopSignal
    ) async -> Report {
        switch outcome {
        case .stopped: return .notStarted(.cancelled)
        case .failed(let failure): return .notStarted(.failed(failure.operationError))
        case .short(let error): return .notStarted(.notYet(after: missed(error)))
        case .timedOut(let why):
            var report = Report.notStarted(.failed(.timeout))
            report.value.attempt.add(why, logBytes: context.limits.logBytes)
            return report
        case .ended(let end) where end.isUnwatched:
            let error = SystemError(doing: "watching a process", code: ENOMEM)
            return .notStarted(.notYet(after: missed(error)))
        case .ended(let end):
            state.withLock { $0.shortage.served() }
            var report = await report(end, of: command, context, attempt, stop)
            let result = report.value.attempt.end
            let note =
                ControlGroupLimits(context.enforced ?? []).note(on: group, end, result)
                ?? ProcessLimits(command).note(on: end, result)
            if let note { report.value.attempt.add(note, logBytes: context.limits.logBytes) }
            return report
        }
    }

    /// Notes a shortage; returns the pause after which the attempt, which is given back, may be
    /// tried again.
    func missed(_ error: SystemError) -> Duration {
        let now = SystemClock.now()
        let (pause, isNew) = state.withLock { state in
            error.isShortage
                ? state.shortage.missed(at: now) : state.diskShortage.missed(at: now)
        }
        if isNew {
            configuration.report(
                "cannot run processes now (\(error)): gives operations back for "
                    + "\(pause.components.seconds) s"
            )
        }
        return pause
    }

    /// Writes what fired the trigger that submitted the graph to a file; `nil`: there is no
    /// trigger.
    private func writeEvent(
        of command: CommandDescription,
        _ id: UInt64,
        _ user: OperationUser?
    ) async -> Result<EventFile?, SystemError> {
        // benign: a graph file may give a variable of this name any other value.
        guard let text = command.environment[ProcessEnvironment.event], text.hasPrefix("{") else {
            return .success(nil)
        }
        let file = EventFile(path: common.files.eventPath(of: id, user: user), user: user)
        return await filesThread.perform { [common] in
            do throws(SystemError) {
                try common.repair()
                try file.write(text)
                return .success(file)
            } catch {
                return .failure(error)
            }
        }
    }

    /// Writes the inputs; if that fails, returns how the attempt ends.
    private func writeInputs(
        _ context: ProcessContext,
        to attempt: ProcessFiles.Attempt
    ) async -> AttemptEnd? {
        guard !context.inputs.isEmpty else { return nil }
        let bytes = context.inputs.reduce(0) { $0 + ($1.output?.bytes.count ?? 0) }
        guard bytes <= context.limits.inputsBytes else {
            return .failed(.inputTooLarge(bytes: bytes, limit: context.limits.inputsBytes))
        }
        let inputs = context.inputs
        let error: SystemError? = await filesThread.perform { [common] in
            do throws(SystemError) {
                try common.repair()
                try ProcessFiles.write(inputs, to: attempt)
                return nil
            } catch {
                return error
            }
        }
        if error == nil { state.withLock { $0.diskShortage.served() } }
        return error.map { AttemptEnd(failure(toWriteInputs: $0)) }
    }

    /// How an attempt ends whose inputs cannot be written. A full disk is a problem of the worker,
    /// not of the operation.
    private func failure(toWriteInputs error: SystemError) -> OutputFetcher.Failure {
        guard !error.isShortageOrFullDisk else { return .postponed(by: missed(error)) }
        return .failed(
            SpawnFailure(message: "The process could not be given its inputs: \(error).")
                .operationError
        )
    }

    private func report(
        _ end: RunningProcess.End,
        of command: CommandDescription,
        _ context: ProcessContext,
        _ attempt: ProcessFiles.Attempt,
        _ stop: StopSignal
    ) async -> Report {
        var result = AttemptResult(
            end: ProcessRunner.attemptEnd(of: end),
            startedAt: end.startedAt,
            endedAt: end.endedAt,
            log: end.log
        )
        if result.end == .succeeded, !command.produces.isEmpty {
            let ran = end.endedAt - end.startedAt
            await checkProducts(of: command, context, attempt.user, stop, ran: ran, &result)
        }
        // Only a successful attempt has an output.
        if end.hasOutput, result.end == .succeeded {
            do throws(OperationError) {
                let limit = context.limits.payloadBytes
                result.output = try await readOutput(attempt, limit: limit)
            } catch {
                let isShortage = ProcessFiles.isShortage(error)
                result.end =
                    isShortage ? .notYet(after: ShortagePause.longest) : .failed(error)
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
        let bytes = try await readBytes(attempt, limit: limit)
        // An empty file counts as no output.
        guard !bytes.isEmpty else { return .empty }
        do throws(JSONCheck.Malformed) {
            try JSONCheck.check(bytes)
        } catch {
            throw ProcessFiles.outputError("it is not JSON: \(error)")
        }
        return Payload(bytes: bytes)
    }

    /// Reads the output. The process has finished its work, so if there is no descriptor to read
    /// its output with, the read is repeated for a while.
    private func readBytes(
        _ attempt: ProcessFiles.Attempt,
        limit: Int
    ) async throws(OperationError) -> [UInt8] {
        for _ in 0..<Self.outputReadsMax {
            let read: Result<[UInt8], OperationError> = await filesThread.perform {
                Result { () throws(OperationError) in
                    try ProcessFiles.readOutput(attempt, limit: limit)
                }
            }
            guard case .failure(let error) = read, ProcessFiles.isShortage(error) else {
                return try read.get()
            }
            // Not a child of this task, whose operation has succeeded even if the task is cancelled
            // now.
            await Task { try? await Task.sleep(for: Self.outputReadPause) }.value
        }
        throw ProcessFiles.shortage
    }

    /// Half a minute in total: longer than the longest pause of other work that lacks descriptors.
    private static let outputReadsMax = 300
    private static let outputReadPause = Duration.milliseconds(100)

    /// The end that an attempt reports for the end of its process.
    private static func attemptEnd(of end: RunningProcess.End) -> AttemptEnd {
        switch (end.status, end.stopReason) {
        case (_, .timeout): .failed(.timeout)
        // The process did its work, or as much as it could after SIGTERM.
        case (.exited(code: 0), _): .succeeded
        case (_, .request): .cancelled
        case (.exited(let code), nil): .failed(.exit(code: code))
        case (.signaled(let number), nil): .failed(.signal(name: SignalName.of(number)))
        case (.unknown, nil), (nil, nil):
            .failed(SpawnFailure(message: "How the process ended is unknown.").operationError)
        }
    }
}

// MARK: - Inputs stored before the run

extension ProcessRunner {
    /// A place for the inputs of one attempt of a queue; `nil`: the runner was shut down.
    package func makeInputs(
        ofQueue queue: String = QueueSettings.defaultName
    ) -> StoredInputs? {
        nextID().map { id in
            let user = configuration.users.user(ofQueue: queue)
            let attempt = common.files.attempt(id, hasInputs: true, user: user)
            return StoredInputs(id: id, attempt: attempt, common)
        }
    }

    /// Appends inputs. `done` is called on a thread of the runner; if the write failed, it receives
    /// the consequence for the attempt. It is not called after the runner was shut down.
    package func store(
        _ inputs: [NamedInput],
        in stored: StoredInputs,
        done: @escaping @Sendable (OutputFetcher.Failure?) -> Void
    ) {
        filesThread.submit { [self] in
            done(stored.write(inputs, isLast: false).map { failure(toWriteInputs: $0) })
        }
    }

    /// Removes stored inputs that will not be used.
    package func discard(_ inputs: StoredInputs) {
        filesThread.submit { ProcessFiles.remove(inputs.attempt) }
    }

    private func finish(_ inputs: StoredInputs) async -> AttemptEnd? {
        guard !isShutDown else { return nil }
        let error = await filesThread.perform { inputs.write([], isLast: true) }
        return error.map { AttemptEnd(failure(toWriteInputs: $0)) }
    }
}

extension AttemptEnd {
    fileprivate init(_ failure: OutputFetcher.Failure) {
        switch failure {
        case .gone: self = .cancelled
        case .failed(let error): self = .failed(error)
        case .postponed(let pause): self = .notYet(after: pause)
        }
    }
}

extension ProcessRunner.Report {
    static func notStarted(_ end: AttemptEnd) -> Self {
        let now = SystemClock.now()
        let attempt = AttemptResult(end: end, startedAt: now, endedAt: now)
        return Self(value: ProcessResult(attempt: attempt, status: nil))
    }
}

/// Why a runner cannot be created: a sentence for the person who starts the worker.
package struct ProcessRunnerError: Error, Hashable, Sendable, CustomStringConvertible {
    package let message: String

    package var description: String { message }
}
