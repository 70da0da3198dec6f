import OperonCore
import OperonModel
import OperonRuntime
import OperonTerminal

/// What a person sees of a run while it goes on. Everything said during a run goes through here, in
/// order, so that no line tears the progress.
struct RunScreen: Sendable {
    let style: TerminalStyle
    private let display: ProgressDisplay
    private let graph: LoadedGraph
    private let inbox: AsyncStream<Item>
    private let continuation: AsyncStream<Item>.Continuation
    private let done = Latch()
    private let isQuiet: Bool

    private enum Item: Sendable {
        case notices([Scheduler.Notice], Timestamp)
        case line(String)
        case connected
        case tick
        case end
    }

    init(graph: LoadedGraph, isQuiet: Bool, environment: [String: String]) {
        self.graph = graph
        self.isQuiet = isQuiet
        let output = FileOutput.standardError
        style = TerminalStyle(environment: environment, isTerminal: output.isTerminal)
        display = ProgressDisplay(
            printer: LinePrinter(output: output, style: style),
            startedAt: SystemClock.now(),
            isQuiet: isQuiet
        )
        (inbox, continuation) = AsyncStream.makeStream()
    }

    /// Called on the coordinator: returns at once.
    func note(_ notices: [Scheduler.Notice], at now: Timestamp) {
        guard !isQuiet else { return }
        // What is not shown is not kept for a screen that may be slow: outputs and logs are large.
        let shown = notices.filter(Self.isShown)
        if !shown.isEmpty { continuation.yield(.notices(shown, now)) }
    }

    private static func isShown(_ notice: Scheduler.Notice) -> Bool {
        switch notice {
        case .ready, .started, .resumed, .attemptEnded, .finished, .retry, .workerJoined,
            .workerLost,
            .workerDraining, .workerBusy:
            true
        case .granted, .result, .graphFinished, .eventRefused, .log: false
        }
    }

    /// A sentence above the progress.
    func say(_ line: String) { continuation.yield(.line(line)) }

    /// From here on somebody could come to run something.
    func connected() { continuation.yield(.connected) }

    /// Lines at the end, when nothing is drawn any more.
    func print(_ lines: [String]) {
        FileOutput.standardError.write(Array(lines.map { $0 + "\n" }.joined().utf8))
    }

    /// Draws until `finish`.
    func run() async {
        let group = await display.addGroup(name: graph.description.name)
        var state = ScreenState(graph: graph)
        await display.operationsAdded(
            graph.compiled.topology.operationCount,
            to: group,
            work: state.work.reduce(0, +)
        )
        await withTaskGroup(of: Void.self) { tasks in
            tasks.addTask { await tick() }
            for await item in inbox {
                switch item {
                case .notices(let notices, let now):
                    await show(notices, group: group, state: &state, at: now)
                case .line(let line):
                    await display.print([TerminalText.line(line)], at: SystemClock.now())
                case .connected: state.connectedAt = SystemClock.now()
                case .tick:
                    let now = SystemClock.now()
                    if let hint = state.hint(at: now) { await display.print([hint], at: now) }
                    await display.tick(at: now)
                case .end:
                    await display.finish(at: SystemClock.now())
                    done.open()
                    tasks.cancelAll()
                    return
                }
            }
            // The run was given up: leave a clean screen.
            await display.finish(at: SystemClock.now())
            done.open()
        }
    }

    /// The clock of the display: elapsed times move though nothing happens.
    private func tick() async {
        while !Task.isCancelled {
            do { try await Task.sleep(for: .milliseconds(200)) } catch { return }
            continuation.yield(.tick)
        }
    }

    /// Everything noted so far is shown, and nothing is drawn after it.
    func finish() async {
        continuation.yield(.end)
        continuation.finish()
        await done.wait()
    }

    /// The attempts whose start is no news, since they have ended already.
    private static func endedAttempts(_ notices: [Scheduler.Notice]) -> Set<AttemptID> {
        var ended: Set<AttemptID> = []
        for case .attemptEnded(_, let attempt, _, _, _) in notices { ended.insert(attempt) }
        return ended
    }

    private func show(
        _ notices: [Scheduler.Notice],
        group: Int,
        state: inout ScreenState,
        at now: Timestamp
    ) async {
        let ended = Self.endedAttempts(notices)
        var moves: [ProgressDisplay.Move] = []
        for notice in notices {
            let line: String
            switch notice {
            case .workerLost(let worker):
                let name = TerminalText.line(worker.name)
                let hasLeft = state.drainingWorkers.contains(worker.incarnation)
                line = hasLeft ? "Worker \(name) has left." : "Worker \(name) is gone."
                state.workerCount -= 1
            case .workerDraining(let worker):
                state.drainingWorkers.insert(worker.incarnation)
                line = "Worker \(TerminalText.line(worker.name)) takes nothing new."
            case .workerJoined:
                state.workerCount += 1
                continue
            case .workerBusy(let worker, _):
                // It says so every beat; a person wants to read it once.
                guard state.busyWorkers.insert(worker.incarnation).inserted else { continue }
                let name = TerminalText.line(worker.name)
                line = "Worker \(name) still holds work of another run."
            case .started(_, let attempt, _) where ended.contains(attempt): continue
            case .ready, .granted, .started, .resumed, .attemptEnded, .result, .finished, .retry,
                .graphFinished, .eventRefused, .log:
                if let move = state.move(notice) { moves.append(move) }
                continue
            }
            await display.operationsMoved(moves, in: group, at: now)
            moves.removeAll()
            await display.print([line], at: now)
        }
        if !moves.isEmpty { await display.operationsMoved(moves, in: group, at: now) }
    }
}

/// What the screen knows of each operation.
private struct ScreenState {
    let work: [Double]
    var workerCount = 0
    var busyWorkers: Set<Incarnation> = []
    var drainingWorkers: Set<Incarnation> = []
    private var phases: [ProgressPhase]
    private var durations: [Duration?]
    var connectedAt: Timestamp?
    private var hasHinted = false
    private let graph: LoadedGraph

    init(graph: LoadedGraph) {
        self.graph = graph
        // Unknown durations count one second each: only their ratio matters.
        work = graph.description.operations.map { ($0.rankDuration ?? .seconds(1)).seconds }
        phases = Array(repeating: .pending, count: graph.description.operations.count)
        durations = Array(repeating: nil, count: phases.count)
    }

    /// Said once, if nobody is there to run anything.
    mutating func hint(at now: Timestamp) -> String? {
        guard workerCount == 0, !hasHinted, let connectedAt,
            now - connectedAt > .seconds(2)
        else { return nil }
        hasHinted = true
        return "Waiting for a worker: start operon-worker with the same broker and prefix."
    }

    mutating func move(_ notice: Scheduler.Notice) -> ProgressDisplay.Move? {
        switch notice {
        case .ready(let operation): return move(operation, to: .ready)
        case .started(let operation, _, _), .resumed(let operation, _, _):
            return move(operation, to: .executing)
        case .attemptEnded(let operation, _, let ending, let start, let end):
            durations[Int(operation.index)] = start.map { end - $0 }
            switch ending {
            case .returned, .lost, .crashed: return move(operation, to: .ready)
            case .succeeded, .failed, .cancelled: return nil
            }
        case .retry(let operation, _): return move(operation, to: .ready)
        case .finished(let operation, let outcome): return finish(operation, outcome)
        case .granted, .result, .graphFinished, .workerJoined, .workerLost, .workerDraining,
            .workerBusy, .eventRefused, .log:
            return nil
        }
    }

    private mutating func finish(
        _ operation: OperationID,
        _ outcome: Outcome
    ) -> ProgressDisplay.Move? {
        let duration = durations[Int(operation.index)]
        switch outcome {
        case .succeeded: return move(operation, to: .succeeded, duration: duration)
        case .failed(let error):
            let detail = error.description
            return move(operation, to: .failed, duration: duration, detail: detail)
        case .cancelled(let reason):
            return move(operation, to: .cancelled, duration: duration, detail: reason)
        case .skipped(let cause):
            let name = graph.description.operations[Int(cause.index)].name
            return move(operation, to: .skipped, duration: duration, detail: "because of “\(name)”")
        }
    }

    private mutating func move(
        _ operation: OperationID,
        to phase: ProgressPhase,
        duration: Duration? = nil,
        detail: String = ""
    ) -> ProgressDisplay.Move? {
        let index = Int(operation.index)
        let old = phases[index]
        guard old != phase else { return nil }
        phases[index] = phase
        return ProgressDisplay.Move(
            graph.description.operations[index].name,
            from: old,
            to: phase,
            work: work[index],
            duration: duration,
            detail: detail
        )
    }
}
