import OperonModel

/// The tokens of a rate, as the time at which the bucket is full again: the generic cell rate
/// algorithm (ITU-T I.371, annex A). Each start moves that time by one interval, and may come as
/// soon as the time is no more than a burst away.
struct StartBucket: Hashable, Sendable {
    let rate: StartRate
    /// The bucket is full from then on.
    private(set) var fullAt: Timestamp
    /// A timer for the next start is armed.
    var isArmed = false

    /// A full bucket.
    init(_ rate: StartRate) {
        self.rate = rate
        fullAt = Timestamp(nanoseconds: .min)
    }

    /// The bucket of an earlier run, with the tokens that have come back since. However the wall
    /// clock was set, it is never emptier than empty.
    init(_ rate: StartRate, fullAt date: WallTime, at now: Moment) {
        self.init(rate)
        fullAt = now.monotonic + min(max(.zero, date - now.wall), burstTime)
    }

    private var interval: Duration { .nanoseconds(rate.intervalNanoseconds) }

    private var burstTime: Duration { .nanoseconds(rate.intervalNanoseconds * Int64(rate.burst)) }

    /// When the next operation may start; `nil`: now.
    func nextStart(at now: Timestamp) -> Timestamp? {
        let next = fullAt - (burstTime - interval)
        return next <= now ? nil : next
    }

    /// Whether one operation may start now, and no second one.
    func hasOneToken(at now: Timestamp) -> Bool {
        var next = self
        next.take(at: now)
        return nextStart(at: now) == nil && next.nextStart(at: now) != nil
    }

    mutating func take(at now: Timestamp) { fullAt = max(fullAt, now) + interval }

    /// Another rate, with as many tokens missing; no more than all of them.
    func changed(to rate: StartRate, at now: Timestamp) -> StartBucket {
        var bucket = StartBucket(rate)
        guard fullAt > now else { return bucket }
        let time = (fullAt - now).nanoseconds
        let missing = min((time - 1) / self.rate.intervalNanoseconds + 1, Int64(rate.burst))
        bucket.fullAt = now + .nanoseconds(missing * rate.intervalNanoseconds)
        return bucket
    }
}
