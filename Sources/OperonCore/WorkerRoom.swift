import OperonModel

/// What an operation needs of the worker that is to run it.
struct Demand: Sendable {
    let queue: Int
    let kind: Int
    /// The expected run time in nanoseconds.
    let estimate: Int64
}

/// How much more than its slots a worker may be given, so that it need not wait for a round trip
/// between two short operations.
struct ReadAhead: Sendable {
    /// Operations beyond the slots.
    let count: Int
    /// The expected run time of all that the worker holds, for each of its slots, in nanoseconds.
    let nanoseconds: Int64
}

/// What a worker has taken on, and whether it may take more.
struct WorkerRoom: Sendable {
    var slots: Int
    /// How many of its attempts have a slot, or will have one.
    private(set) var held = 0
    /// How many of its attempts wait for others, without a slot.
    private(set) var yielded = 0
    /// How many of those want to go on.
    private(set) var resuming = 0
    /// The expected run time of the attempts it holds, in nanoseconds. Each counts as a day at
    /// most, so the sum fits.
    private(set) var backlog: Int64 = 0

    private static let estimateMax: Int64 = 86_400_000_000_000

    init(slots: Int) { self.slots = slots }

    /// The slots of these attempts, for a comparison.
    init(slots: Int, of attempts: some Sequence<AttemptState>) {
        self.slots = slots
        for attempt in attempts {
            if attempt.isYielded { yielded += 1 } else { take(attempt.estimate) }
        }
    }

    /// Negative while it holds more than its slots.
    var freeSlots: Int { slots - held }

    /// An attempt takes a slot.
    mutating func take(_ estimate: Int64) {
        held += 1
        backlog += min(estimate, Self.estimateMax)
    }

    /// An attempt gives its slot back.
    mutating func give(_ estimate: Int64) {
        held -= 1
        backlog -= min(estimate, Self.estimateMax)
    }

    mutating func countYielded(_ change: Int) { yielded += change }

    mutating func countResuming(_ change: Int) { resuming += change }

    /// Whether an attempt of this length finds a slot, or may be read ahead.
    func hasRoom(for estimate: Int64, _ readAhead: ReadAhead) -> Bool {
        if held < slots { return true }
        // An operation that wants to go on there is next.
        guard resuming == 0, held < slots + readAhead.count else { return false }
        let (expected, overflow) = backlog.addingReportingOverflow(estimate)
        return !overflow && expected <= readAhead.nanoseconds * Int64(slots)
    }
}
