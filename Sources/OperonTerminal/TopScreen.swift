package import OperonModel

/// What `operon top` shows of a cluster.
package struct ClusterSnapshot: Sendable {
    package struct Running: Hashable, Sendable {
        package var graph: UInt32
        package var name: String
        package var startedAt: WallTime
        /// Whether somebody completes it.
        package var isExternal: Bool

        package init(graph: UInt32, name: String, startedAt: WallTime, isExternal: Bool = false) {
            (self.graph, self.name, self.startedAt) = (graph, name, startedAt)
            self.isExternal = isExternal
        }
    }

    package var cluster: ClusterView
    /// The graphs that have not finished, in the order of the list.
    package var graphs: [GraphView]
    /// Operations that run, in any order.
    package var running: [Running]
    package var now: WallTime

    package init(
        cluster: ClusterView,
        graphs: [GraphView],
        running: [Running],
        now: WallTime
    ) {
        (self.cluster, self.graphs, self.running, self.now) = (cluster, graphs, running, now)
    }
}

/// The screen of `operon top`: what is shown, what is chosen, and what a key means. It reads and
/// writes nothing itself.
package struct TopScreen: Sendable {
    /// What a key asks for.
    package enum Action: Hashable, Sendable {
        case quit
        /// Show the operations of a graph.
        case open(UInt32)
        case explain(Row)
        case cancel(Row)
    }

    /// Something that can be chosen.
    package enum Row: Hashable, Sendable {
        case graph(UInt32)
        case operation(graph: UInt32, name: String)

        /// As commands take it.
        package var selector: String {
            switch self {
            case .graph(let graph): String(graph)
            case .operation(let graph, let name): "\(graph)/\(name)"
            }
        }
    }

    private enum Page {
        case overview
        /// The unfinished operations of a graph.
        case operations(of: UInt32, [OperationView])
        case text(about: Row, [String])
    }

    private struct Choice {
        var row: Row
        /// Its place among the rows, for when it has ended.
        var place: Int
    }

    private let style: TerminalStyle
    private var snapshot: ClusterSnapshot?
    /// The pages below the shown one, and that one.
    private var pages: [Page] = [.overview]
    /// What is chosen on each of these pages.
    private var choices: [Choice?] = [nil]
    /// The first line of a text that is shown.
    private var scroll = 0
    private var asked: Row?
    private var message = ""
    /// Why what is shown is not new; empty: it is.
    private var missed = ""

    package init(_ style: TerminalStyle) { self.style = style }

    /// The graph whose operations are shown; `nil`: none.
    package var openGraph: UInt32? {
        if case .operations(let graph, _)? = pages.last { graph } else { nil }
    }

    /// What the shown text is about; `nil`: no text is shown.
    package var openText: Row? {
        if case .text(let row, _)? = pages.last { row } else { nil }
    }

    // MARK: - What is shown

    package mutating func show(_ snapshot: ClusterSnapshot) {
        self.snapshot = snapshot
        missed = ""
        keepChoice()
    }

    /// An update failed: what is shown stays, with the reason in the last line.
    package mutating func miss(_ why: String) { missed = why }

    /// Updates what runs.
    package mutating func show(_ running: [ClusterSnapshot.Running]) {
        snapshot?.running = running
        keepChoice()
    }

    /// Shows or updates the page of a graph.
    package mutating func show(_ operations: [OperationView], of graph: UInt32) {
        if openGraph == graph {
            pages[pages.count - 1] = .operations(of: graph, operations)
        } else {
            push(.operations(of: graph, operations))
        }
        keepChoice()
    }

    /// Shows or updates a text about a graph or an operation.
    package mutating func show(_ lines: [String], about row: Row) {
        if openText == row {
            pages[pages.count - 1] = .text(about: row, lines)
        } else {
            push(.text(about: row, lines))
            scroll = 0
        }
    }

    /// The graph whose operations are shown, or what the shown text is about, is not there any
    /// more.
    package mutating func close(_ row: Row, _ why: String) {
        guard openText == row || openGraph.map({ .graph($0) == row }) == true else { return }
        pop()
        message = why
    }

    private mutating func push(_ page: Page) {
        pages.append(page)
        choices.append(nil)
    }

    private mutating func pop() {
        guard pages.count > 1 else { return }
        pages.removeLast()
        choices.removeLast()
        keepChoice()
    }

    /// A sentence in the last line, until the next key.
    package mutating func say(_ sentence: String) { message = sentence }

    /// What was chosen may have ended: then the row that is in its place now is chosen.
    private mutating func keepChoice() {
        let rows = self.rows
        let last = choices[choices.count - 1]
        let place = last.flatMap { rows.firstIndex(of: $0.row) } ?? last?.place ?? 0
        choose(place, among: rows)
    }

    private mutating func choose(_ place: Int, among rows: [Row]) {
        let place = min(max(0, place), rows.count - 1)
        choices[choices.count - 1] = rows.isEmpty ? nil : Choice(row: rows[place], place: place)
    }

    private var chosen: Row? { choices[choices.count - 1]?.row }

    private var rows: [Row] {
        switch pages.last {
        case .operations(let graph, let operations):
            return operations.map { .operation(graph: graph, name: $0.name) }
        case .overview:
            let graphs = snapshot?.graphs.map { Row.graph($0.id) } ?? []
            return graphs + longest.map { .operation(graph: $0.graph, name: $0.name) }
        case .text, nil: return []
        }
    }

    private var longest: [ClusterSnapshot.Running] {
        (snapshot?.running ?? []).sorted {
            ($0.startedAt, $0.graph, $0.name) < ($1.startedAt, $1.graph, $1.name)
        }
    }

    // MARK: - Keys

    /// What a key does on a terminal of this size.
    package mutating func pressed(_ key: TerminalKey, _ size: TerminalSize) -> Action? {
        message = ""
        if let asked {
            self.asked = nil
            return key == .character("y") ? .cancel(asked) : nil
        }
        switch key {
        case .character("q"): return .quit
        case .up, .character("k"): move(by: -1, size)
        case .down, .character("j"): move(by: 1, size)
        case .pageUp: move(by: -max(1, bodyHeight(size.rows) - 1), size)
        case .pageDown: move(by: max(1, bodyHeight(size.rows) - 1), size)
        case .escape, .left:
            pop()
        case .enter, .right:
            if case .graph(let graph)? = choosable { return .open(graph) }
            return choosable.map { .explain($0) }
        case .character("e"): return choosable.map { .explain($0) }
        case .character("c"): asked = choosable
        case .character: break
        }
        return nil
    }

    private var choosable: Row? { rows.isEmpty ? nil : chosen }

    private mutating func move(by count: Int, _ size: TerminalSize) {
        if case .text? = pages.last {
            let last = body(size.columns).lines.count - bodyHeight(size.rows)
            scroll = min(max(0, scroll + count), max(0, last))
            return
        }
        let rows = self.rows
        guard !rows.isEmpty else { return }
        let place = chosen.flatMap { rows.firstIndex(of: $0) } ?? 0
        choose(place + count, among: rows)
    }

    // MARK: - Drawing

    /// Two lines above the body, one below it.
    private func bodyHeight(_ height: Int) -> Int { max(1, height - 4) }

    /// The lines of the whole screen, each at most so wide.
    package func lines(_ size: TerminalSize) -> [String] {
        let (width, height) = (size.columns, size.rows)
        var lines = header(width)
        var (body, marked) = self.body(width)
        let room = bodyHeight(height)
        var first = 0
        if case .text? = pages.last {
            // The terminal may have grown since.
            first = min(scroll, max(0, body.count - room))
        } else if let marked {
            first = max(0, marked - room + 1)
        }
        body = Array(body.dropFirst(first).prefix(room))
        lines += body
        lines += Array(repeating: "", count: max(0, height - 2 - lines.count))
        lines.append(footer(width))
        return Array(lines.prefix(max(1, height - 1)))
    }

    private func header(_ width: Int) -> [String] {
        guard let snapshot else { return [fitted("Waiting for the coordinator.", width), ""] }
        let cluster = snapshot.cluster
        let counts = cluster.counts
        let up = max(.zero, snapshot.now - cluster.startedAt.time)
        let workers = "\(cluster.workers) \(cluster.workers == 1 ? "worker" : "workers")"
        var first = "\(workers), \(cluster.busySlots) of \(cluster.slots) slots busy"
        // What does not fit is left out as a whole.
        for more in [
            "\(Self.sum(counts.ready, counts.dispatched)) ready, \(counts.pending) pending",
            "up \(TimeFormat.clock(up))",
        ] where first.count + 2 + more.count <= width {
            first += "; " + more
        }
        let well = [ClusterView.well, ClusterView.noBroker]
        let troubles = [("broker", cluster.broker), ("store", cluster.store)].filter {
            !well.contains($0.1)
        }
        if let (what, state) = troubles.last { first = "\(what): \(state)" }
        let isWell = troubles.isEmpty
        return [style.tinted(fitted(first, width), isWell ? .strong : .bad), ""]
    }

    private func footer(_ width: Int) -> String {
        if let asked {
            let question = "Cancel \(asked.selector)? y: yes, any other key: no"
            return style.tinted(fitted(question, width), .attention)
        }
        if !message.isEmpty || !missed.isEmpty {
            let said = message.isEmpty ? missed : message
            return style.tinted(fitted(said, width), .attention)
        }
        let keys =
            switch pages.last {
            case .text: "esc back  q quit"
            case .operations: "e explain  c cancel  esc back  q quit"
            case .overview, nil: "enter open  e explain  c cancel  q quit"
            }
        return style.tinted(fitted(keys, width), .faint)
    }

    /// The lines between header and footer, and the number of the line that is chosen.
    private func body(_ width: Int) -> (lines: [String], marked: Int?) {
        switch pages.last {
        case .text(let row, let lines):
            let title =
                if case .graph(let graph) = row { "Graph \(graph)" } else { row.selector }
            let shown = lines.flatMap { wrapped($0, width) }
            return ([style.tinted(fitted(title, width), .strong)] + shown, nil)
        case .operations(let graph, let operations):
            var table = TextTable([
                .init(title: "OPERATION", isFlexible: true), .init(title: "STATE"),
                .init(title: "ATTEMPT", isRight: true, importance: 0),
                .init(title: "QUEUE", importance: 1),
            ])
            for operation in operations {
                table.add([
                    .init(style.spelled(TerminalText.line(operation.name))),
                    .init(operation.state.name, operation.state == .executing ? .good : nil),
                    .init(operation.attempts == 0 ? "" : "\(operation.attempts)"),
                    .init(TerminalText.line(operation.queue)),
                ])
            }
            let name = snapshot?.graphs.first { $0.id == graph }.map { TerminalText.line($0.name) }
            let title = "Graph \(graph) \(name ?? "")"
            let empty = operations.isEmpty ? ["Nothing in it is unfinished."] : []
            return marked([title], table, width, after: empty)
        case .overview, nil: return overview(width)
        }
    }

    private func overview(_ width: Int) -> (lines: [String], marked: Int?) {
        guard let snapshot else { return ([], nil) }
        var table = TextTable([
            .init(title: "GRAPH"), .init(title: "NAME", isFlexible: true),
            .init(title: "STATUS", importance: 2), .init(title: "DONE", isRight: true),
            .init(title: "RUNNING", isRight: true, importance: 3),
            .init(title: "WAITING", isRight: true, importance: 1),
            .init(title: "FAILED", isRight: true, importance: 4),
        ])
        for graph in snapshot.graphs {
            let counts = graph.counts
            let waiting = Self.sum(counts.pending, counts.ready, counts.dispatched)
            let finished = Self.sum(
                counts.succeeded,
                counts.failed,
                counts.cancelled,
                counts.skipped
            )
            let total = Self.sum(waiting, counts.executing, finished)
            let share = total == 0 ? 100 : finished * 100 / total
            table.add([
                .init("\(graph.id)"), .init(style.spelled(TerminalText.line(graph.name))),
                .init(graph.status.rawValue), .init("\(share) %"), .init("\(counts.executing)"),
                .init("\(waiting)"),
                .init(counts.failed == 0 ? "" : "\(counts.failed)", .bad),
            ])
        }
        guard !snapshot.graphs.isEmpty else {
            return (["No graph is unfinished. To submit one: operon submit FILE"], nil)
        }
        var runs = TextTable([
            .init(title: "RUNNING", isFlexible: true), .init(title: "TIME", isRight: true),
        ])
        let longest = self.longest
        for operation in longest {
            var name = "\(operation.graph)/\(operation.name)"
            if operation.isExternal { name += " (external)" }
            let time = max(.zero, snapshot.now - operation.startedAt)
            runs.add([
                .init(style.spelled(TerminalText.line(name))), .init(TimeFormat.clock(time)),
            ])
        }
        let graphs = marked([], table, width, after: [])
        guard !longest.isEmpty else { return graphs }
        let running = marked([], runs, width, after: [], from: snapshot.graphs.count)
        let offset = graphs.lines.count + 1
        let line = graphs.marked ?? running.marked.map { $0 + offset }
        return (graphs.lines + [""] + running.lines, line)
    }

    /// A table with a mark at the chosen row. `from`: the number of the first row among all.
    private func marked(
        _ above: [String],
        _ table: TextTable,
        _ width: Int,
        after: [String],
        from: Int = 0
    ) -> (lines: [String], marked: Int?) {
        let lines = table.lines(style: style, width: max(1, width - 2))
        // Below 0: it is in the table above.
        let place = chosen.flatMap { rows.firstIndex(of: $0) }.map { $0 - from } ?? -1
        var found: Int?
        let marked = lines.enumerated().map { index, line in
            guard place >= 0, index == place + 1 else { return "  " + line }
            found = above.count + index
            return style.tinted(style.hasUnicode ? "▸ " : "> ", .strong) + line
        }
        return (above.map { style.tinted(fitted($0, width), .strong) } + marked + after, found)
    }

    /// The sum of counts that came over the network: any number may stand there.
    private static func sum(_ counts: Int...) -> Int {
        counts.reduce(0) { $0 + min(max(0, $1), Int(UInt32.max)) }
    }

    private func fitted(_ text: String, _ width: Int) -> String {
        TerminalText.elided(
            style.spelled(TerminalText.line(text)),
            to: max(1, width),
            mark: style.ellipsis
        )
    }

    /// A line in pieces that fit.
    private func wrapped(_ line: String, _ width: Int) -> [String] {
        var rest = Substring(line)
        var pieces: [String] = []
        while TerminalText.width(String(rest)) > width {
            let piece = TerminalText.prefix(of: String(rest), width: width)
            guard !piece.isEmpty else { break }
            pieces.append(piece)
            rest = rest.dropFirst(piece.count)
        }
        return pieces + [String(rest)]
    }
}
