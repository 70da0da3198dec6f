import OperonCore
import OperonModel
import OperonRuntime
import OperonTerminal
import Synchronization

/// What a person sees while a run is in progress. All messages during a run pass through here in
/// order, so that no line breaks into the progress display.
final class RunScreen: Sendable {
    let style: TerminalStyle
    /// Whether the person who watches can be asked.
    let canAsk: Bool
    private let display: ProgressDisplay
    private let graph: GrowingGraph
    private let inbox: AsyncStream<Item>
    private let continuation: AsyncStream<Item>.Continuation
    private let done = Latch()
    /// Whether a tick is queued and not handled yet.
    private let isTicking = Mutex(false)
    private let isQuiet: Bool
    private let output: QueuedOutput
    private let place: RunStall.Place
    /// Whether this run may resume a previous run. Until the restored state is known, notices are
    /// held back.
    private let resumes: Bool
    /// Whether the elements of repeated operations are shown together.
    private let folds: Bool

    private enum Item: Sendable {
        case notices([Scheduler.Notice], Timestamp)
        case line(String)
        case lines([String])
        case pause(Latch)
        case ask(String)
        case withdrawPrompt
        case resume(isAnswered: Bool)
        case connected
        case restored([OperationProgress], wasCancelled: Bool)
        case tick
        case end
    }

    init(
        graph: GrowingGraph,
        place: RunStall.Place,
        isQuiet: Bool,
        canAsk: Bool,
        resumes: Bool,
        folds: Bool,
        environment: [String: String]
    ) {
        self.graph = graph
        self.place = place
        self.isQuiet = isQuiet
        self.resumes = resumes
        self.folds = folds
        let output = QueuedOutput(FileOutput.standardError)
        self.output = output
        self.canAsk = canAsk && output.file.isTerminal && OwnProcess.hasTerminalInput
        style = TerminalStyle(environment: environment, isTerminal: output.file.isTerminal)
        display = ProgressDisplay(
            printer: LinePrinter(output: output, style: style),
            startedAt: SystemClock.now(),
            isQuiet: isQuiet
        )
        (inbox, continuation) = AsyncStream.makeStream()
    }

    /// Called on the coordinator's executor, so it returns at once.
    func note(_ notices: [Scheduler.Notice], at now: Timestamp) {
        guard !isQuiet else { return }
        // Notices that are not shown are not queued for a slow screen: outputs and logs are large.
        let shown = notices.filter(Self.isShown)
        if !shown.isEmpty { continuation.yield(.notices(shown, now)) }
    }

    private static func isShown(_ notice: Scheduler.Notice) -> Bool {
        switch notice {
        case .operationsAdded, .ready, .started, .resumed, .attemptEnded, .finished,
            .rangeFinished, .retry, .workerJoined, .workerLost, .workerDraining, .workerBusy,
            .superseded:
            true
        case .result(_, _, let result): result.isUpToDate
        case .granted, .yielded, .waitEnded, .graphFinished, .graphClosedIdle,
            .eventRefused, .log, .progress, .watched:
            false
        }
    }

    /// Whether it says nothing of operations.
    private static func isOfWorker(_ notice: Scheduler.Notice) -> Bool {
        switch notice {
        case .workerJoined, .workerLost, .workerDraining, .workerBusy, .superseded: true
        default: false
        }
    }

    /// Prints a sentence above the progress, or below everything if the run has ended.
    func say(_ line: String) {
        guard case .terminated = continuation.yield(.line(line)) else { return }
        output.write(Array((TerminalText.line(line) + "\n").utf8))
    }

    /// Prints lines above the progress. Untrusted text must go through `TerminalText` first.
    func show(_ lines: [String]) { continuation.yield(.lines(lines)) }

    /// Removes the progress from the screen. Returns when that is done.
    func pause() async {
        let isPaused = Latch()
        continuation.yield(.pause(isPaused))
        await isPaused.wait()
    }

    /// Prints the beginning of a line that somebody completes; only while the screen is paused.
    func ask(_ prompt: String) { continuation.yield(.ask(prompt)) }

    /// Nobody needs to complete the line any more: what comes is printed below it.
    func withdrawPrompt() { continuation.yield(.withdrawPrompt) }

    /// - Parameter isAnswered: Whether somebody has ended the line of the prompt.
    func resume(isAnswered: Bool) { continuation.yield(.resume(isAnswered: isAnswered)) }

    /// Called once workers can be there to run operations.
    func connected() { continuation.yield(.connected) }

    /// The state of the graph that this run begins with; empty: the run starts anew.
    ///
    /// - Parameter wasCancelled: Whether it was cancelled before. What has not succeeded until now
    ///   runs again, so earlier notices of operations are not shown.
    func restored(_ operations: [OperationProgress], wasCancelled: Bool) {
        continuation.yield(.restored(operations, wasCancelled: wasCancelled))
    }

    /// Prints lines at the end, after the last draw.
    func print(_ lines: [String]) {
        output.write(Array(lines.map { $0 + "\n" }.joined().utf8))
    }

    /// Returns when everything is read, or when the task is cancelled.
    func flush() async { await output.flush() }

    /// Draws until `finish`. While nothing happens, it asks `coordinator` why operations wait.
    func run(asking coordinator: CoordinatorService) async {
        let graph = graph.submitted
        let group = await display.addGroup(name: graph.description.name)
        var state = ScreenState(graph: graph, folds: folds)
        var stall = RunStall(graph: graph, place: place, canAsk: canAsk)
        await display.operationsAdded(
            graph.compiled.topology.operationCount,
            to: group,
            work: state.work.reduce(0, +)
        )
        await addRepeated(&state)
        // Notices that arrived before the restored state was known.
        var early: [(notices: [Scheduler.Notice], at: Timestamp)] = []
        var isTakenUp = !resumes
        await withTaskGroup(of: Void.self) { tasks in
            tasks.addTask { await self.tick() }
            for await item in inbox {
                switch item {
                case .notices(let notices, let now):
                    guard isTakenUp else {
                        early.append((notices, now))
                        continue
                    }
                    await show(notices, group: group, state: &state, at: now)
                case .line(let line):
                    await display.print([TerminalText.line(line)], at: SystemClock.now())
                case .lines(let lines): await display.print(lines, at: SystemClock.now())
                case .pause(let isPaused):
                    await display.pause()
                    isPaused.open()
                case .ask(let prompt): await display.ask(prompt)
                case .withdrawPrompt: await display.withdrawPrompt()
                case .resume(let isAnswered):
                    await display.resume(isAnswered: isAnswered, at: SystemClock.now())
                case .connected:
                    await remark(stall.began(at: SystemClock.now()))
                case .restored(let operations, let wasCancelled):
                    await takeUp(operations, group: group, state: &state)
                    isTakenUp = true
                    for item in early {
                        let notices =
                            wasCancelled ? item.notices.filter(Self.isOfWorker) : item.notices
                        await show(notices, group: group, state: &state, at: item.at)
                    }
                    early = []
                case .tick:
                    isTicking.withLock { $0 = false }
                    let now = SystemClock.now()
                    await explain(&stall, state, asking: coordinator, at: now)
                    await display.tick(at: now)
                case .end:
                    await display.finish(at: SystemClock.now())
                    done.open()
                    tasks.cancelAll()
                    return
                }
            }
            // The run was given up: the screen is left clean.
            await display.finish(at: SystemClock.now())
            done.open()
        }
    }

    private func takeUp(
        _ operations: [OperationProgress],
        group: Int,
        state: inout ScreenState
    ) async {
        guard !operations.isEmpty else { return }
        let now = SystemClock.now()
        await grow(&state, group)
        let moves = state.restore(operations, at: now)
        await display.operationsMoved(moves, in: group, at: now, areNews: false)
        await remark([Self.resumption(operations)])
    }

    /// Counts the operations that running operations added.
    private func grow(_ state: inout ScreenState, _ group: Int) async {
        let work = state.grow(to: graph.operations)
        await display.operationsAdded(work.count, to: group, work: work.reduce(0, +))
        await addRepeated(&state)
    }

    private func addRepeated(_ state: inout ScreenState) async {
        for found in state.findRepeated() {
            switch found {
            case .operation(let name): _ = await display.addRepeated(name: name)
            case .elements(let number, let count, let work):
                await display.elementsAdded(count, to: number, work: work)
            }
        }
    }

    private static func resumption(_ operations: [OperationProgress]) -> String {
        let done = operations.count { $0.outcome == .succeeded }
        let count = operations.count
        return "Continuing the stored run: \(done) of \(count) operations have succeeded."
    }

    private func explain(
        _ stall: inout RunStall,
        _ state: ScreenState,
        asking coordinator: CoordinatorService,
        at now: Timestamp
    ) async {
        let subjects = stall.subjects(of: graph.id, state, at: now)
        guard !subjects.isEmpty, !isQuiet else { return }
        let reasons = await coordinator.query { scheduler in
            subjects.map { scheduler.explain($0) }
        }
        await remark(stall.sentences(reasons, about: subjects, state, at: now))
    }

    private func remark(_ sentences: [String?]) async {
        let lines = sentences.compactMap(\.self).map { style.spelled(TerminalText.line($0)) }
        guard !lines.isEmpty, !isQuiet else { return }
        await display.print(lines, at: SystemClock.now())
    }

    /// Updates the display regularly, because elapsed times change without events.
    private func tick() async {
        while !Task.isCancelled {
            do { try await Task.sleep(for: .milliseconds(200)) } catch { return }
            // Only one tick is queued at a time, so that ticks do not pile up while the terminal is
            // blocked.
            let isFirst = isTicking.withLock { isTicking in
                defer { isTicking = true }
                return !isTicking
            }
            if isFirst { continuation.yield(.tick) }
        }
    }

    /// Returns when all earlier notices are shown; nothing is drawn afterwards.
    func finish() async {
        continuation.yield(.end)
        continuation.finish()
        await done.wait()
    }

    /// Attempts that have ended already, so that their starts are not shown.
    private static func endedAttempts(_ notices: [Scheduler.Notice]) -> Set<AttemptID> {
        var ended: Set<AttemptID> = []
        for case .attemptEnded(_, let attempt, _, _, _) in notices { ended.insert(attempt) }
        return ended
    }

    /// Puts operations that are skipped one after the other into the order of the graph. The
    /// scheduler follows dependencies, not the order of the file.
    private static func inOrder(_ notices: [Scheduler.Notice]) -> [Scheduler.Notice] {
        func skipped(_ notice: Scheduler.Notice) -> OperationID? {
            if case .finished(let operation, .skipped) = notice { operation } else { nil }
        }
        var ordered: [Scheduler.Notice] = []
        ordered.reserveCapacity(notices.count)
        var together: [(operation: OperationID, notice: Scheduler.Notice)] = []
        for notice in notices {
            if let operation = skipped(notice) {
                together.append((operation, notice))
                continue
            }
            ordered += together.sorted { $0.operation < $1.operation }.map(\.notice)
            together.removeAll()
            ordered.append(notice)
        }
        return ordered + together.sorted { $0.operation < $1.operation }.map(\.notice)
    }

    private func show(
        _ notices: [Scheduler.Notice],
        group: Int,
        state: inout ScreenState,
        at now: Timestamp
    ) async {
        let ended = Self.endedAttempts(notices)
        var moves: [ProgressDisplay.Move] = []
        for notice in Self.inOrder(notices) {
            let line: String
            switch notice {
            case .workerLost(let worker):
                let hasLeft = state.lost(worker, at: now)
                // Only a previous run knew this worker. Without a broker, the worker was a part of
                // that run.
                if worker.name.isEmpty, place == .thisProcess { continue }
                let name =
                    worker.name.isEmpty
                    ? "A worker of the previous run" : "Worker \(TerminalText.line(worker.name))"
                line = hasLeft ? "\(name) has left." : "\(name) is gone."
            case .workerDraining(let worker, _):
                state.drains(worker, at: now)
                line = "Worker \(TerminalText.line(worker.name)) is draining."
            case .workerJoined(let worker, _, _):
                guard state.joined(worker, at: now) else { continue }
                line = "Worker \(TerminalText.line(worker.name)) is back."
            case .workerBusy(let worker, _):
                guard state.isBusy(worker) else { continue }
                let name = TerminalText.line(worker.name)
                line = "Worker \(name) still holds operations of another run."
            case .operationsAdded:
                await display.operationsMoved(moves, in: group, at: now)
                moves.removeAll()
                await grow(&state, group)
                continue
            case .rangeFinished(let operations, let outcome):
                moves += operations.compactMap { state.move(.finished($0, outcome), at: now) }
                continue
            case .retry(let operation, let time):
                if let move = state.move(notice, at: now) { moves.append(move) }
                guard let attempt = state.retry(operation, at: time, now: now) else { continue }
                await display.operationsMoved(moves, in: group, at: now)
                moves.removeAll()
                let name = state.operations[Int(operation.index)].name
                await display.retried(name, attempt, in: group, at: now)
                continue
            case .started(_, let attempt, _) where ended.contains(attempt): continue
            case .ready, .granted, .started, .resumed, .yielded, .waitEnded, .attemptEnded, .result,
                .finished, .graphFinished, .graphClosedIdle, .superseded, .eventRefused,
                .log, .progress, .watched:
                if let move = state.move(notice, at: now) { moves.append(move) }
                continue
            }
            await display.operationsMoved(moves, in: group, at: now)
            moves.removeAll()
            await display.print([line], at: now)
        }
        if !moves.isEmpty { await display.operationsMoved(moves, in: group, at: now) }
    }
}
