import OperonModel

/// What the attempts of a worker have of its resources, and which units they have.
///
/// The coordinator decides which attempts a worker gets. But a process that was ended by order may
/// take a moment to end, in which the coordinator counts its part as free already. So a worker
/// starts an attempt only when it has everything that the attempt asks for.
struct WorkerAllocations: Sendable {
    private struct Part: Sendable {
        let allocation: Allocation
        /// The processor of its fraction, which it shares.
        let shared: Int?
        /// It waits for others, and has given back everything.
        var isYielded = false
    }

    private let offered: ResourceAmounts
    private var taken: ResourceAmounts = []
    /// The processors, each with the thousandths of it that are taken.
    private var processors: [(number: Int, load: Int)]
    private let gpus: [String]
    /// Only looked up.
    private var parts: [AttemptID: Part] = [:]

    init(_ configuration: WorkerAgent.Configuration) {
        offered = configuration.offer.resources
        processors = configuration.processors.map { ($0, 0) }
        gpus = configuration.gpus
    }

    /// Whether the worker has that much when nothing runs.
    func couldEverFit(_ amounts: ResourceAmounts) -> Bool {
        amounts.all.allSatisfy { (offered[$0.name] ?? 0) >= $0.amount }
    }

    /// Gives an attempt what it asks for; `false`: there is not enough left, and nothing is given.
    mutating func give(_ amounts: ResourceAmounts, to attempt: AttemptID) -> Bool {
        guard !amounts.isEmpty else { return true }
        guard has(amounts) else { return false }
        var allocation = Allocation(amounts: amounts)
        if let count = amounts[ResourceAmount.gpusName] {
            let free = freeGPUs
            guard free.count >= count else { return false }
            allocation.gpus = Array(free.prefix(count))
        }
        var shared: Int?
        if let thousandths = amounts[ResourceAmount.cpusName] {
            (allocation.processors, shared) = pick(thousandths)
        }
        let part = Part(allocation: allocation, shared: shared)
        parts[attempt] = part
        take(part, 1)
        return true
    }

    /// The graphics processors that no running attempt has, in the order in which they were given.
    private var freeGPUs: [String] {
        let taken = Set(parts.values.flatMap { $0.isYielded ? [] : $0.allocation.gpus })
        return gpus.filter { !taken.contains($0) }
    }

    private func has(_ amounts: ResourceAmounts) -> Bool {
        amounts.all.allSatisfy { (offered[$0.name] ?? 0) - (taken[$0.name] ?? 0) >= $0.amount }
    }

    /// Whole processors are those with the least load. A fraction goes to the processor with the
    /// highest load that still has room for it, so that fractions share processors.
    ///
    /// - Returns: All of them, sorted, and the one of the fraction.
    private func pick(_ thousandths: Int) -> (all: [Int], shared: Int?) {
        let unit = ResourceAmount.cpuUnit
        let whole = thousandths / unit
        let rest = thousandths % unit
        guard whole + (rest > 0 ? 1 : 0) < processors.count else { return ([], nil) }
        let byLoad = processors.sorted { ($0.load, $0.number) < ($1.load, $1.number) }
        let picked = byLoad.prefix(whole).map(\.number)
        guard rest > 0 else { return (picked.sorted(), nil) }
        let others = byLoad.dropFirst(whole)
        let fitting = others.filter { $0.load + rest <= unit }
        let best = fitting.max { ($0.load, -$0.number) < ($1.load, -$1.number) }
        guard let shared = best ?? others.first else { return (picked.sorted(), nil) }
        return ((picked + [shared.number]).sorted(), shared.number)
    }

    func allocation(of attempt: AttemptID) -> Allocation? { parts[attempt]?.allocation }

    /// The attempt has ended, or will not start.
    mutating func release(_ attempt: AttemptID) {
        guard !parts.isEmpty, let part = parts.removeValue(forKey: attempt), !part.isYielded
        else { return }
        take(part, -1)
    }

    /// It waits for others, and gives everything back.
    mutating func yield(_ attempt: AttemptID) {
        guard let part = parts[attempt], !part.isYielded else { return }
        parts[attempt]?.isYielded = true
        take(part, -1)
    }

    /// Whether there is enough left for it to go on, and the graphics processors that its process
    /// was told are free: it cannot be told others.
    func canResume(_ attempt: AttemptID) -> Bool {
        guard let part = parts[attempt], part.isYielded else { return true }
        let free = freeGPUs
        return has(part.allocation.amounts) && part.allocation.gpus.allSatisfy(free.contains)
    }

    mutating func resume(_ attempt: AttemptID) {
        guard let part = parts[attempt], part.isYielded else { return }
        parts[attempt]?.isYielded = false
        take(part, 1)
    }

    /// - Parameter sign: 1: it takes its part; -1: it gives it back.
    private mutating func take(_ part: Part, _ sign: Int) {
        for need in part.allocation.amounts.all { add(sign * need.amount, of: need.name) }
        load(part, sign)
    }

    private mutating func add(_ amount: Int, of name: String) {
        let sum = (taken[name] ?? 0) + amount
        taken[name] = sum == 0 ? nil : sum
    }

    /// The load of a processor orders them. Attempts that are bound to none are not counted.
    private mutating func load(_ part: Part, _ sign: Int) {
        guard let thousandths = part.allocation.amounts[ResourceAmount.cpusName] else { return }
        let unit = ResourceAmount.cpuUnit
        for index in processors.indices
        where part.allocation.processors.contains(processors[index].number) {
            let isShared = processors[index].number == part.shared
            processors[index].load += sign * (isShared ? thousandths % unit : unit)
        }
    }
}
