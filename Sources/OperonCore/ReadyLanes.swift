import HeapModule
import OperonModel

/// A ready operation in a heap, ordered by priority, then operations that come back from an attempt
/// first, then rank, then order of submission. Never equal for two operations.
struct ReadyEntry: Comparable, Sendable {
    /// The priority level in the upper bits, and in the lowest bit whether it comes back.
    let urgency: UInt8
    let rank: UInt64
    let graph: UInt32
    let index: UInt32

    var operation: OperationID { OperationID(graph: GraphID(rawValue: graph), index: index) }

    /// The greatest is taken first.
    static func < (left: ReadyEntry, right: ReadyEntry) -> Bool {
        if left.urgency != right.urgency { return left.urgency < right.urgency }
        if left.rank != right.rank { return left.rank < right.rank }
        if left.graph != right.graph { return left.graph > right.graph }
        return left.index > right.index
    }
}

/// The ready operations of one queue, one kind and one demand class. They have separate lanes so
/// that a kind that no worker knows, or a demand for which no worker has room, does not block the
/// others.
struct Lane: Sendable {
    let queue: Int
    let kind: Int
    /// The demand class.
    let demand: Int
    /// The kind is external: no worker runs its operations.
    let isExternal: Bool
    /// How many policy rules of graphs name it.
    fileprivate(set) var users = 0
    /// The expected run time of these rules.
    fileprivate(set) var estimate: Int64?
    /// They do not have the same.
    fileprivate(set) var hasOtherEstimates = false
    /// The number of operations that are in it.
    fileprivate(set) var count = 0
    /// Whether it is listed in `ReadyLanes.external`.
    fileprivate(set) var isListed = false
    /// The most urgent entry when the lane was last put in line; `nil`: it is not in line, because
    /// it is empty.
    fileprivate(set) var head: ReadyEntry?
    /// The last admission in which no worker had room for its first operation. Room does not grow
    /// within one admission, so the lane is not looked at again.
    var blockedIn: UInt64 = 0
    fileprivate(set) var heap = Heap<ReadyEntry>()
}

/// The lanes of all queues.
///
/// An entry stays in its lane after its operation has left, until it comes up: the scheduler checks
/// the operation's own flags before it uses an entry. So the ready operations of a lane and of a
/// queue are counted apart from the entries.
struct ReadyLanes: Sendable {
    /// The lanes of one queue.
    private struct Queue: Sendable {
        /// The number of operations that are in one of its lanes.
        var count = 0
        /// Its index in `queues`, while anything is ready.
        var place = 0
        /// The lanes that have entries, the one with the most urgent entry first.
        var lanes: [Int] = []
    }

    private struct Place: Hashable, Sendable {
        let queue: Int
        let kind: Int
        let demand: Int
    }

    /// Queues that have a ready operation, in no particular order.
    private(set) var queues: [Int] = []
    /// The lanes of external operations that are not empty, besides some that are.
    private(set) var external: [Int] = []
    private var lanes: [Lane] = []
    private var numbers: [Place: Int] = [:]
    private var free: [Int] = []
    private var byQueue: [Queue] = []
    /// Queues that have something ready since, or nothing any more.
    private var changes = ChangedNumbers()
    /// Queues of which other lanes have entries now, or other rules name the lanes.
    private var regrouped = ChangedNumbers()

    var indices: Range<Int> { lanes.indices }

    /// The number of lanes that policy rules name.
    var usedCount: Int { numbers.count }

    /// The number of entries, including those of operations that have left.
    var entryCount: Int { lanes.reduce(0) { $0 + $1.heap.count } }

    subscript(lane: Int) -> Lane {
        @inline(__always) _read { yield lanes[lane] }
    }

    mutating func block(_ lane: Int, in admission: UInt64) { lanes[lane].blockedIn = admission }

    /// The number of operations of a queue that are ready and that nothing sets aside.
    func count(of queue: Int) -> Int { byQueue[queue].count }

    /// The lanes of a queue that have entries, the one with the most urgent entry first.
    func lanes(of queue: Int) -> [Int] { byQueue[queue].lanes }

    // MARK: - Entries

    /// Adds an operation to its lane, and counts it.
    mutating func insert(_ entry: ReadyEntry, into lane: Int) {
        if lanes[lane].isExternal, !lanes[lane].isListed {
            lanes[lane].isListed = true
            external.append(lane)
        }
        let queue = lanes[lane].queue
        lanes[lane].heap.insert(entry)
        lanes[lane].count += 1
        if lanes[lane].head.map({ $0 < entry }) ?? true { line(up: lane) }
        if byQueue[queue].count == 0 {
            byQueue[queue].place = queues.count
            queues.append(queue)
            changes.note(queue)
        }
        byQueue[queue].count += 1
    }

    /// Removes the most urgent entry of a lane. Its operation stays counted until `countOut`.
    mutating func removeFirst(of lane: Int) {
        lanes[lane].heap.removeMax()
        line(up: lane)
    }

    /// Puts a lane where its first entry belongs, or takes an empty lane out of the line.
    private mutating func line(up lane: Int) {
        let queue = lanes[lane].queue
        let head = lanes[lane].heap.max
        lanes[lane].blockedIn = 0
        // Usually the only one, or still in the same place.
        let count = byQueue[queue].lanes.count
        if let head, count == 1, lanes[lane].head != nil {
            lanes[lane].head = head
            return
        }
        if let old = lanes[lane].head {
            byQueue[queue].lanes.remove(at: place(of: old, inLineOf: queue))
        }
        if (lanes[lane].head == nil) != (head == nil) { regrouped.note(queue) }
        lanes[lane].head = head
        guard let head else { return }
        byQueue[queue].lanes.insert(lane, at: place(of: head, inLineOf: queue))
    }

    /// The place of the lane with this head, or where it belongs: no two entries are equal.
    private func place(of head: ReadyEntry, inLineOf queue: Int) -> Int {
        var low = 0
        var high = byQueue[queue].lanes.count
        while low < high {
            let middle = (low + high) / 2
            guard let other = lanes[byQueue[queue].lanes[middle]].head else {
                preconditionFailure("every lane in line has a head")
            }
            if head < other { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// An operation has left this lane, with its entry or without.
    mutating func countOut(of lane: Int) {
        lanes[lane].count -= 1
        let queue = lanes[lane].queue
        byQueue[queue].count -= 1
        guard byQueue[queue].count == 0 else { return }
        changes.note(queue)
        let place = byQueue[queue].place
        let last = queues.removeLast()
        guard last != queue else { return }
        queues[place] = last
        byQueue[last].place = place
    }

    /// Removes empty lanes from the list of lanes of external operations.
    mutating func unlistEmptyExternals() {
        guard external.contains(where: { lanes[$0].heap.isEmpty }) else { return }
        for lane in external where lanes[lane].heap.isEmpty { lanes[lane].isListed = false }
        external.removeAll { lanes[$0].heap.isEmpty }
    }

    /// Removes the entries of operations that are gone.
    mutating func removeEntries(where isGone: (OperationID) -> Bool) {
        for lane in lanes.indices {
            lanes[lane].heap = Heap(lanes[lane].heap.unordered.filter { !isGone($0.operation) })
            line(up: lane)
        }
    }

    // MARK: - Numbers

    /// The number of a queue's lane for a kind and a demand class, a new one if necessary.
    mutating func number(queue: Int, kind: Int, demand: Int, isExternal: Bool) -> Int {
        let place = Place(queue: queue, kind: kind, demand: demand)
        if let lane = numbers[place] { return lane }
        let number = free.popLast() ?? lanes.count
        let lane = Lane(queue: queue, kind: kind, demand: demand, isExternal: isExternal)
        lanes.set(lane, at: number)
        numbers[place] = number
        return number
    }

    /// A queue has got this number: the next one, or that of a queue that was forgotten.
    mutating func add(queue: Int) {
        byQueue.set(Queue(), at: queue)
        regrouped.note(queue)
    }

    /// A rule with this expected run time names the lane.
    mutating func use(_ lane: Int, estimate: Int64?) {
        lanes[lane].users += 1
        if lanes[lane].users == 1 { lanes[lane].estimate = estimate }
        guard lanes[lane].estimate != estimate, !lanes[lane].hasOtherEstimates else { return }
        lanes[lane].hasOtherEstimates = true
        regrouped.note(lanes[lane].queue)
    }

    // MARK: - Changes

    /// Takes a queue that has something ready since, or nothing any more.
    mutating func takeChanged() -> Int? { changes.take() }

    /// Takes a queue whose group may be another one.
    mutating func takeRegrouped() -> Int? { regrouped.take() }

    func isChanged(_ queue: Int) -> Bool { changes.has(queue) || regrouped.has(queue) }

    /// Other workers may serve the queues now.
    mutating func regroupAll() { for queue in byQueue.indices { regrouped.note(queue) } }

    // MARK: - Forgetting

    /// A rule that named the lane is gone. A lane without rules is forgotten.
    mutating func release(_ number: Int) {
        lanes[number].users -= 1
        guard lanes[number].users == 0 else { return }
        let lane = lanes[number]
        numbers[Place(queue: lane.queue, kind: lane.kind, demand: lane.demand)] = nil
        lanes[number].heap = Heap()
        line(up: number)
        if lane.isListed { external.removeAll { $0 == number } }
        lanes[number] = Lane(
            queue: lane.queue,
            kind: lane.kind,
            demand: lane.demand,
            isExternal: false
        )
        free.append(number)
    }

    // MARK: - Invariants

    func violatedInvariant() -> String? {
        let ready = byQueue.indices.filter { byQueue[$0].count > 0 }
        guard queues.sorted() == ready else {
            return "queues \(queues) are listed as ready, and \(ready) are"
        }
        for lane in lanes.indices {
            guard lanes[lane].head == lanes[lane].heap.max else {
                return "lane \(lane) is in line with another entry than its first"
            }
            guard lanes[lane].isListed == external.contains(lane),
                !lanes[lane].isExternal || lanes[lane].heap.isEmpty || lanes[lane].isListed
            else { return "an external operation is in a lane that is not listed" }
        }
        for queue in byQueue.indices {
            let heads = byQueue[queue].lanes.compactMap { lanes[$0].head }
            let listed = lanes.indices.count { lanes[$0].queue == queue && lanes[$0].head != nil }
            guard heads.count == listed, heads.count == byQueue[queue].lanes.count,
                zip(heads, heads.dropFirst()).allSatisfy({ $0 > $1 })
            else { return "the lanes of queue \(queue) are out of line" }
            let count = lanes.reduce(0) { $0 + ($1.queue == queue ? $1.count : 0) }
            guard count == byQueue[queue].count else {
                return "queue \(queue) counts \(byQueue[queue].count) ready, its lanes \(count)"
            }
        }
        return nil
    }
}

extension Array {
    /// Sets an element, or appends it behind the last.
    mutating func set(_ element: Element, at place: Int) {
        if place == count { append(element) } else { self[place] = element }
    }
}
