import OperonCore
import OperonModel
import OperonTestKit
import Testing

/// A whole cluster on one thread, from a seed. `simulate --from SEED --seeds 1 --trace` shows what
/// happens in one; `simulate --violations` breaks every rule on purpose, which `scripts/test` has
/// noticed within 1,000 seeds.
struct SimulationTests {
    /// After how many steps the scheduler's state is checked, and compared with what a restart
    /// would restore: without optimisation, that takes four fifths of the time. `scripts/simulate`
    /// checks every step of every 61st seed.
    private static let checkedSteps = 16

    private func simulate(_ seed: UInt64, checkedSteps: Int = Self.checkedSteps) -> String? {
        var simulator = Simulator(seed: seed, checkedSteps: checkedSteps)
        return simulator.run()
    }

    /// Without optimisation, where assertions count; what all seeds together meet is checked by
    /// `scripts/simulate`.
    @Test(arguments: 0..<4)
    func `every rule holds`(part: UInt64) {
        for seed in part * 5 + 1...part * 5 + 5 {
            if let broken = simulate(seed) { Issue.record("seed \(seed): \(broken)") }
        }
    }

    @Test(arguments: [UInt64(1), 3, 17, 146, 591, 785])
    func `the same seed gives the same run`(_ seed: UInt64) {
        var first = Simulator(seed: seed, checkedSteps: Self.checkedSteps)
        var second = Simulator(seed: seed, checkedSteps: Self.checkedSteps)
        var other = Simulator(seed: seed + 1, checkedSteps: Self.checkedSteps)

        #expect(first.run() == second.run())
        #expect(first.ledger.hash == second.ledger.hash)
        _ = other.run()
        #expect(first.ledger.hash != other.ledger.hash)
    }

    @Test func `whatever waits has a reason, and every reason is true`() {
        for seed in UInt64(1)...5 {
            var simulator = Simulator(seed: seed, checkedSteps: Self.checkedSteps)
            simulator.inspector = { $0.violatedExplanation() }
            if let broken = simulator.run() { Issue.record("seed \(seed): \(broken)") }
        }
    }

    // MARK: Seeds that failed once

    @Test func `a worker that was given up while frozen starts nothing that is another's now`() {
        // It listed the attempt in its hello and started it after the welcome, before the order to
        // stop it could arrive: now the welcome itself carries the orders.
        #expect(simulate(591) == nil)
    }

    @Test func `an owner that was given up unheard is asked who it is when it comes back`() {
        // The restored coordinator knew it by its attempts only, and gave it nothing any more.
        #expect(simulate(556) == nil)
    }

    @Test func `a late owner goes on with what it runs, not with what only waits there`() {
        // The next attempt was under recall and could still start beside it.
        #expect(simulate(1_022) == nil)
    }

    @Test func `a pause ends at its own time after a death, whatever came before it`() {
        // A timer of an earlier pause was taken for that of the one that counts.
        #expect(simulate(6_993, checkedSteps: 1) == nil)
    }

    @Test func `a thawed worker hears nothing of a connection that it has given up`() {
        // The simulator went on with the inbox of a connection that the first message in it had
        // ended, and took a recall in it for delivered.
        #expect(simulate(682_156) == nil)
    }

    @Test func `a rate is not judged by a clock that was set while the coordinator stood still`() {
        // The ledger took what was recorded for what had just been decided: a commit that the
        // coordinator slept through was 17 s late.
        #expect(simulate(1_382_396) == nil)
    }

    @Test func `a key whose token is back keeps nobody waiting, once its timer is heard`() {
        // A message came before the timer, after the coordinator had stood still: the operations
        // that waited for the key were taken for forgotten.
        #expect(simulate(1_447_748, checkedSteps: 1) == nil)
    }

    @Test func `who goes on and waits again in one commit has given its place back`() {
        // The ledger took the wait for an earlier one, and counted the place for ever.
        #expect(simulate(2_160_565) == nil)
    }

    @Test func `an attempt that its owner got back may go on after a power cut took that back`() {
        // The ledger forgave grants that a power cut took back, and not the return of an attempt
        // that had been given up.
        #expect(simulate(2_543_416) == nil)
    }

    @Test func `what a worker started after its greeting is not taken for stopped`() {
        // A worker greets twice, because the answer is late. What it started upon the answer to the
        // first greeting is not in the second, which was judged with the events that came later.
        // The attempt counted as returned while it ran, and gave its key to another.
        #expect(simulate(3_558_461) == nil)
    }

    @Test func `what a dropped graph depended on closes no cycle`() {
        // The ledger still knew that an operation had depended on another one, after the graph of
        // both was dropped.
        #expect(simulate(819_057) == nil)
    }
}
