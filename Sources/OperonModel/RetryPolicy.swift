/// How often, and after which pause, an operation is retried after it failed by itself (an error, a
/// non-zero exit code, a signal, a timeout). Lost workers are counted separately.
public struct RetryPolicy: Hashable, Sendable, Codable {
    /// How many more attempts may follow the first. 0…65,535.
    public var limit: UInt16
    /// The pause before the first retry. 0…36,500 days.
    public var delay: Duration
    /// The factor by which the pause grows from one retry to the next. At least 1, and finite.
    public var factor: Double
    /// The longest pause, before jitter: from `delay` to 36,500 days.
    public var maxDelay: Duration
    /// The pause is drawn uniformly from [1 − jitter, 1 + jitter] times its length. 0…1.
    public var jitter: Double

    /// No retries.
    public static let never = RetryPolicy(limit: 0)

    /// Creates a policy with up to `limit` retries. By default the first pause is a second, each
    /// later one is twice as long, and the jitter is a tenth.
    ///
    /// - Parameter maxDelay: the longest pause; `nil`: a minute, or `delay` if that is longer.
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

    /// The pause before retry number `retry` (from 1). `randomness`, in 0…<1, selects the value
    /// within the jitter.
    public func pause(before retry: Int, randomness: Double) -> Duration {
        var seconds = delay.seconds
        let longest = maxDelay.seconds
        var step = 1
        // Stops once the longest pause is reached, so a large `retry` usually costs only a few
        // steps.
        while step < retry, seconds < longest, factor > 1 {
            seconds *= factor
            step += 1
        }
        let jittered = min(seconds, longest) * (1 - jitter + 2 * jitter * randomness)
        // A policy may allow centuries; 64 bits of nanoseconds hold 292 years.
        return .nanoseconds(Int64(exactly: (max(0, jittered) * 1e9).rounded(.down)) ?? .max)
    }
}
