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
///
/// Entries of operations that are no longer ready stay until they come up. The scheduler checks the
/// operation's own state before it uses an entry.
struct Lane: Sendable {
    let queue: Int
    let kind: Int
    /// The kind is external: no worker runs its operations.
    let isExternal: Bool
    /// How many policy rules of graphs name it.
    var users = 0
    /// Whether it is listed in `Scheduler.externalLanes`.
    var isListed = false
    /// Its index among the lanes of its queue; `nil`: it is empty.
    var place: Int?
    var isFree = false
    var heap = Heap<ReadyEntry>()
}

/// The key by which a lane is found.
struct LanePlace: Hashable, Sendable {
    let queue: Int
    let kind: Int
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
