import OperonModel
import Testing

struct RetryPolicyTests {
    /// A chance of one half draws the pause without jitter.
    private func pauses(_ policy: RetryPolicy, _ count: Int) -> [Duration] {
        (1...count).map { policy.pause(before: $0, randomness: 0.5) }
    }

    @Test func `pauses grow by the factor up to the longest`() {
        let policy = RetryPolicy(
            limit: 9,
            delay: .seconds(1),
            factor: 3,
            maxDelay: .seconds(20),
            jitter: 0.2
        )

        #expect(
            pauses(policy, 5) == [
                .seconds(1), .seconds(3), .seconds(9), .seconds(20), .seconds(20),
            ]
        )
    }

    @Test func `a factor of one keeps the pause, and a delay above the longest is cut`() {
        let even = RetryPolicy(limit: 9, delay: .seconds(2), factor: 1)
        #expect(pauses(even, 3) == [.seconds(2), .seconds(2), .seconds(2)])
        let long = RetryPolicy(limit: 9, delay: .seconds(99), maxDelay: .seconds(5))
        #expect(pauses(long, 2) == [.seconds(5), .seconds(5)])
    }

    @Test(arguments: [0.0, 0.1, 1.0])
    func `chance chooses within the jitter`(_ jitter: Double) {
        let policy = RetryPolicy(limit: 1, delay: .seconds(10), jitter: jitter)
        let shortest = policy.pause(before: 1, randomness: 0)
        let longest = policy.pause(before: 1, randomness: 1)

        #expect(abs(shortest.seconds - 10 * (1 - jitter)) < 1e-6)
        #expect(abs(longest.seconds - 10 * (1 + jitter)) < 1e-6)
        #expect(shortest >= .zero)
    }

    @Test func `the last of 65,535 retries costs no more than the first to compute`() {
        let policy = RetryPolicy(limit: .max, delay: .nanoseconds(1), maxDelay: .seconds(60))
        #expect(policy.pause(before: 65_535, randomness: 0.5) == .seconds(60))
        let none = RetryPolicy(limit: .max, delay: .zero, maxDelay: .seconds(60))
        #expect(none.pause(before: 65_535, randomness: 0.5) == .zero)
    }

    @Test func `a pause of centuries saturates`() {
        let policy = RetryPolicy(
            limit: 1,
            delay: .seconds(Int64.max),
            maxDelay: .seconds(Int64.max),
            jitter: 1
        )
        #expect(policy.pause(before: 3, randomness: 1) == .nanoseconds(Int64.max))
    }

    @Test func `never allows no further attempt`() {
        #expect(RetryPolicy.never.limit == 0)
    }
}
