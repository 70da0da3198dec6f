import OperonCore
import OperonModel
import OperonWire
import Synchronization

/// Runs what a worker agent starts: processes, waits, registered code, and operations that take no
/// time.
final class OperationExecutor: Sendable {
    /// The output of running operations. Bounded: output that is not taken in time is dropped.
    let logs: AsyncStream<LogChunk>
    private let logContinuation: AsyncStream<LogChunk>.Continuation
    /// The progress that running operations report. Bounded in the same way.
    let progress: AsyncStream<ProgressReport>
    private let progressContinuation: AsyncStream<ProgressReport>.Continuation
    private let starts: AsyncStream<DispatchedOperation>
    private let startContinuation: AsyncStream<DispatchedOperation>.Continuation
    private let processes: ProcessRunner
    private let kinds: RegisteredKinds
    /// Inputs that were too large for a dispatch.
    let staging: InputStaging
    private let limits: Limits
    private let trace: OperationTrace
    private let server = Mutex<Server?>(nil)
    private let stops = Mutex<[AttemptID: StopSignal]>([:])

    /// 256 chunks of at most 64 KiB.
    private static let logChunksMax = 256

    init(
        processes: ProcessRunner,
        kinds: RegisteredKinds,
        limits: Limits,
        trace: OperationTrace
    ) {
        self.trace = trace
        self.processes = processes
        self.kinds = kinds
        staging = InputStaging(processes: processes)
        self.limits = limits
        (logs, logContinuation) = AsyncStream.makeStream(
            bufferingPolicy: .bufferingNewest(Self.logChunksMax)
        )
        (progress, progressContinuation) = AsyncStream.makeStream(
            bufferingPolicy: .bufferingNewest(Self.logChunksMax)
        )
        // This stream is unbounded, but the slots of the agent that requests starts bound it.
        (starts, startContinuation) = AsyncStream.makeStream()
    }

    /// Passes on a request of a running operation; returns the answer.
    typealias Asker =
        @Sendable (AttemptID, WorkerAgent.RequestContent) async -> WorkerAgent.RequestAnswer.Content

    private struct Server: Sendable {
        let ask: Asker
        let ended: @Sendable (AttemptID, AttemptResult) -> Void
    }

    /// Passes requests of running operations to `ask`, and their results to `ended`, on any thread.
    func serve(
        ask: @escaping Asker,
        ended: @escaping @Sendable (AttemptID, AttemptResult) -> Void
    ) {
        server.withLock { $0 = Server(ask: ask, ended: ended) }
        processes.socket?.serve { attempt, what in
            OperationSocketFormat.Answer(await ask(attempt, WorkerAgent.RequestContent(what)))
        }
    }

    private func ask(
        _ content: WorkerAgent.RequestContent,
        of attempt: AttemptID
    ) async -> WorkerAgent.RequestAnswer.Content {
        guard let server = server.withLock({ $0 }) else { return .ended }
        return await server.ask(attempt, content)
    }

    private func ended(_ attempt: AttemptID, _ result: AttemptResult) {
        stops.withLock { $0[attempt] = nil }
        server.withLock { $0 }?.ended(attempt, result)
    }

    /// The environment variables through which an attempt's process reaches this worker.
    ///
    /// - Parameter queue: That of a command, which decides about its user.
    private func socketVariables(
        of attempt: AttemptID,
        queue: String? = nil
    ) -> [String: String] {
        guard let socket = processes.socket else { return [:] }
        let user = queue.flatMap { processes.configuration.users.user(ofQueue: $0)?.id }
        return [
            OperationSocketClient.socketVariable: socket.path,
            OperationSocketClient.tokenVariable: socket.begin(attempt, user: user),
        ]
    }

    /// Runs the operations that `start` takes until the task is cancelled; then ends all of them,
    /// and leaves behind code that ignores its cancellation.
    ///
    /// - Parameter willStop: Once it returns, nothing more is started.
    func run(willStop: @Sendable () -> Void) async {
        await withDiscardingTaskGroup { group in
            for await operation in starts {
                group.addTask {
                    let result = await self.perform(operation)
                    self.processes.socket?.end(operation.held.attempt)
                    // Cancelled together with all others: its slot is not given to another
                    // operation.
                    if Task.isCancelled { return }
                    self.ended(operation.held.attempt, result)
                }
            }
            group.cancelAll()
        }
        willStop()
        let left = stops.withLock { $0.sorted { $0.key < $1.key } }
        for (_, stop) in left { stop.cancel() }
        logContinuation.finish()
        progressContinuation.finish()
    }

    /// Returns the result of an operation that takes no time; starts any other, whose result
    /// follows.
    func start(_ started: DispatchedOperation, at now: Timestamp) -> AttemptResult? {
        var operation = started
        if case .registered = operation.work,
            let inputs = staging.inputs(for: operation.held.attempt)
        {
            operation.inputs = inputs
        }
        switch operation.work {
        case .nothing, .wait(.zero):
            return AttemptResult(end: .succeeded, startedAt: now, endedAt: now)
        case .external: return unknown(Work.externalKind, at: now)
        case .registered(Work.forEachKind, let input):
            guard let elements = kinds.elements else { return unknown(Work.forEachKind, at: now) }
            run(ElementAddition(reader: elements, limits: limits).kind, operation, input: input)
            return nil
        case .registered(let name, let input)
        where !operation.needsProcess || kinds.program == nil:
            guard let kind = kinds[name] else { return unknown(name, at: now) }
            run(kind, operation, input: input)
            return nil
        case .wait, .command, .registered:
            stops.withLock { $0[operation.held.attempt] = StopSignal() }
            startContinuation.yield(operation)
            return nil
        }
    }

    private func unknown(_ kind: String, at now: Timestamp) -> AttemptResult {
        AttemptResult(end: .failed(.kindUnknown(kind)), startedAt: now, endedAt: now)
    }

    func stop(_ stop: WorkerAgent.Stop) {
        switch stop {
        case .cancel(let attempt): signal(attempt)?.cancel()
        case .kill(let attempt): signal(attempt)?.kill()
        }
    }

    private func signal(_ attempt: AttemptID) -> StopSignal? {
        stops.withLock { $0[attempt] }
    }

    private func perform(_ operation: DispatchedOperation) async -> AttemptResult {
        await trace.span(around: operation) { await run($0) }
    }

    private func run(_ operation: DispatchedOperation) async -> AttemptResult {
        let stop = signal(operation.held.attempt) ?? StopSignal()
        switch operation.work {
        case .command(let command):
            let logs = logContinuation
            let held = operation.held
            var context = ProcessContext(operation, limits: limits)
            let socket = socketVariables(of: held.attempt, queue: operation.queue)
            context.environmentAdditions.merge(socket) { _, new in new }
            let result = await processes.run(
                command,
                attempt: context,
                inputs: staging.file(for: held.attempt),
                stop: stop
            ) { logs.yield(LogChunk(held, $0)) }
            return result.attempt
        case .wait(let duration):
            return await wait(duration, timeout: operation.timeout, stop: stop)
        case .registered(let name, _):
            guard let program = kinds.program, kinds[name] != nil else {
                return unknown(name, at: SystemClock.now())
            }
            return await runInChild(operation, of: program, stop: stop)
        case .nothing, .external:
            preconditionFailure("start answers at once")
        }
    }

    /// Runs in a task of its own, for which nothing has to wait.
    private func run(_ kind: RegisteredKind, _ operation: DispatchedOperation, input: Payload) {
        let logs = logContinuation
        let progress = progressContinuation
        // Not the whole operation, which is large, is captured below.
        let held = operation.held
        let attempt = held.attempt
        let stop = StopSignal()
        stops.withLock { $0[attempt] = stop }
        let run = RegisteredRun(
            kind,
            operation,
            input: input,
            threads: kinds.threads,
            trace: trace,
            time: kinds.time,
            limits: limits
        ) { content in
            await self.ask(content, of: attempt)
        } onLog: { position, bytes in
            let piece = PrintedPiece(
                stream: .output,
                offset: position,
                position: position,
                bytes: bytes
            )
            logs.yield(LogChunk(held, piece))
        } onProgress: { word in
            progress.yield(ProgressReport(held: held, progress: word))
        }
        run.start(stop: stop) { self.ended(attempt, $0) }
    }

    /// The output of the code becomes its log there, as with any process.
    private func runInChild(
        _ operation: DispatchedOperation,
        of program: ChildProgram,
        stop: StopSignal
    ) async -> AttemptResult {
        let logs = logContinuation
        return await processes.run(
            operation,
            inChildOf: program,
            variables: socketVariables(of: operation.held.attempt),
            limits: limits,
            stop: stop
        ) { logs.yield(LogChunk(operation.held, $0)) }
    }

    private func wait(
        _ duration: Duration,
        timeout: Duration?,
        stop: StopSignal
    ) async -> AttemptResult {
        let startedAt = SystemClock.now()
        let time = kinds.time
        let until = time.now() + min(duration, timeout ?? duration)
        let isTimedOut = timeout.map { $0 < duration } ?? false
        let stopped = Signal()
        if stop.attach({ _ in stopped.raise() }) != nil { stopped.raise() }
        let end = await withTaskGroup(of: AttemptEnd.self) { group in
            group.addTask {
                do {
                    try await time.sleep(until)
                    return isTimedOut ? .failed(.timeout) : .succeeded
                } catch {
                    return .cancelled
                }
            }
            group.addTask {
                for await _ in stopped.raised { return .cancelled }
                return .cancelled
            }
            let first = await group.next() ?? .cancelled
            group.cancelAll()
            return first
        }
        stop.detach()
        return AttemptResult(end: end, startedAt: startedAt, endedAt: SystemClock.now())
    }
}

extension DispatchedOperation {
    /// Whether its code must not run inside the worker: it may crash the process in which it runs,
    /// or must be ended when its right to keys ends, which only the end of a process guarantees.
    fileprivate var needsProcess: Bool { isIsolated || exclusiveLease != nil }
}

extension WorkerAgent.RequestContent {
    init(_ what: OperationSocketFormat.Request.What) {
        switch what {
        case .add(let operations): self = .add(operations)
        case .wait(let names): self = .wait(names)
        case .read(let name): self = .read(name)
        }
    }
}

extension OperationSocketFormat.Request.What {
    init(_ content: WorkerAgent.RequestContent) {
        switch content {
        case .add(let operations): self = .add(operations)
        case .wait(let names): self = .wait(names)
        case .read(let name): self = .read(name)
        }
    }
}

extension OperationSocketFormat.Answer {
    fileprivate init(_ content: WorkerAgent.RequestAnswer.Content) {
        switch content {
        case .added(let count): self = .added(count)
        case .awaited(let outcomes): self = .awaited(outcomes)
        case .read(let output): self = .read(output)
        case .refused(let refusal): self = .refused(refusal)
        case .ended: self = .ended
        }
    }
}
