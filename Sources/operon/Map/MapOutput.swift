import OperonArguments
import OperonCore
import OperonModel
import OperonRuntime
import OperonTerminal
import Synchronization

/// Shows the output of each operation of `operon map` when the operation has ended, as if it had
/// run alone, and writes the joblog.
final class MapOutput: RunListener {
    private let plan: MapPlan
    private let files: MapFiles
    private let delivery: MapDelivery
    /// Stores what logs deliver, before `shows` shows it.
    private let stores: SerialThread
    /// Writes on a thread of its own, because a reader may be slow. Its queue holds at most one
    /// entry for each operation.
    private let shows: SerialThread
    private let state = Mutex(State())
    private let writer: Mutex<MapWriter>
    private let log: JobLog?
    let unread = Latch()

    private struct State {
        var failed = 0
        var cancelled = 0
        /// The last attempts of unfinished operations. Only looked up.
        var attempts: [Int: Attempt] = [:]
        /// The names of workers. Only looked up.
        var workers: [Incarnation: String] = [:]
        /// Bytes that are not stored yet.
        var waitingBytes = 0
        /// Operations whose output is not shown whole. Only looked up.
        var lost: Set<Int> = []
    }

    private struct Attempt {
        var host = ""
        var start: Timestamp?
        var end: Timestamp?
    }

    /// The end of one operation.
    struct End: Sendable {
        let index: Int
        let outcome: Outcome
        var host = ""
        var start: WallTime
        var duration = Duration.zero
    }

    /// More than this waits for no slow disk.
    private static let waitingBytesMax = 64 << 20

    init(
        _ plan: MapPlan,
        files: MapFiles,
        delivery: MapDelivery,
        keepsOrder: Bool,
        log: JobLog?
    ) throws(Failure) {
        self.plan = plan
        self.files = files
        self.delivery = delivery
        do throws(SystemError) {
            stores = try SerialThread(name: "operon-store")
            shows = try SerialThread(name: "operon-show")
        } catch {
            throw Failure(MapExit.other, "Output cannot be written: \(error).")
        }
        self.log = log
        writer = Mutex(
            MapWriter(plan: plan, files: files, keepsOrder: keepsOrder, log: log)
        )
    }

    // MARK: - What happens

    func note(_ notices: [Scheduler.Notice], at now: Timestamp) {
        for notice in notices {
            switch notice {
            case .workerJoined(let worker, _, _):
                // Of this process; the joblog then has a colon, as that of GNU parallel.
                if case .files = delivery { continue }
                state.withLock { $0.workers[worker.incarnation] = worker.name }
            case .granted(let operation, _, let worker):
                state.withLock { state in
                    let host = state.workers[worker] ?? ""
                    state.attempts[Int(operation.index)] = Attempt(host: host)
                }
            case .attemptEnded(let operation, _, _, let start, let end):
                state.withLock { state in
                    state.attempts[Int(operation.index)]?.start = start
                    state.attempts[Int(operation.index)]?.end = end
                }
            case .result(let operation, _, let result):
                deliver(result.log.tail, of: Int(operation.index))
            case .finished(let operation, let outcome): ended(Int(operation.index), outcome)
            case .rangeFinished(let operations, let outcome):
                for operation in operations { ended(Int(operation.index), outcome) }
            case .operationsAdded, .ready, .started, .yielded, .waitEnded, .resumed, .retry,
                .graphFinished, .graphClosedIdle, .workerLost, .workerDraining, .workerBusy,
                .superseded, .eventRefused, .log, .progress, .watched:
                continue
            }
        }
    }

    private func ended(_ index: Int, _ outcome: Outcome) {
        let attempt = state.withLock { $0.attempts.removeValue(forKey: index) }
        var end = End(index: index, outcome: outcome, start: SystemClock.wall())
        if let attempt {
            end.host = attempt.host
            if let start = attempt.start, let ended = attempt.end {
                end.start = end.start + (start - SystemClock.now())
                end.duration = ended - start
            }
        }
        self.ended(end)
    }

    /// Keeps what the log of an attempt delivers; that of the last attempt is shown.
    func deliver(_ log: [UInt8], of index: Int) {
        guard case .log(let marker) = delivery, index < plan.numbers.count, !log.isEmpty
        else { return }
        let hasRoom = state.withLock { state in
            guard state.waitingBytes < Self.waitingBytesMax else { return false }
            state.waitingBytes += log.count
            return true
        }
        let name = plan.graph.operations[index].name
        guard hasRoom else {
            state.withLock { _ = $0.lost.insert(index) }
            return Self.say("the output of \(name) is lost: the disk is too slow")
        }
        stores.submit { [self] in
            let parts = MapLog(log, marker: marker)
            if parts.isCut {
                state.withLock { _ = $0.lost.insert(index) }
                Self.say(
                    "the first bytes of the output of \(name) are missing: it printed more than"
                        + " \(Limits().logBytes) bytes"
                )
            }
            do {
                try files.store(parts.output, as: .output, of: name)
                try files.store(parts.errors, as: .errors, of: name)
            } catch {
                state.withLock { _ = $0.lost.insert(index) }
                Self.say("the output of \(name) is lost: \(error)")
            }
            state.withLock { $0.waitingBytes -= log.count }
        }
    }

    /// Shows an operation that has ended, after what was delivered before.
    func ended(_ end: End) {
        // Commands may add operations to the graph; these have no output here.
        guard end.index < plan.numbers.count else { return }
        state.withLock { state in
            switch end.outcome {
            case .succeeded: break
            case .failed: state.failed += 1
            case .cancelled, .skipped: state.cancelled += 1
            }
        }
        stores.submit { [self] in
            shows.submit { [self] in
                writer.withLock { writer in
                    writer.write(end) { index in
                        state.withLock { $0.lost.contains(index) }
                    } lost: { index, why in
                        state.withLock { _ = $0.lost.insert(index) }
                        Self.say(
                            "the output of \(plan.graph.operations[index].name) is lost: \(why)"
                        )
                    }
                }
                if FileOutput.standardOutput.isClosed { unread.open() }
            }
        }
    }

    private static func say(_ sentence: String) {
        FileOutput.standardError.print("operon: \(TerminalText.line(sentence))")
    }

    // MARK: - The end

    /// Returns when everything is written, or when the task is cancelled.
    func flush() async {
        let isWritten = Latch()
        stores.submit { [shows] in shows.submit { isWritten.open() } }
        await isWritten.wait()
    }

    /// Ends the threads. The caller has no further calls.
    func close() {
        stores.submit { [stores, shows] in
            shows.stop()
            stores.stop()
        }
    }

    var failureCode: Int32 { MapExit.other }

    var exitCode: Int32 {
        if unread.isOpen { return MapExit.unread }
        if isIncomplete { return MapExit.other }
        let state = state.withLock { $0 }
        // After a failure with --fail-fast, the others are cancelled and have not failed.
        return MapExit.of(state.failed > 0 ? state.failed : state.cancelled)
    }

    var hasFailed: Bool { state.withLock { $0.failed > 0 } }

    /// Whether some output is not where it should be.
    private var isIncomplete: Bool {
        // What cannot be written is told when the program ends.
        FileOutput.standardOutput.failure != nil || state.withLock { !$0.lost.isEmpty }
    }

    /// What the joblog lacks; `nil`: nothing. Waits for no slow reader.
    var logFailure: String? { log?.failure }
}

/// Writes the output of operations that have ended, one after the other.
private struct MapWriter {
    let plan: MapPlan
    let files: MapFiles
    let keepsOrder: Bool
    let log: JobLog?
    /// Operations that have ended and wait for those before them. Only looked up.
    private var waiting: [Int: MapOutput.End] = [:]
    /// The first operation that is not shown.
    private var next = 0

    init(plan: MapPlan, files: MapFiles, keepsOrder: Bool, log: JobLog?) {
        self.plan = plan
        self.files = files
        self.keepsOrder = keepsOrder
        self.log = log
    }

    /// - Parameters:
    ///   - isLost: Whether some of the output of an operation was lost before.
    ///   - lost: Called if some of it cannot be shown.
    mutating func write(
        _ end: MapOutput.End,
        isLost: (Int) -> Bool,
        lost: (Int, _ why: String) -> Void
    ) {
        guard keepsOrder else { return show(end, isLost, lost) }
        waiting[end.index] = end
        while let end = waiting.removeValue(forKey: next) {
            next += 1
            show(end, isLost, lost)
        }
    }

    private func show(
        _ end: MapOutput.End,
        _ isLost: (Int) -> Bool,
        _ lost: (Int, String) -> Void
    ) {
        let name = plan.graph.operations[end.index].name
        let command = plan.command(end.index)
        var bytes = 0
        do {
            bytes = try files.show(.output, of: name, to: .standardOutput)
            _ = try files.show(.errors, of: name, to: .standardError)
        } catch {
            lost(end.index, "\(error)")
        }
        if case .failed(let error) = end.outcome, let why = Self.explanation(error) {
            FileOutput.standardError.print("operon: \(why): \(TerminalText.line(command))")
        }
        // Without a line, --resume runs it again.
        let output = FileOutput.standardOutput
        guard !isLost(end.index), output.failure == nil, !output.isClosed else { return }
        guard let log, let ended = JobLog.End(end.outcome) else { return }
        log.write(
            JobLog.Entry(
                number: plan.numbers[end.index],
                host: end.host.isEmpty ? ":" : end.host,
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
