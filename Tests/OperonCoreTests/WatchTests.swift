import OperonCore
import OperonModel
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
        // Room that comes is used, at the next statement.
        _ = Self.effects(
            &table,
            .unwanted(Self.trigger),
            .reported(Incarnation(rawValue: 1), .holds([]))
        )
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
        let worker = Incarnation(rawValue: 2)
        _ = Self.effects(
            &table,
            .reported(worker, .state(second, .waiting, problem: problem))
        )
        #expect(table.watcher(of: Self.trigger) == "w2")
        // Later the first one may have room again.
        let held = HeldWatch(watch: second, trigger: Self.trigger, state: .waiting)
        _ = Self.effects(&table, .reported(worker, .holds([held])))
        #expect(table.watcher(of: Self.trigger) == "w1")
    }

    @Test func `a worker that cannot watch it for good is left, or begins again later`() {
        var table = Self.table([Self.worker(1)])
        _ = Self.effects(&table, Self.wanted())
        let worker = Incarnation(rawValue: 1)
        let problem = TriggerSourceError(.invalid, "/lines is no pipe")
        _ = Self.effects(
            &table,
            .reported(worker, .state(Self.firstID, .ended, problem: problem))
        )
        #expect(table.news(of: Self.trigger) == [.waiting(problem)])
        let held = HeldWatch(watch: Self.firstID, trigger: Self.trigger, state: .ended)
        let effects = Self.effects(&table, .reported(worker, .holds([held])))
        let next = WatchID(rawValue: 101)
        #expect(
            effects.orders.map(\.order) == [
                .end(Self.firstID), .begin(next, Self.trigger, Self.source),
            ]
        )
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

    @Test func `a worker that states a watch before it is wanted keeps it`() {
        var table = WatchTable(firstID: Self.firstID)
        let held = HeldWatch(
            watch: WatchID(rawValue: 7),
            trigger: Self.trigger,
            state: .observing
        )
        let before = Self.effects(
            &table,
            .workersChanged([Self.worker(1), Self.worker(2)]),
            .reported(Incarnation(rawValue: 2), .holds([held])),
            .reported(Incarnation(rawValue: 1), .holds([]))
        )
        #expect(before.orders.isEmpty)
        _ = Self.effects(&table, Self.wanted(isKept: true))
        #expect(table.watcher(of: Self.trigger) == "w2")
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
        var table = Self.table([Self.worker(1)], heldBytesMax: 8 * Occurrence.eventBytesMax)
        let other = TriggerID(rawValue: 2)
        _ = Self.effects(&table, Self.wanted(), Self.wanted(other))
        let worker = Incarnation(rawValue: 1)
        let second = WatchID(rawValue: 101)
        let event = Array("{\(String(repeating: " ", count: Occurrence.eventBytesMax - 2))}".utf8)
        let a = try #require(Occurrence(identity: "a", object: event))
        let b = try Self.occurrence("b")
        _ = Self.effects(
            &table,
            .reported(worker, .occurred(Self.firstID, a)),
            .reported(worker, .occurred(second, b))
        )
        #expect(table.news(of: Self.trigger) == [.occurred(a)])
        #expect(table.news(of: other).isEmpty)
        // It is asked for again when there is room.
        let held = HeldWatch(watch: second, trigger: other, state: .starting, occurrence: "b")
        let first = HeldWatch(watch: Self.firstID, trigger: Self.trigger, state: .starting)
        let none = Self.effects(&table, .reported(worker, .holds([first, held])))
        #expect(none.orders.isEmpty)
        _ = Self.effects(&table, .taken(Self.trigger, identity: "a"))
        let effects = Self.effects(&table, .reported(worker, .holds([first, held])))
        #expect(effects.orders.map(\.order) == [.again(second)])
        _ = Self.effects(&table, .reported(worker, .occurred(second, b)))
        #expect(table.news(of: other) == [.occurred(b)])
    }

    @Test(arguments: [WatchedSource.pipe("/lines"), .process(.identity("boot:1:1"))])
    func `only a process ends, after it has fired the trigger`(source: WatchedSource) throws {
        var table = Self.table([Self.worker(1)])
        let worker = Incarnation(rawValue: 1)
        let end = WatchTable.Event.reported(
            worker,
            .state(Self.firstID, .ended, problem: nil)
        )
        _ = Self.effects(&table, .wanted(Self.trigger, source, [], isKept: false), end)
        guard case .waiting = table.news(of: Self.trigger).first else {
            Issue.record("it has ended")
            return
        }
        let occurrence = try Self.occurrence("exit:1")
        _ = Self.effects(
            &table,
            .reported(worker, .occurred(Self.firstID, occurrence)),
            .taken(Self.trigger, identity: "exit:1"),
            end
        )
        #expect(table.news(of: Self.trigger).contains(.ended) == source.endsByItself)
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
}
