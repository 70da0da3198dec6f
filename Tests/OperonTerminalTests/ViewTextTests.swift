import OperonModel
import OperonTerminal
import Testing

/// What views look like on a pipe, and on terminals of two widths.
@Suite struct ViewTextTests {
    static let pipe = ViewText(style: pipeStyle, width: nil)
    static let wide = ViewText(style: unicode, width: 80)
    static let narrow = ViewText(style: unicode, width: 40)
    private static let pipeStyle = TerminalStyle(
        overprints: false,
        hasColor: false,
        hasUnicode: true
    )

    static func time(_ second: Int64) -> TimeText {
        TimeText(WallTime(nanosecondsSince1970: (1_767_225_600 + second) * 1_000_000_000))
    }

    static func graph(_ id: UInt32, _ name: String, failed: Int = 0) -> GraphView {
        var counts = StateCounts()
        counts.pending = 20
        counts.succeeded = 20 - failed
        counts.failed = failed
        var view = GraphView(
            id: id,
            name: name,
            status: .running,
            isOpen: false,
            submittedAt: time(Int64(id)),
            counts: counts
        )
        view.submittedBy = "ann"
        return view
    }

    static func operation(_ name: String) -> OperationView {
        OperationView(
            graph: 3,
            index: 0,
            name: name,
            kind: "command",
            queue: "default",
            priority: .normal,
            state: .ready
        )
    }

    static let graphs = [
        graph(12, "nightly-build-of-everything-there-is-in-the-house", failed: 2),
        graph(3, "wordcount"),
    ]

    @Test func `a pipe gets whole names`() {
        #expect(
            Self.pipe.graphs(Self.graphs) == [
                "ID  NAME                                               STATUS    DONE  FAILED"
                    + "  SUBMITTED             BY",
                "12  nightly-build-of-everything-there-is-in-the-house  running  20/40       2"
                    + "  2026-01-01 00:00:12Z  ann",
                " 3  wordcount                                          running  20/40        "
                    + "  2026-01-01 00:00:03Z  ann",
            ]
        )
    }

    @Test func `a terminal gets names that are shortened by their middles`() {
        #expect(
            Self.wide.graphs(Self.graphs) == [
                "ID  NAME                       STATUS    DONE  FAILED  SUBMITTED             BY",
                "12  nightly-buil…in-the-house  running  20/40       2  2026-01-01 00:00:12Z  ann",
                " 3  wordcount                  running  20/40          2026-01-01 00:00:03Z  ann",
            ]
        )
    }

    @Test func `status says what waits for what, and what no worker could run`() {
        var cluster = ClusterView(
            version: "1.2.3",
            reign: "r",
            epoch: 1,
            startedAt: Self.time(0),
            now: Self.time(61),
            broker: "ok",
            store: "ok",
            workers: 2,
            slots: 4,
            busySlots: 4,
            openGraphs: 1,
            counts: StateCounts()
        )
        cluster.resources = [
            ResourceView(name: "cpus", offered: 8_000, left: 3_500),
            ResourceView(name: "me\u{1B}[2J", offered: .infinity, left: -1),
            // What a few workers with the most of it offer.
            ResourceView(name: "memory", offered: 0x1p53, left: 0x1.8p50),
            ResourceView(name: "tickets", offered: 0x1p62, left: 0x1p50),
            ResourceView(name: "tokens", offered: 0x1p63, left: .nan),
        ]
        var large = DemandView(
            ResourceDemand(resources: [.gpus(4)]),
            ready: 3,
            inFlight: 0,
            unrunnable: 3
        )
        large.missing = "gpus: 4 needed, 2 offered"
        var plain = DemandView(ResourceDemand(), ready: 9, inFlight: 1, unrunnable: 2)
        plain.missing = "none knows the kind “x”"
        let taken = ResourceDemand(resources: [.gpus(1)], requirements: [.equals("zone", "a")])
        let running = DemandView(
            ResourceDemand(resources: [.gpus(2)]),
            ready: 0,
            inFlight: 1,
            unrunnable: 0
        )
        cluster.demands = [
            large, plain, DemandView(taken, ready: 1, inFlight: 2, unrunnable: 0), running,
        ]
        cluster.moreDemands = 7

        let lines = Self.pipe.cluster(cluster)
        #expect(
            lines.filter { $0.hasPrefix("resources") || $0.contains(" for ") || $0.contains("…") }
                == [
                    "resources    cpus 3.5 of 8, me ? of ?, memory 1536TiB of 8192TiB, tickets "
                        + "1125899906842624 of 4611686018427387904, tokens ? of ? free",
                    "waiting      3 operations for gpus 4; no worker could ever run them: gpus: 4 "
                        + "needed, 2 offered",
                    "             9 operations for nothing but a slot; no worker could ever run 2 "
                        + "of them: none knows the kind “x”",
                    "             1 operation for gpus 1, “zone” must be “a”",
                    "             … and 7 more demands",
                ]
        )
        // Everything waits for a worker: that is said already.
        cluster.workers = 0
        #expect(!Self.pipe.cluster(cluster).contains { $0.contains("could ever run") })
    }

    @Test func `a narrow terminal gets what matters most`() {
        #expect(
            Self.narrow.graphs(Self.graphs) == [
                "ID  NAME          STATUS    DONE  FAILED",
                "12  nightl…house  running  20/40       2",
                " 3  wordcount     running  20/40",
            ]
        )
    }

    @Test(arguments: [20, 40, 60, 80, 100])
    func `no row is wider than the terminal`(width: Int) {
        let text = ViewText(style: unicode, width: width)
        var failed = Self.operation("an-operation-with-a-long-name/of-two-parts-数え切れない")
        failed.state = .finished
        failed.outcome = .failed
        failed.error = ErrorView(code: "exit", message: "exit code 3, and a long explanation of it")
        let queue = QueueView(
            name: "a-queue-with-a-long-name",
            maxConcurrentOperationCount: 3,
            priority: .high,
            isSuspended: true,
            ready: 1,
            inFlight: 2,
            unfinished: 9
        )
        let worker = WorkerView(
            id: "1",
            name: "a-worker-with-a-long-name",
            host: "a-host-with-a-long-name.example",
            slots: 64,
            busySlots: 3,
            held: 3,
            status: "draining",
            queues: ["default", "licensed"],
            kinds: ["command", "wait"],
            heardSecondsAgo: 1.25
        )
        var key = KeyView(name: "a-key-with-a-long-name", limit: 1, held: 102, waiting: 12)
        key.holders = (0..<100).map { OperationName(graph: 3, index: $0, name: "holder-\($0)") }
        let lines =
            text.operations([failed]) + text.dead([failed]) + text.queues([queue])
            + text.keys([key]) + text.workers([worker])
            + (width >= 40 ? text.graphs(Self.graphs) : [])
        // The columns that are never left out need this much.
        let least = 38
        #expect(lines.allSatisfy { TerminalText.width($0) <= max(width, least) }, "\(lines)")
        #expect(lines.count >= 8)
    }

    @Test func `a key says who holds it, and that a lowered limit takes nothing away`() {
        var key = KeyView(name: "db", limit: 2, held: 103, waiting: 12)
        key.holders = (0..<100).map { OperationName(graph: 3, index: $0, name: "h\($0)") }
        key.waiters = (0..<2).map { OperationName(graph: 4, index: $0, name: "w\($0)") }

        #expect(
            Self.pipe.keys([key]) == [
                "KEY  LIMIT  HELD  WAITING  HELD BY",
                "db       2   103       12  3/h0, 3/h1, 3/h2 and 100 more",
            ]
        )
        #expect(
            Self.pipe.key(key).suffix(2) == [
                "  waiting  12 operations: 4/w0, 4/w1 and 10 more",
                "Operations that hold the key keep it. The next one gets it when 102 of them have"
                    + " finished.",
            ]
        )
    }

    @Test func `explain tells every reason at once`() {
        var dependencies = ReasonView(code: "dependencies", text: "waits for 12 dependencies")
        dependencies.operations = [OperationName(graph: 3, index: 1, name: "split")]
        dependencies.more = 11
        var suspended = ReasonView(code: "queueSuspended", text: "queue “db” was suspended by bob")
        suspended.until = Self.time(3_600)
        let kind = ReasonView(code: "noWorkerForKind", text: "no worker knows “MergeCounts”")
        let explanation = Explanation(
            operation: Self.operation("merge"),
            reasons: [dependencies, suspended, kind]
        )

        #expect(
            Self.pipe.explanation(explanation) == [
                "3/merge is ready", "why it waits", "  • waits for 12 dependencies",
                "    3/split and 11 more",
                "  • queue “db” was suspended by bob (until 2026-01-01 01:00:00Z)",
                "  • no worker knows “MergeCounts”",
            ]
        )
    }

    @Test func `cancel says what it releases, and whether it is effective`() {
        let view = CommandView(
            affected: 5,
            finished: 3,
            running: 2,
            released: 7,
            isEffective: false
        )

        #expect(
            Self.pipe.cancelled(view, .graph("3"), cascade: false) == [
                "Cancelled graph 3: 5 operations. 2 of them are running and were asked to stop.",
                "7 operations depend on them and were not cancelled.",
                "Operations that a worker has already may still start."
                    + " To wait until none can: operon cancel 3 --wait",
            ]
        )
    }

    @Test func `without Unicode nothing beyond ASCII is written`() {
        let text = ViewText(style: .plain, width: nil)
        let name = "数\u{1B}[2J\u{202E}é"
        var event = EventView(sequence: 1, at: Self.time(0), kind: EventKind(.finished))
        event.operation = OperationName(graph: 1, index: 0, name: name)
        event.outcome = .failed
        event.error = ErrorView(code: "thrown", message: name)
        event.worker = name
        event.by = name
        let lines =
            text.graphs([Self.graph(1, name)]) + text.graph(Self.graph(1, name))
            + text.operations([Self.operation(name)]) + [text.event(event), text.gap(1, 2)]
            + text.submitted(Self.graph(1, name), isAddition: true, isFollowed: false)
            + [text.detached(Self.graph(1, name))]

        #expect(lines.allSatisfy { $0.utf8.allSatisfy { (0x20..<0x7F).contains($0) } }, "\(lines)")
    }

    @Test func `an error of many characters is cut in every line`() {
        let long = String(repeating: "y", count: 20_000)
        var operation = Self.operation("a")
        operation.state = .finished
        operation.outcome = .failed
        operation.error = ErrorView(code: "thrown", message: long)
        var event = EventView(sequence: 1, at: Self.time(0), kind: EventKind(.finished))
        event.error = operation.error
        let detail = OperationDetail(operation: operation, graphName: "g")
        let explanation = Explanation(operation: operation, reasons: [])
        let lines =
            Self.pipe.operations([.operation(operation)]) + Self.pipe.dead([operation])
            + Self.pipe.operation(detail) + Self.pipe.explanation(explanation)
            + Self.pipe.failures([operation], of: 1) + [Self.pipe.event(event)]

        #expect(lines.allSatisfy { $0.count < 2_200 }, "\(lines.map(\.count))")
        #expect(lines.count { $0.contains("(18000 more characters)") } == 6)
    }

    @Test func `a script is shown line by line, up to a screenful`() {
        var detail = OperationDetail(operation: Self.operation("a"), graphName: "g")
        func shown(_ script: String) -> [String] {
            detail.command = CommandDetail(
                CommandDescription(arguments: CommandDescription.shell(script))
            )
            return Self.pipe.operation(detail)
        }
        let short = shown("set -e\n\n  make\u{7} all\n")
        let first = short.firstIndex { $0.contains("set -e") } ?? 0
        #expect(short[first] == "  command   set -e", "\(short)")
        #expect(short[first + 1] == "")
        #expect(short[first + 2].hasPrefix("              make"))
        #expect(short[first + 2].hasSuffix(" all") && !short[first + 2].contains("\u{7}"))

        let long = shown((0..<60).map { "echo \($0)" }.joined(separator: "\n"))
        #expect(long.contains { $0.hasSuffix(" echo 39") })
        #expect(!long.contains { $0.hasSuffix(" echo 40") })
        #expect(long.contains { $0.hasSuffix("20 more lines; --output json has them") }, "\(long)")
    }

    @Test func `what was up to date is told wherever its outcome is`() {
        var operation = Self.operation("a")
        operation.state = .finished
        operation.outcome = .succeeded
        operation.isUpToDate = true
        var detail = OperationDetail(operation: operation, graphName: "g")
        var attempt = AttemptView(id: "1.1", number: 1, worker: "w", grantedAt: Self.time(0))
        attempt.ending = "succeeded"
        attempt.isUpToDate = true
        detail.attempts = [attempt]
        var event = EventView(sequence: 1, at: Self.time(0), kind: EventKind(.finished))
        event.operation = OperationName(graph: 3, index: 0, name: "a")
        event.outcome = .succeeded
        event.isUpToDate = true

        let told = "succeeded (up to date)"
        #expect(Self.pipe.operation(detail).first == "3/a \(told)")
        #expect(Self.pipe.operation(detail).last?.hasSuffix(told) == true)
        #expect(Self.pipe.operations([operation]).last?.contains(told) == true)
        #expect(Self.pipe.event(event).contains(" 1 \(told) 3/a"))
        var progress = GraphProgress()
        let change = progress.apply(event)
        #expect(change?.detail == "up to date")
    }

    // MARK: - Watching

    @Test func `an event that the list knew already changes nothing`() {
        var progress = GraphProgress()
        var operation = Self.operation("a")
        operation.state = .finished
        operation.outcome = .succeeded
        #expect(progress.listed(operation)?.new == .succeeded)

        var event = EventView(sequence: 1, at: Self.time(0), kind: EventKind(.started))
        event.operation = OperationName(graph: 3, index: 0, name: "a")
        #expect(progress.apply(event) == nil)
        event.kind = EventKind(.finished)
        event.outcome = .succeeded
        #expect(progress.apply(event) == nil)
        event.kind = EventKind(.reopened)
        #expect(progress.apply(event)?.new == .pending)
        #expect(progress.unfinishedCount == 1)
    }

    @Test func `an operation that was given back waits again`() {
        var progress = GraphProgress()
        func event(_ kind: ClusterEvent.Kind, _ second: Int64, _ ending: String? = nil) -> EventView
        {
            var event = EventView(sequence: 1, at: Self.time(second), kind: EventKind(kind))
            event.operation = OperationName(graph: 3, index: 4, name: "e")
            event.ending = ending
            event.outcome = kind == .finished ? .succeeded : nil
            return event
        }
        _ = progress.apply(event(.started, 0))
        #expect(progress.apply(event(.attemptEnded, 3, "lost"))?.new == .ready)
        _ = progress.apply(event(.started, 5))
        #expect(progress.apply(event(.attemptEnded, 6, "succeeded")) == nil)
        let change = progress.apply(event(.finished, 7))

        #expect(change?.old == .executing)
        #expect(progress.count == 5)
        #expect(progress.unfinishedCount == 0)
    }
}
