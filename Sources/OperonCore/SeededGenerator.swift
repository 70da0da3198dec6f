/// Chance that can be repeated: SplitMix64, the same numbers from the same seed on every machine.
///
/// Everything in this package that draws lots takes one of these, so that a run can be replayed.
/// Not for secrets. The constants are those of Steele, Lea and Flood, "Fast Splittable
/// Pseudorandom Number Generators" (https://doi.org/10.1145/2660193.2660195).
package struct SeededGenerator: RandomNumberGenerator, Hashable, Sendable {
    private var state: UInt64

    package init(seed: UInt64) { state = seed }

    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// Evenly in `0..<1`: the 53 bits that a `Double` holds exactly.
    package mutating func chance() -> Double {
        Double(next() >> 11) * 0x1p-53
    }
}
