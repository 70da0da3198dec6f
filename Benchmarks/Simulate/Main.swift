import ArgumentParser
import FoundationEssentials
import OperonCore
import OperonTestKit
import Synchronization

/// Runs seeds of the simulator until one fails.
@main
struct Simulate: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "simulate",
        abstract: "Run the cluster simulator over many seeds; a failing seed is printed."
    )

    @Option(help: "The first seed.")
    var from: UInt64 = 1

    @Option(help: "How many seeds.")
    var seeds: UInt64 = 10_000

    @Option(help: "Break this rule on purpose: some seed must then fail.")
    var violation: String?

    @Flag(help: "Break every rule on purpose, one after the other: each must fail for some seed.")
    var violations = false

    @Option(
        name: .customLong("check-every"),
        help: "Check the scheduler's state after every so many steps; every 61st seed, after each."
    )
    var checkedSteps = 32

    @Flag(help: "Ask after every event why each operation waits: every reason must be true.")
    var explain = false

    @Flag(help: "Print everything that happens. The seeds then run one after the other.")
    var trace = false

    @Flag(help: "Count which faults happened and which states were entered from which.")
    var coverage = false

    @Flag(help: "Print the fingerprint of every seed: equal for equal behaviour.")
    var hashes = false

    /// One seed in so many computes the rules after each step. A prime: what a seed draws depends
    /// on its remainders of 2, 3 and 4.
    private static let thoroughSeeds: UInt64 = 61
    /// How many seeds are kept in memory at once.
    private static let batchSeeds: UInt64 = 10_000
    /// With fewer seeds, some fault may never happen.
    private static let coveringSeeds: UInt64 = 300
    /// With fewer seeds, some reason may never be met.
    private static let explainingSeeds: UInt64 = 100

    /// Each rule must be missed by some seed when it is broken.
    private func breakEverything() async throws {
        let rules = PlantedViolation.allCases
        let noticed = await Self.parallel(rules.count) { index, thread in
            let seed = (from..<from + seeds).first { seed in
                SeedsUnderWay.begin(seed, thread: thread)
                // After each step: the core traps on a state that it was not meant to meet.
                var simulator = Simulator(seed: seed, violation: rules[index])
                return simulator.run() != nil
            }
            return (seed, false)
        }
        var unnoticed: [String] = []
        for (rule, seed) in zip(rules, noticed) {
            print("\(rule.rawValue): \(seed.map { "seed \($0)" } ?? "not noticed")")
            if seed == nil { unnoticed.append(rule.rawValue) }
        }
        guard unnoticed.isEmpty else {
            print("\(seeds) seeds did not notice \(unnoticed.joined(separator: ", "))")
            throw ExitCode.failure
        }
    }

    /// What the rules cost is most of a run that computes them after each step. Seeds are cheaper
    /// than steps: a state that breaks a rule is met again in others.
    private func interval(of seed: UInt64) -> Int {
        violation != nil || seed.isMultiple(of: Self.thoroughSeeds) ? 1 : checkedSteps
    }

    func validate() throws {
        guard seeds >= 1, !from.addingReportingOverflow(seeds).overflow else {
            throw ValidationError(
                "--seeds needs a number from 1 on, and --from one that is not too large"
            )
        }
        guard checkedSteps >= 1 else {
            throw ValidationError("--check-every needs a number of steps from 1 on")
        }
    }

    func run() async throws {
        SeedsUnderWay.printIfTrapped()
        if violations { return try await breakEverything() }
        var planted: PlantedViolation?
        if let violation {
            planted = PlantedViolation(rawValue: violation)
            guard planted != nil else {
                let known = PlantedViolation.allCases.map(\.rawValue).joined(separator: ", ")
                throw ValidationError("no rule “\(violation)”; there are: \(known)")
            }
        }
        var totals = Totals()
        var first = from
        while first < from + seeds {
            let count = min(Self.batchSeeds, from + seeds - first)
            for run in await runs(of: first, count, planted) { try add(run, to: &totals) }
            first += count
        }
        if coverage { print(totals.coverage.report) }
        try check(totals)
        print(
            "\(seeds) seeds from \(from): every rule held, \(totals.starts) operations started, "
                + "fingerprint \(String(totals.hash, radix: 16))"
        )
    }

    private struct Totals {
        var starts = 0
        var hash: UInt64 = 0
        var coverage = SimulatorCoverage()
        var reasons: Set<Scheduler.Reason.Kind> = []
    }

    /// The seeds up to the first that fails, in their order.
    private func runs(
        of first: UInt64,
        _ count: UInt64,
        _ violation: PlantedViolation?
    ) async -> [Run] {
        await Self.parallel(Int(count), cores: trace ? 1 : nil) { index, thread in
            let seed = first + UInt64(index)
            SeedsUnderWay.begin(seed, thread: thread)
            let steps = interval(of: seed)
            var run = Run(seed: seed, violation, checkedSteps: steps, explain, traces: trace)
            if run.broken != nil, steps > 1, !trace {
                // Again, to see which step broke it. If nothing is broken now, checking changes the
                // run, which is a defect as well.
                let closer = Run(seed: seed, violation, checkedSteps: 1, explain, traces: false)
                if closer.broken != nil { run = closer }
            }
            return (run, run.broken != nil)
        }
    }

    private func add(_ run: Run, to totals: inout Totals) throws {
        if let broken = run.broken {
            print("seed \(run.seed): \(broken)")
            let options = explain ? " --explain" : ""
            print("again: simulate --from \(run.seed) --seeds 1 --check-every 1\(options)")
            throw ExitCode.failure
        }
        totals.starts += run.starts
        totals.coverage.add(run.coverage)
        totals.reasons.formUnion(run.reasons)
        if hashes { print("\(run.seed) \(String(run.hash, radix: 16))") }
        totals.hash = (totals.hash &* 0x100_0000_01b3) ^ run.hash
    }

    /// What no seed has met was not tested.
    private func check(_ totals: Totals) throws {
        guard violation == nil else { return }
        let coverage = totals.coverage
        var unmet: [String] = []
        if seeds >= Self.coveringSeeds {
            unmet += SimulatorCoverage.Edge.allCases.filter { coverage.count($0) == 0 }
                .map { "no operation went \($0.rawValue)" }
            unmet += SimulatorCoverage.Fault.allCases.filter { coverage.count($0) == 0 }
                .map { "\($0.rawValue) never happened" }
        }
        if explain, seeds >= Self.explainingSeeds {
            // No simulated cluster is short of kinds, queues or bytes, or leaves on request, and
            // few operations wait for the rate of a key: those are tried on the bench.
            let rare: Set<Scheduler.Reason.Kind> = [
                .noWorkerForQueue, .dispatchedBytes, .leaving, .keyRate,
            ]
            unmet += Set(Scheduler.Reason.Kind.allCases).subtracting(totals.reasons)
                .subtracting(rare)
                .map { "nothing waited for \($0)" }.sorted()
        }
        guard unmet.isEmpty else {
            print(unmet.joined(separator: "\n"))
            throw ExitCode.failure
        }
    }

    /// What several threads change.
    private final class Shared: Sendable {
        let isStopped = Atomic(false)
        let next = Atomic(0)
    }

    /// The results for 0..<count, computed on all cores.
    ///
    /// - Parameter compute: Is given the number of its thread, from 0 on. Also says whether it is
    ///   enough. Those with lower numbers are computed all the same.
    private static func parallel<Result: Sendable>(
        _ count: Int,
        cores: Int? = nil,
        _ compute:
            @escaping @Sendable (_ index: Int, _ thread: Int) -> (
                result: Result, isEnough: Bool
            )
    ) async -> [Result] {
        let shared = Shared()
        let tasks = cores ?? ProcessInfo.processInfo.activeProcessorCount
        return await withTaskGroup(of: [(Int, Result)].self) { group in
            for thread in 0..<min(tasks, count) {
                group.addTask {
                    var own: [(Int, Result)] = []
                    // A number that was taken is computed.
                    while !shared.isStopped.load(ordering: .relaxed),
                        case let index = shared.next.add(1, ordering: .relaxed).oldValue,
                        index < count
                    {
                        let (result, isEnough) = compute(index, thread)
                        if isEnough { shared.isStopped.store(true, ordering: .relaxed) }
                        own.append((index, result))
                    }
                    return own
                }
            }
            var results = [Result?](repeating: nil, count: count)
            for await part in group { for (index, result) in part { results[index] = result } }
            return results.compactMap(\.self)
        }
    }
}

/// What a seed did.
private struct Run: Sendable {
    let seed: UInt64
    let broken: String?
    let starts: Int
    let hash: UInt64
    let coverage: SimulatorCoverage
    private(set) var reasons: Set<Scheduler.Reason.Kind> = []

    init(
        seed: UInt64,
        _ violation: PlantedViolation?,
        checkedSteps: Int,
        _ explains: Bool,
        traces: Bool
    ) {
        self.seed = seed
        var simulator = Simulator(seed: seed, violation: violation, checkedSteps: checkedSteps)
        if traces { simulator.trace = { print($0) } }
        let met = Mutex(reasons)
        if explains {
            simulator.inspector = { scheduler in
                met.withLock { $0.formUnion(scheduler.reasonKinds) }
                return scheduler.violatedExplanation()
            }
        }
        broken = simulator.run().map { "\($0)" }
        starts = simulator.ledger.starts
        hash = simulator.ledger.hash
        coverage = simulator.coverage
        reasons = met.withLock { $0 }
    }
}
