import OperonCore
import OperonModel
import OperonTestKit
import Testing

/// The coordinator's decisions about watches and the worker's, over links that lose.
struct WatchConvergenceTests {
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
        // Workers may be heard before all triggers are restored, or after that.
        let early = sorted.filter { _ in below(2) == 0 }
        for worker in early { tell(worker, .statementDue) }
        if below(2) == 0 { deliverAll() }
        for (trigger, source) in wanted.sorted(by: { $0.key < $1.key }) {
            tell(.wanted(trigger, source, [], isKept: true))
        }
        for worker in sorted where !early.contains(worker) { tell(worker, .statementDue) }
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
