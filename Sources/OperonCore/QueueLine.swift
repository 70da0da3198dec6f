import HeapModule
import OperonModel

/// A queue's turn among those that may start something. Fair share: the queue that holds the fewest
/// slots is next. Among equals it is the queue that was served longest ago, and before it the first
/// of those that were never served.
struct QueueTurn: Comparable, Sendable {
    let slots: Int
    let servedAt: UInt64
    let queue: Int

    static func < (left: QueueTurn, right: QueueTurn) -> Bool {
        if left.slots != right.slots { return left.slots < right.slots }
        if left.servedAt != right.servedAt { return left.servedAt < right.servedAt }
        return left.queue < right.queue
    }
}

/// The queues that may start something, in the order in which they are served.
///
/// Queues whose operations find room at the same workers stand in one group. If no worker has room
/// for the first queue of a group, there is none for its others, and nobody looks at them. So an
/// event costs O(groups + log queues) and what it costs to look for room, however many queues have
/// something to run. Queues that are unlike others are looked at one by one.
struct QueueLine: Sendable {
    /// What an operation takes of its worker, besides its queue.
    struct Need: Hashable, Sendable {
        let kind: Int
        let demand: Int
        /// `nil`: the expected run time is that of the kind.
        let estimate: Int64?

        init(_ lane: Lane) {
            kind = lane.kind
            demand = lane.demand
            estimate = lane.estimate
        }
    }

    /// What decides which workers have room for the operations of a queue.
    struct GroupKey: Hashable, Sendable {
        /// What is ready in the queue. Never iterated.
        let needs: Set<Need>
        /// The workers that serve it; empty: all workers, or none.
        let workers: [Int]
    }

    private struct Group: Sendable {
        /// `nil`: room for one queue says nothing about the others.
        let key: GroupKey?
        /// How many queues belong to it, in line or not. Of those unlike others, this is not known.
        var members = 0
        /// Those in line.
        var queues = IndexedHeap<QueueTurn>()
        /// No worker has room for any of them in this admission.
        var isBlocked = false
    }

    /// The group of queues that are unlike others: what they have ready asks for amounts, is
    /// external, or has several expected run times within one lane.
    private static let mixed = 0

    private var groups = [Group(key: nil)]
    private var numbers: [GroupKey: Int] = [:]
    private var free: [Int] = []
    private var groupOf: [Int] = []
    private var places = IndexedHeap<QueueTurn>.Places()

    /// The groups that have queues in line and are not blocked, by the turn of their first queue.
    private var order = IndexedHeap<QueueTurn>()
    private var orderPlaces = IndexedHeap<QueueTurn>.Places()
    private var blocked: [Int] = []
    /// Queues that found no room in this admission, which says nothing about others.
    private var passed: [Int] = []

    /// When queues without a token will have one. Some entries are out of date.
    private var tokens = Heap<TokenTurn>()
    /// The time in the entry of each queue that is not out of date. Only looked up.
    private var tokenTimes: [Int: Timestamp] = [:]

    /// The queue that is served next.
    var first: Int? { order.min?.key.queue }

    // MARK: - Standing

    /// Says to which group a queue belongs. If this changes, the queue has to be put in line again.
    mutating func assign(_ queue: Int, to key: GroupKey?) {
        while groupOf.count <= queue { groupOf.append(Self.mixed) }
        let old = groupOf[queue]
        guard groups[old].key != key else { return }
        remove(queue)
        let group = key.map { number(of: $0) } ?? Self.mixed
        groupOf[queue] = group
        groups[group].members += 1
        groups[old].members -= 1
        forgetIfUnused(old)
    }

    /// Puts a queue in line, or changes its turn.
    mutating func set(_ turn: QueueTurn) {
        let group = groupOf[turn.queue]
        groups[group].queues.set(turn, of: turn.queue, &places)
        line(up: group)
    }

    mutating func remove(_ queue: Int) {
        guard isInLine(queue) else { return }
        let group = groupOf[queue]
        groups[group].queues.remove(queue, &places)
        line(up: group)
    }

    func isInLine(_ queue: Int) -> Bool { places[queue] != IndexedHeap<QueueTurn>.Places.absent }

    private mutating func line(up group: Int) {
        guard !groups[group].isBlocked else { return }
        if let first = groups[group].queues.min {
            order.set(first.key, of: group, &orderPlaces)
        } else if orderPlaces[group] != IndexedHeap<QueueTurn>.Places.absent {
            order.remove(group, &orderPlaces)
        }
    }

    private mutating func number(of key: GroupKey) -> Int {
        if let known = numbers[key] { return known }
        let number = free.popLast() ?? groups.count
        groups.set(Group(key: key), at: number)
        numbers[key] = number
        return number
    }

    private mutating func forgetIfUnused(_ group: Int) {
        guard let key = groups[group].key, groups[group].members == 0, !groups[group].isBlocked
        else { return }
        numbers[key] = nil
        groups[group] = Group(key: nil)
        free.append(group)
    }

    // MARK: - One admission

    /// No worker has room for what this queue has ready: neither for what its group has, unless it
    /// is unlike others.
    mutating func block(groupOf queue: Int) {
        let group = groupOf[queue]
        guard groups[group].key != nil else { return pass(queue) }
        // The queue may have joined a group of which this is known.
        guard !groups[group].isBlocked else { return }
        order.remove(group, &orderPlaces)
        groups[group].isBlocked = true
        blocked.append(group)
    }

    /// The queue is not served in the rest of this admission, unless it changes.
    mutating func pass(_ queue: Int) {
        remove(queue)
        passed.append(queue)
    }

    /// Everything that found no room is in line for the next admission.
    ///
    /// - Returns: The queues that were passed, which are to be put in line.
    mutating func endAdmission() -> [Int] {
        for group in blocked {
            groups[group].isBlocked = false
            line(up: group)
            forgetIfUnused(group)
        }
        blocked.removeAll(keepingCapacity: true)
        defer { passed.removeAll(keepingCapacity: true) }
        return passed
    }

    // MARK: - Tokens

    private struct TokenTurn: Comparable, Sendable {
        let time: Timestamp
        let queue: Int

        static func < (left: TokenTurn, right: TokenTurn) -> Bool {
            left.time == right.time ? left.queue < right.queue : left.time < right.time
        }
    }

    /// A queue has no token before this time.
    mutating func wait(_ queue: Int, until time: Timestamp) {
        guard tokenTimes.updateValue(time, forKey: queue) != time else { return }
        tokens.insert(TokenTurn(time: time, queue: queue))
    }

    /// Takes a queue that may have a token by now.
    mutating func takeQueueWithToken(at now: Timestamp) -> Int? {
        while let first = tokens.min, first.time <= now {
            tokens.removeMin()
            guard tokenTimes[first.queue] == first.time else { continue }
            tokenTimes[first.queue] = nil
            return first.queue
        }
        return nil
    }

    // MARK: - Invariants

    /// Every queue in line, with its group.
    var standing: [(turn: QueueTurn, key: GroupKey?)] {
        groups.flatMap { group in group.queues.entries.map { ($0.key, group.key) } }
    }

    /// Whether the queue is put in line at this time.
    func awaitsToken(_ queue: Int, at time: Timestamp) -> Bool { tokenTimes[queue] == time }

    /// Whether the next admission that looks for room puts the queue in line.
    func hasToken(_ queue: Int, at now: Timestamp) -> Bool {
        tokenTimes[queue].map { $0 <= now } ?? false
    }

    func violatedInvariant() -> String? {
        guard blocked.isEmpty, passed.isEmpty else { return "an admission left queues aside" }
        let ordered = order.entries.sorted { $0.number < $1.number }
        let waiting = groups.indices.filter { !groups[$0].queues.isEmpty }
        guard ordered.map(\.number) == waiting,
            ordered.allSatisfy({ groups[$0.number].queues.min?.key == $0.key })
        else { return "a group of queues is in line at a place that is not its own" }
        let unused = groups.indices.dropFirst().filter { groups[$0].members == 0 }
        guard unused == free.sorted(), numbers.count == groups.count - 1 - free.count else {
            return "groups \(free) of queues are listed as free, and \(unused) are"
        }
        return nil
    }
}
