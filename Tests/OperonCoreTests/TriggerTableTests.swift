import OperonCore
import OperonModel
import Testing

struct TriggerTableTests {
    @Test func `an interval submits once at each tick`() {
        var bench = TriggerBench()
        let id = bench.add("tick", .every(60))

        bench.pass(.seconds(59))
        #expect(bench.submissions.isEmpty)
        bench.pass(.seconds(1))
        #expect(bench.submitAll().count == 1)
        bench.handle(.timeReached)
        bench.pass(.seconds(59))
        #expect(bench.submissions.isEmpty)
        bench.pass(.seconds(1))
        #expect(bench.submitAll().count == 1)
        #expect(bench.statuses(id) == ["submitted", "submitted"])
    }

    @Test func `triggers within one another's leeway fire together`() {
        var bench = TriggerBench()
        bench.add("a", .every(60, leeway: .seconds(20)))
        bench.pass(.seconds(10))
        bench.add("b", .every(60))

        #expect(bench.table.nextDate() == bench.moment.wall + .seconds(60))
        bench.pass(.seconds(60))
        #expect(bench.submitAll().count == 2)
    }

    @Test(arguments: [(MissedTicks.skip, 0), (.once, 1), (.all, 5)])
    func `ticks that came while the trigger was suspended are missed`(
        missed: MissedTicks,
        count: Int
    ) {
        var bench = TriggerBench()
        let id = bench.add("tick", .every(600)) { $0.policy.missed = missed }
        bench.handle(.suspensionRequested(id, Suspension(reason: "test")))

        bench.pass(.seconds(5 * 600 + 300))
        #expect(bench.submissions.isEmpty)
        bench.handle(.suspensionRequested(id, nil))
        #expect(bench.submitAll().count == count)
        bench.pass(.seconds(300))
        #expect(bench.submitAll().count == 1, "the next tick comes on time")
    }

    @Test func `a suspension ends at its time`() {
        var bench = TriggerBench()
        let id = bench.add("tick", .every(60)) { $0.policy.missed = .skip }
        let until = bench.moment.wall + .seconds(90)
        bench.handle(.suspensionRequested(id, Suspension(until: until)))

        bench.pass(.seconds(60))
        #expect(bench.submissions.isEmpty && bench.table.nextDate() == until)
        bench.pass(.seconds(60))
        #expect(bench.submitAll().count == 1)
    }

    @Test func `changes are told once, and a tick is none`() throws {
        var bench = TriggerBench()
        let tick = bench.add("tick", .every(60))
        bench.pass(.seconds(60))
        let until = bench.moment.wall + .seconds(90)
        let lunch = Suspension(by: "ann", reason: "lunch", until: until)
        bench.handle(.suspensionRequested(tick, lunch))
        bench.handle(.suspensionRequested(tick, lunch))
        bench.pass(.seconds(120))
        #expect(bench.submitAll().count == 2)

        let fire = bench.add("fire", .event)
        bench.occur(fire, "a")
        bench.occur(fire, "a")
        let definition = try #require(bench.definitions[fire])
        bench.handle(.replaced(definition, try #require(bench.stored[fire]).trigger))
        bench.handle(.removed(fire))
        bench.handle(.removed(fire))
        #expect(
            bench.told == [
                "triggerAdded tick", "triggerSuspended tick by ann: lunch", "triggerResumed tick",
                "triggerAdded fire", "triggerFired fire/1", "triggerReplaced fire",
                "triggerRemoved fire",
            ]
        )
    }

    @Test func `a tick that fired ahead of a clock does not fire again when it is set back`() throws
    {
        var bench = TriggerBench()
        bench.add("tick", .every(60))
        bench.pass(.seconds(60))
        bench.setClock(by: .seconds(120))
        #expect(bench.submitAll().count == 2, "one tick, and one for the two missed ones")

        bench.setClock(by: .seconds(-150))
        try bench.restart()
        #expect(bench.submitAll().isEmpty)
        bench.pass(.seconds(30))
        #expect(bench.submitAll().isEmpty, "the first tick has fired")
        bench.pass(.seconds(60))
        #expect(bench.submitAll().count == 1, "the second one had only been passed over")
        bench.pass(.seconds(60))
        #expect(bench.submitAll().isEmpty, "the third one has fired")
        bench.pass(.seconds(60))
        #expect(bench.submitAll().count == 1)
    }

    @Test func `a clock that was a year ahead for a moment stops no trigger`() throws {
        var bench = TriggerBench()
        bench.add("tick", .every(60))
        bench.setClock(by: .seconds(365 * 86_400))
        bench.submitAll()
        try bench.restart()
        bench.setClock(by: .seconds(-365 * 86_400))
        bench.pass(.seconds(60))
        #expect(bench.submitAll().count == 1)
    }

    @Test func `a firing is submitted again after a restart, with the same key`() throws {
        var bench = TriggerBench()
        let id = bench.add("fire", .event)
        bench.occur(id, "a", "1")
        let key = bench.submissions.first?.idempotencyKey

        try bench.restart()
        #expect(bench.submissions.map(\.idempotencyKey) == [key])
        #expect(bench.submissions.first?.event.contains("\"data\":1}") == true)
        bench.submitAll()
        try bench.restart()
        #expect(bench.submissions.isEmpty)
        bench.occur(id, "a", "1")
        #expect(bench.answer == .again(FiringID(id, 1)))
    }

    @Test func `an identity stays known for the last two hundred firings`() {
        var bench = TriggerBench()
        let id = bench.add("fire", .event)
        for number in 0...Limits.triggerFiringsKept {
            bench.occur(id, "\(number)")
            for graph in bench.submitAll() { bench.end(graph) }
        }
        bench.occur(id, "1")
        #expect(bench.answer == .again(FiringID(id, 2)))
        bench.occur(id, "0")
        #expect(bench.answer == .accepted(FiringID(id, 202)))
        #expect(bench.stored[id]?.firings.count == Limits.triggerFiringsKept)
    }

    @Test func `overlap skip submits nothing while a run has not ended`() {
        var bench = TriggerBench()
        let id = bench.add("fire", .event) { $0.policy.overlap = .skip }
        bench.occur(id, "a")
        let graph = bench.submitAll()[0]
        bench.occur(id, "b")
        #expect(bench.submitAll().isEmpty && bench.statuses(id) == ["submitted", "skipped"])
        bench.end(graph)
        bench.occur(id, "c")
        #expect(bench.submitAll().count == 1)
    }

    @Test(arguments: [
        (EventMerge.add, "7"), (.or, "7"), (.replace, "4"), (.collect, "[1,2,4]"),
    ])
    func `overlap queue merges what fires during a run`(merge: EventMerge, data: String) throws {
        var bench = TriggerBench()
        let id = bench.add("fire", .event) {
            $0.policy.overlap = .queue
            $0.policy.merge = merge
        }
        bench.occur(id, "first", "16")
        let graph = bench.submitAll()[0]
        for (identity, data) in [("a", "1"), ("b", "2"), ("c", "4")] {
            bench.occur(id, identity, data)
        }
        #expect(bench.submitAll().isEmpty)
        #expect(bench.statuses(id) == ["submitted", "waiting", "merged", "merged"])

        try bench.restart()
        #expect(bench.submissions.isEmpty)
        bench.end(graph)
        #expect(bench.submissions.first?.event.hasSuffix("\"count\":3,\"data\":\(data)}") == true)
        bench.occur(id, "b", "2")
        #expect(bench.answer == .again(FiringID(id, 3)))
    }

    @Test func `what a watched source reports is not merged, but waits where it is`() throws {
        var bench = TriggerBench()
        let id = bench.add("lines", .watched(.pipe("/lines"))) { $0.policy.overlap = .queue }
        bench.occur(id, "a")
        let graph = bench.submitAll()[0]
        bench.occur(id, "b")
        #expect(bench.answer == .accepted(FiringID(id, 2)))
        bench.occur(id, "c")
        #expect(bench.answer == .refused(.busy) && bench.statuses(id) == ["submitted", "waiting"])
        bench.occur(id, "b")
        #expect(bench.answer == .again(FiringID(id, 2)))
        bench.end(graph)
        bench.occur(id, "c")
        #expect(bench.answer == .accepted(FiringID(id, 3)))
    }

    @Test func `a replaced trigger keeps its firings, and ticks by its new schedule`() throws {
        var bench = TriggerBench()
        let id = bench.add("t", .event)
        bench.occur(id, "a")
        bench.occur(id, "b")
        bench.submitAll()
        let graph = TriggerGraph(file: "h.yaml", contentType: "application/yaml", text: "")
        let description = TriggerDescription(name: "t", source: .every(60), graph: graph)
        let definition = TriggerTable.Definition(
            id,
            description,
            zone: .utc,
            addedAt: bench.moment.wall
        )
        bench.definitions[id] = definition
        let row = StoredTrigger(id: id, name: "t", addedAt: bench.moment.wall, body: [1])
        bench.handle(.replaced(definition, row))
        #expect(bench.statuses(id) == ["submitted", "submitted"])
        bench.occur(id, "b")
        #expect(bench.answer == .again(FiringID(id, 2)))
        bench.pass(.seconds(60))
        try bench.restart()
        #expect(bench.statuses(id) == ["submitted", "submitted", "accepted"])
        #expect(bench.stored[id]?.trigger.body == [1])
    }

    /// After a restart the source looks at the files anew.
    @Test func `a trigger on files knows each of twenty thousand files again`() throws {
        var bench = TriggerBench()
        let id = bench.add("files", .watched(.file(FileSource(path: "/in", pattern: "*"))))
        for number in 0..<20_000 {
            bench.occur(id, "file:written:\(number):1.0:a")
            for graph in bench.submitAll() { bench.end(graph) }
            bench.keys = [:]
        }
        try bench.restart()
        for number in stride(from: 0, to: 20_000, by: 97) {
            bench.occur(id, "file:written:\(number):1.0:a")
            #expect(bench.answer == .again(FiringID(id, UInt64(number + 1))))
        }
    }

    @Test func `a file that is written again and again costs the other files nothing`() throws {
        var bench = TriggerBench()
        let id = bench.add("files", .watched(.file(FileSource(path: "/in", pattern: "*"))))
        func fire(_ identity: String) {
            bench.occur(id, identity)
            for graph in bench.submitAll() { bench.end(graph) }
        }
        fire("file:written:1:1.0:quiet")
        for time in 0..<1_000 { fire("file:written:2:\(time).0:busy") }
        #expect(bench.stored[id]?.firings.count ?? 0 < 300)
        try bench.restart()
        fire("file:written:1:1.0:quiet")
        #expect(bench.answer == .again(FiringID(id, 1)))
    }

    @Test(arguments: [
        (nil, EventMerge.collect, "[1,2]"), (EventMerge.add, .collect, "[1,2]"),
        (.collect, .replace, "[1]"), (.add, .replace, "1"),
    ])
    func `a replaced trigger loses no data of the firing that waits`(
        before: EventMerge?,
        after: EventMerge,
        data: String
    ) throws {
        var bench = TriggerBench()
        let id = bench.add("t", .event) { $0.policy.merge = before }
        bench.handle(.suspensionRequested(id, Suspension()))
        bench.occur(id, "a", "1")
        var description = TriggerDescription(
            name: "t",
            source: .event,
            graph: TriggerGraph(file: "g.yaml", contentType: "application/yaml", text: "")
        )
        description.policy.merge = after
        let definition = TriggerTable.Definition(
            id,
            description,
            zone: .utc,
            addedAt: bench.moment.wall
        )
        let row = StoredTrigger(id: id, name: "t", addedAt: bench.moment.wall, body: [])
        bench.handle(.replaced(definition, row))
        bench.occur(id, "b", "2")
        bench.handle(.suspensionRequested(id, nil))
        #expect(bench.submissions.first?.event.hasSuffix("\"data\":\(data)}") == true)
    }

    @Test func `a trigger that was suspended for refusals goes on when it is replaced`() {
        var bench = TriggerBench()
        let id = bench.add("t", .event)
        for number in 0..<3 {
            bench.occur(id, "\(number)")
            for _ in 0..<10 {
                bench.pass(.seconds(300))
                guard let next = bench.submissions.popLast() else { continue }
                bench.handle(.refused(next.firing, reason: "no", .lasting))
            }
        }
        #expect(bench.table.summary(of: id, at: bench.moment.wall)?.status == .suspended)
        guard let definition = bench.definitions[id], let row = bench.stored[id] else { return }
        bench.handle(.replaced(definition, row.trigger))
        #expect(bench.table.summary(of: id, at: bench.moment.wall)?.status == .active)
        #expect(bench.told.suffix(2) == ["triggerReplaced t", "triggerResumed t"])
    }

    @Test func `overlap cancelRunning cancels the run and submits when it has ended`() {
        var bench = TriggerBench()
        let id = bench.add("fire", .event) { $0.policy.overlap = .cancelRunning }
        bench.occur(id, "a")
        let graph = bench.submitAll()[0]
        bench.occur(id, "b")
        #expect(bench.cancels == [graph] && bench.submitAll().isEmpty)
        bench.end(graph, .cancelled)
        #expect(bench.submitAll().count == 1)
    }

    @Test func `what occurs within the window is one firing`() throws {
        var bench = TriggerBench()
        let id = bench.add("fire", .event) {
            $0.policy.coalesce = .seconds(10)
            $0.policy.merge = .add
        }
        bench.occur(id, "a", "1")
        bench.pass(.seconds(9))
        bench.occur(id, "b", "2")
        #expect(bench.submissions.isEmpty)
        #expect(bench.table.nextWake() == bench.moment.monotonic + .seconds(1))
        bench.pass(.seconds(1))
        #expect(bench.submissions.first?.event.hasSuffix("\"data\":3}") == true)
    }

    @Test func `data that cannot be merged are refused, and nothing changes`() {
        var bench = TriggerBench()
        let id = bench.add("fire", .event) { $0.policy.merge = .add }
        bench.handle(.suspensionRequested(id, Suspension()))
        for data in ["", "\"x\"", "1.5", "9223372036854775808", "+1"] {
            bench.occur(id, data, data)
            guard case .refused(.data) = bench.answer else {
                Issue.record("“\(data)” was taken")
                continue
            }
        }
        bench.occur(id, "max", "9223372036854775807")
        bench.occur(id, "more", "1")
        #expect(bench.answer == .refused(.data("the sum does not fit into 64 bits")))
        #expect(bench.stored[id]?.firings.count == 1)
    }

    @Test func `a trigger stops at its limit and at its end`() {
        var bench = TriggerBench()
        let id = bench.add("fire", .event) { $0.policy.limit = 2 }
        for identity in ["a", "b", "c"] { bench.occur(id, identity) }
        #expect(bench.answer == .refused(.ended))
        let end = bench.moment.wall + .seconds(150)
        bench.add("tick", .every(60)) { $0.policy.until = end }
        bench.submitAll()
        for _ in 0..<5 { bench.pass(.seconds(60)) }
        #expect(bench.submitAll().count == 2, "the ticks after one and two minutes")
        #expect(bench.table.nextDate() == nil)
    }

    @Test func `a refused firing is tried again with pauses, then given up`() {
        var bench = TriggerBench()
        let id = bench.add("fire", .event)
        for identity in ["a", "b", "c", "d"] { bench.occur(id, identity) }
        for place in 0..<Limits.triggerRefusedMax {
            for number in 1...Limits.triggerRefusalsMax {
                #expect(bench.submissions.count == 1, "try \(number)")
                let next = bench.submissions.removeFirst()
                #expect(next.firing.number == UInt64(place + 1))
                bench.handle(.refused(next.firing, reason: "no such file", .lasting))
                guard number < Limits.triggerRefusalsMax else { continue }
                let pause = Duration.seconds(min(300, 1 << (number - 1)))
                #expect(bench.table.nextWake() == bench.moment.monotonic + pause)
                bench.pass(.seconds(300))
            }
        }
        #expect(bench.statuses(id) == ["refused", "refused", "refused", "accepted"])
        let summary = bench.table.summary(of: id, at: bench.moment.wall)
        #expect(summary?.status == .suspended)
        #expect(summary?.suspension?.reason == "3 firings in a row were refused: no such file")
        #expect(bench.table.nextWake() == nil && bench.submissions.isEmpty)
        let told = "triggerSuspended fire by operon: 3 firings in a row were refused: no such file"
        #expect(bench.told.last == told)

        bench.handle(.suspensionRequested(id, nil))
        #expect(bench.submitAll().count == 1, "what was not tried is not lost")
    }

    @Test func `what the event is to blame for is given up at once, and suspends nothing`() {
        var bench = TriggerBench()
        let id = bench.add("fire", .event)
        for number in 0..<2 * Limits.triggerRefusedMax {
            bench.occur(id, "\(number)")
            let next = bench.submissions.removeFirst()
            bench.handle(.refused(next.firing, reason: "it is hostile", .ofEvent))
            let last = bench.table.firing(FiringID(id, UInt64(number + 1)))
            #expect(last?.status == .refused && last?.reason == "it is hostile")
        }
        #expect(bench.table.nextWake() == nil && bench.submissions.isEmpty)
        bench.occur(id, "good")
        #expect(bench.submitAll().count == 1)
        #expect(bench.table.summary(of: id, at: bench.moment.wall)?.status == .active)
    }

    @Test func `a trigger that is removed while a firing collects comes to its end`() {
        var bench = TriggerBench()
        let id = bench.add("fire", .event) {
            $0.policy.coalesce = .seconds(5)
            $0.onRemove = $0.graph
        }
        bench.occur(id, "a")
        bench.handle(.removed(id))
        bench.pass(.seconds(10))
        #expect(bench.table.nextWake() == nil)
        #expect(bench.submitAll().count == 1 && bench.table.count == 0)
    }

    @Test func `a look at ticks that have all fired comes to its end`() {
        var bench = TriggerBench()
        let id = bench.add("tick", .every(60))
        bench.pass(.seconds(60))
        bench.submitAll()
        bench.setClock(by: .seconds(-50))
        bench.handle(.suspensionRequested(id, Suspension()))
        bench.handle(.suspensionRequested(id, nil))
        bench.pass(.seconds(55))
        #expect(bench.submitAll().isEmpty)
        #expect(bench.table.nextDate() == bench.moment.wall + .seconds(55))
    }

    @Test func `a passing refusal never suspends`() {
        var bench = TriggerBench()
        let id = bench.add("fire", .event)
        bench.occur(id, "a")
        for _ in 0..<30 {
            let next = bench.submissions.removeFirst()
            bench.handle(.refused(next.firing, reason: "the disk is full", .passing))
            bench.pass(.seconds(300))
        }
        #expect(bench.submitAll().count == 1)
    }

    @Test func `the end of a graph of a name fires once for each round`() {
        var bench = TriggerBench()
        let source = GraphSource(name: "build", outcomes: [.failed, .cancelled])
        let id = bench.add("after", .graph(source))
        let graph = GraphID(rawValue: 1_000)
        bench.handle(.runEnded(graph, name: "build", round: 0, .succeeded))
        bench.handle(.runEnded(graph, name: "other", round: 0, .failed))
        #expect(bench.submissions.isEmpty)
        bench.handle(.runEnded(graph, name: "build", round: 1, .failed))
        bench.handle(.runEnded(graph, name: "build", round: 1, .failed))
        bench.handle(.runEnded(graph, name: "build", round: 2, .failed))
        #expect(bench.submitAll().count == 2)
        #expect(bench.statuses(id).count == 2)
    }

    @Test func `a removed trigger submits its last graph and nothing else`() throws {
        var bench = TriggerBench()
        let id = bench.add("tick", .every(60)) { $0.onRemove = $0.graph }
        bench.pass(.seconds(60))
        bench.handle(.removed(id))
        #expect(bench.table.id(of: "tick") == nil)
        try bench.restart()
        #expect(bench.submissions.map(\.isLast) == [true])
        bench.pass(.seconds(600))
        #expect(bench.submitAll().count == 1)
        #expect(bench.stored.isEmpty && bench.table.count == 0)
    }

    @Test func `a store with rows that contradict one another is refused`() throws {
        var bench = TriggerBench()
        let id = bench.add("fire", .event)
        bench.occur(id, "a")
        bench.occur(id, "b")
        var row = try #require(bench.stored[id])
        row.firings[1].identity = "a"
        bench.stored[id] = row
        #expect(throws: RestoreError.self) { try bench.restart() }
    }
}
