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
    private let done = Signal()
    private let isQuiet: Bool

    private enum Item: Sendable {
        case notices([Scheduler.Notice], Timestamp)
        case line(String)
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
        continuation.yield(.notices(notices, now))
    }

    /// A sentence above the progress.
    func say(_ line: String) { continuation.yield(.line(line)) }

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
                    for notice in notices where !Self.isOvertaken(notice, by: notices) {
                        await show(notice, group: group, state: &state, at: now)
                    }
                case .line(let line):
                    await display.print([TerminalText.line(line)], at: SystemClock.now())
                case .tick:
                    let now = SystemClock.now()
                    if let hint = state.hint(at: now) { await display.print([hint], at: now) }
                    await display.tick(at: now)
                case .end:
                    await display.finish(at: SystemClock.now())
                    done.raise()
                    tasks.cancelAll()
                    return
                }
            }
            // The run was given up: leave a clean screen.
            await display.finish(at: SystemClock.now())
            done.raise()
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
    }

    /// The start of what has ended already is no news.
    private static func isOvertaken(
        _ notice: Scheduler.Notice,
        by notices: [Scheduler.Notice]
    ) -> Bool {
        guard case .started(_, let started, _) = notice else { return false }
        return notices.contains { other in
            guard case .attemptEnded(_, started, _, _, _) = other else { return false }
            return true
        }
    }

    private func show(
        _ notice: Scheduler.Notice,
        group: Int,
        state: inout ScreenState,
        at now: Timestamp
    ) async {
        switch notice {
        case .workerLost(let worker):
            await display.print(["Worker \(TerminalText.line(worker.name)) is gone."], at: now)
            state.workerCount -= 1
        case .workerJoined:
            state.workerCount += 1
        case .workerBusy(let worker, _):
            // It says so every beat; a person wants to read it once.
            guard state.busyWorkers.insert(worker.incarnation).inserted else { return }
            await display.print(
                ["Worker \(TerminalText.line(worker.name)) still holds work of another run."],
                at: now
            )
        case .ready, .granted, .started, .attemptEnded, .result, .finished, .retry,
            .graphFinished, .workerDraining, .eventRefused, .log:
            guard let move = state.move(notice) else { return }
            await display.operationMoved(
                graph.description.operations[move.index].name,
                in: group,
                from: move.from,
                to: move.to,
                work: state.work[move.index],
                duration: move.duration,
                detail: move.detail,
                at: now
            )
        }
    }
}

/// What the screen knows of each operation.
private struct ScreenState {
    let work: [Double]
    var workerCount = 0
    var busyWorkers: Set<Incarnation> = []
    private var phases: [ProgressPhase]
    private var durations: [Duration?]
    private let startedAt = SystemClock.now()
    private var hasHinted = false
    private let graph: LoadedGraph

    struct Move {
        let index: Int
        let from: ProgressPhase
        let to: ProgressPhase
        var duration: Duration?
        var detail = ""
    }

    init(graph: LoadedGraph) {
        self.graph = graph
        // Unknown durations count one second each: only their ratio matters.
        work = graph.description.operations.map { ($0.rankDuration ?? .seconds(1)).seconds }
        phases = Array(repeating: .pending, count: graph.description.operations.count)
        durations = Array(repeating: nil, count: phases.count)
    }

    /// Said once, if nobody is there to run anything.
    mutating func hint(at now: Timestamp) -> String? {
        guard workerCount == 0, !hasHinted, now - startedAt > .seconds(2) else { return nil }
        hasHinted = true
        return "Waiting for a worker: start operon-worker with the same broker and prefix."
    }

    mutating func move(_ notice: Scheduler.Notice) -> Move? {
        switch notice {
        case .ready(let operation): return move(operation, to: .ready)
        case .started(let operation, _, _): return move(operation, to: .executing)
        case .attemptEnded(let operation, _, let ending, let start, let end):
            durations[Int(operation.index)] = start.map { end - $0 }
            switch ending {
            case .returned, .lost: return move(operation, to: .ready)
            case .succeeded, .failed, .cancelled: return nil
            }
        case .retry(let operation, _): return move(operation, to: .ready)
        case .finished(let operation, let outcome): return finish(operation, outcome)
        case .granted, .result, .graphFinished, .workerJoined, .workerLost, .workerDraining,
            .workerBusy, .eventRefused, .log:
            return nil
        }
    }

    private mutating func finish(_ operation: OperationID, _ outcome: Outcome) -> Move? {
        var move: Move?
        switch outcome {
        case .succeeded: move = self.move(operation, to: .succeeded)
        case .failed(let error):
            move = self.move(operation, to: .failed)
            move?.detail = error.description
        case .cancelled(let reason):
            move = self.move(operation, to: .cancelled)
            move?.detail = reason
        case .skipped(let cause):
            move = self.move(operation, to: .skipped)
            let name = graph.description.operations[Int(cause.index)].name
            move?.detail = "because of “\(name)”"
        }
        move?.duration = durations[Int(operation.index)]
        return move
    }

    private mutating func move(_ operation: OperationID, to phase: ProgressPhase) -> Move? {
        let index = Int(operation.index)
        let old = phases[index]
        guard old != phase else { return nil }
        phases[index] = phase
        return Move(index: index, from: old, to: phase)
    }
}
