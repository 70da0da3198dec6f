import OperonCore

/// Draws the faults of a chaos run: rounds in which every kind occurs once, in random order.
package struct FaultSchedule: Sendable {
    private var generator: SeededGenerator
    private var round: [FaultKind] = []

    package init(seed: UInt64) { generator = SeededGenerator(seed: seed) }

    package mutating func next() -> FaultKind {
        if round.isEmpty { round = FaultKind.allCases.shuffled(using: &generator) }
        return round.removeLast()
    }

    package mutating func index(below count: Int) -> Int {
        Int(generator.next() % UInt64(count))
    }

    package mutating func duration(_ milliseconds: ClosedRange<Int>) -> Duration {
        .milliseconds(milliseconds.lowerBound + index(below: milliseconds.count))
    }
}
