/// How often, and after which pause, an operation is tried again after it failed by itself (an
/// error, a bad exit, a signal, a timeout). Lost workers are counted elsewhere.
public struct RetryPolicy: Hashable, Sendable, Codable {
    /// Further attempts after the first. 0…65,535.
    public var limit: UInt16
    /// The pause before the first further attempt. 0…36,500 days.
    public var delay: Duration
    /// What the pause is multiplied by from one attempt to the next. At least 1, and
    /// finite.
    public var factor: Double
    /// The longest pause, before jitter: from `delay` to 36,500 days.
    public var maxDelay: Duration
    /// The pause is drawn evenly from [1 − jitter, 1 + jitter] times its length. 0…1.
    public var jitter: Double

    /// No further attempt.
    public static let never = RetryPolicy(limit: 0)

    /// Further attempts up to `limit`, a second and then twice as long apart, within a tenth.
    ///
    /// - Parameter maxDelay: `nil`: a minute, or `delay` if that is longer.
    public init(
        limit: UInt16,
        delay: Duration = .seconds(1),
        factor: Double = 2,
        maxDelay: Duration? = nil,
        jitter: Double = 0.1
    ) {
        self.limit = limit
        self.delay = delay
        self.factor = factor
        self.maxDelay = maxDelay ?? max(.seconds(60), delay)
        self.jitter = jitter
    }

    /// The pause before further attempt number `retry` (from 1), with `chance` in 0…<1 choosing
    /// within the jitter.
    public func pause(before retry: Int, chance: Double) -> Duration {
        var seconds = delay.seconds
        let longest = maxDelay.seconds
        var step = 1
        // Stops at the longest pause, so a large `retry` costs no more than its logarithm.
        while step < retry, seconds < longest, factor > 1 {
            seconds *= factor
            step += 1
        }
        let jittered = min(seconds, longest) * (1 - jitter + 2 * jitter * chance)
        // A policy may name centuries; 64 bits of nanoseconds hold 292 years.
        return .nanoseconds(Int64(exactly: (max(0, jittered) * 1e9).rounded(.down)) ?? .max)
    }
}
