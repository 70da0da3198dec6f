import OperonCore
import OperonModel
import OperonTestKit
import Testing

/// Random demands on random workers, watched by a checker that knows only what was submitted, what
/// each worker offers and what it was given. What a run costs grows with the square of its
/// operations: each event tries all that wait.
struct PlacementCheckTests {
    @Test(arguments: [UInt64(1)])
    func `no worker is over, none is idle for the first in line, which starts within its bound`(
        seed: UInt64
    ) throws {
        var checker = PlacementChecker(seed: seed, ResourceTests.patient)
        try checker.run(operations: 600, workers: 20)

        #expect(checker.problem == nil)
        #expect(checker.finished + checker.impossible == 600)
        #expect(checker.boundsChecked > 20)
        #expect(checker.passed > 20)
    }

    @Test(arguments: [UInt64(1), 2, 3])
    func `the first in line of each queue starts within its bound`(seed: UInt64) throws {
        var checker = PlacementChecker(seed: seed, ResourceTests.patient, queues: 3)
        try checker.run(operations: 400, workers: 20)

        #expect(checker.problem == nil)
        #expect(checker.finished + checker.impossible == 400)
        #expect(checker.boundsChecked > 5)
    }

    @Test(arguments: [PlantedViolation.overbooksResources, .reservesNothing])
    func `the checker finds a scheduler that breaks the rules`(violation: PlantedViolation) throws {
        var configuration = ResourceTests.patient
        configuration.violation = violation
        var checker = PlacementChecker(seed: 1, configuration)
        try checker.run(operations: 1_000, workers: 20)

        #expect(checker.problem != nil)
    }
}

/// Drives a scheduler through random work, and checks each of its decisions by brute force.
struct PlacementChecker {
    private struct Running {
        let operation: Int
        let end: Int64
        let needs: [Int]
    }

    /// What an operation asks for, or a worker offers, in the order of `names`.
    private struct Asked {
        let amounts: [Int]
        let avoids: String?
        let seconds: Int64
    }

    private var bench: SchedulerBench
    private var random: SeededGenerator
    private var operations: [OperationDescription] = []
    private var asked: [Asked] = []
    private var offered: [[Int]] = []
    private var zones: [String] = []
    private var slots: [Int] = []
    /// By worker.
    private var running: [[Running]] = []
    private var events = 0
    /// Submitted and neither running nor finished, in order.
    private var waiting: [Int] = []
    /// The latest start of the operation that is first in line of each queue, in seconds.
    private var bounds: [(operation: Int, time: Int64)?]
    private var now: Int64 = 0
    private(set) var finished = 0
    /// Operations that none of the workers could ever run.
    private(set) var impossible = 0
    private(set) var boundsChecked = 0
    /// Starts while an operation before it waited.
    private(set) var passed = 0
    /// The first broken rule.
    private(set) var problem: String?

    /// - Parameter queues: How many queues share the operations.
    init(seed: UInt64, _ configuration: Scheduler.Configuration, queues: Int = 1) {
        bounds = Array(repeating: nil, count: queues)
        bench = SchedulerBench(configuration)
        // They cost much, and would notice some of it first: see `observe`.
        bench.checksInvariants = false
        random = SeededGenerator(seed: seed)
    }

    private mutating func pick(_ range: ClosedRange<Int>) -> Int {
        Int.random(in: range, using: &random)
    }

    mutating func run(operations count: Int, workers: Int) throws {
        for _ in 0..<workers { join() }
        for _ in 0..<count { draw() }
        var next = 0
        while problem == nil, next < count || running.contains(where: { !$0.isEmpty }) {
            // Bursts, so that much waits, and pauses, so that holes appear.
            let isIdle = running.allSatisfy(\.isEmpty)
            if next < count, isIdle || pick(0...2) == 0 {
                let burst = min(count, next + pick(1...40))
                try bench.submit(Array(operations[next..<burst]))
                waiting += next..<burst
                next = burst
            } else if let first = running.joined().map(\.end).min() {
                if first > now { bench.advance(by: .seconds(first - now)) }
                now = first
                let due = running.joined().filter { $0.end == first }.map(\.operation)
                for operation in due where problem == nil { finish(operation) }
            }
            observe()
        }
        impossible = waiting.count
        guard problem == nil else { return }
        for operation in waiting where !able(operation).isEmpty {
            problem = "\(operations[operation].name) never ran"
        }
    }

    private mutating func join() {
        var offer = WorkerOffer(resources: [.cpus(Double([2, 4, 8, 16][pick(0...3)]))])
        offer.resources["memory"] = 1 + pick(8...64)
        if pick(0...3) == 0 { offer.resources["gpus"] = pick(1...4) }
        if pick(0...3) == 0 { offer.resources["licences"] = pick(1...3) }
        zones.append(["a", "b", "c"][pick(0...2)])
        offer.set(WorkerLabel("zone", zones[zones.count - 1]))
        slots.append(pick(2...12))
        offered.append(Self.names.map { offer.resources[$0] ?? 0 })
        running.append([])
        bench.join(slots: UInt32(slots[slots.count - 1]), offer: offer)
    }

    private mutating func draw() {
        var operation = OperationDescription(name: "o\(operations.count)", work: .nothing)
        let seconds = pick(1...60)
        operation.expectedDuration = .seconds(seconds)
        if pick(0...2) > 0 { operation.resources["cpus"] = 500 * pick(1...(pick(1...16) * 2)) }
        if pick(0...2) == 0 { operation.resources["memory"] = pick(1...64) }
        if pick(0...7) == 0 { operation.resources["gpus"] = pick(1...4) }
        if pick(0...9) == 0 { operation.resources["licences"] = pick(1...3) }
        let avoids = pick(0...5) == 0 ? ["a", "b"][pick(0...1)] : nil
        if let avoids { operation.workers = [WorkerRequirement("zone", .noneOf([avoids]))] }
        operation.queue = "q\(queue(of: operations.count))"
        operations.append(operation)
        let amounts = Self.names.map { operation.resources[$0] ?? 0 }
        asked.append(Asked(amounts: amounts, avoids: avoids, seconds: Int64(seconds)))
    }

    private func queue(of operation: Int) -> Int { operation % bounds.count }

    private mutating func finish(_ operation: Int) {
        bench.finish(operations[operation].name)
        for worker in running.indices { running[worker].removeAll { $0.operation == operation } }
        finished += 1
        observe()
    }

    // MARK: - Checking

    /// Takes over what was started, and checks it.
    private mutating func observe() {
        for name in bench.granted { start(name) }
        bench.drain()
        events += 1
        if events.isMultiple(of: 200), bench.scheduler.configuration.violation == nil {
            problem = problem ?? bench.scheduler.violatedInvariant()
        }
        guard problem == nil else { return }
        checkFirst()
    }

    private mutating func start(_ name: String) {
        guard problem == nil, let operation = Int(name.dropFirst()) else { return }
        let worker = bench.attempt(name).worker
        guard able(operation).contains(worker) else {
            problem = "\(name) started on a worker that cannot run it"
            return
        }
        let one = asked[operation]
        running[worker].append(
            Running(operation: operation, end: now + one.seconds, needs: one.amounts)
        )
        if let place = waiting.firstIndex(of: operation) {
            if waiting[..<place].contains(where: { !operations[$0].resources.isEmpty }) {
                passed += 1
            }
            waiting.remove(at: place)
        }
        let (left, free) = room(of: worker, at: .min)
        if free < 0 || left.contains(where: { $0 < 0 }) {
            problem = "\(name) is one too many on worker \(worker)"
        }
        if let bound = bounds[queue(of: operation)], bound.operation == operation {
            boundsChecked += 1
            if now > bound.time {
                problem = "\(name) started at \(now), and was to start by \(bound.time)"
            }
            bounds[queue(of: operation)] = nil
        }
    }

    private mutating func checkFirst() {
        for number in bounds.indices { checkFirst(of: number) }
    }

    private mutating func checkFirst(of number: Int) {
        let line = waiting.filter { queue(of: $0) == number }
        guard let first = line.first(where: { !able($0).isEmpty }) else { return }
        let candidates = able(first)
        // With more queues, the room may be kept for the first in line of another one.
        if bounds.count == 1, candidates.contains(where: { fits(first, on: $0, at: .min) }) {
            problem = "\(operations[first].name) is first in line and has room, but waits"
        }
        let bound = bounds[number]
        if let bound, now > bound.time {
            problem = "\(operations[bound.operation].name) has not started by \(bound.time)"
        }
        // Operations that need only a slot reserve nothing.
        guard bound?.operation != first, !operations[first].resources.isEmpty else { return }
        let times = candidates.compactMap { worker in
            running[worker].map(\.end).filter { fits(first, on: worker, at: $0) }.min()
        }.sorted()
        // Each of the other queues may keep one worker.
        bounds[number] = times.dropFirst(bounds.count - 1).first.map { (first, $0) }
    }

    /// The workers that could run it if they had nothing else to do.
    private func able(_ operation: Int) -> [Int] {
        offered.indices.filter { worker in
            zones[worker] != asked[operation].avoids
                && zip(offered[worker], asked[operation].amounts).allSatisfy { $0 >= $1 }
        }
    }

    private static let names = ["cpus", "memory", "gpus", "licences"]

    /// What is left of each resource, and how many slots, once what ends by that time has ended.
    private func room(of worker: Int, at time: Int64) -> (left: [Int], free: Int) {
        var left = offered[worker]
        var free = slots[worker]
        for one in running[worker] where one.end > time {
            free -= 1
            for place in left.indices { left[place] -= one.needs[place] }
        }
        return (left, free)
    }

    private func fits(_ operation: Int, on worker: Int, at time: Int64) -> Bool {
        let (left, free) = room(of: worker, at: time)
        return free > 0 && zip(left, asked[operation].amounts).allSatisfy { $0 >= $1 }
    }
}
