import OperonCore
import OperonModel
import Synchronization

// Files that the command produces and consumes.

extension ProcessRunner {
    /// What the files of a command mean for its process.
    enum Beginning {
        /// It is started. The products as they are before, if they may be up to date.
        case start([ObservedFile])
        /// It is not started.
        case end(Report)
    }

    /// Decides from the files of a command whether its process is started.
    func lookBeforeStart(
        of command: CommandDescription,
        _ context: ProcessContext,
        _ user: OperationUser?,
        _ stop: StopSignal
    ) async -> Beginning {
        guard !command.consumes.isEmpty || command.skipsIfUpToDate else { return .start([]) }
        let answer = await FileLook.answer(on: looksThread, stop, within: context.timeout) {
            let look = { (paths: [String]) in
                user.act { FileLook.look(at: paths, in: command.directory) }
            }
            let produced = command.skipsIfUpToDate ? look(command.produces) : []
            let decision = StartDecision(
                produced: produced,
                consumed: look(command.consumes),
                skipsIfUpToDate: command.skipsIfUpToDate,
                isRepeat: context.isRepeat
            )
            return (decision, produced)
        }
        switch answer {
        case .found((.start, let produced)): return .start(produced)
        case .found((.fail(let error), _)): return .end(.notStarted(.failed(error)))
        case .found((.upToDate, _)):
            var report = Report.notStarted(.succeeded)
            report.value.attempt.isUpToDate = true
            return .end(report)
        case .stopped: return .end(.notStarted(.cancelled))
        case .timedOut:
            var report = Report.notStarted(.failed(.timeout))
            let why = "the process had not started when its time was over: \(FileLook.hangs)"
            report.value.attempt.add(why, logBytes: context.limits.logBytes)
            return .end(report)
        }
    }

    /// Removes what a process has written that did not succeed, as `make` does: otherwise the next
    /// run would take it for up to date. Not after a kill: then another attempt may be writing the
    /// same files.
    ///
    /// - Parameter before: The products as they were before the start.
    func removeUnfinished(
        _ before: [ObservedFile],
        of command: CommandDescription,
        _ context: ProcessContext,
        _ user: OperationUser?,
        _ stop: StopSignal,
        _ result: inout AttemptResult
    ) async {
        guard command.skipsIfUpToDate, !isShutDown else { return }
        let isWanted = Mutex(true)
        // As long as the process itself may take to end, and enough for any disk that answers.
        let answer = await FileLook.answer(
            on: looksThread,
            stop,
            after: stop.requested,
            within: max(command.grace, .seconds(1))
        ) {
            user.act {
                let after = FileLook.look(at: command.produces, in: command.directory)
                let paths = ObservedFile.unfinished(before: before, after: after)
                    .map { command.produces[$0] }
                return FileLook.remove(paths, in: command.directory) {
                    isWanted.withLock { $0 }
                }
            }
        }
        // A removal that comes late could hit the files of the next attempt.
        isWanted.withLock { $0 = false }
        for note in FileLook.notes(on: answer) {
            result.add(note, logBytes: context.limits.logBytes)
        }
    }

    /// Changes the end of a process that succeeded, unless all that it had to produce is there.
    func checkProducts(
        of command: CommandDescription,
        _ context: ProcessContext,
        _ user: OperationUser?,
        _ stop: StopSignal,
        ran: Duration,
        _ result: inout AttemptResult
    ) async {
        let earlier = stop.requested
        let isStopping = earlier != nil
        // What is left of its time, and enough for any disk that answers.
        let left = context.timeout.map { max($0 - ran, .seconds(1)) }
        let answer = await FileLook.answer(
            on: looksThread,
            stop,
            after: earlier,
            within: isStopping ? command.grace : left
        ) {
            user.act { FileLook.look(at: command.produces, in: command.directory) }
        }
        switch answer {
        case .found(let produced):
            guard let error = ObservedFile.missingProduct(among: produced) else { return }
            // A process that was asked to stop has not failed.
            result.end = isStopping ? .cancelled : .failed(error)
        case .stopped: result.end = .cancelled
        case .timedOut:
            result.end = isStopping ? .cancelled : .failed(.timeout)
            let why = "what the process produced is not known: \(FileLook.hangs)"
            result.add(why, logBytes: context.limits.logBytes)
        }
    }
}

extension RunningProcess.End {
    /// It may not have finished its files.
    var isUnfinished: Bool {
        !isUnwatched && (status != .exited(code: 0) || stopReason == .timeout)
    }
}
