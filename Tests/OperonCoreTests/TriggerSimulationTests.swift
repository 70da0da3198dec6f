import OperonCore
import OperonModel
import OperonTestKit
import Testing

struct TriggerSimulationTests {
    @Test func `triggers that fire each minute fire at every tick of an hour, once`() {
        var bench = TriggerBench()
        let start = bench.moment.wall
        for number in 0..<60 {
            bench.add("t\(number)", .every(60))
            if number % 10 == 9 { bench.pass(.milliseconds(100)) }
        }
        bench.submitAll()
        var ticks: Set<String> = []
        var firings = 0
        while bench.moment.wall - start < .seconds(3_620) {
            let next = bench.table.nextDate() ?? bench.moment.wall
            bench.pass(max(next - bench.moment.wall, .zero))
            for submission in bench.submissions {
                ticks.insert("\(submission.firing.trigger) \(submission.event)")
                firings += 1
            }
            for graph in bench.submitAll() { bench.end(graph) }
        }
        #expect(firings == ticks.count)
        #expect(firings >= 3_600 && firings <= 3_660)
    }

    /// Clocks that jump both ways, crashes between any two effects, refusals, and repeated
    /// deliveries: no firing that was acknowledged is lost, and no identity is submitted twice.
    @Test(arguments: 0..<20 as Range<UInt64>)
    func `no firing is lost and none is submitted twice`(seed: UInt64) throws {
        var draw = SeededGenerator(seed: seed)
        var run = TriggerRun(seed: seed)
        try run.prepare()
        for _ in 0..<600 { try run.step(&draw) }
        try run.settle()
    }
}

/// A simulated coordinator with triggers that crashes.
private struct TriggerRun {
    var bench = TriggerBench()
    var ids: [TriggerID] = []
    /// Those whose sources hold what cannot be taken.
    var watched: [TriggerID] = []
    /// What their sources hold, the oldest first.
    var held: [TriggerID: [String]] = [:]
    /// Graphs by the identity of the firing, and those that have not ended.
    var submitted: [String: GraphID] = [:]
    var running: [GraphID] = []
    /// Occurrences that were acknowledged, by identity.
    var acknowledged: Set<String> = []
    var number = 0
    let seed: UInt64

    init(seed: UInt64) { self.seed = seed }

    mutating func prepare() throws {
        let overlaps = TriggerOverlap.allCases
        for (place, overlap) in overlaps.enumerated() {
            ids.append(
                bench.add("tick \(overlap)", .every(Int64(20 + 7 * place))) {
                    $0.policy.overlap = overlap
                    $0.policy.missed = MissedTicks.allCases[place % 3]
                }
            )
            ids.append(
                bench.add("event \(overlap)", .event) {
                    $0.policy.overlap = overlap
                    $0.policy.merge = EventMerge.allCases[place]
                    $0.policy.coalesce = place.isMultiple(of: 2) ? nil : .seconds(5)
                }
            )
        }
        for overlap in overlaps {
            let id = bench.add("watched \(overlap)", .watched(.pipe("/lines"))) {
                $0.policy.overlap = overlap
            }
            watched.append(id)
            held[id] = []
        }
        let cron = try CronExpression("*/2 * * * *")
        ids.append(bench.add("cron", .cron(CronSource(cron))))
    }

    /// Handles an event; only some of its records may be stored before the crash, and then nothing
    /// was acknowledged.
    private mutating func handle(
        _ event: TriggerTable.Event,
        _ draw: inout SeededGenerator,
        identity: String? = nil
    ) throws {
        var effects = TriggerTable.Effects()
        bench.table.handle(event, at: bench.moment, into: &effects)
        // A transaction is all or nothing.
        guard draw.next() % 25 > 0 else { return try bench.restart() }
        for record in effects.records { bench.keep(record) }
        bench.cancels += effects.cancels
        if let identity, case .accepted = effects.answer { acknowledged.insert(identity) }
        guard draw.next() % 25 > 0 else { return try bench.restart() }
        bench.submissions += effects.submissions
    }

    mutating func step(_ draw: inout SeededGenerator) throws {
        switch draw.next() % 20 {
        case 0..<4:
            let pause = Duration.milliseconds(Int64(draw.next() % 20_000))
            bench.moment.monotonic = bench.moment.monotonic + pause
            bench.moment.wall = bench.moment.wall + pause
            try handle(.timeReached, &draw)
        case 4:
            let jump = Int64(draw.next() % 400) - 200
            bench.moment.wall = bench.moment.wall + .seconds(jump)
            try handle(.timeReached, &draw)
        case 5..<9:
            let id = ids[2 * Int(draw.next() % 4) + 1]
            // A delivery may be repeated.
            if draw.next() % 4 > 0 { number += 1 }
            let identity = "n\(number)"
            let occurrence = TriggerTable.Occurrence(identity: identity, data: "1")
            try handle(.occurred(id, occurrence), &draw, identity: "\(id) \(identity)")
        case 9..<13: try submit(&draw)
        case 13, 14:
            guard !running.isEmpty else { return }
            let graph = running.remove(at: Int(draw.next() % UInt64(running.count)))
            try handle(.runEnded(graph, name: "g", round: 0, .succeeded), &draw)
            // The end is stored with the graph's own end, or comes again after the restart.
            if bench.table.runningGraphs.contains(graph) { running.append(graph) }
        case 16, 17: try watch(&draw)
        case 18:
            let all = ids + watched
            let id = all[Int(draw.next() % UInt64(all.count))]
            guard var definition = bench.definitions[id], let row = bench.stored[id] else { return }
            let overlaps = TriggerOverlap.allCases
            definition.policy.overlap = overlaps[Int(draw.next() % UInt64(overlaps.count))]
            if !definition.source.isTimer, definition.source.watched == nil {
                let merges = EventMerge.allCases
                definition.policy.merge = merges[Int(draw.next() % UInt64(merges.count))]
            }
            let before = bench.definitions[id]
            var trigger = row.trigger
            trigger.body = Array("\(number)/\(draw.next())".utf8)
            bench.definitions[id] = definition
            try handle(.replaced(definition, trigger), &draw)
            // After a crash it is as it was, unless it was stored.
            guard bench.stored[id]?.trigger.body != trigger.body else { return }
            bench.definitions[id] = before
            try bench.restart()
        default:
            let all = ids + watched
            let id = all[Int(draw.next() % UInt64(all.count))]
            let isSuspended = draw.next() % 2 == 0
            try handle(.suspensionRequested(id, isSuspended ? Suspension() : nil), &draw)
        }
        for graph in bench.cancels where running.contains(graph) {
            running.removeAll { $0 == graph }
            bench.handle(.runEnded(graph, name: "g", round: 0, .cancelled))
        }
        bench.cancels = []
    }

    /// A source reports the oldest of what it holds, until that is taken.
    private mutating func watch(_ draw: inout SeededGenerator) throws {
        let id = watched[Int(draw.next() % UInt64(watched.count))]
        if draw.next() % 2 == 0 {
            number += 1
            held[id]?.append("w\(number)")
        }
        guard let first = held[id]?.first else { return }
        let name = "\(id) \(first)"
        try handle(.occurred(id, TriggerTable.Occurrence(identity: first)), &draw, identity: name)
        // After a crash it reports what was not acknowledged again.
        if acknowledged.contains(name) { held[id]?.removeFirst() }
    }

    /// Returns whether a source has nothing left.
    private mutating func drain(_ id: TriggerID) -> Bool {
        while let first = held[id]?.first {
            bench.occur(id, first)
            switch bench.answer {
            case .accepted, .again: acknowledged.insert("\(id) \(first)")
            case .refused(.busy): return false
            case .refused, nil:
                Issue.record("\(first) was refused, seed \(seed)")
                return true
            }
            held[id]?.removeFirst()
        }
        return true
    }

    private mutating func submit(_ draw: inout SeededGenerator) throws {
        guard !bench.submissions.isEmpty else { return }
        let next = bench.submissions.removeFirst()
        guard bench.table.isSubmitting(next.firing) else { return }
        if draw.next() % 6 == 0 {
            let refusal: TriggerTable.SubmissionRefusal =
                draw.next() % 2 == 0 ? .lasting : .passing
            return try handle(.refused(next.firing, reason: "no", refusal), &draw)
        }
        let graph = try take(next)
        // The graph and the record of it are one transaction, but even if the record were lost, the
        // key would find the graph again.
        try handle(.submitted(next.firing, graph), &draw)
    }

    private mutating func take(_ next: TriggerTable.Submission) throws -> GraphID {
        if let known = bench.keys[next.idempotencyKey] { return known }
        let firing = try #require(bench.table.firing(next.firing))
        let identity = "\(next.firing.trigger) \(firing.identity)"
        let graph = GraphID(rawValue: bench.graphs)
        bench.graphs += 1
        #expect(submitted[identity] == nil, "\(identity) was submitted twice, seed \(seed)")
        submitted[identity] = graph
        bench.keys[next.idempotencyKey] = graph
        running.append(graph)
        return graph
    }

    /// Everything that was acknowledged ends up in a graph that was submitted, or was skipped.
    mutating func settle() throws {
        for id in ids + watched { bench.handle(.suspensionRequested(id, nil)) }
        for _ in 0..<400 {
            bench.pass(.seconds(300))
            while !bench.submissions.isEmpty {
                let next = bench.submissions.removeFirst()
                guard bench.table.isSubmitting(next.firing) else { continue }
                bench.handle(.submitted(next.firing, try take(next)))
            }
            for graph in bench.table.runningGraphs {
                bench.handle(.runEnded(graph, name: "g", round: 0, .succeeded))
            }
            bench.cancels = []
            var isDone = true
            for id in watched where !drain(id) { isDone = false }
            for id in ids + watched where !isTimer(id) {
                let rows = bench.table.firings(of: id, limit: 1_000)
                if !rows.allSatisfy(\.status.isFinal) { isDone = false }
            }
            if isDone { break }
        }
        for id in watched {
            #expect(held[id] == [], "seed \(seed)")
            let rows = bench.table.firings(of: id, limit: 1_000)
            #expect(rows.allSatisfy { $0.count == 1 && $0.status.name != "merged" })
        }
        for id in ids + watched where !isTimer(id) {
            let rows = bench.table.firings(of: id, limit: 1_000)
            let byNumber = Dictionary(uniqueKeysWithValues: rows.map { ($0.id.number, $0) })
            for row in rows where acknowledged.contains("\(id) \(row.identity)") {
                var last = row
                if case .merged(let into) = row.status { last = byNumber[into] ?? row }
                let isDecided =
                    last.status == .skipped || last.status == .refused
                    || last.status.graph != nil
                #expect(isDecided, "\(row.id) is \(row.status), seed \(seed)")
            }
        }
    }

    private func isTimer(_ id: TriggerID) -> Bool {
        bench.definitions[id]?.source.isTimer ?? false
    }
}
