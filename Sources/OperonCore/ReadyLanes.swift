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

/// The ready operations of one queue and one kind. Kinds have separate lanes so that a kind that no
/// worker knows does not block the others.
struct Lane: Sendable {
    let queue: Int
    let kind: Int
    /// The kind is external: no worker runs its operations.
    let isExternal: Bool
    /// How many policy rules of graphs name it.
    fileprivate(set) var users = 0
    /// Whether it is listed in `ReadyLanes.external`.
    fileprivate(set) var isListed = false
    /// Its index among the lanes of its queue; `nil`: it is empty.
    fileprivate(set) var place: Int?
    fileprivate(set) var heap = Heap<ReadyEntry>()
}

/// The lanes of all queues.
///
/// An entry stays in its lane after its operation has left, until it comes up: the scheduler checks
/// the operation's own flags before it uses an entry. So the ready operations of a queue are
/// counted apart from the entries.
struct ReadyLanes: Sendable {
    /// The lanes of one queue.
    private struct Queue: Sendable {
        /// The number of operations that are in one of its lanes.
        var count = 0
        /// Its index in `queues`, while anything is ready.
        var place = 0
        /// The lanes that have entries.
        var lanes: [Int] = []
    }

    private struct Place: Hashable, Sendable {
        let queue: Int
        let kind: Int
    }

    /// Queues that have a ready operation, in no particular order.
    private(set) var queues: [Int] = []
    /// The lanes of external operations that are not empty, besides some that are.
    private(set) var external: [Int] = []
    private var lanes: [Lane] = []
    private var numbers: [Place: Int] = [:]
    private var free: [Int] = []
    private var byQueue: [Queue] = []

    var indices: Range<Int> { lanes.indices }

    /// The number of lanes that policy rules name.
    var usedCount: Int { numbers.count }

    /// The number of entries, including those of operations that have left.
    var entryCount: Int { lanes.reduce(0) { $0 + $1.heap.count } }

    subscript(lane: Int) -> Lane {
        @inline(__always) _read { yield lanes[lane] }
    }

    /// The number of operations of a queue that are ready and that nothing sets aside.
    func count(of queue: Int) -> Int { byQueue[queue].count }

    /// The lanes of a queue that have entries.
    func lanes(of queue: Int) -> [Int] { byQueue[queue].lanes }

    // MARK: - Entries

    /// Adds an operation to its lane, and counts it.
    mutating func insert(_ entry: ReadyEntry, into lane: Int) {
        if lanes[lane].isExternal, !lanes[lane].isListed {
            lanes[lane].isListed = true
            external.append(lane)
        }
        let queue = lanes[lane].queue
        if lanes[lane].place == nil {
            lanes[lane].place = byQueue[queue].lanes.count
            byQueue[queue].lanes.append(lane)
        }
        lanes[lane].heap.insert(entry)
        if byQueue[queue].count == 0 {
            byQueue[queue].place = queues.count
            queues.append(queue)
        }
        byQueue[queue].count += 1
    }

    /// Removes the most urgent entry of a lane. Its operation stays counted until `countOut`.
    mutating func removeFirst(of lane: Int) { lanes[lane].heap.removeMax() }

    /// An operation has left a lane of this queue, with its entry or without.
    mutating func countOut(of queue: Int) {
        byQueue[queue].count -= 1
        guard byQueue[queue].count == 0 else { return }
        let place = byQueue[queue].place
        let last = queues.removeLast()
        guard last != queue else { return }
        queues[place] = last
        byQueue[last].place = place
    }

    /// Removes an empty lane from the list of its queue. The last lane takes its index.
    mutating func unlist(_ lane: Int) {
        guard let place = lanes[lane].place else { return }
        lanes[lane].place = nil
        let queue = lanes[lane].queue
        let last = byQueue[queue].lanes.removeLast()
        guard last != lane else { return }
        byQueue[queue].lanes[place] = last
        lanes[last].place = place
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
        }
    }

    // MARK: - Numbers

    /// The number of a queue's lane for a kind, a new one if necessary.
    mutating func number(queue: Int, kind: Int, isExternal: Bool) -> Int {
        let place = Place(queue: queue, kind: kind)
        if let lane = numbers[place] { return lane }
        let number = free.popLast() ?? lanes.count
        lanes.set(Lane(queue: queue, kind: kind, isExternal: isExternal), at: number)
        numbers[place] = number
        return number
    }

    /// A queue has got this number: the next one, or that of a queue that was forgotten.
    mutating func add(queue: Int) { byQueue.set(Queue(), at: queue) }

    mutating func use(_ lane: Int) { lanes[lane].users += 1 }

    /// A rule that named the lane is gone. A lane without rules is forgotten.
    mutating func release(_ number: Int) {
        lanes[number].users -= 1
        guard lanes[number].users == 0 else { return }
        let lane = lanes[number]
        numbers[Place(queue: lane.queue, kind: lane.kind)] = nil
        unlist(number)
        if lane.isListed { external.removeAll { $0 == number } }
        lanes[number] = Lane(queue: lane.queue, kind: lane.kind, isExternal: false)
        free.append(number)
    }

    // MARK: - Invariants

    func violatedInvariant() -> String? {
        let ready = byQueue.indices.filter { byQueue[$0].count > 0 }
        guard queues.sorted() == ready else {
            return "queues \(queues) are listed as ready, and \(ready) are"
        }
        for lane in lanes.indices {
            let place = lanes[lane].place
            guard place != nil || lanes[lane].heap.isEmpty,
                place.map({ byQueue[lanes[lane].queue].lanes[$0] == lane }) ?? true
            else { return "lane \(lane) is not where it says it is" }
            guard lanes[lane].isListed == external.contains(lane),
                !lanes[lane].isExternal || lanes[lane].heap.isEmpty || lanes[lane].isListed
            else { return "an external operation is in a lane that is not listed" }
        }
        return nil
    }
}

/// A queue's turn among the queues that have something to run.
struct QueueTurn: Comparable, Sendable {
    let share: (Int, UInt64)
    let queue: Int

    static func < (left: QueueTurn, right: QueueTurn) -> Bool {
        left.share == right.share ? left.queue < right.queue : left.share < right.share
    }

    static func == (left: QueueTurn, right: QueueTurn) -> Bool { left.queue == right.queue }
}

extension Array {
    /// Sets an element, or appends it behind the last.
    mutating func set(_ element: Element, at place: Int) {
        if place == count { append(element) } else { self[place] = element }
    }
}
