import OperonModel
import OperonTerminal
import Testing

/// The screen of `operon top`.
@Suite struct TopScreenTests {
    private static let start = WallTime(nanosecondsSince1970: 1_700_000_000_000_000_000)
    private static let size = TerminalSize(columns: 60, rows: 14)

    private static func graph(_ id: UInt32, _ name: String, executing: Int = 0) -> GraphView {
        var counts = StateCounts()
        counts.executing = executing
        counts.pending = 3
        counts.succeeded = 4
        counts.failed = Int(id % 2)
        return GraphView(
            id: id,
            name: name,
            status: .running,
            isOpen: false,
            submittedAt: TimeText(start),
            counts: counts
        )
    }

    private static func snapshot(
        _ graphs: [GraphView],
        _ running: [(graph: UInt32, name: String, seconds: Int)] = []
    ) -> ClusterSnapshot {
        var counts = StateCounts()
        counts.ready = 2
        counts.pending = 6
        let cluster = ClusterView(
            version: "1",
            reign: "r",
            epoch: 1,
            startedAt: TimeText(start),
            now: TimeText(start + .seconds(3_600)),
            broker: "ok",
            store: "ok",
            workers: 2,
            slots: 8,
            busySlots: 3,
            openGraphs: graphs.count,
            counts: counts
        )
        let now = start + .seconds(3_600)
        return ClusterSnapshot(
            cluster: cluster,
            graphs: graphs,
            running: running.map { operation in
                ClusterSnapshot.Running(
                    graph: operation.graph,
                    name: operation.name,
                    startedAt: now + .seconds(-operation.seconds)
                )
            },
            now: now
        )
    }

    private static var full: TopScreen {
        var screen = TopScreen(.plain)
        screen.show(
            snapshot(
                [graph(3, "wordcount", executing: 2), graph(4, "nightly")],
                [(3, "short", 5), (3, "long", 65)]
            )
        )
        return screen
    }

    @Test func `graphs and what runs are on one screen, the longest first`() {
        #expect(
            Self.full.lines(Self.size) == [
                "2 workers, 3 of 8 slots busy; 2 ready, 6 pending; up 1:00:00",
                "",
                "  GRAPH  NAME       STATUS   DONE  RUNNING  WAITING  FAILED",
                "> 3      wordcount  running  50 %        2        3       1",
                "  4      nightly    running  57 %        0        3",
                "",
                "  RUNNING  TIME",
                "  3/long   1:05",
                "  3/short  0:05",
                "", "", "",
                "enter open  e explain  c cancel  q quit",
            ]
        )
    }

    @Test func `one row is marked, whichever table it is in`() {
        var screen = TopScreen(.plain)
        screen.show(Self.snapshot([Self.graph(3, "only", executing: 1)], [(3, "run", 5)]))
        func marked() -> [String] {
            screen.lines(Self.size).filter { $0.hasPrefix("> ") }.map {
                $0.split(separator: " ").dropFirst().joined(separator: " ")
            }
        }
        #expect(marked() == ["3 only running 55 % 1 3 1"])
        _ = screen.pressed(.down, Self.size)
        #expect(marked() == ["3/run 0:05"])
        let narrow = screen.lines(TerminalSize(columns: 40, rows: 12))
        #expect(narrow[0] == "2 workers, 3 of 8 slots busy; up 1:00:00")
    }

    @Test(arguments: [26, 40, 60, 200], [1, 4, 6, 10, 50])
    func `no line is wider than the terminal, and there are no more than its rows`(
        columns: Int,
        rows: Int
    ) {
        var screen = Self.full
        let size = TerminalSize(columns: columns, rows: rows)
        for key: TerminalKey in [.down, .down, .down, .enter, .character("c")] {
            let lines = screen.lines(size)
            #expect(lines.count <= max(1, rows - 1))
            #expect(lines.allSatisfy { $0.count <= columns }, "\(lines)")
            _ = screen.pressed(key, size)
        }
    }

    @Test func `keys choose rows, and the choice follows its row`() {
        var screen = Self.full
        #expect(screen.pressed(.enter, Self.size) == .open(3))
        _ = screen.pressed(.down, Self.size)
        #expect(screen.pressed(.enter, Self.size) == .open(4))
        _ = screen.pressed(.down, Self.size)
        let long = TopScreen.Row.operation(graph: 3, name: "long")
        #expect(screen.pressed(.enter, Self.size) == .explain(long))
        _ = screen.pressed(.pageDown, Self.size)
        let short = TopScreen.Row.operation(graph: 3, name: "short")
        #expect(screen.pressed(.character("e"), Self.size) == .explain(short))
        // What was chosen has ended: the last row is nearest to its place.
        screen.show(Self.snapshot([Self.graph(5, "new"), Self.graph(3, "wordcount")]))
        #expect(screen.pressed(.enter, Self.size) == .open(3))
        // A newer graph moves everything down.
        screen.show(
            Self.snapshot([Self.graph(6, "n"), Self.graph(5, "new"), Self.graph(3, "w")])
        )
        #expect(screen.pressed(.enter, Self.size) == .open(3))
        #expect(screen.pressed(.character("q"), Self.size) == .quit)
    }

    @Test func `a cancel needs a second key`() {
        var screen = Self.full
        #expect(screen.pressed(.character("c"), Self.size) == nil)
        #expect(screen.lines(Self.size).last == "Cancel 3? y: yes, any other key: no")
        #expect(screen.pressed(.character("n"), Self.size) == nil)
        #expect(screen.pressed(.character("y"), Self.size) == nil)
        #expect(screen.pressed(.character("c"), Self.size) == nil)
        #expect(screen.pressed(.character("y"), Self.size) == .cancel(.graph(3)))
    }

    @Test func `a long text is scrolled, and left again`() {
        var screen = Self.full
        let row = TopScreen.Row.operation(graph: 3, name: "x")
        screen.show((1...30).map { "line \($0)" }, about: row)
        #expect(screen.lines(Self.size)[2...4] == ["3/x", "line 1", "line 2"])
        _ = screen.pressed(.pageDown, Self.size)
        #expect(screen.lines(Self.size)[2] == "line 9")
        for _ in 0..<40 { _ = screen.pressed(.down, Self.size) }
        #expect(screen.lines(Self.size)[11] == "line 30")
        // A newer text stays where it was scrolled to.
        screen.show((1...30).map { "new \($0)" }, about: row)
        #expect(screen.lines(Self.size)[11] == "new 30")
        _ = screen.pressed(.escape, Self.size)
        #expect(screen.pressed(.enter, Self.size) == .open(3))
    }

    @Test func `keys are read from what a terminal sends`() {
        let typed = "q\u{1B}[A\u{1B}OB\u{1B}[5~\u{1B}[6~\r\u{1B}[1;5Cé\u{1B}"
        #expect(
            TerminalKey.keys(in: Array(typed.utf8)) == [
                .character("q"), .up, .down, .pageUp, .pageDown, .enter, .right,
                .character("é"), .escape,
            ]
        )
        #expect(TerminalKey.keys(in: [0xFF, 0x1B, 0x5B]) == [.character("\u{FFFD}")])
    }

    @Test func `whatever a coordinator says, it is one line and no trap`() {
        var counts = StateCounts()
        counts.pending = .max
        counts.ready = .max
        counts.succeeded = .min
        var graph = Self.graph(1, "g")
        graph.counts = counts
        var snapshot = Self.snapshot([graph])
        snapshot.cluster.counts = counts
        var screen = TopScreen(.plain)
        screen.show(snapshot)
        #expect(screen.lines(Self.size)[0].contains("slots busy"))
        snapshot.cluster.broker = "away\u{1B}[2J\nreally"
        screen.show(snapshot)
        #expect(screen.lines(Self.size).allSatisfy { !$0.contains("\u{1B}") })
    }

    @Test func `what was chosen stays chosen on each page, or what is in its place`() {
        var screen = TopScreen(.plain)
        screen.show(Self.snapshot([Self.graph(1, "a"), Self.graph(2, "b"), Self.graph(3, "c")]))
        #expect(screen.pressed(.down, Self.size) == nil)
        #expect(screen.pressed(.enter, Self.size) == .open(2))
        screen.show(["text"], about: .graph(2))
        #expect(screen.pressed(.escape, Self.size) == nil)
        #expect(screen.pressed(.enter, Self.size) == .open(2))
        screen.show(Self.snapshot([Self.graph(1, "a"), Self.graph(3, "c")]))
        #expect(screen.pressed(.enter, Self.size) == .open(3))
        screen.show(Self.snapshot([]))
        #expect(screen.pressed(.enter, Self.size) == nil)
    }

    @Test func `a page whose graph was dropped is left`() {
        var screen = TopScreen(.plain)
        screen.show(Self.snapshot([Self.graph(1, "a")]))
        screen.show([], of: 1)
        screen.close(.graph(2), "another")
        #expect(screen.openGraph == 1)
        let row = TopScreen.Row.operation(graph: 1, name: "x")
        screen.show(["text"], about: row)
        screen.close(row, "It was dropped.")
        #expect(screen.openText == nil)
        #expect(screen.openGraph == 1)
        screen.close(.graph(1), "It was dropped.")
        #expect(screen.openGraph == nil)
        #expect(screen.lines(Self.size).last == "It was dropped.")
    }

    @Test func `a missed update is said until the next one comes`() {
        var screen = Self.full
        screen.miss("Nobody is there.")
        #expect(screen.lines(Self.size).last == "Nobody is there.")
        #expect(screen.pressed(.down, Self.size) == nil)
        #expect(screen.lines(Self.size).last == "Nobody is there.")
        screen.show(Self.snapshot([Self.graph(3, "wordcount")]))
        #expect(screen.lines(Self.size).last == "enter open  e explain  c cancel  q quit")
    }

    @Test func `names of users end no sequence of ours`() {
        var screen = TopScreen(.plain)
        screen.show(Self.snapshot([Self.graph(1, "a\u{1B}[2Jb\nc")]))
        #expect(screen.lines(Self.size).allSatisfy { !$0.contains("\u{1B}") })
    }
}
