import OperonCore
import Testing

@Suite struct SeededGeneratorTests {
    /// The published first numbers of SplitMix64 for this seed.
    @Test func `the numbers are those of SplitMix64`() {
        var generator = SeededGenerator(seed: 1_234_567)

        #expect(generator.next() == 6_457_827_717_110_365_317)
        #expect(generator.next() == 3_203_168_211_198_807_973)
        #expect(generator.next() == 9_817_491_932_198_370_423)
    }

    @Test func `chance is from 0 up to but not 1`() {
        var generator = SeededGenerator(seed: 5)
        let chances = (0..<10_000).map { _ in generator.fraction() }

        #expect(chances.allSatisfy { (0..<1).contains($0) })
        #expect(abs(chances.reduce(0, +) / 10_000 - 0.5) < 0.02)
    }
}
