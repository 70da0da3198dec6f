import HeapModule
import OperonModel

/// An operation in a heap of ready ones, ordered by priority, then those that come back from an
/// attempt, then rank, then order of submission. Never equal for two operations.
struct ReadyEntry: Comparable, Sendable {
    /// Priority level in the upper bits, whether it comes back in the lowest.
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

/// The ready operations of one queue that are of one kind: a kind that no worker knows must not
/// stand in the way of the others.
///
/// Entries of operations that are ready no more stay until they come up; the scheduler looks at
/// the operation's own state before it believes one.
struct Lane: Sendable {
    let queue: Int
    let kind: Int
    /// No worker runs them.
    let isExternal: Bool
    /// How many rules of graphs name it.
    var users = 0
    /// It is one of `Scheduler.externalLanes`.
    var isListed = false
    /// Where it stands among the lanes of its queue; `nil`: nothing stands in it.
    var place: Int?
    var isFree = false
    var heap = Heap<ReadyEntry>()
}

/// What a lane is found by.
struct LanePlace: Hashable, Sendable {
    let queue: Int
    let kind: Int
}

/// A queue in the line of those with something to run.
struct QueueTurn: Comparable, Sendable {
    let share: (Int, UInt64)
    let queue: Int

    static func < (left: QueueTurn, right: QueueTurn) -> Bool {
        left.share == right.share ? left.queue < right.queue : left.share < right.share
    }

    static func == (left: QueueTurn, right: QueueTurn) -> Bool { left.queue == right.queue }
}
