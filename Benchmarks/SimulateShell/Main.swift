import ArgumentParser

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Runs seeds of the simulator with the coordinator's service in it until one fails.
@main
struct SimulateShell: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "simulate-shell",
        abstract: "Run the coordinator's service in a simulated cluster over many seeds."
    )

    @Option(help: "The first seed.")
    var from: UInt64 = 1

    @Option(help: "How many seeds.")
    var seeds: UInt64 = 1_000

    @Option(help: "Break this rule on purpose: some seed must then fail.")
    var violation: BrokenRule?

    @Flag(help: "Break every rule on purpose, one after the other: each must fail for some seed.")
    var violations = false

    @Flag(help: "Print everything that happens.")
    var trace = false

    func validate() throws {
        guard seeds >= 1, !from.addingReportingOverflow(seeds).overflow else {
            throw ValidationError(
                "--seeds needs a number from 1 on, and --from one that is not too large"
            )
        }
    }

    func run() throws {
        hashAlike()
        JobQueue.install()
        guard !violations else { return try breakEverything() }
        var starts = 0
        var hash: UInt64 = 0
        for seed in from..<from + seeds {
            let simulation = simulation(of: seed, violation)
            if let broken = simulation.run() {
                print("seed \(seed): \(broken)")
                let option = violation.map { " --violation \($0.name)" } ?? ""
                print("again: scripts/simulate --shell --from \(seed) --seeds 1\(option) --trace")
                throw ExitCode.failure
            }
            starts += simulation.ledger.starts
            hash = (hash &* 0x100_0000_01b3) ^ simulation.ledger.hash
        }
        print(
            "\(seeds) seeds from \(from): every rule held, \(starts) operations started, "
                + "fingerprint \(String(hash, radix: 16))"
        )
    }

    /// Dictionaries of the product may have any order. In the simulator, each run has the same one.
    private func hashAlike() {
        let variable = "SWIFT_DETERMINISTIC_HASHING"
        guard unsafe getenv(variable) == nil, unsafe setenv(variable, "1", 1) == 0 else { return }
        // Read at the start of a process only.
        var arguments = unsafe CommandLine.arguments.map { unsafe strdup($0) } + [nil]
        _ = unsafe execv("/proc/self/exe", &arguments)
        preconditionFailure("the program cannot start itself again")
    }

    private func breakEverything() throws {
        var unnoticed: [String] = []
        for rule in BrokenRule.all {
            let seed = (from..<from + seeds).first { simulation(of: $0, rule).run() != nil }
            print("\(rule.name): \(seed.map { "seed \($0)" } ?? "not noticed")")
            if seed == nil { unnoticed.append(rule.name) }
        }
        guard unnoticed.isEmpty else {
            print("\(seeds) seeds did not notice \(unnoticed.joined(separator: ", "))")
            throw ExitCode.failure
        }
    }

    private func simulation(of seed: UInt64, _ rule: BrokenRule?) -> ShellSimulation {
        ShellSimulation(seed: seed, breaking: rule, trace: trace ? { print($0) } : nil)
    }
}
