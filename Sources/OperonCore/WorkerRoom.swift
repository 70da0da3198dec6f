import OperonModel

/// What an operation needs of the worker that is to run it.
struct Demand: Sendable {
    let queue: Int
    let kind: Int
    /// The demand class.
    let demand: Int
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
    /// How many of those take more than a slot when they go on.
    private(set) var resumingWithNeeds = 0
    /// The expected run time of the attempts it holds, in nanoseconds. Each counts as a day at
    /// most, so the sum fits.
    private(set) var backlog: Int64 = 0
    /// What it offers of each resource, by the scheduler's numbers.
    private var offered: [Int] = []
    /// What its attempts have taken of each. The sum fits: see `ResourceAmount.amountMax`.
    private var taken: [Int] = []

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

    mutating func countResuming(_ change: Int, hasNeeds: Bool) {
        resuming += change
        if hasNeeds { resumingWithNeeds += change }
    }

    /// Whether an attempt of this length finds a slot, or may be read ahead.
    func hasRoom(for estimate: Int64, _ readAhead: ReadAhead) -> Bool {
        if held < slots { return true }
        // An operation that wants to go on there is next.
        guard resuming == 0, held < slots + readAhead.count else { return false }
        let (expected, overflow) = backlog.addingReportingOverflow(estimate)
        return !overflow && expected <= readAhead.nanoseconds * Int64(slots)
    }

    // MARK: - Amounts

    /// A resource has got this number: the next one, or that of a resource that was forgotten.
    mutating func set(offered amount: Int, of resource: Int) {
        while offered.count < resource {
            offered.append(0)
            taken.append(0)
        }
        offered.set(amount, at: resource)
        taken.set(0, at: resource)
    }

    /// Changes what the worker offers, not what is taken.
    mutating func offer(_ amount: Int, of resource: Int) {
        guard resource < offered.count else { return set(offered: amount, of: resource) }
        offered[resource] = amount
    }

    /// Negative while its attempts have taken more than it offers.
    func left(of resource: Int) -> Int {
        resource < offered.count ? offered[resource] - taken[resource] : 0
    }

    /// Whether its attempts have taken more than it offers.
    var isOver: Bool { offered.indices.contains { taken[$0] > offered[$0] } }

    mutating func take(_ needs: [DemandClass.Need]) {
        for need in needs { taken[need.resource] += need.amount }
    }

    mutating func give(_ needs: [DemandClass.Need]) {
        for need in needs { taken[need.resource] -= need.amount }
    }

    func has(_ needs: [DemandClass.Need]) -> Bool {
        for need in needs {
            guard left(of: need.resource) >= need.amount else { return false }
        }
        return true
    }

    /// How many operations of the class would still fit in what is left, added up over what it
    /// needs. Scaled, so that a part of an operation counts: 2⁵⁰ · 2⁸ · 16 resources fit.
    func rest(_ needs: [DemandClass.Need]) -> Int {
        needs.reduce(0) { sum, need in
            sum + ((left(of: need.resource) - need.amount) << 8) / need.amount
        }
    }
}
