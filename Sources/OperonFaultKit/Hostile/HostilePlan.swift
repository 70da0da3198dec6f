/// How long a hostile program goes on, how fast, and from which seed.
package struct HostilePlan: Sendable {
    package var seed: UInt64
    package var duration: Duration
    /// Things sent in a second.
    package var rate: Double
    /// Connections that are open at a time, for programs that open many.
    package var connectionsMax: Int
    /// Of these, how many may only be held, so that something else is sent as well.
    var muteMax: Int { connectionsMax / 2 }

    package init(seed: UInt64, duration: Duration, rate: Double, connectionsMax: Int = 200) {
        self.seed = seed
        self.duration = duration
        self.rate = rate
        self.connectionsMax = connectionsMax
    }
}

/// Says how many things are due, so that a program keeps its rate whatever else it waits for.
struct HostilePace {
    private let start = ContinuousClock.now
    private let plan: HostilePlan
    private var done = 0
    /// What was missed is not made up for beyond this: a burst, not a flood.
    private static let burstMax = 100

    init(_ plan: HostilePlan) { self.plan = plan }

    private var elapsed: Duration { ContinuousClock.now - start }

    var isOver: Bool { elapsed >= plan.duration }

    /// Since the start, in milliseconds.
    var milliseconds: Int64 { Int64(elapsed / .milliseconds(1)) }

    mutating func due() -> Int {
        let wanted = Int(elapsed / .seconds(1) * plan.rate)
        let due = min(wanted - done, Self.burstMax)
        done = wanted - max(due, 0)
        return max(due, 0)
    }

    mutating func didOne() { done += 1 }
}
