import OperonModel
import Synchronization

/// One attempt at an operation of a registered kind, in a task of its own.
///
/// Swift code cannot be ended from outside. When it is asked to stop, its task is cancelled; it
/// ends when it returns, and keeps its slot until then.
final class RegisteredRun: Sendable {
    /// Takes a piece of the log: the number of bytes before it, and at most `logChunkBytes`.
    typealias LogHandler = @Sendable (UInt64, [UInt8]) -> Void

    /// The most bytes of log passed on at once, equal to the most that is read from a process at
    /// once.
    static let logChunkBytes = 65_536

    /// Why it was asked to stop. The first reason counts.
    private enum StopReason {
        case request
        case timeout
    }

    private struct State {
        var task: Task<Void, Never>?
        var stopReason: StopReason?
        var isOver = false
        var log: LogBuffer
        /// The latest progress that has not been passed on yet.
        var progress: ReportedProgress?
        /// The earliest time to pass on the next progress.
        var nextProgress = Timestamp.zero
        /// Whether a task is waiting to pass on the progress there is by then.
        var isProgressDue = false
    }

    /// The shortest time between two progress reports: people do not read faster.
    private static let progressInterval = Duration.milliseconds(250)

    private let kind: RegisteredKind
    private let operation: DispatchedOperation
    private let input: Payload
    private let threads: OperationThreads?
    private let trace: OperationTrace?
    private let time: TimeSource
    /// The shortest pause after “not yet”: with a shorter one, code could do nothing but ask.
    private static let shortestPause = Duration.milliseconds(10)

    private let payloadBytes: Int
    private let ask: Invocation.Asker
    private let onLog: LogHandler
    private let onProgress: @Sendable (ReportedProgress) -> Void
    private let state: Mutex<State>

    /// - Parameter trace: Gives the attempt a span; `nil`: the caller has done so.
    init(
        _ kind: RegisteredKind,
        _ operation: DispatchedOperation,
        input: Payload,
        threads: OperationThreads?,
        trace: OperationTrace? = nil,
        time: TimeSource = .system,
        limits: Limits,
        ask: @escaping Invocation.Asker,
        onLog: @escaping LogHandler,
        onProgress: @escaping @Sendable (ReportedProgress) -> Void = { _ in }
    ) {
        self.kind = kind
        self.operation = operation
        self.input = input
        self.threads = threads
        self.trace = trace
        self.time = time
        payloadBytes = limits.payloadBytes
        self.ask = ask
        self.onLog = onLog
        self.onProgress = onProgress
        state = Mutex(State(log: LogBuffer(limit: limits.logBytes)))
    }

    /// Starts it. `ended` is called once, as the last action of its task, on its own thread.
    func start(stop: StopSignal, ended: @escaping @Sendable (AttemptResult) -> Void) {
        let startedAt = SystemClock.now()
        // In this order, a stop request that comes meanwhile finds the task or is returned by
        // `attach`.
        startTask(startedAt: startedAt) { result in
            stop.detach()
            ended(result)
        }
        let asked = stop.attach { [weak self] _ in self?.stop(for: .request) }
        if asked != nil { self.stop(for: .request) }
    }

    private func startTask(
        startedAt: Timestamp,
        ended: @escaping @Sendable (AttemptResult) -> Void
    ) {
        // Computed before the task starts: with a clock that is moved, it may first run long after.
        let timeoutAt = operation.timeout.map { time.now() + $0 }
        let over = timeoutAt == nil ? nil : Latch()
        let task = Task(
            executorPreference: threads,
            priority: operation.qualityOfService.taskPriority
        ) {
            let result = await self.perform(startedAt: startedAt)
            over?.open()
            guard let threads = self.threads else { return ended(result) }
            threads.handOver { ended(result) }
        }
        let isAsked = state.withLock { state in
            // Harmless: it may have ended already.
            if !state.isOver { state.task = task }
            return state.stopReason != nil
        }
        // Its own code cancelled it before there was a task to cancel.
        if isAsked { task.cancel() }
        guard let timeoutAt, let over else { return }
        // This task ends with the operation.
        Task { [weak self, time] in
            await over.wait(until: timeoutAt, by: time)
            if !over.isOpen { self?.stop(for: .timeout) }
        }
    }

    private func perform(startedAt: Timestamp) async -> AttemptResult {
        guard let trace else { return await perform(operation, startedAt: startedAt) }
        return await trace.span(around: operation) { await perform($0, startedAt: startedAt) }
    }

    private func perform(
        _ operation: DispatchedOperation,
        startedAt: Timestamp
    ) async -> AttemptResult {
        let end = await kind.run(
            Invocation(
                operation: operation,
                input: input,
                isCancelled: { self.isCancelled },
                cancel: { self.stop(for: .request) },
                log: { self.log($0) },
                report: { self.report($0) },
                ask: ask
            )
        )
        let state = state.withLock { state in
            state.isOver = true
            state.task = nil
            return state
        }
        return result(end, state, startedAt: startedAt, endedAt: SystemClock.now())
    }

    private func stop(for reason: StopReason) {
        let task: Task<Void, Never>? = state.withLock { state in
            guard !state.isOver, state.stopReason == nil else { return nil }
            state.stopReason = reason
            return state.task
        }
        task?.cancel()
    }

    private var isCancelled: Bool { state.withLock { $0.stopReason != nil } }

    private func log(_ text: String) {
        let bytes = Array(text.utf8) + [UInt8(ascii: "\n")]
        // Under the lock, so that pieces from two tasks of one operation do not mix.
        state.withLock { state in
            // Harmless: a task that the code left behind still logs. Its attempt has been reported.
            guard !state.isOver else { return }
            var rest = bytes[...]
            while !rest.isEmpty {
                let chunk = rest.prefix(Self.logChunkBytes)
                rest = rest.dropFirst(chunk.count)
                onLog(state.log.end, Array(chunk))
                state.log.append(chunk)
            }
        }
    }

    /// Passes the first report on at once; of those that follow too soon, only the last.
    private func report(_ progress: ReportedProgress) {
        let (now, wait): (ReportedProgress?, Duration?) = state.withLock { state in
            guard !state.isOver else { return (nil, nil) }
            let pause = state.nextProgress - SystemClock.now()
            guard pause > .zero || state.isProgressDue else {
                state.nextProgress = SystemClock.now() + Self.progressInterval
                return (progress, nil)
            }
            state.progress = progress
            guard !state.isProgressDue else { return (nil, nil) }
            state.isProgressDue = true
            return (nil, pause)
        }
        if let now { onProgress(now) }
        guard let wait else { return }
        // This task ends by itself a moment later.
        Task { [weak self] in
            do { try await Task.sleep(for: wait) } catch {}
            self?.reportLast()
        }
    }

    private func reportLast() {
        let last = state.withLock { state in
            state.isProgressDue = false
            state.nextProgress = SystemClock.now() + Self.progressInterval
            defer { state.progress = nil }
            return state.isOver ? nil : state.progress
        }
        if let last { onProgress(last) }
    }

    private func result(
        _ end: InvocationEnd,
        _ state: State,
        startedAt: Timestamp,
        endedAt: Timestamp
    ) -> AttemptResult {
        var result = AttemptResult(
            end: .cancelled,
            startedAt: startedAt,
            endedAt: endedAt,
            log: state.log.kept
        )
        switch (end, state.stopReason) {
        case (_, .timeout): result.end = .failed(.timeout)
        case (.returned(let output), _) where output.bytes.count > payloadBytes:
            result.end = .failed(
                .outputTooLarge(bytes: output.bytes.count, limit: payloadBytes)
            )
        case (.returned(let output), _):
            result.end = .succeeded
            result.output = output
        case (.failed(let error), _): result.end = .failed(error)
        // An attempt that was asked to stop is not run again.
        case (.notYet(let pause), nil):
            result.end = .notYet(after: max(Self.shortestPause, pause))
        case (.notYet, .request): result.end = .cancelled
        case (.stopped, .request): result.end = .cancelled
        case (.stopped, nil):
            let message = "It threw CancellationError, but nobody had cancelled it."
            result.end = .failed(
                .thrown(type: "CancellationError", message: message, payload: [])
            )
        }
        return result
    }
}

extension QualityOfService {
    /// The priority of the task that runs such an operation.
    fileprivate var taskPriority: TaskPriority {
        switch self {
        case .background: .background
        case .utility: .utility
        case .default: .medium
        case .userInitiated, .userInteractive: .high
        }
    }
}
