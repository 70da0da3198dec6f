import ArgumentParser
import OperonArguments
import OperonModel
import OperonPorts
import OperonRuntime
import OperonTerminal
import Synchronization
import UnixSignals

/// Draws `operon top` until somebody quits. It asks the coordinator at each interval, so what is
/// lost on the way is shown at the next one; what runs comes by streams.
struct TopSession {
    private let session: ClientSession
    private let interval: Duration
    private let output = FileOutput.standardOutput
    private let style: TerminalStyle

    /// The most unfinished graphs that are listed; more fill no screen.
    private static let graphsMax = 100
    /// The graphs whose running operations are named: each has a stream, and a client has eight
    /// connections.
    private static let namedGraphsMax = 8
    /// The unfinished operations of a graph in each state that are listed.
    private static let operationsMax = 500

    private enum Event: Sendable {
        /// Something new is in the inbox.
        case changed
        case typed([UInt8])
        /// A signal, or the end of standard input.
        case end(Int32)
    }

    /// What somebody asked for with a key.
    private enum Answer: Sendable {
        case operations([OperationView], of: UInt32)
        case text([String], about: TopScreen.Row)
        case sentence(String)
    }

    /// What came since the screen was drawn: of each kind the latest, however slow the terminal is.
    private struct News: Sendable {
        var snapshot: ClusterSnapshot?
        var running: [ClusterSnapshot.Running]?
        var page: (graph: UInt32, operations: [OperationView])?
        var text: (about: TopScreen.Row, lines: [String])?
        /// What is open is not there any more, for this reason.
        var gone: (row: TopScreen.Row, why: String)?
        /// An update failed; the next one may not.
        var missed: String?
        /// The number of the question, and the answer.
        var answer: (question: Int, Answer)?
    }

    private struct Open: Sendable {
        /// The graph whose operations are shown.
        var graph: UInt32?
        /// What the shown text is about.
        var text: TopScreen.Row?
    }

    private final class Inbox: Sendable {
        private let events: AsyncStream<Event>.Continuation
        private let news = Mutex<News?>(nil)
        /// What is shown, and so is asked for again.
        let open = Mutex(Open())

        init(_ events: AsyncStream<Event>.Continuation) { self.events = events }

        func put(_ change: (inout News) -> Void) {
            let isFirst = news.withLock { news in
                let isFirst = news == nil
                var all = news ?? News()
                change(&all)
                news = all
                return isFirst
            }
            if isFirst { events.yield(.changed) }
        }

        func take() -> News {
            news.withLock { news in
                defer { news = nil }
                return news ?? News()
            }
        }
    }

    init(_ session: ClientSession, interval: Duration) {
        self.session = session
        self.interval = interval
        style = TerminalStyle(environment: Environment.current, isTerminal: true)
    }

    func run() async throws {
        guard style.overprints else {
            throw Failure(ExitStatus.usage, "operon top needs a terminal that can be overprinted.")
        }
        // Whoever is not there is told of before the screen is taken.
        _ = try await session.client.status()
        guard let input = TerminalInput() else {
            throw Failure(ExitStatus.usage, "operon top needs a terminal as its standard input.")
        }
        session.news.hold()
        // The alternate screen, without a cursor.
        output.write(Array("\u{1B}[?1049h\u{1B}[?25l".utf8))
        defer {
            output.write(Array("\u{1B}[?25h\u{1B}[?1049l".utf8))
            input.restore()
        }
        let code = await follow(input)
        if code != ExitStatus.success { throw ExitCode(code) }
    }

    /// Nothing here waits for the coordinator, so keys and signals count at once.
    private func follow(_ input: TerminalInput) async -> Int32 {
        let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm, .sigquit, .sigwinch)
        let (events, continuation) = AsyncStream.makeStream(of: Event.self)
        let inbox = Inbox(continuation)
        return await withDiscardingTaskGroup { group in
            group.addTask { await poll(inbox) }
            group.addTask {
                for await piece in input.pieces { continuation.yield(.typed(piece)) }
                continuation.yield(.end(ExitStatus.success))
            }
            group.addTask {
                for await signal in signals {
                    switch signal {
                    case .sigwinch: continuation.yield(.typed([]))
                    case .sigint: continuation.yield(.end(ExitStatus.success))
                    default: continuation.yield(.end(ExitStatus.terminated))
                    }
                }
            }
            defer { group.cancelAll() }
            var screen = TopScreen(style)
            var asking = Asking()
            defer { asking.stop() }
            draw(screen)
            for await event in events {
                switch event {
                case .end(let code): return code
                case .changed: show(inbox.take(), asking.number, on: &screen)
                case .typed(let bytes):
                    for key in TerminalKey.keys(in: bytes) {
                        let action = screen.pressed(key, size)
                        // Whoever goes back, or asks for something else, wants no answer any more.
                        if action != nil || key == .escape || key == .left { asking.stop() }
                        guard let action else { continue }
                        if action == .quit {
                            await asking.waitForEffect()
                            return ExitStatus.success
                        }
                        screen.say("Asking the coordinator…")
                        asking.start(action) { number in
                            let answer = await answer(action)
                            inbox.put { $0.answer = (number, answer) }
                        }
                    }
                }
                let open = Open(graph: screen.openGraph, text: screen.openText)
                inbox.open.withLock { $0 = open }
                draw(screen)
            }
            return ExitStatus.success
        }
    }

    /// The question that somebody waits for: one at a time. What changes something is carried out,
    /// whatever is asked after it.
    private struct Asking {
        private(set) var number = 0
        private var task: Task<Void, Never>?
        /// Opened when the last change was answered.
        private var effect: Latch?

        mutating func stop() {
            task?.cancel()
            task = nil
            number += 1
        }

        mutating func start(
            _ action: TopScreen.Action,
            _ ask: @escaping @Sendable (Int) async -> Void
        ) {
            let number = number
            guard case .cancel = action else {
                task = Task { await ask(number) }
                return
            }
            let answered = Latch()
            effect = answered
            Task {
                await ask(number)
                answered.open()
            }
        }

        /// Whoever quits does not lose the change before it; who does not answer by then does not
        /// keep the terminal.
        func waitForEffect() async { await effect?.wait(within: .seconds(2)) }
    }

    private func show(_ news: News, _ question: Int, on screen: inout TopScreen) {
        if let snapshot = news.snapshot { screen.show(snapshot) }
        if let running = news.running { screen.show(running) }
        if let (graph, operations) = news.page, screen.openGraph == graph {
            screen.show(operations, of: graph)
        }
        if let (row, lines) = news.text, screen.openText == row { screen.show(lines, about: row) }
        if let (row, why) = news.gone { screen.close(row, why) }
        if let missed = news.missed { screen.miss(missed) }
        guard let (number, answer) = news.answer, number == question else { return }
        screen.say("")
        switch answer {
        case .operations(let operations, let graph): screen.show(operations, of: graph)
        case .text(let lines, let row): screen.show(lines, about: row)
        case .sentence(let sentence): screen.say(sentence)
        }
    }

    private var size: TerminalSize { output.size() ?? TerminalSize(columns: 80, rows: 24) }

    private func draw(_ screen: TopScreen) {
        // One write, so that no line is torn.
        let lines = screen.lines(size).map { $0 + "\u{1B}[K" }.joined(separator: "\n")
        output.write(Array("\u{1B}[H\(lines)\u{1B}[J".utf8))
    }

    // MARK: - Asking

    /// Asks again when the answer has come and the interval has passed, so that a slow coordinator
    /// is not asked more often than it answers.
    private func poll(_ inbox: Inbox) async {
        let running = RunningFollower(session.client) { running in
            inbox.put { $0.running = running }
        }
        defer { running.stop() }
        while !Task.isCancelled {
            do throws(ClientError) {
                let snapshot = try await snapshot(running)
                inbox.put { $0.snapshot = snapshot }
                let open = inbox.open.withLock { $0 }
                if let graph = open.graph { try await update(graph, inbox) }
                if let row = open.text { try await update(row, inbox) }
            } catch {
                inbox.put { $0.missed = error.message }
            }
            // The screen has a sentence of its own for a lost connection.
            _ = session.news.take()
            try? await Task.sleep(for: interval)
        }
    }

    private func update(_ graph: UInt32, _ inbox: Inbox) async throws(ClientError) {
        do throws(ClientError) {
            let operations = try await unfinished(in: graph)
            inbox.put { $0.page = (graph, operations) }
        } catch {
            guard error.code == .notFound else { throw error }
            inbox.put { $0.gone = (.graph(graph), error.message) }
        }
    }

    private func update(_ row: TopScreen.Row, _ inbox: Inbox) async throws(ClientError) {
        do throws(ClientError) {
            let lines = try await text(about: row)
            inbox.put { $0.text = (row, lines) }
        } catch {
            guard error.code == .notFound else { throw error }
            inbox.put { $0.gone = (row, error.message) }
        }
    }

    private func snapshot(
        _ running: RunningFollower
    ) async throws(ClientError) -> ClusterSnapshot {
        let cluster = try await session.client.status()
        // A graph may get another status between two requests.
        var graphs: [UInt32: GraphView] = [:]
        for status in GraphStatus.allCases where !status.isFinished {
            var query = GraphQuery()
            query.status = status
            query.limit = Self.graphsMax
            for graph in try await session.client.graphs(query).graphs { graphs[graph.id] = graph }
        }
        let newest = graphs.values.sorted { $0.id > $1.id }.prefix(Self.graphsMax)
        let executing = newest.filter { $0.counts.executing > 0 }.prefix(Self.namedGraphsMax)
        running.follow(executing.map(\.id))
        return ClusterSnapshot(
            cluster: cluster,
            graphs: Array(newest),
            running: running.operations,
            now: cluster.now.time
        )
    }

    /// What runs first, then what could, then what waits.
    private func unfinished(in graph: UInt32) async throws(ClientError) -> [OperationView] {
        var operations: [OperationView] = []
        for state in [OperationState.executing, .dispatched, .ready, .pending] {
            var query = OperationQuery()
            query.state = state
            query.limit = Self.operationsMax
            operations += try await session.client.operations(of: String(graph), query).operations
        }
        return operations
    }

    // MARK: - Keys

    private func answer(_ action: TopScreen.Action) async -> Answer {
        do throws(ClientError) {
            return try await perform(action)
        } catch {
            return .sentence(error.message)
        }
    }

    private func perform(_ action: TopScreen.Action) async throws(ClientError) -> Answer {
        switch action {
        case .quit: return .sentence("")
        case .open(let graph): return .operations(try await unfinished(in: graph), of: graph)
        case .explain(let row): return .text(try await text(about: row), about: row)
        case .cancel(let row):
            let target: TargetSelector =
                switch row {
                case .graph(let graph): .graph(String(graph))
                case .operation(let graph, let name):
                    .operation(OperationSelector(graph: String(graph), operation: name))
                }
            var request = CancelRequest()
            request.reason = "operon top"
            _ = try await session.client.cancel(target, request)
            return .sentence("\(row.selector) is being cancelled.")
        }
    }

    private func text(about row: TopScreen.Row) async throws(ClientError) -> [String] {
        // The screen breaks its lines, and cannot do that within a colour.
        let plain = TerminalStyle(
            overprints: false,
            hasColor: false,
            hasUnicode: style.hasUnicode
        )
        let text = ViewText(style: plain, width: nil)
        switch row {
        case .graph(let graph): return text.graph(try await session.client.graph(String(graph)))
        case .operation(let graph, let name):
            let operation = OperationSelector(graph: String(graph), operation: name)
            return text.explanation(try await session.client.explain(operation))
        }
    }
}

/// Follows which operations of some graphs run: one stream for each graph.
private final class RunningFollower: Sendable {
    private struct State {
        var tasks: [UInt32: Task<Void, Never>] = [:]
        var running: [UInt32: [RunningOperationView]] = [:]
    }

    private let client: any CoordinatorClient
    private let changed: @Sendable ([ClusterSnapshot.Running]) -> Void
    private let state = Mutex(State())

    init(
        _ client: any CoordinatorClient,
        changed: @escaping @Sendable ([ClusterSnapshot.Running]) -> Void
    ) {
        self.client = client
        self.changed = changed
    }

    var operations: [ClusterSnapshot.Running] {
        state.withLock { state in
            state.running.sorted { $0.key < $1.key }.flatMap { graph, operations in
                operations.map {
                    ClusterSnapshot.Running(
                        graph: graph,
                        name: $0.name,
                        startedAt: $0.startedAt.time,
                        isExternal: $0.isExternal == true
                    )
                }
            }
        }
    }

    /// Follows these graphs and no others. A stream that ended is opened again.
    func follow(_ graphs: [UInt32]) {
        state.withLock { state in
            for (graph, task) in state.tasks where !graphs.contains(graph) {
                task.cancel()
                state.tasks[graph] = nil
                state.running[graph] = nil
            }
            for graph in graphs where state.tasks[graph] == nil {
                state.tasks[graph] = Task { [weak self] in await self?.read(graph) }
            }
        }
    }

    func stop() { follow([]) }

    private func read(_ graph: UInt32) async {
        do {
            for try await progress in try await client.progress(of: String(graph)) {
                try Task.checkCancellation()
                let running = progress.view.running ?? []
                let isNew = state.withLock { state in
                    guard state.tasks[graph] != nil, state.running[graph] != running else {
                        return false
                    }
                    state.running[graph] = running
                    return true
                }
                if isNew { changed(operations) }
            }
        } catch {
            // The next update says whether the coordinator answers.
        }
        if !Task.isCancelled { state.withLock { $0.tasks[graph] = nil } }
    }
}
