import NIOConcurrencyHelpers
import OperonArguments
import OperonCore
import OperonModel
import OperonRuntime
import OperonTerminal

/// Shows the output of each operation of `operon map` when the operation has ended, as if it had
/// run alone, and writes the joblog.
final class MapOutput: RunListener {
    private let plan: MapPlan
    private let files: MapFiles
    /// Writes on a thread of its own, because a reader may be slow. Its queue holds at most one
    /// entry for each operation.
    private let thread: SerialThread
    private let counts = NIOLockedValueBox(Counts())
    private let writer: NIOLockedValueBox<MapWriter>

    private struct Counts {
        var failed = 0
        var cancelled = 0
        /// When the last attempts of unfinished operations began and ended. Only looked up.
        var times: [UInt32: Times] = [:]
    }

    fileprivate struct Times {
        var start: Timestamp?
        var end: Timestamp?
    }

    init(_ plan: MapPlan, files: MapFiles, keepsOrder: Bool, log: JobLog?) throws(Failure) {
        self.plan = plan
        self.files = files
        do throws(SystemError) {
            thread = try SerialThread(name: "operon-map")
        } catch {
            throw Failure(MapExit.other, "output cannot be written: \(error)")
        }
        writer = NIOLockedValueBox(
            MapWriter(plan: plan, files: files, keepsOrder: keepsOrder, log: log)
        )
    }

    func note(_ notices: [Scheduler.Notice], at now: Timestamp) {
        for notice in notices {
            switch notice {
            case .attemptEnded(let operation, _, _, let start, let end):
                let times = Times(start: start, end: end)
                counts.withLockedValue { $0.times[operation.index] = times }
            case .finished(let operation, let outcome): ended(operation, outcome)
            case .operationsAdded, .ready, .granted, .started, .yielded, .waitEnded, .resumed,
                .result, .retry, .graphFinished, .graphClosedIdle, .workerJoined, .workerLost,
                .workerDraining, .workerBusy, .superseded, .eventRefused, .log, .progress:
                continue
            }
        }
    }

    private func ended(_ operation: OperationID, _ outcome: Outcome) {
        let index = Int(operation.index)
        // Commands may add operations to the graph; these have no output here.
        guard index < plan.numbers.count else { return }
        let times = counts.withLockedValue { counts in
            switch outcome {
            case .succeeded: break
            case .failed: counts.failed += 1
            case .cancelled, .skipped: counts.cancelled += 1
            }
            return counts.times.removeValue(forKey: operation.index)
        }
        var end = MapWriter.End(index: index, outcome: outcome, start: SystemClock.wall())
        if let times, let start = times.start, let ended = times.end {
            end.start = end.start + (start - SystemClock.now())
            end.duration = ended - start
        }
        thread.submit { [writer, end] in writer.withLockedValue { $0.write(end) } }
    }

    /// Returns when everything is written, or when the task is cancelled.
    func flush() async {
        let isWritten = Latch()
        thread.submit { isWritten.open() }
        await isWritten.wait()
    }

    /// Removes the files of operations whose output was not shown.
    func close() {
        thread.submit { [thread, files] in
            files.remove()
            thread.stop()
        }
    }

    var failureCode: Int32 { MapExit.other }

    var exitCode: Int32 {
        let counts = counts.withLockedValue { $0 }
        // After a failure with --fail-fast, the others are cancelled and have not failed.
        return MapExit.of(counts.failed > 0 ? counts.failed : counts.cancelled)
    }

    /// What the joblog lacks; `nil`: nothing.
    var logFailure: String? { writer.withLockedValue { $0.log?.failure } }
}

/// Writes the output of operations that have ended, one after the other.
private struct MapWriter {
    /// The end of one operation.
    struct End {
        let index: Int
        let outcome: Outcome
        var start: WallTime
        var duration = Duration.zero
    }

    let plan: MapPlan
    let files: MapFiles
    let keepsOrder: Bool
    let log: JobLog?
    /// Operations that have ended and wait for those before them. Only looked up.
    private var waiting: [Int: End] = [:]
    /// The first operation that is not shown.
    private var next = 0

    init(plan: MapPlan, files: MapFiles, keepsOrder: Bool, log: JobLog?) {
        self.plan = plan
        self.files = files
        self.keepsOrder = keepsOrder
        self.log = log
    }

    mutating func write(_ end: End) {
        guard keepsOrder else { return show(end) }
        waiting[end.index] = end
        while let end = waiting.removeValue(forKey: next) {
            next += 1
            show(end)
        }
    }

    private func show(_ end: End) {
        let name = plan.graph.operations[end.index].name
        let command = plan.command(end.index)
        let bytes = files.show(.output, of: name, to: .standardOutput)
        _ = files.show(.errors, of: name, to: .standardError)
        if case .failed(let error) = end.outcome, let why = Self.explanation(error) {
            FileOutput.standardError.print("operon: \(why): \(TerminalText.line(command))")
        }
        guard let log, let ended = JobLog.End(end.outcome) else { return }
        log.write(
            JobLog.Entry(
                number: plan.numbers[end.index],
                host: ":",
                start: end.start,
                duration: end.duration,
                bytes: bytes,
                end: ended,
                command: command
            )
        )
    }

    /// Why an operation failed, unless its own messages say it.
    private static func explanation(_ error: OperationError) -> String? {
        if case .exit = error { nil } else { TerminalText.line(error.description) }
    }
}
