import OperonCore
import OperonModel
import OperonTestKit
import Testing

struct WatchTests {
    private static let trigger = TriggerID(rawValue: 1)
    private static let source = WatchedSource.pipe("/lines")
    private static let reign = Reign(rawValue: 1)
    private static let firstID = WatchID(rawValue: 100)

    private static func worker(_ number: UInt64, _ labels: WorkerLabel...) -> WatchTable.Worker {
        WatchTable.Worker(
            incarnation: Incarnation(rawValue: number),
            name: "w\(number)",
            labels: labels
        )
    }

    private static func wanted(
        _ trigger: TriggerID = trigger,
        _ requirements: [WorkerRequirement] = [],
        isKept: Bool = false
    ) -> WatchTable.Event {
        .wanted(trigger, source, requirements, isKept: isKept)
    }

    /// A table whose workers have stated that they hold nothing.
    private static func table(
        _ workers: [WatchTable.Worker],
        perWorker: Int = 10,
        heldBytesMax: Int = 1_000
    ) -> WatchTable {
        var table = WatchTable(
            firstID: firstID,
            perWorker: perWorker,
            heldBytesMax: heldBytesMax
        )
        _ = effects(&table, .workersChanged(workers))
        for worker in workers { _ = effects(&table, .reported(worker.incarnation, .holds([]))) }
        return table
    }

    private static func occurrence(_ identity: String) throws -> Occurrence {
        try #require(Occurrence(identity: identity, object: Array("{}".utf8)))
    }

    private static func effects(
        _ table: inout WatchTable,
        _ events: WatchTable.Event...
    ) -> WatchTable.Effects {
        var effects = WatchTable.Effects()
        for event in events { table.handle(event, into: &effects) }
        return effects
    }

    // MARK: - The coordinator

    @Test func `a worker that meets the requirements watches, the one with the fewest watches`() {
        let eu = WorkerLabel("region", "eu")
        var table = Self.table([Self.worker(1), Self.worker(2, eu), Self.worker(3, eu)])
        let triggers = (1...4 as ClosedRange<UInt64>).map { TriggerID(rawValue: $0) }
        for trigger in triggers {
            _ = Self.effects(&table, Self.wanted(trigger, [.equals("region", "eu")]))
        }
        #expect(triggers.map { table.watcher(of: $0) } == ["w2", "w3", "w2", "w3"])
    }

    @Test func `no worker watches more than it may`() {
        var table = Self.table([Self.worker(1)], perWorker: 1)
        let other = TriggerID(rawValue: 2)
        _ = Self.effects(&table, Self.wanted(), Self.wanted(other))
        #expect(table.watcher(of: Self.trigger) == "w1")
        #expect(table.watcher(of: other) == nil)
        // Room that comes is used.
        _ = Self.effects(&table, .unwanted(Self.trigger))
        #expect(table.watcher(of: other) == "w1")
    }

    @Test func `without a worker the watch waits, and the reason names what is missing`() {
        var table = Self.table([Self.worker(1)])
        let effects = Self.effects(
            &table,
            Self.wanted(Self.trigger, [.equals("region", "eu")])
        )
        #expect(effects.news == [Self.trigger])
        let why = "there is no worker with region=eu that watches sources"
        #expect(table.news(of: Self.trigger) == [.waiting(TriggerSourceError(.absent, why))])
        #expect(table.news(of: Self.trigger).isEmpty)
    }

    @Test func `another worker follows one that is gone, and the old one is to end its watch`() {
        var table = Self.table([Self.worker(1), Self.worker(2)])
        _ = Self.effects(&table, Self.wanted())
        let effects = Self.effects(&table, .workersChanged([Self.worker(2)]))
        let next = WatchID(rawValue: 101)
        #expect(
            effects.orders.map(\.order) == [
                .end(Self.firstID), .begin(next, Self.trigger, Self.source),
            ]
        )
        #expect(effects.orders.map(\.worker.rawValue) == [1, 2])
    }

    @Test func `a worker without room for it gives it to another one, once`() {
        var table = Self.table([Self.worker(1), Self.worker(2)])
        _ = Self.effects(&table, Self.wanted())
        let problem = TriggerSourceError(.exhausted, "no inotify instance is left")
        _ = Self.effects(
            &table,
            .reported(
                Incarnation(rawValue: 1),
                .state(Self.firstID, .waiting, problem: problem)
            )
        )
        #expect(table.watcher(of: Self.trigger) == "w2")
        let second = WatchID(rawValue: 101)
        _ = Self.effects(
            &table,
            .reported(Incarnation(rawValue: 2), .state(second, .waiting, problem: problem))
        )
        #expect(table.watcher(of: Self.trigger) == "w2")
    }

    @Test func `a worker that watched for an earlier coordinator goes on, others wait`() {
        let other = TriggerID(rawValue: 2)
        var table = WatchTable(firstID: Self.firstID)
        _ = Self.effects(
            &table,
            .workersChanged([Self.worker(1), Self.worker(2)]),
            Self.wanted(isKept: true),
            Self.wanted(other, isKept: true),
            .reported(Incarnation(rawValue: 1), .holds([]))
        )
        #expect(table.watcher(of: Self.trigger) == nil)
        let old = WatchID(rawValue: 7)
        let held = HeldWatch(watch: old, trigger: Self.trigger, state: .observing)
        let effects = Self.effects(
            &table,
            .reported(Incarnation(rawValue: 2), .holds([held]))
        )
        #expect(
            effects.orders.map(\.order) == [.begin(Self.firstID, Self.trigger, Self.source)]
        )
        #expect(table.watcher(of: Self.trigger) == "w2")
        // Nobody watched for the other one.
        _ = Self.effects(&table, .settled)
        #expect(table.watcher(of: other) == "w1")
    }

    @Test func `a report of another worker, or of an earlier watch, changes nothing`() throws {
        var table = Self.table([Self.worker(1), Self.worker(2)])
        _ = Self.effects(&table, Self.wanted())
        let occurrence = try Self.occurrence("a")
        let problem = TriggerSourceError(.invalid, "x")
        for (worker, watch) in [(2, 100), (1, 99)] as [(UInt64, UInt64)] {
            let watch = WatchID(rawValue: watch)
            for report in [
                WatchReport.occurred(watch, occurrence), .state(watch, .ended, problem: nil),
                .refused(watch, count: 1, problem),
            ] {
                let effects = Self.effects(
                    &table,
                    .reported(Incarnation(rawValue: worker), report)
                )
                #expect(effects.orders.isEmpty && effects.news.isEmpty)
            }
        }
        // What it holds and nobody wants ends.
        let held = HeldWatch(
            watch: WatchID(rawValue: 99),
            trigger: Self.trigger,
            state: .observing
        )
        let effects = Self.effects(&table, .reported(Incarnation(rawValue: 2), .holds([held])))
        #expect(effects.orders.map(\.order) == [.end(WatchID(rawValue: 99))])
    }

    @Test func `what a worker reports is bounded until somebody asks`() throws {
        var table = Self.table([Self.worker(1)])
        _ = Self.effects(&table, Self.wanted())
        let problem = TriggerSourceError(.unreadable, "no UTF-8")
        let worker = Incarnation(rawValue: 1)
        let watch = Self.firstID
        for number in 0..<100 {
            let occurrence = try Self.occurrence("o\(number)")
            _ = Self.effects(
                &table,
                .reported(worker, .state(watch, .waiting, problem: problem)),
                .reported(worker, .state(watch, .observing, problem: nil)),
                .reported(worker, .refused(watch, count: .max, problem)),
                .reported(worker, .occurred(watch, occurrence))
            )
        }
        let first = try Self.occurrence("o0")
        let news = table.news(of: Self.trigger)
        #expect(news == [.occurred(first), .observing, .refused(count: .max, problem)])
    }

    @Test func `occurrences beyond the bound in bytes stay with their workers`() throws {
        var table = Self.table([Self.worker(1)], heldBytesMax: 3)
        let other = TriggerID(rawValue: 2)
        _ = Self.effects(&table, Self.wanted(), Self.wanted(other))
        let worker = Incarnation(rawValue: 1)
        let second = WatchID(rawValue: 101)
        let (a, b) = (try Self.occurrence("a"), try Self.occurrence("b"))
        _ = Self.effects(
            &table,
            .reported(worker, .occurred(Self.firstID, a)),
            .reported(worker, .occurred(second, b))
        )
        #expect(table.news(of: Self.trigger) == [.occurred(a)])
        #expect(table.news(of: other).isEmpty)
        // The next statement has it asked for again, and then there is room.
        _ = Self.effects(&table, .taken(Self.trigger, identity: "a"))
        let held = HeldWatch(watch: second, trigger: other, state: .starting, occurrence: "b")
        let first = HeldWatch(watch: Self.firstID, trigger: Self.trigger, state: .starting)
        let effects = Self.effects(&table, .reported(worker, .holds([first, held])))
        #expect(effects.orders.map(\.order) == [.again(second)])
        _ = Self.effects(&table, .reported(worker, .occurred(second, b)))
        #expect(table.news(of: other) == [.occurred(b)])
    }

    @Test func `only a process ends`() {
        var table = Self.table([Self.worker(1)])
        _ = Self.effects(
            &table,
            Self.wanted(),
            .reported(Incarnation(rawValue: 1), .state(Self.firstID, .ended, problem: nil))
        )
        guard case .ended(.some) = table.news(of: Self.trigger).first else {
            Issue.record("a pipe has ended")
            return
        }
    }

    // MARK: - The worker

    private static func begun(
        _ agent: inout WatchAgent
    ) throws -> WatchAgent.RunID {
        var effects = WatchAgent.Effects()
        agent.handle(.ordered(.begin(firstID, trigger, source), by: reign), into: &effects)
        return try #require(effects.begins.first).run
    }

    private static func effects(
        _ agent: inout WatchAgent,
        _ events: WatchAgent.Event...
    ) -> WatchAgent.Effects {
        var effects = WatchAgent.Effects()
        for event in events { agent.handle(event, into: &effects) }
        return effects
    }

    @Test func `the worker states what it holds, and reports it again when asked`() throws {
        var agent = WatchAgent()
        let run = try Self.begun(&agent)
        let occurrence = try Self.occurrence("a")
        _ = Self.effects(&agent, .status(run, .observing), .occurred(run, occurrence))
        let held = HeldWatch(
            watch: Self.firstID,
            trigger: Self.trigger,
            state: .observing,
            occurrence: "a"
        )
        #expect(Self.effects(&agent, .statementDue).reports == [.holds([held])])
        let again = Self.effects(&agent, .ordered(.again(Self.firstID), by: Self.reign))
        #expect(
            again.reports == [
                .state(Self.firstID, .observing, problem: nil),
                .occurred(Self.firstID, occurrence),
            ]
        )
        // Another occurrence was taken, so this one has to be reported again.
        let other = WatchOrder.taken(Self.firstID, identity: "b")
        #expect(Self.effects(&agent, .ordered(other, by: Self.reign)).releases.isEmpty)
        let own = WatchOrder.taken(Self.firstID, identity: "a")
        #expect(Self.effects(&agent, .ordered(own, by: Self.reign)).releases == [run])
    }

    @Test func `occurrences that cannot be reported are counted from statement to statement`()
        throws
    {
        var agent = WatchAgent()
        let run = try Self.begun(&agent)
        var effects = WatchAgent.Effects()
        for number in 0..<5 {
            let problem = TriggerSourceError(.unreadable, "\(number)")
            agent.handle(.status(run, .refused(problem)), into: &effects)
        }
        let first = TriggerSourceError(.unreadable, "0")
        #expect(effects.reports == [.refused(Self.firstID, count: 1, first)])
        let last = TriggerSourceError(.unreadable, "4")
        let reports = Self.effects(&agent, .statementDue).reports
        #expect(reports.first == .refused(Self.firstID, count: 4, last))
    }

    @Test func `the same source goes on under another number, another source does not`() throws {
        var agent = WatchAgent(most: 1)
        let run = try Self.begun(&agent)
        let next = WatchID(rawValue: 101)
        let same = Self.effects(
            &agent,
            .ordered(.begin(next, Self.trigger, Self.source), by: Self.reign)
        )
        #expect(same.begins.isEmpty && same.ends.isEmpty)
        #expect(same.reports == [.state(next, .starting, problem: nil)])
        // The old number means nothing any more.
        #expect(Self.effects(&agent, .ordered(.end(Self.firstID), by: Self.reign)).ends.isEmpty)
        let other = Self.effects(
            &agent,
            .ordered(.begin(next, Self.trigger, .pipe("/other")), by: Self.reign)
        )
        #expect(other.begins.count == 1 && other.ends == [run])
        // Nothing more than it may, and nothing that it does not know.
        for source in [Self.source, nil] {
            let id = WatchID(rawValue: 102)
            let order = WatchOrder.begin(id, TriggerID(rawValue: 9), source)
            let refused = Self.effects(&agent, .ordered(order, by: Self.reign))
            #expect(refused.begins.isEmpty && refused.reports.count == 1)
        }
    }

    @Test func `under another reign nothing goes on`() throws {
        var agent = WatchAgent()
        let run = try Self.begun(&agent)
        let effects = Self.effects(
            &agent,
            .ordered(
                .begin(WatchID(rawValue: 9), Self.trigger, Self.source),
                by: Reign(rawValue: 2)
            )
        )
        #expect(effects.ends == [run] && effects.begins.count == 1)
    }

    // MARK: - Both

    /// Messages are lost, doubled and late, workers die, sources are replaced, coordinators follow
    /// each other: each occurrence of a wanted source is taken, none fires a trigger that has
    /// another source by then, and in the end one worker watches each.
    @Test(arguments: 0..<200 as Range<UInt64>)
    func `every occurrence is taken over links that lose`(seed: UInt64) {
        var run = WatchRun(seed: seed)
        for _ in 0..<400 { run.step() }
        run.settle()
    }

    @Test(arguments: 0..<50 as Range<UInt64>)
    func `what workers watch goes on under the next coordinator`(seed: UInt64) {
        var run = WatchRun(seed: seed)
        for _ in 0..<200 { run.step() }
        run.settle()
        run.expectContinuity()
    }
}

/// A coordinator, workers, and what they watch: sources that keep what has occurred until it is
/// taken, as a folder does.
private struct WatchRun {
    private struct Worker {
        var agent = WatchAgent()
        /// Sources that run, with the occurrence that each has reported.
        var runs: [WatchAgent.RunID: (source: WatchedSource, reported: String?)] = [:]
    }

    private static let reign = Reign(rawValue: 1)

    private var draw: SeededGenerator
    private var table: WatchTable
    private var wanted: [TriggerID: WatchedSource] = [:]
    private var workers: [Incarnation: Worker] = [:]
    private var lastWorker: UInt64 = 0
    private var toWorkers: [(Incarnation, WatchOrder)] = []
    private var toTable: [(Incarnation, WatchReport)] = []
    /// What has occurred and was not stored, by source, the oldest first.
    private var folders: [WatchedSource: [String]] = [:]
    private var stored: Set<String> = []
    private var last = 0
    private let seed: UInt64

    init(seed: UInt64) {
        self.seed = seed
        draw = SeededGenerator(seed: seed)
        table = WatchTable(firstID: WatchID(rawValue: 1), perWorker: 4)
        for _ in 0..<2 { addWorker() }
        for number in 1...6 as ClosedRange<UInt64> { want(TriggerID(rawValue: number)) }
    }

    private mutating func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &draw) }

    private mutating func anyTrigger() -> TriggerID {
        TriggerID(rawValue: UInt64(1 + below(6)))
    }

    private mutating func addWorker() {
        lastWorker += 1
        workers[Incarnation(rawValue: lastWorker)] = Worker()
        noteWorkers()
        tell(Incarnation(rawValue: lastWorker), .statementDue)
    }

    private var sorted: [Incarnation] { workers.keys.sorted { $0.rawValue < $1.rawValue } }

    private mutating func noteWorkers() {
        let all = sorted.map {
            WatchTable.Worker(incarnation: $0, name: "w\($0.rawValue)", labels: [])
        }
        tell(.workersChanged(all))
    }

    private mutating func tell(_ event: WatchTable.Event) {
        var effects = WatchTable.Effects()
        table.handle(event, into: &effects)
        toWorkers += effects.orders.map { ($0.worker, $0.order) }
    }

    private mutating func tell(_ worker: Incarnation, _ event: WatchAgent.Event) {
        var effects = WatchAgent.Effects()
        workers[worker]?.agent.handle(event, into: &effects)
        for run in effects.ends { workers[worker]?.runs[run] = nil }
        for (run, source) in effects.begins { workers[worker]?.runs[run] = (source, nil) }
        for run in effects.releases {
            #expect(workers[worker]?.runs[run]?.reported != nil, "released twice, seed \(seed)")
            workers[worker]?.runs[run]?.reported = nil
        }
        toTable += effects.reports.map { (worker, $0) }
    }

    // MARK: - Steps

    mutating func step() {
        switch below(20) {
        case 0..<3:
            if let source = wanted[anyTrigger()] { occur(in: source) }
        case 3 where below(2) == 0: want(anyTrigger())
        case 4 where below(4) == 0:
            let trigger = anyTrigger()
            wanted[trigger] = nil
            tell(.unwanted(trigger))
        case 5 where below(6) == 0: replaceCoordinator(settles: below(2) == 0)
        case 6 where below(4) == 0: killWorker()
        case 7:
            let worker = sorted[below(workers.count)]
            tell(worker, .statementDue)
        case 8..<12: runSources()
        case 12: news()
        default: deliver(loses: true)
        }
    }

    private mutating func occur(in source: WatchedSource) {
        last += 1
        folders[source, default: []].append("f\(last)")
    }

    /// A new source, or that of before.
    private mutating func want(_ trigger: TriggerID) {
        last += 1
        let source = WatchedSource.pipe("/lines/\(trigger.rawValue)/\(last)")
        wanted[trigger] = source
        tell(.wanted(trigger, source, [], isKept: false))
    }

    /// Its messages that are under way arrive late.
    private mutating func killWorker() {
        if workers.count > 1, let worker = sorted.first { workers[worker] = nil }
        addWorker()
    }

    /// What was under way to the old one is lost.
    private mutating func replaceCoordinator(settles: Bool) {
        last += 1
        table = WatchTable(firstID: WatchID(rawValue: UInt64(last) << 32), perWorker: 4)
        toTable = []
        noteWorkers()
        for (trigger, source) in wanted.sorted(by: { $0.key < $1.key }) {
            tell(.wanted(trigger, source, [], isKept: true))
        }
        for worker in sorted { tell(worker, .statementDue) }
        if settles { tell(.settled) }
    }

    /// Each source reports the oldest that it has not reported and that is not stored.
    private mutating func runSources() {
        for worker in sorted {
            guard let state = workers[worker] else { continue }
            for (run, entry) in state.runs.sorted(by: { $0.key.number < $1.key.number })
            where entry.reported == nil {
                tell(worker, .status(run, .observing))
                guard let next = folders[entry.source]?.first(where: { !stored.contains($0) }),
                    let made = Occurrence(identity: next, object: Array("{}".utf8))
                else { continue }
                workers[worker]?.runs[run]?.reported = next
                tell(worker, .occurred(run, made))
            }
        }
    }

    private mutating func news() {
        for (trigger, source) in wanted.sorted(by: { $0.key < $1.key }) {
            for case .occurred(let occurrence) in table.news(of: trigger) {
                let isOfSource = folders[source]?.contains(occurrence.identity) == true
                #expect(isOfSource, "fired by another source, seed \(seed)")
                // The trigger knows identities, so the same again has no effect.
                stored.insert(occurrence.identity)
                tell(.taken(trigger, identity: occurrence.identity))
            }
        }
    }

    private mutating func deliver(loses: Bool) {
        if !toWorkers.isEmpty {
            let late = loses && below(4) == 0 ? below(toWorkers.count) : 0
            let (worker, order) = toWorkers.remove(at: late)
            if loses, below(8) == 0 { toWorkers.append((worker, order)) }
            if !loses || below(4) > 0 { tell(worker, .ordered(order, by: Self.reign)) }
        }
        if !toTable.isEmpty {
            let late = loses && below(4) == 0 ? below(toTable.count) : 0
            let (worker, report) = toTable.remove(at: late)
            if loses, below(8) == 0 { toTable.append((worker, report)) }
            if !loses || below(4) > 0 { tell(.reported(worker, report)) }
        }
    }

    private mutating func deliverAll() {
        while !toWorkers.isEmpty || !toTable.isEmpty { deliver(loses: false) }
    }

    /// Nothing is lost any more: everything is taken, after a few statements.
    mutating func settle() {
        for number in 1...6 as ClosedRange<UInt64> where wanted[TriggerID(rawValue: number)] == nil
        {
            want(TriggerID(rawValue: number))
        }
        tell(.settled)
        for _ in 0..<60 + last {
            for worker in sorted { tell(worker, .statementDue) }
            deliverAll()
            runSources()
            deliverAll()
            news()
        }
        for source in wanted.values {
            let left = (folders[source] ?? []).filter { !stored.contains($0) }
            #expect(left.isEmpty, "\(source), seed \(seed)")
        }
        let watched = workers.values.flatMap { $0.runs.values.map(\.source) }
        #expect(watched.count == wanted.count, "seed \(seed)")
        #expect(Set(watched) == Set(wanted.values), "seed \(seed)")
    }

    /// The runs of all workers are the same after a change of the coordinator.
    mutating func expectContinuity() {
        func runs() -> Set<WatchAgent.RunID> { Set(workers.values.flatMap(\.runs.keys)) }
        let before = runs()
        replaceCoordinator(settles: false)
        deliverAll()
        tell(.settled)
        deliverAll()
        #expect(runs() == before, "seed \(seed)")
    }
}
