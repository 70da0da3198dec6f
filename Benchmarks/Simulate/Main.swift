import ArgumentParser
import OperonCore
import OperonTestKit

/// Runs seeds of the simulator until one fails.
@main
struct Simulate: ParsableCommand {
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

    @Flag(help: "Print everything that happens.")
    var trace = false

    @Flag(help: "Count which faults happened and which states were entered from which.")
    var coverage = false

    @Flag(help: "Print the fingerprint of every seed: equal for equal behaviour.")
    var hashes = false

    /// A rule that nobody misses is none.
    private func breakEverything() throws {
        var unnoticed: [String] = []
        for violation in PlantedViolation.allCases {
            let seed = (from..<from + seeds).first { seed in
                var simulator = Simulator(seed: seed, violation: violation)
                return simulator.run() != nil
            }
            print("\(violation.rawValue): \(seed.map { "seed \($0)" } ?? "not noticed")")
            if seed == nil { unnoticed.append(violation.rawValue) }
        }
        guard unnoticed.isEmpty else {
            print("\(seeds) seeds did not notice \(unnoticed.joined(separator: ", "))")
            throw ExitCode.failure
        }
    }

    func run() throws {
        if violations { return try breakEverything() }
        var planted: PlantedViolation?
        if let violation {
            planted = PlantedViolation(rawValue: violation)
            guard planted != nil else {
                let known = PlantedViolation.allCases.map(\.rawValue).joined(separator: ", ")
                throw ValidationError("no rule “\(violation)”; there are: \(known)")
            }
        }
        var starts = 0
        var hash: UInt64 = 0
        var coverage = SimulatorCoverage()
        for seed in from..<from + seeds {
            var simulator = Simulator(seed: seed, violation: planted)
            if trace { simulator.trace = { print($0) } }
            if let broken = simulator.run() {
                print("seed \(seed): \(broken)")
                print("again: simulate --from \(seed) --seeds 1")
                throw ExitCode.failure
            }
            starts += simulator.ledger.starts
            coverage.add(simulator.coverage)
            if hashes { print("\(seed) \(String(simulator.ledger.hash, radix: 16))") }
            hash = (hash &* 0x100_0000_01b3) ^ simulator.ledger.hash
        }
        if self.coverage { print(coverage.report) }
        print(
            "\(seeds) seeds from \(from): every rule held, \(starts) operations started, "
                + "fingerprint \(String(hash, radix: 16))"
        )
    }
}
