import ArgumentParser
import OperonArguments
import OperonModel
import OperonPorts
import OperonRuntime
import OperonTerminal

/// Shows the progress of a graph, until the graph ends or Ctrl-C detaches: on a terminal from
/// counts, on a pipe from events.
struct Watching: Sendable {
    private let session: ClientSession
    private let output: FileOutput
    private let style: TerminalStyle
    private let folds: Bool

    private static let pageSize = 500

    /// - Parameter folds: whether the elements of repeated operations are shown together.
    init(_ session: ClientSession, output: FileOutput, folds: Bool = true) {
        self.session = session
        self.folds = folds
        self.output = output
        style = TerminalStyle(environment: Environment.current, isTerminal: output.isTerminal)
    }

    /// The exit code of the graph; 0 after detaching.
    func run(_ selector: String) async throws -> Int32 {
        let graph = try await session.client.graph(selector)
        let sentence = session.console.speech.detached(graph)
        return try await Detaching.run(session.console, saying: { [sentence] }) {
            let ended = try await follow(graph)
            return ended.exitCode ?? ExitStatus.success
        }
    }

    private func follow(_ graph: GraphView) async throws -> GraphView {
        // What only shows a run must not take processors from it.
        OwnProcess.giveWay()
        let id = String(graph.id)
        switch session.console.format {
        case .text:
            session.news.hold()
            let printer = LinePrinter(output: output, style: style)
            let ended =
                printer.overprints
                ? try await drawCounts(of: graph, printer)
                : try await listChanges(of: graph, printer)
            try await conclude(ended)
            return ended
        case .json:
            try await followEvents(of: id)
            return try await session.patiently { try await session.client.graph(id) }
        case .quiet: return try await Waiting(session).end(of: id)
        }
    }

    // MARK: - On a terminal

    /// Shows the counts that the coordinator sends at a pace. Each replaces the one before, so a
    /// lost connection loses nothing.
    private func drawCounts(
        of graph: GraphView,
        _ printer: LinePrinter
    ) async throws -> GraphView {
        // What goes wrong from here on is told, however late the stream of it opens.
        let start = try await session.patiently { try await session.client.status() }.lastEvent
        let display = Self.display(of: graph, printer)
        let group = await display.addGroup(name: graph.name)
        let known = GraphProgressView(graph: graph, repeated: [])
        await display.counted(known, in: group, at: SystemClock.now(), SystemClock.wall())
        async let _: Void = display.tick(telling: session.news)
        let troubles = Troubles(session, graph.id, display, in: group)
        async let _: Void = troubles.tell(after: start)
        for try await progress in try await session.client.progress(of: String(graph.id)) {
            var view = progress.view
            if !folds { view.repeated = [] }
            await display.counted(view, in: group, at: SystemClock.now(), SystemClock.wall())
            guard view.graph.status.isFinished else { continue }
            // The first counts may be from before a retry, if others watch the graph, too.
            let id = String(graph.id)
            let ended = try await session.patiently { try await session.client.graph(id) }
            guard ended.status.isFinished else { continue }
            // Of a graph that had ended before, no end comes.
            if !graph.status.isFinished { await troubles.waitForEnd() }
            await finish(display)
            return ended
        }
        try Task.checkCancellation()
        throw ClientError(.unreachable, "The coordinator ended the stream of counts.")
    }

    /// A display that counts the time since the graph was submitted.
    private static func display(of graph: GraphView, _ printer: LinePrinter) -> ProgressDisplay {
        let age = max(.zero, SystemClock.wall() - graph.submittedAt.time)
        return ProgressDisplay(printer: printer, startedAt: SystemClock.now() - age)
    }

    /// Shows the end, after the news that came just before it.
    private func finish(_ display: ProgressDisplay) async {
        let sentences = session.news.take()
        if !sentences.isEmpty { await display.print(sentences, at: SystemClock.now()) }
        await display.finish(at: SystemClock.now())
    }

    // MARK: - On a pipe

    /// Prints a line for each change.
    private func listChanges(
        of graph: GraphView,
        _ printer: LinePrinter
    ) async throws -> GraphView {
        let display = Self.display(of: graph, printer)
        let screen = WatchScreen(graph, display, folds: folds)
        async let _: Void = display.tick(telling: session.news)
        let troubles = Troubles(session, graph.id, display, in: await screen.groupIndex())
        let id = String(graph.id)
        try await Following(session).run(graph: id) {
            // If the graph has not ended yet, an event will report its end.
            let isOver = try await hasEnded(id)
            try await list(id, screen)
            return isOver
        } _: { item in
            switch item {
            case .event(var event) where event.kind.known != .rangeFinished:
                if event.outcome == .skipped, let operation = event.operation {
                    event.reason = await troubles.cause(of: operation)
                }
                let mayEnd = await screen.happened(event)
                if event.kind.known == .retry, let operation = event.operation {
                    await troubles.tellRetry(of: operation, decidedAt: event.at)
                }
                return mayEnd ? try await hasEnded(id) : false
            // It names only the first operation.
            case .event(let event):
                if let first = event.operation?.index, let count = event.count, count > 0 {
                    try await list(id, screen, from: first, count: Int(count))
                }
                return try await hasEnded(id)
            case .gap:
                let isOver = try await hasEnded(id)
                try await list(id, screen)
                return isOver
            }
        }
        await finish(display)
        return try await session.patiently { try await session.client.graph(id) }
    }

    /// Prints each event as JSON, and nothing else.
    private func followEvents(of graph: String) async throws {
        try await Following(session).run(graph: graph) {
            try await hasEnded(graph)
        } _: { item in
            guard case .event(let event) = item else { return try await hasEnded(graph) }
            try session.console.writeJSON(event)
            let mayEnd = event.kind.known?.mayEndGraph == true
            return mayEnd ? try await hasEnded(graph) : false
        }
    }

    /// Reads the states of all operations, or of some from one of them on.
    private func list(
        _ graph: String,
        _ screen: WatchScreen,
        from first: UInt32 = 0,
        count: Int = .max
    ) async throws {
        var query = OperationQuery()
        query.after = first > 0 ? first - 1 : nil
        var left = count
        repeat {
            query.limit = min(Self.pageSize, left)
            let asked = query
            let page = try await session.patiently {
                try await session.client.operations(of: graph, asked)
            }
            await screen.listed(page.operations)
            left -= page.operations.count
            query.after = page.next
        } while query.after != nil && left > 0
    }

    /// Whether the graph is finished and cannot change until it is retried.
    private func hasEnded(_ graph: String) async throws -> Bool {
        try await session.patiently { try await session.client.graph(graph) }.status.isFinished
    }

    // MARK: - At the end

    private func conclude(_ graph: GraphView) async throws {
        let text = ViewText(style: style, width: output.size()?.columns)
        let failed = try await session.failures(of: graph, on: output)
        let lines = text.failures(failed, of: graph.counts.failed) + text.ended(graph)
        output.write(Array(lines.map { $0 + "\n" }.joined().utf8))
    }
}

extension ClientSession {
    /// The most operations that one answer has.
    private static let pageMax = 500
    private static let failuresMin = 20

    /// The first operations of a graph that failed: on a terminal a screenful, elsewhere 20.
    func failures(of graph: GraphView, on output: FileOutput) async throws -> [OperationView] {
        guard graph.counts.failed > 0 else { return [] }
        return try await patiently {
            var query = OperationQuery()
            query.outcome = .failed
            query.limit = Self.failuresMin
            if let rows = output.size()?.rows {
                // Below them are up to five lines: of the rest, of the graph, and what to do next.
                query.limit = min(max(query.limit, rows - 6), Self.pageMax)
            }
            return try await client.operations(of: String(graph.id), query).operations
        }
    }
}

extension ProgressDisplay {
    /// Updates the display regularly, because elapsed times change without news of the graph.
    fileprivate func tick(telling news: LinkNews) async {
        while !Task.isCancelled {
            do { try await Task.sleep(for: .milliseconds(200)) } catch { return }
            let sentences = news.take()
            if !sentences.isEmpty { print(sentences, at: SystemClock.now()) }
            tick(at: SystemClock.now())
        }
    }
}

/// Shows the progress of one graph where each change has a line.
actor WatchScreen {
    private let display: ProgressDisplay
    private var progress = GraphProgress()
    private let name: String
    private var group: Int?
    private let folds: Bool
    private var folding = ElementFolding()
    /// The number of the repeated operation of which each listed operation is an element.
    private var repeated: [Int?] = []
    /// The same for operations that were added since. Only looked up.
    private var added: [Int: Int] = [:]

    init(_ graph: GraphView, _ display: ProgressDisplay, folds: Bool) {
        name = graph.name
        self.display = display
        self.folds = folds
    }

    /// The number of the graph in the display.
    func groupIndex() async -> Int {
        if let group { return group }
        let index = await display.addGroup(name: name)
        group = index
        return index
    }

    func listed(_ operations: [OperationView]) async {
        let changes = operations.compactMap { progress.listed($0) }
        await show(changes, areNews: false)
        guard folds else { return }
        for operation in operations where Int(operation.index) == repeated.count {
            let index = repeated.count
            repeated.append(nil)
            switch folding.add(operation.name, kind: operation.kind) {
            case nil: continue
            case .element(let number):
                repeated[index] = number
                guard added[index] == nil, let phase = progress.phase(of: operation.index) else {
                    continue
                }
                await display.elementsAdded(1, to: number, in: phase, work: 1)
            case .group(let number): await addRepeated(folding.groups[number])
            }
        }
    }

    /// The number of the repeated operation to which a known operation belongs.
    private func number(of change: GraphProgress.Change) -> Int? {
        change.index < repeated.count ? repeated[change.index] : added[change.index]
    }

    /// Counts an operation that was added just now, if it is an element of a repeated operation.
    /// Returns the number of that one.
    private func addElement(
        _ change: GraphProgress.Change,
        in phase: ProgressPhase
    ) async -> Int? {
        guard folds, change.old == nil, change.index >= repeated.count,
            let number = folding.group(ofAdded: change.name)
        else { return nil }
        added[change.index] = number
        await display.elementsAdded(1, to: number, in: phase, work: 1)
        return number
    }

    /// From here on the elements are shown together. Their phases are known from the list.
    private func addRepeated(_ group: ElementFolding.Group) async {
        let number = await display.addRepeated(name: group.title)
        var counts: [ProgressPhase: Int] = [:]
        for index in group.elements {
            repeated[index] = number
            guard let phase = progress.phase(of: UInt32(index)) else { continue }
            counts[phase, default: 0] += 1
        }
        for phase in ProgressPhase.allCases {
            guard let count = counts[phase] else { continue }
            await display.elementsAdded(count, to: number, in: phase, work: Double(count))
        }
    }

    /// Shows an event. Returns whether the graph may have ended by it.
    func happened(_ event: EventView) async -> Bool {
        if let change = progress.apply(event) {
            await show([change], areNews: true)
            return change.new.isFinished && progress.unfinishedCount == 0
        }
        return event.kind.known?.mayEndGraph == true
    }

    /// Shows changes. An operation that was unknown is counted in the phase in which it was listed,
    /// or as pending if an event reported it.
    private func show(_ changes: [GraphProgress.Change], areNews: Bool) async {
        let group = await groupIndex()
        var moves: [ProgressDisplay.Move] = []
        var added: [ProgressPhase: Int] = [:]
        for change in changes {
            let begin = change.old ?? (areNews ? .pending : change.new)
            if change.old == nil { added[begin, default: 0] += 1 }
            var number = self.number(of: change)
            if number == nil, areNews { number = await addElement(change, in: begin) }
            guard begin != change.new else { continue }
            moves.append(
                ProgressDisplay.Move(
                    change.name,
                    from: begin,
                    to: change.new,
                    work: 1,
                    detail: change.detail,
                    repeated: number
                )
            )
        }
        for phase in ProgressPhase.allCases {
            guard let count = added[phase] else { continue }
            await display.operationsAdded(count, to: group, in: phase, work: Double(count))
        }
        await display.operationsMoved(moves, in: group, at: SystemClock.now())
    }
}
